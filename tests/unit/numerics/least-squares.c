/* Least squares against certified answers (NIST, Longley), against all active sets tried one by one, and
 * where columns depend on each other. */
#include "engine/numerics/least-squares.h"
#include "engine/numerics/logarithm.h"

#include "tests/test.h"

enum { ROWS = 700, COLUMNS = 4 };

static double x[ROWS * 8], y[ROWS], weights[ROWS];

/* Sizes of a kernel: columns whose lengths differ by ten orders of magnitude. */
static void make_rows(void) {
    test_seed = 7;
    for (size_t i = 0; i < ROWS; i++) {
        double m = floor(1 + 9999 * test_random()), n = floor(1 + 9999 * test_random());
        x[i] = 1;
        x[i + ROWS] = m * n * 1000;
        x[i + 2 * ROWS] = m;
        x[i + 3 * ROWS] = n;
        weights[i] = (double)(i % 4);
        y[i] = 1e-4 + 1e-11 * x[i + ROWS] + 1e-7 * m + 1e-3 * test_normal();
    }
}

static struct least_squares_fit solve(size_t rows, size_t columns, const double *w,
                                      const enum least_squares_role *roles) {
    struct least_squares sums;
    struct least_squares_fit fit;
    assert_int_equal(least_squares_init(&sums, columns), 0);
    assert_int_equal(least_squares_append(&sums, rows, x, rows, y, w), 0);
    assert_int_equal(least_squares_solve(&sums, roles, &fit), 0);
    least_squares_clear(&sums);
    return fit;
}

/* www.itl.nist.gov/div898/strd: certified values of Longley's data. */
TEST(longley) {
    static const double data[16][7] = {
        {60323, 83, 234289, 2356, 1590, 107608, 1947},    {61122, 88.5, 259426, 2325, 1456, 108632, 1948},
        {60171, 88.2, 258054, 3682, 1616, 109773, 1949},  {61187, 89.5, 284599, 3351, 1650, 110929, 1950},
        {63221, 96.2, 328975, 2099, 3099, 112075, 1951},  {63639, 98.1, 346999, 1932, 3594, 113270, 1952},
        {64989, 99, 365385, 1870, 3547, 115094, 1953},    {63761, 100, 363112, 3578, 3350, 116219, 1954},
        {66019, 101.2, 397469, 2904, 3048, 117388, 1955}, {67857, 104.6, 419180, 2822, 2857, 118734, 1956},
        {68169, 108.4, 442769, 2936, 2798, 120445, 1957}, {66513, 110.8, 444546, 4681, 2637, 121950, 1958},
        {68655, 112.6, 482704, 3813, 2552, 123366, 1959}, {69564, 114.2, 502601, 3931, 2514, 125368, 1960},
        {69331, 115.7, 518173, 4806, 2572, 127852, 1961}, {70551, 116.9, 554894, 4007, 2827, 130081, 1962}};
    static const double estimates[] = {-3482258.63459582, 15.0618722713733,  -0.358191792925910E-01,
                                       -2.02022980381683, -1.03322686717359, -0.511041056535807E-01,
                                       1829.15146461355};
    static const double errors[] = {890420.383607373,  84.9149257747669,  0.334910077722432E-01,
                                    0.488399681651699, 0.214274163161675, 0.226073200069370,
                                    455.478499142212};
    for (size_t i = 0; i < 16; i++) {
        y[i] = data[i][0];
        x[i] = 1;
        for (size_t j = 1; j < 7; j++)
            x[i + 16 * j] = data[i][j];
    }
    cleanup(least_squares_clear) struct least_squares sums;
    cleanup(least_squares_fit_clear) struct least_squares_fit fit;
    assert_int_equal(least_squares_init(&sums, 7), 0);
    assert_int_equal(least_squares_append(&sums, 16, x, 16, y, NULL), 0);
    assert_int_equal(least_squares_solve(&sums, NULL, &fit), 0);
    double sigma = sqrt(fit.rss / 9), condition;
    assert_int_equal(fit.rank, 7);
    assert_int_equal(fit.dependent, 7);
    assert_close(sigma, 304.854073561965, 1e-11, "sigma");
    assert_close(1 - fit.rss / sums.total, 0.995479004577296, 1e-13, "R2");
    for (size_t j = 0; j < 7; j++) {
        assert_close(fit.estimate[j], estimates[j], 1e-9, "the estimate");
        assert_close(sigma * sqrt(fit.covariance[j + 7 * j]), errors[j], 1e-9, "the standard error");
    }
    assert_int_equal(least_squares_condition(&sums, &fit, &condition), 0);
    assert_close(condition, 43275.043, 1e-6, "the condition number (Belsley, Kuh, Welsch)");
}

