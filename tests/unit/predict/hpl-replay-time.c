/* The replay's virtual time: shares of network cards, protocols of messages, and whole runs whose time is
 * known by hand or does not depend on something. The plugin's sources are included: what is tested is inside
 * it. */
#include "plugins/predict-hpl-replay/broadcast.c"
#include "plugins/predict-hpl-replay/events.c"
#include "plugins/predict-hpl-replay/factorisation.c"
#include "plugins/predict-hpl-replay/hpl.c"
#include "plugins/predict-hpl-replay/long-broadcast.c"
#include "plugins/predict-hpl-replay/messages.c"
#include "plugins/predict-hpl-replay/network.c"
#include "plugins/predict-hpl-replay/replay.c"
#include "plugins/predict-hpl-replay/sampled.c"
#include "plugins/predict-hpl-replay/script.c"
#include "plugins/predict-hpl-replay/sensitivities.c"
#include "plugins/predict-hpl-replay/swap.c"
#include "plugins/predict-hpl-replay/trace.c"
#include "tests/test.h"

/* 10 us and 1 GB/s between nodes, 1 us and 10 GB/s within one. */
static const struct network_model plain = {.segments = {[NETWORK_REMOTE] = {{-1, {0}, {0}, 1e-5, 1e9, 1}},
                                                        [NETWORK_LOOPBACK] = {{-1, {0}, {0}, 1e-6, 1e10, 1}}},
                                           .counts = {1, 1},
                                           .eager_below = 65536,
                                           .detached_below = 65536,
                                           .card = 1e9,
                                           .rate = 1e9};

TEST(messages_share_cards) {
    struct network *network = network_new(&plain, 4);
    assert_non_null(network);
    /* 1 GB from node 0 to 1; after 0.5 s as much to node 2: the card of node 0 is shared. The first ends
     * at 1.5 s, the second, which then is alone, at 2 s. A third from node 3 to 1 at 1.75 s shares with
     * nobody. */
    assert_ok(network_start(network, 0, 0, 1, 1e9, 10));
    assert_float_equal(network_next(network), 1, 1e-12);
    assert_ok(network_start(network, 0.5, 0, 2, 1e9, 11));
    assert_float_equal(network_next(network), 1.5, 1e-12);
    assert_float_equal(network_share(network, 0, 3, 1), 1e9 / 3, 1e-3);
    assert_int_equal(network_finish(network, 1.5), 10);
    assert_ok(network_start(network, 1.75, 3, 1, 1e9, 12));
    assert_float_equal(network_next(network), 2, 1e-12);
    assert_int_equal(network_finish(network, 2), 11);
    assert_float_equal(network_next(network), 2.75, 1e-12);
    assert_int_equal(network_finish(network, 2.75), 12);
    assert_true(isinf(network_next(network)));
    /* Of one stream the shorter message ends first. Two into one node share its card down. */
    assert_ok(network_start(network, 3, 0, 1, 3e9, 1));
    assert_ok(network_start(network, 3, 0, 1, 1e9, 2));
    assert_ok(network_start(network, 3, 2, 1, 1e9, 3));
    assert_float_equal(network_next(network), 6, 1e-12);
    int first = network_finish(network, 6), second = network_finish(network, network_next(network));
    assert_int_equal(first + second, 5);
    assert_float_equal(network_next(network), 8, 1e-12);
    assert_int_equal(network_finish(network, 8), 1);
    network_free(network);
}

/* Four leaf switches of two nodes, a cable from each to each of two spines. */
static struct network_model fat_tree(void) {
    struct network_model ret = plain;
    ret.tree = (struct network_tree){.leaf_nodes = 2, .spines = 2, .spine_cables = 1, .cable = 1e9};
    return ret;
}

