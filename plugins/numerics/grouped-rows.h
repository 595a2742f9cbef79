/*
 * Rows kept while they stream by, and handed out group by group in the end: for methods that must see all
 * values of a group at once. 8 bytes a row and column, and 4 for its group; twice that while they are sorted.
 */
#ifndef ASSAY_NUMERICS_GROUPED_ROWS_H
#define ASSAY_NUMERICS_GROUPED_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROUPED_COLUMNS_MAX = 72, GROUPED_ROWS_MAX = 1 << 27 };

struct grouped_rows {
    size_t columns, count, capacity;
    double *values[GROUPED_COLUMNS_MAX]; /* row by row as they came; after sorting, group by group */
    uint32_t *groups;
    uint32_t group_count;
    uint64_t *left_out; /* rows of each group that had a value which is empty or not finite */
    size_t left_out_capacity;
    size_t *starts;    /* after sorting: the rows of group G are from starts[G] to before starts[G + 1] */
    bool numbered;     /* set before the first row: numbers are kept, 8 bytes a row */
    uint64_t seen;     /* rows, those that were left out too */
    uint64_t *numbers; /* of each row how many came before it; in the order of the values */
};

void grouped_rows_init(struct grouped_rows *rows, size_t columns);
void grouped_rows_clear(struct grouped_rows *rows);

/* Takes rows, column by column. A row with a value that is not finite is left out and counted. -EFBIG for
 * more than GROUPED_ROWS_MAX, -ENOMEM. */
int grouped_rows_add(struct grouped_rows *rows, size_t count, const double *const *columns,
                     const uint32_t *groups, uint32_t group_count);

/* Brings the rows of each group together, in the order in which they came. 0 or -ENOMEM. */
int grouped_rows_sort(struct grouped_rows *rows);

#endif
