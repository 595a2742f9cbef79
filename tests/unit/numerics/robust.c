/* Robust fits against plain steps in long double, and where most rows are on a line; against R in
 * unit/fit/linear.c. */
#include "engine/numerics/robust.h"

#include "tests/test.h"

enum { ROWS = 501, TERMS = 3 };

static double x[ROWS * 4], y[ROWS], weights[ROWS], factors[ROWS];

/* Like times of a kernel: rows of large sizes scatter more, and some are far too slow. */
static void make_rows(void) {
    test_seed = 5;
    for (size_t i = 0; i < ROWS; i++) {
        double m = 1 + 99 * test_random() * test_random(), n = 1 + 99 * test_random();
        double noise = test_random() + test_random() + test_random() - 1.5;
        weights[i] = 1 + (double)(i % 3);
        x[i] = 1;
        x[i + ROWS] = m * n;
        x[i + 2 * ROWS] = m;
        y[i] = (2 + 3e-3 * m * n + 0.1 * m + noise * 1e-3 * m) * (i % 23 == 0 ? 1 + test_random() : 1);
    }
}

/* Weighted least squares in long double. */
static void solve(const long double *w, long double b[TERMS]) {
    long double a[TERMS][TERMS + 1] = {{0}};
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < TERMS; j++)
            for (size_t k = 0; k <= TERMS; k++)
                a[j][k] += w[i] * x[i + j * ROWS] * (k < TERMS ? x[i + k * ROWS] : y[i]);
    for (size_t j = 0; j < TERMS; j++)
        for (size_t k = 0; k < TERMS; k++) {
            long double factor = k == j ? 0 : a[k][j] / a[j][j];
            for (size_t c = 0; c <= TERMS; c++)
                a[k][c] -= factor * a[j][c];
        }
    for (size_t j = 0; j < TERMS; j++)
        b[j] = a[j][TERMS] / a[j][j];
}

static int compare(const void *a, const void *b) {
    long double left = *(const long double *)a, right = *(const long double *)b;
    return (left > right) - (left < right);
}

static long double weight_of(enum robust_weight kind, long double u) {
    u = fabsl(u);
    if (kind == ROBUST_HUBER)
        return u <= 1.345L ? 1 : 1.345L / u;
    long double share = u < 4.685L ? u / 4.685L : 1;
    return (1 - share * share) * (1 - share * share);
}

static void plain(enum robust_weight kind, const double *given, long double b[TERMS],
                  long double *ret_scale) {
    static long double w[ROWS], residuals[ROWS], sizes[ROWS];
    long double before[TERMS], moved = 1;
    for (size_t i = 0; i < ROWS; i++)
        w[i] = given ? given[i] : 1;
    solve(w, b);
    for (int step = 0; step < 5000 && moved > 1e-15L; step++) {
        for (size_t i = 0; i < ROWS; i++) {
            residuals[i] = y[i];
            for (size_t j = 0; j < TERMS; j++)
                residuals[i] -= b[j] * x[i + j * ROWS];
            residuals[i] *= given ? sqrtl(given[i]) : 1;
            sizes[i] = fabsl(residuals[i]);
        }
        qsort(sizes, ROWS, sizeof *sizes, compare);
        *ret_scale = sizes[ROWS / 2] / 0.6745L;
        for (size_t i = 0; i < ROWS; i++)
            w[i] = (given ? given[i] : 1) * weight_of(kind, residuals[i] / *ret_scale);
        memcpy(before, b, sizeof before);
        solve(w, b);
        moved = 0;
        for (size_t j = 0; j < TERMS; j++)
            moved = fmaxl(moved, fabsl(b[j] / before[j] - 1));
    }
}

TEST(as_plain_steps) {
    make_rows();
    for (size_t trial = 0; trial < 4; trial++) {
        enum robust_weight kind = trial % 2 ? ROBUST_BISQUARE : ROBUST_HUBER;
        const double *given = trial > 1 ? weights : NULL;
        long double b[TERMS], scale = 0;
        plain(kind, given, b, &scale);
        struct robust robust;
        assert_int_equal(robust_fit(kind, ROWS, TERMS, x, ROWS, y, given, NULL, factors, &robust), 0);
        for (size_t j = 0; j < TERMS; j++)
            assert_close(robust.fit.estimate[j], (double)b[j], 1e-9, "the estimate");
        assert_close(robust.scale, (double)scale, 1e-9, "the scale");
        assert_true(robust.weighted_down > 10 && robust.covariance > 0);
        size_t below = 0; /* half of their weight */
        for (size_t i = 0; i < ROWS; i++)
            below += factors[i] < 0.5;
        assert_int_equal(below, robust.weighted_down);
        least_squares_fit_clear(&robust.fit);
    }
}

/* More than half of the rows are on a line: that is the fit, whatever the others. */
TEST(on_the_line) {
    make_rows();
    for (size_t i = 0; i < ROWS; i++)
        y[i] = i % 3 == 0 ? 1e3 * test_random() : 7 + x[i + 2 * ROWS];
    struct robust robust;
    assert_int_equal(robust_fit(ROBUST_BISQUARE, ROWS, TERMS, x, ROWS, y, NULL, NULL, NULL, &robust), -EDOM);
    assert_close(robust.fit.estimate[0], 7, 1e-9, "the intercept");
    assert_close(robust.fit.estimate[2], 1, 1e-9, "the slope");
    assert_true(robust.scale == 0);
    least_squares_fit_clear(&robust.fit);
    weights[1] = 0;
    assert_int_equal(robust_fit(ROBUST_HUBER, ROWS, TERMS, x, ROWS, y, weights, NULL, NULL, &robust),
                     -EINVAL);
    least_squares_fit_clear(&robust.fit);
}

/* Bounds hold, and a column at its bound has no covariance. */
TEST(bounds) {
    make_rows();
    for (size_t i = 0; i < ROWS; i++)
        y[i] -= 0.3 * x[i + 2 * ROWS];
    const enum least_squares_role roles[] = {LEAST_SQUARES_FREE, LEAST_SQUARES_FREE,
                                             LEAST_SQUARES_NONNEGATIVE};
    struct robust robust;
    assert_int_equal(robust_fit(ROBUST_HUBER, ROWS, TERMS, x, ROWS, y, NULL, roles, NULL, &robust), 0);
    assert_true(robust.fit.estimate[2] == 0 && robust.fit.state[2] == LEAST_SQUARES_BOUND);
    assert_true(robust.fit.covariance[8] == 0 && robust.fit.covariance[0] > 0);
    least_squares_fit_clear(&robust.fit);
}
