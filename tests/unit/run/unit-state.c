/* What the samples around a unit say of it. The samples are put where the sampler's lines would. */
#include "engine/run/state/unit-state.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/placement.h"
#include "engine/run/state/watch.h"
#include "tests/test.h"

#define MS INT64_C(1000000)

static struct campaign campaign;
static struct run_node node;
static struct watch_node watched;
static struct watch watch;
static struct node_set set;

static void add_probe(enum probe_kind kind, const char *const *names, size_t count) {
    struct watch_probe *probe = &watched.probes[kind];
    struct watch_file *file = xcalloc(1, sizeof *file);
    file->columns = watch_columns_new(count);
    file->column_count = WATCH_TIME_COLUMNS + count;
    probe->there = true;
    probe->files = probe->file = file;
    probe->pus = xcalloc(count + 1, sizeof *probe->pus);
    for (size_t i = 0; i < count; i++) {
        file->columns[WATCH_TIME_COLUMNS + i].name = xstrdup(names[i]);
        probe->pus[i] = (unsigned)i;
        probe->any_package |= strncmp(names[i], "package", 7) == 0;
    }
    history_reset(&probe->history, count);
    campaign.probes.periods_ns[kind] = 100 * MS;
}

static void sample(enum probe_kind kind, int64_t time_ns, double first, double second) {
    history_add(&watched.probes[kind].history, time_ns, (double[]){first, second});
}

static int set_up(void **state) {
    memset(&campaign, 0, sizeof campaign);
    memset(&node, 0, sizeof node);
    memset(&watched, 0, sizeof watched);
    for (int i = 0; i < GATE_KINDS; i++)
        campaign.gates.actions[i] = GATE_FLAG;
    campaign.gates.frequency_tolerance = 0.05;
    campaign.gates.temperature_band = 5;
    campaign.gates.foreign_load = 0.5;
    node.warm_temperature = NAN;
    watch = (struct watch){.set = &set, .nodes = &watched, .count = 1};
    watched.watch = &watch;
    watched.node = &node;
    watched.state = WATCH_ON;
    set = (struct node_set){.campaign = &campaign, .items = &node, .count = 1};
    return 0;
}

static int tear_down(void **state) {
    for (int kind = 0; kind < PROBE_KINDS; kind++)
        watch_probe_clear(&watched.probes[kind]);
    return 0;
}

static unsigned pus[] = {0, 1};

static struct unit_state judge(int64_t start_ns, int64_t end_ns) {
    return unit_state_of_span(&watch, &(struct placement_share){&node, pus, 2}, start_ns, end_ns);
}

TEST(known_when_every_probe_has_told_of_the_end) {
    add_probe(PROBE_FREQUENCY, (const char *[]){"cpu0", "cpu1"}, 2);
    add_probe(PROBE_THROTTLE, (const char *[]){"core-0-0", "package-0"}, 2);
    assert_false(unit_state_is_known(&watch, 0, 50 * MS));
    sample(PROBE_FREQUENCY, 100 * MS, 2e9, 2e9);
    assert_false(unit_state_is_known(&watch, 0, 50 * MS));
    sample(PROBE_THROTTLE, 40 * MS, 0, 0);
    assert_false(unit_state_is_known(&watch, 0, 50 * MS));
    sample(PROBE_THROTTLE, 50 * MS, 0, 0);
    assert_true(unit_state_is_known(&watch, 0, 50 * MS));
    /* What is sampled seldom is waited for if a gate looks at it; a sampler that has ended is not. */
    add_probe(PROBE_DRIFT, (const char *[]){"drifted", "x"}, 2);
    assert_false(unit_state_is_known(&watch, 0, 50 * MS));
    campaign.probes.periods_ns[PROBE_DRIFT] = 10000 * MS;
    assert_false(unit_state_is_known(&watch, 0, 50 * MS));
    campaign.gates.actions[GATE_DRIFT] = GATE_NONE;
    assert_true(unit_state_is_known(&watch, 0, 50 * MS));
    assert_false(unit_state_is_known(&watch, 0, 500 * MS));
    watched.state = WATCH_OFF;
    assert_true(unit_state_is_known(&watch, 0, 500 * MS));
}

