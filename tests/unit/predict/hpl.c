/* The analytic HPL against the same formulas evaluated with 50 decimal digits. The plugin's source is
 * included: what is tested is inside it. */
#include "plugins/predict-hpl/hpl.c"
#include "tests/test.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* of scenarios */

/* 2^-12 + 6.25e-11 mnk + 1e-10 mn + 2.5e-9 mk + 3e-9 nk */
static const double polynomial[] = {0.000244140625, 6.25e-11, 1e-10, 2.5e-9, 3e-9};
static const double product[] = {0, 6.25e-11, 0, 0, 0};

static void dgemm(void *context, struct hpl_calls *calls) {
    const double *c = context;
    for (size_t i = 0; i < calls->count; i++) {
        double m = calls->m[i], n = calls->n[i], k = calls->k[i];
        calls->seconds[i] = c[0] + c[1] * m * n * k + c[2] * m * n + c[3] * m * k + c[4] * n * k;
    }
}

static struct hpl_time predict(struct hpl_scenario scenario, const double *coefficients) {
    scenario.gamma = 6.25e-11 / 2;
    if (scenario.nodes_max == 0)
        scenario.nodes_max = 1000;
    return hpl_predict(&scenario, dgemm, NULL, (void *)coefficients);
}

TEST(published_formulas) {
    static const struct {
        struct hpl_scenario scenario;
        double factorisation, broadcast, update, swap, closed, panels, clamped;
    } cases[] = {
        {{20000, 128, 4, 4, 1e-6, 8 / 1e10},
         0.24605310293333335,
         0.040412692799999997,
         10.955890455900001,
         0.12001792159999999,
         10.617604166666666,
         157,
         2 /* the last, of 160 and 32 rows */},
        /* A narrower last panel, a grid that is no power of two, a network that matters. */
        {{1000, 300, 3, 5, 2e-5, 8 / 1e9},
         0.039924882017653901,
         0.0017866666666666667,
         0.0027528218749999999,
         0.0020147970000576926,
         0.037127136403360086,
         4,
         1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hpl_time time = predict(cases[i].scenario, polynomial);
        assert_close(time.factorisation, cases[i].factorisation, 1e-12, "factorisation");
        assert_close(time.broadcast, cases[i].broadcast, 1e-12, "broadcast");
        assert_close(time.update, cases[i].update, 1e-12, "update");
        assert_close(time.swap, cases[i].swap, 1e-12, "swap");
        assert_close(time.closed, cases[i].closed, 1e-12, "closed");
        assert_true(time.panels == cases[i].panels);
        assert_true(i > 0 || time.clamped == cases[i].clamped);
        assert_true(time.hidden < 0.01 * time.factorisation);
    }
    struct hpl_time time = predict(cases[0].scenario, polynomial);
    double seconds = time.factorisation + time.broadcast + time.update + time.swap;
    assert_close(hpl_flops(20000) / seconds / 1e9, 469.43827513607425, 1e-12, "rate");
}

/* Panels with fewer rows in a process than the published term takes away: no work, never less than none. */
TEST(too_tall) {
    struct hpl_time time = predict((struct hpl_scenario){1000, 1000, 8, 1}, polynomial);
    assert_true(time.factorisation == 0 && time.clamped == 1);
    assert_close(time.hidden, 0.006510416666666667, 1e-12, "hidden");
    time = predict((struct hpl_scenario){1000, 300, 6, 1, 2e-5, 8 / 1e9}, polynomial);
    assert_close(time.factorisation, 0.06351425701765391, 1e-12, "factorisation");
    assert_true(time.clamped == 2 && time.panels == 4);
    assert_close(time.hidden, 9.895833333333334e-05, 1e-12, "hidden");
}

/* One process, no network, dgemm by gamma alone: the panels add up to 2/3 N^3 gamma, the closed form's only
 * term; halves of panels are the same flops, whatever the least of them. */
TEST(gamma_alone) {
    static const double least[] = {0, 1, 5, 64};
    for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
        struct hpl_time time = predict(
            (struct hpl_scenario){8192, 64, 1, 1, .recursive = i > 0, .least_half = least[i]}, product);
        assert_true(time.broadcast == 0 && time.swap == 0);
        assert_close(time.factorisation + time.update, 11.453246122666666, 1e-12, "time");
        assert_close(time.closed, 6.25e-11 / 2 * 2.0 / 3.0 * 8192.0 * 8192.0 * 8192.0, 1e-12, "closed");
    }
}

/* Few nodes say what all panels say: exactly but for the clamps of the last panels. */
TEST(many_panels) {
    struct hpl_scenario scenario = {100000, 20, 4, 8, 1e-6, 8 / 1e10, .nodes_max = 10000};
    for (int recursive = 0; recursive < 2; recursive++) {
        scenario.recursive = recursive;
        scenario.least_half = 2;
        scenario.nodes_max = 10000;
        struct hpl_time all = predict(scenario, polynomial);
        scenario.nodes_max = 128;
        struct hpl_time few = predict(scenario, polynomial);
        assert_true(all.panels == 5000 && few.panels == 5000);
        assert_close(few.update, all.update, 1e-12, "update");
        assert_close(few.swap, all.swap, 1e-12, "swap");
        assert_close(few.broadcast, all.broadcast, 1e-12, "broadcast");
        assert_close(few.factorisation, all.factorisation, 1e-7, "factorisation");
    }
    scenario = (struct hpl_scenario){1e9, 1, 1, 1, .nodes_max = 1024};
    struct hpl_time time = predict(scenario, product);
    assert_true(time.panels == 1e9);
    assert_close(time.factorisation + time.update, time.closed, 1e-12, "time");
}

/* RANKS_PER_CARD processes of a node on one network card: its process columns swap rows at once, and where a
 * node has several process rows, these broadcast and agree on pivots at once. Without latency all of that is
 * in proportion. */
TEST(shared_cards) {
    struct hpl_scenario scenario = {4000, 64, 4, 12, 0, 8 / 1e9};
    struct hpl_time alone = predict(scenario, product);
    scenario.ranks_per_card = 12;
    struct hpl_time row = predict(scenario, product);
    scenario.ranks_per_card = 24;
    struct hpl_time rows = predict(scenario, product);
    assert_close(row.swap, 12 * alone.swap, 1e-12, "swap");
    assert_close(rows.swap, (2 * 12 + 24) / 3.0 * alone.swap, 1e-12, "swap");
    assert_true(row.broadcast == alone.broadcast && row.factorisation == alone.factorisation);
    assert_close(rows.broadcast, 2 * alone.broadcast, 1e-12, "broadcast");
    assert_true(rows.factorisation > alone.factorisation && rows.update == alone.update);
}
