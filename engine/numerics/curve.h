/*
 * Nonlinear least squares in a few parameters: a minimum of sum_i r_i(p)^2 near a start, by Levenberg's and
 * Marquardt's method (D. Marquardt, J. SIAM 11 (1963), 431) with orthogonal transformations, until a step is
 * below 1e-14 of the parameters or nothing but rounding. Weights and the response's transformation are part
 * of r.
 */
#ifndef ASSAY_NUMERICS_CURVE_H
#define ASSAY_NUMERICS_CURVE_H

#include <stddef.h>

enum { CURVE_PARAMETERS_MAX = 8 };

/* The residual of ROW, and its derivatives by the parameters P to GRADIENT. A residual that is not finite
 * says that P is outside of what is allowed. */
typedef double curve_residual(const void *context, const double *p, size_t row, double *gradient);

struct curve {
    double estimate[CURVE_PARAMETERS_MAX];
    double covariance[CURVE_PARAMETERS_MAX *
                      CURVE_PARAMETERS_MAX]; /* (J'J)^-1, PARAMETERS x PARAMETERS, column-major, to
                                              * be multiplied by rss / (rows - parameters) */
    double rss;
    size_t steps;
};

/* -ENOMEM, -EINVAL (as many parameters, or a start that is not allowed); -EDOM where the derivatives depend
 * on each other, so that the rows do not tell the parameters apart; -EAGAIN after 1,000 steps. */
int curve_fit(size_t rows, size_t parameters, curve_residual *residual, const void *context,
              const double *start, struct curve *ret);

#endif