TEST(counters_count_from_before_the_start) {
    add_probe(PROBE_THROTTLE, (const char *[]){"core-0-0", "package-0"}, 2);
    sample(PROBE_THROTTLE, 100 * MS, 5, 9);
    sample(PROBE_THROTTLE, 200 * MS, 5, 9);
    sample(PROBE_THROTTLE, 300 * MS, 5, 10); /* moved between 200 and 300 */
    sample(PROBE_THROTTLE, 400 * MS, 5, 10);
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 0);
    assert_int_equal(judge(110 * MS, 210 * MS).flags, 1 << GATE_THROTTLE);
    assert_int_equal(judge(250 * MS, 260 * MS).flags, 1 << GATE_THROTTLE);
    assert_int_equal(judge(301 * MS, 399 * MS).flags, 0);
    campaign.gates.actions[GATE_THROTTLE] = GATE_NONE;
    assert_int_equal(judge(250 * MS, 260 * MS).flags, 0);
}

TEST(counters_that_are_read_seldom) {
    add_probe(PROBE_KERNEL, (const char *[]){"errors", "corrected"}, 2);
    sample(PROBE_KERNEL, 100 * MS, 1, 0);
    sample(PROBE_KERNEL, 110 * MS, NAN, NAN);
    sample(PROBE_KERNEL, 120 * MS, NAN, NAN);
    sample(PROBE_KERNEL, 130 * MS, 2, 0);
    assert_int_equal(judge(111 * MS, 129 * MS).flags, 1 << GATE_KERNEL);
    assert_int_equal(judge(111 * MS, 119 * MS).flags, 0); /* nothing is known to have moved by then */
}

TEST(a_counter_that_is_not_known_has_not_moved) {
    add_probe(PROBE_THROTTLE, (const char *[]){"core-0-0", "package-0"}, 2);
    sample(PROBE_THROTTLE, 100 * MS, NAN, 3);
    sample(PROBE_THROTTLE, 200 * MS, 7, 3);
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 0);
}

TEST(frequency_is_of_the_units_pus) {
    node.control.target_min_hz = node.control.target_max_hz = 2e9;
    add_probe(PROBE_FREQUENCY, (const char *[]){"cpu0", "cpu1"}, 2);
    sample(PROBE_FREQUENCY, 100 * MS, 2e9, 1e9);
    sample(PROBE_FREQUENCY, 200 * MS, 2e9, 1e9);
    sample(PROBE_FREQUENCY, 300 * MS, 2e9, 1e9);
    struct unit_state found =
        unit_state_of_span(&watch, &(struct placement_share){&node, pus, 1}, 110 * MS, 290 * MS);
    assert_float_equal(found.frequency_hz, 2e9, 1);
    assert_int_equal(found.flags, 0);
    found = unit_state_of_span(&watch, &(struct placement_share){&node, pus + 1, 1}, 110 * MS, 290 * MS);
    assert_float_equal(found.frequency_hz, 1e9, 1);
    assert_int_equal(found.flags, 1 << GATE_FREQUENCY);
    found = judge(110 * MS, 290 * MS);
    assert_float_equal(found.frequency_hz, 1.5e9, 1);
    /* A PU that is not sampled tells nothing. */
    found =
        unit_state_of_span(&watch, &(struct placement_share){&node, (unsigned[]){7}, 1}, 110 * MS, 290 * MS);
    assert_true(isnan(found.frequency_hz));
    assert_int_equal(found.flags, 0);
}

