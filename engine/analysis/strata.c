#include "engine/analysis/strata.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"
#include "engine/numerics/quantile.h"
#include "engine/numerics/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 200 };
static const double CHANGE_LEAST = 1e-10, CLIP = 3, MEDIAN_TO_SIGMA = 1.4826;
static const double RESIDUAL_LEAST = 1e-9; /* share of a sum of squares that is no rounding error */
static const double CORRELATION_MOST = 1 - 1e-12;

static size_t find_root(size_t *parents, size_t node) {
    while (parents[node] != node)
        node = parents[node] = parents[parents[node]];
    return node;
}

/* The rank of the model: the number of levels, less one for each group of levels that rows connect (found by
 * union-find). */
size_t strata_rank(const struct strata *strata) {
    size_t first = strata->codes[0] ? strata->level_counts[0] : 0,
           all = first + (strata->codes[1] ? strata->level_counts[1] : 0), rank = 0;
    cleanup_free size_t *parents = xcalloc(all + 1, sizeof *parents);
    for (size_t i = 0; i < all; i++)
        parents[i] = SIZE_MAX; /* not used by any row */
    for (size_t set = 0; set < 2; set++)
        for (size_t row = 0; strata->codes[set] && row < strata->rows; row++) {
            size_t level = strata->codes[set][row] + (set ? first : 0);
            rank += parents[level] == SIZE_MAX;
            parents[level] = level;
        }
    if (!strata->codes[0] || !strata->codes[1])
        return rank;
    for (size_t row = 0; row < strata->rows; row++)
        parents[find_root(parents, strata->codes[0][row])] =
            find_root(parents, first + strata->codes[1][row]);
    for (size_t i = 0; i < all; i++)
        rank -= parents[i] == i;
    return rank;
}

/* Subtracts the mean of each level of one set; returns the greatest mean in size. */
static double subtract_level_means(const uint32_t *codes, size_t levels, size_t rows, double *values,
                                   double *sums, double *counts) {
    double most = 0;
    memset(sums, 0, levels * sizeof *sums);
    memset(counts, 0, levels * sizeof *counts);
    for (size_t row = 0; row < rows; row++) {
        sums[codes[row]] += values[row];
        counts[codes[row]]++;
    }
    for (size_t row = 0; row < rows; row++) {
        double mean = sums[codes[row]] / counts[codes[row]];
        values[row] -= mean;
        most = fmax(most, fabs(mean));
    }
    return most;
}

/* Subtracts the means of the levels of each set. With two sets they are subtracted in turn until nothing
 * changes, at most ROUNDS_MAX times. */
void strata_center(const struct strata *strata, double *values) {
    size_t most_levels = 1;
    double greatest = 0;
    for (size_t set = 0; set < 2; set++)
        if (strata->codes[set] && strata->level_counts[set] > most_levels)
            most_levels = strata->level_counts[set];
    for (size_t row = 0; row < strata->rows; row++)
        greatest = fmax(greatest, fabs(values[row]));
    cleanup_free double *sums = xcalloc(2 * most_levels, sizeof *sums);
    for (size_t round = 0; round < ROUNDS_MAX; round++) {
        double change = 0;
        for (size_t set = 0; set < 2; set++)
            if (strata->codes[set])
                change = subtract_level_means(strata->codes[set], strata->level_counts[set], strata->rows,
                                              values, sums, sums + most_levels);
        if (change <= CHANGE_LEAST * greatest || !strata->codes[0] || !strata->codes[1])
            break;
    }
}

