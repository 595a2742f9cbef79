/* Has a quantity settled? Against lines and noises whose answers are known. */
#include "engine/run/state/steadiness.h"
#include "tests/test.h"

#define SECOND INT64_C(1000000000)

static struct history history;
static struct steadiness_state found;

static int begin(void **state) {
    history_reset(&history, 1);
    return 0;
}

static int end(void **state) {
    history_clear(&history);
    return 0;
}

static void add(int64_t time_ns, double value) {
    history_add(&history, time_ns, &value);
}

static void add_line(int seconds, double from, double rate) {
    for (int i = 0; i <= seconds; i++)
        add((1000 + i) * SECOND, from + rate * i);
}

TEST(slope_is_over_a_window) {
    add_line(60, 40, 0.5);
    assert_true(steadiness_of(&history, 0, 10, &found));
    assert_float_equal(found.slope, 5, 1e-9);
    assert_float_equal(found.spread, 0, 1e-9);
    assert_float_equal(found.mean, 40 + 0.5 * 55, 1e-9); /* of the last ten seconds */
    assert_int_equal(found.samples, 11);
}

TEST(constant_is_steady) {
    add_line(12, 67.5, 0);
    assert_true(steadiness_of(&history, 0, 10, &found));
    assert_float_equal(found.slope, 0, 0);
    assert_float_equal(found.spread, 0, 0);
    assert_float_equal(found.mean, 67.5, 1e-12);
}

TEST(spread_is_off_the_line) {
    /* Alternates by +-1 about a rising line; of 21 samples, +1 first and last. */
    for (int i = 0; i <= 20; i++)
        add(i * SECOND, 0.1 * i + (i % 2 ? -1 : 1));
    assert_true(steadiness_of(&history, 0, 20, &found));
    assert_float_equal(found.slope, 2, 0.01);
    assert_float_equal(found.spread, 2, 0.01);
}

TEST(not_before_a_whole_window) {
    assert_false(steadiness_of(&history, 0, 10, &found));
    assert_int_equal(found.samples, 0);
    add_line(9, 50, 0);
    assert_false(steadiness_of(&history, 0, 10, &found));
    assert_int_equal(found.samples, 10);
    add(1010 * SECOND, 50);
    assert_true(steadiness_of(&history, 0, 10, &found));
}

TEST(long_ago_does_not_count) {
    add_line(100, 30, 1); /* heats up */
    for (int i = 101; i < 120; i++)
        add((1000 + i) * SECOND, 130);
    assert_true(steadiness_of(&history, 0, 5, &found));
    assert_float_equal(found.slope, 0, 1e-9);
    assert_float_equal(found.mean, 130, 1e-9);
}

TEST(samples_that_are_not_known_are_left_out) {
    history_reset(&history, 2);
    for (int i = 0; i <= 20; i++)
        history_add(&history, i * SECOND, (double[]){i % 2 ? NAN : 5, i % 2 ? NAN : 7});
    assert_true(steadiness_of(&history, 1, 10, &found));
    assert_float_equal(found.mean, 7, 0);
    assert_int_equal(found.samples, 6);
    assert_true(steadiness_of(&history, STEADINESS_MEAN, 10, &found));
    assert_float_equal(found.mean, 6, 0);
}

TEST(many_samples) {
    for (int i = 0; i < 100000; i++) /* 100 a second in a window of 900 s */
        add(i * (SECOND / 100), 5 + 1e-3 * i);
    assert_true(steadiness_of(&history, 0, 900, &found));
    assert_float_equal(found.slope, 90, 1e-6);
}

TEST_EACH(begin, end)
