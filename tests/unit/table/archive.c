/* Tables of archives: roles, units and the suggested model come from inside. With --make FOLDER it only
 * writes the archives that the integration tests use. */
#include "archive-format/datapackage.h"
#include "archive-format/layout.h"
#include "archive-format/writer.h"
#include "engine/foundation/file.h"
#include "engine/table/table.h"
#include "tests/test.h"

#include <unistd.h>

static char hash[HASH_HEX_SIZE];

/* What an archive measures in: units of its durations and bytes, and how many of them one of s and By is. */
struct measures {
    const char *duration, *bytes;
    double per_second, per_byte;
    int flagged; /* a gate flagged each row whose number is a multiple of this; 0: there are no flags */
};
static const struct measures plain = {"s", "By", 1, 1, 0}, milli = {"ms", "KiBy", 1e3, 1.0 / 1024, 0},
                             energy = {"J", "By", 1, 1, 0}, loaded = {"s", "By", 1, 1, 3},
                             disturbed = {"s", "By", 1, 1, 1};

/* 2 nodes x 2 cores x 30 calls; durations of the second node are twice as long. */
static void make_results(const struct measures *measures, struct text *text) {
    static const char *const nodes[] = {"n-2", "n-10"};
    assert_int_equal(
        text_printf(text, "row,node,core,m,n,k,bytes,duration%s\n", measures->flagged ? ",state.flags" : ""),
        0);
    for (int i = 0; i < 120; i++) {
        double m = 64 + i * 37 % 500, n = 64 + i * 53 % 700, k = 64 + i * 71 % 300;
        double seconds =
            (1 + i % 2) * (1e-5 + 6e-11 * m * n * k + 2e-9 * m * k) * (1 + 0.001 * (i * 29 % 13));
        const char *flags = !measures->flagged ? "" : i % measures->flagged == 0 ? ",load" : ",";
        assert_int_equal(text_printf(text, "%d,%s,%d,%g,%g,%g,%.17g,%.17g%s\n", i, nodes[i % 2], i / 2 % 2, m,
                                     n, k, 8 * m * n * measures->per_byte, seconds * measures->per_second,
                                     flags),
                         0);
    }
}

