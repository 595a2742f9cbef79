/* HPL over layers of communication against HPL over one network, and the printed equations against the sums
 * that they stand for. The plugins' sources are included: what is tested is inside them. */
#include "plugins/predict-hpl-layers/layers.c"
#include "plugins/predict-hpl/hpl.c"
#include "tests/test.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* of scenarios */

static double between(double low, double high) {
    return low + (high - low) * drand48();
}

/* A scenario of one layer, with random sizes and speeds. */
static struct layers_scenario random_scenario(void) {
    struct layers_scenario s = {floor(between(500, 20000)), floor(between(16, 400)), floor(between(1, 9)),
                                floor(between(1, 9)),       exp(between(-30, -20)),  .count = 1};
    s.layers[0] = (struct layer){exp(between(-16, -9)), exp(between(-23, -18)), s.n, s.n};
    return s;
}

static struct layers_share total(const struct layers_scenario *s, const struct layers_share *shares) {
    struct layers_share sum = {0};
    for (size_t j = 0; j < s->count; j++) {
        sum.pivots += shares[j].pivots;
        sum.broadcast += shares[j].broadcast;
        sum.swap += shares[j].swap;
    }
    return sum;
}

static void gemm(void *context, struct hpl_calls *calls) {
    for (size_t i = 0; i < calls->count; i++)
        calls->seconds[i] = 2 * calls->m[i] * calls->n[i] * calls->k[i] * *(const double *)context;
}

TEST(one_layer_is_predict_hpl) {
    srand48(29);
    for (int i = 0; i < 200; i++) {
        struct layers_scenario s = random_scenario();
        struct hpl_scenario same = {
            s.n, s.nb, s.p, s.q, s.layers[0].latency, s.layers[0].word, .gamma = s.gamma, .nodes_max = 10000};
        struct hpl_time expected = hpl_predict(&same, gemm, NULL, &s.gamma);
        struct layers_time found = layers_predict(&s, NULL, NULL);
        assert_close(found.computation + found.layers[0].pivots, expected.factorisation + expected.update,
                     1e-12, "factorisation and update");
        assert_close(found.layers[0].broadcast, expected.broadcast, 1e-12, "broadcast");
        assert_close(found.layers[0].swap, expected.swap, 1e-12, "swap");
        assert_close(found.original, expected.closed, 1e-12, "original");
    }
}

TEST(equal_layers_are_one) {
    srand48(30);
    for (int i = 0; i < 200; i++) {
        struct layers_scenario s = random_scenario();
        s.is_memory_first = i % 2;
        struct layers_time one = layers_predict(&s, NULL, NULL);
        struct layers_share expected = total(&s, one.layers);
        s.count = 2 + (size_t)i % (LAYERS_MAX - 1);
        double rows = s.n, columns = s.n;
        for (size_t j = s.count; j-- > 0;) {
            s.layers[j] = s.layers[0];
            s.layers[j].rows = rows, s.layers[j].columns = columns;
            rows *= drand48(), columns *= drand48();
        }
        struct layers_time all = layers_predict(&s, NULL, NULL);
        struct layers_share found = total(&s, all.layers);
        assert_close(found.pivots, expected.pivots, 1e-12, "pivots");
        assert_close(found.broadcast, expected.broadcast, 1e-12, "broadcast");
        assert_close(found.swap, expected.swap, 1e-12, "swap");
        assert_true(all.original == one.original && all.computation == one.computation);
    }
}

/* Equations (25) and (27) to (29) of one layer are sums over panels, with (i - 1) NB rows of panel i and i NB
 * columns to its right, and messages of 2 NB + 4 words for a pivot. */
TEST(printed_is_a_sum) {
    struct layers_scenario s = {46080, 384, 4, 3, 2e-13, .count = 1, .layers = {{2e-6, 1e-9, 46080, 46080}}};
    struct layers_time time = layers_predict(&s, NULL, NULL);
    double work = 0, broadcast = 0, swap = 0, n = s.n / s.nb;
    for (double i = 1; i <= n; i++) {
        double rows = (i - 1) * s.nb, columns = i * s.nb;
        work += s.gamma * s.nb * s.nb * (rows / s.p - s.nb / 3) +
                s.gamma * (columns * s.nb * s.nb / s.q + 2 * columns * columns * s.nb / (s.p * s.q));
        broadcast += 2e-6 + 1e-9 * s.nb * rows / s.p;
        swap += 2e-6 * (2 + s.p - 1) + 3e-9 * s.nb * columns / s.q;
    }
    assert_true(time.padded == s.n);
    assert_close(time.printed_computation, work, 1e-12, "work");
    assert_close(time.printed[0].pivots, s.n * 2 * (2e-6 + 1e-9 * (2 * s.nb + 4)), 1e-12, "pivots");
    assert_close(time.printed[0].broadcast, broadcast, 1e-12, "broadcast");
    assert_close(time.printed[0].swap, swap, 1e-12, "swap");
}

