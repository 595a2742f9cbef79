/* Sensitivities of the replay beside replays with one cost changed by 1 %. The plugin's sources are included:
 * what is tested is inside it. */
#include "plugins/predict-hpl-replay/broadcast.c"
#include "plugins/predict-hpl-replay/events.c"
#include "plugins/predict-hpl-replay/factorisation.c"
#include "plugins/predict-hpl-replay/hpl.c"
#include "plugins/predict-hpl-replay/long-broadcast.c"
#include "plugins/predict-hpl-replay/messages.c"
#include "plugins/predict-hpl-replay/network.c"
#include "plugins/predict-hpl-replay/replay.c"
#include "plugins/predict-hpl-replay/script.c"
#include "plugins/predict-hpl-replay/sensitivities.c"
#include "plugins/predict-hpl-replay/swap.c"
#include "plugins/predict-hpl-replay/trace.c"
#include "tests/test.h"

enum { NODES_MAX = 16, COSTS = SENSITIVITY_NODES + NODES_MAX, N = 1000, NB = 50, P = 4, Q = 4 };

static double factors[COSTS]; /* of costs */
static double noise;
static uint64_t seed;
static int node_of[P * Q];

static double random_of(uint64_t x) {
    x += 0x9e3779b97f4a7c15u * (seed + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)(x >> 11) * 0x1p-53;
}

/* 0.2 us, and 0.1 ns for each product of sizes; up to `noise` more. Nodes differ by 7 %. */
static void work(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                 const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    for (size_t i = 0; i < count; i++) {
        double products = (double)m[i] * (n > 0 ? n : 1) * (k > 0 ? k : 1), node = node_of[ranks[i]];
        ret[i] = (2e-7 + 1e-10 * products) * (1 + noise * random_of(ranks[i] << 32 | numbers[i])) *
                 factors[SENSITIVITY_KERNELS + kernel] * factors[SENSITIVITY_NODES + node_of[ranks[i]]] *
                 (1 + 0.07 * fmod(5 * node, 7));
    }
}

static struct network_model network_of(void) {
    struct network_model network = {
        .segments = {[NETWORK_REMOTE] = {{-1, {1e-6, 1e-6, 1e-6}, {1e-10, 1e-10, 1e-10}, 1e-5, 1e9, 1},
                                         {8192, {1e-6, 1e-6, 1e-6}, {1e-10, 1e-10, 1e-10}, 2e-5, 3e9, 1}},
                     [NETWORK_LOOPBACK] = {{-1, {1e-7, 1e-7, 1e-7}, {0}, 1e-6, 1e10, 1}}},
        .counts = {2, 1},
        .eager_below = 65536,
        .detached_below = 65536,
        .card = 5e9 / factors[SENSITIVITY_BANDWIDTH] / factors[SENSITIVITY_CARD],
        .rate = 3e9 / factors[SENSITIVITY_BANDWIDTH],
        .envelope = 16};
    for (int path = 0; path < NETWORK_PATHS; path++)
        for (int i = 0; i < network.counts[path]; i++) {
            struct network_segment *segment = &network.segments[path][i];
            bool is_remote = path == NETWORK_REMOTE;
            segment->latency *= factors[is_remote ? SENSITIVITY_LATENCY : SENSITIVITY_LOCAL_LATENCY];
            segment->rate /= factors[is_remote ? SENSITIVITY_BANDWIDTH : SENSITIVITY_LOCAL_BANDWIDTH];
            for (int cost = 0; cost < NETWORK_COSTS; cost++) {
                segment->fixed[cost] *= factors[SENSITIVITY_CALLS];
                segment->per_byte[cost] *= factors[SENSITIVITY_CALLS];
            }
        }
    return network;
}

