/* What nodes say of the same things, so that what is common is read once, and who differs by name. */
#ifndef ASSAY_COMMAND_LINE_NODES_VALUES_H
#define ASSAY_COMMAND_LINE_NODES_VALUES_H

#include "engine/command-line/nodes.h"

#include <stdbool.h>
#include <stddef.h>

/* Nodes that say the same. */
struct nodes_value {
    const char *text; /* borrowed */
    size_t *nodes;    /* ascending */
    size_t count;
};

struct nodes_values {
    struct nodes_value *values; /* the most common first, then in the order of the first node */
    size_t count;
    size_t *numbers; /* what VALUES' nodes point into */
};

/* TEXTS: one a node, borrowed; NULL for nodes of which there is nothing to say. 0 or -ENOMEM. */
int nodes_values_group(char *const *texts, size_t count, struct nodes_values *ret);
void nodes_values_clear(struct nodes_values *values);

/* ---- a table: things that each node may have, and what it says of them */

enum { NODES_TABLE_ROWS_MAX = 512 };

struct nodes_row {
    char *name;
    char **texts; /* one a node; owned */
};

struct nodes_table {
    const struct nodes *nodes;
    struct nodes_row *rows; /* in the order in which they were met */
    size_t count, capacity;
};
void nodes_table_init(struct nodes_table *table, const struct nodes *nodes);
void nodes_table_clear(struct nodes_table *table);

/* Takes TEXT over, also on failure; NULL stands for no memory. What a node says twice of one thing is joined
 * by "; ". More than NODES_TABLE_ROWS_MAX things are a failure, -E2BIG: no honest nodes have so many. */
int nodes_table_add(struct nodes_table *table, size_t node, const char *name, char *text,
                    struct failure *failure);

/* A line a value, "NAME  VALUE   WHO", names in a column of WIDTH; who, if not all that have a text say the
 * same. What comes from nodes is shown (shown.h). */
int nodes_table_print(const struct nodes_table *table, int width, struct failure *failure);
/* A line a value, "WHO: VALUE", of the row NAME. */
int nodes_table_print_row(const struct nodes_table *table, const char *name, struct failure *failure);

/* "nodes  dahu-[1-32]   (32)": those that are KNOWN, one a node. */
int nodes_print_known(const struct nodes *nodes, const bool *known, int width, struct failure *failure);

#endif