TEST(messages_share_cables) {
    struct network_model model = fat_tree();
    struct network *network = network_new(&model, 8);
    assert_non_null(network);
    /* 1 GB each from node 0 to 2 and from 1 to 4: both go up to spine 0, and share its cable. A third from 1
     * to 3 goes up to spine 1, and shares the card of node 1. Nodes 0 and 1 need no cable. */
    assert_ok(network_start(network, 0, 0, 2, 1e9, 1));
    assert_float_equal(network_next(network), 1, 1e-12);
    assert_ok(network_start(network, 0, 1, 4, 1e9, 2));
    assert_float_equal(network_next(network), 2, 1e-12);
    assert_float_equal(network_share(network, 0, 6, 1), 1e9 / 3, 1e-3);
    assert_float_equal(network_share(network, 0, 7, 1), 5e8, 1e-3);
    assert_ok(network_start(network, 0, 1, 3, 1e9, 3));
    assert_float_equal(network_share(network, 4, 5, 1), 1e9, 1e-3);
    assert_float_equal(network_next(network), 2, 1e-12);
    int ids = network_finish(network, 2);
    ids += network_finish(network, network_next(network));
    ids += network_finish(network, network_next(network));
    assert_true(ids == 6 && isinf(network_next(network)));
    network_free(network);
    /* Without the cable of the first leaf switch to spine 0 its messages go by spine 1, in both directions;
     * others stay. */
    model.tree.cut_cables = 1;
    network = network_new(&model, 8);
    assert_ok(network_start(network, 0, 0, 3, 1e9, 1));
    assert_ok(network_start(network, 0, 1, 4, 1e9, 2));
    assert_ok(network_start(network, 0, 6, 0, 1e9, 3));
    assert_float_equal(network_share(network, 7, 1, 1), 5e8, 1e-3);
    assert_float_equal(network_share(network, 7, 2, 1), 1e9, 1e-3);
    assert_float_equal(network_next(network), 1, 1e-12);
    assert_int_equal(network_finish(network, 1), 3);
    assert_float_equal(network_next(network), 2, 1e-12);
    network_free(network);
}

/* Each route goes up and down by cables that are there, of the same spine. */
TEST(routes_pass_over_what_is_cut) {
    for (int cut = 0; cut < 3 * 4; cut++) {
        struct network_model model = plain;
        model.tree = (struct network_tree){
            .leaf_nodes = 5, .spines = 3, .spine_cables = 4, .cut_cables = cut, .cable = 1e9};
        struct network *network = network_new(&model, 18);
        int ups = 2 * 18, downs = ups + 4 * 12;
        for (int from = 0; from < 18; from++)
            for (int to = 0; to < 18; to++) {
                int up = find_cable(network, from, to, UP), down = find_cable(network, from, to, DOWN);
                if (from / 5 == to / 5) {
                    assert_true(up == NO_ITEM && down == NO_ITEM);
                    continue;
                }
                assert_true((up - ups) / 12 == from / 5 && (down - downs) / 12 == to / 5);
                int up_spine = (up - ups) % 12 / 4, down_spine = (down - downs) % 12 / 4;
                assert_int_equal(up_spine, down_spine);
                assert_true(from / 5 > 0 || (up - ups) % 4 * 3 + up_spine >= cut);
                assert_true(to / 5 > 0 || (down - downs) % 4 * 3 + down_spine >= cut);
            }
        network_free(network);
    }
}

/* What all streams take of LINK, over its bandwidth; the greatest rate that one has there. */
static double load_of(const struct network *network, int link, double *ret_greatest) {
    double ret = 0, bandwidth = link < 2 * network->nodes ? plain.card : network->model->tree.cable;
    *ret_greatest = 0;
    for (int i = 0; i < network->stream_count; i++) {
        const struct stream *stream = &network->streams[i];
        int links[ROUTE_MAX], back[ROUTE_MAX];
        for (int n = stream->count > 0 ? find_route(network, i, links, back) - 1 : -1; n >= 0; n--) {
            double weight = (links[n] == link) + network->model->reverse * (back[n] == link);
            ret += weight * stream->count * stream->rate / bandwidth;
            *ret_greatest = weight > 0 ? fmax(*ret_greatest, stream->rate) : *ret_greatest;
        }
    }
    return ret;
}

/* Rates are max-min fair exactly if no link is overloaded and each stream has a full one on which none is
 * faster (Bertsekas and Gallager). The cheaper rule overloads no link, either, but by acknowledgements. */
