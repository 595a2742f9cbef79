/* What each node is beside its facts: packages, devices, topology, the kernel's log. Private to this room. */
#ifndef ASSAY_NODES_MACHINE_RECORD_H
#define ASSAY_NODES_MACHINE_RECORD_H

#include "engine/run/nodes/nodes.h"

/* Files of nodes, many of which are the same on many nodes. */
struct machine_files {
    struct node_set *set;
    struct machine_file *kept; /* contents that were written; owned */
    size_t count, capacity;
    cJSON **shared; /* of each node, owned: NAME and the member of another node that has the same; or NULL */
};

struct machine_files machine_files_new(struct node_set *set);
void machine_files_clear(struct machine_files *files);
/* Keeps BYTES as raw/NAME of NODE, redacted. A large file that another node has too is kept only there;
 * `shared` names it. */
int machine_files_add(struct machine_files *files, const struct run_node *node, const char *name,
                      const char *bytes, size_t length, struct failure *failure);

/* With `provenance: full`: records what MACHINE_SCRIPT prints on each node. Part of inspect. What a node
 * cannot show is left out. */
int machine_record(struct machine_files *files, struct failure *failure);
/* Records what the kernels have logged since inspect, as raw/kernel-log-during. Part of collect. */
int machine_record_log(struct node_set *set, struct failure *failure);

#endif
