/* What a live page shows of nodes: their last units, sensors, and the last messages of the journal. */
#include "engine/run/record/last-units.h"
#include "engine/run/record/sensors.h"

#include "tests/test.h"

#include <sys/stat.h>

#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

static char header[] =
    "row,repetition,order,block,attempt,node,core,start,start_monotonic,\"a,b\",rate,state.frequency,"
    "state.temperature,state.flags\n";

static void add_commit(struct run_history *history, uint64_t bytes) {
    history->commits = xrealloc(history->commits, (history->commit_count + 1) * sizeof *history->commits);
    history->commits[history->commit_count++] = (struct run_history_commit){.bytes = bytes};
}

static char *line(int order, const char *node, const char *flags) {
    return xformat("1,1,%d,1,1,%s,all,2026-11-28T13:11:25.702242971Z,52290738531695,2,201,,,%s\n", order,
                   node, flags);
}

TEST(last_units_of_nodes) {
    struct run_history history = {0};
    const struct run_history_node *one = run_history_find_node(&history, "n-1"),
                                  *two = run_history_find_node(&history, "n-2");
    cleanup_free char *a = line(7, "n-1", "load"), *b = line(9, "n-1", ""),
                      *c = line(8, "n-2", "load;frequency");
    cleanup_free char *first = xformat("%s%s", header, a), *all = xformat("%s%s%s%s", header, a, b, c);
    const char *folder = test_path("run");
    assert_int_equal(mkdir(folder, 0700), 0);
    last_units_read(&history, folder); /* nothing was committed, and there are no results */
    add_commit(&history, strlen(first));
    last_units_read(&history, folder);
    assert_int_equal(one->unit, 0);
    assert_int_equal(mkdir(test_path("run/results"), 0700), 0);
    test_put("run/results/results.csv", all);
    last_units_read(&history, folder);
    assert_int_equal(one->unit, 7); /* what is behind the commit does not count */
    assert_string_equal(one->flags, "load");
    assert_int_equal(two->unit, 0);
    add_commit(&history, strlen(all));
    last_units_read(&history, folder);
    assert_int_equal(one->unit, 9);
    assert_string_equal(one->flags, "");
    assert_int_equal(two->unit, 8);
    assert_string_equal(two->flags, "load;frequency");
    run_history_clear(&history);
}

TEST(only_the_end_of_long_results_is_read) {
    struct run_history history = {0};
    const struct run_history_node *node = run_history_find_node(&history, "n-1");
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    text_append_string(&text, header);
    for (int i = 1; i <= 5000; i++) {
        cleanup_free char *next = line(i, i == 1 ? "n-2" : "n-1", "");
        text_append_string(&text, next);
    }
    assert_true(text.length > LAST_UNITS_TAIL);
    const struct run_history_node *early = run_history_find_node(&history, "n-2");
    assert_int_equal(mkdir(test_path("long"), 0700), 0);
    assert_int_equal(mkdir(test_path("long/results"), 0700), 0);
    test_put("long/results/results.csv", text.bytes);
    add_commit(&history, text.length);
    last_units_read(&history, test_path("long"));
    assert_int_equal(node->unit, 5000);
    assert_int_equal(early->unit, 0);
    run_history_clear(&history);
}

TEST(sensors_by_units) {
    char *temperatures[] = {(char *)"package-0", (char *)"core-0-1"},
         *cpus[] = {(char *)"cpu0", (char *)"cpu1"}, *zones[] = {(char *)"package-0", (char *)"psys"},
         *chips[] = {(char *)"chip"};
    char *cel[] = {(char *)"Cel", (char *)"Cel"}, *hertz[] = {(char *)"Hz", (char *)"Hz"},
         *uj[] = {(char *)"uJ", (char *)"uJ"}, *uw[] = {(char *)"uW"};
    double hot[] = {61, 64.5}, clock[] = {2e9, 3e9}, energy[] = {5e6, 9e9}, power[] = {9e6},
           before[] = {1e6, 1e6};
    struct samples_probe probes[] = {
        {.file = (char *)"temperature.csv", .names = temperatures, .units = cel, .values = hot, .count = 2},
        {.file = (char *)"frequency.csv", .names = cpus, .units = hertz, .values = clock, .count = 2},
        {.file = (char *)"power.csv", .names = chips, .units = uw, .values = power, .count = 1},
        {.file = (char *)"energy.csv",
         .names = zones,
         .units = uj,
         .values = energy,
         .count = 2,
         .time_ns = 3000000000},
    };
    struct samples samples = {.probes = probes, .count = 4};
    struct sensors found = sensors_find(&samples);
    assert_true(found.temperature == 64.5);
    assert_true(found.frequency == 2.5e9);
    assert_true(fabs(found.power - 9) < 1e-12); /* of energy there is one sample */
    probes[3].before = before;
    probes[3].before_ns = 1000000000;
    assert_true(fabs(sensors_find(&samples).power - 2) < 1e-12); /* 4 J in 2 s */
    energy[0] = 0;                                               /* the counter has wrapped */
    assert_true(fabs(sensors_find(&samples).power - 9) < 1e-12);
    assert_true(isnan(sensors_find(&(struct samples){0}).temperature));
}
