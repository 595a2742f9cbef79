/* fit-smpi: tables made by hand, the trap of the quantiles, and what is not to be had. */
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

enum { ROWS = 4000, ISEND = 0, SEND, RECV, PING, IPROBE, TEST, WTIME, OTHER };

static double sizes[ROWS], durations[ROWS];
static uint32_t operations[ROWS], groups[ROWS];
static size_t rows;
static const char *const levels[] = {"Isend",      "MPI_Send", "mpi_recv",  "PingPong",
                                     "MPI_Iprobe", "Test",     "MPI_Wtime", "Barrier"};

static int set_up(void **state) {
    return fit_library_open("fit-smpi");
}

static struct host_table begin(void) {
    rows = 0;
    memset(groups, 0, sizeof groups);
    return (struct host_table){
        .names = {"size", "duration"},
        .columns = {sizes, durations},
        .column_count = 2,
        .response = "duration",
        .category_names = {"operation"},
        .categories = {operations},
        .levels = {levels},
        .level_counts = {8},
        .category_count = 1,
        .settings = {"latency", "bandwidth", "break1", "send-is-detached-thresh"},
        .values = {1e-5, 1e9, 1000, 1000},
        .setting_count = 4,
    };
}

static void set(struct host_table *table, const char *name, double value) {
    table->settings[table->setting_count] = name;
    table->values[table->setting_count++] = value;
}

static void add(uint32_t operation, double size, double duration) {
    assert_true(rows < ROWS);
    sizes[rows] = size;
    durations[rows] = duration;
    operations[rows++] = operation;
}

/* Lines without noise: intercept and slope below and from 1000 bytes on, ten rows a size. */
static void add_line(uint32_t operation, double a, double b, double a_large, double b_large) {
    static const double some[] = {10, 200, 500, 999, 1000, 5000, 20000};
    for (size_t i = 0; i < 7; i++)
        for (int k = 0; k < 10; k++)
            add(operation, some[i], some[i] < 1000 ? a + b * some[i] : a_large + b_large * some[i]);
}

static void add_all(void) {
    add_line(ISEND, 1e-6, 1e-10, 2e-6, 1e-12);
    add_line(SEND, 3e-6, 2e-10, 4e-6, 1e-12);
    add_line(RECV, 2e-6, 4e-10, 9e-6, 1e-9);
    add_line(PING, 3e-5, 3e-9, 6e-5, 8e-9);
    for (int i = 0; i < 10; i++) {
        add(IPROBE, 1, i == 0 ? 1 : i == 9 ? 0 : 3e-7);
        add(TEST, 1, 2e-7 + 1e-9 * i);
    }
    add(WTIME, 0, 0.5);
}

static double value_of(const struct host_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    fail_msg("%s has no %s", part->name, name);
    return NAN;
}

static const struct host_part *part_of(size_t group, const char *name, double from) {
    const struct host_group *found = &result.groups[group];
    for (size_t i = 0; i < found->part_count; i++)
        if (strcmp(found->parts[i].name, name) == 0 &&
            (found->parts[i].from == from || !isfinite(found->parts[i].from)))
            return &found->parts[i];
    fail_msg("there is no %s from %g", name, from);
    return NULL;
}

static void assert_near(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g; expected %.17g", found, expected);
}

static void assert_refused(const struct host_table *table, const char *words) {
    host_fit(fit, table, &result);
    assert_int_equal(result.code, -EINVAL);
    if (!strstr(result.message.text, words))
        fail_msg("'%s'; expected '%s'", result.message.text, words);
}

