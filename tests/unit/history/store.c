/* A history that is written by hand, as its README describes it: what was planted is found, and said with
 * what changed on the node at that run. */
#include "engine/history/store.h"
#include "engine/history/check.h"

#include "tests/test.h"

#include <sqlite3.h>

#include "engine/foundation/text.h"

enum { RUNS = 40, NODES = 8 };

static sqlite3 *database;

__attribute__((format(printf, 1, 2))) static void sql(const char *format, ...) {
    char *error = NULL, *statement;
    va_list values;
    va_start(values, format);
    statement = sqlite3_vmprintf(format, values);
    va_end(values);
    if (sqlite3_exec(database, statement, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", statement, error);
    sqlite3_free(statement);
}

/* NODES nodes over RUNS runs, one a day; SLOW of them is 3 % slower from run FROM on, with another microcode,
 * and run WRONG is far off on it. */
static void plant(const char *path, int slow, int from, int wrong) {
    struct history_store *store = NULL;
    remove(path);
    assert_ok(history_store_open(path, true, &store, &test_failure));
    history_store_close(store);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    sql("BEGIN");
    for (int node = 0; node < NODES; node++)
        sql("INSERT INTO series VALUES (%d, 'nightly', 'dgemm', 'rate', 'flop/s', 'n=100', 'dahu-%d')", node,
            node);
    for (int run = 1; run <= RUNS; run++) {
        sql("INSERT INTO archive VALUES (%d, 'hash %d', 'run-%d', 1, 'a.zip', 'nightly', 'dgemm', %d)", run,
            run, run, 1600000000 + 86400 * run);
        for (int node = 0; node < NODES; node++) {
            bool is_slower = node == slow && run >= from;
            double value = 1e9 * (1 + 0.01 * test_normal()) * (is_slower ? 0.97 : 1);
            sql("INSERT INTO value VALUES (%d, %d, 10, %.17g, NULL)", node, run,
                node == slow && run == wrong ? 1e8 : value);
            sql("INSERT INTO fact VALUES (%d, 'dahu-%d', 'microcode', '%s')", run, node,
                is_slower ? "0x2" : "0x1");
        }
    }
    sql("COMMIT");
    sqlite3_close(database);
}

static char *check(const char *path, enum history_method method, struct history_result *result) {
    const struct history_rule rule = {.method = method, .p_most = 0.0005};
    const struct history_filter all = {0};
    struct history_store *store = NULL;
    struct report *report = report_new();
    assert_ok(history_store_open(path, false, &store, &test_failure));
    assert_ok(history_check(&(struct history_source){.store = store}, &all, &rule, report->root, result,
                            &test_failure));
    history_store_close(store);
    char *text = report_render(report, true);
    report_free(report);
    return text;
}

TEST(a_slow_node) {
    static const enum history_method methods[] = {HISTORY_SHIFT, HISTORY_E_DIVISIVE};
    const char *path = test_path("slow.sqlite");
    test_seed = 2;
    plant(path, 3, 25, 0);
    for (size_t i = 0; i < 2; i++) {
        struct history_result result;
        cleanup_free char *text = check(path, methods[i], &result);
        assert_int_equal(result.changed, 1);
        assert_int_equal(result.series, NODES);
        assert_says(text, "dahu-3");
        assert_says(text, "2020-10-08"); /* run 25 */
        assert_says(text, "microcode changed from 0x1 to 0x2");
    }
}

/* Two experiments of campaigns of one name, and a fact that came with the change. */
TEST(experiments_and_facts) {
    const char *path = test_path("two.sqlite");
    struct history_result result;
    test_seed = 5;
    plant(path, 3, 25, 0);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    sql("UPDATE series SET experiment = 'stream' WHERE node = 'dahu-3'");
    sql("INSERT INTO fact SELECT id, 'dahu-3', 'package gcc', '12' FROM archive WHERE id >= 25");
    sql("INSERT INTO fact SELECT id, 'dahu-3', 'BIOS', '2.1' FROM archive WHERE id < 25");
    sqlite3_close(database);
    cleanup_free char *text = check(path, HISTORY_SHIFT, &result);
    assert_int_equal(result.changed, 1);
    assert_says(text, "nightly   stream");
    assert_says(text, "BIOS 2.1 is recorded no longer, microcode changed from 0x1 to 0x2, "
                      "package gcc 12 is recorded for the first time");
}

TEST(nothing_changed) {
    struct history_result result;
    const char *path = test_path("same.sqlite");
    test_seed = 3;
    plant(path, 3, RUNS + 1, 30); /* one run is far off */
    cleanup_free char *text = check(path, HISTORY_SHIFT, &result);
    assert_int_equal(result.changed, 0);
    assert_int_equal(result.untested, 0);
    free(text);
    text = check(path, HISTORY_CHEW, &result);
    assert_int_equal(result.changed, 0);
}

TEST(the_log) {
    struct history_result result;
    struct history_store *store = NULL;
    const char *path = test_path("log.sqlite");
    test_seed = 4;
    plant(path, 3, 25, RUNS); /* the last run is wrong */
    cleanup_free char *text = check(path, HISTORY_CHEW, &result);
    assert_int_equal(result.changed, 1);
    assert_ok(history_store_open(path, false, &store, &test_failure));
    const struct history_note change = {.kind = HISTORY_CHANGE,
                                        .time = "2020-10-08",
                                        .nodes = "dahu-[2-3]",
                                        .author = "a",
                                        .reason = "microcode"};
    const struct history_note outlier = {
        .kind = HISTORY_OUTLIER, .run = "run-40", .nodes = "dahu-3", .author = "a", .reason = "fan"};
    assert_ok(history_store_note(store, &change, &test_failure));
    assert_ok(history_store_note(store, &outlier, &test_failure));
    struct history_note bad = change;
    bad.time = "yesterday";
    assert_error(history_store_note(store, &bad, &test_failure), -EINVAL, "'yesterday' is not a time");
    bad = outlier;
    bad.run = "run-4";
    assert_error(history_store_note(store, &bad, &test_failure), -EINVAL,
                 "several runs have ids that begin with 'run-4'");
    bad.run = "no";
    assert_error(history_store_note(store, &bad, &test_failure), -EINVAL,
                 "no run has an id that begins with 'no'");
    history_store_close(store);
    free(text);
    text = check(path, HISTORY_SHIFT, &result);
    assert_int_equal(result.changed, 0); /* what is known is no news */
}

TEST(files) {
    struct history_store *store = NULL;
    assert_error(history_store_open(test_path("none.sqlite"), false, &store, &test_failure), -EINVAL,
                 "'assay history add ARCHIVE...' begins one");
    assert_error(history_store_open(test_put("text.sqlite", "this is no database, but text of some length\n"),
                                    true, &store, &test_failure),
                 -EINVAL, "no history of assay");
    const char *other = test_path("other.sqlite");
    assert_int_equal(sqlite3_open(other, &database), SQLITE_OK);
    sql("CREATE TABLE t (a)");
    sqlite3_close(database);
    assert_error(history_store_open(other, true, &store, &test_failure), -EINVAL,
                 "a database of another program");
    plant(other, 0, 0, 0);
    assert_int_equal(sqlite3_open(other, &database), SQLITE_OK);
    sql("PRAGMA user_version = 7");
    sqlite3_close(database);
    assert_error(history_store_open(other, false, &store, &test_failure), -EINVAL, "version 7");
}
