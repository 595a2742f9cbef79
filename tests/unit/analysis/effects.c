/* The analysis of variance: a published one, and what follows from how data were made. */
#include "engine/analysis/effects.h"

#include "tests/test.h"

/* Yields of peas under three fertilisers in six blocks (F. Yates, The Design and Analysis of Factorial
 * Experiments, 1937; R's `npk`). */
enum { PLOTS = 24, BLOCKS = 6 };
static const char fertilisers[PLOTS][4] = {"011", "110", "000", "101", "100", "111", "001", "010",
                                           "010", "111", "100", "001", "100", "111", "001", "010",
                                           "110", "000", "101", "011", "101", "110", "011", "000"};
static const double yields[PLOTS] = {49.5, 62.8, 46.8, 57.0, 59.8, 58.5, 55.5, 56.0, 62.8, 55.8, 69.5, 55.0,
                                     62.0, 48.8, 45.5, 44.2, 52.0, 51.5, 49.8, 48.8, 57.2, 59.0, 53.2, 56.0};

TEST(peas) {
    static uint32_t codes[4][PLOTS];
    struct effects_factor factors[4];
    cleanup(effects_clear) struct effects effects = {0};
    for (size_t f = 0; f < 4; f++) {
        for (size_t i = 0; i < PLOTS; i++)
            codes[f][i] = f < 3 ? (uint32_t)(fertilisers[i][f] - '0') : (uint32_t)(i / 4);
        factors[f] = (struct effects_factor){
            .codes = codes[f], .level_count = f < 3 ? 2 : BLOCKS, .is_nuisance = f == 3};
    }
    assert_int_equal(effects_find(yields, PLOTS, factors, 4, &effects), 0);
    /* N, P, K, block, N:P, N:K, P:K: what R's aov() prints. */
    static const double squares[] = {189.28, 8.40, 95.20, 343.3, 21.28, 33.14, 0.48};
    assert_true(effects.count == 7 && effects.has_interactions);
    for (size_t i = 0; i < 7; i++)
        if (fabs(effects.items[i].squares - squares[i]) > (i == 3 ? 0.05 : 0.005))
            fail_msg("term %zu: sum of squares %g; expected %g", i, effects.items[i].squares, squares[i]);
    assert_true(effects.residual_freedom == 12 && effects.items[3].freedom == 5);
    assert_close(effects.residual_squares, 185.29, 1e-4, "residual");
    assert_close(effects.items[0].f, 12.259, 1e-4, "F of N");
    assert_close(effects.items[0].p, 0.00437, 1e-3, "p of N");
    assert_close(effects.level_effects[0][1], 5.617, 1e-3, "effect of N");
}

enum { ROWS = 23 };
static uint32_t a[ROWS], b[ROWS];
static double y[ROWS], order[ROWS];
static const struct effects_factor two[] = {
    {.codes = a, .level_count = 3}, {.codes = b, .level_count = 2}, {.values = order, .is_nuisance = true}};

/* Not balanced: the levels of b do not come equally often with those of a. */
static void make(double of_a, double of_b, double of_pair, double of_order) {
    for (size_t i = 0; i < ROWS; i++) {
        a[i] = (uint32_t)(i % 3), b[i] = i % 5 < 2, order[i] = (double)((7 * i) % ROWS);
        y[i] = 3 + of_a * a[i] + of_b * b[i] + of_pair * a[i] * b[i] + of_order * order[i];
    }
}

TEST(what_has_no_effect_has_no_share) {
    static const size_t alone[] = {0, 1, 3, 2}; /* items: a, b, order, a x b */
    for (size_t k = 0; k < 4; k++) {
        cleanup(effects_clear) struct effects effects = {0};
        make(k == 0, k == 1, k == 2, k == 3);
        assert_int_equal(effects_find(y, ROWS, two, 3, &effects), 0);
        for (size_t i = 0; i < 4; i++) {
            bool has = i == alone[k] || (k == 2 && i < 2); /* a pair's effect has means */
            if (has != (effects.items[i].share > 1e-12))
                fail_msg("effect %zu: item %zu has the share %g", k, i, effects.items[i].share);
        }
        assert_true(effects.residual_share < 1e-12);
    }
}

TEST(too_little) {
    cleanup(effects_clear) struct effects effects = {0};
    make(1, 1, 0, 0);
    assert_int_equal(effects_find(y, 6, two, 2, &effects), 0); /* six rows: pairs would leave nothing over */
    assert_false(effects.has_interactions);
    effects_clear(&effects);
    for (size_t i = 0; i < ROWS; i++)
        y[i] = 5;
    assert_int_equal(effects_find(y, ROWS, two, 2, &effects), -EDOM);
    y[0] = 6;
    assert_int_equal(effects_find(y, ROWS, two + 2, 1, &effects), -EDOM); /* no factor */
    assert_int_equal(
        effects_find(y, ROWS, &(struct effects_factor){.codes = a, .level_count = 300}, 1, &effects), -E2BIG);
}
