/* The agent as a program on its stream, spoken to in raw frames: what a well-behaved engine never sends, and
 * how it ends. */
#include "engine/foundation/hash.h"
#include "tests/unit/agent/engine.h"

#include <sys/ioctl.h>

static int start_agent(void **state) {
    if (set_up(state) < 0)
        return -1;
    engine.session = 0;
    start(&engine, (const char *const[]){"--directory", folder, NULL}, NULL);
    return 0;
}

static void say_hello_as(unsigned version, uint64_t session, uint32_t payload_limit) {
    begin(&engine, PROTOCOL_HELLO);
    protocol_put_message(&writer, &(struct protocol_hello){.version = (uint16_t)version,
                                                           .session = session,
                                                           .payload_limit = payload_limit,
                                                           .program = "test",
                                                           .host = "here"});
    end(&engine);
}

static void greet(void) {
    say_hello(&engine, 0);
    take_hello(&engine);
}

/* It says REFUSE with this sentence, then nothing more, and ends with status 0. */
static void is_refused(const char *sentence) {
    const char *said;
    do
        assert_true(receive(&engine));
    while (frame.type == PROTOCOL_ACK);
    assert_int_equal(frame.type, PROTOCOL_REFUSE);
    assert_int_equal(protocol_get_message(&frame, &said, &failure), 0);
    assert_says(said, sentence);
    assert_false(receive(&engine));
    assert_int_equal(relay_end(&engine), 0);
}

static void run_for(unsigned number, const char *const *arguments, unsigned grace_ms) {
    uint32_t count = 0;
    while (arguments[count])
        count++;
    begin(&engine, PROTOCOL_RUN);
    protocol_put_message(&writer, &(struct protocol_run){.command = number,
                                                         .folder = ".",
                                                         .grace_ms = grace_ms,
                                                         .arguments = (const char **)arguments,
                                                         .argument_count = count});
    end(&engine);
}

static struct protocol_started is_started(void) {
    struct protocol_started started;
    assert_true(receive(&engine));
    assert_int_equal(frame.type, PROTOCOL_STARTED);
    assert_int_equal(protocol_get_message(&frame, &started, &failure), 0);
    return started;
}

/* ---- the beginning */

TEST(it_says_what_it_is) {
    struct protocol_hello hello;
    char said[HASH_HEX_SIZE], is[HASH_HEX_SIZE];
    say_hello(&engine, 0);
    assert_true(receive(&engine));
    assert_int_equal(protocol_get_message(&frame, &hello, &failure), 0);
    assert_int_equal(hello.version, PROTOCOL_VERSION);
    assert_true(hello.pid > 1);
    for (int i = 0; i < PROTOCOL_HASH_SIZE; i++)
        snprintf(said + 2 * i, 3, "%02x", hello.sha256[i]);
    assert_int_equal(hash_file(program, is, NULL, &failure), 0);
    assert_string_equal(said, is);
}

