/* Fits from archives: roles, units and the suggested model come from inside. With --make FOLDER it only
 * writes the archives that the integration tests use. */
#include "archive-format/datapackage.h"
#include "archive-format/writer.h"
#include "engine/foundation/file.h"
#include "engine/plugin/fitting.h"
#include "engine/plugin/model-unit.h"
#include "engine/plugin/table.h"
#include "tests/test.h"

#include <unistd.h>

static char folder[4096] = "/tmp/assay-archive-XXXXXX";
static char hash[HASH_HEX_SIZE];

static void write_file(const char *staging, const char *name, const char *bytes, size_t length) {
    struct failure failure = {0};
    char *path = file_join(staging, name);
    assert_non_null(path);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(file_make_folders(path, &failure), 0);
    *slash = '/';
    assert_int_equal(file_replace(path, bytes, length, 0644, &failure), 0);
    free(path);
}

/* What an archive measures in: units of its durations and bytes, and how many of them one of s and By is. */
struct measures {
    const char *duration, *bytes;
    double per_second, per_byte;
};
static const struct measures plain = {"s", "By", 1, 1}, milli = {"ms", "KiBy", 1e3, 1.0 / 1024},
                             energy = {"J", "By", 1, 1};

/* 2 nodes x 2 cores x 30 calls; durations of the second node are twice as long. */
static void make_results(const struct measures *measures, struct text *text) {
    static const char *const nodes[] = {"n-2", "n-10"};
    assert_int_equal(text_append_string(text, "row,node,core,m,n,k,bytes,duration\n"), 0);
    for (int i = 0; i < 120; i++) {
        double m = 64 + i * 37 % 500, n = 64 + i * 53 % 700, k = 64 + i * 71 % 300;
        double seconds =
            (1 + i % 2) * (1e-5 + 6e-11 * m * n * k + 2e-9 * m * k) * (1 + 0.001 * (i * 29 % 13));
        assert_int_equal(text_printf(text, "%d,%s,%d,%g,%g,%g,%.17g,%.17g\n", i, nodes[i % 2], i / 2 % 2, m,
                                     n, k, 8 * m * n * measures->per_byte, seconds * measures->per_second),
                         0);
    }
}

