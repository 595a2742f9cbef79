/*
 * Texts of nodes, and nodes whose text is the same, together: the same processor, the same command, the same
 * failure. Private to this room.
 */
#ifndef ASSAY_NODES_KINDS_H
#define ASSAY_NODES_KINDS_H

#include <stddef.h>

/* A text for each node, owned; NULL: none. */
struct node_texts {
    char **items;
    size_t count;
};
struct node_texts node_texts_new(size_t count); /* all NULL */
void node_texts_clear(struct node_texts *texts);

struct node_kind {
    const char *value;   /* the text of its nodes */
    const size_t *nodes; /* ascending */
    size_t count;
};

struct node_kinds {
    struct node_kind *items; /* in the order of their first nodes */
    size_t count;
    size_t *nodes; /* what the kinds point into */
};

/* TEXTS are borrowed as long as the kinds are used. */
struct node_kinds node_kinds_of(const struct node_texts *texts);
void node_kinds_clear(struct node_kinds *kinds); /* fine on zeroed memory */

#endif
