/* Has a quantity settled? Against lines and noises whose answers are known. */
#include "engine/run/state/steadiness.h"
#include "tests/test.h"

#define SECOND INT64_C(1000000000)

static void add_line(struct steadiness *steadiness, double window, int seconds, double from, double rate) {
    for (int i = 0; i <= seconds; i++)
        assert_int_equal(steadiness_add(steadiness, window, (1000 + i) * SECOND, from + rate * i), 0);
}

TEST(slope_is_over_a_window) {
    struct steadiness steadiness = {0};
    struct steadiness_state found;
    add_line(&steadiness, 10, 60, 40, 0.5);
    assert_true(steadiness_state(&steadiness, 10, &found));
    assert_float_equal(found.slope, 5, 1e-9);
    assert_float_equal(found.spread, 0, 1e-9);
    assert_float_equal(found.mean, 40 + 0.5 * 55, 1e-9); /* of the last ten seconds */
    assert_int_equal(found.samples, 11);
    steadiness_clear(&steadiness);
}

TEST(constant_is_steady) {
    struct steadiness steadiness = {0};
    struct steadiness_state found;
    add_line(&steadiness, 10, 12, 67.5, 0);
    assert_true(steadiness_state(&steadiness, 10, &found));
    assert_float_equal(found.slope, 0, 0);
    assert_float_equal(found.spread, 0, 0);
    assert_float_equal(found.mean, 67.5, 1e-12);
    steadiness_clear(&steadiness);
}

TEST(spread_is_off_the_line) {
    struct steadiness steadiness = {0};
    struct steadiness_state found;
    /* Alternates by +-1 about a rising line; of 21 samples, +1 first and last. */
    for (int i = 0; i <= 20; i++)
        steadiness_add(&steadiness, 20, i * SECOND, 0.1 * i + (i % 2 ? -1 : 1));
    assert_true(steadiness_state(&steadiness, 20, &found));
    assert_float_equal(found.slope, 2, 0.01);
    assert_float_equal(found.spread, 2, 0.01);
    steadiness_clear(&steadiness);
}

TEST(not_before_a_whole_window) {
    struct steadiness steadiness = {0};
    struct steadiness_state found;
    add_line(&steadiness, 10, 9, 50, 0);
    assert_false(steadiness_state(&steadiness, 10, &found));
    steadiness_add(&steadiness, 10, 1010 * SECOND, 50);
    assert_true(steadiness_state(&steadiness, 10, &found));
    steadiness_clear(&steadiness);
    assert_false(steadiness_state(&steadiness, 10, &found)); /* empty */
}

TEST(long_ago_is_forgotten) {
    struct steadiness steadiness = {0};
    struct steadiness_state found;
    add_line(&steadiness, 5, 100, 30, 1); /* heats up */
    for (int i = 101; i < 120; i++)
        steadiness_add(&steadiness, 5, (1000 + i) * SECOND, 130);
    assert_true(steadiness_state(&steadiness, 5, &found));
    assert_float_equal(found.slope, 0, 1e-9);
    assert_float_equal(found.mean, 130, 1e-9);
    steadiness_clear(&steadiness);
}

TEST(many_samples_are_bounded) {
    struct steadiness steadiness = {0};
    struct steadiness_state found;
    for (int i = 0; i < 100000; i++) /* 100 a second in a window of 900 s */
        assert_int_equal(steadiness_add(&steadiness, 900, i * (SECOND / 100), 5 + 1e-3 * i), 0);
    assert_true(steadiness.count <= STEADINESS_SAMPLES_MOST);
    assert_true(steadiness_state(&steadiness, 900, &found));
    assert_float_equal(found.slope, 90, 1e-6);
    steadiness_clear(&steadiness);
}
