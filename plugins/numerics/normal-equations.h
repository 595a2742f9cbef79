/*
 * Weighted least squares over a few columns, from sums of products in double-double: what an exact
 * computation would give, rounded once. Squaring the condition number costs half of 32 digits, which leaves
 * more than a double shows.
 */
#ifndef ASSAY_NUMERICS_NORMAL_EQUATIONS_H
#define ASSAY_NUMERICS_NORMAL_EQUATIONS_H

#include "plugins/numerics/double-double.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    NORMAL_COLUMNS_MAX = 3,
    NORMAL_WIDTH_MAX = NORMAL_COLUMNS_MAX + 1, /* and the response, the last */
    NORMAL_SUMS_MAX = NORMAL_WIDTH_MAX * (NORMAL_WIDTH_MAX + 1) / 2,
};

/* A column is a combination of earlier ones when what they leave of its sum of squares is below this share of
 * it: nothing that data in double precision could show. */
static const double normal_dependent = 0x1p-80;
/* Residuals below this share of the response's sum of squares are rounding of the response. */
static const double normal_perfect = 0x1p-96;

/* sum w z_a z_b for a <= b, row by row of the upper triangle; all zero to begin with. */
struct normal_sums {
    struct dd products[NORMAL_SUMS_MAX];
};

/* Adds the row X[0 .. COLUMNS - 1], Y with weight W. */
void normal_sums_add(struct normal_sums *sums, size_t columns, const double *x, double y, double w);
/* sum w z_a z_b; COLUMNS stands for the response. */
struct dd normal_sum(const struct normal_sums *sums, size_t columns, size_t a, size_t b);

struct normal_fit {
    double estimates[NORMAL_COLUMNS_MAX];                    /* 0 of a column that was not asked for */
    double inverse[NORMAL_COLUMNS_MAX * NORMAL_COLUMNS_MAX]; /* of X'WX, COLUMNS wide; 0 likewise */
    struct dd rss;                                           /* sum w (y - Xb)^2 */
};

enum normal_outcome {
    NORMAL_FITTED,
    NORMAL_DEPENDENT, /* a column is a combination of earlier ones: *RET_COLUMN */
    NORMAL_OVERFLOW,  /* a sum or a result is beyond the range of a double */
};

/* Over the columns whose bit is in SELECTED. */
enum normal_outcome normal_solve(const struct normal_sums *sums, size_t columns, unsigned selected,
                                 struct normal_fit *ret, size_t *ret_column);

#endif