/* Every number of the model from lines that are known. */
TEST(factors) {
    struct host_table table = begin();
    set(&table, "async-small-thresh", 512);
    add_all();
    table.rows = rows;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_string_equal(result.kind, "smpi");
    assert_string_equal(result.over, "size");
    assert_int_equal(result.groups[0].part_count, 8 + 3 + 1);
    /* The segment below 1000 ends at the threshold: os and ois are charged there, or is not. */
    assert_true(host_value(&result.groups[0], "charged") == 1); /* the first part: Isend */
    assert_true(value_of(part_of(0, "Send", 0), "charged") == 1);
    assert_true(value_of(part_of(0, "Recv", 0), "charged") == 0);
    assert_true(value_of(part_of(0, "Isend", 1000), "charged") == 0);
    assert_near(part_of(0, "Isend", 0)->estimates[0].estimate, 1e-6);
    assert_near(part_of(0, "Isend", 1000)->estimates[1].estimate, 1e-12);
    assert_near(value_of(part_of(0, "PingPong", 0), "lat_factor"), 3e-5 / 2 / 1e-5);
    assert_near(value_of(part_of(0, "PingPong", 0), "bw_factor"), 1 / (1e9 * 3e-9 / 2));
    assert_near(value_of(part_of(0, "PingPong", 1000), "lat_factor"), 3);
    assert_near(value_of(part_of(0, "PingPong", 1000), "bw_factor"), 0.25);
    assert_true(part_of(0, "PingPong", 0)->to == 1000 && part_of(0, "PingPong", 1000)->to == INFINITY);
    assert_near(part_of(0, "Iprobe", 0)->estimates[0].estimate, 3e-7);
    assert_near(part_of(0, "Test", 0)->estimates[0].estimate, 2.045e-7);
    assert_near(part_of(0, "Wtime", 0)->estimates[0].estimate, 5e-8);
    assert_true(part_of(0, "Wtime", 0)->estimates[1].dropped);
    assert_true(value_of(part_of(0, "protocol", 0), "async_small_thresh") == 512);
    assert_true(value_of(part_of(0, "protocol", 0), "send_is_detached_thresh") == 1000);
    assert_string_equal(result.groups[0].notes, "breaks: 1000; set by break1 ...|");
    /* One byte more, and the receive is charged too; the ping-pong loses it. */
    table.values[3] = 1001;
    host_fit(fit, &table, &result);
    assert_true(value_of(part_of(0, "Recv", 0), "charged") == 1);
    assert_near(value_of(part_of(0, "PingPong", 0), "lat_factor"), (3e-5 - 2e-6) / 2 / 1e-5);
    assert_near(value_of(part_of(0, "PingPong", 0), "bw_factor"), 1 / (1e9 * (3e-9 - 4e-10) / 2));
    assert_near(value_of(part_of(0, "PingPong", 1000), "lat_factor"), 3);
}

/* Rows of two groups in turn: neighbours are those of the group. */
TEST(pairs_and_groups) {
    struct host_table table = begin();
    /* Raw data of a ping-pong, the groups one row after the other: 1 has it, 2 only Isend. */
    for (int i = 0; i < 60; i++) {
        double size = i % 2 ? 100 : i < 30 ? 200 : 4000 + i;
        groups[rows] = 0;
        add(SEND, size, 1e-6 + 1e-9 * size);
        groups[rows] = 1;
        add(ISEND, size, 1e-6);
        groups[rows] = 0;
        add(RECV, size, 2e-6 + 3e-9 * size);
    }
    groups[rows] = 0;
    add(RECV, 300, 5e-6); /* alone */
    table.rows = rows;
    table.groups = groups;
    table.group_count = 2;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_true(result.groups[0].fitted && !result.groups[1].fitted);
    assert_non_null(strstr(result.groups[1].reason, "no PingPong"));
    assert_int_equal(result.groups[1].rows, 60);
    assert_near(value_of(part_of(0, "PingPong", 0), "lat_factor"), 3e-6 / 2 / 1e-5);
    assert_near(value_of(part_of(0, "PingPong", 1000), "bw_factor"), 1 / (1e9 * 4e-9 / 2));
    assert_non_null(strstr(result.groups[0].notes, "no Isend: smpi/ois is not known|"));
    /* The Recv of a pair stands for both; its Send for itself too. Rows 0 and 2 are the first pair. */
    assert_true(!result.comparisons[0].none && !result.comparisons[0].as && result.comparisons[0].plus == 0);
    assert_string_equal(result.comparisons[2].as, "PingPong");
    assert_int_equal(result.comparisons[2].first, 0);
    assert_near(result.comparisons[2].plus, 1e-6 + 1e-9 * 200);
    assert_true(!result.comparisons[180].as && result.comparisons[180].first == 180);
}

/* What rows stand for by themselves. */
TEST(comparisons) {
    struct host_table table = begin();
    set(&table, "wtime-calls", 1e6);
    add(WTIME, 0, 0.5);
    add(OTHER, 10, 1);
    add(PING, -1, 1);
    add_all();
    table.rows = rows;
    host_fit(fit, &table, &result);
    assert_true(result.comparisons[0].divisor == 1e6 && !result.comparisons[0].none);
    assert_true(result.comparisons[1].none && result.comparisons[2].none && !result.comparisons[3].none);
    assert_true(result.comparisons[3].divisor == 1 && result.comparisons[3].first == 3);
    assert_true(part_of(0, "Iprobe", 0)->noisy && part_of(0, "Test", 0)->noise.constant > 0);
}

