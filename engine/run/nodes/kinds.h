/*
 * Nodes of which the same can be said, together: the same processor, the same command, the same failure.
 * Private to this room.
 */
#ifndef ASSAY_NODES_KINDS_H
#define ASSAY_NODES_KINDS_H

#include <stddef.h>

struct node_kind {
    const char *value;   /* one of the values given */
    const size_t *nodes; /* ascending */
    size_t count;
};

struct node_kinds {
    struct node_kind *items; /* in the order of their first nodes */
    size_t count;
    size_t *nodes; /* what the kinds point into */
};

/* VALUES: one a node, borrowed as long as the kinds are used; nodes whose value is NULL are left out. 0 or
 * -ENOMEM. */
int node_kinds_init(struct node_kinds *kinds, const char *const *values, size_t count);
void node_kinds_clear(struct node_kinds *kinds); /* fine on zeroed memory */

#endif
