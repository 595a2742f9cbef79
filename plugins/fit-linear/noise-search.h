/*
 * The greatest likelihood of a mean and a standard deviation that are linear in the same columns (N-2):
 *
 *     y_i ~ normal(z_i b, z_i c / v_i) ,  c >= 0
 *
 * A column that is never negative can only raise the standard deviation, so it is positive on all rows, and
 * wherever the columns are not negative; the constant stays above NOISE_FLOOR of the least squares' sigma,
 * lest one row that is met exactly makes the likelihood infinite. Mean and spread are found together: two
 * regressions of |residual| first, then Newton steps on all (Fisher's where the likelihood is not convex),
 * each with a quadratic program for the bounds, halved until the likelihood grows.
 * Few rows have several maxima: then the steps begin at a constant standard deviation too, and at one along
 * each column, and the highest counts. A maximum that is a spike, where one row is met exactly, is not
 * sought.
 */
#ifndef ASSAY_FIT_LINEAR_NOISE_SEARCH_H
#define ASSAY_FIT_LINEAR_NOISE_SEARCH_H

#include "plugins/fit-linear/noise-design.h"

#define NOISE_FLOOR 0x1p-30

/* In the design's scales. */
struct noise_point {
    double b[SUMS_COLUMNS_MAX], c[SUMS_COLUMNS_MAX];
    double objective; /* -log L without constants, noise-kernel.h */
    bool converged;
    unsigned steps;
};

struct noise_search;

int noise_search_new(struct noise_search **ret);
void noise_search_free(struct noise_search *search);

/* The maximum over all rows of the design. 0 or -ENOMEM. */
int noise_search_run(struct noise_search *search, struct noise_design *design, struct noise_point *ret);
/* How many of the point's c are not at their bound. */
size_t noise_search_free_count(const struct noise_search *search, const struct noise_point *point);
/* The covariance of b at the maximum of what was run last: WIDTH * WIDTH of the design, zero in row and
 * column 0 without an intercept. False when it is not defined. */
bool noise_search_covariance(struct noise_search *search, const struct noise_point *maximum, double *ret);

/* Cross-validation: calls EACH with every fold that has rows, and what all other rows give: one Newton step
 * from the maximum that was run last; where that step is long, a search of its own. 0 or -ENOMEM. */
typedef void (*noise_search_function)(void *context, uint32_t fold, const struct noise_point *point);
int noise_search_leave_out(struct noise_search *search, const struct noise_point *maximum,
                           noise_search_function each, void *context);

/* Least squares on the rows of FOLDS: b, and c[0] the root of rss / (rows - terms); not converged where that
 * is not positive. 0 or -ENOMEM. */
int noise_search_least_squares(struct noise_search *search, struct noise_design *design, uint32_t folds,
                               struct noise_point *ret);

#endif
