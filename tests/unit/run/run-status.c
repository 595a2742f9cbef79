/* How runs stand, by journals that are made up here; real ones are in
 * integration/command-line/list-status.sh. */
#include "engine/foundation/checksum.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/run/record/status.h"
#include "engine/run/record/submission.h"
#include "tests/test.h"

#include <unistd.h>

/* ---- Journals that are made up ----------------------------------------------------------------- */

/* Lines with clocks of our own: a journal by journal.h has the time of the test. */
static struct {
    struct text text;
    unsigned sequence;
    int64_t wall_s, monotonic_ms;
} made;

static const char *folder, *path, *archive;
static struct run_status *status; /* the last one that was read */

static void begin(void) {
    assert_int_equal(file_remove_tree(folder, NULL), 0);
    unlink(archive);
    assert_int_equal(file_make_folders(folder, NULL), 0);
    text_clear(&made.text);
    made.sequence = 0;
    made.wall_s = 1795320000;
    made.monotonic_ms = 1000;
    text_init(&made.text, 64 << 20);
}

static int set_up(void **state) {
    folder = test_path("run");
    path = test_path("run/journal.jsonl");
    archive = test_path("run.zip");
    begin();
    return 0;
}

static int tear_down(void **state) {
    run_status_free(status);
    status = NULL;
    text_clear(&made.text);
    return 0;
}

__attribute__((format(printf, 2, 3))) static void say(const char *event, const char *members, ...) {
    size_t start = made.text.length;
    va_list list;
    va_start(list, members);
    assert_int_equal(
        text_printf(&made.text, "{\"seq\":%u,\"t\":\"%lld000000000\",\"m\":\"%lld000000\",\"event\":\"%s\"",
                    ++made.sequence, (long long)made.wall_s, (long long)made.monotonic_ms, event),
        0);
    assert_int_equal(text_vprintf(&made.text, members, list), 0);
    va_end(list);
    assert_int_equal(text_printf(&made.text, ",\"crc32c\":\"%08x\"}\n",
                                 checksum_crc32c(made.text.bytes + start, made.text.length - start)),
                     0);
}

static void start(unsigned units) {
    say("run-started", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"campaign\":\"small\",\"part\":1");
    say("phase-started", ",\"phase\":\"reserve\"");
    say("node", ",\"name\":\"n-1\"");
    say("node", ",\"name\":\"n-2\"");
    say("phase-started", ",\"phase\":\"measure\"");
    say("planned", ",\"units\":%u,\"rows\":%u,\"repetitions\":1,\"lanes\":2", units, units / 2);
}

static void commit(unsigned done, unsigned failed, unsigned flagged, unsigned repeated) {
    say("results",
        ",\"bytes\":%u,\"bytes_crc32c\":\"00000000\",\"units_done\":%u,\"units_failed\":%u,\"lines_flagged\":"
        "%u,\"units_repeated\":%u",
        100 * (done + repeated + 1), done, failed, flagged, repeated);
}

static void save(void) {
    assert_int_equal(file_replace(path, made.text.bytes, made.text.length, 0600, NULL), 0);
}

static void read_run(const char *name) {
    run_status_free(status);
    status = NULL;
    assert_ok(run_status_read(name, &status, &test_failure));
}

static void save_and_read(void) {
    save();
    read_run(folder);
}

/* ---- Reservations ------------------------------------------------------------------------------ */

static void reserve(const char *until_ns) {
    say("run-started", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"campaign\":\"small\",\"part\":1");
    say("phase-started", ",\"phase\":\"reserve\"");
    say("reservation", ",\"testbed\":\"slurm\",\"id\":\"17\"");
    say("reservation-granted", ",\"until_ns\":\"%s\"", until_ns);
    say("reservation-kept", "%s", "");
    test_put("run/inputs.json", "");
}

static void expect_reserved(enum run_condition condition, bool reserved) {
    save_and_read();
    assert_int_equal(status->condition, condition);
    assert_int_equal(run_history_is_reserved(&status->history, clock_wall_ns()), reserved);
    assert_string_equal(status->history.held.id, "17");
}

