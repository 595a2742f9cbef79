/* Nonlinear least squares: certified answers (NIST; and 40-digit arithmetic of real transfers,
 * data/README.md, skipped, aloud, where that is not), and what cannot be fitted. */
#include "engine/numerics/curve.h"

#include "engine/numerics/least-squares.h"
#include "tests/test.h"

enum { ROWS_MAX = 300 };

struct rows {
    size_t count;
    double x[ROWS_MAX], y[ROWS_MAX];
    bool log;
};
static struct rows rows;

/* y = b1 (1 - exp(-b2 x)). */
static double saturation(const void *context, const double *p, size_t row, double *gradient) {
    const struct rows *r = context;
    double fall = exp(-p[1] * r->x[row]);
    gradient[0] = 1 - fall;
    gradient[1] = p[0] * r->x[row] * fall;
    return p[0] * (1 - fall) - r->y[row];
}

/* Misra1a of NIST's nonlinear data sets: certified from both of its starts. */
TEST(misra) {
    static const double y[] = {10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02,
                               44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78};
    static const double x[] = {77.6,  114.9, 141.1, 190.8, 239.9, 289.0, 332.8,
                               378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0};
    static const double starts[2][2] = {{500, 0.0001}, {250, 0.0005}};
    rows.count = 14;
    memcpy(rows.x, x, sizeof x);
    memcpy(rows.y, y, sizeof y);
    for (size_t s = 0; s < 2; s++) {
        struct curve curve;
        assert_int_equal(curve_fit(14, 2, saturation, &rows, starts[s], &curve), 0);
        assert_close(curve.estimate[0], 2.3894212918E+02, 1e-10, "b1");
        assert_close(curve.estimate[1], 5.5015643181E-04, 1e-10, "b2");
        assert_close(curve.rss, 1.2455138894E-01, 1e-10, "rss");
        assert_close(sqrt(curve.rss / 12 * curve.covariance[0]), 2.7070075241E+00, 1e-9,
                     "the standard error of b1");
        assert_close(sqrt(curve.rss / 12 * curve.covariance[3]), 7.2668688436E-06, 1e-9,
                     "the standard error of b2");
    }
}

/* T = t0 + s b, by the bandwidth s/T or by log T. */
static double transfer(const void *context, const double *p, size_t row, double *gradient) {
    const struct rows *r = context;
    double s = r->x[row], time = p[0] + s * p[1], slope = r->log ? -1 / time : s / (time * time);
    gradient[0] = slope;
    gradient[1] = slope * s;
    if (!(time > 0))
        return NAN;
    return r->log ? log(r->y[row]) - log(time) : s / r->y[row] - s / time;
}

static void read_rows(const char *dataset) {
    char path[8192], text[1024], experiment[32], cluster[32], wanted[128];
    snprintf(path, sizeof path, "%s/mpi/dahu_gros.csv", test_data());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    rows.count = 0;
    while (fscanf(file, "%31[^,],%31[^,],%lf,%lf\n", experiment, cluster, &rows.x[rows.count],
                  &rows.y[rows.count]) == 4) {
        snprintf(wanted, sizeof wanted, "pycewise_data:%s/%s", cluster, experiment);
        rows.count += strcmp(wanted, dataset) == 0;
    }
    fclose(file);
}

/* The linear problem whose residuals are the same to first order. */
static void find_start(double start[2]) {
    struct least_squares sums;
    struct least_squares_fit fit;
    assert_int_equal(least_squares_init(&sums, 2), 0);
    for (size_t i = 0; i < rows.count; i++) {
        double x[2] = {1, rows.x[i]}, root = rows.log ? 1 / rows.y[i] : rows.x[i] / (rows.y[i] * rows.y[i]),
               w = root * root;
        assert_int_equal(least_squares_append(&sums, 1, x, 1, &rows.y[i], &w), 0);
    }
    assert_int_equal(least_squares_solve(&sums, NULL, &fit), 0);
    memcpy(start, fit.estimate, 2 * sizeof *start);
    least_squares_fit_clear(&fit);
    least_squares_clear(&sums);
}

TEST(transfers) {
    char path[8192], text[1024], dataset[128];
    double n, expected[4], start[2];
    size_t compared = 0;
    if (!test_data())
        skip();
    snprintf(path, sizeof path, "%s/mpi/transfer_certified.csv", test_data());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    while (fgets(text, sizeof text, file)) {
        assert_int_equal(sscanf(text, "%127[^,],%*[^,],%lf,%lf,%lf,%lf,%lf", dataset, &n, &expected[0],
                                &expected[1], &expected[2], &expected[3]),
                         6);
        rows.log = strstr(text, "log T") != NULL;
        read_rows(dataset);
        assert_true((double)rows.count == n);
        find_start(start);
        struct curve curve;
        assert_int_equal(curve_fit(rows.count, 2, transfer, &rows, start, &curve), 0);
        assert_close(curve.estimate[0], expected[0], 1e-12, dataset);
        assert_close(curve.estimate[1], expected[1], 1e-12, dataset);
        assert_close(curve.rss, expected[3], 1e-12, dataset);
        compared++;
    }
    fclose(file);
    assert_int_equal(compared, 12);
}

TEST(refusals) {
    struct curve curve;
    const double start[2] = {1, 1}, outside[2] = {-1, 0};
    rows.count = 5;
    rows.log = true;
    for (size_t i = 0; i < 5; i++) {
        rows.x[i] = 64;
        rows.y[i] = 1 + (double)i;
    }
    assert_int_equal(curve_fit(5, 2, transfer, &rows, outside, &curve), -EINVAL);
    assert_int_equal(curve_fit(1, 2, transfer, &rows, start, &curve), -EINVAL);
    assert_int_equal(curve_fit(5, 2, transfer, &rows, start, &curve),
                     -EDOM); /* one size does not tell the two apart */
}
