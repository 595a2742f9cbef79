/* When a row is known well enough: groups, intervals and verdicts, against numbers worked out by hand. */
#include "engine/run/measure/stopping-rule.h"
#include "tests/test.h"

enum { ROWS = 3, BOTH = DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK };

/* t of 95 %, by degrees of freedom. */
static const double t[] = {0, 12.7062047361747, 4.30265272974946, 3.18244630528371};

static struct stopping_rule *rule; /* of the test */

static void make(unsigned between, uint64_t at_least) {
    struct design_repeat repeat = {.wanted = true,
                                   .ci = 0.02,
                                   .confidence = 0.95,
                                   .at_least = at_least,
                                   .at_most = 100,
                                   .between = between};
    stopping_rule_free(rule);
    rule = stopping_rule_new(&repeat, ROWS);
}

static int end(void **state) {
    stopping_rule_free(rule);
    rule = NULL;
    return 0;
}
TEST_EACH(NULL, end)

/* Each on another core. */
static void take(size_t row, size_t repetition, const char *node, double value) {
    static unsigned number;
    char core[16];
    snprintf(core, sizeof core, "%u", number++);
    struct stopping_value one = {row, repetition, node, core, value};
    assert_int_equal(stopping_rule_add(rule, &one), 0);
}

/* On the same core, attempt after attempt. */
static void take_again(size_t repetition, double value) {
    struct stopping_value one = {0, repetition, "a", "again", value};
    assert_int_equal(stopping_rule_add(rule, &one), 0);
}

static void near(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected) || found == expected))
        fail_msg("%.17g, expected %.17g", found, expected);
}

/* What is known of ROW when the repetitions before BEFORE are over. */
static void check(size_t row, size_t before, size_t groups, double mean, double half_width) {
    stopping_rule_close(rule, before);
    struct stopping_estimate estimate = stopping_rule_estimate(rule, row);
    assert_int_equal(estimate.groups, groups);
    near(estimate.mean, mean);
    near(estimate.half_width, half_width);
    near(estimate.relative, half_width == 0 ? 0 : half_width / fabs(mean));
}

static void check_few(size_t row, size_t groups) {
    stopping_rule_close(rule, SIZE_MAX);
    struct stopping_estimate estimate = stopping_rule_estimate(rule, row);
    assert_int_equal(estimate.groups, groups);
    assert_true(isnan(estimate.half_width) && isnan(estimate.relative) && !estimate.narrow);
    assert_int_equal(isnan(estimate.mean), groups == 0);
}

/* ---- Groups */

TEST(between_blocks) {
    make(DESIGN_BETWEEN_BLOCK, 2);
    static const double values[] = {101, 99, 101, 99};
    check_few(0, 0);
    for (size_t i = 0; i < 4; i++) {
        take(0, i, "a", values[i] - 1); /* the group is the mean of both nodes */
        take(0, i, "b", values[i] + 1);
        if (i == 0)
            check_few(0, 1);
        if (i == 1)
            check(0, 2, 2, 100, t[1] * 1);
        if (i == 2)
            check(0, 3, 3, 301.0 / 3, t[2] * 2 / 3);
    }
    check(0, 3, 3, 301.0 / 3, t[2] * 2 / 3); /* without the last, which is not over */
    check(0, 4, 4, 100, t[3] / sqrt(3));
    check_few(1, 0);
}

TEST(between_nodes_and_blocks) {
    make(BOTH, 2);
    take(0, 0, "a", 10); /* two cores of a, three of b: 11 and 9 */
    take(0, 0, "b", 8);
    take(0, 0, "a", 12);
    take(0, 0, "b", 10);
    take(0, 0, "b", 9);
    take(1, 0, "b", 5);
    check(0, 1, 2, 10, t[1] * 1);
    take(0, 1, "b", 7);
    take(0, 1, "a", 13);
    check(0, 1, 2, 10, t[1] * 1); /* the second repetition is not over */
    assert_int_equal(stopping_rule_estimate(rule, 0).repetitions, 1);
    check(0, 2, 4, 10, t[3] * sqrt(20.0 / 3 / 4));
    assert_int_equal(stopping_rule_estimate(rule, 0).repetitions, 2);
    check_few(1, 1);
}