TEST(a_reservation_stands_until_it_is_given_back_taken_or_over) {
    static const char *const never = "9000000000000000000";
    reserve(never);
    expect_reserved(RUN_IS_RESERVED, true);
    begin();
    reserve("1795320000000000000");
    expect_reserved(RUN_IS_STOPPED, false);
    static const char *const ends[] = {"reservation-released", "reservation-over"};
    for (size_t i = 0; i < 2; i++) {
        begin();
        reserve(never);
        say(ends[i], "%s", "");
        expect_reserved(RUN_IS_STOPPED, false);
    }
    /* An engine that was killed leaves it, too, and is not one that was to stay. */
    begin();
    reserve(never);
    say("run-resumed", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"part\":2");
    expect_reserved(RUN_IS_STOPPED, true);
}

/* ---- Units ------------------------------------------------------------------------------------- */

TEST(units_are_those_of_the_last_commit) {
    start(8);
    commit(1, 0, 0, 0);
    say("unit-failed", ",\"order\":1,\"node\":\"n-2\",\"sentence\":\"it broke\"");
    commit(4, 1, 1, 1);
    save_and_read();
    assert_int_equal(status->condition, RUN_IS_STOPPED);
    assert_true(status->is_planned);
    assert_int_equal(status->planned, 8);
    assert_int_equal(status->done, 4);
    assert_int_equal(status->failed, 1);
    assert_int_equal(status->left, 3);
    assert_int_equal(status->flagged, 1);
    assert_int_equal(status->repeated, 1);
    assert_int_equal(status->node_count, 2);
    assert_string_equal(status->name, "small");
    assert_string_equal(status->run_id, "d6a781f2");
    assert_string_equal(status->started, "2026-11-22T04:00:00.000+00:00");
    assert_string_equal(status->phase, "measure");
    assert_string_equal(status->last_error, "it broke");
    assert_says(status->next, "run the campaign again"); /* no inputs.json */
    assert_null(status->command);
}

/* ---- How it stands ----------------------------------------------------------------------------- */

/* The journal of a part that ended so, and whose archive NAME had so many bytes. */
static void say_sealed(const char *word, const char *name, size_t bytes) {
    say("sealing", ",\"status\":\"%s\",\"archive\":\"%s\"", word, name);
    say("sealed", ",\"archive\":\"%s\",\"bytes\":%zu,\"sha256\":\"e3b0\"", name, bytes);
}

static void expect(enum run_condition condition, const char *next) {
    assert_int_equal(status->condition, condition);
    assert_says(status->next, next);
}

