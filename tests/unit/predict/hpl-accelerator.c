/* HPL on accelerators: equations (2) to (5) by hand, and what hides what. The plugin's source is included:
 * what is tested is inside it. */
#include "plugins/predict-hpl-accelerator/accelerator.c"
#include "tests/test.h"

static double gemm(void *context, double m, double n, double k) {
    return 2 * m * n * k * *(double *)context;
}

/* Two panels on 4 x 2 processes: N = 200, NB = 100. */
static const struct accelerator_scenario small = {
    200, 100, 4, 2, 2, 1e9, 2e9, ACCELERATOR_NO_OVERLAP, 0.5, {{1e-5, 1e9}, {1e-6, 1e10}}, 1, 1};
static double gamma3 = 1e-10;

static struct accelerator_time predict(struct accelerator_scenario scenario) {
    return accelerator_predict(&scenario, gemm, NULL, &gamma3);
}

static double sum(const struct accelerator_time *time) {
    return time->update + time->exposed_panels + time->exposed_swap;
}

TEST(published_equations) {
    struct accelerator_time time = predict(small);
    double fact[] = {2 * 50 * 1e4 / 1e9, 2 * 25 * 1e4 / 1e9};
    double sent[] = {2 * (1e-5 + 8 * (50 * 100 + 1e4 + 100 + 1) / 1e9),
                     2 * (1e-5 + 8 * (25 * 100 + 1e4 + 100 + 1) / 1e9)}; /* log2(2)/2 + 1/2 + 1 = 2 */
    double moved = (2 + 4 - 1) * 1e-5 + 100 / 1e9 * (2 / 2 + 2) * 8 * 50;
    double update = 2 * 25 * 50 * 100 * gamma3 + 50 * 1e4 / 2e9;
    assert_close(time.factorisation, fact[0] + fact[1], 1e-12, "factorisation");
    assert_close(time.broadcast, sent[0] + sent[1], 1e-12, "broadcast");
    assert_close(time.swap, moved, 1e-12, "swap");
    assert_close(time.update, update, 1e-12, "update");
    assert_close(sum(&time), time.factorisation + time.broadcast + moved + update, 1e-12,
                 "nothing is hidden");

    struct accelerator_scenario ahead = small;
    ahead.overlap = ACCELERATOR_LOOK_AHEAD;
    time = predict(ahead);
    assert_close(sum(&time), fact[0] + sent[0] + moved + fmax(update, fact[1] + sent[1]), 1e-12,
                 "look-ahead");

    struct accelerator_scenario alone = ahead;
    alone.p = alone.q = 1;
    time = predict(alone);
    assert_true(time.broadcast == 0 && time.swap == 0);
}

/* The split update hides swaps: half of the columns each are swapped while the others are updated. */
TEST(split_update) {
    struct accelerator_scenario s = {
        20000, 100, 4, 2, 1, 1e12, 1e11, ACCELERATOR_LOOK_AHEAD, 0.5, {{1e-6, 1e9}, {1e-6, 1e10}}, 1, 1};
    gamma3 = 1e-11;
    struct accelerator_time ahead = predict(s);
    s.overlap = ACCELERATOR_SPLIT;
    struct accelerator_time split = predict(s);
    assert_close(split.update, ahead.update, 1e-12, "update");
    assert_close(ahead.exposed_swap, ahead.swap, 1e-12, "exposed");
    assert_true(split.exposed_swap < 0.5 * ahead.exposed_swap &&
                split.exposed_panels <= ahead.exposed_panels);
    assert_true(sum(&split) >= split.update);
    s.split = 1; /* one part has all columns */
    struct accelerator_time whole = predict(s);
    assert_close(sum(&whole), sum(&ahead), 1e-12, "split of 1");
}

/* A grid within a node: its messages go over its own link, and those of its processes that leave it share the
 * network. */
TEST(node_local_grid) {
    struct accelerator_scenario s = small;
    s.node_rows = 4;
    struct accelerator_time time = predict(s);
    assert_close(time.swap, (2 + 4 - 1) * 1e-6 + 100 / 1e10 * (2 / 2 + 2) * 8 * 50, 1e-12,
                 "swap within a node");
    assert_close(time.broadcast, 2 * (1e-5 + 4 * 8 * 15101 / 1e9) + 2 * (1e-5 + 4 * 8 * 12601 / 1e9), 1e-12,
                 "four broadcasts over one card");
    s.node_columns = 2; /* all is one node */
    struct accelerator_time inside = predict(s);
    assert_close(inside.broadcast, 2 * (1e-6 + 8 * 15101 / 1e10) + 2 * (1e-6 + 8 * 12601 / 1e10), 1e-12,
                 "broadcast within a node");
    assert_true(inside.swap == time.swap);
}
