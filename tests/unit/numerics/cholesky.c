/* Small symmetric matrices against products and known eigenvalues. */
#include "engine/numerics/cholesky.h"

#include "tests/test.h"

TEST(factor_and_distance) {
    enum { N = 6 };
    double rows[N * N], a[N * N] = {0}, factor[N * N], x[N], b[N] = {0}, scratch[N], values[N];
    test_seed = 2;
    for (size_t i = 0; i < N * N; i++)
        rows[i] = test_random() * pow(10, (double)(i % N) - 3);
    for (size_t i = 0; i < N * N * N; i++)
        a[i / N] += rows[i % N * N + i / N % N] * rows[i % N * N + i / N / N];
    assert_int_equal(cholesky_factor(N, a, factor), 0);
    for (size_t i = 0; i < N; i++) {
        x[i] = test_random();
        for (size_t j = 0; j < N; j++) {
            double square = 0;
            for (size_t k = 0; k < N; k++)
                square += factor[i + k * N] * factor[j + k * N];
            assert_close(square, a[i + j * N], 1e-13, "L L'");
            assert_true(i >= j || factor[i + j * N] == 0);
        }
    }
    double distance = 0; /* of b = A x it is x' A x */
    for (size_t i = 0; i < N * N; i++)
        b[i % N] += a[i] * x[i / N];
    for (size_t i = 0; i < N; i++)
        distance += b[i] * x[i];
    assert_close(cholesky_mahalanobis(N, factor, b, scratch), distance, 1e-9, "the distance");
    double logarithm = 0;
    assert_int_equal(cholesky_eigen(N, a, values, NULL), 0);
    for (size_t i = 0; i < N; i++)
        logarithm += log(values[i]);
    assert_close(cholesky_log_determinant(N, factor), logarithm, 1e-6, "log det");
    a[0] = -1;
    assert_int_equal(cholesky_factor(N, a, a), -EDOM);
}

TEST(eigenvectors) {
    const double a[] = {2, 1, 1, 2}, infinite[] = {INFINITY};
    double values[2], vectors[4];
    assert_int_equal(cholesky_eigen(2, a, values, vectors), 0);
    assert_close(values[0], 1, 1e-14, "the least");
    assert_close(values[1], 3, 1e-14, "the greatest");
    assert_close(vectors[2] / vectors[3], 1, 1e-14, "its vector");
    assert_close(vectors[0] / vectors[1], -1, 1e-14, "the other vector");
    assert_int_equal(cholesky_eigen(1, infinite, values, NULL), -EDOM);
}

TEST(semidefinite) {
    const double singular[] = {1e-20, 1e-10, 1e-10, 1}, negative[] = {1, 1.1, 1.1, 1}, zero[] = {0, 0, 0, 5},
                 impossible[] = {0, 1e-9, 1e-9, 5}, below[] = {-1}, lopsided[] = {1, 0.5, 0.4, 1};
    double factor[4];
    assert_int_equal(cholesky_factor_semidefinite(2, singular, factor), 0);
    assert_close(factor[1] * factor[1] + factor[3] * factor[3], 1, 1e-7, "the second variance");
    assert_close(factor[0] * factor[1], 1e-10, 1e-7, "the covariance");
    assert_int_equal(cholesky_factor_semidefinite(2, zero, factor), 0);
    assert_true(factor[0] == 0 && factor[1] == 0);
    assert_int_equal(cholesky_factor_semidefinite(2, negative, factor), -EDOM);
    assert_int_equal(cholesky_factor_semidefinite(2, impossible, factor), -EDOM);
    assert_int_equal(cholesky_factor_semidefinite(1, below, factor), -EDOM);
    assert_int_equal(cholesky_factor_semidefinite(2, lopsided, factor), -EDOM);
}
