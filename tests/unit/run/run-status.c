/* How runs stand, by journals that are made up here; real ones are in
 * integration/command-line/list-status.sh. */
#include "engine/foundation/checksum.h"
#include "engine/foundation/file.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/status.h"
#include "engine/run/record/submission.h"
#include "tests/test.h"

#include <unistd.h>

static const char *folder, *path, *archive;

static int set_up(void **state) {
    folder = test_path("run");
    path = test_path("run/journal.jsonl");
    archive = test_path("run.zip");
    return 0;
}

/* ---- Journals that are made up ----------------------------------------------------------------- */

/* Lines with clocks of our own: a journal by journal.h has the time of the test. */
struct made {
    struct text text;
    unsigned sequence;
    int64_t wall_s, monotonic_ms;
};

static struct made begin(void) {
    assert_int_equal(file_remove_tree(folder, NULL), 0);
    unlink(archive);
    assert_int_equal(file_make_folders(folder, NULL), 0);
    struct made made = {.wall_s = 1795320000, .monotonic_ms = 1000};
    text_init(&made.text, 64 << 20);
    return made;
}

__attribute__((format(printf, 3, 4))) static void say(struct made *made, const char *event,
                                                      const char *members, ...) {
    size_t start = made->text.length;
    va_list list;
    va_start(list, members);
    assert_int_equal(
        text_printf(&made->text, "{\"seq\":%u,\"t\":\"%lld000000000\",\"m\":\"%lld000000\",\"event\":\"%s\"",
                    ++made->sequence, (long long)made->wall_s, (long long)made->monotonic_ms, event),
        0);
    assert_int_equal(text_vprintf(&made->text, members, list), 0);
    va_end(list);
    assert_int_equal(text_printf(&made->text, ",\"crc32c\":\"%08x\"}\n",
                                 checksum_crc32c(made->text.bytes + start, made->text.length - start)),
                     0);
}

static void start(struct made *made, unsigned units) {
    say(made, "run-started", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"campaign\":\"small\",\"part\":1");
    say(made, "phase-started", ",\"phase\":\"reserve\"");
    say(made, "node", ",\"name\":\"n-1\"");
    say(made, "node", ",\"name\":\"n-2\"");
    say(made, "phase-started", ",\"phase\":\"measure\"");
    say(made, "planned", ",\"units\":%u,\"rows\":%u,\"repetitions\":1,\"lanes\":2", units, units / 2);
}

static void commit(struct made *made, unsigned done, unsigned failed, unsigned flagged, unsigned repeated) {
    say(made, "results",
        ",\"bytes\":%u,\"bytes_crc32c\":\"00000000\",\"units_done\":%u,\"units_failed\":%u,\"lines_flagged\":"
        "%u,\"units_repeated\":%u",
        100 * (done + repeated + 1), done, failed, flagged, repeated);
}

static void save(struct made *made) {
    assert_int_equal(file_replace(path, made->text.bytes, made->text.length, 0600, NULL), 0);
}

static struct run_status *read_status(void) {
    struct run_status *status = NULL;
    assert_ok(run_status_read(folder, &status, &test_failure));
    return status;
}

static struct run_status *status_of(struct made *made) {
    save(made);
    text_clear(&made->text);
    return read_status();
}

/* ---- Reservations ------------------------------------------------------------------------------ */

static void reserve(struct made *made, const char *until_ns) {
    say(made, "run-started", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"campaign\":\"small\",\"part\":1");
    say(made, "phase-started", ",\"phase\":\"reserve\"");
    say(made, "reservation", ",\"testbed\":\"slurm\",\"id\":\"17\"");
    say(made, "reservation-granted", ",\"until_ns\":\"%s\"", until_ns);
    say(made, "reservation-kept", "%s", "");
    test_put("run/inputs.json", "");
}

static void expect_reserved(struct run_status *status, enum run_condition condition, bool reserved) {
    assert_int_equal(status->condition, condition);
    assert_int_equal(run_history_is_reserved(&status->history, clock_wall_ns()), reserved);
    assert_string_equal(status->history.held.id, "17");
    run_status_free(status);
}

TEST(a_reservation_stands_until_it_is_given_back_taken_or_over) {
    static const char *const never = "9000000000000000000";
    struct made made = begin();
    reserve(&made, never);
    expect_reserved(status_of(&made), RUN_IS_RESERVED, true);
    made = begin();
    reserve(&made, "1795320000000000000");
    expect_reserved(status_of(&made), RUN_IS_STOPPED, false);
    static const char *const ends[] = {"reservation-released", "reservation-over"};
    for (size_t i = 0; i < 2; i++) {
        made = begin();
        reserve(&made, never);
        say(&made, ends[i], "%s", "");
        expect_reserved(status_of(&made), RUN_IS_STOPPED, false);
    }
    /* An engine that was killed leaves it, too, and is not one that was to stay. */
    made = begin();
    reserve(&made, never);
    say(&made, "run-resumed", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"part\":2");
    expect_reserved(status_of(&made), RUN_IS_STOPPED, true);
}

