/*
 * Robust linear fits: M-estimates by iterated weighted least squares from the plain fit on, as rlm of R's
 * MASS (W. Venables, B. Ripley, Modern Applied Statistics with S, 2002, 6.5) with its constants, until the
 * residuals change by less than 1e-12 of their length.
 *
 *     u = sqrt(w) r / s , s = median |sqrt(w) r| / 0.6745
 *     Huber: weight min(1, 1.345 / |u|)        bisquare: (1 - min(1, |u| / 4.685)^2)^2
 *
 * Bisquare gives no weight to what is far away and can settle on one of several fits: one near the plain one.
 */
#ifndef ASSAY_NUMERICS_ROBUST_H
#define ASSAY_NUMERICS_ROBUST_H

#include "engine/numerics/least-squares.h"

enum robust_weight { ROBUST_HUBER, ROBUST_BISQUARE };

struct robust {
    struct least_squares_fit fit; /* rss and covariance are those of the weights as given */
    double scale;                 /* s */
    double covariance; /* the estimates' covariance is this times fit.covariance, (X'WX)^-1, as summary.rlm
                        * has it: (1 + p v / (n m^2))^2 / m^2 x sum (psi(u) s)^2 / (n - p), m and v the mean
                        * and variance of psi'(u) */
    size_t iterations;
    size_t weighted_down; /* rows with less than half of their weight */
};

/* X is column-major: value (i, j) is x[i + j * STRIDE]; WEIGHTS above 0, or NULL; ROLES as in
 * least-squares.h. The factors of the rows' weights go to RET_FACTORS (ROWS of them) unless that is NULL.
 * -ENOMEM, -EINVAL; -EDOM where more than half of the rows are on the fit (then s is 0: RET has that fit);
 * -EAGAIN after 2,000 iterations, with the last fit. The caller clears RET.fit, also after an error. */
int robust_fit(enum robust_weight kind, size_t rows, size_t columns, const double *x, size_t stride,
               const double *y, const double *weights, const enum least_squares_role *roles,
               double *ret_factors, struct robust *ret);

#endif
