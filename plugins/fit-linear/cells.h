/*
 * Cells: the rows of one group that have the same levels of all categories. Sums are kept by cell, so that
 * dummies, whose levels are not known before the last row, need no sums of their own: those of a dummy are
 * those of the cells where it is 1 (sums.h). Without categories a group is one cell and has its code.
 */
#ifndef ASSAY_FIT_LINEAR_CELLS_H
#define ASSAY_FIT_LINEAR_CELLS_H

#include <stddef.h>
#include <stdint.h>

enum {
    CELLS_MAX = 1 << 20,     /* where there are categories */
    CELLS_LEVELS_MAX = 4096, /* of a category */
};

struct cells;

int cells_new(size_t categories, struct cells **ret);
void cells_free(struct cells *cells);

/* The cell of each row into RET. GROUP_COUNT groups were seen so far. 0, -ENOMEM, or -E2BIG: more cells than
 * the most, or -ERANGE with *RET_CATEGORY: more levels than the most. */
int cells_assign(struct cells *cells, size_t rows, const uint32_t *groups, uint32_t group_count,
                 const uint32_t *const *codes, uint32_t *ret, size_t *ret_category);
uint32_t cells_count(const struct cells *cells);
/* The levels' codes of a cell, one for each category. */
const uint32_t *cells_codes(const struct cells *cells, uint32_t cell);
/* The cells of a group. Valid until rows are assigned. -ENOMEM. */
int cells_of_group(struct cells *cells, uint32_t group, const uint32_t **ret, size_t *ret_count);

#endif
