/* How long a unit is said to take: from its row, what was expected, the longest, or not. */
#include "engine/run/measure/unit-times.h"
#include "tests/test.h"

static const int64_t second = 1000000000;

static void says(const struct unit_times *times, size_t row, double expected) {
    double seconds = (double)unit_times_predict(times, row) * 1e-9;
    if (!(fabs(seconds - expected) <= 1e-6 * expected))
        fail_msg("%g s, expected %g", seconds, expected);
}

TEST(nothing_known) {
    struct unit_times *times = unit_times_new(3, NULL);
    assert_int_equal(unit_times_predict(times, 0), -1);
    /* What is no time changes nothing. */
    unit_times_take(times, 0, 0);
    unit_times_take(times, 0, -5 * second);
    unit_times_take(times, 0, INT64_MAX);
    assert_int_equal(unit_times_predict(times, 0), -1);
    unit_times_free(times);
    unit_times_free(NULL);
}

TEST(what_is_nearest_counts) {
    const double expected[] = {1, 10, NAN, 0};
    struct unit_times *times = unit_times_new(4, expected);
    says(times, 1, 10); /* as it was expected, while nothing is known */
    assert_int_equal(unit_times_predict(times, 2), -1);
    unit_times_take(times, 0, 2 * second);
    says(times, 0, 2.2);
    says(times, 1, 20); /* twice as long as expected */
    says(times, 2, 2);  /* nothing was expected of it */
    says(times, 3, 2);
    unit_times_take(times, 0, 3 * second);
    unit_times_take(times, 0, 1 * second);
    says(times, 0, 3.3);
    says(times, 1, 30); /* the largest ratio counts */
    unit_times_free(times);
}

/* Absurd ratios overflow nothing. */
TEST(absurd_ratios) {
    const double expected[] = {1e-30, 1e9, 0.5};
    struct unit_times *times = unit_times_new(3, expected);
    unit_times_take(times, 0, 900000000 * second);
    assert_true(unit_times_predict(times, 1) > 0);
    unit_times_take(times, 1, 1);
    assert_true(unit_times_predict(times, 2) > 0);
    unit_times_free(times);
}
