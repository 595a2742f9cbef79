/* Faults that are planted in made-up runs are found, and nothing is found in runs without one: with few seeds
 * here, with 200 seeds of each design and noise where ASSAY_TEST_ALL is set. */
#include "engine/analysis/checks.h"
#include "tests/test.h"

enum { ROWS_MAX = 4096, SEEDS_ALL = 200, SEEDS_FEW = 5 };

/* Of a design: settings x repetitions on each core of each node. */
static const struct made_design {
    size_t nodes, cores, settings, repetitions;
} designs[] = {{1, 1, 12, 5}, {4, 1, 6, 4}, {1, 2, 40, 3}, {2, 4, 10, 5}, {1, 1, 60, 2}, {3, 1, 2, 30}};
enum { DESIGNS = sizeof designs / sizeof *designs };
enum noise { NORMAL, LONG_TAILED, SKEWED, UNEQUAL, NOISES };

/* What is planted; sizes are changes of the logarithm, or correlations. */
struct fault {
    double drift, oscillation, throttle, carried, modes, slow_node, slow_core, shared, warmth;
    bool is_sorted;
};

static struct {
    double y[ROWS_MAX], order[ROWS_MAX], frequency[ROWS_MAX], temperature[ROWS_MAX];
    uint32_t settings[ROWS_MAX], nodes[ROWS_MAX], cores[ROWS_MAX], blocks[ROWS_MAX];
    struct check_rows rows;
} run;

static double normal(void) {
    return sqrt(-2 * log(test_random())) * cos(2 * M_PI * test_random());
}

static double draw_noise(enum noise noise, size_t setting) {
    double z = normal();
    if (noise == LONG_TAILED) { /* Student's distribution with 3 degrees of freedom */
        double a = normal(), b = normal(), c = normal();
        return z / sqrt((a * a + b * b + c * c) / 3);
    }
    return noise == SKEWED ? exp(z) - 1.6 : noise == UNEQUAL ? z * exp(-0.1 * (double)(setting % 30)) : z;
}

static void shuffle(size_t *values, size_t count) {
    for (size_t i = count; i > 1; i--) {
        size_t k = (size_t)(test_random() * (double)i), value = values[i - 1];
        values[i - 1] = values[k];
        values[k] = value;
    }
}

static void make_run(const struct made_design *design, enum noise noise, const struct fault *fault) {
    size_t moments = design->settings * design->repetitions, count = 0;
    size_t *order = calloc(moments, sizeof *order);
    for (size_t i = 0; i < moments; i++)
        order[i] = i / design->repetitions;
    if (!fault->is_sorted)
        shuffle(order, moments);
    for (size_t node = 0; node < design->nodes; node++) {
        double temperature = 60;
        for (size_t at = 0; at < moments; at++) {
            size_t setting = order[at];
            double when = (double)at / (double)moments, shared = fault->shared * normal();
            bool is_throttled = fault->throttle > 0 && when > 0.6;
            temperature += normal();
            for (size_t core = 0; core < design->cores; core++) {
                size_t row = count++;
                run.settings[row] = (uint32_t)setting;
                run.nodes[row] = (uint32_t)node;
                run.cores[row] = (uint32_t)(node * design->cores + core);
                run.blocks[row] = (uint32_t)node;
                run.order[row] = (double)at + 1;
                run.frequency[row] = 3e9 * (is_throttled ? 0.8 : 1) + 1e6 * normal();
                run.temperature[row] = temperature;
                run.y[row] =
                    0.1 * (double)setting + 0.01 * draw_noise(noise, setting) + fault->drift * when +
                    fault->oscillation * sin(2 * M_PI * 4 * when) + is_throttled * fault->throttle +
                    (at > 0 ? fault->carried * (double)order[at - 1] / (double)design->settings : 0) +
                    (test_random() < 0.3 ? fault->modes : 0) + (node == 0 ? fault->slow_node : 0) +
                    (core == 0 ? fault->slow_core : 0) + shared + fault->warmth * (temperature - 60);
            }
        }
    }
    free(order);
    run.rows = (struct check_rows){.count = count,
                                   .y = run.y,
                                   .is_logarithmic = true,
                                   .settings = {run.settings, design->settings},
                                   .nodes = {run.nodes, design->nodes},
                                   .cores = {run.cores, design->nodes * design->cores},
                                   .blocks = {run.blocks, design->nodes},
                                   .order = run.order,
                                   .frequency = run.frequency,
                                   .temperature = run.temperature};
}

static size_t seeds(void) {
    return getenv("ASSAY_TEST_ALL") ? SEEDS_ALL : SEEDS_FEW;
}

TEST(runs_without_a_fault_are_not_accused) {
    size_t accused = 0, runs = 0;
    for (size_t d = 0; d < DESIGNS; d++)
        for (enum noise noise = NORMAL; noise < NOISES; noise++)
            for (test_seed = 1000 * d + 1; test_seed <= 1000 * d + seeds(); test_seed++) {
                struct checks checks;
                uint64_t seed = test_seed;
                make_run(&designs[d], noise, &(struct fault){0});
                checks_find(&run.rows, &checks);
                test_seed = seed;
                accused += checks.findings > 0;
                runs++;
                assert_true(checks.tested >= 5);
            }
    print_message("%zu of %zu runs are accused\n", accused, runs);
    assert_true(accused * 100 <= runs);
}

/* How often CHECK finds FAULT in runs of DESIGN. */
static void must_find(const char *what, size_t design, struct fault fault, enum check check, double size) {
    size_t found = 0, runs = 0;
    double mean = 0;
    for (enum noise noise = NORMAL; noise < NOISES; noise++)
        for (test_seed = 1; test_seed <= seeds(); test_seed++, runs++) {
            struct checks checks;
            uint64_t seed = test_seed;
            make_run(&designs[design], noise, &fault);
            checks_find(&run.rows, &checks);
            test_seed = seed;
            found += checks.results[check].is_finding;
            mean += checks.results[check].size;
        }
    mean /= (double)runs;
    print_message("%s: found in %zu of %zu runs, mean size %.3g\n", what, found, runs, mean);
    if (found < runs - runs / 8 || fabs(mean - size) > 0.25 * fabs(size))
        fail_msg("%s: found in %zu of %zu runs, mean size %g; expected %g", what, found, runs, mean, size);
}

TEST(planted_faults_are_found) {
    must_find("drift of 10 %", 0, (struct fault){.drift = 0.1}, CHECK_TREND, 10);
    must_find("drift of 4 % on two cores", 2, (struct fault){.drift = 0.04}, CHECK_TREND, 4);
    must_find("oscillation", 2, (struct fault){.oscillation = 0.04}, CHECK_AUTOCORRELATION, 0.57);
    must_find("throttling", 2, (struct fault){.throttle = 0.05}, CHECK_FREQUENCY, -5);
    must_find("temperature", 3, (struct fault){.warmth = 0.01}, CHECK_TEMPERATURE, 12);
    must_find("what the setting before leaves", 5, (struct fault){.carried = 0.1}, CHECK_CARRY_OVER, 5);
    must_find("settings in order", 0, (struct fault){.is_sorted = true}, CHECK_ORDER, 99);
    must_find("two modes", 2, (struct fault){.modes = 0.15}, CHECK_MODES, 15);
    must_find("a slow node", 1, (struct fault){.slow_node = 0.02}, CHECK_NODES, 2);
    must_find("a slow core", 3, (struct fault){.slow_core = 0.02}, CHECK_CORES, 1.9);
    must_find("load on both cores", 2, (struct fault){.shared = 0.02}, CHECK_NEIGHBOURS, 0.7);
}
