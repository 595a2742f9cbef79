/* Daemons' links over streams that break: nothing is lost, nothing comes twice, and every end is told. */
#include "tests/unit/remote/link-fixture.h"

/* ---- a storm: everything at once over streams that break at random */

enum { LINES = 80000, FILE_SIZE = 3 << 20, INPUT_SIZE = 2 << 20, FILES = 3 };

static bool is_resumed(void) {
    return told.resumed > 0;
}

static int files_done;

static void note_file(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    (void)context;
    if (failure)
        print_error("%s\n", failure->text);
    else
        files_done++;
}

static struct printed lines, echo;

/* Questions, which are asked anew as long as the storm lasts: what was asked, what was answered rightly. */
static struct {
    const char *hex; /* of "local" */
    struct hash *hash;
    int asked, answered;
    bool over;
} questions;

static void ask(struct agent_link *link);

static void answer(struct agent_link *link, bool is_right) {
    questions.answered += is_right;
    if (!questions.over && questions.answered == questions.asked)
        ask(link);
}

static void note_hash(struct agent_link *link, const char *hex, uint64_t size, const struct failure *failure,
                      void *context) {
    (void)context;
    answer(link, !failure && size == FILE_SIZE && strcmp(hex, questions.hex) == 0);
}

static void note_tree(struct agent_link *link, const struct agent_entry *entries, size_t count,
                      const struct failure *failure, void *context) {
    (void)context;
    answer(link, !failure && count == 1 && entries[0].size == FILE_SIZE);
}

static void note_clock(struct agent_link *link, const struct agent_clock *clock,
                       const struct failure *failure, void *context) {
    (void)context;
    /* Both ends are on one machine, so however often the stream broke, half the round trip is the error. */
    answer(link,
           !failure && clock->exchanges == 3 &&
               llabs(clock->node_monotonic_ns - clock->engine_monotonic_ns) <= clock->round_trip_ns / 2);
}

static void note_piece(struct agent_link *link, const char *bytes, size_t length, void *context) {
    (void)link;
    (void)context;
    hash_update(questions.hash, bytes, length);
}

static void note_read(struct agent_link *link, const struct failure *failure, void *context) {
    (void)context;
    char hex[HASH_HEX_SIZE];
    hash_finish(questions.hash, hex);
    answer(link, !failure && strcmp(hex, questions.hex) == 0);
}

static void ask(struct agent_link *link) {
    int r = agent_link_hash_file(link, "local", note_hash, NULL, NULL);
    r += agent_link_list_tree(link, "local", note_tree, NULL, NULL);
    r += agent_link_measure_clock(link, 3, note_clock, NULL, NULL);
    r += agent_link_stream_file(link, "local", FILE_SIZE, note_piece, note_read, NULL, NULL);
    if (r < 0)
        questions.over = true; /* and what was asked is one short */
    questions.asked += 4;
}

static bool storm_is_over(void) {
    if (is_closed())
        return true;
    bool done = lines.exits && echo.exits && files_done >= FILES;
    questions.over |= done;
    return done && questions.answered == questions.asked;
}

static void assert_hash(struct printed *printed, const char *expected) {
    char hex[HASH_HEX_SIZE];
    hash_finish(printed->hash, hex);
    assert_string_equal(hex, expected);
    hash_free(printed->hash);
    assert_int_equal(printed->starts, 1);
    assert_int_equal(printed->exits, 1);
    assert_int_equal(printed->exit.code, 0);
    assert_int_equal(printed->exit.output_bytes, printed->bytes);
}

/* One round, in which streams break within so many bytes. */
static void storm(size_t within, const char *data, const char *data_hex, const char *lines_hex,
                  const char *script_of_lines) {
    struct remote_command *printer, *reader;
    char local[128], name[32], hex[HASH_HEX_SIZE];
    lines = (struct printed){.hash = hash_new()};
    echo = (struct printed){.hash = hash_new(), .input = data, .input_left = INPUT_SIZE};
    files_done = 0;
    script.break_within = within;
    scripted_draw((struct scripted *)f.link->transport);
    snprintf(local, sizeof local, "%s/local", f.folder);
    assert_int_equal(file_replace(local, data, FILE_SIZE, 0600, NULL), 0);
    assert_done(&f, remote_command_start(
                        f.link, &(struct remote_command_specification){.arguments = SHELL(script_of_lines)},
                        &printing, &lines, &printer, &f.failure));
    assert_done(&f, remote_command_start(f.link,
                                         &(struct remote_command_specification){.arguments = SHELL("cat"),
                                                                                .input = REMOTE_INPUT_STREAM},
                                         &printing, &echo, &reader, &f.failure));
    feed(reader, &echo);
    questions.over = false;
    questions.hex = data_hex;
    ask(f.link);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "copy-%d", i);
        assert_done(&f, agent_link_send_file(f.link, name, local, 0600, note_file, NULL, &f.failure));
    }
    turn_until(storm_is_over);
    if (is_closed())
        fail_msg("%s", told.end.text);
    assert_hash(&lines, lines_hex);
    assert_int_equal(hash_bytes(data, INPUT_SIZE, hex), 0);
    assert_hash(&echo, hex);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "copy-%d", i);
        assert_int_equal(hash_file(fixture_path(&f, name), hex, NULL, NULL), 0);
        assert_string_equal(hex, data_hex);
    }
    remote_command_free(printer);
    remote_command_free(reader);
}