TEST(it_is_sealed_when_its_archive_is_there) {
    static const struct {
        const char *said;
        enum run_condition condition;
        const char *next;
    } cases[] = {{"completed", RUN_IS_COMPLETED, "nothing"},
                 {"failed", RUN_IS_FAILED, "continues it: 3 of 4 units are left"},
                 {"partial", RUN_IS_PARTIAL, "assay resume "},
                 {"interrupted", RUN_IS_INTERRUPTED, "assay resume "},
                 {"baked", RUN_IS_UNKNOWN, "assay resume "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        start(4);
        test_put("run/inputs.json", "");
        commit(1, 0, 0, 0);
        say("sealing", ",\"status\":\"%s\",\"archive\":\"run.zip\"", cases[i].said);
        test_put("run.zip", "123456789");
        save_and_read();
        expect(RUN_IS_STOPPED, "assay resume "); /* it died before all of the archive was on the disk */
        assert_string_equal(status->ended, "");
        assert_null(status->archive);
        assert_null(status->damage);
        say("sealed", ",\"archive\":\"run.zip\",\"bytes\":10,\"sha256\":\"e3b0\"");
        save_and_read();
        expect(RUN_IS_STOPPED, "seals the run again");
        assert_says(status->damage,
                    "run.zip' is damaged: it has 9 bytes, and had 10 bytes when it was sealed");
        assert_null(status->archive);
        unlink(archive);
        save_and_read();
        expect(RUN_IS_STOPPED, "seals the run again");
        assert_says(status->damage, "run.zip' is missing");
        test_put("run.zip", "1234567890");
        save_and_read();
        expect(cases[i].condition, cases[i].next);
        assert_string_equal(status->ended, "2026-11-22T04:00:00.000+00:00");
        assert_string_equal(status->archive, archive);
        assert_string_equal(status->phase, "");
    }
}

TEST(what_is_done_needs_no_resume) {
    start(1);
    test_put("run/inputs.json", "");
    test_put("run.zip", "");
    commit(1, 0, 0, 0);
    say("error", ",\"phase\":\"collect\",\"sentence\":\"the clock\"");
    say_sealed("failed", "run.zip", 0);
    save_and_read();
    expect(RUN_IS_FAILED, "nothing");
    assert_string_equal(status->last_error, "the clock");
}

/* What part 1 said of nodes, errors and its end is no more; what it did is. */
TEST(a_resumed_run_is_judged_by_its_last_part) {
    start(4);
    test_put("run/inputs.json", "");
    test_put("run.zip", "");
    commit(1, 1, 0, 0);
    say("node-lost", ",\"node\":\"n-2\",\"sentence\":\"gone\"");
    say("error", ",\"phase\":\"measure\",\"sentence\":\"node n-2 is gone\"");
    say_sealed("failed", "run.zip", 0);
    say("run-resumed", ",\"part\":2,\"run_id\":\"d6a781f2\",\"engine\":\"1\"");
    save_and_read();
    expect(RUN_IS_STOPPED, "assay resume ");
    assert_int_equal(status->part, 2);
    assert_int_equal(status->node_count, 0);
    assert_string_equal(status->last_error, "");
    assert_int_equal(status->done, 1);
    say("node", ",\"name\":\"n-2\"");
    say("phase-started", ",\"phase\":\"measure\"");
    commit(2, 0, 0, 0);
    say("sealing", ",\"status\":\"partial\",\"archive\":\"run-2.zip\"");
    save_and_read();
    expect(RUN_IS_STOPPED, "2 of 4 units are left"); /* the archive of part 1 is not that of part 2 */
    assert_null(status->archive);
    say("sealed", ",\"archive\":\"run-2.zip\",\"bytes\":0,\"sha256\":\"e3b0\"");
    const char *second = test_put("run-2.zip", "");
    save_and_read();
    expect(RUN_IS_PARTIAL, "2 of 4 units are left");
    assert_string_equal(status->archive, second);
    assert_int_equal(status->node_count, 1);
    assert_int_equal(status->nodes_lost, 0);
    char *of = run_status_folder_of(second);
    assert_string_equal(of, folder);
    free(of);
    of = run_status_folder_of(archive);
    assert_string_equal(of, folder);
    free(of);
    assert_null(run_status_folder_of(folder));
    unlink(second);
}

/* ---- Nodes ------------------------------------------------------------------------------------- */

static const struct run_history_node *node_called(const char *name) {
    for (size_t i = 0; i < status->node_count; i++)
        if (strcmp(status->nodes[i]->name, name) == 0)
            return status->nodes[i];
    return NULL;
}

TEST(nodes_have_fates) {
    start(4);
    for (unsigned i = 3; i <= 40; i++)
        say("node", ",\"name\":\"n-%u\"", i);
    say("link-broken", ",\"node\":\"n-1\",\"sentence\":\"no route\"");
    say("link-broken", ",\"node\":\"n-2\",\"sentence\":\"no route\"");
    say("link-resumed", ",\"node\":\"n-2\",\"outage_ns\":5");
    say("link-broken", ",\"node\":\"n-3\",\"sentence\":\"no route\"");
    say("node-lost", ",\"node\":\"n-3\",\"sentence\":\"gone\"");
    say("link-resumed", ",\"node\":\"n-3\",\"outage_ns\":5");
    say("node-out", ",\"node\":\"n-4\",\"why\":\"lost\",\"sentence\":\"taken out\"");
    say("slow-node", ",\"node\":\"n-5\",\"sentence\":\"2x\"");
    say("node-replaced", ",\"node\":\"n-4\",\"by\":\"spare-1\"");
    save_and_read();
    assert_int_equal(status->node_count, 41);
    assert_int_equal(status->nodes_out_of_reach, 1);
    assert_int_equal(status->nodes_lost, 1);
    assert_int_equal(status->nodes_out, 1);
    assert_int_equal(status->nodes_slow, 1);
    assert_int_equal(node_called("n-1")->condition, RUN_NODE_OUT_OF_REACH);
    assert_int_equal(node_called("n-2")->condition, RUN_NODE_IN);
    assert_int_equal(node_called("n-3")->condition, RUN_NODE_LOST);
    assert_string_equal(node_called("n-3")->sentence, "gone");
    assert_int_equal(node_called("n-4")->condition, RUN_NODE_OUT);
    assert_string_equal(node_called("n-5")->slow, "2x");
    assert_int_equal(node_called("spare-1")->condition, RUN_NODE_IN);
}

/* ---- Time -------------------------------------------------------------------------------------- */

/* Two units a second, whatever the wall clock does. */
TEST(the_rate_is_by_the_monotonic_clock) {
    start(4000);
    for (unsigned i = 1; i <= 2000; i++) {
        made.monotonic_ms += 500;
        made.wall_s += i % 100 == 0 ? -86400 : 1;
        commit(i, 0, 0, i / 4); /* what is measured again brings the end no nearer */
    }
    save_and_read();
    assert_true(fabs(status->rate - 2) < 1e-9);
    assert_true(status->seconds_left < 0); /* nobody works on it */
    struct run_lock *lock;
    assert_int_equal(run_lock_take(folder, &lock, NULL), 0);
    read_run(folder);
    assert_int_equal(status->condition, RUN_IS_RUNNING);
    assert_true(status->owner.pid == getpid());
    assert_int_equal(status->left, 2000);
    assert_true(status->seconds_left < 0); /* the run has not said so */
    /* After a reboot the clock begins anew, and so does the rate. */
    say("run-resumed", ",\"part\":2");
    made.monotonic_ms = 10;
    say("phase-started", ",\"phase\":\"measure\"");
    save_and_read();
    assert_true(isnan(status->rate) && status->seconds_left < 0);
    for (unsigned i = 2001; i <= 2010; i++) {
        made.monotonic_ms += 2000;
        commit(i, 0, 0, 0);
    }
    save_and_read();
    assert_true(fabs(status->rate - 0.5) < 1e-9);
    run_lock_free(lock);
}

/* What is left is what the run itself has estimated, less the time since; nobody estimates anew. */
TEST(what_is_left_is_what_the_run_says) {
    start(4000);
    commit(1, 0, 0, 0);
    made.monotonic_ms = (clock_monotonic_ns() / 1000000) - 1000;
    say("results", ",\"bytes\":300,\"bytes_crc32c\":\"00000000\",\"units_done\":2,\"units_failed\":0,"
                   "\"lines_flagged\":0,\"units_repeated\":0,\"left_ns\":90000000000000");
    struct run_lock *lock;
    save_and_read();
    assert_int_equal(run_lock_take(folder, &lock, NULL), 0);
    read_run(folder);
    assert_true(status->seconds_left <= 89999);
    assert_true(status->seconds_left > 80000); /* it is not 10,000 s ago that it was read */
    run_lock_free(lock);
}

TEST(what_is_left_never_climbs) {
    const struct run_left left = {100, 1000}, unknown = {-1, 1000}, odd = {100, INT64_MIN};
    assert_int_equal(run_left_ns(&left, 900), 100); /* by another clock */
    assert_int_equal(run_left_ns(&left, 1000), 100);
    assert_int_equal(run_left_ns(&left, 1099), 1);
    assert_int_equal(run_left_ns(&left, INT64_MAX), 0);
    assert_int_equal(run_left_ns(&unknown, 2000), -1);
    assert_int_equal(run_left_ns(&odd, 2000), 100);
}

/* The last minutes count: the first half went ten times slower. */
TEST(the_rate_is_of_late) {
    start(4000);
    for (unsigned i = 1; i <= 2000; i++) {
        made.monotonic_ms += i <= 1000 ? 5000 : 500;
        commit(i, 0, 0, 0);
    }
    save_and_read();
    assert_true(fabs(status->rate - 2) < 1e-9);
}

TEST(clocks_may_say_anything) {
    static const char *const stamps[] = {"9223372036854775807", "0", "5000000000"};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            static const char *const events[] = {"run-started", "phase-started", "results"};
            size_t begun = made.text.length;
            assert_int_equal(text_printf(&made.text,
                                         "{\"seq\":%u,\"t\":\"%s\",\"m\":\"%s\",\"event\":\"%s\",\"phase\":"
                                         "\"measure\",\"units_failed\":1,\"wall_ns\":\"%s\"",
                                         ++made.sequence, stamps[i], stamps[(i + k) % 3], events[k],
                                         stamps[k]),
                             0);
            assert_int_equal(text_printf(&made.text, ",\"crc32c\":\"%08x\"}\n",
                                         checksum_crc32c(made.text.bytes + begun, made.text.length - begun)),
                             0);
        }
    save_and_read();
    assert_int_equal(status->failed, 1);
}

