/*
 * Weighted linear least squares: minimum over b of sum_i w_i (y_i - x_i b)^2, by orthogonal transformations,
 * so that the condition number of X is not squared (G. Golub, C. Van Loan, Matrix Computations, 4th ed.
 * 2013, 5.3; A. Bjorck, Numerical Methods for Least Squares Problems, 1996).
 *
 *     struct least_squares sums;
 *     least_squares_init(&sums, 5)                                    for 5 columns
 *     least_squares_append(&sums, rows, x, rows, y, NULL)             as often as there are blocks of rows
 *     least_squares_solve(&sums, roles, &fit)                         estimates, rank, covariance
 *
 * Rows are folded into the upper triangle R of the QR factorisation of sqrt(W) [X y]: a column more than X
 * has, no memory that grows with the rows. There is no intercept but a column of ones. Values may have any
 * size whose square is a normal double: 1e-150 to 1e150.
 *
 * All functions return 0, or -ENOMEM, -EINVAL (the arguments are wrong) or what they say. They never print.
 */
#ifndef ASSAY_NUMERICS_LEAST_SQUARES_H
#define ASSAY_NUMERICS_LEAST_SQUARES_H

#include <stdbool.h>
#include <stddef.h>

enum { LEAST_SQUARES_COLUMNS_MAX = 255 };

/* What has been appended. Read the sums; leave the rest to the functions. */
struct least_squares {
    size_t columns;     /* p */
    size_t rows;        /* of weight above 0 */
    double weight;      /* sum w */
    double log_weights; /* sum log w */
    double mean, total; /* of y: sum w y / sum w; sum w (y - mean)^2 */
    double *triangle;   /* (p + 1) x (p + 1), column-major: R of [X y] */
    double *block;      /* rows on their way into the triangle */
};

int least_squares_init(struct least_squares *ret, size_t columns);
/* Forgets the rows. */
void least_squares_reset(struct least_squares *sums);
void least_squares_clear(struct least_squares *sums);

/* X is ROWS x columns, column-major: value (i, j) is x[i + j * STRIDE]. WEIGHTS may be NULL: all are 1. Rows
 * of weight 0 are left out. -EINVAL for a weight below 0 or not finite; then some of the rows may have been
 * appended. */
int least_squares_append(struct least_squares *sums, size_t rows, const double *x, size_t stride,
                         const double *y, const double *weights);

/* The same by sums of products, in about half of the time: the condition number is squared, and log_weights
 * stays as it is. For the steps of a search. */
int least_squares_append_products(struct least_squares *sums, size_t rows, const double *x, size_t stride,
                                  const double *y, const double *weights);

/* What is asked of a column, and what came of it. */
enum least_squares_role {
    LEAST_SQUARES_FREE,        /* estimated */
    LEAST_SQUARES_NONNEGATIVE, /* estimated, at least 0 */
    LEAST_SQUARES_LEFT_OUT,    /* as if it were not there */
    LEAST_SQUARES_BOUND,       /* in a result: non-negative, and 0 */
    LEAST_SQUARES_DEPENDENT,   /* in a result: a linear combination of estimated columns before it; 0 */
};

struct least_squares_fit {
    size_t columns;                 /* p */
    size_t rank;                    /* columns whose state is FREE */
    size_t dependent;               /* the first dependent column; p where there is none */
    enum least_squares_role *state; /* p: FREE, LEFT_OUT, BOUND or DEPENDENT */
    double *estimate;               /* p; 0 where the state is not FREE */
    double *inverse; /* p x p, column-major: (X'WX)^-1 of the free columns is inverse inverse'; else 0 */
    double *
        covariance; /* p x p, symmetric: (X'WX)^-1 of the free columns, to be multiplied by sigma^2; else 0 */
    double rss;     /* sum w (y - x b)^2 */
};

/* Estimates the columns of ROLES (p of them; NULL: all are free). As in R's lm, a column is dependent where
 * what the columns before it leave of it is at most 1e-7 of its length. Non-negative estimates are the
 * constrained minimum (active sets: C. Lawson, R. Hanson, Solving Least Squares Problems, 1974, chapter 23);
 * their covariance is that of the columns which are not at their bound. -ERANGE where a sum or an estimate is
 * beyond the range of a double; -EAGAIN where the active sets do not settle. The caller clears RET, also
 * after an error. */
int least_squares_solve(const struct least_squares *sums, const enum least_squares_role *roles,
                        struct least_squares_fit *ret);
void least_squares_fit_clear(struct least_squares_fit *fit);

/* y - x b of ROWS rows. Their sum of squares has more digits than rss where the fit is nearly exact. */
void least_squares_residuals(const struct least_squares_fit *fit, size_t rows, const double *x, size_t stride,
                             const double *y, double *ret);

/* w x' (X'WX)^-1 x of ROWS rows, between 0 and 1 for rows that were appended. */
void least_squares_leverages(const struct least_squares_fit *fit, size_t rows, const double *x, size_t stride,
                             const double *weights, double *ret);

/* The 2-norm condition number of the free columns, each scaled to length 1 (D. Belsley, E. Kuh, R. Welsch,
 * Regression Diagnostics, 1980, 3.2). */
int least_squares_condition(const struct least_squares *sums, const struct least_squares_fit *fit,
                            double *ret);

#endif
