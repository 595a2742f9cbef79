/* What errors on rows left out add up to, and how likely noise makes them. */
#include "engine/plugin/held-out.h"
#include "engine/plugin/noise-density.h"
#include "engine/plugin/normal-quantile.h"
#include "tests/test.h"

static void near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("%.17g; expected %.17g", value, expected);
}

/* R: qnorm(c(0.5, 0.975, 0.9, 0.001, 1e-10)); and back by the error function. */
TEST(quantiles) {
    assert_true(normal_quantile(0.5) == 0);
    near(normal_quantile(0.975), 1.9599639845400545, 1e-15);
    near(normal_quantile(0.9), 1.2815515655446004, 1e-15);
    near(normal_quantile(0.001), -3.0902323061678132, 1e-15);
    near(normal_quantile(1e-10), -6.3613409024040557, 1e-15);
    for (double p = 1e-300; p < 0.5; p *= 10)
        near(log(0.5 * erfc(-normal_quantile(p) / sqrt(2))), log(p), 1e-13);
    for (double p = 0.01; p < 0.5; p += 0.01)
        near(normal_quantile(p), -normal_quantile(1 - p), 1e-13);
}

/* The first three moments of a density, by the rectangle rule over what is not negligible. */
static void moments(const struct plugin_noise *noise, double mean, double sigma, double *ret) {
    const double step = 1e-4;
    ret[0] = ret[1] = ret[2] = 0;
    for (double x = -30; x < 30; x += step) {
        double density = exp(noise_log_density(noise, mean, sigma, x)) * step;
        ret[0] += density;
        ret[1] += density * x;
        ret[2] += density * x * x;
    }
    ret[2] = sqrt(ret[2] - ret[1] * ret[1]);
}

TEST(densities) {
    double found[3];
    struct plugin_noise noise = {.size = sizeof noise, .kind = "N-1", .distribution = "normal"};
    near(noise_log_density(&noise, 1, 2, 4), -0.5 * 2.25 - log(2) - 0.5 * log(2 * M_PI), 1e-15);
    moments(&noise, 0.7, 1.3, found);
    near(found[0], 1, 1e-9), near(found[1], 0.7, 1e-9), near(found[2], 1.3, 1e-9);
    noise.distribution = "half-normal";
    moments(&noise, 0.7, 1.3, found);
    near(found[0], 1, 1e-3), near(found[1], 0.7, 1e-3), near(found[2], 1.3, 1e-3);
    assert_true(noise_log_density(&noise, 0.7, 1.3, -2) == -INFINITY); /* below its edge */
    assert_true(noise_log_density(&noise, 0.7, 1.3, 0.7) < noise_log_density(&noise, 0.7, 1.3, -0.9));
    const struct plugin_component components[] = {{0.25, -1, 0.5}, {0.75, 2, 0.25}};
    noise.kind = "mixture";
    noise.distribution = "normal";
    noise.components = components;
    noise.component_count = 2;
    moments(&noise, 3, NAN, found);
    near(found[0], 1, 1e-9), near(found[1], 3 - 0.25 + 1.5, 1e-9);
    near(found[2], sqrt(0.25 * (0.25 + 1) + 0.75 * (0.0625 + 4) - 1.25 * 1.25), 1e-9);
    assert_true(isfinite(noise_log_density(&noise, 0, NAN, 1e3))); /* far out, where densities underflow */
    assert_true(isnan(noise_log_density(NULL, 0, 1, 0)));
    const struct plugin_noise none = {.size = sizeof none, .kind = "N-1", .distribution = "normal"};
    assert_true(noise_log_density(&none, 0, 0, 1) == -INFINITY &&
                noise_log_density(&none, 1, 0, 1) == INFINITY);
}

/* Errors 1, -2, 3, -4 of the responses 10, 20, 30, 40. */
TEST(errors) {
    const struct plugin_noise noise = {.size = sizeof noise, .kind = "N-1", .distribution = "normal"};
    struct held_out all = {0}, halves[2] = {{0}, {0}};
    double scores = 0;
    for (int i = 1; i <= 4; i++) {
        double error = i % 2 ? i : -i;
        const struct row_value value = {10.0 * i, 1, 10.0 * i - error, 2, &noise, NULL};
        held_out_add(&halves[i % 2], &value);
        scores += noise_log_density(&noise, 0, 2, error);
    }
    held_out_join(&all, &halves[0]);
    held_out_join(&all, &halves[1]);
    near(held_out_rmse(&all), sqrt(7.5), 1e-15);
    near(held_out_relative(&all), sqrt(7.5) / 25, 1e-15);
    near(held_out_score(&all), scores / 4, 1e-14);
    /* Squares 1, 4, 9, 16: variance 43, so that of their mean 43 / 4. */
    near(held_out_rmse_error(&all), sqrt(43.0 / 4) / (2 * sqrt(7.5)), 1e-14);
    all.missing = 1; /* an error over the easier rows would flatter */
    assert_true(isnan(held_out_rmse(&all)) && isnan(held_out_score(&all)));
    struct held_out none = {0};
    assert_true(isnan(held_out_rmse(&none)) && isnan(held_out_relative(&none)));
    const struct row_value silent = {1, 1, 0, NAN, NULL, NULL};
    held_out_add(&none, &silent);
    assert_true(held_out_rmse(&none) == 1 && isnan(held_out_score(&none)));
}
