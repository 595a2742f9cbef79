/* What a run that is resumed makes of its journal and its results; status and list are in run-status.c. */
#include "engine/foundation/checksum.h"
#include "engine/foundation/file.h"
#include "engine/run/record/history.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/summary.h"
#include "tests/test.h"

#include <unistd.h>

static const char *journal_path, *results_path;
static const char header[] = "row,repetition,order,block,attempt,node,core,n,state.flags\n";

static int set_up(void **state) {
    journal_path = test_path("journal.jsonl");
    results_path = test_path("results/results.csv");
    return file_make_folders(test_path("results"), NULL);
}

/* ---- Runs that are made up */

struct made {
    struct journal *journal;
    struct text results;
    size_t committed;
    unsigned done;
};

static struct made begin(void) {
    struct made made = {0};
    unlink(journal_path);
    text_init(&made.results, 1 << 20);
    assert_int_equal(journal_create(journal_path, &made.journal, NULL), 0);
    journal_note(made.journal, "run-started", "run_id", "x");
    journal_note(made.journal, "phase-started", "phase", "measure");
    assert_int_equal(text_append_string(&made.results, header), 0);
    return made;
}

static void add_line(struct made *made, unsigned order, unsigned attempt, const char *node,
                     const char *flags) {
    assert_int_equal(
        text_printf(&made->results, "1,1,%u,1,%u,%s,7,\"a \"\"b\"\",\nc\",%s\n", order, attempt, node, flags),
        0);
    made->done++;
}

static void commit(struct made *made) {
    char digits[9];
    size_t length = made->results.length - made->committed;
    snprintf(digits, sizeof digits, "%08x", checksum_crc32c(made->results.bytes + made->committed, length));
    made->committed = made->results.length;
    journal_begin(made->journal, "results");
    journal_integer(made->journal, "bytes", (int64_t)made->committed);
    journal_string(made->journal, "bytes_crc32c", digits);
    journal_integer(made->journal, "units_done", made->done);
    journal_end(made->journal);
}

static void fail_unit(struct made *made, int order, int attempt, const char *node) {
    journal_begin(made->journal, "unit-failed");
    journal_integer(made->journal, "order", order);
    journal_integer(made->journal, "attempt", attempt);
    journal_string(made->journal, "node", node);
    journal_string(made->journal, "core", "7");
    journal_string(made->journal, "sentence", "it broke");
    journal_end(made->journal);
}

static void save(struct made *made) {
    assert_int_equal(journal_commit(made->journal, NULL), 0);
    assert_int_equal(file_replace(results_path, made->results.bytes, made->results.length, 0600, NULL), 0);
}

static void end(struct made *made) {
    journal_close(made->journal);
    text_clear(&made->results);
}

static unsigned parse_flags(const char *text) {
    return strcmp(text, "load") == 0 ? 4 : 0;
}

static int count_line(const char *line, size_t length, void *context, struct failure *failure) {
    assert_int_equal(line[length], '\n');
    ++*(size_t *)context;
    return 0;
}

struct read {
    struct ledger *ledger;
    struct run_history history;
    size_t lines;
    int result;
    struct failure failure;
};

static void clear(struct read *read) {
    run_history_clear(&read->history);
    ledger_free(read->ledger);
}

static struct read read_all(void) {
    struct read read = {.ledger = ledger_new(8)};
    struct run_history_units units = {.ledger = read.ledger,
                                      .positions = 8,
                                      .header = header,
                                      .parse_flags = parse_flags,
                                      .take_line = count_line,
                                      .context = &read.lines};
    read.result = run_history_read(test_folder(), &units, &read.history, &read.failure);
    if (read.result == 0)
        read.result = run_history_read_units(test_folder(), &units, &read.history, &read.failure);
    return read;
}

/* ---- What stands */

TEST(units_are_found_again) {
    struct made made = begin();
    commit(&made);
    add_line(&made, 1, 1, "a", "");
    add_line(&made, 2, 1, "a", "load");
    fail_unit(&made, 1, 1, "b");
    fail_unit(&made, 2, 1, "b");
    commit(&made);
    add_line(&made, 1, 2, "b", "");
    commit(&made);
    save(&made);
    struct read read = read_all();
    assert_int_equal(read.result, 0);
    assert_int_equal(read.lines, 3);
    assert_int_equal(ledger_totals(read.ledger)->done, 3);
    assert_int_equal(ledger_totals(read.ledger)->failed, 1);
    size_t a = ledger_place(read.ledger, "a", "7"), b = ledger_place(read.ledger, "b", "7");
    assert_int_equal(ledger_place_count(read.ledger), 2);
    assert_int_equal(ledger_flags(read.ledger, a, 1), 4);
    assert_int_equal(ledger_attempts(read.ledger, b, 0), 2);
    assert_true(ledger_has_failed(read.ledger, b, 1));
    assert_int_equal(read.history.results_bytes, made.results.length);
    assert_int_equal(read.history.lost, 0);
    assert_string_equal(read.history.error, "it broke");
    clear(&read);
    end(&made);
}