static void make_archive(const char *name, const struct measures *measures, bool suggests) {
    struct failure failure = {0};
    char staging[8192], target[8192], package[16384];
    snprintf(staging, sizeof staging, "%s/staging", folder);
    snprintf(target, sizeof target, "%s/%s", folder, name);
    snprintf(package, sizeof package, "%s/datapackage.json", staging);
    struct text results, run;
    text_init(&results, 1 << 20);
    text_init(&run, 1 << 16);
    make_results(measures, &results);
    write_file(staging, TABLE_ARCHIVE_MEMBER, results.bytes, results.length);
    assert_int_equal(
        text_printf(
            &run,
            "{\"archive_version\":\"1.0\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b%02x\",\"name\":"
            "\"x\","
            "\"engine\":{\"name\":\"assay\",\"version\":\"0.1.0\",\"commit\":null},\"status\":\"completed\","
            "\"error\":null,\"started\":\"2025-11-20T10:00:00.123+00:00\","
            "\"ended\":\"2025-11-20T10:02:03.456+00:00\",\"seed\":\"1\",\"generator\":\"xoshiro256**\","
            "\"order\":\"as-written\",\"counts\":{\"rows\":120,\"units_planned\":120,\"units_done\":120,"
            "\"units_failed\":0},\"nodes\":[\"n-2\",\"n-10\"],\"testbed\":\"local\","
            "\"experiment\":{\"name\":\"dgemm\",\"folder\":\"dgemm\"},\"options\":{}%s}\n",
            (unsigned)name[0], /* each is a run of its own */
            suggests ? ",\"model\":{\"method\":\"linear\",\"response\":\"duration\",\"terms\":\"M-2\","
                       "\"sizes\":[\"m\",\"n\",\"k\"],\"by\":[\"node\",\"core\"]}"
                     : ""),
        0);
    write_file(staging, "run.json", run.bytes, run.length);
    const struct archive_column columns[] = {
        {"row", ARCHIVE_INTEGER, "1", ARCHIVE_ROLE_ID, NULL, NULL},
        {"node", ARCHIVE_STRING, "", ARCHIVE_ROLE_ID, NULL, NULL},
        {"core", ARCHIVE_INTEGER, "1", ARCHIVE_ROLE_ID, NULL, NULL},
        {"m", ARCHIVE_INTEGER, "1", ARCHIVE_ROLE_FACTOR, NULL, NULL},
        {"n", ARCHIVE_INTEGER, "1", ARCHIVE_ROLE_FACTOR, NULL, NULL},
        {"k", ARCHIVE_INTEGER, "1", ARCHIVE_ROLE_FACTOR, NULL, NULL},
        {"bytes", ARCHIVE_NUMBER, measures->bytes, ARCHIVE_ROLE_COVARIATE, NULL, NULL},
        {"duration", ARCHIVE_NUMBER, measures->duration, ARCHIVE_ROLE_RESPONSE, NULL, NULL},
    };
    const struct archive_table table = {TABLE_ARCHIVE_MEMBER, "calls", columns,
                                        sizeof columns / sizeof *columns};
    assert_int_equal(archive_write_datapackage(package, "x", &table, 1, &failure), 0);
    const struct archive_description description = {.name = "x",
                                                    .text = "A test.",
                                                    .status = "completed",
                                                    .started_ns = INT64_C(1763632800000000000),
                                                    .ended_ns = INT64_C(1763632923000000000),
                                                    .run_id = "3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10",
                                                    .engine_version = "0.1.0",
                                                    .command = "assay run x.yaml"};
    if (archive_seal(staging, target, &description, hash, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    assert_int_equal(file_remove_tree(staging, &failure), 0);
    text_clear(&results);
    text_clear(&run);
}

static int set_up(void **state) {
    if (!mkdtemp(folder))
        return -1;
    make_archive("ms.zip", &milli, true);
    make_archive("plain.zip", &plain, false);
    make_archive("joule.zip", &energy, false);
    make_archive("dgemm.csv", &plain, true); /* what it is shows in its bytes, not in its name */
    return 0;
}

static int tear_down(void **state) {
    return file_remove_tree(folder, NULL);
}

static struct table *open_table(const char *name) {
    char path[8192];
    const char *paths[] = {path};
    struct failure failure = {0};
    struct table *table;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (table_stream_open(paths, 1, true, &table, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    return table;
}

TEST(what_an_archive_says) {
    struct table *table = open_table("dgemm.csv");
    const struct table_input *input = table_input(table, 0);
    assert_true(input->archive);
    assert_string_equal(input->name, "dgemm.csv");
    assert_string_equal(input->sha256, hash);
    assert_string_equal(input->run_id, "3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b64");
    const struct table_suggestion *suggestion = table_suggestion(table);
    assert_non_null(suggestion);
    assert_string_equal(suggestion->method, "linear");
    assert_string_equal(suggestion->response, "duration");
    assert_string_equal(suggestion->terms, "M-2");
    assert_int_equal(suggestion->size_count, 3);
    assert_string_equal(suggestion->sizes[2], "k");
    assert_int_equal(suggestion->by_count, 2);
    assert_string_equal(suggestion->by[0], "node");
    size_t column;
    assert_int_equal(table_stream_find(table, "response", "duration", &column, NULL), 0);
    assert_true(table_column(table, column)->response);
    assert_string_equal(table_column(table, column)->unit, "s");
    assert_int_equal(table_stream_find(table, "number", "m", &column, NULL), 0);
    assert_false(table_column(table, column)->response);
    assert_int_equal(table_stream_find(table, "group", "node", &column, NULL), 0);
    assert_null(table_column(table, column)->unit);
    table_close(table);
    table = open_table("plain.zip");
    assert_null(table_suggestion(table));
    table_close(table);
}

struct heard {
    const struct fitting *fitting;
    size_t terms;
    char units[8][64], groups[8][64];
    size_t group_count;
    double products[8]; /* estimates of m*n*k */
};

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    struct heard *heard = context;
    heard->terms = formula->term_count;
    for (size_t t = 0; t < formula->term_count; t++) {
        char *unit;
        assert_int_equal(model_unit_of_term(heard->fitting, &formula->terms[t], &unit), 0);
        snprintf(heard->units[t], sizeof heard->units[t], "%s", unit ? unit : "-");
        free(unit);
    }
    return 0;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    struct heard *heard = context;
    snprintf(heard->groups[heard->group_count], sizeof heard->groups[0], "%s",
             fitting_options(heard->fitting)->by_count ? fitting_label(heard->fitting, group->code, 0)
                                                       : "all");
    heard->products[heard->group_count++] = group->parts[0].estimates[1].estimate;
    return 0;
}

static int hear_skipped(void *context, uint32_t group, uint64_t rows, const char *reason,
                        struct failure *failure) {
    fail_msg("skipped: %s", reason);
    return 0;
}

static void fit_archive(struct table *table, const char *terms, const char *const *by, size_t by_count,
                        struct heard *ret) {
    struct failure failure = {0};
    struct installation installation = {0};
    struct fitting *fitting;
    assert_int_equal(installation_init(&installation, test_build(), NULL, &failure), 0);
    const struct fitting_options options = {
        .method = "linear", .response = "duration", .terms = terms, .by = by, .by_count = by_count};
    if (fitting_run(&installation, table, &options, NULL, NULL, &fitting, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    *ret = (struct heard){.fitting = fitting};
    const struct fitting_listener listener = {ret, hear_formula, hear_group, hear_skipped};
    const struct fitting_listener *const listeners[] = {&listener};
    assert_int_equal(fitting_finish(fitting, listeners, 1, &failure), 0);
    fitting_free(fitting);
    installation_clear(&installation);
}

TEST(units_of_coefficients) {
    static const char *const by[] = {"node"};
    struct heard heard;
    struct table *table = open_table("dgemm.csv");
    fit_archive(table, "1+m*n*k+m*k", by, 1, &heard);
    assert_string_equal(heard.units[0], "s");
    assert_string_equal(heard.units[1], "s"); /* sizes are plain numbers */
    assert_int_equal(heard.group_count, 2);
    assert_string_equal(heard.groups[0], "n-2");
    assert_string_equal(heard.groups[1], "n-10");
    assert_true(fabs(heard.products[1] / heard.products[0] - 2) < 0.02);
    assert_int_equal(table_input(table, 0)->rows, 120);
    table_close(table);
    table = open_table("dgemm.csv");
    fit_archive(table, "1+bytes+bytes^2*m+row", NULL, 0, &heard);
    assert_string_equal(heard.units[1], "s/By");
    assert_string_equal(heard.units[2], "s/By2");
    assert_string_equal(heard.units[3], "s");
    table_close(table);
}

/* Opens two of the archives as one table. */
static struct table *open_two(const char *first, const char *second) {
    char paths[2][8192];
    const char *both[] = {paths[0], paths[1]};
    struct failure failure = {0};
    struct table *table;
    snprintf(paths[0], sizeof paths[0], "%s/%s", folder, first);
    snprintf(paths[1], sizeof paths[1], "%s/%s", folder, second);
    if (table_stream_open(both, 2, false, &table, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    return table;
}

static const char *const measured[] = {"m", "bytes", "duration"};

/* The rows of both inputs, whose second half says the same as the first. */
static void assert_same_halves(struct table *table) {
    struct failure failure = {0};
    struct table_block block;
    double values[240][3];
    size_t rows = 0;
    while (table_next(table, &block, &failure) > 0)
        for (size_t i = 0; i < block.rows; i++, rows++)
            for (size_t c = 0; c < 3; c++)
                values[rows][c] = block.numbers[c][i];
    assert_int_equal(rows, 240);
    for (size_t i = 0; i < 120; i++) {
        assert_true(values[i][0] == values[i + 120][0]);
        assert_true(values[i][1] == values[i + 120][1]); /* KiBy and By: nothing is rounded */
        assert_true(fabs(values[i][2] / values[i + 120][2] - 1) < 4e-16);
    }
}

TEST(units_are_converted) {
    struct failure failure = {0};
    struct table *table = open_two("plain.zip", "ms.zip");
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(table_begin(table, measured, 3, NULL, 0, &failure), 0);
        const char *note = table_note_after(table, NULL);
        assert_true(strstr(note, "the column 'bytes' of '") &&
                    strstr(note, "ms.zip' is converted to 'By', as"));
        note = table_note_after(table, note);
        assert_true(strstr(note, "the column 'duration' of '") && strstr(note, "plain.zip'"));
        assert_null(table_note_after(table, note));
        assert_same_halves(table);
    }
    table_close(table);
    table = open_two("ms.zip", "plain.zip");
    assert_int_equal(table_begin(table, measured, 3, NULL, 0, &failure), 0);
    assert_same_halves(table);
    size_t column;
    assert_int_equal(table_stream_find(table, "number", "duration", &column, NULL), 0);
    assert_string_equal(table_column(table, column)->unit, "ms");
    table_close(table);
    table = open_two("plain.zip", "dgemm.csv");
    assert_int_equal(table_begin(table, measured, 3, NULL, 0, &failure), 0);
    assert_null(table_note_after(table, NULL));
    table_close(table);
}

TEST(units_that_cannot_be) {
    struct failure failure = {0};
    struct table *table = open_two("plain.zip", "joule.zip");
    assert_int_equal(table_begin(table, measured, 2, NULL, 0, &failure), 0);
    assert_true(table_begin(table, measured, 3, NULL, 0, &failure) < 0);
    assert_true(strstr(failure.text, "the column 'duration' is in 'J'; expected 's', as in '") != NULL);
    assert_true(strstr(failure.text, "plain.zip'") && strstr(failure.place, "joule.zip"));
    table_close(table);
    /* Texts are compared as texts: 1 of KiBy is not 1024 of By. */
    static const char *const groups[] = {"bytes"};
    table = open_two("plain.zip", "ms.zip");
    assert_true(table_begin(table, measured, 1, groups, 1, &failure) < 0);
    assert_true(strstr(failure.text, "'bytes' is in 'KiBy'; expected 'By'") != NULL);
    table_close(table);
}

/* A CSV knows no units; beside an archive its numbers are in the archive's, whichever comes first. */
TEST(units_that_are_not_told) {
    struct failure failure = {0};
    struct text results;
    text_init(&results, 1 << 20);
    make_results(&plain, &results);
    write_file(folder, "calls.csv", results.bytes, results.length);
    text_clear(&results);
    static const char *const orders[][2] = {{"calls.csv", "plain.zip"}, {"plain.zip", "calls.csv"}};
    for (size_t i = 0; i < 2; i++) {
        struct table *table = open_two(orders[i][0], orders[i][1]);
        size_t column;
        assert_int_equal(table_stream_find(table, "number", "duration", &column, NULL), 0);
        assert_string_equal(table_column(table, column)->unit, "s");
        assert_int_equal(table_begin(table, measured + 1, 1, NULL, 0, &failure), 0);
        const char *note = table_note_after(table, NULL);
        assert_true(strstr(note, "calls.csv' has no unit; it is taken to be in 'By', as in '") != NULL);
        assert_null(table_note_after(table, note));
        assert_int_equal(table_begin(table, measured, 3, NULL, 0, &failure), 0);
        assert_same_halves(table);
        table_close(table);
    }
}

/* A flipped byte of the results must not become a model. */
TEST(damage_is_found) {
    struct failure failure = {0};
    struct text bytes;
    char path[8192];
    const char *paths[] = {path};
    text_init(&bytes, 1 << 22);
    snprintf(path, sizeof path, "%s/plain.zip", folder);
    assert_int_equal(file_read(path, &bytes, &failure), 0);
    char *results = memmem(bytes.bytes, bytes.length, TABLE_ARCHIVE_MEMBER, strlen(TABLE_ARCHIVE_MEMBER));
    assert_non_null(results);
    results[200] ^= 0x10; /* behind the name is the member's data */
    snprintf(path, sizeof path, "%s/damaged.zip", folder);
    assert_int_equal(file_replace(path, bytes.bytes, bytes.length, 0644, &failure), 0);
    struct table *table = NULL;
    int r = table_stream_open(paths, 1, false, &table, &failure);
    static const char *const numbers[] = {"m", "duration"};
    struct table_block block;
    r = r < 0 ? r : table_begin(table, numbers, 2, NULL, 0, &failure);
    while (r >= 0 && (r = table_next(table, &block, &failure)) > 0)
        ;
    assert_true(r < 0);
    assert_int_equal(failure.kind, FAILURE_VERIFICATION);
    table_close(table);
    text_clear(&bytes);
}

TEST_GROUP(set_up, tear_down)

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--make") == 0) {
        snprintf(folder, sizeof folder, "%s", argv[2]);
        make_archive("dgemm.zip", &plain, true);
        make_archive("plain.zip", &plain, false);
        make_archive("ms.zip", &milli, false);
        make_archive("joule.zip", &energy, false);
        return 0;
    }
    return test_run();
}
