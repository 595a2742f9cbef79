/* Links that are closed or freed in every state: the agent is told, and nobody waits for ever. */
#include "tests/unit/remote/link-fixture.h"

static bool is_seeking(void) {
    return session_is_seeking(f.link);
}

static void closing_tells_the_agent_to_leave(void **state) {
    (void)state;
    rmdir(f.folder);
    script.remove_directory = true;
    connect_with(0, 0, 0);
    pid_t agent = agent_link_greeting(f.link)->pid;
    assert_done(&f, agent_link_write_file_and_wait(f.link, "x", "x", 1, 0600, &f.failure));
    assert_done(&f, agent_link_close_and_wait(f.link, 10 * EVENT_SECOND, &f.failure));
    assert_false(process_lives(agent));
    assert_false(file_exists(f.folder));
    assert_true(told.asked);
    assert_null(agent_link_failure(f.link));
}

static void close_broken(bool from_callback, bool while_seeking) {
    connect_with(0, 0, 0);
    pid_t agent = agent_link_greeting(f.link)->pid;
    told.close_when_broken = from_callback;
    if (while_seeking)
        script.open_delay_ns = EVENT_SECOND / 5;
    scripted_fail((struct scripted *)f.link->transport, -ECONNRESET, "the test broke it");
    if (while_seeking)
        turn_until(is_seeking);
    else
        turn_until(is_broken);
    assert_done(&f, agent_link_close_and_wait(f.link, 10 * EVENT_SECOND, &f.failure));
    assert_int_equal(told.closed, 1);
    assert_true(told.asked);
    assert_int_equal(told.resumed, 0);
    assert_true(process_ends(agent));
}

static void closing_a_broken_link_tells_the_agent_too(void **state) {
    (void)state;
    close_broken(false, false);
}

static void closing_from_the_callback_tells_the_agent_too(void **state) {
    (void)state;
    close_broken(true, false);
}

static void closing_during_an_attempt_tells_the_agent_too(void **state) {
    (void)state;
    close_broken(false, true);
}

static void closing_does_not_wait_for_who_cannot_be_reached(void **state) {
    (void)state;
    connect_with(2000, 0, 0);
    pid_t agent = agent_link_greeting(f.link)->pid;
    break_now();
    int64_t start = clock_monotonic_ns();
    assert_done(&f, agent_link_close_and_wait(f.link, 10 * EVENT_SECOND, &f.failure));
    assert_true(clock_monotonic_ns() - start < 6 * EVENT_SECOND);
    assert_true(told.asked);
    assert_int_equal(agent_link_left_ns(f.link), 2 * EVENT_SECOND);
    fixture_turn(&f, 2000);
    assert_true(process_ends(agent)); /* by its lease */
}

/* The stream takes LEAVE and nobody hears it; the next one is not even opened. */
static void a_farewell_has_an_end(void **state) {
    (void)state;
    connect_with(2000, 0, 0);
    break_now();
    script.refuse = 0;
    script.open_delay_ns = 20 * EVENT_SECOND;
    int64_t start = clock_monotonic_ns();
    assert_done(&f, agent_link_close_and_wait(f.link, 10 * EVENT_SECOND, &f.failure));
    int64_t passed = (clock_monotonic_ns() - start) / EVENT_MILLISECOND;
    assert_in_range(passed, 4500, 7000);
    assert_true(told.asked);
    assert_int_equal(agent_link_left_ns(f.link), 2 * EVENT_SECOND);
}

/* Not connected: the transport is being started. */
static void begin_to_connect(void) {
    assert_int_equal(agent_link_new(f.loop, scripted_new(f.loop, &script),
                                    &(struct agent_link_callbacks){.on_closed = on_closed, .context = &told},
                                    &f.link, NULL),
                     0);
    assert_done(&f, agent_link_start(f.link, AGENT_LINK_HELLO_TIMEOUT, &f.failure));
    assert_int_equal(agent_link_state(f.link), AGENT_LINK_OPENING);
}

