/* The order: each (row, repetition) once, the same for the same seed, another for another. */
#include "engine/design/order.h"
#include "tests/test.h"

static struct design_order *make(enum design_order_kind kind, uint64_t seed, size_t rows,
                                 size_t repetitions) {
    struct design_order *order = NULL;
    assert_ok(design_order_new(kind, seed, rows, repetitions, NULL, 1, &order, &test_failure));
    assert_int_equal(order->count, rows * repetitions);
    return order;
}

TEST(each_once) {
    struct design_order *order = make(DESIGN_ORDER_RANDOM, 1, 70, 9);
    bool seen[70][9] = {{false}};
    size_t in_place = 0;
    for (size_t i = 0; i < order->count; i++) {
        size_t row = design_order_row(order, i), repetition = design_order_repetition(order, i);
        assert_true(row < 70 && repetition < 9 && !seen[row][repetition]);
        seen[row][repetition] = true;
        in_place += order->units[i] == i;
    }
    assert_true(in_place < 10); /* one is expected; ten or more once in ten million */
    design_order_free(order);
}

/* The repetitions of a row are not kept apart nor together: the mean distance of a row's two positions is a
 * third of the length. */
TEST(repetitions_are_mixed) {
    enum { ROWS = 5000 };
    struct design_order *order = make(DESIGN_ORDER_RANDOM, 2, ROWS, 2);
    static size_t position[ROWS][2];
    for (size_t i = 0; i < order->count; i++)
        position[design_order_row(order, i)][design_order_repetition(order, i)] = i;
    double mean = 0;
    for (size_t row = 0; row < ROWS; row++) {
        double difference = (double)position[row][0] - (double)position[row][1];
        mean += (difference < 0 ? -difference : difference) / (2.0 * ROWS) / ROWS;
    }
    assert_true(mean > 1.0 / 3 - 0.0135 &&
                mean < 1.0 / 3 + 0.0135); /* four standard errors: 0.2357 / sqrt(5000) */
    design_order_free(order);
}

TEST(seeds) {
    struct design_order *one = make(DESIGN_ORDER_RANDOM, 5, 100, 3),
                        *same = make(DESIGN_ORDER_RANDOM, 5, 100, 3),
                        *other = make(DESIGN_ORDER_RANDOM, 6, 100, 3);
    assert_memory_equal(one->units, same->units, 300 * sizeof *one->units);
    assert_memory_not_equal(one->units, other->units, 300 * sizeof *one->units);
    assert_true(one->seed == 5);
    design_order_free(one);
    design_order_free(same);
    design_order_free(other);
}

TEST(as_written) {
    struct design_order *order = make(DESIGN_ORDER_AS_WRITTEN, 5, 4, 3);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(design_order_row(order, i), i % 4);
        assert_int_equal(design_order_repetition(order, i), i / 4);
    }
    design_order_free(order);
    design_order_free(NULL);
}

TEST(refusals) {
    struct design_order *order = NULL;
    assert_int_equal(design_order_new(DESIGN_ORDER_RANDOM, 1, 0, 1, NULL, 1, &order, &test_failure), -22);
    assert_int_equal(design_order_new(DESIGN_ORDER_RANDOM, 1, 1, 0, NULL, 1, &order, &test_failure), -22);
    assert_int_equal(design_order_new(DESIGN_ORDER_RANDOM, 1, 1 << 20, 257, NULL, 1, &order, &test_failure),
                     -22);
    assert_string_equal(test_failure.text,
                        "257 repetitions of 1048576 rows are more than the limit of 268435456 measurements");
    assert_int_equal(design_order_new(DESIGN_ORDER_RANDOM, 1, SIZE_MAX, 2, NULL, 1, &order, &test_failure),
                     -22);
    assert_null(order);
}
