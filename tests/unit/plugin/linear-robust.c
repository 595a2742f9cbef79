/* fit-linear's robust fits of many rows whose scatter differs by orders of magnitude, against plain iterated
 * weighting in long double: the same fit, in fewer steps. Linked to the plugin's own sources. */
#include "plugins/fit-linear/linear.h"
#include "tests/test.h"
#include "tests/unit/plugin/fit-host.h"

enum { ROWS = 901, TERMS = 3, PLAIN_MAX = 5000 };

extern const struct assay_plugin assay_plugin;
static struct host_result result;
static double m[ROWS], n[ROWS], weights[ROWS], responses[ROWS];
/* Like times of a kernel: rows of large sizes scatter more, and some are far too slow. */
static void make_rows(void) {
    test_seed = 5;
    for (size_t i = 0; i < ROWS; i++) {
        m[i] = 1 + 99 * test_random() * test_random();
        n[i] = 1 + 99 * test_random();
        double noise = test_random() + test_random() + test_random() - 1.5;
        weights[i] = 1 + (double)(i % 3);
        responses[i] = 2 + 3e-3 * m[i] * n[i] + 0.1 * m[i] + noise * 1e-3 * m[i];
        if (i % 23 == 0)
            responses[i] *= 1 + test_random();
    }
}

static void fill(size_t i, long double x[TERMS]) {
    x[0] = 1;
    x[1] = (long double)m[i] * n[i];
    x[2] = m[i];
}

/* Weighted least squares; b. */
static void solve(const long double *w, long double b[TERMS]) {
    long double a[TERMS][TERMS + 1] = {{0}}, x[TERMS];
    for (size_t i = 0; i < ROWS; i++) {
        fill(i, x);
        for (size_t j = 0; j < TERMS; j++) {
            for (size_t k = 0; k < TERMS; k++)
                a[j][k] += w[i] * x[j] * x[k];
            a[j][TERMS] += w[i] * x[j] * (long double)responses[i];
        }
    }
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
    long double x = *(const long double *)a, y = *(const long double *)b;
    return x < y ? -1 : x > y;
}

static long double weight_of(enum robust robust, long double u) {
    u = fabsl(u);
    if (robust == ROBUST_HUBER)
        return u <= 1.345L ? 1 : 1.345L / u;
    long double share = u < 4.685L ? u / 4.685L : 1;
    return (1 - share * share) * (1 - share * share);
}

/* Returns how many steps it took. */
static int plain(enum robust robust, bool weighted, long double b[TERMS], long double *ret_scale) {
    static long double w[ROWS], residuals[ROWS], magnitudes[ROWS];
    long double x[TERMS], before[TERMS];
    for (size_t i = 0; i < ROWS; i++)
        w[i] = weighted ? weights[i] : 1;
    solve(w, b);
    for (int step = 1; step < PLAIN_MAX; step++) {
        long double moved = 0;
        for (size_t i = 0; i < ROWS; i++) {
            fill(i, x);
            residuals[i] = responses[i];
            for (size_t j = 0; j < TERMS; j++)
                residuals[i] -= b[j] * x[j];
            residuals[i] *= weighted ? sqrtl(weights[i]) : 1;
            magnitudes[i] = fabsl(residuals[i]);
        }
        qsort(magnitudes, ROWS, sizeof *magnitudes, compare);
        *ret_scale = magnitudes[ROWS / 2] / 0.6745L;
        for (size_t i = 0; i < ROWS; i++)
            w[i] = (weighted ? weights[i] : 1) * weight_of(robust, residuals[i] / *ret_scale);
        memcpy(before, b, sizeof before);
        solve(w, b);
        for (size_t j = 0; j < TERMS; j++)
            moved = fmaxl(moved, fabsl(b[j] / before[j] - 1));
        if (moved < 1e-14L)
            return step;
    }
    fail();
    return 0;
}

static void same_fit(enum robust robust, bool weighted) {
    const struct host_table table = {.names = {"m", "n", "w", "y"},
                                     .columns = {m, n, weights, responses},
                                     .column_count = 4,
                                     .rows = ROWS,
                                     .response = "y",
                                     .weights = weighted ? "w" : NULL,
                                     .terms = "1+m*n+m",
                                     .settings = {"robust", "folds"},
                                     .values = {robust, 3},
                                     .setting_count = 2,
                                     .seed = 1};
    long double b[TERMS], scale;
    int steps = plain(robust, weighted, b, &scale);
    host_fit(assay_plugin.operations, &table, &result);
    const struct host_group *group = &result.groups[0];
    assert_true(result.code >= 0 && group->fitted);
    for (size_t j = 0; j < TERMS; j++)
        assert_true(fabs((double)(group->estimates[j].estimate / b[j] - 1)) < 1e-9);
    assert_true(fabs((double)(host_value(group, "sigma") / scale - 1)) < 1e-9);
    assert_true(host_value(group, "robust_iterations") < steps);
    assert_null(strstr(group->notes, "not converged"));
    assert_true(host_value(group, "rows_weighted_down") > 0 && host_value(group, "cv_rmse") > 0);
}

TEST(as_plain_steps) {
    make_rows();
    for (int weighted = 0; weighted < 2; weighted++) {
        same_fit(ROBUST_HUBER, weighted);
        same_fit(ROBUST_BISQUARE, weighted);
    }
}

/* More than half of the rows are on a line: that is the fit, whatever the others. */
TEST(on_the_line) {
    make_rows();
    for (size_t i = 0; i < ROWS; i++)
        responses[i] = i % 3 == 0 ? 1e3 * test_random() : 7 + m[i];
    const struct host_table table = {.names = {"m", "y"},
                                     .columns = {m, responses},
                                     .column_count = 2,
                                     .rows = ROWS,
                                     .response = "y",
                                     .terms = "1+m",
                                     .settings = {"robust", "folds"},
                                     .values = {ROBUST_BISQUARE, 0},
                                     .setting_count = 2};
    host_fit(assay_plugin.operations, &table, &result);
    assert_true(fabs(result.groups[0].estimates[0].estimate - 7) < 1e-9);
    assert_true(fabs(result.groups[0].estimates[1].estimate - 1) < 1e-9);
}
