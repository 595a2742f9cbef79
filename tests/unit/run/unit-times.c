/* How long a unit is said to take: from its row on its node, its row, what was expected, the longest, or not.
 */
#include "engine/run/measure/unit-times.h"
#include "tests/test.h"

static const int64_t second = 1000000000;

static void says(const struct unit_times *times, size_t row, size_t node, enum unit_times_basis basis,
                 double least, double most) {
    enum unit_times_basis found;
    double seconds = (double)unit_times_predict(times, row, node, &found) * 1e-9;
    assert_int_equal(found, basis);
    if (!(seconds >= least && seconds <= most))
        fail_msg("%g s, expected %g to %g", seconds, least, most);
}

TEST(nothing_known) {
    struct unit_times *times = unit_times_new(3, 2, NULL);
    assert_non_null(times);
    enum unit_times_basis basis;
    assert_int_equal(unit_times_predict(times, 0, 0, &basis), -1);
    assert_int_equal(basis, UNIT_TIMES_UNKNOWN);
    /* What is no time, or of nobody, changes nothing. */
    unit_times_take(times, 0, 0, 0);
    unit_times_take(times, 0, 0, -5 * second);
    unit_times_take(times, 3, 0, second);
    unit_times_take(times, 0, 2, second);
    unit_times_take(times, 0, 0, INT64_MAX);
    assert_int_equal(unit_times_predict(times, 0, 0, NULL), -1);
    unit_times_free(times);
    unit_times_free(NULL);
}

TEST(what_is_nearest_counts) {
    const double expected[] = {1, 10, NAN, 0};
    struct unit_times *times = unit_times_new(4, 2, expected);
    says(times, 1, 0, UNIT_TIMES_EXPECTED, 10, 10); /* as it was expected, while nothing is known */
    assert_int_equal(unit_times_predict(times, 2, 0, NULL), -1);
    unit_times_take(times, 0, 0, 2 * second);
    says(times, 0, 0, UNIT_TIMES_ROW_ON_NODE, 2.2, 2.2000001);
    says(times, 0, 1, UNIT_TIMES_ROW, 2.2, 2.2000001);
    says(times, 1, 0, UNIT_TIMES_EXPECTED, 20, 22); /* twice as long as expected, and up to a bin */
    says(times, 2, 0, UNIT_TIMES_LONGEST, 2, 2);    /* nothing was expected of it */
    says(times, 3, 1, UNIT_TIMES_LONGEST, 2, 2);
    unit_times_take(times, 0, 1, 3 * second);
    unit_times_take(times, 0, 1, 1 * second);
    says(times, 0, 1, UNIT_TIMES_ROW_ON_NODE, 3.3, 3.3000001);
    says(times, 0, 0, UNIT_TIMES_ROW_ON_NODE, 2.2, 2.2000001);
    says(times, 7, 0, UNIT_TIMES_LONGEST, 3, 3); /* a row that is not there */
    unit_times_free(times);
}

TEST(the_quantile_is_robust) {
    enum { ROWS = 1000 };
    double *expected = malloc((ROWS + 1) * sizeof *expected);
    for (size_t i = 0; i <= ROWS; i++)
        expected[i] = 0.5;
    struct unit_times *times = unit_times_new(ROWS + 1, 1, expected);
    /* Ratios from 1 to 2, evenly; and one in twenty that is a hundred. */
    for (size_t i = 0; i < ROWS; i++)
        unit_times_take(times, i, 0,
                        i % 20 == 0 ? 50 * second : (int64_t)((0.5 + 0.5 * (double)i / ROWS) * 1e9));
    says(times, ROWS, 0, UNIT_TIMES_EXPECTED, 0.5 * 1.88, 0.5 * 2.2);
    unit_times_free(times);
    /* Absurd ratios go to the outermost bins, and nothing overflows. */
    expected[0] = 1e-30;
    expected[1] = 1e9;
    times = unit_times_new(3, 1, expected);
    for (int i = 0; i < 20; i++)
        unit_times_take(times, 0, 0, 900000000 * second);
    assert_true(unit_times_predict(times, 1, 0, NULL) > 0);
    unit_times_take(times, 1, 0, 1);
    assert_true(unit_times_predict(times, 2, 0, NULL) > 0);
    unit_times_free(times);
    free(expected);
}

TEST(pairs_are_bounded) {
    struct unit_times *times = unit_times_new(UNIT_TIMES_PAIRS_MOST / 2 + 1, 2, NULL);
    assert_non_null(times);
    unit_times_take(times, 5, 0, 2 * second);
    unit_times_take(times, 5, 1, 4 * second);
    says(times, 5, 0, UNIT_TIMES_ROW, 4.4, 4.4000001);
    unit_times_free(times);
}