/* A duration x for which (1-h)x + hx is one bit above x, as the 0.1-quantile, cuts all that are x. */
TEST(quantile_trap) {
    double x = 0;
    for (int i = 1000; i < 4000 && x == 0; i++) {
        double candidate = i * 1e-9, index = 1 + 9 * 0.1, h = index - floor(index);
        if ((1 - h) * candidate + h * candidate > candidate)
            x = candidate;
    }
    assert_true(x > 0);
    for (int old = 0; old < 2; old++) {
        struct host_table table = begin();
        add_line(PING, 3e-5, 3e-9, 6e-5, 8e-9);
        for (int size = 100; size <= 200; size += 100)
            for (int k = 0; k < 10; k++)
                add(ISEND, size, k < 3 ? x : k == 9 ? 1 : 2 * x);
        set(&table, "quantile", old);
        table.rows = rows;
        host_fit(fit, &table, &result);
        assert_int_equal(result.code, 0);
        /* Exact: the three that are x stay, the greatest goes. Old: they go too. */
        assert_true(value_of(part_of(0, "Isend", 0), "rows") == (old ? 12 : 18));
    }
}

/* In random order a block holds all sizes: the sizes are trimmed, and it is said. */
TEST(random_order) {
    struct host_table table = begin();
    add_line(PING, 3e-5, 3e-9, 6e-5, 8e-9);
    for (int k = 0; k < 20; k++)
        for (int size = 100; size <= 900; size += 100)
            add(ISEND, size, k == 0 ? 1e-3 : k == 1 ? 0 : 1e-6 + 1e-9 * size);
    table.rows = rows;
    host_fit(fit, &table, &result);
    assert_near(part_of(0, "Isend", 0)->estimates[1].estimate, 1e-9);
    assert_true(value_of(part_of(0, "Isend", 0), "rows") == 9 * 18);
    assert_non_null(strstr(result.groups[0].notes, "Isend is trimmed size by size"));
    set(&table, "trim-per", 1);
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "hold several sizes"));
    assert_true(value_of(part_of(0, "Isend", 0), "rows") < 9 * 18);
}

/* Where lines that are known change: found, given in every way that there is, or not wanted. */
TEST(breaks) {
    struct host_table table = begin();
    static const double some[] = {1,    8,    64,   200,  600,  1000,  1500,  2000,
                                  2600, 3000, 3500, 4000, 5000, 20000, 40000, 70000};
    for (size_t i = 0; i < 16; i++)
        for (int k = 0; k < 4; k++) {
            double s = some[i], t = s < 1000 ? 2e-5 + 1e-9 * s : s < 3000 ? 9e-5 + 5e-9 * s : 4e-4 + 1e-9 * s;
            add(PING, s, t * (1 + 1e-3 * sin(12.9898 * (double)rows)));
        }
    table.rows = rows;
    table.settings[2] = "trim"; /* no breaks are set */
    table.values[2] = 0;
    table.values[3] = 5000; /* the threshold of detached sends */
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(
        result.groups[0].notes,
        "breaks: 1000, 3000, 5000; found in PingPong's 16 sizes (best segments by BIC of relative errors; "
        "send-is-detached-thresh 5000 is one)"));
    assert_true(part_of(0, "PingPong", 1000)->to == 3000 && part_of(0, "PingPong", 5000)->to == INFINITY);
    /* Without the threshold, which no line needs. */
    table.values[3] = 0;
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "breaks: 1000, 3000; found"));
    table.terms = "operation | 700 eager | 2500";
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "breaks: 700, 2500; in the terms|"));
    table.suggested = true;
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "breaks: 700, 2500; told by the archive|"));
    table.terms = NULL;
    table.other_method = "piecewise";
    table.other_terms = "size asynchronous | 1420 detached | 4000 synchronous";
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "breaks: 1420, 4000; thresholds that the archive tells|"));
    table.breaks_from = "network.json, group PingPong";
    table.breaks[0] = 900;
    table.break_count = 1;
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "breaks: 900; those of network.json, group PingPong|"));
    set(&table, "breaks", 1);
    assert_refused(&table, "breaks are given, and breaks=found");
    table.breaks_from = NULL;
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "breaks: 1000, 3000; found"));
    table.values[table.setting_count - 1] = 2;
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "breaks: none; breaks=none|"));
    table.setting_count--;
    table.suggested = false;
    table.terms = "operation | many";
    assert_refused(&table, "the terms: '| many' is no break");
    table.terms = "operation | 9 | 8";
    assert_refused(&table, "the break 8 comes after 9");
    table.terms = "operation | 9";
    set(&table, "break1", 7);
    assert_refused(&table, "breaks come from more than one of break1 ..., the terms and --breaks");
}

