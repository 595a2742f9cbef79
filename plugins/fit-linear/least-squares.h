/*
 * Ordinary or weighted least squares from the sums of sums.h, in double-double from the first sum to the
 * last digit: centred normal equations, LDL' (Cholesky without square roots), no pivoting.
 *
 * With 32 digits the squaring of the condition number, which ruins normal equations in 16, costs nothing
 * that a double could show: a design whose scaled columns have the condition number 1e8 still leaves 16.
 *
 * Conventions are those of R's lm (R 4, stats): see plugins/fit-linear/README.md for every formula.
 */
#ifndef ASSAY_FIT_LINEAR_LEAST_SQUARES_H
#define ASSAY_FIT_LINEAR_LEAST_SQUARES_H

#include "plugins/fit-linear/sums.h"

#include <stdint.h>

enum { LEAST_SQUARES_REASON_SIZE = 640 };

enum least_squares_outcome {
    LEAST_SQUARES_FITTED,
    LEAST_SQUARES_SKIPPED, /* the reason says why */
};

/* What one group gives. Values that are not defined are NaN. */
struct least_squares {
    uint64_t rows;
    size_t term_count, fitted_terms; /* the first with the dropped ones, whose estimates are 0 */
    struct fit_estimate estimates[EXPANSION_TERMS_MAX];
    double covariance[EXPANSION_TERMS_MAX * EXPANSION_TERMS_MAX]; /* term_count * term_count are used */
    bool has_covariance;
    double degrees, rss, total, sigma, r2, adjusted_r2, log_likelihood, aic, bic, condition;
    /* total: the response's sum of squares, about its mean when there is an intercept */
    double variance_inflation; /* the greatest; 1: no term can be told from the others */
    size_t inflated_term;      /* whose it is */
    bool saturated;            /* as many rows as terms */
    bool perfect;              /* nothing but rounding is left unexplained */
    bool constant_response;
};

struct least_squares_workspace; /* for the eigenvalues */

struct least_squares_workspace *least_squares_workspace_new(size_t terms); /* NULL when out of memory */
void least_squares_workspace_free(struct least_squares_workspace *workspace);

/* Fits the columns of SUMS that are KEPT (NULL: all; the constant stays when there is an intercept) into
 * *RET. REASON is filled when it is skipped. */
enum least_squares_outcome least_squares_fit(const struct sums *sums, const bool *kept,
                                             struct least_squares_workspace *workspace,
                                             struct least_squares *ret,
                                             char reason[static LEAST_SQUARES_REASON_SIZE]);

/* What the last fit, which must have been fitted from SUMS, leaves of a row, whose columns ROW has, unscaled:
 * its residual, and its leverage for a weight of 1. By forward substitution, which keeps the digits that a
 * product with the inverse loses. */
void least_squares_row(const struct least_squares_workspace *workspace, const struct sums *sums,
                       const double *row, double *ret_residual, double *ret_leverage);
/* Likewise its residual, and into RET its place in coordinates in which the fitted columns are orthonormal
 * over the rows of the fit (by their weights; the squares add up to the leverage). Returns how many. */
size_t least_squares_coordinates(const struct least_squares_workspace *workspace, const struct sums *sums,
                                 const double *row, double *ret, double *ret_residual);

#endif
