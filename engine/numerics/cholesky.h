/*
 * Small symmetric matrices, n x n and column-major: A = L L' (G. Golub, C. Van Loan, Matrix
 * Computations, 4.2), what follows from the factor L, and eigenvalues (GSL).
 */
#ifndef ASSAY_NUMERICS_CHOLESKY_H
#define ASSAY_NUMERICS_CHOLESKY_H

#include <stddef.h>

/* L to RET, zeros above the diagonal; of A only the lower triangle is read. RET may be A. -EDOM where A is
 * not positive definite. */
int cholesky_factor(size_t n, const double *a, double *ret);

/* The same of a covariance A, whose eigenvalues may be 0, or below it by rounding: those of its correlations
 * are raised by 1e-8. RET is not A. -EDOM where A is not symmetric or not positive semidefinite. */
int cholesky_factor_semidefinite(size_t n, const double *a, double *ret);

/* L^-1 b, in place: its length is the Mahalanobis distance of b. */
void cholesky_forward(size_t n, const double *factor, double *b);
/* log det A. */
double cholesky_log_determinant(size_t n, const double *factor);
/* b' A^-1 b; SCRATCH has n numbers. */
double cholesky_mahalanobis(size_t n, const double *factor, const double *b, double *scratch);

/* Eigenvalues in ascending order to VALUES; the eigenvectors to the columns of VECTORS unless that is NULL.
 * -ENOMEM, -EDOM (values that are not finite). */
int cholesky_eigen(size_t n, const double *a, double *values, double *vectors);

#endif
