/* Runs beside each other: what R says of the same numbers, and how often runs that do not differ are accused:
 * 200 seeds where ASSAY_TEST_ALL is set. */
#include "engine/analysis/difference.h"
#include "tests/unit/analysis/made-run.h"

enum { RUNS_MAX = 5, RESULTS_SIZE = 1 << 15 };

static const struct column columns[] = {
    {"order", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"block", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"attempt", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"node", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
    {"core", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
    {"NB", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
    {"rate", COLUMN_NUMBER, "Gflop/s", COLUMN_ROLE_RESPONSE, .label = NULL},
    {"state.flags", COLUMN_STRING, "", COLUMN_ROLE_COVARIATE, .label = NULL},
};
#define HEAD "order,block,attempt,node,core,NB,rate,state.flags\n"

/* The runs that are compared; the last is new. */
static struct {
    char text[RUNS_MAX][RESULTS_SIZE];
    size_t lengths[RUNS_MAX], orders[RUNS_MAX], count;
    struct measurements measurements;
    struct difference difference;
    char *report;
} made;

static int forget(void **state) {
    (void)state;
    difference_clear(&made.difference);
    measurements_clear(&made.measurements);
    free(made.report);
    memset(&made, 0, sizeof made);
    return 0;
}
TEST_EACH(forget, forget)

static void add(size_t run, size_t block, size_t node, size_t setting, double value, const char *flag) {
    size_t *length = &made.lengths[run];
    if (*length == 0)
        *length = (size_t)snprintf(made.text[run], RESULTS_SIZE, HEAD);
    *length +=
        (size_t)snprintf(made.text[run] + *length, RESULTS_SIZE - *length, "%zu,%zu,1,n%zu,all,%zu,%.9g,%s\n",
                         ++made.orders[run], block, node, setting, value, flag);
    made.count = run + 1 > made.count ? run + 1 : made.count;
}

static int compare(double least) {
    char *paths[RUNS_MAX];
    for (size_t i = 0; i < made.count; i++) {
        char name[] = {'r', (char)('a' + i), '\0'};
        made_run(name, ", \"answer\": {\"response\": \"rate\", \"unit\": \"Gflop/s\", \"best\": \"most\"}",
                 columns, sizeof columns / sizeof *columns, made.text[i]);
        paths[i] = strdup(test_path(name));
    }
    assert_ok(measurements_read((const char *const *)paths, made.count, NULL, false, &made.measurements,
                                &test_failure));
    for (size_t i = 0; i < made.count; i++)
        free(paths[i]);
    int r = difference_find(&made.measurements, made.count - 1, least, &made.difference, &test_failure);
    if (r == 0) {
        cleanup(report_cleanup) struct report *report = report_new();
        difference_report(report->root, &made.difference);
        made.report = report_render(report, false);
    }
    return r;
}

/* The hours of sleep that two drugs give ten patients (Student, 1908; R's `sleep`), with R's help of
 * t.test(). */
static const double sleep_hours[2][10] = {{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
                                          {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}};

TEST(units_are_compared_as_r_does_by_welch) {
    for (size_t run = 0; run < 2; run++)
        for (size_t i = 0; i < 10; i++)
            add(run, 1, 1, 64, sleep_hours[run][i], "");
    assert_ok(compare(0));
    const struct difference_estimate *found = &made.difference.items[0].difference;
    assert_int_equal(made.difference.method, DIFFERENCE_UNITS);
    assert_close(found->p, 0.07939, 1e-4, "p");
    assert_close(found->low, -0.2054832, 1e-6, "low");
    assert_close(found->high, 3.3654832, 1e-6, "high");
    assert_close(made.difference.whole.p, found->p, 1e-9, "of the whole, which is one setting");
    assert_says(
        made.report,
        "no difference shown: rate changed by +1.58 Gflop/s over 1 setting (95 % interval -0.205 to +3.37 "
        "Gflop/s, p = 0.079); settings tested: 1, of which worse: 0, better: 0\n");
}

TEST(nodes_are_compared_as_r_does_in_pairs) {
    for (size_t run = 0; run < 2; run++)
        for (size_t i = 10; i-- > 0;)
            add(run, 1, i, 64, sleep_hours[run][i], "");
    assert_ok(compare(0));
    const struct difference_estimate *found = &made.difference.items[0].difference;
    assert_int_equal(made.difference.method, DIFFERENCE_NODES);
    assert_close(found->p, 0.002833, 1e-3, "p");
    assert_close(found->low, 0.7001142, 1e-6, "low");
    assert_close(found->high, 2.4598858, 1e-6, "high");
    assert_int_equal(made.difference.sign, 1);
}

static double noise(void) {
    return sqrt(-2 * log(test_random())) * cos(2 * M_PI * test_random());
}

/* RUNS runs of 6 settings, 3 times each, on NODES nodes: with differences between runs, nodes and blocks, and
 * one setting of the last run changed by CHANGE. */
static void make(size_t runs, size_t nodes, double of_runs, double of_nodes, double of_blocks,
                 double change) {
    double node_levels[8];
    for (size_t n = 0; n < nodes; n++)
        node_levels[n] = of_nodes * noise();
    for (size_t run = 0; run < runs; run++) {
        double run_level = of_runs * noise();
        for (size_t block = 1; block <= 3; block++)
            for (size_t n = 0; n < nodes; n++) {
                double block_level = of_blocks * noise();
                for (size_t s = 0; s < 6; s++)
                    add(run, block, n, 32 << s,
                        100 * exp(0.1 * (double)s + run_level + node_levels[n] + block_level +
                                  0.01 * noise() + (run + 1 == runs && s == 2 ? change : 0)),
                        "");
            }
    }
}

/* Of runs without a change, how many per cent are said to differ, in the whole. */
static double accused(size_t runs, size_t nodes, double of_runs, double of_nodes, double of_blocks,
                      enum difference_method method) {
    size_t seeds = getenv("ASSAY_TEST_ALL") ? 200 : 10, whole = 0, settings = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        forget(NULL);
        test_seed = seed;
        make(runs, nodes, of_runs, of_nodes, of_blocks, 0);
        assert_ok(compare(0));
        assert_int_equal(made.difference.method, method);
        whole += made.difference.sign != 0;
        settings += made.difference.better + made.difference.worse > 0;
    }
    print_message(
        "method %d: of %zu pairs without a change %zu are said to differ in the whole, %zu in a setting\n",
        (int)method, seeds, whole, settings);
    return 100 * (double)whole / (double)seeds;
}

TEST(runs_without_a_change_are_not_accused) {
    assert_true(accused(5, 1, 0.02, 0, 0, DIFFERENCE_RUNS) <= 10);
    assert_true(accused(2, 4, 0, 0.05, 0, DIFFERENCE_NODES) <= 10);
    assert_true(accused(2, 1, 0, 0, 0.02, DIFFERENCE_BLOCKS) <= 12);
}

TEST(a_change_is_found_and_named) {
    test_seed = 4;
    make(2, 4, 0, 0.05, 0, -0.1);
    assert_ok(compare(0.01));
    assert_true(made.difference.worse == 1 && made.difference.better == 0 &&
                made.difference.items[2].sign == -1);
    assert_close(made.difference.items[2].difference.size, -0.1, 0.1, "size");
    assert_says(made.report, " worse: 1, better: 0\n");
}

TEST(what_cannot_be_compared_is_said) {
    for (size_t run = 0; run < 2; run++)
        for (size_t s = 0; s < 4; s++)
            add(run, 1, 1, 32 << s, 100 + (double)(s + run), "");
    assert_ok(compare(0)); /* one repetition */
    assert_int_equal(made.difference.method, DIFFERENCE_SETTINGS);
    assert_int_equal(made.difference.tested, 0);
    assert_true(made.difference.whole.low > 0);
    assert_says(made.report, "each setting was measured once");
    forget(NULL);
    add(0, 1, 1, 32, 100, "");
    add(1, 1, 1, 32, 101, "");
    assert_ok(compare(0)); /* once, and one setting */
    assert_says(
        made.report,
        "no difference shown: rate changed by +1 % over 1 setting (not tested: too few measurements)");
    forget(NULL);
    add(0, 1, 1, 32, 100, "");
    add(1, 1, 1, 64, 100, "");
    assert_refused(compare(0), test_path("rb"),
                   "1 settings have a value only in the runs before, and 1 only in this run");
    forget(NULL);
    add(0, 1, 1, 32, 100, "");
    add(1, 1, 1, 32, 100, "load");
    assert_refused(compare(0), test_path("rb"), "add --with-flagged to use rows that gates flagged");
}
