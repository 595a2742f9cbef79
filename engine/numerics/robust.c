#include "engine/numerics/robust.h"

#include "engine/foundation/cleanup.h"
#include "engine/numerics/quantile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS_MAX = 2000 };

static const double huber = 1.345, bisquare = 4.685, normal_quartile = 0.6745; /* as MASS has them */
static const double settled = 1e-12;                                           /* change of the residuals */
static const double rounding = 1e-15; /* of a residual, relative to y */

/* psi(u) / u. */
static double factor_of(enum robust_weight kind, double u) {
    if (kind == ROBUST_HUBER)
        return fabs(u) <= huber ? 1 : huber / fabs(u);
    double share = fmin(fabs(u) / bisquare, 1);
    return (1 - share * share) * (1 - share * share);
}

/* psi'(u). */
static double slope_of(enum robust_weight kind, double u) {
    if (kind == ROBUST_HUBER)
        return fabs(u) <= huber;
    double share = fmin(fabs(u) / bisquare, 1);
    return (1 - share * share) * (1 - 5 * share * share);
}

/* Work arrays, by row: residuals (u s), those of the step before, weights, their robust factors, and room for
 * a median. */
struct search {
    enum robust_weight kind;
    size_t rows, stride;
    const double *x, *y, *given;
    double *memory, *residuals, *before, *weights, *factors, *sizes;
    struct least_squares sums;
};

/* Allocates the work arrays; all factors are 1. -ENOMEM, -EINVAL. */
static int search_init(struct search *search, size_t columns) {
    size_t n = search->rows;
    search->memory = calloc(5 * n + 1, sizeof *search->memory);
    search->residuals = search->memory;
    search->before = search->memory + n;
    search->weights = search->memory + 2 * n;
    search->factors = search->memory + 3 * n;
    search->sizes = search->memory + 4 * n;
    for (size_t i = 0; search->memory && i < n; i++)
        search->factors[i] = 1;
    int code = least_squares_init(&search->sums, columns);
    return search->memory ? code : -ENOMEM;
}

static void search_clear(struct search *search) {
    free(search->memory);
    least_squares_clear(&search->sums);
}

/* Fits with the present factors, and computes the residuals. */
static int solve(struct search *search, const enum least_squares_role *roles, struct least_squares_fit *ret) {
    for (size_t i = 0; i < search->rows; i++)
        search->weights[i] = (search->given ? search->given[i] : 1) * search->factors[i];
    least_squares_fit_clear(ret);
    least_squares_reset(&search->sums);
    int code = least_squares_append(&search->sums, search->rows, search->x, search->stride, search->y,
                                    search->weights);
    if (code == 0)
        code = least_squares_solve(&search->sums, roles, ret);
    if (code < 0)
        return code;
    memcpy(search->before, search->residuals, search->rows * sizeof *search->before);
    least_squares_residuals(ret, search->rows, search->x, search->stride, search->y, search->residuals);
    for (size_t i = 0; search->given && i < search->rows; i++)
        search->residuals[i] *= sqrt(search->given[i]);
    return 0;
}

/* Huber's estimate of the factor of the covariance (P. Huber, Robust Statistics, 1981, 7.6). */
static void find_covariance(enum robust_weight kind, size_t rows, const double *residuals,
                            struct robust *ret) {
    double n = (double)rows, p = (double)ret->fit.rank, mean = 0, variance = 0, squares = 0;
    for (size_t i = 0; i < rows; i++) {
        double u = residuals[i] / ret->scale;
        mean += slope_of(kind, u) / n;
        squares += pow(residuals[i] * factor_of(kind, u), 2);
    }
    for (size_t i = 0; i < rows; i++)
        variance += pow(slope_of(kind, residuals[i] / ret->scale) - mean, 2) / (n - 1);
    double correction = 1 + p * variance / (n * mean * mean);
    ret->covariance = correction * correction / (mean * mean) * squares / (n - p);
}

/* Makes the result from the last fit, with the covariance of its estimated columns under the given weights.
 * RET_FACTORS may be NULL. */
static int finish(struct search *search, const struct least_squares_fit *last, double *ret_factors,
                  struct robust *ret) {
    size_t p = last->columns;
    cleanup_free enum least_squares_role *roles = calloc(p + 1, sizeof *roles);
    if (!roles)
        return -ENOMEM;
    for (size_t j = 0; j < p; j++)
        roles[j] = last->state[j] == LEAST_SQUARES_FREE ? LEAST_SQUARES_FREE : LEAST_SQUARES_LEFT_OUT;
    for (size_t i = 0; i < search->rows; i++) {
        ret->weighted_down += search->factors[i] < 0.5;
        if (ret_factors)
            ret_factors[i] = search->factors[i];
        search->factors[i] = 1;
    }
    int code = solve(search, roles, &ret->fit);
    if (code < 0)
        return code;
    memcpy(ret->fit.estimate, last->estimate, p * sizeof *last->estimate);
    memcpy(ret->fit.state, last->state, p * sizeof *last->state);
    ret->fit.dependent = last->dependent;
    memcpy(search->residuals, search->before,
           search->rows * sizeof *search->before); /* the residuals of the last estimates */
    ret->fit.rss = 0;
    for (size_t i = 0; i < search->rows; i++)
        ret->fit.rss += search->residuals[i] * search->residuals[i];
    if (ret->scale > 0)
        find_covariance(search->kind, search->rows, search->residuals, ret);
    return 0;
}

/* M-estimation by iteratively reweighted least squares (robust.h). -EAGAIN: not settled; -EDOM: more than
 * half of the residuals are 0; -EINVAL, -ENOMEM. */
int robust_fit(enum robust_weight kind, size_t rows, size_t columns, const double *x, size_t stride,
               const double *y, const double *weights, const enum least_squares_role *roles,
               double *ret_factors, struct robust *ret) {
    *ret = (struct robust){0};
    cleanup(least_squares_fit_clear) struct least_squares_fit last = {0};
    cleanup(search_clear) struct search search = {
        .kind = kind, .rows = rows, .stride = stride, .x = x, .y = y, .given = weights};
    int code = search_init(&search, columns), end = -EAGAIN;
    if (code == 0)
        code = solve(&search, roles, &last);
    if (code < 0)
        return code;
    if (search.sums.rows < rows || rows <= last.rank)
        return -EINVAL;
    double squares = search.sums.total + search.sums.weight * search.sums.mean * search.sums.mean;
    while (ret->iterations < ITERATIONS_MAX && end == -EAGAIN) {
        double change = 0, size = 0;
        for (size_t i = 0; i < rows; i++) {
            change += pow(search.residuals[i] - search.before[i], 2);
            size += search.before[i] * search.before[i];
            search.sizes[i] = fabs(search.residuals[i]);
        }
        ret->scale = quantile_median(search.sizes, rows) / normal_quartile;
        if (!(ret->scale > rounding * sqrt(squares / (double)rows))) {
            ret->scale = 0;
            end = -EDOM;
        } else if (ret->iterations > 0 && sqrt(change) < settled * sqrt(size) + rounding * sqrt(squares)) {
            end = 0;
        } else {
            for (size_t i = 0; i < rows; i++)
                search.factors[i] = factor_of(kind, search.residuals[i] / ret->scale);
            code = solve(&search, roles, &last);
            ret->iterations++;
        }
        if (code < 0)
            return code;
    }
    code = finish(&search, &last, ret_factors, ret);
    return code < 0 ? code : end;
}