static void every_byte_comes_once_over_hundreds_of_breaks(void **state) {
    (void)state;
    /* 5 MB of lines that are written one by one, so that they come in many small frames. */
    static const char script_of_lines[] =
        "awk 'BEGIN { for (i = 1; i <= 80000; i++) {"
        " printf \"line %08d of the storm, which is sixty-two bytes in length...\\n\", i; fflush() } }'";
    char *data = malloc(FILE_SIZE), data_hex[HASH_HEX_SIZE], lines_hex[HASH_HEX_SIZE];
    uint64_t seed = 7;
    for (size_t i = 0; i < FILE_SIZE; i++)
        data[i] = (char)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 56);
    assert_int_equal(hash_bytes(data, FILE_SIZE, data_hex), 0);
    struct hash *hash = hash_new();
    for (int i = 1; i <= LINES; i++) {
        char line[80];
        int length =
            snprintf(line, sizeof line, "line %08d of the storm, which is sixty-two bytes in length...\n", i);
        hash_update(hash, line, (size_t)length);
    }
    hash_finish(hash, lines_hex);
    hash_free(hash);
    connect_with(0, 0, 0);
    questions.hash = hash_new();
    f.link->session.retry_first_ns = EVENT_MILLISECOND;
    /* The largest frames have 256 KiB: some streams must be longer, or nothing could ever be done. */
    for (int round = 0; script.breaks < 300; round++)
        storm(round % 2 ? 400000 : 800000, data, data_hex, lines_hex, script_of_lines);
    free(data);
    hash_free(questions.hash);
    print_message("%d breaks, %d streams, %d attempts, %d answers\n", script.breaks, script.streams,
                  script.attempts, questions.answered);
    assert_int_equal(told.broken, told.resumed);
    assert_true(told.resumed >= 100);
    assert_int_equal(agent_link_greeting(f.link)->resumed, (unsigned)told.resumed);
    script.break_within = 0;
    assert_done(&f, agent_link_close_and_wait(f.link, 10 * EVENT_SECOND, &f.failure));
    assert_int_equal(told.closed, 1);
}

/* ---- silence */

static void a_silent_stream_is_given_up_and_mended(void **state) {
    (void)state;
    connect_with(20000, 100, 400);
    struct remote_command *command;
    lines = (struct printed){.hash = hash_new()};
    assert_done(&f, remote_command_start(f.link,
                                         &(struct remote_command_specification){
                                             .arguments = SHELL("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "
                                                                "echo $i; sleep 0.1; done")},
                                         &printing, &lines, &command, &f.failure));
    while (!lines.bytes)
        event_loop_run_once(f.loop, EVENT_SECOND, NULL);
    int64_t start = clock_monotonic_ns();
    script.swallows = true;
    turn_until(is_broken);
    int64_t passed = (clock_monotonic_ns() - start) / EVENT_MILLISECOND;
    assert_true(passed >= 300 && passed < 3000);
    assert_string_equal(told.why.text, "nothing was heard from the agent for 0.4 s");
    assert_string_equal(told.why.place, "node testnode");
    script.swallows = false;
    turn_until(is_resumed);
    assert_true(told.outage_ns > 0 && told.outage_ns < 5 * EVENT_SECOND);
    while (!lines.exits)
        event_loop_run_once(f.loop, EVENT_SECOND, NULL);
    char hex[HASH_HEX_SIZE];
    assert_int_equal(hash_bytes("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", 27, hex), 0);
    assert_hash(&lines, hex);
    assert_int_equal(told.broken, 1);
    remote_command_free(command);
}

/* The lease is much shorter than the test: the heartbeat alone keeps the agent. */
static void a_heartbeat_keeps_a_quiet_link(void **state) {
    (void)state;
    connect_with(1500, 0, 0);
    assert_int_equal(f.link->policy.heartbeat_ns, 500 * EVENT_MILLISECOND);
    fixture_turn(&f, 3700);
    assert_int_equal(agent_link_state(f.link), AGENT_LINK_READY);
    assert_int_equal(told.broken, 0);
    struct agent_statistics statistics;
    assert_done(&f, agent_link_statistics_and_wait(f.link, &statistics, &f.failure));
    /* HELLO, LEASE, STATISTICS, and a beat each 0.5 s */
    assert_in_range(statistics.frames_received, 3 + 4, 3 + 8);
}