/* ---- Units ------------------------------------------------------------------------------------- */

TEST(units_are_those_of_the_last_commit) {
    struct made made = begin();
    start(&made, 8);
    commit(&made, 1, 0, 0, 0);
    say(&made, "unit-failed", ",\"order\":1,\"node\":\"n-2\",\"sentence\":\"it broke\"");
    commit(&made, 4, 1, 1, 1);
    struct run_status *status = status_of(&made);
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
    run_status_free(status);
}

/* ---- How it stands ----------------------------------------------------------------------------- */

static void expect(const struct run_status *status, enum run_condition condition, const char *next) {
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
        struct made made = begin();
        start(&made, 4);
        test_put("run/inputs.json", "");
        commit(&made, 1, 0, 0, 0);
        say(&made, "sealing", ",\"status\":\"%s\",\"units_done\":1,\"units_failed\":0", cases[i].said);
        save(&made);
        struct run_status *status = read_status();
        expect(status, RUN_IS_STOPPED, "assay resume "); /* it died while it was sealed */
        assert_string_equal(status->ended, "");
        assert_null(status->archive);
        run_status_free(status);
        test_put("run.zip", "");
        status = status_of(&made);
        expect(status, cases[i].condition, cases[i].next);
        assert_string_equal(status->ended, "2026-11-22T04:00:00.000+00:00");
        assert_string_equal(status->archive, archive);
        assert_string_equal(status->phase, "");
        run_status_free(status);
    }
}

TEST(what_is_done_needs_no_resume) {
    struct made made = begin();
    start(&made, 1);
    test_put("run/inputs.json", "");
    test_put("run.zip", "");
    commit(&made, 1, 0, 0, 0);
    say(&made, "error", ",\"phase\":\"collect\",\"sentence\":\"the clock\"");
    say(&made, "sealing", ",\"status\":\"failed\",\"units_done\":1,\"units_failed\":0");
    struct run_status *status = status_of(&made);
    expect(status, RUN_IS_FAILED, "nothing");
    assert_string_equal(status->last_error, "the clock");
    run_status_free(status);
}

