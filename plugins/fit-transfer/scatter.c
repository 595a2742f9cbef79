#include "plugins/fit-transfer/scatter.h"

#include "engine/numerics/noise.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Satterthwaite's degrees of freedom of the deviation, 1 / (2 var log deviation), at the size with the
 * fewest, at least 1. The variance is from Fisher's information 2 sum u u' / deviation^2, u = (1, SHAPE).
 * ROWS - 2 if the growth of the noise is less than 1.5 times its standard error. */
static double find_freedom(const struct noise *noise, size_t rows, const double *shape) {
    double share = noise->coefficients[1], all = (double)rows - 2, fewest = all, sums[3] = {0};
    for (size_t i = 0; i < rows; i++) {
        double w = 1 / pow(noise->constant + share * shape[i], 2);
        sums[0] += w;
        sums[1] += w * shape[i];
        sums[2] += w * shape[i] * shape[i];
    }
    double spread = sums[2] - sums[1] * sums[1] / sums[0];
    for (size_t i = 0; i < rows; i++) {
        double variance = 1 / sums[0] + pow(shape[i] - sums[1] / sums[0], 2) / spread;
        fewest = fmin(fewest, pow(noise->constant + share * shape[i], 2) / variance);
    }
    bool grows = share > 0 && share * sqrt(2 * spread) >= 1.5;
    return grows ? fmax(1, fewest) : all;
}

/* Maximum likelihood of mean a + c T and deviation d + p T, p = 0 being constant noise and d = 0 noise in
 * proportion. T is the curve of least squares of log t, which sizes of all decades decide, or CURVE where
 * durations are not above 0. RET_MEAN: intercept and slope of the mean over the size. */
static int find_likely(const struct curve_problem *problem, const struct curve *curve,
                       double ret_mean[static 2], struct scatter *ret) {
    size_t n = problem->rows;
    struct curve_problem logarithms = *problem;
    struct curve log_curve = *curve;
    struct noise noise = {0};
    bool is_above_zero = true;
    double *memory = malloc(2 * n * sizeof *memory), *shape = memory + n;
    if (!memory)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        is_above_zero &= problem->duration[i] > 0;
    logarithms.criterion = CURVE_LOG;
    int code = problem->criterion != CURVE_LOG && is_above_zero ? curve_find(&logarithms, &log_curve) : 0;
    for (size_t i = 0; i < n; i++) {
        memory[i] = 1;
        shape[i] = log_curve.latency + log_curve.inverse * problem->size[i];
    }
    const bool constant[2] = {false, false};
    struct noise_problem wanted = {.rows = n,
                                   .columns = 2,
                                   .x = memory,
                                   .stride = n,
                                   .y = problem->duration,
                                   .weights = problem->weight};
    code = code < 0 ? code : noise_fit(&wanted, &noise);
    double freedom = code == 0 ? find_freedom(&noise, n, shape) : 0;
    if (code == 0 && freedom == (double)n - 2 && noise.coefficients[1] > 0) {
        noise_clear(&noise);
        wanted.scatters = constant;
        code = noise_fit(&wanted, &noise);
    }
    if (code == 0) {
        const double *mean = noise.mean.estimate, share = noise.coefficients[1];
        double few = sqrt((double)n / ((double)n - 2));
        ret_mean[0] = mean[0] + mean[1] * log_curve.latency;
        ret_mean[1] = mean[1] * log_curve.inverse;
        ret->constant = few * (noise.constant + share * log_curve.latency);
        ret->share = few * share * log_curve.inverse;
        ret->freedom = freedom;
        bool is_positive = true; /* else no logarithm and no bandwidth have derivatives there */
        for (size_t i = 0; i < n; i++)
            is_positive &= ret_mean[0] + ret_mean[1] * problem->size[i] > 0;
        if (!is_positive)
            ret_mean[0] = log_curve.latency, ret_mean[1] = log_curve.inverse;
    }
    noise_clear(&noise);
    free(memory);
    return code == -ENOMEM ? code : code < 0 ? -EDOM : 0;
}

/* The covariance of t0 and b (the sandwich estimator, H. White, Econometrica 48 (1980), 817) plus the square
 * of the criterion's bias. The criterion compares u = t, s/t or log t; u' and u'' are its derivatives at the
 * mean, J has the rows u' (1, s), W the criterion's weights, V the variance of each row's noise. With
 * A = J'WJ: covariance A^-1 (J'W u'^2 V J) A^-1, bias A^-1 J'W u'' V / 2. Both are computed in the basis
 * (1, s - centre), in which A is diagonal. */
static void find_covariance(const struct curve_problem *problem, const double mean[static 2],
                            struct scatter *ret) {
    double total = 0, centre = 0, spread = 0, meat[3] = {0}, bias[2] = {0};
    double unit = ret->constant + ret->share * problem->size[0]; /* of durations: of any size */
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < problem->rows; i++) {
            double s = problem->size[i], m = (mean[0] + mean[1] * s) / unit;
            double deviation = (ret->constant + ret->share * s) / unit;
            double slope = problem->criterion == CURVE_TIME  ? 1
                           : problem->criterion == CURVE_LOG ? 1 / m
                                                             : -s / m / m;
            double bend = problem->criterion == CURVE_TIME  ? 0
                          : problem->criterion == CURVE_LOG ? -1 / m / m
                                                            : 2 * s / m / m / m;
            double a = problem->weight[i] * slope * slope, away = s - centre;
            if (pass == 0) {
                total += a;
                centre += a / total * away;
                continue;
            }
            double variance = slope * slope * slope * slope * problem->weight[i] * deviation * deviation;
            double shift = slope * bend * deviation * deviation / 2;
            spread += a * away * away;
            meat[0] += variance;
            meat[1] += variance * away;
            meat[2] += variance * away * away;
            bias[0] += shift;
            bias[1] += shift * away;
        }
    double v[3] = {meat[0] / total / total, meat[1] / total / spread, meat[2] / spread / spread};
    bias[0] /= total;
    bias[1] /= spread;
    v[0] += bias[0] * bias[0];
    v[1] += bias[0] * bias[1];
    v[2] += bias[1] * bias[1];
    ret->covariance[0] = (v[0] - 2 * centre * v[1] + centre * centre * v[2]) * unit * unit;
    ret->covariance[1] = (v[1] - centre * v[2]) * unit * unit;
    ret->covariance[2] = v[2] * unit * unit;
}

int scatter_find(const struct curve_problem *problem, const struct curve *curve, struct scatter *ret) {
    double mean[2] = {0};
    *ret = (struct scatter){NAN, NAN, 0, {NAN, NAN, NAN}};
    int code = problem->rows < 3 ? -EDOM : find_likely(problem, curve, mean, ret);
    if (code == 0)
        find_covariance(problem, mean, ret);
    return code;
}
