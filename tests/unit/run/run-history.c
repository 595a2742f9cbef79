/* What a run that is resumed makes of its journal and its results; status and list are in run-status.c. */
#include "engine/foundation/checksum.h"
#include "engine/foundation/file.h"
#include "engine/run/record/history.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/summary.h"
#include "tests/test.h"

#include <unistd.h>

static const char *journal_path, *results_path;
static const char header[] = "row,repetition,order,block,attempt,node,core,start,start_monotonic,n,"
                             "state.frequency,state.temperature,state.flags\n";

/* ---- Runs that are made up */

static struct {
    struct journal *journal;
    struct text results;
    size_t committed;
    unsigned done;
} made;

static struct {
    struct ledger *ledger;
    struct run_history history;
    size_t lines;
} read_back;

static struct archive_run summary;

static void end_journal(void) {
    journal_close(made.journal);
    made.journal = NULL;
}

static void begin_journal(void) {
    end_journal();
    unlink(journal_path);
    assert_int_equal(journal_create(journal_path, &made.journal, NULL), 0);
    journal_note(made.journal, "run-started", "run_id", "x");
}

static void begin(void) {
    begin_journal();
    text_clear(&made.results);
    made.committed = made.done = 0;
    text_init(&made.results, 1 << 20);
    journal_note(made.journal, "phase-started", "phase", "measure");
    assert_int_equal(text_append_string(&made.results, header), 0);
}

static void clear(void) {
    archive_run_clear(&summary);
    run_history_clear(&read_back.history);
    ledger_free(read_back.ledger);
    read_back.ledger = NULL;
}

static int set_up(void **state) {
    journal_path = test_path("journal.jsonl");
    results_path = test_path("results/results.csv");
    assert_int_equal(file_make_folders(test_path("results"), NULL), 0);
    begin();
    return 0;
}

static int tear_down(void **state) {
    clear();
    end_journal();
    text_clear(&made.results);
    return 0;
}

static void add_line(unsigned order, unsigned attempt, const char *node, const char *flags) {
    assert_int_equal(text_printf(&made.results, "1,1,%u,1,%u,%s,7,,,\"a \"\"b\"\",\nc\",,,%s\n", order,
                                 attempt, node, flags),
                     0);
    made.done++;
}

static void commit(void) {
    char digits[9];
    size_t length = made.results.length - made.committed;
    snprintf(digits, sizeof digits, "%08x", checksum_crc32c(made.results.bytes + made.committed, length));
    made.committed = made.results.length;
    journal_begin(made.journal, "results");
    journal_integer(made.journal, "bytes", (int64_t)made.committed);
    journal_string(made.journal, "bytes_crc32c", digits);
    journal_integer(made.journal, "units_done", made.done);
    journal_end(made.journal);
}

static void fail_unit(int order, int attempt, const char *node) {
    journal_begin(made.journal, "unit-failed");
    journal_integer(made.journal, "order", order);
    journal_integer(made.journal, "attempt", attempt);
    journal_string(made.journal, "node", node);
    journal_string(made.journal, "core", "7");
    journal_string(made.journal, "sentence", "it broke");
    journal_end(made.journal);
}

static void save(void) {
    assert_int_equal(journal_commit(made.journal, NULL), 0);
    assert_int_equal(file_replace(results_path, made.results.bytes, made.results.length, 0600, NULL), 0);
}

static unsigned parse_flags(const char *text) {
    return strcmp(text, "load") == 0 ? 4 : 0;
}

static int count_row(const struct results_row *row, void *context, struct failure *failure) {
    assert_int_equal(row->row, 1);
    assert_int_equal(row->picked.length, strlen("a \"\"b\"\",\nc"));
    ++*(size_t *)context;
    return 0;
}

static int try_read(void) {
    save();
    clear();
    read_back.ledger = ledger_new(8);
    read_back.lines = 0;
    struct run_history_units units = {.ledger = read_back.ledger,
                                      .positions = 8,
                                      .header = header,
                                      .parse_flags = parse_flags,
                                      .columns = 1,
                                      .add_row = count_row,
                                      .context = &read_back.lines};
    int r = run_history_read(test_folder(), &units, &read_back.history, &test_failure);
    return r < 0 ? r : run_history_read_units(test_folder(), &units, &read_back.history, &test_failure);
}

