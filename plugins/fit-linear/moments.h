/*
 * Sums of products, group by group, in twice the working precision: all that least squares needs of the rows.
 *
 * For the columns z0 = 1, z1 .. zP (the products of the formula but the constant) and zP+1 = y, every group
 * keeps the sums over its rows of w*za*zb for all pairs (w = 1 without weights), and the ranges of what went
 * in. Each sum is a pair of doubles: products by an exact product, sums by an exact sum, their errors summed
 * beside (Dot2 of T. Ogita, S. M. Rump, S. Oishi, SIAM J. Sci. Comput. 26 (2005), 1955). Products of inputs
 * that are not exact carry their rounding error along, so that x^10 is as good as x.
 *
 * Columns are scaled by powers of two, chosen from the first block, so that values of any usual size neither
 * over- nor underflow when they are multiplied; moments_sum and the ranges give them back unscaled or say the
 * exponent.
 *
 * For cross-validation a group's rows can be parted into folds, with sums of their own each.
 *
 * Memory: one fixed size a group (M-2: 1,984 bytes with 5 folds, 576 with none), in slabs that never move.
 * Folds are given up, and their sums united, where records would be more than MOMENTS_FOLDS_BYTES_MAX or
 * groups more than MOMENTS_FOLDS_GROUPS_MAX.
 */
#ifndef ASSAY_FIT_LINEAR_MOMENTS_H
#define ASSAY_FIT_LINEAR_MOMENTS_H

#include "plugins/fit-linear/formula.h"
#include "plugins/numerics/double-double.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MOMENTS_FOLDS_MAX = 20,
    MOMENTS_FOLDS_GROUPS_MAX = 16384,
    MOMENTS_FOLDS_BYTES_MAX = 256 << 20,
};

enum moments_kernel_choice {
    MOMENTS_BEST,     /* AVX2 and FMA where the processor has them */
    MOMENTS_PORTABLE, /* plain C; the same bits */
};

struct moments;

struct moments_options {
    bool weighted;
    enum moments_kernel_choice choice;
    uint32_t folds; /* 0 and 1: none */
};

/* FORMULA must outlive it. */
int moments_new(const struct formula *formula, const struct moments_options *options, struct moments **ret);
void moments_free(struct moments *moments);

/* Adds ROWS rows. COLUMNS: one array for each formula input, then the response, then (if weighted) the
 * weights. FOLDS: of each row; NULL: all are in the first. Rows with a value that is not finite are counted
 * as incomplete; weights of zero leave a row out, as if it were not there. Returns 0, -ENOMEM, or -ERANGE
 * with *RET_ROW set for a negative weight. */
int moments_add(struct moments *moments, size_t rows, const double *const *columns, const uint32_t *groups,
                uint32_t group_count, const uint8_t *folds, size_t *ret_row);
/* Forgets the rows, but not the scales. */
void moments_reset(struct moments *moments);

uint32_t moments_group_count(const struct moments *moments);
/* How many folds there are; 1: all rows of a group are one. */
uint32_t moments_folds(const struct moments *moments);

/* Of one fold of a group. */
uint64_t moments_rows(const struct moments *moments, uint32_t group, uint32_t fold); /* used */
uint64_t moments_incomplete(const struct moments *moments, uint32_t group,
                            uint32_t fold); /* left out: empty or not finite */
double moments_log_weights(const struct moments *moments, uint32_t group, uint32_t fold); /* sum of log(w) */
double moments_negative(const struct moments *moments, uint32_t group,
                        uint32_t fold); /* sum of w*y where y < 0, unscaled */
/* Sum of w*za*zb over its rows, scaled by 2^(moments_exponent(a) + moments_exponent(b)). */
struct dd moments_sum(const struct moments *moments, uint32_t group, uint32_t fold, size_t a, size_t b);
/* Takes the group's range of an input, the response after the last, or of the product A, over all folds,
 * unscaled, into *MINIMUM and *MAXIMUM: widens them. */
void moments_widen_input(const struct moments *moments, uint32_t group, size_t i, double *minimum,
                         double *maximum);
void moments_widen(const struct moments *moments, uint32_t group, size_t a, double *minimum, double *maximum);

/* How many columns z there are, z0 and y included. */
size_t moments_width(const struct moments *moments);
int moments_exponent(const struct moments *moments, size_t a);

#endif