/* Weights count like repeated rows; rows one by one like all rows at once. */
TEST(weights_and_blocks) {
    struct least_squares all, single, repeated;
    struct least_squares_fit fit, other;
    make_rows();
    assert_int_equal(least_squares_init(&all, COLUMNS), 0);
    assert_int_equal(least_squares_init(&single, COLUMNS), 0);
    assert_int_equal(least_squares_init(&repeated, COLUMNS), 0);
    assert_int_equal(least_squares_append(&all, ROWS, x, ROWS, y, weights), 0);
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(least_squares_append(&single, 1, x + i, ROWS, y + i, weights + i), 0);
        for (double copy = 0; copy < weights[i]; copy++)
            assert_int_equal(least_squares_append(&repeated, 1, x + i, ROWS, y + i, NULL), 0);
    }
    assert_int_equal(all.rows, ROWS - ROWS / 4);
    assert_int_equal(single.rows, all.rows);
    assert_int_equal(least_squares_solve(&all, NULL, &fit), 0);
    const struct least_squares *const same[] = {&single, &repeated};
    for (size_t s = 0; s < 2; s++) {
        assert_int_equal(least_squares_solve(same[s], NULL, &other), 0);
        assert_close(other.rss, fit.rss, 1e-12, "rss");
        assert_close(same[s]->weight, all.weight, 1e-14, "the weight");
        assert_close(same[s]->mean, all.mean, 1e-13, "the mean");
        assert_close(same[s]->total, all.total, 1e-13, "the total");
        for (size_t j = 0; j < COLUMNS; j++) {
            assert_close(other.estimate[j], fit.estimate[j], 1e-9, "the estimate");
            assert_close(other.covariance[j * 5], fit.covariance[j * 5], 1e-10, "the variance");
        }
        least_squares_fit_clear(&other);
    }
    assert_close(all.log_weights, ROWS / 4 * (log(2) + log(3)), 1e-13, "sum log w");
    least_squares_fit_clear(&fit);
    least_squares_reset(&all);
    assert_true(all.rows == 0 && all.weight == 0 && all.triangle[0] == 0);
    weights[3] = -1;
    assert_int_equal(least_squares_append(&all, ROWS, x, ROWS, y, weights), -EINVAL);
    least_squares_clear(&all);
    least_squares_clear(&single);
    least_squares_clear(&repeated);
}

/* By products: the same with half of the digits; a column that depends is found. */
TEST(products) {
    cleanup(least_squares_clear) struct least_squares sums;
    struct least_squares_fit fit, exact;
    make_rows();
    exact = solve(ROWS, COLUMNS, weights, NULL);
    assert_int_equal(least_squares_init(&sums, COLUMNS), 0);
    assert_int_equal(least_squares_append_products(&sums, 300, x, ROWS, y, weights), 0);
    assert_int_equal(least_squares_append_products(&sums, ROWS - 300, x + 300, ROWS, y + 300, weights + 300),
                     0);
    assert_int_equal(least_squares_solve(&sums, NULL, &fit), 0);
    for (size_t j = 0; j < COLUMNS; j++)
        assert_close(fit.estimate[j], exact.estimate[j], 1e-8, "estimate");
    assert_close(fit.rss, exact.rss, 1e-8, "rss");
    least_squares_fit_clear(&fit);
    least_squares_reset(&sums);
    for (size_t i = 0; i < ROWS; i++)
        x[i + 3 * ROWS] = 2 * x[i + 2 * ROWS];
    assert_int_equal(least_squares_append_products(&sums, ROWS, x, ROWS, y, NULL), 0);
    assert_int_equal(least_squares_solve(&sums, NULL, &fit), 0);
    assert_int_equal(fit.dependent, 3);
    least_squares_fit_clear(&fit);
    least_squares_fit_clear(&exact);
}