/* All of it, which has so many units that are done and so many bytes that count. */
static void expect(unsigned done, size_t bytes, unsigned lost) {
    assert_ok(try_read());
    assert_int_equal(ledger_totals(read_back.ledger)->done, done);
    assert_int_equal(read_back.history.results_bytes, bytes);
    assert_int_equal(read_back.history.lost, lost);
}

/* ---- What stands */

TEST(units_are_found_again) {
    commit();
    add_line(1, 1, "a", "");
    add_line(2, 1, "a", "load");
    fail_unit(1, 1, "b");
    fail_unit(2, 1, "b");
    commit();
    add_line(1, 2, "b", "");
    commit();
    expect(3, made.results.length, 0);
    assert_int_equal(read_back.lines, 3);
    assert_int_equal(ledger_totals(read_back.ledger)->failed, 1);
    size_t a = ledger_place(read_back.ledger, "a", "7"), b = ledger_place(read_back.ledger, "b", "7");
    assert_int_equal(ledger_place_count(read_back.ledger), 2);
    assert_int_equal(ledger_flags(read_back.ledger, a, 1), 4);
    assert_int_equal(ledger_attempts(read_back.ledger, b, 0), 2);
    assert_true(ledger_has_failed(read_back.ledger, b, 1));
    assert_string_equal(read_back.history.error, "it broke");
}

/* What follows the last commit was never shown; what a commit speaks of and is not there is lost. */
TEST(the_results_stand_up_to_a_commit) {
    add_line(1, 1, "a", "");
    commit();
    size_t first = made.committed;
    add_line(2, 1, "a", "");
    add_line(3, 1, "a", "");
    commit();
    size_t second = made.committed;
    assert_int_equal(text_append_string(&made.results, "1,1,4,1,1,a,7,x,\n1,1,"), 0);
    expect(3, second, 0);
    assert_int_equal(read_back.history.results_end, made.results.length);
    made.results.bytes[second - 2] ^= 1;
    for (int i = 0; i < 2; i++) { /* another byte; one byte less */
        expect(1, first, 2);
        made.results.length = second - 1;
    }
}

/* A part that has found less makes the commits that spoke of more void, and goes on from there. */
TEST(later_parts_know_what_was_lost) {
    add_line(1, 1, "a", "");
    commit();
    size_t kept = made.committed;
    add_line(2, 1, "a", "");
    commit();
    journal_begin(made.journal, "run-resumed");
    journal_integer(made.journal, "results_bytes", (int64_t)kept);
    journal_integer(made.journal, "units_done", 1);
    journal_end(made.journal);
    journal_note(made.journal, "phase-started", "phase", "measure");
    made.results.length = made.committed = kept;
    made.done = 1;
    add_line(2, 1, "a", "load");
    add_line(3, 1, "a", "");
    commit();
    expect(3, made.results.length, 0);
    assert_int_equal(ledger_totals(read_back.ledger)->repeated, 0);
    assert_int_equal(read_back.history.part_count, 2);
    assert_int_equal(read_back.history.parts[1].units_done, 2);
}

/* ---- What is refused */

static void refuse(const char *sentence) {
    assert_true(try_read() < 0);
    assert_says(test_failure.text, sentence);
}

