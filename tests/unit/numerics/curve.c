/* Nonlinear least squares: certified answers (NIST), and what cannot be fitted. Those of real transfers are
 * in unit/fit/transfer.c. */
#include "engine/numerics/curve.h"

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