/* The relay is already starting the agent. */
static void closing_before_the_stream_is_open_tells_the_agent_too(void **state) {
    (void)state;
    rmdir(f.folder);
    script.remove_directory = true;
    begin_to_connect();
    agent_link_close(f.link);
    assert_int_equal(agent_link_state(f.link), AGENT_LINK_CLOSING);
    assert_true(agent_link_left_ns(f.link) > 0);
    turn_until(is_closed);
    assert_int_equal(script.streams, 1);
    assert_int_equal(script.attempts, 1);
    assert_true(told.asked);
    assert_int_equal(agent_link_left_ns(f.link), 0);
    assert_false(file_exists(f.folder));
}

/* The agent has answered for the stream that it was given; until then its relay's end is the agent's too. */
static bool relay_has_handed_over(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/0", ((struct scripted *)f.link->transport)->relay);
    return access(path, F_OK) != 0; /* a relay closes its own hold on the stream then */
}

static void close_when_the_first_stream_breaks(bool (*is_time)(void)) {
    begin_to_connect();
    while (f.link->transport->state != TRANSPORT_OPEN)
        event_loop_run_once(f.loop, EVENT_SECOND, NULL);
    while (is_time && !is_time())
        usleep(1000);
    scripted_fail((struct scripted *)f.link->transport, -ECONNRESET, "the test broke it");
    agent_link_close(f.link);
    turn_until(is_closed);
    assert_int_equal(script.attempts, 2);
    assert_true(told.asked);
    assert_int_equal(agent_link_left_ns(f.link), 0);
    assert_false(file_exists(f.folder));
}

/* It broke after the agent was started, and before it was known that it was: there is one attempt to tell it.
 */
static void closing_when_the_first_stream_breaks_tells_the_agent_too(void **state) {
    (void)state;
    rmdir(f.folder);
    script.remove_directory = true;
    close_when_the_first_stream_breaks(relay_has_handed_over);
    assert_int_equal(script.streams, 2);
}

/* An agent whose relay dies before it is answered leaves by itself: that attempt may find nobody. */
static void closing_when_the_first_stream_breaks_at_once_leaves_nobody(void **state) {
    (void)state;
    rmdir(f.folder);
    script.remove_directory = true;
    close_when_the_first_stream_breaks(NULL);
    assert_in_range(script.streams, 1, 2);
}

/* Nobody has been started yet: there is nothing to wait for. */
static void closing_before_the_agent_was_started_is_done_at_once(void **state) {
    (void)state;
    script.open_delay_ns = 20 * EVENT_SECOND;
    begin_to_connect();
    int64_t start = clock_monotonic_ns();
    assert_done(&f, agent_link_close_and_wait(f.link, 10 * EVENT_SECOND, &f.failure));
    assert_true(clock_monotonic_ns() - start < EVENT_SECOND);
    assert_int_equal(agent_link_left_ns(f.link), 0);
}

static void closing_before_the_stream_is_open_has_an_end(void **state) {
    (void)state;
    script.open_delay_ns = 20 * EVENT_SECOND;
    script.begins_at_once = true;
    begin_to_connect();
    f.link->session.farewell_ns = EVENT_SECOND / 4;
    int64_t start = clock_monotonic_ns();
    assert_done(&f, agent_link_close_and_wait(f.link, 10 * EVENT_SECOND, &f.failure));
    assert_in_range((clock_monotonic_ns() - start) / EVENT_MILLISECOND, 200, 2000);
    assert_true(told.asked);
    assert_int_equal(agent_link_left_ns(f.link), 60 * EVENT_SECOND); /* it knows of no other lease */
}

/* A window of a file is on its way when the link is closed. RET: how long that took. */
static int64_t close_slow(size_t bytes_a_tick) {
    char local[128];
    static int done[2]; /* the answer may come after this function has ended */
    connect_with(2000, 0, 0);
    snprintf(local, sizeof local, "%s/local", f.folder);
    int file = open(local, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(file, 16 << 20), 0);
    close(file);
    script.bytes_a_tick = bytes_a_tick;
    assert_done(&f, agent_link_send_file(f.link, "copy", local, 0600, note_done, done, &f.failure));
    fixture_turn(&f, 50);
    size_t length;
    assert_true(outbox_unsent(&f.link->outbox, &length) && length > PROTOCOL_WINDOW / 2);
    f.link->session.farewell_ns = 800 * EVENT_MILLISECOND;
    int64_t start = clock_monotonic_ns();
    assert_done(&f, agent_link_close_and_wait(f.link, 20 * EVENT_SECOND, &f.failure));
    assert_true(told.asked);
    return (clock_monotonic_ns() - start) / EVENT_MILLISECOND;
}