TEST(bad_rows) {
    struct host_table table = begin();
    add_all();
    add(PING, -1, 1e-6);
    add(PING, 100, -1e-6);
    add(PING, NAN, 1e-6);
    add(PING, 100, INFINITY);
    add(OTHER, 100, 1);
    table.rows = rows;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.groups[0].notes, "4 rows left out: the size or the duration is empty"));
    assert_non_null(strstr(result.groups[0].notes, "1 row of other operations left out|"));
    assert_near(value_of(part_of(0, "PingPong", 1000), "bw_factor"), 0.25);
}

TEST(scales_and_falls) {
    /* 1e-12 s and 1e12 s in one table. */
    struct host_table table = begin();
    add_line(PING, 1e-12, 1e-15, 1e12, 1e6);
    table.rows = rows;
    host_fit(fit, &table, &result);
    assert_near(value_of(part_of(0, "PingPong", 0), "lat_factor"), 1e-12 / 2 / 1e-5);
    assert_near(value_of(part_of(0, "PingPong", 1000), "lat_factor"), 1e12 / 2 / 1e-5);
    /* A line that falls. */
    table = begin();
    add_line(PING, 3e-5, -3e-9, 6e-5, 8e-9);
    table.rows = rows;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.groups[0].notes, "gives the segment from 0 byte to 1000 no bandwidth"));
    /* Constant durations. */
    table = begin();
    add_line(PING, 3e-5, 0, 6e-5, 8e-9);
    table.rows = rows;
    host_fit(fit, &table, &result);
    assert_non_null(strstr(result.groups[0].notes, "no bandwidth"));
    assert_true(isinf(value_of(part_of(0, "PingPong", 0), "bw_factor")));
}

TEST(too_little) {
    struct host_table table = begin();
    for (int i = 0; i < 10; i++)
        add(PING, 100 + i, 1e-6);
    add(PING, 5000, 1e-5); /* one size in the second segment */
    table.rows = rows;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_string_equal(result.groups[0].reason,
                        "PingPong has fewer than two sizes in the segment from 1000 byte");
    table.rows = 0;
    assert_refused(&table, "there are no rows to fit");
    table.rows = 1;
    table.level_counts[0] = 8;
    operations[0] = PING;
    host_fit(fit, &table, &result);
    assert_string_equal(result.groups[0].reason,
                        "PingPong has fewer than two sizes in the segment from 0 byte to 1000");
}

TEST(refusals) {
    struct host_table table = begin();
    add_all();
    table.rows = rows;
    table.setting_count = 0;
    assert_refused(&table, "the latency of the base link is not set");
    table.setting_count = 1;
    assert_refused(&table, "the bandwidth of the base link is not set");
    table = begin();
    table.rows = rows = 1;
    set(&table, "break3", 4000);
    assert_refused(&table, "break3 is set and break2 is not");
    table.setting_count--;
    set(&table, "break2", 1000);
    assert_refused(&table, "break1 is 1000 byte, break2 1000; expected one that is larger");
    table = begin();
    table.weights = "duration";
    assert_refused(&table, "weights are not used");
    table = begin();
    table.terms = "operatoin";
    assert_refused(&table, "there is no column 'operatoin' for the operation; did you mean 'operation'?");
    table = begin();
    table.names[0] = "length";
    assert_refused(&table, "which column is the size of a message? say it with --sizes");
    table.sizes[0] = "lenght";
    table.size_count = 1;
    assert_refused(&table, "did you mean 'length'?");
    table = begin();
    static const char *const others[] = {"Bcast", "Barrier"};
    table.levels[0] = others;
    table.level_counts[0] = 2;
    table.rows = 1;
    assert_refused(&table, "has no operation of MPI, the first of 2 is 'Bcast'");
}

TEST_GROUP(set_up, fit_library_close)