TEST(logarithms) {
    static double values[ROWS];
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        values[i] = i % 100 == 3 ? 0 : i == 650 ? 4e-320 : exp(300 * (test_random() - 0.5));
        sum += values[i] > 0 ? log(values[i]) : 0;
    }
    assert_close(logarithm_sum(values, ROWS), sum, 1e-12, "all");
    assert_close(logarithm_sum(values + 4, 90),
                 logarithm_sum(values, 94) - log(values[0]) - log(values[1]) - log(values[2]), 1e-12, "some");
    for (size_t i = 0; i < ROWS; i++)
        values[i] = 1e300;
    assert_close(logarithm_sum(values, 512), 512 * log(1e300), 1e-14, "large ones");
}

TEST(residuals_and_leverages) {
    static double residuals[ROWS], leverages[ROWS];
    make_rows();
    cleanup(least_squares_fit_clear) struct least_squares_fit fit = solve(ROWS, COLUMNS, weights, NULL);
    least_squares_residuals(&fit, ROWS, x, ROWS, y, residuals);
    least_squares_leverages(&fit, ROWS, x, ROWS, weights, leverages);
    double rss = 0, rank = 0;
    for (size_t i = 0; i < ROWS; i++) {
        rss += weights[i] * residuals[i] * residuals[i];
        rank += leverages[i];
        assert_true(leverages[i] >= 0 && leverages[i] <= 1);
    }
    assert_close(rss, fit.rss, 1e-12, "rss");
    assert_close(rank, COLUMNS, 1e-12, "the sum of leverages");
}

/* The first dependent column in the order of columns, as R's lm names it. */
TEST(dependent_columns) {
    make_rows();
    for (size_t i = 0; i < ROWS; i++) {
        x[i + 2 * ROWS] = 3e-9 * x[i + ROWS] + 5; /* of 1 and m n */
        x[i + 4 * ROWS] = 0;
        x[i + 5 * ROWS] = x[i + 3 * ROWS] * (1 + 1e-5 * (double)(i % 2)); /* nearly */
    }
    struct least_squares_fit fit = solve(ROWS, 6, NULL, NULL);
    assert_int_equal(fit.rank, 4);
    assert_int_equal(fit.dependent, 2);
    assert_int_equal(fit.state[2], LEAST_SQUARES_DEPENDENT);
    assert_int_equal(fit.state[4], LEAST_SQUARES_DEPENDENT);
    assert_int_equal(fit.state[5], LEAST_SQUARES_FREE);
    assert_true(fit.estimate[2] == 0 && fit.covariance[2 + 2 * 6] == 0 && fit.covariance[5 + 5 * 6] > 0);
    least_squares_fit_clear(&fit);
    const enum least_squares_role roles[] = {LEAST_SQUARES_FREE,     LEAST_SQUARES_LEFT_OUT,
                                             LEAST_SQUARES_FREE,     LEAST_SQUARES_LEFT_OUT,
                                             LEAST_SQUARES_LEFT_OUT, LEAST_SQUARES_LEFT_OUT};
    fit = solve(ROWS, 6, NULL, roles);
    assert_int_equal(fit.rank, 2);
    assert_int_equal(fit.dependent, 6);
    assert_int_equal(fit.state[1], LEAST_SQUARES_LEFT_OUT);
    least_squares_fit_clear(&fit);
    fit = solve(3, 4, NULL, NULL); /* fewer rows than columns */
    assert_true(fit.rank <= 3 && fit.dependent < 4);
    least_squares_fit_clear(&fit);
    fit = solve(0, 2, NULL, NULL);
    assert_true(fit.rank == 0 && fit.dependent == 0 && fit.rss == 0);
    least_squares_fit_clear(&fit);
}

