/*
 * The software of a run: what its commands find on each node, and a record of it in software/versions.json.
 * Private to this room.
 */
#ifndef ASSAY_NODES_SOFTWARE_H
#define ASSAY_NODES_SOFTWARE_H

#include "engine/run/nodes/nodes.h"

/* Loads modules, Spack packages and prefixes on every node, once, and keeps the changes of the environment.
 * Part of prepare, after the experiment's files were put on the nodes. A module that cannot be loaded is
 * FAILURE_INPUT with the node and the tool's message. Differences between nodes are noted. */
int software_load(struct node_set *set, struct failure *failure);

/* What is added to a command of the experiment on a node, borrowed and NULL-ended, perhaps empty. The
 * environment: "NAME=VALUE", or "NAME" to remove it, before all other additions. The prefix: arguments before
 * its own, of the container. */
const char *const *software_environment(const struct node_set *set, const struct run_node *node);
const char *const *software_prefix(const struct node_set *set);
/* FIRST, then SECOND (each may be NULL): an array for free(); the strings are borrowed. */
const char **software_join(const char *const *first, const char *const *second);

/* The program that starts ranks, and the options that the experiment gives it: owned, NULL-ended, for
 * experiment_arguments_free(). */
int software_mpirun(const struct node_set *set, char ***ret, struct failure *failure);

/* Records which programs the run command starts and which libraries the loader gives them, with their hashes
 * and packages, and the compiler. Part of prepare, after setup. */
int software_record_programs(struct node_set *set, struct failure *failure);
/* Records the libraries whose paths kernels have printed as facts. Part of collect. */
int software_record_facts(struct node_set *set, struct failure *failure);
/* Writes software/versions.json. */
int software_write(struct node_set *set, struct failure *failure);

/* If FAILURE, of a command, says that a compiler, header or library is missing: adds the Debian package that
 * has it, and makes it a FAILURE_INPUT. */
void software_add_hint(struct failure *failure);

#endif
