/* The heteroscedastic normal: bounds, the likelihood itself, and many groups. */
#include "engine/numerics/noise.h"

#include "tests/test.h"

enum { ROWS = 4000 };

static double x[ROWS * 3], y[ROWS], weights[ROWS];

static struct noise_problem problem_of(size_t rows, size_t columns) {
    return (struct noise_problem){.rows = rows, .columns = columns, .x = x, .stride = ROWS, .y = y};
}

/* The level with the larger x scatters less: the deviation may not fall, so it is constant, and the mean
 * least squares. */
TEST(bound) {
    const double rows[] = {1, 9, -7, 4, 20, 21, 20.5, 20.2};
    double rss = 0;
    for (size_t i = 0; i < 8; i++) {
        x[i] = 1;
        x[i + ROWS] = i >= 4;
        y[i] = rows[i];
        rss += pow(rows[i] - (i >= 4 ? 20.425 : 1.75), 2);
    }
    const struct noise_problem problem = problem_of(8, 2);
    cleanup(noise_clear) struct noise noise;
    assert_int_equal(noise_fit(&problem, &noise), 0);
    assert_true(noise.coefficients[1] == 0);
    assert_close(noise.constant, sqrt(rss / 8), 1e-7, "the constant");
    assert_close(noise.mean.estimate[0], 1.75, 1e-9, "the mean");
}

static void make_rows(double scale, bool weighted) {
    test_seed = 11;
    for (size_t i = 0; i < ROWS; i++) {
        double m = floor(1 + 999 * pow(test_random(), 3)), n = floor(1 + 99 * test_random());
        weights[i] = weighted ? 1 + (double)(i % 3) : 1;
        x[i] = 1;
        x[i + ROWS] = scale * m * n;
        x[i + 2 * ROWS] = -m;
        y[i] = scale * (0.5 + 0.01 * m * n + 0.2 * m +
                        (1e-3 + 1e-4 * m * n + 2e-3 * m) * test_normal() / sqrt(weights[i]));
    }
}

static double log_likelihood(const struct noise *noise, const double *b, const double *c) {
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double sigma = (c[0] + c[1] * x[i + ROWS] + c[2] * x[i + 2 * ROWS]) / sqrt(weights[i]);
        double t = (y[i] - b[0] - b[1] * x[i + ROWS] - b[2] * x[i + 2 * ROWS]) / sigma;
        sum -= 0.5 * log(2 * M_PI) + log(sigma) + t * t / 2;
    }
    return sum;
}

/* No step makes it more likely, and the truth is near; also of a column below 0, in other units and with
 * weights. */
TEST(maximum) {
    for (size_t variant = 0; variant < 3; variant++) {
        double scale = variant == 1 ? 1e-9 : 1;
        make_rows(scale, variant == 2);
        struct noise_problem problem = problem_of(ROWS, 3);
        problem.weights = variant == 2 ? weights : NULL;
        cleanup(noise_clear) struct noise noise;
        assert_int_equal(noise_fit(&problem, &noise), 0);
        double b[3], c[3];
        for (size_t j = 0; j < 3; j++) {
            b[j] = noise.mean.estimate[j];
            c[j] = j ? noise.coefficients[j] : noise.constant;
        }
        double best = log_likelihood(&noise, b, c);
        assert_close(noise.log_likelihood, best, 1e-10, "log likelihood");
        for (size_t j = 0; j < 6; j++)
            for (double way = -1e-4; way < 2e-4; way += 2e-4) {
                double *moved = j < 3 ? &b[j] : &c[j - 3], before = *moved;
                *moved *= 1 + way;
                assert_true(log_likelihood(&noise, b, c) < best);
                *moved = before;
            }
        assert_close(c[1], 1e-4, 0.05, "the part of m n");
        assert_close(c[2], -2e-3 * scale, 0.3, "the part of m");
        assert_close(b[1], 0.01, 0.01, "the slope");
        assert_true(noise.steps < 40);
    }
}

/* Means with bounds, and columns without a part in the deviation. */
TEST(roles) {
    make_rows(1, false);
    const enum least_squares_role roles[] = {LEAST_SQUARES_FREE, LEAST_SQUARES_NONNEGATIVE,
                                             LEAST_SQUARES_NONNEGATIVE};
    const bool scatters[] = {true, true, false};
    struct noise_problem problem = problem_of(ROWS, 3);
    problem.roles = roles;
    problem.scatters = scatters;
    cleanup(noise_clear) struct noise noise;
    assert_int_equal(noise_fit(&problem, &noise), 0);
    assert_true(noise.mean.estimate[2] == 0 &&
                noise.mean.state[2] == LEAST_SQUARES_BOUND); /* of -m: 0.2 m is against it */
    assert_true(noise.coefficients[2] == 0 && noise.coefficients[1] > 0);
}

/* Rows on their mean: the deviation goes to its floor, and no further. */
TEST(rows_on_the_mean) {
    test_seed = 4;
    for (size_t i = 0; i < 200; i++) {
        x[i] = 1;
        x[i + ROWS] = i % 2;
        y[i] = i % 2 ? 3 + test_normal() : 1;
    }
    const struct noise_problem problem = problem_of(200, 2);
    cleanup(noise_clear) struct noise noise;
    assert_int_equal(noise_fit(&problem, &noise), 0);
    assert_true(noise.constant > 0 && noise.constant < 1e-8);
    assert_close(noise.mean.estimate[0], 1, 1e-9, "the mean");
}

TEST(nothing_scatters) {
    for (size_t i = 0; i < 20; i++) {
        x[i] = 1;
        x[i + ROWS] = (double)i;
        y[i] = 1 + 0.1 * (double)i;
    }
    struct noise_problem problem = problem_of(20, 2);
    struct noise noise;
    assert_int_equal(noise_fit(&problem, &noise), -EDOM);
    noise_clear(&noise);
    y[1] = 5;
    problem.rows = 2;
    assert_int_equal(noise_fit(&problem, &noise), -EDOM);
    noise_clear(&noise);
}