TEST(rates_are_max_min_fair) {
    unsigned seed = 1;
    for (int run = 0; run < 60; run++) {
        struct network_model models[] = {fat_tree(), fat_tree()};
        struct network *networks[2];
        double greatest;
        for (int i = 0; i < 2; i++) {
            models[i].is_max_min = i == 0;
            models[i].reverse = run % 3 == 2 ? 0.05 : 0;
            models[i].tree.cable = run % 2 ? 3e8 : 1e9;
            models[i].rate = run % 5 ? 1e9 : 4e8;
            networks[i] = network_new(&models[i], 8);
        }
        for (int id = 0; id < 5 + run; id++) {
            int from = rand_r(&seed) % 8, to = (from + 1 + rand_r(&seed) % 7) % 8;
            for (int i = 0; i < 2; i++) {
                assert_ok(network_start(networks[i], 0.01 * id, from, to, 1e9, id));
                if (id % 7 == 6)
                    network_finish(networks[i], network_next(networks[i]));
            }
        }
        const struct network *network = networks[0];
        for (int link = 0; link < network->links; link++)
            for (int i = 0; i < 2; i++)
                assert_true((i == 1 && models[i].reverse > 0) ||
                            load_of(networks[i], link, &greatest) < 1 + 1e-6);
        for (int i = 0; i < network->stream_count; i++) {
            int links[ROUTE_MAX], back[ROUTE_MAX], count = find_route(network, i, links, back);
            double rate = network->streams[i].rate;
            bool is_limited = network->streams[i].count == 0 || rate > models[0].rate * (1 - 1e-9);
            for (int n = 0; n < 2 * count && !is_limited; n++)
                is_limited = load_of(network, n < count ? links[n] : back[n - count], &greatest) > 1 - 1e-6 &&
                             rate > greatest * (1 - 1e-6);
            assert_true(is_limited);
        }
        network_free(networks[0]);
        network_free(networks[1]);
    }
}

static void one_second(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                       const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = 1;
}

/* 1 ns for each product of sizes; of rank 1 twice as much. */
static void by_work(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                    const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = 1e-9 * m[i] * n * k * (ranks[i] == 1 ? 2 : 1);
}

/* TRACE takes what the processes do, if it is not NULL. */
static struct replay_times replay_traced(struct hpl hpl, const struct network_model *network,
                                         int ranks_per_node, const struct replay_machine *like,
                                         struct trace *trace) {
    const struct replay_observer observer = {.trace = trace};
    static int pivots[4096], node_of[4096];
    struct replay_times ret;
    struct replay_machine machine = *like;
    hpl_draw_pivots(hpl.n, 1, pivots);
    hpl.pivots = pivots;
    for (int i = 0; i < hpl.p * hpl.q; i++)
        node_of[i] = i / ranks_per_node;
    machine.network = network;
    machine.node_of = node_of;
    machine.nodes = hpl.p * hpl.q;
    assert_ok(replay_run(&hpl, &machine, trace ? &observer : NULL, &ret));
    return ret;
}

static struct replay_times replay(struct hpl hpl, const struct network_model *network, int ranks_per_node,
                                  const struct replay_machine *like) {
    return replay_traced(hpl, network, ranks_per_node, like, NULL);
}

/* The same with a trace: the time of each process is what it spent, and the critical path is as long as the
 * run. Returns the path. */
static struct trace_path check_trace(struct hpl hpl, const struct network_model *network, int ranks_per_node,
                                     const struct replay_machine *like, double time) {
    struct trace trace;
    struct trace_path path = {0};
    assert_ok(trace_init(&trace, hpl.p * hpl.q));
    assert_true(replay_traced(hpl, network, ranks_per_node, like, &trace).time == time);
    for (int i = 0; i < trace.ranks; i++) {
        double spent = 0, on_path = 0;
        for (int part = 0; part < TRACE_PARTS; part++) {
            assert_true(trace.paths[i].parts[part] >= 0);
            spent += trace.spent[i][part];
            on_path += trace.paths[i].parts[part];
        }
        assert_true(fabs(on_path - trace.paths[i].until) <= 1e-9 * time);
        assert_true(fabs(spent - trace.paths[i].until) <= 1e-9 * time);
        path = trace.paths[i].until > path.until ? trace.paths[i] : path;
    }
    assert_true(path.until == time);
    trace_clear(&trace);
    return path;
}

