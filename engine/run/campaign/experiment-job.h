/*
 * How a unit is started, where that takes more than a command: input files, and ranks of MPI on one node or
 * several. In experiment.yaml, under `run`:
 *
 *     nodes: nodes                  of a job: on so many; an expression over factors and facts, as are ranks
 *     ranks: P * Q                  the command is what one rank does, and mpirun is put before it
 *     ranks-per-node: 4             default: as few as there can be
 *     threads: 1                    cores of a rank
 *     bind: core                    or none; default: core where there are enough
 *     mpirun: [mpirun, --mca, ...]  and its further arguments; {option} stands for an option
 *     files: {HPL.dat: "..."}       written into the working folder before each unit, {name} filled in
 *
 * Facts are those of struct experiment_facts.
 */
#ifndef ASSAY_CAMPAIGN_EXPERIMENT_JOB_H
#define ASSAY_CAMPAIGN_EXPERIMENT_JOB_H

#include "engine/documents/bind.h"
#include "engine/documents/document.h"
#include "engine/expression/expression.h"
#include "engine/foundation/failure.h"
#include "engine/run/campaign/experiment-command.h"

#include <stdbool.h>
#include <stddef.h>

struct experiment;
struct experiment_binding;

/* The host file of a unit, in its working folder. */
#define JOB_HOST_FILE ".hosts"

enum {
    EXPERIMENT_FILES_MAX = 64,
    EXPERIMENT_RANKS_MAX = 1 << 20,
};

struct experiment_file {
    char *name;                     /* below the working folder */
    struct experiment_command text; /* .line is its text */
};

enum experiment_count {
    EXPERIMENT_COUNT_NODES,
    EXPERIMENT_COUNT_RANKS,
    EXPERIMENT_COUNT_RANKS_PER_NODE,
    EXPERIMENT_COUNT_THREADS,
    EXPERIMENT_COUNTS,
};
extern const char *const experiment_count_names[EXPERIMENT_COUNTS + 1]; /* the last is NULL */

struct experiment_job {
    struct expression *counts[EXPERIMENT_COUNTS]; /* over job_names; NULL: not said */
    char *bind;                                   /* core, none, {option}; or NULL */
    struct experiment_command mpirun;             /* .arguments; empty: mpirun */
    struct experiment_file *files;
    size_t file_count;
    struct bind_texts keep; /* names of files that a unit leaves in its working folder */
};

/* Facts of the nodes of a run: their number, the fewest cores, and the least available memory in bytes. */
struct experiment_facts {
    double run_nodes, node_cores, node_memory;
};

/* The nodes, ranks and threads that one unit needs. */
struct experiment_shape {
    size_t nodes, ranks, ranks_per_node, threads;
    bool bind;
};

/* Binds the keys of `run` about units with files and ranks. The factors, `bind` and `mpirun` are bound
 * before. */
int experiment_job_bind(const struct experiment_binding *binding, const struct document_node *run);
void experiment_job_clear(struct experiment_job *job);

/* The shape of a unit whose factors are FACTORS, in their order. A count that is no whole number from 1 on,
 * more ranks than the nodes are given, and more nodes than there are, are refused at the expression's place.
 */
int experiment_job_shape(const struct experiment *experiment, const double *factors,
                         const struct experiment_facts *facts, struct experiment_shape *ret,
                         struct failure *failure);
/* Does a unit consist of ranks that assay starts? */
bool experiment_has_ranks(const struct experiment *experiment);

/* The text of a file with VALUES filled in; the caller frees. */
int experiment_file_fill(const struct experiment_file *file, const char *document,
                         const struct experiment_values *values, char **ret, struct failure *failure);

#endif
