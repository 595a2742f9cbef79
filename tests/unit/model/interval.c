/* Intervals of the mean and of one measurement: against quantiles of R 4.2 (qt, qnorm), and draws of a model.
 */
#include "engine/model/interval.h"
#include "engine/model/model.h"
#include "engine/numerics/random.h"
#include "tests/test.h"

#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers" /* models of literals */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { DRAWS = 4000 };

static struct model_factor factor = {"x", 1, NULL, NULL};
static struct model_term terms[] = {{"1", NULL, NULL, 0}, {"x", NULL, &factor, 1}};
static struct model_estimate estimates[] = {{.estimate = 10}, {.estimate = 2}};
static double covariance[] = {4, 0, 0, 1}, low[] = {4, 0, 0, 0}, coefficients[] = {0, 2};
static struct model_part part;
static struct model_group group = {.name = "all", .rows = 9, .parts = &part, .part_count = 1};
static struct model model = {.file = "m.json",
                             .kind = "linear",
                             .response = "y",
                             .terms = terms,
                             .term_count = 2,
                             .groups = &group,
                             .group_count = 1};
static double of_mean[2], of_measurement[2];

static struct uncertainty find(double x, struct model_noise noise, double freedom) {
    cleanup(evaluator_cleanup) struct evaluator *evaluator = NULL;
    struct evaluator_value value;
    part = (struct model_part){.kind = "whole",
                               .from = -INFINITY,
                               .to = INFINITY,
                               .estimates = estimates,
                               .covariance = covariance,
                               .freedom = freedom,
                               .noise = noise};
    assert_ok(evaluator_new(&model, &evaluator, &test_failure));
    assert_int_equal(evaluator_predict(evaluator, &group, &x, &value), 0);
    struct uncertainty ret = uncertainty_find(evaluator, &group, &x, &value, 1);
    interval_of_mean(&ret, of_mean);
    interval_of_measurement(&ret, of_measurement);
    return ret;
}

static const struct model_noise normal = {.kind = MODEL_NOISE_HOMOSCEDASTIC, .constant = 3};

TEST(student) {
    struct uncertainty at = find(0, normal, 5); /* the error is 2 */
    assert_close(of_mean[1], 2 * 2.570581835636314, 1e-9, "t of 5");
    assert_true(of_mean[0] == -of_mean[1] && of_measurement[0] == -of_measurement[1]);
    assert_close(of_measurement[1], sqrt(13) * 2.570581835636314, 1e-9, "t of 5");
    assert_close(interval_share(&at, of_measurement[1]), 0.975, 1e-9, "share");
    find(0, normal, 0);
    assert_close(of_mean[1], 2 * 1.959963984540054, 1e-9, "normal where degrees are not known");
}

/* Where the mean, and its part of sigma, is below 0 sigma is that of the floor. */
TEST(sigma_is_at_least_the_floor) {
    struct model_noise noise = {
        .kind = MODEL_NOISE_HETEROSCEDASTIC, .constant = 1, .coefficients = coefficients};
    assert_true(isnan(find(-3, noise, 5).sigma));
    noise.floor = (struct model_noise_floor){.sigma = 1, .freedom = 3, .covariance = low};
    assert_true(find(-3, noise, 5).sigma == 1 && find(1, noise, 5).sigma == 3);
}

/* At x = 0 the error is the floor's alone, far off the other's; between them Satterthwaite's. */
TEST(floor_has_degrees_of_its_own) {
    const struct model_noise noise = {.kind = MODEL_NOISE_HETEROSCEDASTIC,
                                      .constant = 3,
                                      .coefficients = coefficients,
                                      .floor = {.sigma = 3, .freedom = 4, .covariance = low}};
    struct uncertainty at = find(0, noise, 50);
    assert_true(at.error_freedom == 4 && at.freedom == 4);
    at = find(2, noise, 50); /* variances 4 and 4 */
    assert_close(at.error_freedom, 64 / (16 / 4. + 16 / 50.), 1e-12, "degrees of freedom");
    assert_close(of_mean[1] / sqrt(8), 2.570581835636314, 0.2, "t");
    at = find(1e6, noise, 50);
    assert_close(at.error_freedom, 50, 1e-3, "degrees of freedom");
}

/* Without an error of the mean the quantiles are those of the noise; with one they are further out. */
TEST(other_noise) {
    struct model_noise half = {.kind = MODEL_NOISE_HOMOSCEDASTIC, .constant = 3, .half_normal = true};
    double s = 3 / sqrt(1 - 2 / M_PI), edge = s * sqrt(2 / M_PI);
    covariance[0] = 0;
    find(0, half, 5);
    assert_close(of_measurement[0], s * 0.03133798202142 - edge, 1e-6, "lower");
    assert_close(of_measurement[1], s * 2.241402727604945 - edge, 1e-6, "upper");
    covariance[0] = 4;
    struct uncertainty at = find(0, half, 5);
    assert_true(of_measurement[0] < s * 0.0313 - edge && of_measurement[1] > s * 2.2414 - edge);
    assert_close(interval_share(&at, of_measurement[0]), 0.025, 1e-6, "share below");
    struct model_component components[] = {{0.5, -100, 1}, {0.5, 100, 1}};
    find(0, (struct model_noise){.kind = MODEL_NOISE_MIXTURE, .components = components, .component_count = 2},
         5);
    assert_true(of_measurement[0] < -100 && of_measurement[0] > -110 && of_measurement[1] > 100);
    find(0, (struct model_noise){.kind = MODEL_NOISE_NONE}, 5);
    assert_true(isnan(of_measurement[0]) && isnan(of_measurement[1]) && of_mean[1] > 0);
}

static double seeded(void *seed, const char *name, uint64_t index) {
    struct random_stream stream;
    random_stream_init(&stream, *(uint64_t *)seed, name, index);
    return random_stream_normal(&stream);
}

/* 95 % of the drawn means are within the interval of the mean, and sigma is drawn with it. */
TEST(draws_have_the_same_distribution) {
    size_t inside = 0;
    double sigma = 0;
    find(0, normal, 5);
    for (uint64_t seed = 1; seed <= DRAWS; seed++) {
        struct model *drawn = model_draw(&model, seeded, &seed);
        inside += fabs(drawn->groups[0].parts[0].estimates[0].estimate - 10) < of_mean[1];
        sigma += drawn->groups[0].parts[0].noise.constant / DRAWS;
        model_draw_free(drawn);
    }
    assert_true(fabs((double)inside / DRAWS - 0.95) < 0.012);
    assert_close(sigma, 3 * sqrt(5 / 2.) * tgamma(2) / tgamma(2.5), 0.03, "mean of the drawn sigma");
}