TEST(one_process_takes_what_its_kernels_take) {
    /* 8 panels of 8 columns: 4, then twice 2 and 2, the last two columns one by one. A half that is factored
     * updates the half beside it: 3 dgemm a panel. Each panel but the last updates the columns behind it: 7.
     */
    struct hpl hpl = {.n = 64, .nb = 8, .p = 1, .q = 1, .rfact = HPL_RIGHT, .nbmin = 2, .ndiv = 2};
    struct replay_machine machine = {.kernel = {[HPL_DGEMM] = one_second}};
    assert_float_equal(replay(hpl, &plain, 1, &machine).time, 8 * 3 + 7, 0);
}

static void never(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                  const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = kernel == HPL_DGEMM ? -1 : NAN;
}

TEST(times_below_zero_are_counted) {
    struct hpl hpl = {.n = 64, .nb = 8, .p = 1, .q = 1, .rfact = HPL_RIGHT, .nbmin = 2, .ndiv = 2};
    struct replay_machine machine = {.kernel = {[HPL_DGEMM] = never, [HPL_IDAMAX] = never}};
    struct replay_times times = replay(hpl, &plain, 1, &machine);
    assert_float_equal(times.time, 0, 0);
    assert_int_equal(times.unusable_count, 8 * 3 + 7 + 64);
    assert_int_equal(times.kernel_count, times.unusable_count);
}

TEST(a_message_by_hand) {
    /* N = 1 on 2 columns: one pivot, no row swap. The panel of 1 x 1, its pivot and one more number: 3
     * numbers, 24 bytes to the other column, which has the right-hand side; that comes back with 8 bytes to
     * the owner of the block. Each takes 10 us and its bytes. Sending costs nothing. */
    struct hpl hpl = {.n = 1, .nb = 1, .p = 1, .q = 2, .nbmin = 1, .ndiv = 2};
    struct replay_machine machine = {0};
    assert_float_equal(replay(hpl, &plain, 1, &machine).time, 2e-5 + 32e-9, 1e-15);
    assert_float_equal(replay(hpl, &plain, 2, &machine).time, 2e-6 + 3.2e-9, 1e-15);
    /* What the calls cost comes on top: 2 us to send and 3 us to receive, twice. */
    struct network_model costs = plain;
    costs.segments[NETWORK_REMOTE][0].fixed[NETWORK_SEND] = 2e-6;
    costs.segments[NETWORK_REMOTE][0].fixed[NETWORK_RECV] = 3e-6;
    assert_float_equal(replay(hpl, &costs, 1, &machine).time, 2e-5 + 32e-9 + 2 * 5e-6, 1e-15);
    /* A send that waits for its receiver costs neither. */
    costs.detached_below = costs.eager_below = 0;
    assert_float_equal(replay(hpl, &costs, 1, &machine).time, 2e-5 + 32e-9, 1e-15);
}

/* The only column is searched for its pivot in 1 s; the other process waits for the panel, sends what it has,
 * and the first one ends last: its second, and the two messages. */
TEST(the_critical_path_goes_through_those_who_were_waited_for) {
    struct hpl hpl = {.n = 1, .nb = 1, .p = 1, .q = 2, .nbmin = 1, .ndiv = 2};
    struct replay_machine machine = {.kernel = {[HPL_IDAMAX] = one_second}};
    struct trace_path path = check_trace(hpl, &plain, 1, &machine, replay(hpl, &plain, 1, &machine).time);
    assert_float_equal(path.parts[HPL_IDAMAX], 1, 0);
    assert_float_equal(path.parts[HPL_KERNELS + HPL_BCAST], 1e-5 + 24e-9, 1e-15);
    assert_float_equal(path.parts[HPL_KERNELS + HPL_TRSV], 1e-5 + 8e-9, 1e-15);
}

/* Each dgemm takes 1 s, all else next to nothing. One panel comes while its receiver updates a block of
 * columns: a call of MPI_Iprobe that finds it at once makes one piece of what is left of the update then. A
 * deferred call finds it after one block more, which is one dgemm more. */