/* What follows the last commit was never shown; what a commit speaks of and is not there is lost. */
TEST(the_results_stand_up_to_a_commit) {
    struct made made = begin();
    add_line(&made, 1, 1, "a", "");
    commit(&made);
    size_t first = made.committed;
    add_line(&made, 2, 1, "a", "");
    add_line(&made, 3, 1, "a", "");
    commit(&made);
    size_t second = made.committed;
    assert_int_equal(text_append_string(&made.results, "1,1,4,1,1,a,7,x,\n1,1,"), 0);
    save(&made);
    struct read read = read_all();
    assert_int_equal(read.result, 0);
    assert_int_equal(read.history.results_bytes, second);
    assert_int_equal(read.history.results_end, made.results.length);
    assert_int_equal(ledger_totals(read.ledger)->done, 3);
    assert_int_equal(read.history.lost, 0);
    clear(&read);
    made.results.bytes[second - 2] ^= 1;
    for (int i = 0; i < 2; i++) { /* another byte; one byte less */
        save(&made);
        read = read_all();
        assert_int_equal(read.result, 0);
        assert_int_equal(read.history.results_bytes, first);
        assert_int_equal(ledger_totals(read.ledger)->done, 1);
        assert_int_equal(read.history.lost, 2);
        clear(&read);
        made.results.length = second - 1;
    }
    end(&made);
}

/* A part that has found less makes the commits that spoke of more void, and goes on from there. */
TEST(later_parts_know_what_was_lost) {
    struct made made = begin();
    add_line(&made, 1, 1, "a", "");
    commit(&made);
    size_t kept = made.committed;
    add_line(&made, 2, 1, "a", "");
    commit(&made);
    journal_begin(made.journal, "run-resumed");
    journal_integer(made.journal, "results_bytes", (int64_t)kept);
    journal_integer(made.journal, "units_done", 1);
    journal_end(made.journal);
    journal_note(made.journal, "phase-started", "phase", "measure");
    made.results.length = made.committed = kept;
    made.done = 1;
    add_line(&made, 2, 1, "a", "load");
    add_line(&made, 3, 1, "a", "");
    commit(&made);
    save(&made);
    struct read read = read_all();
    assert_int_equal(read.result, 0);
    assert_int_equal(read.history.results_bytes, made.results.length);
    assert_int_equal(ledger_totals(read.ledger)->done, 3);
    assert_int_equal(ledger_totals(read.ledger)->repeated, 0);
    assert_int_equal(read.history.lost, 0);
    assert_int_equal(read.history.part_count, 2);
    assert_int_equal(read.history.parts[1].units_done, 2);
    clear(&read);
    end(&made);
}

/* ---- What is refused */

static void refuse(struct made *made, const char *sentence) {
    save(made);
    struct read read = read_all();
    assert_true(read.result < 0);
    assert_says(read.failure.text, sentence);
    clear(&read);
    end(made);
}

