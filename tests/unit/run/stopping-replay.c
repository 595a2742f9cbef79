/* A run that ends anywhere, and goes on from the values that it left, measures what it would have measured.
 */
#include "engine/run/measure/stopping-rule.h"
#include "tests/test.h"

enum { ROWS = 6, NODES = 2, CORES = 2, ROUNDS = 12, TAKEN_MAX = ROWS * NODES * CORES * ROUNDS * 2 };

/* One measurement, in a few bits. */
struct step {
    size_t row, repetition, node, core;
    unsigned attempt;
    bool again;
};

struct tape {
    struct step steps[TAKEN_MAX];
    size_t count;
};

struct session {
    struct stopping_rule *rule;
    uint64_t seed;
    struct tape done; /* in this part and those before */
    size_t settled_at[ROWS];
};

static bool is_same_unit(const struct step *a, const struct step *b) {
    return a->row == b->row && a->repetition == b->repetition && a->node == b->node && a->core == b->core;
}

static bool is_same(const struct step *a, const struct step *b) {
    return is_same_unit(a, b) && a->attempt == b->attempt && a->again == b->again;
}

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Noise that grows with the row, so that some settle at once and some never. */
static double value_of(const struct session *session, const struct step *step) {
    uint64_t x = mix(session->seed ^ mix(step->row << 40 ^ step->repetition << 24 ^ step->node << 16 ^
                                         step->core << 8 ^ step->attempt));
    return 100 + ((double)(x >> 11) / 9007199254740992.0 - 0.5) * (double)step->row * 6;
}

/* One in eight is flagged, and is measured again twice at most. */
static bool is_flagged(const struct session *session, const struct step *step) {
    return step->attempt <= 2 && value_of(session, step) < 100 - (double)step->row * 2.25;
}

static void take(struct session *session, const struct step *step) {
    static const char *const nodes[] = {"n-1", "n-2"}, *const cores[] = {"0", "2"};
    struct stopping_value value = {.row = step->row,
                                   .repetition = step->repetition,
                                   .node = nodes[step->node],
                                   .core = cores[step->core],
                                   .value = value_of(session, step)};
    assert_int_equal(stopping_rule_add(session->rule, &value), 0);
    session->done.steps[session->done.count++] = *step;
}

/* The last attempt at a unit that is done, or NULL. */
static const struct step *find_last(const struct session *session, const struct step *unit) {
    for (size_t i = session->done.count; i-- > 0;)
        if (is_same_unit(&session->done.steps[i], unit))
            return &session->done.steps[i];
    return NULL;
}

/* One pass over the units of a round; false when LIMIT was reached. ATTEMPT: of those that it makes. */
static bool run_pass(struct session *session, size_t round, unsigned attempt, size_t limit) {
    for (size_t row = 0; row < ROWS; row++) {
        if (stopping_rule_skips(session->rule, row, round))
            continue;
        for (size_t place = 0; place < (size_t)NODES * CORES; place++) {
            struct step step = {.row = row,
                                .repetition = round,
                                .node = place / CORES,
                                .core = place % CORES,
                                .attempt = attempt};
            const struct step *last = find_last(session, &step);
            bool owed = attempt == 1 ? !last : last && last->again && last->attempt == attempt - 1;
            if (!owed)
                continue;
            if (session->done.count == limit)
                return false;
            step.again = is_flagged(session, &step);
            take(session, &step);
        }
    }
    return true;
}

static void settle(struct session *session, size_t before) {
    stopping_rule_close(session->rule, before);
    for (size_t row = 0; row < ROWS; row++) {
        size_t from = stopping_rule_settle(session->rule, row, before);
        if (from > 0)
            session->settled_at[row] = from;
    }
}

/* Measures until LIMIT units are done; a part that is not the first asks at the beginning of each block. */
static void go_on(struct session *session, bool is_first_part, size_t limit) {
    for (size_t round = 0; round < ROUNDS; round++) {
        if (!is_first_part)
            settle(session, round);
        for (unsigned attempt = 1; attempt <= 3; attempt++)
            if (!run_pass(session, round, attempt, limit))
                return;
        settle(session, round + 1);
    }
}

static void begin(struct session *session, uint64_t seed, unsigned between) {
    struct design_repeat repeat = {
        .ci = 0.02, .confidence = 0.95, .at_least = 2, .at_most = ROUNDS, .between = between};
    *session = (struct session){.seed = seed};
    session->rule = stopping_rule_new(&repeat, ROWS);
}

static void check_cuts(uint64_t seed, unsigned between) {
    static struct session whole, cut, next;
    begin(&whole, seed, between);
    go_on(&whole, true, SIZE_MAX);
    for (size_t limit = 0; limit <= whole.done.count; limit++) {
        begin(&cut, seed, between);
        go_on(&cut, true, limit);
        assert_int_equal(cut.done.count, limit);
        begin(&next, seed, between);
        for (size_t i = 0; i < limit; i++)
            take(&next, &cut.done.steps[i]);
        go_on(&next, false, SIZE_MAX);
        assert_int_equal(next.done.count, whole.done.count);
        assert_memory_equal(next.settled_at, whole.settled_at, sizeof whole.settled_at);
        for (size_t row = 0; row < ROWS; row++) {
            struct stopping_estimate a = stopping_rule_estimate(whole.rule, row),
                                     b = stopping_rule_estimate(next.rule, row);
            assert_int_equal(a.groups, b.groups);
            assert_memory_equal(&a.mean, &b.mean, sizeof a.mean);
            assert_memory_equal(&a.half_width, &b.half_width, sizeof a.half_width);
        }
        for (size_t i = limit; i < whole.done.count; i++)
            assert_true(is_same(&next.done.steps[i], &whole.done.steps[i]));
        stopping_rule_free(cut.rule);
        stopping_rule_free(next.rule);
    }
    /* The story has all there is: rows that settle early, late and never, and units that are repeated. */
    size_t repeats = 0, settled = 0;
    for (size_t i = 0; i < whole.done.count; i++)
        repeats += whole.done.steps[i].attempt > 1;
    for (size_t row = 0; row < ROWS; row++)
        settled += whole.settled_at[row] > 0;
    assert_true(repeats > 5);
    assert_true(whole.settled_at[0] == 2);
    if (between & DESIGN_BETWEEN_BLOCK)
        assert_true(settled > 2);
    stopping_rule_free(whole.rule);
}

TEST(between_blocks) {
    check_cuts(1, DESIGN_BETWEEN_BLOCK);
}

TEST(between_nodes) {
    check_cuts(2, DESIGN_BETWEEN_NODE);
}

TEST(between_both) {
    check_cuts(3, DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK);
}
