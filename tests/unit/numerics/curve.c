/* t0 + b s by three criteria: the least sum of squares against a dense search, and the boundaries. Real
 * transfers are in unit/fit/transfer.c. */
#include "engine/numerics/curve.h"

#include "tests/test.h"

enum { ROWS_MAX = 40 };
static double sizes[ROWS_MAX], durations[ROWS_MAX], weights[ROWS_MAX];

static struct curve find(enum curve_criterion criterion, size_t rows) {
    const struct curve_problem problem = {criterion, rows, sizes, durations, weights};
    struct curve ret;
    assert_int_equal(curve_find(&problem, &ret), 0);
    return ret;
}

/* The sum along the half size HALF, INFINITY for b = 0. */
static double sum_along(enum curve_criterion criterion, size_t rows, double half) {
    double products = 0, squares = 0, rss = 0;
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < rows; i++) {
            double g = isinf(half) ? 1 : sizes[i] + half, x = criterion == CURVE_LOG ? 1 : sizes[i] / g;
            double u = criterion == CURVE_LOG ? log(durations[i] / g) : sizes[i] / durations[i];
            if (round == 0)
                products += weights[i] * x * u, squares += weights[i] * x * x;
            else
                rss += weights[i] * pow(u - products / squares * x, 2);
        }
    return rss;
}

static void make_rows(size_t rows, double noise) {
    for (size_t i = 0; i < rows; i++) {
        sizes[i] = floor(pow(10, 9 * test_random())) + 1;
        durations[i] = (2e-6 + sizes[i] / 1e9) * exp(noise * test_normal());
        weights[i] = 1 + (double)(i % 3);
    }
}

static void assert_least(enum curve_criterion criterion, size_t rows, const char *what) {
    struct curve found = find(criterion, rows);
    double least = fmin(sum_along(criterion, rows, 0), sum_along(criterion, rows, INFINITY));
    for (double half = 1e-3; half < 1e13; half *= 1.02)
        least = fmin(least, sum_along(criterion, rows, half));
    assert_true(found.latency >= 0 && found.inverse >= 0 && found.latency + found.inverse > 0);
    if (!(found.rss <= least * (1 + 1e-12) + 1e-25))
        fail_msg("%s: %.17g, but there is %.17g", what, found.rss, least);
}

/* Few rows with noise of 5 to 200 %, where there are several minima. */
TEST(always_the_least) {
    static const double noises[] = {0.05, 0.3, 0.6, 1, 2};
    for (unsigned seed = 0; seed < 40; seed++)
        for (enum curve_criterion criterion = CURVE_BANDWIDTH; criterion <= CURVE_LOG; criterion++) {
            test_seed = seed + 1;
            make_rows(2 + seed % 12, noises[seed % 5]);
            assert_least(criterion, 2 + seed % 12, "noisy rows");
        }
}

TEST(boundaries) {
    for (enum curve_criterion criterion = CURVE_TIME; criterion <= CURVE_LOG; criterion++)
        for (size_t kind = 0; kind < 3; kind++) { /* constant; in proportion to the size; falling */
            for (size_t i = 0; i < 10; i++) {
                sizes[i] = 1 + (double)i;
                durations[i] = kind == 0 ? 3 : kind == 1 ? sizes[i] / 8 : 20 - sizes[i];
                weights[i] = 1;
            }
            struct curve found = find(criterion, 10);
            if (kind < 2)
                assert_true(found.rss < 1e-25);
            if (kind == 1)
                assert_close(found.inverse, 0.125, 1e-13, "b");
            assert_true(criterion == CURVE_TIME ? kind != 2 || found.inverse < 0
                        : kind == 1             ? fabs(found.latency) < 1e-15
                                                : found.inverse < 1e-15);
        }
}

/* A size of 0 takes t0, however much less that is than the other durations. */
TEST(size_of_zero) {
    for (size_t i = 0; i < 8; i++) {
        sizes[i] = i < 2 ? 0 : 1e6 * pow(10, (double)i / 2);
        durations[i] = (1e-9 + sizes[i] * 1e-9) * (1 + 0.1 * sin((double)i));
        weights[i] = 1;
    }
    struct curve found = find(CURVE_LOG, 8);
    assert_close(found.latency, 1e-9 * sqrt(1 + 0.1 * sin(1)), 1e-6, "t0");
}