TEST(a_deferred_probe_finds_a_panel_one_block_later) {
    struct hpl hpl = {.n = 8, .nb = 1, .p = 1, .q = 2, .nbmin = 1, .ndiv = 2, .depth = 1};
    struct replay_machine machine = {.kernel = {[HPL_DGEMM] = one_second}};
    struct replay_times immediate = replay(hpl, &plain, 1, &machine);
    machine.probe_is_deferred = true;
    struct replay_times deferred = replay(hpl, &plain, 1, &machine);
    assert_float_equal(immediate.kernels[HPL_DGEMM], 28, 1e-12);
    assert_float_equal(deferred.kernels[HPL_DGEMM], 29, 1e-12);
    assert_float_equal(deferred.time - immediate.time, 1, 1e-3);
}

/* All that a grid may be: nobody waits for ever, the work is the same, and no process is faster than its
 * work. */
TEST(every_variant_ends) {
    const struct replay_machine machines[] = {
        {.kernel = {[HPL_DGEMM] = by_work, [HPL_DTRSM] = by_work}, .probe = 1e-7},
        {.kernel = {[HPL_DGEMM] = by_work}, .probe = 1e-7, .probe_is_deferred = true},
        {.kernel = {[HPL_DGEMM] = by_work}, .probe = 2e-7, .probe_grows = true, .whole_microseconds = true}};
    static const int grids[][2] = {{1, 1}, {1, 5}, {5, 1}, {2, 3}, {3, 2}, {4, 4}, {6, 2}, {2, 7}, {7, 3}};
    int runs = 0;
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
        for (int bcast = HPL_1RING; bcast <= HPL_LONGM; bcast++)
            for (int depth = 0; depth < 4; depth++)
                for (int i = 0; i < 6; i++, runs++) {
                    struct hpl hpl = {.n = 50 + 11 * (int)g,
                                      .nb = 4 + 3 * i,
                                      .p = grids[g][0],
                                      .q = grids[g][1],
                                      .depth = depth,
                                      .bcast = bcast,
                                      .swap = i % 3,
                                      .swap_threshold = 8,
                                      .nbmin = 1 + i % 4,
                                      .ndiv = 2,
                                      .rfact = i % 3,
                                      .pfact = runs % 3,
                                      .column_major = i % 2,
                                      .u_plain = runs / 2 % 2,
                                      .l1_plain = runs / 3 % 2,
                                      .equilibrate = i % 4 > 0,
                                      .is_split = runs % 5 == 0,
                                      .split = 0.1 * (runs % 11)};
                    struct network_model network = plain;
                    network.detached_below = i % 3 == 0 ? 0 : i % 3 == 1 ? 512 : 1e9;
                    network.eager_below = i % 2 == 0 ? network.detached_below : 0;
                    struct replay_times a = replay(hpl, &network, 1 + i, &machines[i % 3]);
                    check_trace(hpl, &network, 1 + i, &machines[i % 3], a.time);
                    assert_true(a.time >= 0.999999 * a.kernels[HPL_DGEMM] / (hpl.p * hpl.q));
                }
    assert_int_equal(runs, 9 * 6 * 4 * 6);
}

/* Where each process has a card of its own, recurrences take the place of events in the long broadcasts. A
 * trace needs the events: the times are the same, but for small messages of swaps that meet large ones. */
TEST(long_broadcasts_need_no_events) {
    struct replay_machine machine = {.kernel = {[HPL_DGEMM] = by_work, [HPL_DTRSM] = by_work}};
    uint64_t events = 0, all_events = 0;
    for (int i = 0; i < 48; i++) {
        struct hpl hpl = {.n = 1200,
                          .nb = 60,
                          .p = 1 + i % 3,
                          .q = 2 + i % 8,
                          .depth = i % 5 % 3,
                          .bcast = i / 8 % 2 ? HPL_LONG : HPL_LONGM,
                          .swap = i % 3,
                          .nbmin = 4,
                          .ndiv = 2};
        struct network_model network = plain;
        struct trace trace;
        network.segments[NETWORK_REMOTE][0].fixed[NETWORK_ISEND] = 1e-6;
        network.envelope = 16;
        assert_ok(trace_init(&trace, hpl.p * hpl.q));
        struct replay_times times = replay(hpl, &network, 1, &machine),
                            all = replay_traced(hpl, &network, 1, &machine, &trace);
        assert_float_equal(times.time, all.time, hpl.p == 1 ? 0 : 0.003 * all.time);
        assert_int_equal(times.message_count, all.message_count);
        events += times.events;
        all_events += all.events;
        trace_clear(&trace);
        /* Those of a fat tree share its cables. */
        network.tree = (struct network_tree){
            .leaf_nodes = 3, .spines = 2, .spine_cables = 1 + i % 2, .cut_cables = 1, .cable = 3e8};
        check_trace(hpl, &network, 1, &machine, replay(hpl, &network, 1, &machine).time);
    }
    assert_true(3 * events < 2 * all_events);
}