/* The time of HPL with the factors as they are; RET_VECTOR: what its last process has, or NULL. */
static double replay(const struct hpl *hpl, int each, double *ret_vector) {
    static int pivots[N];
    struct hpl scenario = *hpl;
    struct network_model network = network_of();
    struct replay_machine machine = {.network = &network,
                                     .nodes = P * Q / each,
                                     .node_of = node_of,
                                     .probe = 1e-7 * factors[SENSITIVITY_PROBES]};
    struct trace trace;
    struct sensitivities s;
    struct replay_times times;
    hpl_draw_pivots(N, 1, pivots);
    scenario.pivots = pivots;
    for (int i = 0; i < P * Q; i++)
        node_of[i] = i / each;
    for (int i = 0; i < HPL_KERNELS; i++)
        machine.kernel[i] = i == HPL_DCOPY ? NULL : work;
    assert_ok(trace_init(&trace, P * Q));
    assert_ok(sensitivities_init(&s, &machine, P * Q));
    trace.sensitivities = ret_vector ? &s : NULL;
    assert_ok(replay_run(&scenario, &machine, &(struct replay_observer){.trace = &trace}, &times));
    if (ret_vector)
        memcpy(ret_vector, sensitivities_last(&s, P * Q), (size_t)s.width * sizeof *ret_vector);
    for (int half = 0; ret_vector && half < 2; half++) {
        const double *vector = s.ranks + half * s.width;
        double sum = 0;
        for (int i = SENSITIVITY_LATENCY; i < SENSITIVITY_NODES; i++)
            sum += i == SENSITIVITY_CARD ? 0 : vector[i];
        assert_float_equal(sum, s.ranks[0], 1e-9 * times.time);
    }
    trace_clear(&trace);
    sensitivities_clear(&s);
    return times.time;
}

/* By how much the time changes for each of 100 % more of COST, by a replay with SHARE more. */
static double change_of(const struct hpl *hpl, int each, int cost, double share, double time) {
    factors[cost] = 1 + share;
    double ret = (replay(hpl, each, NULL) - time) / share;
    factors[cost] = 1;
    return ret;
}

/* The sensitivity to each cost is that of a replay with 1 % more of it: within 5 % of the difference, or 1e-4
 * of the time. With 1 % more, another node may become the one that is waited for: that of a node is between
 * the differences with 1 % more and 1 % less. */
static void check_all(const struct hpl *hpl, int each) {
    double vector[COSTS], time = replay(hpl, each, vector);
    for (int i = SENSITIVITY_LATENCY; i < SENSITIVITY_NODES + P * Q / each; i++) {
        double more = change_of(hpl, each, i, 0.01, time), less = more;
        if (i >= SENSITIVITY_NODES)
            less = change_of(hpl, each, i, -0.01, time);
        double low = fmin(more, less), high = fmax(more, less);
        if (vector[i] < low - fmax(0.05 * fabs(low), 1e-4 * time) ||
            vector[i] > high + fmax(0.05 * fabs(high), 1e-4 * time))
            fail_msg("broadcast %d, look-ahead %d, swap %d, %d processes a node, noise %g: cost %d has %g s; "
                     "a replay "
                     "with 1 %% more says %g s",
                     (int)hpl->bcast, hpl->depth, (int)hpl->swap, each, noise, i, vector[i], more);
    }
}

static void reset(void) {
    for (int i = 0; i < COSTS; i++)
        factors[i] = 1;
    seed = 0;
    noise = 0;
}

static struct hpl hpl_of(enum hpl_broadcast bcast, int depth) {
    return (struct hpl){.n = N,
                        .nb = NB,
                        .p = P,
                        .q = Q,
                        .depth = depth,
                        .bcast = bcast,
                        .nbmin = 4,
                        .ndiv = 2,
                        .rfact = HPL_RIGHT,
                        .pfact = HPL_CROUT,
                        .equilibrate = true};
}

TEST(sensitivities_are_those_of_changed_replays) {
    reset();
    for (int setting = 0; setting < 12; setting++) {
        struct hpl hpl = hpl_of(setting % 2 ? HPL_LONG : HPL_LONGM, setting / 2 % 2);
        hpl.swap = setting % 3;
        noise = setting / 6 * 0.1;
        check_all(&hpl, 2 << setting % 3);
    }
}

/* With a ring, a panel is found after one piece of an update or the next, and the calls after that have other
 * noise: a replay with 1 % more differs by chance, the mean over seeds does not. */
TEST(with_probes_the_mean_is_that_of_changed_replays) {
    enum { SEEDS = 16 };
    static const int costs[] = {SENSITIVITY_LATENCY, SENSITIVITY_BANDWIDTH, SENSITIVITY_CALLS,
                                SENSITIVITY_KERNELS + HPL_DGEMM};
    reset();
    noise = 0.1;
    for (size_t i = 0; i < 2 * sizeof costs / sizeof *costs; i++) {
        struct hpl hpl = hpl_of(HPL_2RING, i % 2);
        double sum = 0, change = 0, vector[COSTS];
        for (seed = 0; seed < SEEDS; seed++) {
            double time = replay(&hpl, 4, vector);
            sum += vector[costs[i / 2]];
            change += change_of(&hpl, 4, costs[i / 2], 0.01, time);
        }
        assert_float_equal(sum, change, 0.05 * fabs(change));
    }
}
