#include "engine/numerics/cholesky.h"

#include "engine/foundation/cleanup.h"
#include "engine/numerics/gsl.h"

#include <errno.h>
#include <gsl/gsl_eigen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The lower triangle L of A = L L'. -EDOM: A is not positive definite. */
int cholesky_factor(size_t n, const double *a, double *ret) {
    for (size_t j = 0; j < n; j++) {
        double diagonal = a[j + j * n];
        for (size_t k = 0; k < j; k++)
            diagonal -= ret[j + k * n] * ret[j + k * n];
        if (!(diagonal > 0) || isinf(diagonal))
            return -EDOM;
        double root = sqrt(diagonal);
        for (size_t i = 0; i < n; i++) {
            double sum = i < j ? 0 : a[i + j * n];
            for (size_t k = 0; i > j && k < j; k++)
                sum -= ret[i + k * n] * ret[j + k * n];
            ret[i + j * n] = i > j ? sum / root : i == j ? root : 0;
        }
    }
    return 0;
}

void cholesky_forward(size_t n, const double *factor, double *b) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            b[i] -= factor[i + k * n] * b[k];
        b[i] /= factor[i + i * n];
    }
}

double cholesky_log_determinant(size_t n, const double *factor) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += 2 * log(factor[i + i * n]);
    return sum;
}

double cholesky_mahalanobis(size_t n, const double *factor, const double *b, double *scratch) {
    double sum = 0;
    memcpy(scratch, b, n * sizeof *b);
    cholesky_forward(n, factor, scratch);
    for (size_t i = 0; i < n; i++)
        sum += scratch[i] * scratch[i];
    return sum;
}

static void free_workspace(gsl_eigen_symmv_workspace **workspace) {
    if (*workspace)
        gsl_eigen_symmv_free(*workspace);
}

/* Eigenvalues, ascending, and, unless VECTORS is NULL, eigenvectors of a symmetric matrix. -EDOM: not finite;
 * -ENOMEM. */
int cholesky_eigen(size_t n, const double *a, double *values, double *vectors) {
    if (n == 0)
        return 0;
    for (size_t i = 0; i < n * n; i++)
        if (!isfinite(a[i]))
            return -EDOM;
    cleanup_free double *scratch = malloc(2 * n * n * sizeof *scratch);
    cleanup(free_workspace) gsl_eigen_symmv_workspace *workspace = gsl_eigen_symmv_alloc(n);
    if (!scratch || !workspace)
        return -ENOMEM;
    memcpy(scratch, a, n * n * sizeof *a);
    gsl_matrix_view matrix = gsl_matrix_view_array(scratch, n, n);
    gsl_matrix_view found = gsl_matrix_view_array(scratch + n * n, n, n);
    gsl_vector_view value = gsl_vector_view_array(values, n);
    if (gsl_eigen_symmv(&matrix.matrix, &value.vector, &found.matrix, workspace) ||
        gsl_eigen_symmv_sort(&value.vector, &found.matrix, GSL_EIGEN_SORT_VAL_ASC))
        return -EDOM;
    for (size_t i = 0; vectors && i < n; i++) /* GSL has rows where we have columns */
        for (size_t j = 0; j < n; j++)
            vectors[i + j * n] = gsl_matrix_get(&found.matrix, i, j);
    return 0;
}

/* The lower triangle L of a covariance A = L L' that may be singular. -EDOM: A is not symmetric, or has a
 * negative eigenvalue beyond rounding. */
int cholesky_factor_semidefinite(size_t n, const double *a, double *ret) {
    static const double rounding = 1e-6; /* of elements that should be the same */
    static const double lift = 1e-8; /* of the correlations' eigenvalues, which rounding may leave below 0 */
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++) {
            double value = a[i + j * n], scale = sqrt(a[i + i * n]) * sqrt(a[j + j * n]);
            if (!isfinite(value) || isnan(scale) || (scale == 0 && value != 0) ||
                !(fabs(value - a[j + i * n]) <= rounding * scale))
                return -EDOM;
            ret[i + j * n] = i == j ? 1 + lift : scale > 0 ? value / scale : 0;
        }
    int code = cholesky_factor(n, ret, ret);
    for (size_t j = 0; code == 0 && j < n; j++)
        for (size_t i = 0; i < n; i++)
            ret[i + j * n] *= sqrt(a[i + i * n]);
    return code;
}