/* Kernels whose time depends on their sizes alone are looked up once for all columns that do the same. */
TEST(fixed_times_are_found_once) {
    struct hpl hpl = {.n = 300, .nb = 16, .p = 4, .q = 3, .depth = 1, .nbmin = 4, .ndiv = 2};
    struct replay_machine machine = {.probe = 1e-3};
    for (int i = 0; i < HPL_KERNELS; i++)
        machine.kernel[i] = i == HPL_DLASWP04_T ? never : one_second;
    struct replay_times each = replay(hpl, &plain, 2, &machine);
    for (int i = 0; i < HPL_KERNELS; i++)
        machine.is_fixed[i] = true;
    struct replay_times fixed = replay(hpl, &plain, 2, &machine);
    assert_true(each.time > 0 && fixed.time == each.time);
    assert_true(each.unusable_count > 0 && fixed.unusable_count == each.unusable_count);
    assert_int_equal(fixed.kernel_count, each.kernel_count);
}

/* Large messages go through the events: 1 x 2 on two nodes, one panel of N = NB = 512 with all its rows is
 * sent to the other column, in any protocol as long as both are ready. */
TEST(large_messages_take_their_share) {
    struct hpl hpl = {.n = 512, .nb = 512, .p = 1, .q = 2, .nbmin = 512, .ndiv = 2};
    struct replay_machine machine = {0};
    double panel = 8 * (512.0 * 512 + 512 + 1), rest = 8 * 512;
    double time = replay(hpl, &plain, 1, &machine).time;
    assert_float_equal(time, 2e-5 + (panel + rest) / 1e9, 1e-12);
    struct network_model slow = plain;
    slow.card = 0.5e9;
    assert_float_equal(replay(hpl, &slow, 1, &machine).time, 2e-5 + (panel + rest) / 0.5e9, 1e-12);
}

/* The order of all operations, as one number. */
static uint64_t told;
static void tell_kernel(struct hpl_sink *sink, enum hpl_kernel kernel, int from, int to, const int *each,
                        int same, int n, int k) {
    for (int row = from; row < to; row++)
        told = told * 31 + (uint64_t)kernel * 7 + (uint64_t)(each ? each[row] : same) * 5 + (uint64_t)n * 3 +
               (uint64_t)k + (uint64_t)row;
}
static void tell_exchange(struct hpl_sink *sink, int a, int b, int64_t a_to_b, int64_t b_to_a) {
    told = told * 37 + (uint64_t)a + (uint64_t)b * 3 + (uint64_t)a_to_b + (uint64_t)b_to_a * 5;
}

TEST(pieces_of_a_factorisation_are_the_whole) {
    static int pivots[100];
    hpl_draw_pivots(100, 1, pivots);
    for (int variant = 0; variant < 9; variant++)
        for (int nbmin = 1; nbmin < 6; nbmin += 2) {
            struct hpl hpl = {.n = 100,
                              .nb = 23,
                              .p = 3,
                              .q = 2,
                              .nbmin = nbmin,
                              .ndiv = 2 + variant % 2,
                              .rfact = variant % 3,
                              .pfact = variant / 3,
                              .pivots = pivots};
            struct hpl_space *space = hpl_space_new(&hpl);
            struct hpl_sink sink = {
                .hpl = &hpl, .space = space, .kernel = tell_kernel, .exchange = tell_exchange};
            told = 0;
            hpl_factor(&sink, 1, 0, 24);
            uint64_t whole = told;
            for (int piece = 1; piece < 24; piece += 6) {
                told = 0;
                for (int from = 0; from < 24; from += piece)
                    hpl_factor(&sink, 1, from, from + piece);
                assert_true(told == whole);
            }
            hpl_space_free(space);
        }
}

