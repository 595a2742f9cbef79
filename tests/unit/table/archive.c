/* Tables of archives: roles, units and the suggested model come from inside. With --make FOLDER it only
 * writes the archives that the integration tests use. */
#include "archive-format/datapackage.h"
#include "archive-format/writer.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/table/table.h"
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
    write_file(staging, "clock.json", "{\"offset\": 12345}\n", strlen("{\"offset\": 12345}\n"));
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

/* NAMES of the folder as one table, up to the one that is NULL. */
static int open_names(const char *const *names, struct table **ret, struct failure *failure) {
    char paths[2][8192];
    const char *both[] = {paths[0], paths[1]};
    size_t count = 0;
    for (; count < 2 && names[count]; count++)
        snprintf(paths[count], sizeof paths[count], "%s/%s", folder, names[count]);
    const struct table_options options = {.hash = true};
    return table_open(both, count, &options, ret, failure);
}

static const char *const measured[] = {"m", "bytes", "duration"};

static int load(struct table *table, const char *const *categories, size_t count, struct failure *failure) {
    const struct table_selection selection = {
        .numbers = measured, .number_count = 3, .categories = categories, .category_count = count};
    return table_load(table, &selection, failure);
}

TEST(what_an_archive_says) {
    struct failure failure = {0};
    cleanup(table_cleanup) struct table *table = NULL, *plain_table = NULL;
    assert_int_equal(open_names((const char *const[]){"dgemm.csv", NULL}, &table, &failure), 0);
    assert_true(table->inputs[0].archive);
    assert_string_equal(table->inputs[0].name, "dgemm.csv");
    assert_string_equal(table->inputs[0].sha256, hash);
    assert_string_equal(table->inputs[0].run_id, "3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b64");
    const struct table_suggestion *suggestion = table->suggestion;
    assert_string_equal(suggestion->method, "linear");
    assert_string_equal(suggestion->response, "duration");
    assert_string_equal(suggestion->terms, "M-2");
    assert_int_equal(suggestion->size_count, 3);
    assert_string_equal(suggestion->sizes[2], "k");
    assert_int_equal(suggestion->by_count, 2);
    assert_string_equal(suggestion->by[0], "node");
    assert_true(table_find(table, "duration")->response);
    assert_string_equal(table_find(table, "duration")->unit, "s");
    assert_false(table_find(table, "m")->response);
    assert_null(table_find(table, "node")->unit);
    assert_int_equal(open_names((const char *const[]){"plain.zip", NULL}, &plain_table, &failure), 0);
    assert_null(plain_table->suggestion);
}

/* The second half of the rows says the same as the first. */
static void assert_same_halves(const struct table *table) {
    assert_int_equal(table->rows, 240);
    for (size_t i = 0; i < 120; i++)
        for (size_t c = 0; c < 3; c++) /* KiBy and By: nothing is rounded */
            assert_true(fabs(table->numbers[c].values[i] / table->numbers[c].values[i + 120] - 1) <
                        (c == 2 ? 4e-16 : 1e-300));
}

/* A CSV knows no units; beside an archive its numbers are in the archive's, whichever comes first. */
TEST(units_are_converted_or_taken) {
    static const struct {
        const char *names[2], *unit, *note;
        size_t notes;
    } cases[] = {{{"plain.zip", "ms.zip"}, "s", "ms.zip' is converted to", 2},
                 {{"ms.zip", "plain.zip"}, "ms", "plain.zip' is converted to", 2},
                 {{"plain.zip", "dgemm.csv"}, "s", NULL, 0},
                 {{"calls.csv", "plain.zip"}, "s", "calls.csv' has no unit; it is taken to be in", 2},
                 {{"plain.zip", "calls.csv"}, "s", "calls.csv' has no unit; it is taken to be in", 2}};
    cleanup(text_clear) struct text results;
    text_init(&results, 1 << 20);
    make_results(&plain, &results);
    write_file(folder, "calls.csv", results.bytes, results.length);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct failure failure = {0};
        cleanup(table_cleanup) struct table *table = NULL;
        assert_int_equal(open_names(cases[i].names, &table, &failure), 0);
        assert_int_equal(load(table, NULL, 0, &failure), 0);
        assert_string_equal(table_find(table, "duration")->unit, cases[i].unit);
        size_t found = 0;
        for (size_t n = 0; cases[i].note && n < table->note_count; n++)
            found += strstr(table->notes[n], cases[i].note) != NULL;
        assert_true(found == cases[i].notes);
        assert_same_halves(table);
    }
}

/* Texts are compared as texts: 1 of KiBy is not 1024 of By. */
TEST(units_that_cannot_be) {
    static const char *const groups[] = {"bytes"};
    struct failure failure = {0};
    cleanup(table_cleanup) struct table *table = NULL, *other = NULL;
    assert_int_equal(open_names((const char *const[]){"plain.zip", "joule.zip"}, &table, &failure), 0);
    assert_true(load(table, NULL, 0, &failure) < 0);
    assert_says(failure.text, "the column 'duration' is in 'J'; expected 's', as in ");
    assert_true(strstr(failure.place, "joule.zip") != NULL);
    assert_int_equal(open_names((const char *const[]){"plain.zip", "ms.zip"}, &other, &failure), 0);
    assert_true(load(other, groups, 1, &failure) < 0);
    assert_says(failure.text, "'bytes' is in 'KiBy'; expected 'By'");
}

/* Opens and loads plain.zip with byte OFFSET of the stored MEMBER flipped. */
static int load_damaged(const char *member, size_t offset, struct table **ret, struct failure *failure) {
    cleanup(text_clear) struct text bytes;
    char path[8192];
    text_init(&bytes, 1 << 22);
    snprintf(path, sizeof path, "%s/plain.zip", folder);
    assert_int_equal(file_read(path, &bytes, failure), 0);
    char *found = bytes.bytes;
    do { /* behind a local header */
        found = memmem(found + 1, bytes.length - (size_t)(found + 1 - bytes.bytes), member, strlen(member));
        assert_non_null(found);
    } while (found - bytes.bytes < 30 || memcmp(found - 30, "PK\3\4", 4) != 0);
    size_t extra = (unsigned char)found[-2] + 256u * (unsigned char)found[-1];
    found[strlen(member) + extra + offset] ^= 0x10;
    snprintf(path, sizeof path, "%s/damaged.zip", folder);
    assert_int_equal(file_replace(path, bytes.bytes, bytes.length, 0644, failure), 0);
    int r = open_names((const char *const[]){"damaged.zip", NULL}, ret, failure);
    return r < 0 ? r : load(*ret, NULL, 0, failure);
}

/* A flipped byte of the results must not become a model; one of a record beside them is noted. */
TEST(damage_is_found) {
    struct failure failure = {0};
    cleanup(table_cleanup) struct table *table = NULL, *other = NULL;
    assert_true(load_damaged(TABLE_ARCHIVE_MEMBER, 150, &table, &failure) < 0);
    assert_int_equal(failure.kind, FAILURE_VERIFICATION);
    failure = (struct failure){0};
    if (load_damaged("clock.json", 5, &other, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    assert_int_equal(other->note_count, 1);
    assert_says(other->notes[0], "damaged.zip' is damaged beside its table (");
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