static double sum_of_products(const double *a, const double *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Moves VALUES to within CLIP standard deviations of 0. */
static void clip(double *values, size_t count, double *scratch) {
    for (size_t i = 0; i < count; i++)
        scratch[i] = fabs(values[i]);
    double most = CLIP * MEDIAN_TO_SIGMA * quantile_median(scratch, count);
    for (size_t i = 0; most > 0 && i < count; i++)
        values[i] = fmax(-most, fmin(most, values[i]));
}

static double find_spread(const double *values, size_t count, double *scratch) {
    memcpy(scratch, values, count * sizeof *scratch);
    quantile_sort(scratch, count);
    return quantile(scratch, count, 0.95) - quantile(scratch, count, 0.05);
}

/* The rows of STRATA where X is not NAN, with their Y. CODES has room for two codes a row. */
static struct strata choose_rows(const struct strata *strata, const double *y, const double *x,
                                 uint32_t *codes, double *ret_y, double *ret_x) {
    struct strata used = *strata;
    used.rows = 0;
    for (size_t set = 0; set < 2; set++)
        used.codes[set] = strata->codes[set] ? codes + set * strata->rows : NULL;
    for (size_t row = 0; row < strata->rows; row++) {
        if (isnan(x[row]))
            continue;
        for (size_t set = 0; set < 2; set++)
            if (strata->codes[set])
                codes[set * strata->rows + used.rows] = strata->codes[set][row];
        ret_x[used.rows] = x[row];
        ret_y[used.rows++] = y[row];
    }
    return used;
}

static void subtract_mean(double *values, size_t count) {
    double mean = 0;
    for (size_t i = 0; i < count; i++)
        mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        values[i] -= mean;
}

/* The sum of products over the root of the sum of their squares: holds where rows have variances of their
 * own. */
static double find_robust_t(const double *a, const double *b, size_t count, double freedom) {
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += a[i] * a[i] * b[i] * b[i];
    return sum_of_products(a, b, count) / sqrt(squares * (double)count / freedom);
}

/* Correlates the normal scores of the residuals of Y and X. p is the larger of those with and without
 * allowance for unequal variances; NAN: too few rows. */
struct association strata_associate(const struct strata *strata, const double *y, const double *x) {
    struct association ret = {.p = NAN, .correlation = NAN, .slope = NAN, .spread = NAN};
    size_t rows = strata->rows;
    cleanup_free double *space = xcalloc(4 * rows + 1, sizeof *space);
    cleanup_free uint32_t *codes = xcalloc(2 * rows + 1, sizeof *codes);
    double *residual_y = space, *residual_x = space + rows, *score_y = space + 2 * rows,
           *score_x = score_y + rows;
    const struct strata used = choose_rows(strata, y, x, codes, residual_y, residual_x);
    size_t n = ret.rows = used.rows;
    ret.freedom = (double)n - (double)strata_rank(&used) - 1;
    if (ret.freedom < STRATA_FREEDOM_LEAST)
        return ret;
    ret.spread = find_spread(residual_x, n, score_x);
    subtract_mean(residual_x, n);
    subtract_mean(residual_y, n);
    double x_before = sum_of_products(residual_x, residual_x, n),
           y_before = sum_of_products(residual_y, residual_y, n);
    strata_center(&used, residual_x);
    strata_center(&used, residual_y);
    double of_x = sum_of_products(residual_x, residual_x, n);
    if (of_x <= RESIDUAL_LEAST * x_before ||
        sum_of_products(residual_y, residual_y, n) <= RESIDUAL_LEAST * y_before)
        return ret;
    ranks_normal_scores(residual_x, n, score_x);
    ranks_normal_scores(residual_y, n, score_y);
    ret.correlation = sum_of_products(score_x, score_y, n) /
                      sqrt(sum_of_products(score_x, score_x, n) * sum_of_products(score_y, score_y, n));
    double r = fmax(-CORRELATION_MOST, fmin(CORRELATION_MOST, ret.correlation));
    double plain = r * sqrt(ret.freedom / (1 - r * r)),
           robust = find_robust_t(score_x, score_y, n, ret.freedom);
    ret.p = distribution_student_two_sided(fmin(fabs(plain), fabs(robust)), ret.freedom);
    clip(residual_y, n, score_y);
    ret.slope = sum_of_products(residual_x, residual_y, n) / of_x;
    return ret;
}

/* F test on normal scores: do the levels of the second set differ, after the first set's effects are removed?
 */
struct strata_effect strata_test_second(const struct strata *strata, const double *y) {
    struct strata_effect ret = {.p = NAN, .share = NAN};
    struct strata first = *strata;
    size_t rows = strata->rows;
    first.codes[1] = NULL;
    size_t rank = strata_rank(strata), rank_first = strata_rank(&first);
    ret.above = (double)(rank - rank_first);
    ret.freedom = (double)rows - (double)rank;
    if (rank == rank_first || ret.freedom < STRATA_FREEDOM_LEAST)
        return ret;
    cleanup_free double *values = xcalloc(2 * rows + 1, sizeof *values);
    double *scores = values + rows;
    memcpy(values, y, rows * sizeof *values);
    subtract_mean(values, rows);
    double before = sum_of_products(values, values, rows);
    strata_center(&first, values);
    if (sum_of_products(values, values, rows) <= RESIDUAL_LEAST * before)
        return ret;
    ranks_normal_scores(values, rows, scores);
    strata_center(&first, scores);
    double all = sum_of_products(scores, scores, rows);
    strata_center(strata, scores);
    double rest = sum_of_products(scores, scores, rows);
    ret.share = 1 - rest / all;
    ret.p = rest > 0 ? distribution_f_upper((all - rest) / ret.above / (rest / ret.freedom), ret.above,
                                            ret.freedom)
                     : 0;
    return ret;
}
