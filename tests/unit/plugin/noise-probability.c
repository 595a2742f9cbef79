#include "engine/plugin/noise-probability.h"
#include "engine/plugin/noise-density.h"
#include "tests/test.h"

static const struct plugin_component components[] = {{0.25, -3, 0.5}, {0.75, 1, 2}};
static const struct plugin_noise noises[] = {
    {.size = sizeof(struct plugin_noise), .kind = "N-1", .distribution = "normal", .constant = 2},
    {.size = sizeof(struct plugin_noise), .kind = "N-1", .distribution = "half-normal", .constant = 2},
    {.size = sizeof(struct plugin_noise),
     .kind = "mixture",
     .distribution = "normal",
     .components = components,
     .component_count = 2}};

/* What is between two places is the density summed up between them. */
TEST(integrates) {
    for (size_t k = 0; k < sizeof noises / sizeof *noises; k++) {
        double sum = 0, step = 1e-3;
        for (double at = -10 + step / 2; at < 20; at += step) {
            double density = noise_log_density(&noises[k], 5, 2, at + 5);
            sum += isinf(density) ? 0 : step * exp(density);
            double told = noise_probability(&noises[k], 5, 2, at + 5 + step / 2);
            if (fabs(sum - told) > 5e-4)
                fail_msg("noise %zu at %g: %.9g, expected %.9g", k, at, told, sum);
        }
        assert_true(noise_probability(&noises[k], 5, 2, 1e3) == 1);
        assert_true(noise_probability(&noises[k], 5, 2, -1e3) == 0);
    }
}

TEST(known) {
    assert_true(fabs(noise_probability(&noises[0], 5, 2, 5 - 1.959963984540054 * 2) - 0.025) < 1e-15);
    assert_true(fabs(noise_probability(&noises[0], 5, 2, 5 + 1.959963984540054 * 2) - 0.975) < 1e-15);
    assert_true(noise_probability(&noises[0], 5, 0, 4.9) == 0 && noise_probability(&noises[0], 5, 0, 5) == 1);
    assert_true(isnan(noise_probability(NULL, 5, 2, 5)) && isnan(noise_probability(&noises[0], 5, NAN, 5)));
    assert_true(isnan(noise_probability(&noises[1], 5, 2, NAN)));
}
