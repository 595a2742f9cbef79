/* Distributions against tables, and densities against their integrals. */
#include "engine/numerics/distribution.h"

#include "tests/test.h"

TEST(tables) {
    assert_close(distribution_normal_upper(1.959963984540054), 0.025, 1e-13, "normal");
    assert_close(distribution_normal_upper(10), 7.619853024160527e-24, 1e-12, "normal, far");
    assert_close(distribution_student_two_sided(-2.228138851986274, 10), 0.05, 1e-12, "Student");
    assert_close(distribution_student_two_sided(1, 1), 0.5, 1e-14, "Cauchy");
    assert_close(distribution_f_upper(3.0983912121407773, 3, 20), 0.05, 1e-10, "F of 3");
    assert_close(distribution_f_upper(4.9646027437307145, 1, 10), 0.05, 1e-12, "F");
    assert_close(distribution_chi_squared_upper(7.4, 2), exp(-3.7), 1e-13, "chi-squared");
    assert_true(distribution_f_upper(-1, 2, 3) == 1 && distribution_chi_squared_upper(INFINITY, 3) == 0);
    assert_true(distribution_student_two_sided(INFINITY, 3) == 0);
}

TEST(undefined) {
    assert_true(isnan(distribution_f_upper(1, 0, 3)) && isnan(distribution_f_upper(1, 2, -1)));
    assert_true(isnan(distribution_chi_squared_upper(NAN, 1)) &&
                isnan(distribution_student_two_sided(1, NAN)));
    assert_true(isnan(distribution_normal_log_density(0, 0, 0)) &&
                isnan(distribution_half_normal_log_density(0, 0, -1)));
}

/* Total, mean and deviation of a density, by the trapezium rule. */
static void assert_moments(double (*log_density)(double x), double mean, double sigma) {
    double total = 0, first = 0, second = 0, step = sigma / 20000;
    for (double x = mean - 9 * sigma; x < mean + 9 * sigma; x += step) {
        double mass = exp(log_density(x)) * step;
        total += mass;
        first += mass * x;
        second += mass * (x - mean) * (x - mean);
    }
    assert_close(total, 1, 1e-4, "the total");
    assert_close(first, mean, 1e-4, "the mean");
    assert_close(sqrt(second), sigma, 1e-4, "the deviation");
}

static double half_normal(double x) {
    return distribution_half_normal_log_density(x, 3, 0.5);
}

TEST(densities) {
    assert_moments(half_normal, 3, 0.5);
    assert_true(distribution_half_normal_log_density(-100, 3, 0.5) == -INFINITY);
}

static double log_likelihood(const double *residuals, size_t count, double sigma) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += distribution_half_normal_log_density(residuals[i], 0, sigma);
    return sum;
}

/* The factor gives the greatest likelihood, where the support binds and where it does not. */
TEST(half_normal_factor) {
    const double both[][4] = {{-1, -1, 0, 2}, {-0.3, -0.4, -0.2, 0.9}};
    for (size_t t = 0; t < 2; t++) {
        double sum = 0, squares = 0, least = 0;
        for (size_t i = 0; i < 4; i++) {
            sum += both[t][i];
            squares += both[t][i] * both[t][i];
            least = fmin(least, both[t][i]);
        }
        double best = distribution_half_normal_factor(4, sum, squares, least);
        double value = log_likelihood(both[t], 4, best * (1 + 1e-12));
        assert_true(isfinite(value));
        assert_true(log_likelihood(both[t], 4, best * 1.001) < value &&
                    log_likelihood(both[t], 4, best * 0.999) < value);
    }
    assert_close(distribution_half_normal_factor(4, 0, 6, -1), sqrt(M_PI / 2) * sqrt(1 - 2 / M_PI), 1e-14,
                 "at the support");
    assert_true(isnan(distribution_half_normal_factor(0, 0, 0, 0)));
}
