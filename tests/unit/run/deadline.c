/* The arithmetic of a deadline: which one counts, what must be left, and how long that is. */
#include "engine/run/nodes/deadline.h"
#include "tests/test.h"

static const int64_t second = 1000000000;

TEST(the_earliest_counts) {
    struct deadline deadline = {.margin_ns = 0};
    int64_t wall = 1700000000 * second, now = 5000 * second;
    assert_int_equal(deadline_left_ns(&deadline, now), INT64_MAX);
    assert_true(deadline_consider(&deadline, DEADLINE_UNTIL, wall + 100 * second, wall, now));
    assert_int_equal(deadline.end_ns, now + 100 * second);
    assert_false(deadline_consider(&deadline, DEADLINE_TESTBED, wall + 200 * second, wall, now));
    assert_int_equal(deadline.source, DEADLINE_UNTIL);
    assert_int_equal(deadline.wall_ns, wall + 100 * second);
    /* The wall clock was set back by an hour meanwhile: what was known is known by the other clock. */
    int64_t later = now + 10 * second;
    assert_true(
        deadline_consider(&deadline, DEADLINE_TESTBED, wall - 3550 * second, wall - 3600 * second, later));
    assert_int_equal(deadline.end_ns, later + 50 * second);
    assert_int_equal(deadline_left_ns(&deadline, later), 50 * second);
    /* One that is over. */
    assert_true(deadline_consider(&deadline, DEADLINE_WALLTIME, wall - second, wall, now));
    assert_int_equal(deadline_left_ns(&deadline, now), -second);
}

/* A testbed that lends the nodes for longer, in steps, up to where another source says that it is over. */
TEST(what_a_source_says_last_counts) {
    struct deadline deadline = {.margin_ns = 0};
    int64_t wall = 1700000000 * second, now = 5000 * second;
    assert_true(deadline_consider(&deadline, DEADLINE_TESTBED, wall + 100 * second, wall, now));
    assert_false(deadline_consider(&deadline, DEADLINE_WALLTIME, wall + 300 * second, wall, now));
    assert_true(deadline_consider(&deadline, DEADLINE_TESTBED, wall + 200 * second, wall, now));
    assert_int_equal(deadline_left_ns(&deadline, now), 200 * second);
    /* The same again is not new, whatever has happened to the wall clock. */
    assert_false(
        deadline_consider(&deadline, DEADLINE_TESTBED, wall + 200 * second, wall - 50 * second, now));
    assert_true(deadline_consider(&deadline, DEADLINE_TESTBED, wall + 400 * second, wall, now));
    assert_int_equal(deadline.source, DEADLINE_WALLTIME);
    assert_int_equal(deadline.wall_ns, wall + 300 * second);
    assert_true(deadline_consider(&deadline, DEADLINE_TESTBED, wall + 50 * second, wall, now));
    assert_int_equal(deadline.source, DEADLINE_TESTBED);
    assert_int_equal(deadline_left_ns(&deadline, now), 50 * second);
}

TEST(the_reserve_is_what_was_measured) {
    struct deadline deadline = {.margin_ns = 0};
    assert_int_equal(deadline_reserve_ns(&deadline), 0);
    deadline_took(&deadline, DEADLINE_RESTORE, 3 * second);
    deadline_took(&deadline, DEADLINE_RESTORE, 2 * second); /* the longest counts */
    deadline_took(&deadline, DEADLINE_COLLECT, 1 * second);
    deadline_took(&deadline, DEADLINE_TEARDOWN, 4 * second);
    assert_int_equal(deadline_reserve_ns(&deadline), 8 * second);
    /* Sealing at 20 MB/s and 1000 files/s. */
    deadline_set_size(&deadline, 40000000, 1000);
    assert_int_equal(deadline_reserve_ns(&deadline), 8 * second + 2 * second + second);
    deadline_consider(&deadline, DEADLINE_UNTIL, 100 * second, 0, 0);
    assert_int_equal(deadline_left_ns(&deadline, 10 * second), 79 * second);
}

TEST(the_margin) {
    struct deadline deadline = {.margin_ns = -1};
    assert_int_equal(deadline_reserve_ns(&deadline), 5 * second); /* at least */
    assert_int_equal(deadline_grace_ns(&deadline), 5 * second / 2);
    deadline_took(&deadline, DEADLINE_RESTORE, 200 * second);
    assert_int_equal(deadline_margin_ns(&deadline), 20 * second); /* a tenth */
    assert_int_equal(deadline_reserve_ns(&deadline), 220 * second);
    deadline.margin_ns = 7 * second;
    assert_int_equal(deadline_reserve_ns(&deadline), 207 * second);
    assert_int_equal(deadline_grace_ns(&deadline), 7 * second / 2);
}

TEST(nothing_overflows) {
    struct deadline deadline = {.margin_ns = -1};
    for (int cost = 0; cost < DEADLINE_SEAL; cost++)
        deadline_took(&deadline, (enum deadline_cost)cost, INT64_MAX);
    deadline_set_size(&deadline, UINT64_MAX, UINT64_MAX);
    assert_true(deadline_reserve_ns(&deadline) > 0);
    deadline_consider(&deadline, DEADLINE_UNTIL, 100 * second, 0, 0);
    assert_true(deadline_left_ns(&deadline, 10 * second) < 0);
}
