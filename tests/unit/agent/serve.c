/* The agent as a program, spoken to in raw frames: what a well-behaved engine never sends, and how it ends.
 */
#include "engine/agent/mailbox.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct inbox inbox;
static struct outbox outbox;
static struct protocol_writer writer;
static struct failure failure;
static char folder[64], program[4096];
static int stream;
static pid_t guardian;

static int set_up(void **state) {
    (void)state;
    const char *given = getenv("ASSAY_AGENT"), *build = getenv("ASSAY_BUILD");
    snprintf(program, sizeof program, "%s%s", given ? given : build,
             given ? "" : "/libexec/assay/assay-agent");
    snprintf(folder, sizeof folder, "/tmp/assay-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    inbox_init(&inbox);
    outbox_init(&outbox, &inbox, 64 << 20);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    guardian = fork();
    if (guardian == 0) {
        dup2(ends[1], 0);
        dup2(ends[1], 1);
        execl(program, program, "--directory", folder, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    stream = ends[0];
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (stream >= 0)
        close(stream);
    if (guardian > 0)
        waitpid(guardian, NULL, 0);
    inbox_clear(&inbox);
    outbox_clear(&outbox);
    assert_int_equal(file_remove_tree(folder, NULL), 0);
    return 0;
}

/* ---- talking */

static void begin(enum protocol_type type) {
    outbox_begin(&outbox, &writer, type);
}

static void send_frame(void) {
    assert_int_equal(outbox_end(&outbox, &writer), 0);
    size_t length;
    const char *bytes;
    while ((bytes = outbox_unsent(&outbox, &length))) {
        ssize_t sent = send(stream, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* it has gone; what it said can still be read */
        outbox_sent(&outbox, (size_t)sent);
    }
}

static void send_bytes(const void *bytes, size_t length) {
    (void)!send(stream, bytes, length, MSG_NOSIGNAL);
}

/* The next frame; false at the end of the stream. */
static bool receive(struct protocol_frame *frame) {
    for (;;) {
        int r = inbox_next(&inbox, frame, &failure);
        assert_true(r >= 0);
        if (r > 0)
            return true;
        struct pollfd wait = {.fd = stream, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, 10000), 1);
        char *space;
        size_t size;
        assert_int_equal(inbox_reserve(&inbox, &space, &size), 0);
        ssize_t got = recv(stream, space, size, 0);
        if (got <= 0)
            return false;
        inbox_fill(&inbox, (size_t)got);
    }
}

static void say_hello(unsigned version, uint64_t session, uint32_t payload_limit) {
    begin(PROTOCOL_HELLO);
    protocol_put_hello(&writer, &(struct protocol_hello){.version = (uint16_t)version,
                                                         .session = session,
                                                         .payload_limit = payload_limit,
                                                         .program = "test",
                                                         .host = "here"});
    send_frame();
}

static void greet(void) {
    struct protocol_frame frame;
    struct protocol_hello hello;
    say_hello(PROTOCOL_VERSION, 0, PROTOCOL_PAYLOAD_LIMIT);
    assert_true(receive(&frame));
    assert_int_equal(frame.type, PROTOCOL_HELLO);
    assert_int_equal(protocol_get_hello(&frame, &hello, &failure), 0);
    assert_int_equal(hello.version, PROTOCOL_VERSION);
    assert_true(hello.pid > 1);
    char said[HASH_HEX_SIZE], is[HASH_HEX_SIZE];
    for (int i = 0; i < PROTOCOL_HASH_SIZE; i++)
        snprintf(said + 2 * i, 3, "%02x", hello.sha256[i]);
    assert_int_equal(hash_file(program, is, NULL, &failure), 0);
    assert_string_equal(said, is);
}

/* It says REFUSE with this sentence, then nothing more, and ends with status 0. */
static void is_refused(const char *sentence) {
    struct protocol_frame frame;
    const char *said;
    assert_true(receive(&frame));
    assert_int_equal(frame.type, PROTOCOL_REFUSE);
    assert_int_equal(protocol_get_refuse(&frame, &said, &failure), 0);
    if (!strstr(said, sentence)) {
        print_error("said: %s\nexpected: %s\n", said, sentence);
        fail();
    }
    assert_false(receive(&frame));
    int status;
    assert_int_equal(waitpid(guardian, &status, 0), guardian);
    guardian = 0;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void start(unsigned number, const char *const *arguments, unsigned grace_ms) {
    uint32_t count = 0;
    while (arguments[count])
        count++;
    static const char *none[] = {NULL};
    begin(PROTOCOL_RUN);
    protocol_put_run(&writer, &(struct protocol_run){.command = number,
                                                     .folder = ".",
                                                     .grace_ms = grace_ms,
                                                     .arguments = (const char **)arguments,
                                                     .argument_count = count,
                                                     .environment = none});
    send_frame();
}

static struct protocol_started is_started(void) {
    struct protocol_frame frame;
    struct protocol_started started;
    assert_true(receive(&frame));
    assert_int_equal(frame.type, PROTOCOL_STARTED);
    assert_int_equal(protocol_get_started(&frame, &started, &failure), 0);
    return started;
}

static bool ends_soon(pid_t pid) {
    for (int i = 0; i < 300; i++) {
        if (kill(pid, 0) < 0 && errno == ESRCH)
            return true;
        usleep(10000);
    }
    return false;
}

/* ---- the beginning */

static void other_versions_are_refused_in_a_sentence(void **state) {
    (void)state;
    say_hello(1, 0, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("speaks protocol 2, the engine speaks protocol 1; the agent on the node and the engine must "
               "come from the same release");
}

static void an_unknown_session_is_refused(void **state) {
    (void)state;
    say_hello(PROTOCOL_VERSION, 0xabc, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("this agent has no session abc to go on with");
}

static void small_payloads_are_refused(void **state) {
    (void)state;
    say_hello(PROTOCOL_VERSION, 0, 1000);
    is_refused("the engine takes payloads of 1000 bytes only; 1048576 are needed");
}

static void hello_comes_first(void **state) {
    (void)state;
    begin(PROTOCOL_INSPECT);
    protocol_put_number(&writer, 1);
    send_frame();
    is_refused("a INSPECT message came before HELLO");
}

static void what_is_no_frame_is_refused(void **state) {
    (void)state;
    send_bytes("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35);
    is_refused("a frame of 542393671 bytes; at most 1048576 are allowed");
}

/* ---- violations afterwards */

static void hello_comes_once(void **state) {
    (void)state;
    greet();
    say_hello(PROTOCOL_VERSION, 0, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("a HELLO message came to the agent");
}

static void answers_are_not_questions(void **state) {
    (void)state;
    greet();
    begin(PROTOCOL_DONE);
    protocol_put_number(&writer, 1);
    send_frame();
    is_refused("a DONE message came to the agent");
}

static void a_malformed_request_ends_the_link(void **state) {
    (void)state;
    greet();
    begin(PROTOCOL_RUN);
    protocol_put_number(&writer, 1);
    send_frame();
    is_refused("a malformed RUN message: it ends too early");
}

static void numbers_without_gaps(void **state) {
    (void)state;
    greet();
    outbox.next = 2;
    begin(PROTOCOL_INSPECT);
    protocol_put_number(&writer, 1);
    send_frame();
    is_refused("frame 2 came where frame 1 was due");
}

static void only_what_was_sent_can_be_acknowledged(void **state) {
    (void)state;
    greet();
    inbox.received = 99;
    begin(PROTOCOL_ACK);
    send_frame();
    inbox.received = 0;
    is_refused("frame 99 was acknowledged, but 0 is the last that was sent");
}

static void input_beyond_the_credit_ends_the_link(void **state) {
    (void)state;
    greet();
    start(1, (const char *const[]){"sleep", "81", NULL}, 100);
    assert_int_equal(is_started().credit, PROTOCOL_INPUT_WINDOW);
    begin(PROTOCOL_INPUT);
    protocol_put_number(&writer, 1);
    memset(protocol_put_space(&writer, PROTOCOL_INPUT_WINDOW + 1), 0, PROTOCOL_INPUT_WINDOW + 1);
    send_frame();
    is_refused("INPUT for command 1 beyond its credit");
}

static void numbers_of_commands_are_not_used_twice(void **state) {
    (void)state;
    greet();
    start(1, (const char *const[]){"sleep", "82", NULL}, 100);
    is_started();
    start(1, (const char *const[]){"sleep", "83", NULL}, 100);
    is_refused("a RUN message with number 1, which is running");
}

static void files_that_nobody_announced(void **state) {
    (void)state;
    greet();
    begin(PROTOCOL_WRITE_DATA);
    protocol_put_number(&writer, 5);
    send_frame();
    is_refused("WRITE_DATA came for request 5, which writes no file");
}

static void more_bytes_than_announced(void **state) {
    (void)state;
    greet();
    begin(PROTOCOL_WRITE_BEGIN);
    protocol_put_path_request(&writer, &(struct protocol_path_request){.request = 5, .size = 2, .path = "x"});
    send_frame();
    begin(PROTOCOL_WRITE_DATA);
    protocol_put_number(&writer, 5);
    protocol_put_bytes(&writer, "abc", 3);
    send_frame();
    is_refused("more bytes came for a file than were announced");
    /* And the half that was written is gone. */
    assert_int_equal(rmdir(folder), 0);
    snprintf(folder, sizeof folder, "/tmp/assay-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

/* ---- an engine that does not read */

static void output_waits_for_an_engine_that_does_not_read(void **state) {
    (void)state;
    greet();
    start(1, (const char *const[]){"sh", "-c", "head -c 30000000 /dev/zero; echo end", NULL}, 100);
    struct protocol_started started = is_started();
    usleep(300000);
    /* It has not ended: the window is 4 MiB, and what does not fit there waits in its pipe. */
    assert_int_equal(kill((pid_t)started.pid, 0), 0);
    size_t bytes = 0;
    struct protocol_frame frame;
    while (receive(&frame) && frame.type == PROTOCOL_OUTPUT) {
        bytes += frame.length - 5;
        if (inbox_owes(&inbox)) {
            begin(PROTOCOL_ACK);
            send_frame();
        }
    }
    assert_int_equal(frame.type, PROTOCOL_EXITED);
    assert_int_equal(bytes, 30000004);
}

static void an_engine_that_never_acknowledges_gets_a_window_and_no_more(void **state) {
    (void)state;
    greet();
    start(1, (const char *const[]){"sh", "-c", "exec cat /dev/zero", NULL}, 100);
    struct protocol_started started = is_started();
    size_t bytes = 0;
    struct protocol_frame frame;
    struct pollfd wait = {.fd = stream, .events = POLLIN};
    while (poll(&wait, 1, 300) == 1) {
        assert_true(receive(&frame));
        bytes += frame.length;
        while (inbox_next(&inbox, &frame, &failure) > 0)
            bytes += frame.length;
    }
    assert_true(bytes >= PROTOCOL_WINDOW - (128 << 10) && bytes < PROTOCOL_WINDOW + (128 << 10));
    close(stream);
    stream = -1;
    assert_true(ends_soon((pid_t)started.pid));
}

/* ---- ends */

static void a_closed_stream_ends_commands_and_agent(void **state) {
    (void)state;
    greet();
    start(1, (const char *const[]){"sh", "-c", "trap '' TERM; while :; do sleep 0.02; done", NULL}, 200);
    start(2, (const char *const[]){"sleep", "84", NULL}, 5000);
    pid_t stubborn = (pid_t)is_started().pid, mild = (pid_t)is_started().pid;
    usleep(200000); /* the trap is set only after exec */
    int64_t begun = clock_monotonic_ns();
    close(stream);
    stream = -1;
    int status;
    assert_int_equal(waitpid(guardian, &status, 0), guardian);
    guardian = 0;
    int64_t passed = (clock_monotonic_ns() - begun) / 1000000;
    assert_true(passed >= 200 && passed < 3000);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(kill(stubborn, 0), -1);
    assert_int_equal(kill(mild, 0), -1);
}

static void a_signal_to_the_guardian_ends_all_in_order(void **state) {
    (void)state;
    greet();
    start(1, (const char *const[]){"sleep", "85", NULL}, 100);
    pid_t pid = (pid_t)is_started().pid;
    kill(guardian, SIGTERM);
    is_refused("the agent was asked to end by a signal");
    assert_int_equal(kill(pid, 0), -1);
}

static void a_killed_guardian_takes_the_agent_along(void **state) {
    (void)state;
    greet();
    start(1, (const char *const[]){"sh", "-c", "sleep 86 & wait", NULL}, 100);
    pid_t pid = (pid_t)is_started().pid;
    kill(guardian, SIGKILL);
    int status;
    assert_int_equal(waitpid(guardian, &status, 0), guardian);
    guardian = 0;
    struct protocol_frame frame;
    const char *said;
    assert_true(receive(&frame));
    assert_int_equal(protocol_get_refuse(&frame, &said, &failure), 0);
    assert_string_equal(said, "the agent was asked to end by a signal");
    while (receive(&frame))
        continue;
    assert_true(ends_soon(pid));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(other_versions_are_refused_in_a_sentence),
        TEST(an_unknown_session_is_refused),
        TEST(small_payloads_are_refused),
        TEST(hello_comes_first),
        TEST(what_is_no_frame_is_refused),
        TEST(hello_comes_once),
        TEST(answers_are_not_questions),
        TEST(a_malformed_request_ends_the_link),
        TEST(numbers_without_gaps),
        TEST(only_what_was_sent_can_be_acknowledged),
        TEST(input_beyond_the_credit_ends_the_link),
        TEST(numbers_of_commands_are_not_used_twice),
        TEST(files_that_nobody_announced),
        TEST(more_bytes_than_announced),
        TEST(output_waits_for_an_engine_that_does_not_read),
        TEST(an_engine_that_never_acknowledges_gets_a_window_and_no_more),
        TEST(a_closed_stream_ends_commands_and_agent),
        TEST(a_signal_to_the_guardian_ends_all_in_order),
        TEST(a_killed_guardian_takes_the_agent_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
