#include "engine/plugin/grouping.h"
#include "engine/foundation/natural-order.h"
#include "tests/test.h"

TEST(no_labels) {
    struct grouping *grouping;
    const uint32_t *groups;
    assert_int_equal(grouping_new(0, &grouping, NULL), 0);
    assert_int_equal(grouping_count(grouping), 0);
    assert_int_equal(grouping_assign(grouping, 3, NULL, &groups, NULL), 0);
    assert_true(groups[0] == 0 && groups[2] == 0);
    assert_int_equal(grouping_count(grouping), 1);
    grouping_free(grouping);
}

TEST(one_label) {
    struct grouping *grouping;
    const uint32_t *groups, codes[4] = {0, 1, 0, 2}, *labels[1] = {codes};
    assert_int_equal(grouping_new(1, &grouping, NULL), 0);
    assert_int_equal(grouping_assign(grouping, 4, labels, &groups, NULL), 0);
    assert_memory_equal(groups, codes, sizeof codes);
    assert_int_equal(grouping_count(grouping), 3);
    assert_int_equal(grouping_label(grouping, 2, 0), 2);
    grouping_free(grouping);
}

/* Three columns, in blocks; every combination keeps its number and gives its labels back. */
TEST(three_labels) {
    enum { A = 40, B = 50, C = 30, ROWS = 1000 };
    struct grouping *grouping;
    assert_int_equal(grouping_new(3, &grouping, NULL), 0);
    uint32_t *seen = calloc(A * B * C, sizeof *seen);
    uint32_t count = 0;
    for (uint32_t block = 0; block < 100; block++) {
        static uint32_t codes[3][ROWS];
        const uint32_t *labels[3] = {codes[0], codes[1], codes[2]}, *groups;
        for (uint32_t r = 0; r < ROWS; r++) {
            uint32_t x = (block * ROWS + r) * UINT32_C(2654435761);
            codes[0][r] = (x >> 8) % A;
            codes[1][r] = (x >> 13) % B;
            codes[2][r] = (x >> 21) % C;
        }
        assert_int_equal(grouping_assign(grouping, ROWS, labels, &groups, NULL), 0);
        for (uint32_t r = 0; r < ROWS; r++) {
            uint32_t *number = &seen[(codes[0][r] * B + codes[1][r]) * C + codes[2][r]];
            if (*number == 0)
                *number = ++count;
            assert_int_equal(groups[r], *number - 1);
            for (size_t j = 0; j < 3; j++)
                assert_int_equal(grouping_label(grouping, groups[r], j), codes[j][r]);
        }
    }
    assert_int_equal(grouping_count(grouping), count);
    assert_true(count > 10000);
    free(seen);
    grouping_free(grouping);
}

/* Labels that grow until no table takes their pairs, and that come back when others did. */
TEST(many_labels) {
    enum { BLOCKS = 12, ROWS = 500 };
    struct grouping *grouping;
    assert_int_equal(grouping_new(2, &grouping, NULL), 0);
    static uint32_t codes[2][ROWS], first[BLOCKS][ROWS];
    const uint32_t *labels[2] = {codes[0], codes[1]}, *groups;
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t step = 0; step < BLOCKS; step++) {
            uint32_t block = round == 0 ? step : BLOCKS - 1 - step;
            for (uint32_t r = 0; r < ROWS; r++) {
                codes[0][r] = (r * 7) % (1 << block);
                codes[1][r] = (r * 13) % (block % 3 ? 11 : 400);
            }
            assert_int_equal(grouping_assign(grouping, ROWS, labels, &groups, NULL), 0);
            if (round == 0)
                memcpy(first[block], groups, sizeof first[block]);
            assert_memory_equal(groups, first[block], sizeof first[block]);
            for (uint32_t r = 0; r < ROWS; r++)
                for (size_t j = 0; j < 2; j++)
                    assert_int_equal(grouping_label(grouping, groups[r], j), codes[j][r]);
        }
    grouping_free(grouping);
}

TEST(natural) {
    static const char *const ordered[] = {"-1",  "0", "2",      "2.5",     "10",
                                          "1e3", "a", "dahu-2", "dahu-10", "dahu-10b"};
    enum { COUNT = sizeof ordered / sizeof *ordered };
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < COUNT; j++) {
            int order = natural_order_compare(ordered[i], ordered[j]);
            assert_true(i == j ? order == 0 : (i < j) == (order < 0));
        }
    assert_true(natural_order_compare("1", "1.0") != 0); /* different labels are different groups */
    const char *mixed[] = {"dahu-10", "10", "dahu-2", "2"};
    uint32_t *ranks;
    assert_int_equal(natural_order_ranks(mixed, 4, &ranks), 0);
    assert_true(ranks[0] == 3 && ranks[1] == 1 && ranks[2] == 2 && ranks[3] == 0);
    free(ranks);
}