/* A tenth more or less than by_work, by rank and number; elements that are moved take 2 ns. */
static double noisy_time(enum hpl_kernel kernel, uint64_t rank, uint64_t number, double m, double n,
                         double k) {
    uint64_t bits = (rank * 0x9e3779b97f4a7c15 + number + 1) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 29)) * 0x94d049bb133111eb;
    double work = hpl_dimensions(kernel) == 3 ? 1e-10 * m * n * k : 2e-9 * m * (n > 0 ? n : 1);
    return work * (0.9 + 0.2 * (double)(bits >> 11) * 0x1p-53);
}
static void noisy(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                  const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = noisy_time(kernel, ranks[i], numbers[i], m[i], n, k);
}

/* The time of many settings with noise, whose digits do not change when the replay is made faster. */
TEST(digits_stay) {
    static const int grids[][3] = {{4, 4, 2000}, {3, 2, 1500}, {8, 2, 2000},
                                   {1, 4, 900},  {5, 3, 2100}, {4, 1, 1200}};
    uint64_t hash = 0xcbf29ce484222325;
    struct replay_machine machine = {.probe = 3e-7};
    for (int i = 0; i < HPL_KERNELS; i++)
        machine.kernel[i] = i == HPL_DCOPY ? NULL : noisy;
    for (int i = 0; i < 36; i++) {
        const int *grid = grids[i % 6];
        struct network_model network = plain;
        struct hpl hpl = {.n = grid[2],
                          .nb = i % 2 ? 64 : 48,
                          .p = grid[0],
                          .q = grid[1],
                          .depth = i / 6 % 3,
                          .bcast = i / 3 % 6,
                          .swap = i / 2 % 3,
                          .swap_threshold = 200,
                          .rfact = i % 3,
                          .pfact = i / 4 % 3,
                          .nbmin = 1 + i % 5,
                          .ndiv = 2 + i % 2,
                          .column_major = i % 4 == 1,
                          .u_plain = i % 5 == 1,
                          .equilibrate = true};
        machine.probe_grows = i % 7 == 3;
        machine.probe_is_deferred = i % 2 == 1;
        machine.whole_microseconds = i % 7 == 5;
        machine.kernel[HPL_DCOPY] = i % 5 == 2 ? noisy : NULL;
        network.segments[NETWORK_REMOTE][0].fixed[NETWORK_SEND] = 1e-6;
        network.segments[NETWORK_REMOTE][0].fixed[NETWORK_RECV] = 2e-6;
        network.eager_below = i % 3 == 0 ? 4096 : 16384;
        network.detached_below = i % 8 == 3 ? 1e9 : 16384;
        network.reverse = i % 3 == 1 ? 0.05 : 0;
        double time = replay(hpl, &network, 1 + i % 3, &machine).time;
        check_trace(hpl, &network, 1 + i % 3, &machine, time);
        for (size_t byte = 0; byte < sizeof time; byte++)
            hash = (hash ^ ((const unsigned char *)&time)[byte]) * 0x100000001b3;
    }
    assert_int_equal(hash, UINT64_C(0x0b85487a4d604d6a));
}

/* Two calls of idamax a panel; an accelerator that updates m x n with k columns in mnk / 8 s. */
static void two_seconds(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                        const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = 2;
}
static void by_eighths(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                       const uint64_t *numbers, const int *m, int n, int k, double *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = (double)m[i] * n * k / 8;
}

