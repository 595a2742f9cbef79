/*
 * Rows that stay in memory after a fit's first pass, for what is done with them afterwards: residuals,
 * cross-validation, other models of the same table. All rows of a table of up to KEPT_ROWS_MAX; of a larger
 * one every second, fourth, eighth ... row, so that the same table always keeps the same rows.
 */
#ifndef ASSAY_PLUGIN_KEPT_ROWS_H
#define ASSAY_PLUGIN_KEPT_ROWS_H

#include "engine/foundation/failure.h"
#include "engine/plugin/grouping.h"

#include <stddef.h>
#include <stdint.h>

enum { KEPT_ROWS_MAX = 1 << 18 };

struct kept_rows {
    size_t column_count, label_count, limit;
    double **columns;  /* numbers, by column */
    uint32_t **labels; /* codes, by label column */
    uint32_t *groups;
    size_t count;    /* of the rows that are here */
    uint64_t stride; /* the I-th one here is row I * stride of the table */
    uint64_t rows;   /* of the table so far */
};

/* LIMIT rows at most, an even number. 0 or -ENOMEM. */
int kept_rows_init(struct kept_rows *kept, size_t column_count, size_t label_count, size_t limit);
/* The next ROWS rows. */
void kept_rows_add(struct kept_rows *kept, size_t rows, const double *const *columns,
                   const uint32_t *const *labels, const uint32_t *groups);
/* The groups of the rows that are here by their first BY_COUNT labels: RET, which the caller frees, and of
 * each row the group's code, in RET's memory. 0 or a negative errno. */
int kept_rows_group(const struct kept_rows *kept, size_t by_count, struct grouping **ret,
                    const uint32_t **ret_codes, struct failure *failure);
void kept_rows_clear(struct kept_rows *kept);

#endif