TEST(what_the_run_cannot_have_is_refused) {
    static const int cases[][2] = {{0, 1}, {9, 1}, {1, 0}, {1, 70000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        fail_unit(cases[i][0], cases[i][1], "a");
        refuse("line 3 has attempt");
    }
    begin();
    add_line(9, 1, "a", "");
    commit();
    refuse("results.csv has the line '1,1,9,1,1,a,");
    begin();
    made.results.bytes[0] = 'R';
    commit();
    refuse("results.csv has other columns");
    begin();
    assert_int_equal(text_append_string(&made.results, "1,1,2,1,1,a,7,\"open"), 0);
    commit();
    refuse("does not belong to this run");
}

/* ---- Going on ---------------------------------------------------------------------------------- */

static char told[512];

static void tell(void *context, const struct run_event *event) {
    size_t length = strlen(told);
    snprintf(told + length, sizeof told - length, "%d %s;", event->kind, event->text);
}

/* A journal that grows, read after every byte, is the same history as when it is read at once, and whoever
 * follows it is told of each entry once. */
TEST(a_history_goes_on_from_a_byte) {
    static const struct run_observer observer = {.event = tell};
    struct run_history history = {.observer = &observer};
    cleanup(text_clear) struct text whole;
    fail_unit(1, 1, "a");
    commit();
    journal_note(made.journal, "note", "sentence", "all is well");
    journal_note(made.journal, "error", "sentence", "it broke");
    save();
    end_journal();
    text_init(&whole, 1 << 20);
    assert_ok(file_read(journal_path, &whole, &test_failure));
    told[0] = '\0';
    for (size_t length = 0; length <= whole.length; length++) {
        assert_ok(file_replace(journal_path, whole.bytes, length, 0600, &test_failure));
        assert_ok(run_history_read(test_folder(), NULL, &history, &test_failure));
        assert_int_equal(history.journal.file_bytes, length);
    }
    assert_int_equal(history.journal.bytes, whole.length);
    assert_int_equal(history.journal.entries, 6);
    assert_int_equal(history.commit_count, 2); /* of `measure` and `results` */
    assert_string_equal(history.error, "it broke");
    assert_string_equal(told, "1 measure;2 all is well;6 it broke;");
    assert_ok(file_replace(journal_path, whole.bytes, 9, 0600, &test_failure));
    assert_true(run_history_read(test_folder(), NULL, &history, &test_failure) < 0);
    assert_says(test_failure.text, "cut short");
    run_history_clear(&history);
}

/* ---- run.json ---------------------------------------------------------------------------------- */

static void phase(const char *name, const char *status) {
    journal_note(made.journal, "phase-started", "phase", name);
    journal_begin(made.journal, "phase-ended");
    journal_string(made.journal, "phase", name);
    journal_string(made.journal, "status", status);
    journal_end(made.journal);
}

static void read_journal(void) {
    clear();
    assert_ok(journal_commit(made.journal, &test_failure));
    assert_ok(run_history_read(test_folder(), NULL, &read_back.history, &test_failure));
}

static void summarize(void) {
    read_journal();
    run_history_summarize(&read_back.history, &summary);
}

static const char *phase_status(enum run_phase phase) {
    return ((const struct archive_phase *)summary.phases.items)[phase].status;
}

static const char *part_status(void) {
    return ((const struct archive_part *)summary.parts.items)->status;
}

/* Of a run that failed as it was prepared, whose archive could not be made either. */
TEST(a_summary_is_the_journals) {
    begin_journal();
    summarize();
    assert_string_equal(summary.status, "running");
    assert_string_equal(phase_status(RUN_RESERVE), "not reached");
    assert_string_equal(part_status(), "running");
    phase("reserve", "done");
    journal_note(made.journal, "node", "name", "n-1");
    journal_note(made.journal, "node", "name", "n-2");
    phase("prepare", "failed");
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
    summarize();
    assert_string_equal(summary.status, "interrupted");
    assert_string_equal(summary.error, "interrupted after 0 units");
    assert_string_equal(phase_status(RUN_RESERVE), "done");
    assert_string_equal(phase_status(RUN_CONNECT), "skipped");
    assert_string_equal(phase_status(RUN_PREPARE), "failed");
    assert_string_equal(phase_status(RUN_MEASURE), "not reached");
    assert_int_equal((int)summary.nodes.count, 2);
    assert_string_equal(((const struct archive_node_out *)summary.nodes_out.items)->sentence, "it hangs");
    assert_int_equal(summary.counts.planned, 4);
    journal_note(made.journal, "error", "sentence", "no space left");
    phase("seal", "failed");
    summarize();
    assert_string_equal(summary.status, "failed");
    assert_string_equal(summary.error, "no space left");
    assert_string_equal(part_status(), "failed");
    assert_int_equal(read_back.history.exit_code, FAILURE_SYSTEM);
}

/* The units of a node that could not be connected are missing: the run is not complete. */
TEST(a_node_that_was_out_before_measuring_is_lacking) {
    static const struct {
        bool is_out, is_resumed, is_measured;
    } cases[] = {{false, false, true}, {true, false, false}, {true, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_journal();
        if (cases[i].is_out)
            journal_note(made.journal, "node-out", "node", "n-1");
        if (cases[i].is_resumed)
            journal_note(made.journal, "run-resumed", "run_id", "x");
        phase("measure", "done");
        read_journal();
        assert_true(read_back.history.measured == cases[i].is_measured);
    }
}

TEST_EACH(set_up, tear_down)