static void a_farewell_goes_on_while_bytes_go_out(void **state) {
    (void)state;
    assert_in_range(close_slow(32 << 10), 900, 18000);
    assert_int_equal(agent_link_left_ns(f.link), 0);
    assert_false(process_lives(agent_link_greeting(f.link)->pid));
    assert_false(file_exists(fixture_path(&f, "copy")));
}

static void a_farewell_does_not_go_on_for_ever(void **state) {
    (void)state;
    assert_in_range(close_slow(1000), 1600, 18000); /* more than one farewell's time */
    assert_int_equal(agent_link_left_ns(f.link), 2 * EVENT_SECOND);
    fixture_turn(&f, 2000);
    assert_true(process_ends(agent_link_greeting(f.link)->pid)); /* by its lease */
}

static void freeing_tells_the_agent_to_leave(void **state) {
    (void)state;
    connect_with(0, 0, 0);
    pid_t agent = agent_link_greeting(f.link)->pid;
    agent_link_free(f.link);
    f.link = NULL;
    assert_true(process_ends(agent));
    assert_int_equal(told.closed, 0);
}

/* In each state that a link can be freed in, with much that is pending. */
static void a_link_can_be_freed_in_every_state(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        if (i > 0) {
            tear_down(state);
            set_up(state);
        }
        connect_with(1000, 0, 0);
        struct remote_command *command;
        struct printed printed = {0};
        assert_done(&f, remote_command_start(
                            f.link, &(struct remote_command_specification){.arguments = SHELL("sleep 300")},
                            &printing, &printed, &command, &f.failure));
        int done[2] = {0, 0};
        for (int n = 0; n < 100; n++)
            assert_done(&f, agent_link_write_file(f.link, "x", "x", 1, 0600, note_done, done, &f.failure));
        if (i == 1)
            break_now();
        script.open_delay_ns = EVENT_SECOND / 10;
        if (i >= 2)
            scripted_fail((struct scripted *)f.link->transport, -ECONNRESET, "the test broke it");
        if (i == 2 || i == 3)
            turn_until(is_seeking);
        if (i == 3)
            while (f.link->transport->state != TRANSPORT_OPEN)
                event_loop_run_once(f.loop, EVENT_SECOND, NULL);
        if (i == 4 || i == 5)
            agent_link_close(f.link);
        if (i == 5)
            turn_until(is_seeking);
        pid_t agent = agent_link_greeting(f.link)->pid;
        int exits = printed.exits;
        agent_link_free(f.link);
        f.link = NULL;
        assert_int_equal(printed.exits, exits);
        remote_command_free(command);
        fixture_turn(&f, 1200); /* nothing of it calls back any more */
        assert_true(process_ends(agent));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(closing_tells_the_agent_to_leave),
        TEST(closing_a_broken_link_tells_the_agent_too),
        TEST(closing_from_the_callback_tells_the_agent_too),
        TEST(closing_during_an_attempt_tells_the_agent_too),
        TEST(closing_does_not_wait_for_who_cannot_be_reached),
        TEST(a_farewell_has_an_end),
        TEST(closing_before_the_stream_is_open_tells_the_agent_too),
        TEST(closing_when_the_first_stream_breaks_tells_the_agent_too),
        TEST(closing_when_the_first_stream_breaks_at_once_leaves_nobody),
        TEST(closing_before_the_agent_was_started_is_done_at_once),
        TEST(closing_before_the_stream_is_open_has_an_end),
        TEST(a_farewell_goes_on_while_bytes_go_out),
        TEST(a_farewell_does_not_go_on_for_ever),
        TEST(freeing_tells_the_agent_to_leave),
        TEST(a_link_can_be_freed_in_every_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
