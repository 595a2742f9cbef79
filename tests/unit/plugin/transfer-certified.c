/* fit-transfer on every real table that has an answer in 40-digit arithmetic (data/README.md): latency,
 * bandwidth and residual sum of squares to 1e-12. Skipped, aloud, where the data is not. */
#include "engine/documents/csv.h"
#include "engine/plugin/fitting.h"
#include "tests/test.h"

#include <unistd.h>

static const char *data;
static struct installation installation;

static int set_up(void **state) {
    if (!(data = test_data()))
        exit(77);
    struct failure failure = {0};
    return installation_init(&installation, test_build(), NULL, &failure);
}

static int tear_down(void **state) {
    installation_clear(&installation);
    return 0;
}

/* A line of the answers. */
struct answer {
    char dataset[128];
    bool log;
    double n, latency, inverse, bandwidth, rss;
};

enum { ANSWERS_MAX = 64 };
static struct answer answers[ANSWERS_MAX];
static size_t answer_count;

static void read_answers(void) {
    static const char *const columns[] = {"dataset", "method", "n", "t0", "inv_B0", "B0", "rss"};
    size_t at[7];
    char path[8192];
    struct failure failure = {0};
    struct csv_reader *reader;
    const struct csv_field *fields;
    snprintf(path, sizeof path, "%s/mpi/transfer_certified.csv", data);
    if (csv_open(path, &reader, &failure) < 0)
        fail_msg("%s", failure.text);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(csv_find_column(reader, columns[i], &at[i], &failure), 0);
    while (csv_next(reader, &fields, &failure) > 0) {
        assert_true(answer_count < ANSWERS_MAX);
        struct answer *answer = &answers[answer_count++];
        snprintf(answer->dataset, sizeof answer->dataset, "%.*s", (int)fields[at[0]].length,
                 fields[at[0]].bytes);
        answer->log = memmem(fields[at[1]].bytes, fields[at[1]].length, "log T", 5) != NULL;
        double *const numbers[] = {&answer->n, &answer->latency, &answer->inverse, &answer->bandwidth,
                                   &answer->rss};
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(csv_number(reader, at[i + 2], numbers[i], &failure), 0);
    }
    csv_close(reader);
}

struct listening {
    const struct fitting *fitting;
    bool log;
    size_t compared;
};

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    assert_string_equal(formula->kind, "linear");
    return 0;
}

static double value_of(const struct fit_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

static void compare(double found, double expected, const char *what, const struct answer *answer) {
    char name[256];
    snprintf(name, sizeof name, "%s of %.200s (%s)", what, answer->dataset,
             answer->log ? "log" : "bandwidth");
    assert_close(found, expected, 1e-12, name);
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    struct listening *listening = context;
    char name[128];
    snprintf(name, sizeof name, "pycewise_data:%s/%s", fitting_label(listening->fitting, group->code, 0),
             fitting_label(listening->fitting, group->code, 1));
    for (size_t i = 0; i < answer_count; i++) {
        const struct answer *answer = &answers[i];
        if (strcmp(answer->dataset, name) != 0 || answer->log != listening->log)
            continue;
        const struct fit_part *part = &group->parts[0];
        assert_true((double)group->rows == answer->n);
        compare(value_of(part, "latency"), answer->latency, "the latency", answer);
        compare(part->estimates[0].estimate, answer->latency, "the intercept", answer);
        compare(part->estimates[1].estimate, answer->inverse, "the slope", answer);
        compare(value_of(part, "bandwidth"), answer->bandwidth, "the bandwidth", answer);
        compare(value_of(part, "rss"), answer->rss, "rss", answer);
        listening->compared++;
    }
    return 0;
}

static int hear_skipped(void *context, uint32_t code, uint64_t rows, const char *reason,
                        struct failure *failure) {
    fail_msg("skipped: %s", reason);
    return 0;
}

static size_t compare_all(bool log) {
    static const char *const by[] = {"cluster", "experiment"};
    const char *const settings[] = {log ? "criterion=log" : "criterion=bandwidth"};
    char path[8192];
    const char *const paths[] = {path};
    struct failure failure = {0};
    struct table *table;
    struct fitting *fitting;
    snprintf(path, sizeof path, "%s/mpi/dahu_gros.csv", data);
    const struct fitting_options options = {.method = "transfer",
                                            .response = "duration",
                                            .by = by,
                                            .by_count = 2,
                                            .settings = settings,
                                            .setting_count = 1};
    if (table_stream_open(paths, 1, false, &table, &failure) < 0 ||
        fitting_run(&installation, table, &options, NULL, NULL, &fitting, &failure) < 0)
        fail_msg("%s", failure.text);
    struct listening listening = {.fitting = fitting, .log = log};
    const struct fitting_listener listener = {&listening, hear_formula, hear_group, hear_skipped};
    const struct fitting_listener *const listeners[] = {&listener};
    assert_int_equal(fitting_finish(fitting, listeners, 1, &failure), 0);
    fitting_free(fitting);
    table_close(table);
    return listening.compared;
}

TEST(certified) {
    read_answers();
    assert_true(answer_count > 0);
    assert_int_equal(compare_all(false) + compare_all(true), answer_count);
}

TEST_GROUP(set_up, tear_down)
