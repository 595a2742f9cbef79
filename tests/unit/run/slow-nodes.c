/* Which nodes are slower than their cluster? Against numbers that were worked out by hand. */
#include "engine/run/measure/slow-nodes.h"
#include "tests/test.h"

enum { NODES = 5 };

static const uint32_t alike[16384];

/* Rows of very different lengths, from 1 ms to 10 s; each node is EXPONENTS[i] off, in log(seconds). */
static struct slow_nodes *measure(size_t nodes, size_t rows, const double *exponents) {
    struct slow_nodes *slow = slow_nodes_new(nodes, rows);
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < nodes; i++)
            slow_nodes_add(slow, i, row, 1e-3 * pow(10, (double)(row % 5)) * exp(exponents[i]));
    return slow;
}

static struct slow_node_score scores[16384];

/* The scores of nodes of one kind that are so far off. */
static void score(size_t nodes, size_t rows, const double *exponents) {
    struct slow_nodes *slow = measure(nodes, rows, exponents);
    slow_nodes_score(slow, alike, 1, scores);
    slow_nodes_free(slow);
}

static void expect_slow(size_t nodes, size_t slow) { /* that one, and no other */
    for (size_t i = 0; i < nodes; i++)
        assert_int_equal(scores[i].slow, i == slow);
}

TEST(scores_by_hand) {
    static const double off[NODES] = {-0.01, 0, 0.01, 0.02, 0.5};
    score(NODES, 5, off);
    /* The median of every row is the third node's; the deviations are -0.02 -0.01 0 0.01 0.49 in every row,
     * and so are the scores. Their median is 0, their absolute deviations 0 0.01 0.01 0.02 0.49. */
    static const double expected[NODES] = {-0.02, -0.01, 0, 0.01, 0.49};
    for (size_t i = 0; i < NODES; i++) {
        assert_float_equal(scores[i].score, expected[i], 1e-12);
        assert_float_equal(scores[i].spread, 0.014826, 1e-12);
        assert_int_equal(scores[i].rows, 5);
        assert_int_equal(scores[i].slow, i == 4);
    }
}

TEST(limit_is_three_and_a_half_spreads) {
    /* The spread is 1.4826 * 0.05 = 0.07413, three and a half of them 0.259455. */
    double off[NODES] = {-0.1, -0.05, 0, 0.05, 0.2594};
    score(NODES, 6, off);
    assert_false(scores[4].slow);
    off[4] = 0.2595;
    score(NODES, 6, off);
    assert_true(scores[4].slow);
    /* A node that is faster by as much is not named. */
    off[4] = -0.9;
    score(NODES, 6, off);
    expect_slow(NODES, SIZE_MAX);
}

TEST(without_spread_two_percent_count) {
    double off[4] = {0, 0, 0, 0.0199};
    score(4, 5, off);
    assert_float_equal(scores[3].spread, 0, 1e-12);
    assert_false(scores[3].slow);
    off[3] = 0.0201;
    score(4, 5, off);
    assert_true(scores[3].slow);
}

TEST(even_number_of_nodes) {
    /* Row medians lie between the second and third: 0.01; scores -0.02 -0.01 0.01 0.05, their median 0,
     * absolute deviations 0.01 0.01 0.02 0.05, the median of them 0.015. */
    static const double off[4] = {-0.01, 0, 0.02, 0.06};
    score(4, 7, off);
    assert_float_equal(scores[0].score, -0.02, 1e-12);
    assert_float_equal(scores[3].score, 0.05, 1e-12);
    assert_float_equal(scores[3].spread, 1.4826 * 0.015, 1e-12);
    assert_false(scores[3].slow); /* 0.05 is less than 3.5 * 0.022239 = 0.0778 */
}