static void make_archive(const char *name, const struct measures *measures, bool suggests) {
    struct text results, run;
    text_init(&results, 1 << 20);
    text_init(&run, 1 << 16);
    make_results(measures, &results);
    test_put("staging/" ARCHIVE_RESULTS, results.bytes);
    assert_int_equal(
        text_printf(&run,
                    "{\"archive_version\":\"1.0\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b%02x\","
                    "\"name\":\"x\",\"engine\":{\"name\":\"assay\",\"version\":\"0.1.0\",\"commit\":null},"
                    "\"status\":\"completed\",\"error\":null,\"started\":\"2025-11-20T10:00:00.123+00:00\","
                    "\"ended\":\"2025-11-20T10:02:03.456+00:00\",\"seed\":\"1\",\"generator\":\"xoshiro256**"
                    "\",\"order\":\"as-written\",\"counts\":{\"rows\":120,\"units_planned\":120,\"units_"
                    "done\":120,\"units_failed\":0},\"nodes\":[\"n-2\",\"n-10\"],\"testbed\":\"local\","
                    "\"experiment\":{\"name\":\"dgemm\",\"folder\":\"dgemm\"},\"options\":{}%s}\n",
                    (unsigned)name[0], /* each is a run of its own */
                    suggests ? ",\"model\":{\"method\":\"linear\",\"response\":\"duration\",\"terms\":\"M-"
                               "2\",\"sizes\":[\"m\",\"n\",\"k\"],\"by\":[\"node\",\"core\"],\"set\":["
                               "\"noise=homoscedastic\"]}"
                             : ""),
        0);
    test_put("staging/run.json", run.bytes);
    test_put("staging/clock.json", "{\"offset\": 12345}\n");
    const struct column columns[] = {
        {"row", COLUMN_INTEGER, "1", COLUMN_ROLE_ID, .label = NULL},
        {"node", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
        {"core", COLUMN_INTEGER, "1", COLUMN_ROLE_ID, .label = NULL},
        {"m", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
        {"n", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
        {"k", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
        {"bytes", COLUMN_NUMBER, measures->bytes, COLUMN_ROLE_COVARIATE, .label = NULL},
        {"duration", COLUMN_NUMBER, measures->duration, COLUMN_ROLE_RESPONSE, .label = NULL},
        {"state.flags", COLUMN_STRING, "", COLUMN_ROLE_NONE, .label = NULL},
    };
    const struct archive_table table = {ARCHIVE_RESULTS, "calls", columns,
                                        sizeof columns / sizeof *columns - !measures->flagged};
    assert_ok(
        archive_write_datapackage(test_path("staging/datapackage.json"), "x", &table, 1, &test_failure));
    const struct archive_description description = {.name = "x",
                                                    .text = "A test.",
                                                    .status = "completed",
                                                    .started_ns = INT64_C(1763632800000000000),
                                                    .ended_ns = INT64_C(1763632923000000000),
                                                    .run_id = "3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10",
                                                    .engine_version = "0.1.0",
                                                    .command = "assay run x.yaml"};
    assert_ok(archive_seal(test_path("staging"), name, &description, hash, &test_failure));
    text_clear(&results);
    text_clear(&run);
}

static int set_up(void **state) {
    assert_int_equal(chdir(test_folder()), 0);
    make_archive("ms.zip", &milli, true);
    make_archive("plain.zip", &plain, false);
    make_archive("joule.zip", &energy, false);
    make_archive("loaded.zip", &loaded, false);
    make_archive("disturbed.zip", &disturbed, false);
    make_archive("dgemm.csv", &plain, true); /* what it is shows in its bytes, not in its name */
    return 0;
}

/* NAMES as one table, up to the one that is NULL. */
static int open_names(const char *const *names, struct table **ret) {
    return table_open(names, 1 + (names[1] != NULL), &(struct table_options){.hash = true}, ret,
                      &test_failure);
}

static const char *const measured[] = {"m", "bytes", "duration"};

static int load(struct table *table, const char *const *categories, size_t count) {
    const struct table_selection selection = {
        .numbers = measured, .number_count = 3, .categories = categories, .category_count = count};
    return table_load(table, &selection, &test_failure);
}

TEST(what_an_archive_says) {
    cleanup(table_cleanup) struct table *table = NULL, *plain_table = NULL;
    assert_ok(open_names((const char *const[]){"dgemm.csv", NULL}, &table));
    assert_true(table->inputs[0].archive);
    assert_string_equal(table->inputs[0].name, "dgemm.csv");
    assert_string_equal(table->inputs[0].sha256, hash);
    assert_string_equal(table->inputs[0].run_id, "3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b64");
    const struct archive_model *suggestion = table->suggestion;
    assert_string_equal(suggestion->method, "linear");
    assert_string_equal(suggestion->response, "duration");
    assert_string_equal(suggestion->terms, "M-2");
    assert_int_equal(suggestion->sizes.count, 3);
    assert_string_equal(suggestion->sizes.items[2], "k");
    assert_int_equal(suggestion->by.count, 2);
    assert_string_equal(suggestion->by.items[0], "node");
    assert_string_equal(suggestion->set.items[0], "noise=homoscedastic");
    assert_int_equal(table_find(table, "duration")->role, COLUMN_ROLE_RESPONSE);
    assert_string_equal(table_find(table, "duration")->unit, "s");
    assert_int_equal(table_find(table, "m")->role, COLUMN_ROLE_FACTOR);
    assert_null(table_find(table, "node")->unit);
    assert_ok(open_names((const char *const[]){"plain.zip", NULL}, &plain_table));
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
                 {{"calls.csv", "plain.zip"}, "s", "calls.csv' has no unit, and is assumed to be in", 2},
                 {{"plain.zip", "calls.csv"}, "s", "calls.csv' has no unit, and is assumed to be in", 2}};
    cleanup(text_clear) struct text results;
    text_init(&results, 1 << 20);
    make_results(&plain, &results);
    for (char *at = results.bytes; (at = strstr(at, "n-2,"));)
        at[2] = '3'; /* of another node: the archive's own rows would be left out */
    test_put("calls.csv", results.bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(table_cleanup) struct table *table = NULL;
        assert_ok(open_names(cases[i].names, &table));
        assert_ok(load(table, NULL, 0));
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
    cleanup(table_cleanup) struct table *table = NULL, *other = NULL;
    assert_ok(open_names((const char *const[]){"plain.zip", "joule.zip"}, &table));
    assert_true(load(table, NULL, 0) < 0);
    assert_says(test_failure.text,
                "the column 'duration' has the unit 'J'; expected a unit that converts to 's'");
    assert_true(strstr(test_failure.place, "joule.zip") != NULL);
    assert_ok(open_names((const char *const[]){"plain.zip", "ms.zip"}, &other));
    assert_true(load(other, groups, 1) < 0);
    assert_says(test_failure.text, "'bytes' has the unit 'KiBy'; expected the same unit 'By'");
}

/* Opens and loads plain.zip with byte OFFSET of the stored MEMBER flipped. */
static int load_damaged(const char *member, size_t offset, struct table **ret) {
    size_t length;
    char *bytes = test_read("plain.zip", &length), *found = bytes;
    do { /* behind a local header */
        found = memmem(found + 1, length - (size_t)(found + 1 - bytes), member, strlen(member));
        assert_non_null(found);
    } while (found - bytes < 30 || memcmp(found - 30, "PK\3\4", 4) != 0);
    size_t extra = (unsigned char)found[-2] + 256u * (unsigned char)found[-1];
    found[strlen(member) + extra + offset] ^= 0x10;
    assert_ok(file_replace("damaged.zip", bytes, length, 0644, &test_failure));
    int r = open_names((const char *const[]){"damaged.zip", NULL}, ret);
    return r < 0 ? r : load(*ret, NULL, 0);
}

/* A flipped byte of the results must not become a model; what is beside them is not read. */
TEST(damage_is_found) {
    cleanup(table_cleanup) struct table *table = NULL, *other = NULL;
    assert_true(load_damaged(ARCHIVE_RESULTS, 150, &table) < 0);
    assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
    assert_ok(load_damaged("clock.json", 5, &other));
    assert_int_equal(other->note_count, 0);
}

/* The folder that was sealed gives the same table, as it stands, and is no file that has a hash. */
TEST(a_folder_is_read_as_its_archive_is) {
    cleanup(table_cleanup) struct table *sealed = NULL, *folder = NULL;
    assert_ok(open_names((const char *const[]){"dgemm.csv", NULL}, &sealed)); /* made last */
    assert_ok(open_names((const char *const[]){"staging", NULL}, &folder));
    assert_string_equal(folder->inputs[0].run_id, sealed->inputs[0].run_id);
    assert_string_equal(folder->inputs[0].sha256, "");
    assert_string_equal(folder->suggestion->terms, "M-2");
    assert_string_equal(table_find(folder, "duration")->unit, "s");
    assert_ok(load(sealed, NULL, 0));
    assert_ok(load(folder, NULL, 0));
    assert_int_equal(folder->rows, 120);
    for (size_t i = 0; i < 3; i++)
        assert_memory_equal(folder->numbers[i].values, sealed->numbers[i].values, 120 * sizeof(double));
    assert_true(open_names((const char *const[]){".", NULL}, &folder) < 0);
    assert_says(test_failure.text, "'.' is a folder, but not that of a run");
    unlink("staging/run.json");
    assert_int_equal(symlink("/dev/null", "staging/run.json"), 0);
    assert_true(open_names((const char *const[]){"staging", NULL}, &folder) < 0);
}

TEST_GROUP(set_up, NULL)

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--make") == 0) {
        assert_int_equal(chdir(argv[2]), 0);
        make_archive("dgemm.zip", &plain, true);
        make_archive("plain.zip", &plain, false);
        make_archive("ms.zip", &milli, false);
        make_archive("joule.zip", &energy, false);
        return file_remove_tree(test_folder(), NULL);
    }
    return test_run();
}

/* Whatever reads the rows says how many flagged ones it leaves out, or that it had nothing else. */
TEST(flagged_rows) {
    static const struct {
        const char *name, *note;
        size_t rows;
    } cases[] = {
        {"loaded.zip", "40 rows were flagged by gates and are left out (--with-flagged uses them)", 80},
        {"disturbed.zip", "all 120 rows were flagged by gates, because ", 120}};
    for (size_t i = 0; i < 2; i++) {
        cleanup(table_cleanup) struct table *table = NULL;
        assert_ok(open_names((const char *const[]){cases[i].name, NULL}, &table));
        assert_ok(load(table, NULL, 0));
        assert_int_equal(table->rows, cases[i].rows);
        assert_int_equal(table->note_count, 1);
        assert_says(table->notes[0], cases[i].note);
    }
}