/* ---- What is no run ---------------------------------------------------------------------------- */

static void refuse(const char *what, const char *sentence) {
    assert_refused(run_status_read(what, &status, &test_failure), "", sentence);
    assert_null(status);
}

TEST(what_is_no_run_is_refused) {
    refuse(folder, "is no run: there is no journal.jsonl in it");
    refuse("/nowhere/at/all", "is not there");
    assert_int_equal(text_append_string(&made.text, "hello\n"), 0);
    save();
    refuse(folder, "its first line is not whole");
    begin();
    say("unit", ",\"order\":1");
    save();
    refuse(folder, "is not the journal of a run: the first entry is not 'run-started'");
}

/* It has a folder and an empty journal, and that is all: it begins, or it died as it began. */
TEST(a_run_that_has_hardly_begun) {
    save_and_read();
    assert_int_equal(status->condition, RUN_IS_STOPPED);
    assert_string_equal(status->name, "run");
    struct run_lock *lock;
    assert_int_equal(run_lock_take(folder, &lock, NULL), 0);
    save_and_read();
    assert_int_equal(status->condition, RUN_IS_RUNNING);
    run_lock_free(lock);
}

TEST(a_torn_end_is_told) {
    start(4);
    assert_int_equal(text_append_string(&made.text, "{\"seq\":7,\"t\""), 0);
    save_and_read();
    assert_int_equal(status->journal_torn_bytes, 12);
    assert_int_equal(status->journal_whole_after, 0);
    struct run_lock *lock;
    assert_int_equal(run_lock_take(folder, &lock, NULL), 0);
    save_and_read();
    assert_int_equal(status->journal_torn_bytes, 0); /* it is being written */
    run_lock_free(lock);
}

