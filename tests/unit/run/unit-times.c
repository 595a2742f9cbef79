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
    unit_times_add(times, 0, 0);
    unit_times_add(times, 0, -5 * second);
    unit_times_add(times, 0, INT64_MAX);
    assert_int_equal(unit_times_predict(times, 0), -1);
    unit_times_free(times);
    unit_times_free(NULL);
}

TEST(what_is_nearest_counts) {
    const double expected[] = {1, 10, NAN, 0};
    struct unit_times *times = unit_times_new(4, expected);
    says(times, 1, 10); /* as it was expected, while nothing is known */
    assert_int_equal(unit_times_predict(times, 2), -1);
    unit_times_add(times, 0, 2 * second);
    says(times, 0, 2.2);
    says(times, 1, 20); /* twice as long as expected */
    says(times, 2, 2);  /* nothing was expected of it */
    says(times, 3, 2);
    unit_times_add(times, 0, 3 * second);
    unit_times_add(times, 0, 1 * second);
    says(times, 0, 3.3);
    says(times, 1, 30); /* the largest ratio counts */
    unit_times_free(times);
}

/* Absurd ratios overflow nothing. */
TEST(absurd_ratios) {
    const double expected[] = {1e-30, 1e9, 0.5};
    struct unit_times *times = unit_times_new(3, expected);
    unit_times_add(times, 0, 900000000 * second);
    assert_true(unit_times_predict(times, 1) > 0);
    unit_times_add(times, 1, 1);
    assert_true(unit_times_predict(times, 2) > 0);
    unit_times_free(times);
}

/* ---- What is left of all -------------------------------------------------------------------------- */

static void leaves(const struct unit_times *times, double expected) {
    double seconds = unit_times_left(times);
    if (!(fabs(seconds - expected) <= 1e-6 * fabs(expected)))
        fail_msg("%g s are left, expected %g", seconds, expected);
}

/* Units of equal length: what is left falls by that length whenever one ends, and never climbs. */
TEST(units_of_equal_length) {
    struct unit_times *times = unit_times_new(3, NULL);
    leaves(times, 0);
    for (size_t row = 0; row < 3; row++)
        unit_times_plan(times, row, 4);
    leaves(times, -1); /* none has ended */
    for (unsigned unit = 1; unit <= 12; unit++) {
        unit_times_end(times, unit % 3, 5);
        leaves(times, 5 * (12 - unit));
    }
    unit_times_plan(times, 0, 2);
    leaves(times, 10);
    unit_times_plan_none(times);
    leaves(times, 0);
    unit_times_free(times);
}

/* Of very different length, as of HPL: N^3. Two of the short ones say little of the long one by themselves.
 */
TEST(units_of_different_length) {
    const double expected[] = {1, 1000, NAN};
    struct unit_times *times = unit_times_new(3, expected), *alike = unit_times_new(2, NULL);
    unit_times_plan(times, 0, 3);
    unit_times_plan(times, 1, 2);
    unit_times_end(times, 0, 2);
    leaves(times, 2 * 2 + 2 * 2000); /* what is expected, times 2 */
    unit_times_end(times, 1, 1500);
    leaves(times, 2 * 2 + 1500); /* rows by what they took */
    unit_times_plan(times, 2, 1);
    leaves(times, 2 * 2 + 1500 + 500.5 * 1502 / 1001); /* one that is usual */
    unit_times_end(times, 0, -1);                      /* it failed, and says nothing of the others */
    leaves(times, 2 + 1500 + 500.5 * 1502 / 1001);
    unit_times_plan(alike, 0, 2);
    unit_times_plan(alike, 1, 2);
    unit_times_end(alike, 0, 1);
    unit_times_end(alike, 1, 9);
    leaves(alike, 10); /* nothing was expected: by row, and not 5 each of whichever has ended more often */
    unit_times_end(alike, 0, 1);
    leaves(alike, 9);
    unit_times_free(times);
    unit_times_free(alike);
}
