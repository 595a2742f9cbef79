/*
 * A placement: where units are done, one after another. A core of a node, a whole node, or the job: nodes
 * that do a unit together, the first of which launches it. It is a value; its owner frees what it owns.
 *
 * The ledger knows a placement by two names, a node's and a core's: ("dahu-3", "12"), ("dahu-3", "all"),
 * ("job", "all"). In the results, the job has the names of the nodes that did the unit: "dahu-[1-4]".
 *
 * A node has the placements that are its own. The job is counted as the first node's that is in, so that it
 * is there once, and goes over to the next node when that one is lost.
 */
#ifndef ASSAY_NODES_PLACEMENT_H
#define ASSAY_NODES_PLACEMENT_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node_set;
struct run_node;

#define PLACEMENT_JOB_NODE "job"  /* the job's node in the ledger and the journal */
#define PLACEMENT_ALL_CORES "all" /* the core of a placement that is no core */

/* A node's part in it. */
struct placement_share {
    struct run_node *node;
    unsigned *pus; /* owned; the first logical CPU of each core that is used */
    size_t pu_count;
};

struct placement {
    size_t place;          /* the ledger's number */
    const char *core;      /* the ledger's */
    struct run_node *node; /* of the first share */
    struct placement_share
        *shares; /* owned; a unit of the job may need fewer: then it has the first of them */
    size_t count;
};

/* How many placements NODE has. If its cores are not known in this part, those that did units in earlier
 * parts count. */
size_t placement_count(const struct node_set *set, const struct run_node *node);
/* The ledger's number of NODE's placement I. */
size_t placement_place(const struct node_set *set, const struct run_node *node, size_t i);
/* Sets up NODE's placement I; that of a job has all nodes that take part. */
void placement_init(struct placement *placement, const struct node_set *set, struct run_node *node, size_t i);
void placement_clear(struct placement *placement);
/* Is NODE one of the placement's nodes? */
bool placement_has(const struct placement *placement, const struct run_node *node);
/* Appends the names of the first COUNT nodes, folded. Negative: TEXT is full. */
int placement_append_nodes(const struct placement *placement, size_t count, struct text *text);
/* Converts FIRST_NS, by the first node's monotonic clock, to the clock of share I; as exact as the clocks
 * were measured. */
int64_t placement_time_of(const struct placement *placement, size_t i, int64_t first_ns);

#endif