/* An engine in a job: queued until it begins, or is taken out of the queue. */
TEST(runs_are_queued) {
    say("run-started", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"campaign\":\"small\",\"part\":1");
    save_and_read();
    assert_ok(submission_journal(folder, "engine-submitted", "its engine waits in job 7", &test_failure));
    read_run(folder);
    assert_int_equal(status->condition, RUN_IS_QUEUED);
    assert_true(run_status_is_under_way(status));
    assert_string_equal(status->history.reservation, "its engine waits in job 7");
    assert_int_equal(status->journal_torn_bytes, 0);
    assert_ok(submission_journal(folder, "engine-withdrawn", NULL, &test_failure));
    read_run(folder);
    assert_int_equal(status->condition, RUN_IS_STOPPED);
    begin();
    say("run-started", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"campaign\":\"small\",\"part\":1");
    say("engine-submitted", ",\"sentence\":\"it waits\"");
    say("run-resumed", ",\"run_id\":\"d6a781f2\",\"part\":2");
    save_and_read();
    assert_int_equal(status->condition, RUN_IS_STOPPED); /* it began, and died */
    assert_int_equal(status->part, 1);
    say("run-resumed", ",\"run_id\":\"d6a781f2\",\"part\":2");
    save_and_read();
    assert_int_equal(status->part, 2);
}

/* Where the user stands may have no name in what he types. */
TEST(folders_have_many_names) {
    start(1);
    commit(1, 0, 0, 0);
    say_sealed("completed", "run.zip", 0);
    test_put("run.zip", "");
    save_and_read();
    char name[80];
    snprintf(name, sizeof name, "%s//", folder);
    read_run(name);
    assert_string_equal(status->path, folder);
    assert_int_equal(status->condition, RUN_IS_COMPLETED);
    assert_int_equal(chdir(folder), 0);
    read_run(".");
    assert_int_equal(status->condition, RUN_IS_COMPLETED);
    assert_int_equal(chdir("/"), 0);
    assert_true(run_status_begun_ns(folder) == INT64_C(1795320000000000000));
    assert_true(run_status_begun_ns("/nowhere/at/all") == 0);
}

TEST_EACH(set_up, tear_down)
