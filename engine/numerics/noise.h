/*
 * Means and scatter together: y_i normal with mean x_i b and deviation s_i = (c_0 + sum_j c_j x_ij) /
 * sqrt(w_i), where no term lowers the deviation: c_j x_ij >= 0 in every row (T. Cornebize, thesis, Grenoble
 * 2021, chapter 4: N-2). b and c are those of greatest likelihood, found in turn: b by weighted least
 * squares, c by a step of Fisher's scoring, which is least squares with bounds of s + (u^2/s - s)/2 on x with
 * weights 1/s^2, u = sqrt(w) (y - x b), and is shortened until the likelihood rises (M. Davidian, R. Carroll,
 * J. Amer. Statist. Assoc. 82 (1987), 1079).
 *
 * Without a column in the mean (all are LEFT_OUT, and `scatters` says which have a part in the deviation), u
 * is sqrt(w) y, and the step is Newton's where the likelihood is convex.
 *
 * A column that is constant, or has both signs, has no part in the deviation. c_0 is at least 2^-30 of the
 * deviation that least squares leaves, for a row on its mean would make the likelihood infinite.
 */
#ifndef ASSAY_NUMERICS_NOISE_H
#define ASSAY_NUMERICS_NOISE_H

#include "engine/numerics/least-squares.h"

struct noise_problem {
    size_t rows, columns;
    const double *x; /* column-major: value (i, j) is x[i + j * stride] */
    size_t stride;
    const double *y;
    const double *weights;                /* NULL: all are 1; above 0 */
    const enum least_squares_role *roles; /* of the mean; NULL: all are free */
    const bool *scatters; /* which columns may have a part in the deviation; NULL: all but the left out */
    bool rough; /* one start, and deviations to about 1e-3 of themselves: enough to compare likelihoods */
};

struct noise {
    double constant;      /* c_0, in the unit of y */
    double *coefficients; /* c_j of each column; 0 where it has no part */
    double log_likelihood;
    size_t steps;
    struct least_squares_fit mean; /* b; its covariance is that of the estimates: (sum x'x / s^2)^-1 */
};

/* 0, -ENOMEM, -EINVAL; -EDOM where nothing scatters: no more rows than estimates, or no residuals but
 * rounding; -EAGAIN after 200 steps. With up to 40 rows a column, where the likelihood may have several
 * maxima, the highest of those that are reached from a constant deviation, one in proportion to each column,
 * and a regression of the residuals' size. The caller clears RET, also after an error. */
int noise_fit(const struct noise_problem *problem, struct noise *ret);
void noise_clear(struct noise *noise);

#endif
