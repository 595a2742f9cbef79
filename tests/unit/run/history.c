/* The last samples, and which of them tell of an interval. */
#include "engine/run/state/history.h"
#include "tests/test.h"

static struct history history; /* of two values, until a test says otherwise */

static int begin(void **state) {
    history_reset(&history, 2);
    return 0;
}

static int end(void **state) {
    history_clear(&history);
    return 0;
}
TEST_EACH(begin, end)

static void fill(int from, int to, int step) {
    for (int i = from; i <= to; i += step)
        history_add(&history, i, (double[]){i, -i});
}

static void check(int64_t start, int64_t end, int64_t first, int64_t last, bool before, bool after) {
    struct history_span span;
    assert_true(history_span(&history, start, end, &span));
    assert_int_equal(history_time(&history, span.first), first);
    assert_int_equal(history_time(&history, span.last), last);
    assert_int_equal(span.before, before);
    assert_int_equal(span.after, after);
}

TEST(span) {
    struct history_span span;
    assert_false(history_span(&history, 0, 1, &span));
    fill(10, 100, 10);
    check(25, 55, 20, 60, true, true);
    check(20, 60, 20, 60, true, true);    /* on them */
    check(22, 28, 20, 30, true, true);    /* between two */
    check(5, 15, 10, 20, false, true);    /* before the first */
    check(95, 105, 90, 100, true, false); /* past the last */
    check(200, 300, 100, 100, true, false);
    check(1, 2, 10, 10, false, true);
    assert_float_equal(history_row(&history, 3)[1], -40, 0);
}

TEST(forget_keeps_what_tells_of_then) {
    fill(10, 1000, 10);
    history_forget(&history, 505);
    check(505, 520, 500, 520, true, true);
    assert_int_equal(history_time(&history, 0), 500);
    history_forget(&history, 700);
    assert_int_equal(history_time(&history, 0), 700);
    history_forget(&history, 5);
    assert_int_equal(history_time(&history, 0), 700);
    history_forget(&history, 5000);
    assert_int_equal(history_time(&history, 0), 1000);
    fill(1010, 3000, 10); /* round the ring */
    check(2995, 2999, 2990, 3000, true, true);
}

TEST(what_is_not_later_is_left_out) {
    fill(10, 30, 10);
    history_add(&history, 30, (double[]){7, 7});
    history_add(&history, 20, (double[]){7, 7});
    assert_int_equal(history.count, 3);
    assert_float_equal(history_row(&history, 2)[0], 30, 0);
}

TEST(bounded) {
    history_reset(&history, 1000);
    double values[1000] = {0};
    for (int i = 0; i < 2000; i++)
        history_add(&history, i, values);
    assert_true(history.capacity * 1001 * sizeof(double) <= HISTORY_BYTES_MAX + 1001 * sizeof(double));
    assert_int_equal(history_time(&history, history.count - 1), 1999);
    assert_int_equal(history_time(&history, 0), 0); /* however long ago that was */
}
