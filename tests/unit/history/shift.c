/* A shift of the level: found where it was planted, and seldom where none is. tests/benchmarks/history has
 * the rates over many series. */
#include "engine/history/shift.h"

#include "tests/test.h"

enum { ROWS = 60, SERIES = 2000 };

static double values[ROWS];

/* Rows of mean 100 and deviation 1; a row's likeness to the one before is CORRELATION, and a share OUTLIERS
 * of them is 10 off. */
static void draw(double correlation, double outliers, double shift) {
    double rest = test_normal();
    for (size_t i = 0; i < ROWS; i++) {
        rest = i > 0 ? correlation * rest + sqrt(1 - correlation * correlation) * test_normal() : rest;
        values[i] = 100 + rest + (i < ROWS / 2 ? 0 : shift);
        if (test_random() < outliers)
            values[i] += test_random() < 0.5 ? -10 : 10;
    }
}

/* In how many of the series p is below 0.0005; of these, in how many the row is within 3, and the interval
 * has the shift, go to RET_NEAR and RET_COVERED. */
static size_t count_found(double correlation, double outliers, double shift, size_t *ret_near,
                          size_t *ret_covered) {
    struct shift found;
    size_t count = 0;
    *ret_near = *ret_covered = 0;
    for (size_t i = 0; i < SERIES; i++) {
        draw(correlation, outliers, shift);
        assert_int_equal(shift_find(values, ROWS, &found), 0);
        if (found.p >= 0.0005)
            continue;
        count++;
        *ret_near += found.row + 3 >= ROWS / 2 && found.row <= ROWS / 2 + 3;
        *ret_covered += found.low <= shift && shift <= found.high;
    }
    return count;
}

TEST(no_shift) {
    static const double kinds[][2] = {{0, 0}, {0.3, 0}, {0, 0.02}};
    size_t near, covered;
    test_seed = 1;
    for (size_t i = 0; i < 3; i++) {
        size_t found = count_found(kinds[i][0], kinds[i][1], 0, &near, &covered);
        if (found > 6) /* 2 are expected at most; 7 or more have a probability of 0.5 % */
            fail_msg("kind %zu: %zu of %d series without a change are accused", i, found, SERIES);
    }
}

TEST(planted) {
    size_t near, covered, found = count_found(0, 0.02, 3, &near, &covered);
    assert_true(found > 0.99 * SERIES);
    if (near < 0.97 * (double)found)
        fail_msg("%zu of %zu shifts are near", near, found);
    if (covered < 0.93 * (double)found)
        fail_msg("%zu of %zu intervals have the shift", covered, found);
}

TEST(by_hand) {
    struct shift found;
    for (size_t i = 0; i < ROWS; i++)
        values[i] = 7;
    assert_int_equal(shift_find(values, ROWS, &found), 0);
    assert_true(found.p == 1 && found.before == 7 && found.after == 7);
    for (size_t i = 20; i < ROWS; i++)
        values[i] = 8; /* no scatter at all */
    assert_int_equal(shift_find(values, ROWS, &found), 0);
    assert_true(found.row == 20 && found.p == 0 && found.low == 1 && found.high == 1);
    assert_int_equal(shift_find(values, SHIFT_ROWS_LEAST - 1, &found), -EDOM);
}
