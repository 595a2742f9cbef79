/*
 * Sums of products, group by group, in twice the working precision: all that least squares needs of the rows.
 *
 * For the columns z0 = 1, z1 .. zT (the terms without the constant) and zT+1 = y, every group keeps the sums
 * over its rows of w*za*zb for all pairs (w = 1 without weights), and the ranges of what went in. Each sum is
 * a pair of doubles: products by an exact product, sums by an exact sum, their errors summed beside (Dot2 of
 * T. Ogita, S. M. Rump, S. Oishi, SIAM J. Sci. Comput. 26 (2005), 1955). Terms whose product of factors is
 * not exact carry their rounding error along, so that x^10 is as good as x.
 *
 * Columns are scaled by powers of two, chosen from the first block, so that values of any usual size neither
 * over- nor underflow when they are multiplied; moments_sum and the ranges give them back unscaled or say the
 * exponent.
 *
 * Memory: one fixed-size record a group (M-2: 512 bytes), in slabs that never move.
 */
#ifndef ASSAY_FIT_LINEAR_MOMENTS_H
#define ASSAY_FIT_LINEAR_MOMENTS_H

#include "plugins/fit-linear/formula.h"
#include "plugins/numerics/double-double.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum moments_kernel_choice {
    MOMENTS_BEST,     /* AVX2 and FMA where the processor has them */
    MOMENTS_PORTABLE, /* plain C; the same bits */
};

struct moments;

/* FORMULA must outlive it. */
int moments_new(const struct formula *formula, bool weighted, enum moments_kernel_choice choice,
                struct moments **ret);
void moments_free(struct moments *moments);

/* Adds ROWS rows. COLUMNS: one array for each formula column, then the response, then (if weighted) the
 * weights. Rows with a value that is not finite are counted as incomplete; weights of zero leave a row out,
 * as if it were not there. Returns 0, -ENOMEM, or -ERANGE with *RET_ROW set for a negative weight. */
int moments_add(struct moments *moments, size_t rows, const double *const *columns, const uint32_t *groups,
                uint32_t group_count, size_t *ret_row);

uint32_t moments_group_count(const struct moments *moments);
uint64_t moments_rows(const struct moments *moments, uint32_t group); /* used */
uint64_t moments_incomplete(const struct moments *moments,
                            uint32_t group); /* left out: empty or not finite */

/* How many columns z there are, z0 and y included. */
size_t moments_width(const struct moments *moments);
/* Sum of w*za*zb over the group's rows, scaled by 2^(moments_exponent(a) + moments_exponent(b)). */
struct dd moments_sum(const struct moments *moments, uint32_t group, size_t a, size_t b);
int moments_exponent(const struct moments *moments, size_t a);
double moments_log_weights(const struct moments *moments, uint32_t group); /* sum of log(w) */

/* Ranges, unscaled: of factor column I, of the term z A, of the response. */
void moments_column_range(const struct moments *moments, uint32_t group, size_t i, double *ret_minimum,
                          double *ret_maximum);
void moments_range(const struct moments *moments, uint32_t group, size_t a, double *ret_minimum,
                   double *ret_maximum);

#endif