/* Two clusters, of which one is 40 % slower, and in each one node that is 20 % slower than its cluster. */
TEST(kinds_are_compared_with_themselves) {
    static const double off[9] = {0, 0.4, 0.001, 0.2, 0.401, 0.002, 0.402, 0.003, 0.6};
    static const uint32_t kinds[9] = {0, 1, 0, 0, 1, 0, 1, 0, 1};
    struct slow_nodes *slow = measure(9, 6, off);
    slow_nodes_score(slow, kinds, 2, scores);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(scores[i].slow, i == 3 || i == 8);
        assert_int_equal(scores[i].nodes, kinds[i] ? 4 : 5);
    }
    assert_float_equal(scores[3].score, 0.198, 1e-12);
    assert_float_equal(scores[8].score, 0.1985, 1e-12);
    /* As one kind, nobody stands out. */
    slow_nodes_score(slow, alike, 1, scores);
    expect_slow(9, SIZE_MAX);
    /* Three of a kind are too few to say anything of. */
    static const uint32_t few[9] = {0, 1, 0, 0, 1, 0, 1, 0, 2};
    slow_nodes_score(slow, few, 3, scores);
    assert_true(scores[3].slow);
    assert_float_equal(scores[1].score, 0, 0);
    assert_float_equal(scores[8].score, 0, 0);
    slow_nodes_free(slow);
}

TEST(too_little_says_nothing) {
    static const double off[NODES] = {0, 0.001, 0.002, 0.9, 0.003};
    score(NODES, 4, off); /* rows */
    for (size_t i = 0; i < NODES; i++) {
        assert_false(scores[i].slow);
        assert_float_equal(scores[i].score, 0, 0);
    }
    static const double three[3] = {0, 0.001, 0.9};
    score(3, 20, three); /* nodes */
    expect_slow(3, SIZE_MAX);
}

TEST(means_over_cores_and_medians_over_rows) {
    struct slow_nodes *slow = slow_nodes_new(NODES, 5);
    for (size_t row = 0; row < 5; row++)
        for (size_t i = 0; i < NODES; i++) {
            slow_nodes_add(slow, i, row, exp(0.01 * (double)i - 1)); /* two cores: the mean of the logs */
            slow_nodes_add(slow, i, row, exp(0.01 * (double)i + 1));
        }
    for (size_t row = 0; row < 2; row++) /* in two rows of five somebody disturbed the first */
        slow_nodes_add(slow, 0, row, 1e6);
    slow_nodes_score(slow, alike, 1, scores);
    assert_float_equal(scores[0].score, -0.02, 1e-12);
    assert_float_equal(scores[4].score, 0.02, 1e-12);
    expect_slow(NODES, SIZE_MAX);
    slow_nodes_free(slow);
}

TEST(nodes_come_and_go) {
    static const double off[NODES] = {-0.01, 0, 0.01, 0.02, 0.5};
    struct slow_nodes *slow = measure(NODES, 5, off);
    slow_nodes_add(slow, 0, 5, 1); /* a row that is not kept, a node that is none, times that are none */
    slow_nodes_add(slow, NODES, 0, 1);
    slow_nodes_add(slow, 0, 0, 0);
    slow_nodes_add(slow, 0, 0, -1);
    slow_nodes_add(slow, 0, 0, NAN);
    slow_nodes_add(slow, 0, 0, INFINITY);
    slow_nodes_score(slow, alike, 1, scores);
    assert_true(scores[4].slow);
    assert_float_equal(scores[0].score, -0.02, 1e-12);
    slow_nodes_forget(slow, 4);
    slow_nodes_score(slow, alike, 1, scores);
    assert_int_equal(scores[4].rows, 0);
    assert_false(scores[4].slow);
    assert_int_equal(scores[3].rows, 5); /* four are left, which is enough */
    slow_nodes_forget(slow, 3);
    slow_nodes_score(slow, alike, 1, scores);
    assert_int_equal(scores[0].rows, 0); /* and three are not */
    slow_nodes_free(slow);
}

TEST(memory_is_bounded) {
    /* Row 4,095 is the last that is kept; with 16,384 nodes 64 MiB hold 256 rows. */
    struct slow_nodes *slow = slow_nodes_new(4, 1000000);
    for (size_t i = 0; i < 4; i++)
        for (size_t row = 4091; row < 4100; row++)
            slow_nodes_add(slow, i, row, 1);
    slow_nodes_score(slow, alike, 1, scores);
    assert_int_equal(scores[0].rows, 5);
    slow_nodes_free(slow);
    slow = slow_nodes_new(16384, 1000000);
    for (size_t i = 0; i < 4; i++)
        for (size_t row = 250; row < 300; row++)
            slow_nodes_add(slow, i, row, 1);
    slow_nodes_score(slow, alike, 1, scores);
    assert_int_equal(scores[0].rows, 6);
    slow_nodes_free(slow);
    slow_nodes_free(NULL);
}
