/* The analytic HPL against the same formulas evaluated with 50 decimal digits. The plugin's source is
 * included: what is tested is inside it. */
#include "plugins/predict-hpl/hpl.c"
#include "tests/test.h"

static const struct hpl_term terms[] = {{0, 0, 0}, {1, 1, 1}, {1, 1, 0}, {1, 0, 1}, {0, 1, 1}};
static const double coefficients[] = {0.000244140625, 6.25e-11, 1e-10, 2.5e-9, 3e-9};
static const struct hpl_dgemm polynomial = {terms, 5, coefficients, 6.25e-11 / 2};

TEST(square_grid) {
    const struct hpl_scenario scenario = {20000, 128, 4, 4, 1e-6, 8 / 1e10};
    struct hpl_time time = hpl_predict(&scenario, &polynomial, NULL, NULL);
    assert_close(time.factorisation, 0.24605310293333335, 1e-12, "time");
    assert_int_equal(time.clamped, 2); /* the last two, of 160 and 32 rows */
    assert_true(time.hidden < 1e-5 * time.factorisation);
    assert_close(time.broadcast, 0.040412692799999997, 1e-12, "time");
    assert_close(time.update, 10.955890455900001, 1e-12, "time");
    assert_close(time.swap, 0.12001792159999999, 1e-12, "time");
    assert_close(time.closed, 10.617604166666666, 1e-12, "time");
    assert_int_equal(time.panels, 157);
    assert_int_equal(time.replaced, 0);
    double seconds = time.factorisation + time.broadcast + time.update + time.swap;
    assert_close(hpl_flops(20000) / seconds / 1e9, 469.43827513607425, 1e-12, "time");
}

/* A last panel that is narrower, a grid that is no power of two, a network that matters. */
TEST(uneven) {
    const struct hpl_scenario scenario = {1000, 300, 3, 5, 2e-5, 8 / 1e9};
    struct hpl_time time = hpl_predict(&scenario, &polynomial, NULL, NULL);
    assert_close(time.factorisation, 0.039924882017653901, 1e-12, "time");
    assert_close(time.broadcast, 0.0017866666666666667, 1e-12, "time");
    assert_close(time.update, 0.0027528218749999999, 1e-12, "time");
    assert_close(time.swap, 0.0020147970000576926, 1e-12, "time");
    assert_close(time.closed, 0.037127136403360086, 1e-12, "time");
    assert_int_equal(time.panels, 4);
}

/* Panels with fewer rows in a process than the published term takes away: no work, never less than none. */
TEST(too_tall) {
    const struct hpl_scenario one = {1000, 1000, 8, 1, 0, 0};
    struct hpl_time time = hpl_predict(&one, &polynomial, NULL, NULL);
    assert_true(time.factorisation == 0);
    assert_int_equal(time.clamped, 1);
    assert_close(time.hidden, 0.006510416666666667, 1e-12, "time");
    const struct hpl_scenario some = {1000, 300, 6, 1, 2e-5, 8 / 1e9};
    time = hpl_predict(&some, &polynomial, NULL, NULL);
    assert_close(time.factorisation, 0.06351425701765391, 1e-12, "time");
    assert_int_equal(time.clamped, 2);
    assert_close(time.hidden, 9.895833333333334e-05, 1e-12, "time");
    assert_int_equal(time.panels, 4);
}

/* One process, no network, dgemm by gamma alone: the panels add up to 2/3 N^3 gamma, the closed form's only
 * term. */
TEST(gamma_alone) {
    const struct hpl_term product = {1, 1, 1};
    const double coefficient = 6.25e-11;
    const struct hpl_dgemm dgemm = {&product, 1, &coefficient, coefficient / 2};
    const struct hpl_scenario scenario = {8192, 64, 1, 1, 0, 0};
    struct hpl_time time = hpl_predict(&scenario, &dgemm, NULL, NULL);
    assert_true(time.broadcast == 0 && time.swap == 0);
    assert_close(time.factorisation + time.update, 11.453246122666666, 1e-12, "time");
    assert_close(time.closed, 11.453246122666666, 1e-12, "time");
    assert_close(time.closed, coefficient / 2 * 2.0 / 3.0 * 8192.0 * 8192.0 * 8192.0, 1e-12, "time");
}

TEST(time_is_never_negative) {
    const double bad[] = {-1, 6.25e-11, 0, 0, 0};
    const struct hpl_dgemm dgemm = {terms, 5, bad, 6.25e-11 / 2};
    const struct hpl_scenario scenario = {1000, 100, 1, 1, 0, 0};
    struct hpl_time time = hpl_predict(&scenario, &dgemm, NULL, NULL);
    assert_int_equal(time.replaced, 9); /* the last panel leaves nothing to update */
    assert_true(time.update > 0);
}

struct calls {
    size_t count;
    double seconds, largest;
};

static void count_call(void *context, double m, double n, double k, double seconds) {
    struct calls *calls = context;
    calls->count++;
    calls->seconds += seconds;
    calls->largest = fmax(calls->largest, m);
}

TEST(calls_are_seen) {
    const struct hpl_scenario scenario = {1000, 100, 2, 5, 0, 0};
    struct calls calls = {0};
    hpl_predict(&scenario, &polynomial, count_call, &calls);
    assert_int_equal(calls.count, 9);
    assert_true(calls.largest == 450);
    double sums[5], seconds = 0;
    hpl_sum_terms(&scenario, terms, 5, sums);
    for (int t = 0; t < 5; t++)
        seconds += sums[t] * coefficients[t];
    assert_close(calls.seconds, seconds, 1e-12, "time");
}