TEST(between_nodes) {
    make(DESIGN_BETWEEN_NODE, 2);
    for (size_t i = 0; i < 50; i++)
        take(2, i, "a", i % 2 ? 20 : 10);
    check_few(2, 1); /* however many repetitions there are on one node */
    take(0, 0, "a", 10);
    take(0, 0, "a", 12);
    take(0, 0, "b", 9);
    take(0, 1, "a", 14); /* 12 in all */
    take(0, 1, "b", 7);  /* 8 in all */
    check(0, 1, 2, 10, t[1] * 1);
    check(0, 2, 2, 10, t[1] * 2);
    take(0, 2, "c", 10);
    check(0, 3, 3, 10, t[2] * sqrt(8.0 / 2 / 3));
}

/* A node is its name, wherever that text stands. */
TEST(node_names) {
    make(BOTH, 2);
    char name[8] = "n-1", same[8] = "n-1";
    take(0, 0, name, 1);
    take(0, 0, same, 3);
    snprintf(name, sizeof name, "n-2");
    take(0, 0, name, 4);
    check(0, 1, 2, 3, t[1] * 1);
}

/* ---- Attempts */

TEST(the_last_attempt_counts) {
    make(DESIGN_BETWEEN_BLOCK, 2);
    take_again(0, 1000);
    take_again(0, 2000);
    take_again(0, 9);
    take_again(1, 11);
    check_few(1, 0);
    check(0, 2, 2, 10, t[1] * 1);
    stopping_rule_close(rule, 2); /* not twice */
    check(0, 2, 2, 10, t[1] * 1);
}

/* Many units wait at once, and only some are measured again. */
TEST(many_attempts) {
    make(BOTH, 2);
    enum { CORES = 5000 };
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t core = 0; core < CORES; core += 1 + pass) {
            char number[16];
            snprintf(number, sizeof number, "%zu", core);
            struct stopping_value value = {0, 0, "a", number, pass ? 4 : 8};
            assert_int_equal(stopping_rule_add(rule, &value), 0);
        }
    stopping_rule_close(rule, 1);
    assert_int_equal(stopping_rule_estimate(rule, 0).groups, 1);
    near(stopping_rule_estimate(rule, 0).mean, 6);
}

/* A unit that failed, and was tried again when others were further. */
TEST(late) {
    make(DESIGN_BETWEEN_BLOCK, 2);
    for (size_t repetition = 0; repetition < 2; repetition++)
        take(0, repetition, "a", repetition ? 11 : 9);
    stopping_rule_close(rule, 2);
    take(0, 0, "b", 1e6);
    check(0, 2, 2, 10, t[1] * 1);
    assert_int_equal(stopping_rule_estimate(rule, 0).repetitions, 2);
    make(DESIGN_BETWEEN_NODE, 2);
    for (size_t repetition = 0; repetition < 2; repetition++) {
        take(0, repetition, "a", repetition ? 11 : 9);
        take(0, repetition, "b", 14);
    }
    stopping_rule_close(rule, 2);
    take(0, 0, "a", 16); /* a: 12 */
    check(0, 2, 2, 13, t[1] * 1);
}

/* ---- Verdicts */

TEST(settles) {
    make(DESIGN_BETWEEN_BLOCK, 2);
    for (size_t i = 0; i < 4; i++) {
        stopping_rule_close(rule, i);
        assert_false(stopping_rule_settle(rule, 0, i));
        assert_false(stopping_rule_skips(rule, 0, i));
        take(0, i, "a", i % 2 ? 99 : 101);
        take(1, i, "a", i % 2 ? 90 : 110);
    }
    assert_int_equal(stopping_rule_settled_count(rule), 0);
    stopping_rule_close(rule, 4);
    assert_int_equal(stopping_rule_settle(rule, 0, 4), 4); /* 1.84 % */
    assert_false(stopping_rule_settle(rule, 0, 4));
    assert_false(stopping_rule_settle(rule, 1, 4));
    assert_true(stopping_rule_is_settled(rule, 0));
    assert_false(stopping_rule_is_settled(rule, 1));
    assert_int_equal(stopping_rule_settled_count(rule), 1);
    assert_false(stopping_rule_skips(rule, 0, 3)); /* what is owed of an earlier one still is */
    assert_true(stopping_rule_skips(rule, 0, 4));
    assert_true(stopping_rule_skips(rule, 0, 70));
    assert_false(stopping_rule_skips(rule, 1, 4));
}