TEST(frequency_between_two_samples) {
    node.control.target_min_hz = node.control.target_max_hz = 2e9;
    add_probe(PROBE_FREQUENCY, (const char *[]){"cpu0", "cpu1"}, 2);
    sample(PROBE_FREQUENCY, 100 * MS, 0.8e9, 0.8e9); /* idle */
    sample(PROBE_FREQUENCY, 200 * MS, 2e9, 2e9);
    sample(PROBE_FREQUENCY, 300 * MS, 0.8e9, 0.8e9);
    struct unit_state found = judge(110 * MS, 190 * MS);
    assert_float_equal(found.frequency_hz, 2e9, 1);
    assert_int_equal(found.flags, 0);
    found = judge(150 * MS, 250 * MS); /* one sample within */
    assert_float_equal(found.frequency_hz, 2e9, 1);
}

TEST(no_target_no_flag) {
    add_probe(PROBE_FREQUENCY, (const char *[]){"cpu0", "cpu1"}, 2);
    sample(PROBE_FREQUENCY, 100 * MS, 1, 1);
    sample(PROBE_FREQUENCY, 200 * MS, 1, 1);
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 0);
    node.control.target_max_hz = 2e9; /* only a roof */
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 0);
}

TEST(temperature_is_of_packages) {
    add_probe(PROBE_TEMPERATURE, (const char *[]){"package-0", "nvme"}, 2);
    sample(PROBE_TEMPERATURE, 100 * MS, 60, 90);
    sample(PROBE_TEMPERATURE, 200 * MS, 66, 90);
    struct unit_state found = judge(110 * MS, 190 * MS);
    assert_float_equal(found.temperature, 66, 1e-9);
    assert_int_equal(found.flags, 0); /* nothing was warmed up */
    node.warm_temperature = 63;
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 0);
    node.warm_temperature = 60;
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 1 << GATE_TEMPERATURE);
    node.warm_temperature = 72;
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 1 << GATE_TEMPERATURE);
}

TEST(load_of_others_counts_after_the_start) {
    add_probe(PROBE_LOAD, (const char *[]){"busy", "foreign"}, 2);
    sample(PROBE_LOAD, 100 * MS, 1, 2.5); /* of the time before the unit */
    sample(PROBE_LOAD, 200 * MS, 1, 0.1);
    sample(PROBE_LOAD, 300 * MS, 1, 0.9);
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 0);
    assert_int_equal(judge(110 * MS, 290 * MS).flags, 1 << GATE_LOAD);
}

TEST(drift_and_several_at_once) {
    char words[128];
    add_probe(PROBE_DRIFT, (const char *[]){"drifted", "x"}, 2);
    add_probe(PROBE_LOAD, (const char *[]){"busy", "foreign"}, 2);
    sample(PROBE_DRIFT, 100 * MS, 0, 0);
    sample(PROBE_DRIFT, 200 * MS, 2, 0);
    sample(PROBE_LOAD, 100 * MS, 1, 3);
    sample(PROBE_LOAD, 200 * MS, 1, 3);
    struct unit_state found = judge(110 * MS, 190 * MS);
    assert_string_equal(unit_state_flags(found.flags, words, sizeof words), "drift;load");
    campaign.gates.actions[GATE_LOAD] = GATE_REPEAT;
    assert_int_equal(unit_state_action(&campaign.gates, found.flags), GATE_REPEAT);
    campaign.gates.actions[GATE_DRIFT] = GATE_STOP;
    assert_int_equal(unit_state_action(&campaign.gates, found.flags), GATE_STOP);
    assert_int_equal(unit_state_action(&campaign.gates, 0), GATE_NONE);
    assert_string_equal(unit_state_flags(0, words, sizeof words), "");
}

TEST(unwatched) {
    add_probe(PROBE_LOAD, (const char *[]){"busy", "foreign"}, 2);
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 1 << GATE_UNWATCHED);
    sample(PROBE_LOAD, 150 * MS, 1, 0);
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 1 << GATE_UNWATCHED);
    sample(PROBE_LOAD, 250 * MS, 1, 0);
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 1 << GATE_UNWATCHED); /* nothing from before it */
    assert_int_equal(judge(160 * MS, 190 * MS).flags, 0);
    watch.nodes = NULL; /* a campaign without probes says nothing, and flags nothing */
    assert_int_equal(judge(110 * MS, 190 * MS).flags, 0);
}

TEST_EACH(set_up, tear_down)