TEST(a_split_update_hides_the_factorisation) {
    /* 3 panels of 2 columns, and the right-hand side. A panel takes 2 s, the updates 5 s, 1.5 s, and none. */
    struct hpl hpl = {.n = 6, .nb = 2, .p = 1, .q = 1, .nbmin = 2, .ndiv = 2};
    struct replay_machine machine = {.kernel = {[HPL_IDAMAX] = one_second, [HPL_DGEMM] = by_eighths}};
    assert_float_equal(replay(hpl, &plain, 1, &machine).time, 2 + 5 + 2 + 1.5 + 2, 1e-12);
    /* The next panel's part of the updates takes 2 s and 1 s. The other part, 3 s and 0.5 s, is done while
     * that panel is factored: until 7 s, and 8.5 s. */
    hpl.is_split = true;
    assert_float_equal(replay(hpl, &plain, 1, &machine).time, 2 + 2 + 3 + 1 + 2, 1e-12);
    /* What factors panels takes twice as long, 4 s; then nothing waits for the accelerator. */
    machine.panel_kernel[HPL_IDAMAX] = two_seconds;
    assert_float_equal(replay(hpl, &plain, 1, &machine).time, 4 + 2 + 4 + 1 + 4, 1e-12);
}

TEST(all_panels_chosen_are_all_panels) {
    static int all[32];
    const struct replay_machine machine = {.kernel = {[HPL_DGEMM] = by_work, [HPL_DTRSM] = by_work},
                                           .probe = 1e-7};
    for (int i = 0; i < 32; i++)
        all[i] = i;
    for (int depth = 0; depth < 4; depth++)
        for (int split = 0; split < 2; split++) {
            struct hpl hpl = {.n = 250,
                              .nb = 8,
                              .p = 3,
                              .q = 4,
                              .depth = depth,
                              .bcast = depth,
                              .nbmin = 4,
                              .ndiv = 2,
                              .is_split = split == 1,
                              .split = 0.5};
            double time = replay(hpl, &plain, 2, &machine).time;
            hpl.chosen = all;
            hpl.chosen_count = 32;
            assert_true(replay(hpl, &plain, 2, &machine).time == time);
        }
}

static double last_panel, last_time;
static int rising_panels(void *context, int panel, double from, double until) {
    assert_true(panel == last_panel + 1 && until > last_time);
    last_panel = panel;
    last_time = until;
    return 0;
}

/* Some of the panels say how long all take, within the error that is stated, and nearly as much as half a per
 * cent. Sums of parts are as near. Where there are few, nothing is replayed. */
TEST(sampled_panels_are_as_good_as_all) {
    static int pivots[4096], node_of[64];
    static const int grids[][2] = {{1, 4}, {4, 1}, {2, 3}, {4, 4}};
    const struct replay_observer observer = {.panel_done = rising_panels};
    int runs = 0;
    hpl_draw_pivots(4096, 1, pivots);
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
        for (int depth = 0; depth < 3; depth++, runs++) {
            struct hpl hpl = {.n = 4096,
                              .nb = 16,
                              .p = grids[g][0],
                              .q = grids[g][1],
                              .depth = depth,
                              .bcast = runs % 6,
                              .swap = runs % 3,
                              .swap_threshold = 100,
                              .nbmin = 4,
                              .ndiv = 2,
                              .pivots = pivots,
                              .rfact = HPL_RIGHT};
            for (int i = 0; i < 64; i++)
                node_of[i] = i / 2;
            struct replay_machine machine = {.kernel = {[HPL_DGEMM] = by_work, [HPL_DTRSM] = by_work},
                                             .network = &plain,
                                             .node_of = node_of,
                                             .nodes = 32,
                                             .probe = 1e-7};
            struct replay_times exact, times;
            struct sampled sampled = {.panels = 90};
            last_panel = -1, last_time = 0;
            assert_ok(replay_run(&hpl, &machine, NULL, &exact));
            assert_ok(sampled_run(&hpl, &machine, &observer, NULL, &sampled, &times));
            assert_true(last_panel == 255 && last_time < times.time);
            assert_in_range(sampled.panels, 60, 120);
            assert_true(fabs(times.time / exact.time - 1) < 0.01);
            assert_true(fabs(times.time - exact.time) <= sampled.error);
            assert_true(fabs(times.kernels[HPL_DGEMM] / exact.kernels[HPL_DGEMM] - 1) < 0.015);
            assert_true(fabs((double)times.message_count / (double)exact.message_count - 1) < 0.1);
            hpl.n = 1000;
            assert_int_equal(sampled_run(&hpl, &machine, &observer, NULL, &sampled, &times), 1);
        }
    assert_int_equal(runs, 12);
}