TEST(what_the_run_cannot_have_is_refused) {
    static const int cases[][2] = {{0, 1}, {9, 1}, {1, 0}, {1, 70000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = begin();
        fail_unit(&made, cases[i][0], cases[i][1], "a");
        refuse(&made, "line 3 has attempt");
    }
    struct made made = begin();
    add_line(&made, 9, 1, "a", "");
    commit(&made);
    refuse(&made, "results.csv has the line '1,1,9,1,1,a,");
    made = begin();
    made.results.bytes[0] = 'R';
    commit(&made);
    refuse(&made, "results.csv has other columns");
    made = begin();
    assert_int_equal(text_append_string(&made.results, "1,1,2,1,1,a,7,\"open"), 0);
    commit(&made);
    refuse(&made, "does not belong to this run");
}

/* ---- run.json ---------------------------------------------------------------------------------- */

static void phase(struct journal *journal, const char *name, const char *status) {
    journal_note(journal, "phase-started", "phase", name);
    journal_begin(journal, "phase-ended");
    journal_string(journal, "phase", name);
    journal_string(journal, "status", status);
    journal_end(journal);
}

static cJSON *summarize(struct journal *journal) {
    struct run_history history = {0};
    cJSON *object = cJSON_CreateObject();
    assert_ok(journal_commit(journal, &test_failure));
    assert_ok(run_history_read(test_folder(), NULL, &history, &test_failure));
    run_history_summarize(&history, object);
    run_history_clear(&history);
    return object;
}

static const char *text_of(const cJSON *object, const char *list, int item, const char *key) {
    const cJSON *owner = list ? cJSON_GetArrayItem(cJSON_GetObjectItem(object, list), item) : object;
    return cJSON_GetStringValue(cJSON_GetObjectItem(owner, key));
}

/* Of a run that failed as it was prepared, whose archive could not be made either. */
TEST(a_summary_is_the_journals) {
    struct made made = {0};
    unlink(journal_path);
    assert_int_equal(journal_create(journal_path, &made.journal, NULL), 0);
    journal_note(made.journal, "run-started", "run_id", "x");
    cJSON *object = summarize(made.journal);
    assert_string_equal(text_of(object, NULL, 0, "status"), "running");
    assert_string_equal(text_of(object, "phases", RUN_RESERVE, "status"), "not reached");
    assert_string_equal(text_of(object, "parts", 0, "status"), "running");
    cJSON_Delete(object);
    phase(made.journal, "reserve", "done");
    journal_note(made.journal, "node", "name", "n-1");
    journal_note(made.journal, "node", "name", "n-2");
    phase(made.journal, "prepare", "failed");
    journal_begin(made.journal, "node-out");
    journal_string(made.journal, "node", "n-2");
    journal_string(made.journal, "why", "hung");
    journal_string(made.journal, "sentence", "it hangs");
    journal_end(made.journal);
    journal_begin(made.journal, "sealing");
    journal_string(made.journal, "status", "interrupted");
    journal_string(made.journal, "error", "interrupted after 0 units");
    journal_integer(made.journal, "units_missing", 4);
    journal_end(made.journal);
    object = summarize(made.journal);
    assert_string_equal(text_of(object, NULL, 0, "status"), "interrupted");
    assert_string_equal(text_of(object, NULL, 0, "error"), "interrupted after 0 units");
    assert_string_equal(text_of(object, "phases", RUN_RESERVE, "status"), "done");
    assert_string_equal(text_of(object, "phases", RUN_CONNECT, "status"), "skipped");
    assert_string_equal(text_of(object, "phases", RUN_PREPARE, "status"), "failed");
    assert_string_equal(text_of(object, "phases", RUN_MEASURE, "status"), "not reached");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(object, "nodes")), 2);
    assert_string_equal(text_of(object, "nodes_out", 0, "sentence"), "it hangs");
    const cJSON *counts = cJSON_GetObjectItem(object, "counts");
    assert_string_equal(cJSON_GetObjectItem(counts, "units_planned")->valuestring, "4");
    cJSON_Delete(object);
    journal_note(made.journal, "error", "sentence", "no space left");
    phase(made.journal, "seal", "failed");
    object = summarize(made.journal);
    assert_string_equal(text_of(object, NULL, 0, "status"), "failed");
    assert_string_equal(text_of(object, NULL, 0, "error"), "no space left");
    assert_string_equal(text_of(object, "parts", 0, "status"), "failed");
    cJSON_Delete(object);
    struct run_history history = {0};
    assert_int_equal(run_history_read(test_folder(), NULL, &history, NULL), 0);
    assert_int_equal(history.exit_code, FAILURE_SYSTEM);
    run_history_clear(&history);
    journal_close(made.journal);
}

/* The units of a node that could not be connected are missing: the run is not complete. */
TEST(a_node_that_was_out_before_measuring_is_lacking) {
    static const struct {
        bool is_out, is_resumed, is_measured;
    } cases[] = {{false, false, true}, {true, false, false}, {true, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_history history = {0};
        struct journal *journal;
        unlink(journal_path);
        assert_int_equal(journal_create(journal_path, &journal, NULL), 0);
        journal_note(journal, "run-started", "run_id", "x");
        if (cases[i].is_out)
            journal_note(journal, "node-out", "node", "n-1");
        if (cases[i].is_resumed)
            journal_note(journal, "run-resumed", "run_id", "x");
        phase(journal, "measure", "done");
        assert_int_equal(journal_commit(journal, NULL), 0);
        journal_close(journal);
        assert_int_equal(run_history_read(test_folder(), NULL, &history, NULL), 0);
        assert_true(history.measured == cases[i].is_measured);
        run_history_clear(&history);
    }
}

TEST_GROUP(set_up, NULL)
