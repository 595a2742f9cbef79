/* The dip of samples, beside its definition: the least distance at which a distribution function with one
 * mode passes between the bounds. */
#include "engine/numerics/dip.h"
#include "engine/numerics/quantile.h"
#include "tests/test.h"

enum { COUNT_MAX = 200 };

/* The least value at the point MODE of a function that is convex before it and stays within DISTANCE of the
 * sample's distribution function; 2 where there is none. */
static double least_at(const double *x, size_t count, size_t mode, double distance) {
    double n = (double)count, least = (double)mode / n - distance;
    for (size_t i = 0; i < mode; i++)
        for (size_t k = i; k < mode; k++) {
            double above = (double)i / n + distance, below = (double)(k + 1) / n - distance;
            if (k == i && below > above)
                return 2;
            for (size_t j = k + 1; j < mode; j++) /* a chord of upper bounds below a lower bound */
                if (above + ((double)j / n + distance - above) * (x[k] - x[i]) / (x[j] - x[i]) <
                    below - 1e-12)
                    return 2;
            if (k > i)
                least = fmax(least, above + (below - above) * (x[mode] - x[i]) / (x[k] - x[i]));
        }
    return least <= (double)mode / n + distance + 1e-12 ? least : 2;
}

/* Whether a function that is convex up to the value MODE and concave behind it stays within DISTANCE. */
static bool can_pass(const double *x, size_t count, size_t mode, double distance) {
    double mirrored[COUNT_MAX];
    for (size_t i = 0; i < count; i++)
        mirrored[i] = -x[count - 1 - i];
    double low = least_at(x, count, mode, distance),
           high = least_at(mirrored, count, count - 1 - mode, distance);
    return low < 2 && high < 2 && low <= 1 - high + 1e-12;
}

static double dip_by_definition(const double *x, size_t count) {
    double low = 0.5 / (double)count, high = 0.5;
    for (size_t step = 0; step < 30; step++) {
        double middle = (low + high) / 2;
        bool passes = false;
        for (size_t mode = 0; mode < count && !passes; mode++)
            passes = can_pass(x, count, mode, middle);
        *(passes ? &high : &low) = middle;
    }
    return high;
}

TEST(the_dip_is_what_its_definition_says) {
    double x[COUNT_MAX];
    for (test_seed = 1; test_seed <= 8; test_seed++) {
        uint64_t seed = test_seed;
        size_t count = 5 + seed;
        for (size_t i = 0; i < count; i++)
            x[i] = test_random() + (i % 3 == 0 ? 0.4 * (double)(seed % 4) : 0);
        quantile_sort(x, count);
        assert_close(dip(x, count), dip_by_definition(x, count), 1e-6, "dip");
        test_seed = seed;
    }
}

TEST(one_mode_and_two) {
    double x[COUNT_MAX];
    for (size_t i = 0; i < COUNT_MAX; i++)
        x[i] = (double)i;
    assert_close(dip(x, COUNT_MAX), 0.5 / COUNT_MAX, 1e-12, "of equal steps");
    assert_close(dip_upper(0.5 / COUNT_MAX, COUNT_MAX), 1, 1e-12, "p");
    for (size_t i = COUNT_MAX / 2; i < COUNT_MAX; i++)
        x[i] += COUNT_MAX;
    assert_true(dip(x, COUNT_MAX) > 0.1 && dip_upper(dip(x, COUNT_MAX), COUNT_MAX) < 1e-6);
    /* 5 % of 400,000 simulated samples were above. */
    assert_close(dip_upper(0.0704, 50), 0.05, 0.1, "p of 50");
    assert_close(dip_upper(0.0368, 200), 0.05, 0.1, "p of 200");
    assert_close(dip(x, 3), 0.5 / 3, 1e-12, "of three");
}