TEST(other_versions_are_refused_in_a_sentence) {
    say_hello_as(1, 0, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("speaks protocol 3, the engine speaks protocol 1; the agent on the node and the engine must "
               "come from the same release");
}

TEST(an_unknown_session_is_refused) {
    say_hello_as(PROTOCOL_VERSION, 0xabc, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("this agent does not serve session abc");
}

TEST(small_payloads_are_refused) {
    say_hello_as(PROTOCOL_VERSION, 0, 1000);
    is_refused("the engine takes payloads of 1000 bytes only; 1048576 are needed");
}

TEST(hello_comes_first) {
    assert_int_equal(outbox_resume(&engine.outbox, 0, &failure), 0);
    begin(&engine, PROTOCOL_INSPECT);
    protocol_put_u32(&writer, 1);
    end(&engine);
    is_refused("a INSPECT message came before HELLO");
}

TEST(what_is_no_frame_is_refused) {
    static const char bytes[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_int_equal(write(engine.to, bytes, sizeof bytes), sizeof bytes);
    is_refused("a frame of 542393671 bytes; at most 1048576 are allowed");
}

/* ---- violations afterwards */

TEST(hello_comes_once) {
    greet();
    say_hello_as(PROTOCOL_VERSION, 0, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("a HELLO message came to the agent");
}

TEST(answers_are_not_questions) {
    greet();
    begin(&engine, PROTOCOL_CREDIT);
    protocol_put_message(&writer, &(struct protocol_amount){1, 1});
    end(&engine);
    is_refused("a CREDIT message came to the agent");
}

TEST(a_malformed_request_ends_the_link) {
    greet();
    begin(&engine, PROTOCOL_RUN);
    protocol_put_u32(&writer, 1);
    end(&engine);
    is_refused("a malformed RUN message: it ends too early");
}

TEST(numbers_without_gaps) {
    greet();
    engine.outbox.next = 2;
    begin(&engine, PROTOCOL_INSPECT);
    protocol_put_u32(&writer, 1);
    end(&engine);
    is_refused("frame 2 came where frame 1 was due");
}

TEST(only_what_was_sent_can_be_acknowledged) {
    greet();
    engine.inbox.received = 99;
    begin(&engine, PROTOCOL_ACK);
    end(&engine);
    engine.inbox.received = 0;
    is_refused("frame 99 was acknowledged, but the last frame sent is 0");
}

TEST(input_beyond_the_credit_ends_the_link) {
    greet();
    run_for(1, (const char *const[]){"sleep", "81", NULL}, 100);
    assert_int_equal(is_started().credit, PROTOCOL_INPUT_WINDOW);
    begin(&engine, PROTOCOL_INPUT);
    protocol_put_u32(&writer, 1);
    memset(protocol_put_space(&writer, PROTOCOL_INPUT_WINDOW + 1), 0, PROTOCOL_INPUT_WINDOW + 1);
    end(&engine);
    is_refused("INPUT for command 1 has more bytes than its credit allows");
}

TEST(numbers_of_commands_are_not_used_twice) {
    greet();
    run_for(1, (const char *const[]){"sleep", "82", NULL}, 100);
    is_started();
    run_for(1, (const char *const[]){"sleep", "83", NULL}, 100);
    is_refused("a RUN message with number 1, which is running");
}

/* ---- an engine that does not read */

TEST(output_waits_for_an_engine_that_does_not_read) {
    greet();
    run_for(1, (const char *const[]){"sh", "-c", "head -c 30000000 /dev/zero; echo end", NULL}, 100);
    struct protocol_started started = is_started();
    /* When the pipe is full it has not ended: the window is 4 MiB, and what does not fit there waits in its
     * pipe. */
    int waiting = 0;
    wait_until(NULL, ioctl(engine.from, FIONREAD, &waiting) == 0 && waiting > 32 << 10, "%d bytes", waiting);
    assert_int_equal(kill((pid_t)started.pid, 0), 0);
    size_t bytes = 0;
    while (receive(&engine) && frame.type == PROTOCOL_OUTPUT) {
        bytes += frame.length - 5;
        if (inbox_owes(&engine.inbox)) {
            begin(&engine, PROTOCOL_ACK);
            end(&engine);
        }
    }
    assert_int_equal(frame.type, PROTOCOL_EXITED);
    assert_int_equal(bytes, 30000004);
}

TEST(an_engine_that_never_acknowledges_gets_a_window_and_no_more) {
    greet();
    run_for(1, (const char *const[]){"sh", "-c", "exec cat /dev/zero", NULL}, 100);
    struct protocol_started started = is_started();
    size_t bytes = 0;
    struct pollfd wait = {.fd = engine.from, .events = POLLIN};
    /* All of the window comes, however long that takes; a tenth of a second in which more could come. */
    while (poll(&wait, 1, bytes < PROTOCOL_WINDOW - (128 << 10) ? WAIT_LIMIT_MS : 100) == 1) {
        assert_true(receive(&engine));
        bytes += frame.length;
        while (inbox_next(&engine.inbox, &frame, &failure) > 0)
            bytes += frame.length;
    }
    assert_true(bytes >= PROTOCOL_WINDOW - (128 << 10) && bytes < PROTOCOL_WINDOW + (128 << 10));
    close_stream(&engine);
    wait_until_gone((pid_t)started.pid);
}

/* ---- ends */

TEST(a_closed_stream_ends_commands_and_agent) {
    greet();
    run_for(1, (const char *const[]){"sh", "-c", "trap '' TERM; echo set; exec sleep 84", NULL}, 50);
    pid_t stubborn = (pid_t)is_started().pid;
    assert_true(receive(&engine));
    assert_int_equal(frame.type, PROTOCOL_OUTPUT); /* the trap is set */
    run_for(2, (const char *const[]){"sleep", "84", NULL}, WAIT_LIMIT_MS);
    pid_t mild = (pid_t)is_started().pid;
    close_stream(&engine);
    assert_int_equal(relay_end(&engine), 0);
    assert_int_equal(kill(stubborn, 0), -1);
    assert_int_equal(kill(mild, 0), -1);
}

TEST(a_signal_to_the_guardian_ends_all_in_order) {
    greet();
    run_for(1, (const char *const[]){"sleep", "85", NULL}, 100);
    pid_t pid = (pid_t)is_started().pid;
    kill(engine.relay, SIGTERM);
    is_refused("the agent was asked to end by a signal");
    assert_int_equal(kill(pid, 0), -1);
}

TEST(a_killed_guardian_takes_the_agent_along) {
    greet();
    run_for(1, (const char *const[]){"sh", "-c", "sleep 86 & wait", NULL}, 100);
    pid_t pid = (pid_t)is_started().pid;
    kill(engine.relay, SIGKILL);
    assert_int_equal(relay_end(&engine), 128 + SIGKILL);
    const char *said;
    assert_true(receive(&engine));
    assert_int_equal(protocol_get_message(&frame, &said, &failure), 0);
    assert_string_equal(said, "the agent was asked to end by a signal");
    while (receive(&engine))
        continue;
    wait_until_gone(pid);
}

TEST_EACH(start_agent, tear_down)