/* Beats are for silence only. */
static void a_busy_link_has_no_heartbeat(void **state) {
    (void)state;
    connect_with(0, 1000, 0);
    struct agent_statistics before, after;
    assert_done(&f, agent_link_statistics_and_wait(f.link, &before, &f.failure));
    for (int i = 0; i < 60; i++) {
        fixture_turn(&f, 40);
        assert_done(&f, agent_link_statistics_and_wait(f.link, &after, &f.failure));
    }
    assert_int_equal(after.frames_received - before.frames_received, 60);
}

/* An engine that was stopped finds what has come meanwhile, and does not take its own sleep for silence. */
static void our_own_absence_is_no_silence(void **state) {
    (void)state;
    connect_with(20000, 100, 400);
    while (!f.link->session.heartbeat)
        assert_true(event_loop_run_once(f.loop, EVENT_SECOND, NULL) >= 0);
    usleep(1000000); /* the answer comes, and lies there */
    fixture_turn(&f, 1000);
    assert_int_equal(told.broken, 0);
    assert_int_equal(agent_link_state(f.link), AGENT_LINK_READY);
}

/* ---- broken, for a while and for good */

static void requests_wait_while_it_is_broken(void **state) {
    (void)state;
    connect_with(20000, 0, 0);
    break_now();
    assert_int_equal(agent_link_state(f.link), AGENT_LINK_BROKEN);
    int done[2] = {0, 0};
    assert_done(&f, agent_link_make_folder(f.link, "made", note_done, done, &f.failure));
    assert_done(&f, agent_link_write_file(f.link, "made/file", "x", 1, 0600, note_done, done, &f.failure));
    fixture_turn(&f, 100);
    assert_int_equal(done[0] + done[1], 0);
    script.refuse = 0;
    /* Waiting is as ever. */
    assert_done(&f, agent_link_make_folder_and_wait(f.link, "made/too", &f.failure));
    while (done[0] + done[1] < 2)
        event_loop_run_once(f.loop, EVENT_SECOND, NULL);
    assert_int_equal(done[0], 2);
    assert_true(file_is_folder(fixture_path(&f, "made/too")));
    assert_int_equal(told.resumed, 1);
    assert_null(agent_link_failure(f.link));
}

static bool has_tried_four_times(void) {
    return script.attempts >= 5;
}

/* At once, after 0.5 s, after 1 s, up to a fifth more. */
static void attempts_come_ever_more_seldom(void **state) {
    (void)state;
    connect_with(20000, 0, 0);
    break_now();
    turn_until(has_tried_four_times);
    int64_t least[] = {500, 1000, 2000};
    for (int i = 0; i < 3; i++) {
        int64_t passed = (script.attempt_ns[i + 2] - script.attempt_ns[i + 1]) / EVENT_MILLISECOND;
        assert_in_range(passed, least[i], least[i] * 12 / 10 + 600);
    }
    script.refuse = 0;
    turn_until(is_resumed);
}

static void a_lease_that_runs_out_ends_the_link(void **state) {
    (void)state;
    connect_with(1500, 0, 0);
    pid_t agent = agent_link_greeting(f.link)->pid;
    struct remote_command *commands[3];
    struct printed printed[3] = {{0}, {0}, {0}};
    for (int i = 0; i < 3; i++)
        assert_done(&f, remote_command_start(
                            f.link, &(struct remote_command_specification){.arguments = SHELL("sleep 300")},
                            &printing, &printed[i], &commands[i], &f.failure));
    while (!printed[2].starts)
        event_loop_run_once(f.loop, EVENT_SECOND, NULL);
    int done[2] = {0, 0};
    int64_t start = clock_monotonic_ns();
    break_now();
    assert_done(&f, agent_link_make_folder(f.link, "x", note_done, done, &f.failure));
    turn_until(is_closed);
    int64_t passed = (clock_monotonic_ns() - start) / EVENT_MILLISECOND;
    assert_in_range(passed, 1000, 5000);
    assert_int_equal(told.closed, 1);
    assert_false(told.asked);
    assert_int_equal(told.end.code, -ETIMEDOUT);
    assert_string_equal(told.end.place, "node testnode");
    assert_string_equal(told.end.text, "the agent was not heard for 1.5 s, which is its lease, so it has "
                                       "left; the last try: the test refuses it");
    assert_int_equal(done[1], 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(printed[i].exits, 1);
        assert_string_equal(printed[i].failure.text, told.end.text);
        assert_int_equal(printed[i].failure.kind, FAILURE_SYSTEM);
        pid_t pid = remote_command_pid(commands[i]);
        remote_command_free(commands[i]);
        assert_true(process_ends(pid));
    }
    assert_true(process_ends(agent));
}