/* What part 1 said of nodes, errors and its end is no more; what it did is. */
TEST(a_resumed_run_is_judged_by_its_last_part) {
    struct made made = begin();
    start(&made, 4);
    test_put("run/inputs.json", "");
    test_put("run.zip", "");
    commit(&made, 1, 1, 0, 0);
    say(&made, "node-lost", ",\"node\":\"n-2\",\"sentence\":\"gone\"");
    say(&made, "error", ",\"phase\":\"measure\",\"sentence\":\"node n-2 is gone\"");
    say(&made, "sealing", ",\"status\":\"failed\",\"units_done\":1,\"units_failed\":1");
    say(&made, "run-resumed", ",\"part\":2,\"run_id\":\"d6a781f2\",\"engine\":\"1\"");
    save(&made);
    struct run_status *status = read_status();
    expect(status, RUN_IS_STOPPED, "assay resume ");
    assert_int_equal(status->part, 2);
    assert_int_equal(status->node_count, 0);
    assert_string_equal(status->last_error, "");
    assert_int_equal(status->done, 1);
    run_status_free(status);
    say(&made, "node", ",\"name\":\"n-2\"");
    say(&made, "phase-started", ",\"phase\":\"measure\"");
    commit(&made, 2, 0, 0, 0);
    say(&made, "sealing", ",\"status\":\"partial\",\"units_done\":2,\"units_failed\":0");
    const char *second = test_put("run-2.zip", "");
    status = status_of(&made);
    expect(status, RUN_IS_PARTIAL, "2 of 4 units are left");
    assert_string_equal(status->archive, second);
    assert_int_equal(status->node_count, 1);
    assert_int_equal(status->nodes_lost, 0);
    run_status_free(status);
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

static const struct run_history_node *node_called(const struct run_status *status, const char *name) {
    for (size_t i = 0; i < status->node_count; i++)
        if (strcmp(status->nodes[i]->name, name) == 0)
            return status->nodes[i];
    return NULL;
}

TEST(nodes_have_fates) {
    struct made made = begin();
    start(&made, 4);
    for (unsigned i = 3; i <= 40; i++)
        say(&made, "node", ",\"name\":\"n-%u\"", i);
    say(&made, "link-broken", ",\"node\":\"n-1\",\"sentence\":\"no route\"");
    say(&made, "link-broken", ",\"node\":\"n-2\",\"sentence\":\"no route\"");
    say(&made, "link-resumed", ",\"node\":\"n-2\",\"outage_ns\":5");
    say(&made, "link-broken", ",\"node\":\"n-3\",\"sentence\":\"no route\"");
    say(&made, "node-lost", ",\"node\":\"n-3\",\"sentence\":\"gone\"");
    say(&made, "link-resumed", ",\"node\":\"n-3\",\"outage_ns\":5");
    say(&made, "node-out", ",\"node\":\"n-4\",\"why\":\"lost\",\"sentence\":\"taken out\"");
    say(&made, "slow-node", ",\"node\":\"n-5\",\"sentence\":\"2x\"");
    say(&made, "node-replaced", ",\"node\":\"n-4\",\"by\":\"spare-1\"");
    struct run_status *status = status_of(&made);
    assert_int_equal(status->node_count, 41);
    assert_int_equal(status->nodes_out_of_reach, 1);
    assert_int_equal(status->nodes_lost, 1);
    assert_int_equal(status->nodes_out, 1);
    assert_int_equal(status->nodes_slow, 1);
    assert_int_equal(node_called(status, "n-1")->condition, RUN_NODE_OUT_OF_REACH);
    assert_int_equal(node_called(status, "n-2")->condition, RUN_NODE_IN);
    assert_int_equal(node_called(status, "n-3")->condition, RUN_NODE_LOST);
    assert_string_equal(node_called(status, "n-3")->sentence, "gone");
    assert_int_equal(node_called(status, "n-4")->condition, RUN_NODE_OUT);
    assert_string_equal(node_called(status, "n-5")->slow, "2x");
    assert_int_equal(node_called(status, "spare-1")->condition, RUN_NODE_IN);
    run_status_free(status);
}

/* ---- Time -------------------------------------------------------------------------------------- */

/* Two units a second, whatever the wall clock does. */
TEST(the_rate_is_by_the_monotonic_clock) {
    struct made made = begin();
    start(&made, 4000);
    for (unsigned i = 1; i <= 2000; i++) {
        made.monotonic_ms += 500;
        made.wall_s += i % 100 == 0 ? -86400 : 1;
        commit(&made, i, 0, 0, i / 4); /* what is measured again brings the end no nearer */
    }
    save(&made);
    struct run_status *status = read_status();
    assert_true(fabs(status->rate - 2) < 1e-9);
    assert_true(status->seconds_left < 0); /* nobody works on it */
    run_status_free(status);
    struct run_lock *lock;
    assert_int_equal(run_lock_take(folder, &lock, NULL), 0);
    status = read_status();
    assert_int_equal(status->condition, RUN_IS_RUNNING);
    assert_true(status->owner.pid == getpid());
    assert_int_equal(status->left, 2000);
    /* This machine has been up for longer than the journal's clock says, or less: never more than what is
     * left at that rate. */
    assert_true(status->seconds_left >= 0 && status->seconds_left <= 1000);
    run_status_free(status);
    /* After a reboot the clock begins anew, and so does the rate. */
    say(&made, "run-resumed", ",\"part\":2");
    made.monotonic_ms = 10;
    say(&made, "phase-started", ",\"phase\":\"measure\"");
    save(&made);
    status = read_status();
    assert_true(isnan(status->rate) && status->seconds_left < 0);
    run_status_free(status);
    for (unsigned i = 2001; i <= 2010; i++) {
        made.monotonic_ms += 2000;
        commit(&made, i, 0, 0, 0);
    }
    status = status_of(&made);
    assert_true(fabs(status->rate - 0.5) < 1e-9);
    run_status_free(status);
    run_lock_free(lock);
}

/* The last minutes count: the first half went ten times slower. */
TEST(the_rate_is_of_late) {
    struct made made = begin();
    start(&made, 4000);
    for (unsigned i = 1; i <= 2000; i++) {
        made.monotonic_ms += i <= 1000 ? 5000 : 500;
        commit(&made, i, 0, 0, 0);
    }
    struct run_status *status = status_of(&made);
    assert_true(fabs(status->rate - 2) < 1e-9);
    run_status_free(status);
}

TEST(clocks_may_say_anything) {
    static const char *const stamps[] = {"9223372036854775807", "0", "5000000000"};
    struct made made = begin();
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
    struct run_status *status = status_of(&made);
    assert_int_equal(status->failed, 1);
    run_status_free(status);
}

/* ---- What is no run ---------------------------------------------------------------------------- */

static void refuse(const char *what, const char *sentence) {
    struct run_status *status = NULL;
    assert_refused(run_status_read(what, &status, &test_failure), "", sentence);
    assert_null(status);
}

TEST(what_is_no_run_is_refused) {
    struct made made = begin();
    refuse(folder, "is no run: there is no journal.jsonl in it");
    refuse("/nowhere/at/all", "is not there");
    assert_int_equal(text_append_string(&made.text, "hello\n"), 0);
    save(&made);
    refuse(folder, "its first line is not whole");
    text_clear(&made.text);
    made = begin();
    say(&made, "unit", ",\"order\":1");
    save(&made);
    refuse(folder, "is no journal of a run: it does not begin with 'run-started'");
    text_clear(&made.text);
}

/* It has a folder and an empty journal, and that is all: it begins, or it died as it began. */
TEST(a_run_that_has_hardly_begun) {
    struct made made = begin();
    save(&made);
    struct run_status *status = read_status();
    assert_int_equal(status->condition, RUN_IS_STOPPED);
    assert_string_equal(status->name, "run");
    run_status_free(status);
    struct run_lock *lock;
    assert_int_equal(run_lock_take(folder, &lock, NULL), 0);
    status = status_of(&made);
    assert_int_equal(status->condition, RUN_IS_RUNNING);
    run_status_free(status);
    run_lock_free(lock);
}

TEST(a_torn_end_is_told) {
    struct made made = begin();
    start(&made, 4);
    assert_int_equal(text_append_string(&made.text, "{\"seq\":7,\"t\""), 0);
    save(&made);
    struct run_status *status = read_status();
    assert_int_equal(status->journal_torn_bytes, 12);
    assert_int_equal(status->journal_whole_after, 0);
    run_status_free(status);
    struct run_lock *lock;
    assert_int_equal(run_lock_take(folder, &lock, NULL), 0);
    status = status_of(&made);
    assert_int_equal(status->journal_torn_bytes, 0); /* it is being written */
    run_status_free(status);
    run_lock_free(lock);
}

/* An engine in a job: queued until it begins, or is taken out of the queue. */
TEST(runs_are_queued) {
    struct made made = begin();
    say(&made, "run-started", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"campaign\":\"small\",\"part\":1");
    run_status_free(status_of(&made));
    struct run_status *status;
    assert_ok(submission_journal(folder, "engine-submitted", "its engine waits in job 7", &test_failure));
    assert_ok(run_status_read(folder, &status, &test_failure));
    assert_int_equal(status->condition, RUN_IS_QUEUED);
    assert_true(run_status_is_under_way(status));
    assert_string_equal(status->history.reservation, "its engine waits in job 7");
    assert_int_equal(status->journal_torn_bytes, 0);
    run_status_free(status);
    assert_ok(submission_journal(folder, "engine-withdrawn", NULL, &test_failure));
    assert_ok(run_status_read(folder, &status, &test_failure));
    assert_int_equal(status->condition, RUN_IS_STOPPED);
    run_status_free(status);
    made = begin();
    say(&made, "run-started", ",\"run_id\":\"d6a781f2\",\"engine\":\"1\",\"campaign\":\"small\",\"part\":1");
    say(&made, "engine-submitted", ",\"sentence\":\"it waits\"");
    say(&made, "run-resumed", ",\"run_id\":\"d6a781f2\",\"part\":2");
    status = status_of(&made);
    assert_int_equal(status->condition, RUN_IS_STOPPED); /* it began, and died */
    run_status_free(status);
}

/* Where the user stands may have no name in what he types. */
TEST(folders_have_many_names) {
    struct made made = begin();
    start(&made, 1);
    commit(&made, 1, 0, 0, 0);
    say(&made, "sealing", ",\"status\":\"completed\",\"units_done\":1,\"units_failed\":0");
    test_put("run.zip", "");
    run_status_free(status_of(&made));
    char name[80];
    struct run_status *status;
    snprintf(name, sizeof name, "%s//", folder);
    assert_int_equal(run_status_read(name, &status, NULL), 0);
    assert_string_equal(status->path, folder);
    assert_int_equal(status->condition, RUN_IS_COMPLETED);
    run_status_free(status);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(run_status_read(".", &status, NULL), 0);
    assert_int_equal(status->condition, RUN_IS_COMPLETED);
    run_status_free(status);
    assert_int_equal(chdir("/"), 0);
    assert_true(run_status_begun_ns(folder) == INT64_C(1795320000000000000));
    assert_true(run_status_begun_ns("/nowhere/at/all") == 0);
}

TEST_GROUP(set_up, NULL)
