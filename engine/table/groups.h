/*
 * The rows of a table group by group: a group is one combination of the levels of some categories. Groups are
 * in natural order of their labels, rows of a group in the order of the table.
 */
#ifndef ASSAY_TABLE_GROUPS_H
#define ASSAY_TABLE_GROUPS_H

#include "engine/table/table.h"

struct groups {
    size_t count;
    uint32_t *rows;   /* the rows of all groups, one group after the other */
    size_t *first;    /* where each group begins in rows; first[count] is the number of rows */
    uint32_t *labels; /* codes of the levels: label_count a group */
    size_t label_count;
};

/* By the COUNT categories of TABLE called BY (indices into table->categories). None: one group of all rows.
 */
void groups_make(struct groups *groups, const struct table *table, const size_t *by, size_t count);
void groups_clear(struct groups *groups);
/* "dahu-3/0"; "all" where there are no labels. The caller frees. */
char *groups_name(const struct groups *groups, const struct table *table, const size_t *by, size_t group);

#endif