/* The bound itself is narrow enough. */
TEST(at_the_bound) {
    for (int i = -1; i <= 1; i++) {
        make(DESIGN_BETWEEN_BLOCK, 2);
        double off = 0.02 * 100 / t[1] * (1 + i * 1e-9);
        take(0, 0, "a", 100 - off);
        take(0, 1, "a", 100 + off);
        stopping_rule_close(rule, 2);
        if (i)
            assert_int_equal(stopping_rule_settle(rule, 0, 2), i < 0 ? 2 : 0);
        near(stopping_rule_estimate(rule, 0).relative, 0.02 * (1 + i * 1e-9));
    }
}

TEST(equal_values) {
    make(BOTH, 4);
    static const double values[ROWS] = {0.1, 0, -1e300};
    for (size_t i = 0; i < 4; i++) {
        for (size_t row = 0; row < ROWS; row++) {
            stopping_rule_close(rule, i);
            assert_false(stopping_rule_settle(rule, row, i)); /* not before four repetitions */
            for (size_t core = 0; core < 7; core++) {
                take(row, i, "a", values[row]);
                take(row, i, "b", values[row]);
            }
        }
    }
    for (size_t row = 0; row < ROWS; row++) {
        check(row, 4, 8, values[row], 0);
        assert_true(stopping_rule_settle(rule, row, 4));
    }
}

TEST(at_least_one) {
    make(BOTH, 1);
    take(0, 0, "a", 100);
    take(1, 0, "a", 100);
    take(1, 0, "b", 100);
    stopping_rule_close(rule, 1);
    assert_false(stopping_rule_settle(rule, 0, 1)); /* one group */
    assert_int_equal(stopping_rule_settle(rule, 1, 1), 1);
}

/* Values that are read again are there at once. */
TEST(settled_when_it_was) {
    make(DESIGN_BETWEEN_BLOCK, 2);
    for (size_t i = 0; i < 3; i++)
        take(0, i, "a", 100);
    take(1, 4, "a", 100);
    assert_int_equal(stopping_rule_settle(rule, 0, 0), 3);
    assert_false(stopping_rule_skips(rule, 0, 2));
}

TEST(mean_of_zero) {
    make(DESIGN_BETWEEN_BLOCK, 2);
    for (size_t i = 0; i < 2; i++)
        take(0, i, "a", i ? -1e-9 : 1e-9);
    stopping_rule_close(rule, 2);
    struct stopping_estimate estimate = stopping_rule_estimate(rule, 0);
    assert_true(estimate.mean == 0 && isinf(estimate.relative));
    assert_false(stopping_rule_settle(rule, 0, 2));
}

TEST(what_is_not_finite) {
    static const double bad[ROWS] = {NAN, INFINITY, 1.7e308};
    make(DESIGN_BETWEEN_BLOCK, 2);
    for (size_t i = 0; i < 10; i++)
        for (size_t row = 0; row < ROWS; row++)
            take(row, i, "a", i == 3 ? bad[row] : 100);
    for (size_t row = 0; row < ROWS; row++) {
        assert_false(stopping_rule_settle(rule, row, 10));
        assert_true(stopping_rule_estimate(rule, row).groups >= 3);
    }
}

TEST(far_from_zero) {
    make(DESIGN_BETWEEN_BLOCK, 2);
    static const double values[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    for (size_t i = 0; i < 4; i++)
        take(0, i, "a", values[i]);
    check(0, 4, 4, 1e9 + 10, t[3] * sqrt(30.0 / 4));
}
