/*
 * A straight line y = intercept + slope x through points by ordinary least squares, from sums in
 * double-double: what an exact computation would give, rounded once. Conventions are those of R's lm.
 */
#ifndef ASSAY_NUMERICS_STRAIGHT_LINE_H
#define ASSAY_NUMERICS_STRAIGHT_LINE_H

#include "plugins/numerics/double-double.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sums over the points seen so far; all zero to begin with. */
struct straight_line_sums {
    uint64_t count;
    struct dd x, y, xx, xy, yy;
    double x_minimum, x_maximum;
};

/* Values that are not defined are NaN. */
struct straight_line {
    uint64_t count;
    double intercept, slope;
    double intercept_error, slope_error; /* standard errors; NaN with fewer than 3 points */
    double covariance;                   /* of intercept and slope */
    double rss, sigma, r2, log_likelihood, aic, bic;
};

void straight_line_add(struct straight_line_sums *sums, double x, double y);

/* False when there are fewer than 2 different x, or when a sum is beyond the range of a double. */
bool straight_line_fit(const struct straight_line_sums *sums, struct straight_line *ret);

#endif