/* The squares of differences do not add up: half of what two halves send is lost. */
TEST(printed_halves) {
    struct layers_scenario s = {46080, 384, 4, 4, 2e-13, .count = 1, .layers = {{0, 1e-9, 46080, 46080}}};
    struct layers_time one = layers_predict(&s, NULL, NULL);
    s.count = 2;
    s.layers[1] = s.layers[0];
    s.layers[0].rows = s.layers[0].columns = s.n / 2;
    struct layers_time two = layers_predict(&s, NULL, NULL);
    struct layers_share found = total(&s, two.printed), whole = one.printed[0];
    assert_close(found.broadcast + 1e-9 * s.n * s.nb / 8, (whole.broadcast + 1e-9 * s.n * s.nb / 8) / 2,
                 1e-12, "broadcast");
    assert_close(found.swap - 3e-9 * s.n * s.nb / 8, (whole.swap - 3e-9 * s.n * s.nb / 8) / 2, 1e-12, "swap");
    assert_close(found.pivots, whole.pivots, 1e-12, "pivots");
    /* N that blocks and grid do not divide is padded. */
    s.n = 46081;
    assert_true(layers_predict(&s, NULL, NULL).padded == 46080 + 384 * 4);
}

/* A panel is broadcast over the lowest layer that holds its rows, and swapped over the one that holds the
 * columns to its right; with the memory of an accelerator also along one process. */
TEST(sizes_choose_layers) {
    struct layers_scenario s = {1000,       100,
                                2,          1,
                                1e-12,      .is_memory_first = true,
                                .count = 2, .layers = {{0, 1e-9, 500, 700}, {0, 1e-6, 1000, 1000}}};
    struct layers_time time = layers_predict(&s, NULL, NULL);
    double broadcast[2] = {0}, swap[2] = {0}, pivots[2] = {0};
    for (double rows = 1000; rows > 0; rows -= 100) {
        int down = rows > 500, along = rows - 100 > 700;
        broadcast[down] += s.layers[down].word * 100 * rows / 2;
        swap[along] += 3 * s.layers[along].word * (rows - 100) * 100;
        pivots[down] += 100 * 2 * 100 * s.layers[down].word;
    }
    for (int j = 0; j < 2; j++) {
        assert_close(time.layers[j].broadcast, broadcast[j], 1e-12, "broadcast");
        assert_close(time.layers[j].swap, swap[j], 1e-12, "swap");
        assert_close(time.layers[j].pivots, pivots[j], 1e-12, "pivots");
    }
    s.is_memory_first = false;
    assert_true(layers_predict(&s, NULL, NULL).layers[0].broadcast == 0);
}

TEST(parts_of_grids) {
    static const struct {
        double count, p, q, rows, columns;
    } cases[] = {{4, 4, 3, 2, 2}, {3, 4, 3, 3, 1}, {3, 3, 4, 1, 3}, {4, 1, 8, 1, 4},
                 {6, 6, 8, 2, 3}, {6, 8, 6, 3, 2}, {6, 2, 9, 2, 3}, {1, 5, 5, 1, 1}};
    double p, q;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(layers_grid(cases[i].count, cases[i].p, cases[i].q, &p, &q));
        assert_true(p == cases[i].rows && q == cases[i].columns);
    }
    assert_false(layers_grid(5, 4, 4, &p, &q));
}

/* The P100 of the paper: 13 GB/s, 1029 cycles. */
TEST(accelerator_memory) {
    struct layer memory = layers_memory(3584, 732.2e9, 64, 1029, 1.303e9);
    assert_close(8 / memory.word, 13.075e9, 1e-12, "bandwidth");
    assert_close(memory.latency, 7.8971603990790484e-07, 1e-12, "latency");
    assert_close(8 / layers_memory(3584, 732.2e9, 0, 1029, 1.303e9).word, 732.2e9, 1e-12, "simple sum");
}