static bool has_tried_once(void) {
    return f.link->session.tried;
}

/* Whatever the attempt that is under way is waiting for. */
static void a_lease_that_runs_out_ends_an_attempt(void **state) {
    (void)state;
    connect_with(1200, 0, 0);
    int64_t start = clock_monotonic_ns();
    break_now();
    turn_until(has_tried_once);
    script.refuse = 0;
    script.open_delay_ns = 20 * EVENT_SECOND;
    turn_until(is_closed);
    assert_in_range((clock_monotonic_ns() - start) / EVENT_MILLISECOND, 800, 5000);
    assert_int_equal(told.end.code, -ETIMEDOUT);
}

/* It has the last word, whatever our clock says: here, that the agent is not there any more. */
static void the_first_attempt_is_waited_for(void **state) {
    (void)state;
    connect_with(500, 0, 0);
    script.open_delay_ns = 3 * EVENT_SECOND;
    scripted_fail((struct scripted *)f.link->transport, -ECONNRESET, "the test broke it");
    turn_until(is_closed);
    assert_int_equal(told.end.code, -ESTALE);
}

static void an_agent_that_is_gone_ends_the_link_at_once(void **state) {
    (void)state;
    connect_with(0, 0, 0);
    int64_t start = clock_monotonic_ns();
    kill(agent_link_greeting(f.link)->pid, SIGKILL);
    turn_until(is_closed);
    assert_true(clock_monotonic_ns() - start < 10 * EVENT_SECOND);
    assert_int_equal(told.broken, 1);
    assert_int_equal(told.end.code, -ESTALE);
    assert_string_equal(told.end.text,
                        "the connection broke and cannot be made again: the relay ended with status 69");
    assert_string_equal(agent_link_failure(f.link)->place, "node testnode");
}

static void what_trying_again_will_not_mend_ends_the_link_at_once(void **state) {
    (void)state;
    static const int codes[] = {-ESTALE, -EACCES, -EKEYREJECTED};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (i > 0) {
            tear_down(state);
            set_up(state);
        }
        connect_with(1000, 0, 0);
        script.refuse = codes[i];
        scripted_fail((struct scripted *)f.link->transport, -ECONNRESET, "the test broke it");
        turn_until(is_closed);
        assert_int_equal(told.end.code, codes[i]);
        assert_int_equal(script.attempts, 2);
        assert_int_equal(told.closed, 1);
    }
}

/* How long a transport takes to open is its own business. */
static void patience_begins_when_the_stream_is_open(void **state) {
    (void)state;
    script.open_delay_ns = EVENT_SECOND / 2;
    assert_int_equal(agent_link_new(f.loop, scripted_new(f.loop, &script), NULL, &f.link, NULL), 0);
    assert_done(&f, agent_link_start(f.link, EVENT_SECOND / 4, &f.failure));
    assert_done(&f, agent_link_wait_ready(f.link, &f.failure));
}

static void a_first_stream_that_breaks_is_the_end(void **state) {
    (void)state;
    script.break_within = 1;
    script.seed = 3;
    assert_int_equal(agent_link_new(f.loop, scripted_new(f.loop, &script), NULL, &f.link, NULL), 0);
    assert_done(&f, agent_link_start(f.link, 5 * EVENT_SECOND, &f.failure));
    assert_int_equal(agent_link_wait_ready(f.link, &f.failure), -ECONNRESET);
    assert_string_equal(f.failure.text, "the test broke it");
    assert_int_equal(agent_link_state(f.link), AGENT_LINK_CLOSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_byte_comes_once_over_hundreds_of_breaks),
        TEST(a_silent_stream_is_given_up_and_mended),
        TEST(a_heartbeat_keeps_a_quiet_link),
        TEST(a_busy_link_has_no_heartbeat),
        TEST(our_own_absence_is_no_silence),
        TEST(requests_wait_while_it_is_broken),
        TEST(attempts_come_ever_more_seldom),
        TEST(a_lease_that_runs_out_ends_the_link),
        TEST(a_lease_that_runs_out_ends_an_attempt),
        TEST(the_first_attempt_is_waited_for),
        TEST(an_agent_that_is_gone_ends_the_link_at_once),
        TEST(what_trying_again_will_not_mend_ends_the_link_at_once),
        TEST(patience_begins_when_the_stream_is_open),
        TEST(a_first_stream_that_breaks_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
