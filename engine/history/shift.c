#include "engine/history/shift.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"
#include "engine/numerics/quantile.h"
#include "engine/numerics/ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WINSOR = 2.5;             /* standard deviations */
static const double MEDIAN_TO_SIGMA = 1.4826; /* of the median absolute residual of a normal variable */
static const double CORRELATION_MOST = 0.95;

static double median(const double *values, size_t count, double *scratch) {
    memcpy(scratch, values, count * sizeof *scratch);
    return quantile_median(scratch, count);
}

/* The row, with at least SIDE rows on each side, where the sums of SCORES on both sides differ most. */
static size_t find_shift_row(const double *scores, size_t count, size_t side) {
    double sum = 0, best = -1, n = (double)count;
    size_t row = side;
    for (size_t at = 1; at <= count - side; at++) {
        sum += scores[at - 1];
        double difference = fabs(sum) / sqrt((double)at * (n - (double)at) / n);
        if (at >= side && difference > best) {
            best = difference;
            row = at;
        }
    }
    return row;
}

/* Sets the residuals of the rows and the levels before and after the shift: rows far from their side's median
 * are moved nearer (Winsorized) before the means are taken. */
static void find_residuals(const double *values, size_t count, struct shift *shift, double *ret_residuals) {
    cleanup_free double *sizes = xcalloc(count, sizeof *sizes);
    cleanup_free double *scratch = xcalloc(count, sizeof *scratch);
    size_t row = shift->row;
    double left = median(values, row, scratch), right = median(values + row, count - row, scratch);
    for (size_t i = 0; i < count; i++) {
        ret_residuals[i] = values[i] - (i < row ? left : right);
        sizes[i] = fabs(ret_residuals[i]);
    }
    double n = (double)count, most = WINSOR * MEDIAN_TO_SIGMA * quantile_median(sizes, count) * n / (n - 2);
    double sums[2] = {0, 0};
    for (size_t i = 0; i < count; i++) {
        if (most > 0)
            ret_residuals[i] = fmax(-most, fmin(most, ret_residuals[i]));
        sums[i >= row] += ret_residuals[i];
    }
    sums[0] /= (double)row;
    sums[1] /= (double)(count - row);
    for (size_t i = 0; i < count; i++)
        ret_residuals[i] -= sums[i >= row];
    shift->before = left + sums[0];
    shift->after = right + sums[1];
}

/* By how much the correlation of neighbouring rows multiplies the variance of a mean (step 3 of shift.h). */
static double variance_factor(const double *residuals, size_t count, size_t row, double squares) {
    double products = 0, n = (double)count;
    for (size_t i = 1; i < count; i++)
        products += i != row ? residuals[i] * residuals[i - 1] : 0;
    double rho = products / squares;
    rho = fmax(0, fmin(CORRELATION_MOST, rho + 2 * (1 + 3 * rho) / n + 1 / sqrt(n)));
    return (1 + rho) / (1 - rho);
}

static double p_of_greatest(double z, size_t count, size_t side) {
    double h = (double)side / (double)count, density = exp(-z * z / 2) / sqrt(2 * M_PI);
    if (z < 1.5)
        return 1; /* the formula is for the tail */
    return fmin(1, z * density * ((1 - 1 / (z * z)) * 2 * log((1 - h) / h) + 4 / (z * z)));
}

/* Finds the most likely row of a change of level, its size, and p (the steps of shift.h). -EDOM: too few
 * rows. */
int shift_find(const double *values, size_t count, struct shift *ret) {
    if (count < SHIFT_ROWS_LEAST)
        return -EDOM;
    cleanup_free double *numbers = xcalloc(count, sizeof *numbers);
    size_t side = count / 20 > SHIFT_SIDE_LEAST ? count / 20 : SHIFT_SIDE_LEAST;
    double squares = 0, n = (double)count;
    ranks_normal_scores(values, count, numbers);
    *ret = (struct shift){.row = find_shift_row(numbers, count, side)};
    find_residuals(values, count, ret, numbers);
    for (size_t i = 0; i < count; i++)
        squares += numbers[i] * numbers[i];
    double difference = ret->after - ret->before;
    ret->low = ret->high = difference;
    ret->p = difference == 0;
    if (squares == 0)
        return 0;
    double factor = variance_factor(numbers, count, ret->row, squares), freedom = fmax(2, (n - 2) / factor);
    double left = (double)ret->row, error = sqrt(squares / (n - 2) * factor * (1 / left + 1 / (n - left)));
    double half = error * distribution_student_two_sided_quantile(0.05, freedom);
    ret->low -= half;
    ret->high += half;
    double p = distribution_student_two_sided(difference / error, freedom);
    ret->p = p_of_greatest(p > 1e-300 ? distribution_student_quantile(p, 0) : 37, count, side);
    return 0;
}