/* The best of all sets of columns whose non-negative estimates are above 0. */
static double best_of_all(size_t rows, size_t columns, const enum least_squares_role *roles, double *ret) {
    double best = INFINITY;
    enum least_squares_role tried[8];
    for (size_t set = 0; set < (size_t)1 << columns; set++) {
        bool allowed = true;
        for (size_t j = 0; j < columns; j++) {
            tried[j] = set >> j & 1 ? LEAST_SQUARES_FREE : LEAST_SQUARES_LEFT_OUT;
            allowed &= roles[j] == LEAST_SQUARES_NONNEGATIVE || (set >> j & 1);
        }
        cleanup(least_squares_fit_clear) struct least_squares_fit fit = solve(rows, columns, NULL, tried);
        for (size_t j = 0; j < columns; j++)
            allowed &= roles[j] != LEAST_SQUARES_NONNEGATIVE || fit.estimate[j] >= 0;
        if (allowed && fit.rss < best) {
            best = fit.rss;
            memcpy(ret, fit.estimate, columns * sizeof *ret);
        }
    }
    return best;
}

TEST(bounds_by_exhaustive_search) {
    size_t bound = 0, inner = 0;
    double expected[8];
    test_seed = 3;
    for (size_t trial = 0; trial < 300; trial++) {
        enum { COUNT = 30 };
        size_t columns = 2 + trial % 5;
        enum least_squares_role roles[8];
        double scale = pow(10, (double)(trial % 7) - 3);
        for (size_t j = 0; j < columns; j++)
            roles[j] = test_random() < 0.8 ? LEAST_SQUARES_NONNEGATIVE : LEAST_SQUARES_FREE;
        for (size_t i = 0; i < COUNT; i++) {
            y[i] = test_normal();
            for (size_t j = 0; j < columns; j++) /* columns that resemble each other: sets change often */
                x[i + j * COUNT] = pow(scale, (double)j) * (test_random() + 0.3 * y[i] * (double)(j % 3));
        }
        double rss = best_of_all(COUNT, columns, roles, expected);
        cleanup(least_squares_fit_clear) struct least_squares_fit fit = solve(COUNT, columns, NULL, roles);
        assert_close(fit.rss, rss, 1e-11, "rss");
        for (size_t j = 0; j < columns; j++) {
            assert_close(fit.estimate[j], expected[j], 1e-7, "the estimate");
            bound += fit.state[j] == LEAST_SQUARES_BOUND;
            inner += fit.state[j] == LEAST_SQUARES_FREE;
            assert_true(fit.state[j] != LEAST_SQUARES_BOUND ||
                        (fit.estimate[j] == 0 && fit.covariance[j * (columns + 1)] == 0));
        }
        /* No gradient along a free column, and uphill along one at its bound. */
        double residuals[COUNT];
        least_squares_residuals(&fit, COUNT, x, COUNT, y, residuals);
        for (size_t j = 0; j < columns; j++) {
            double gradient = 0, size = 0;
            for (size_t i = 0; i < COUNT; i++) {
                gradient += x[i + j * COUNT] * residuals[i];
                size += fabs(x[i + j * COUNT] * residuals[i]);
            }
            assert_true(gradient <= 1e-10 * size &&
                        (fit.state[j] == LEAST_SQUARES_BOUND || gradient >= -1e-10 * size));
        }
    }
    assert_true(bound > 100 && inner > 100);
}

TEST(refusals) {
    cleanup(least_squares_clear) struct least_squares sums;
    cleanup(least_squares_fit_clear) struct least_squares_fit fit;
    assert_int_equal(least_squares_init(&sums, LEAST_SQUARES_COLUMNS_MAX + 1), -EINVAL);
    assert_int_equal(least_squares_init(&sums, 1), 0);
    const double huge[] = {1e200, 2e200}, one[] = {1, 1};
    assert_int_equal(least_squares_append(&sums, 2, huge, 2, one, NULL), 0);
    assert_int_equal(least_squares_solve(&sums, NULL, &fit), -ERANGE);
}
