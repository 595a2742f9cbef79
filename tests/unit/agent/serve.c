/* The agent as a program, spoken to in raw frames: what a well-behaved engine never sends, and how it ends.
 */
#include "engine/agent/wire/mailbox.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "tests/test.h"
#include "tests/wait.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct inbox inbox;
static struct outbox outbox;
static struct protocol_writer writer;
static struct failure failure;
static char folder[64], program[4096];
static int stream;
static pid_t guardian;

static int set_up(void **state) {
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
        assert_int_equal(poll(&wait, 1, WAIT_LIMIT_MS), 1);
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
    protocol_put_message(&writer, &(struct protocol_hello){.version = (uint16_t)version,
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
    assert_int_equal(protocol_get_message(&frame, &hello, &failure), 0);
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
    do
        assert_true(receive(&frame));
    while (frame.type == PROTOCOL_ACK);
    assert_int_equal(frame.type, PROTOCOL_REFUSE);
    assert_int_equal(protocol_get_message(&frame, &said, &failure), 0);
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
    protocol_put_message(&writer, &(struct protocol_run){.command = number,
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
    assert_int_equal(protocol_get_message(&frame, &started, &failure), 0);
    return started;
}

static bool is_gone(pid_t pid) {
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* ---- the beginning */

TEST(other_versions_are_refused_in_a_sentence) {
    say_hello(1, 0, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("speaks protocol 3, the engine speaks protocol 1; the agent on the node and the engine must "
               "come from the same release");
}

TEST(an_unknown_session_is_refused) {
    say_hello(PROTOCOL_VERSION, 0xabc, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("this agent does not serve session abc");
}

TEST(small_payloads_are_refused) {
    say_hello(PROTOCOL_VERSION, 0, 1000);
    is_refused("the engine takes payloads of 1000 bytes only; 1048576 are needed");
}

TEST(hello_comes_first) {
    begin(PROTOCOL_INSPECT);
    protocol_put_u32(&writer, 1);
    send_frame();
    is_refused("a INSPECT message came before HELLO");
}

TEST(what_is_no_frame_is_refused) {
    send_bytes("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35);
    is_refused("a frame of 542393671 bytes; at most 1048576 are allowed");
}

/* ---- violations afterwards */

TEST(hello_comes_once) {
    greet();
    say_hello(PROTOCOL_VERSION, 0, PROTOCOL_PAYLOAD_LIMIT);
    is_refused("a HELLO message came to the agent");
}

TEST(answers_are_not_questions) {
    greet();
    begin(PROTOCOL_CREDIT);
    protocol_put_message(&writer, &(struct protocol_amount){1, 1});
    send_frame();
    is_refused("a CREDIT message came to the agent");
}

TEST(a_malformed_request_ends_the_link) {
    greet();
    begin(PROTOCOL_RUN);
    protocol_put_u32(&writer, 1);
    send_frame();
    is_refused("a malformed RUN message: it ends too early");
}

TEST(numbers_without_gaps) {
    greet();
    outbox.next = 2;
    begin(PROTOCOL_INSPECT);
    protocol_put_u32(&writer, 1);
    send_frame();
    is_refused("frame 2 came where frame 1 was due");
}

TEST(only_what_was_sent_can_be_acknowledged) {
    greet();
    inbox.received = 99;
    begin(PROTOCOL_ACK);
    send_frame();
    inbox.received = 0;
    is_refused("frame 99 was acknowledged, but 0 is the last that was sent");
}

TEST(input_beyond_the_credit_ends_the_link) {
    greet();
    start(1, (const char *const[]){"sleep", "81", NULL}, 100);
    assert_int_equal(is_started().credit, PROTOCOL_INPUT_WINDOW);
    begin(PROTOCOL_INPUT);
    protocol_put_u32(&writer, 1);
    memset(protocol_put_space(&writer, PROTOCOL_INPUT_WINDOW + 1), 0, PROTOCOL_INPUT_WINDOW + 1);
    send_frame();
    is_refused("INPUT for command 1 beyond its credit");
}

TEST(numbers_of_commands_are_not_used_twice) {
    greet();
    start(1, (const char *const[]){"sleep", "82", NULL}, 100);
    is_started();
    start(1, (const char *const[]){"sleep", "83", NULL}, 100);
    is_refused("a RUN message with number 1, which is running");
}

/* ---- an engine that does not read */

TEST(output_waits_for_an_engine_that_does_not_read) {
    greet();
    start(1, (const char *const[]){"sh", "-c", "head -c 30000000 /dev/zero; echo end", NULL}, 100);
    struct protocol_started started = is_started();
    /* When the socket is full it has not ended: the window is 4 MiB, and what does not fit there waits in its
     * pipe. */
    int waiting = 0;
    wait_until(NULL, ioctl(stream, FIONREAD, &waiting) == 0 && waiting > 64 << 10, "%d bytes", waiting);
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

TEST(an_engine_that_never_acknowledges_gets_a_window_and_no_more) {
    greet();
    start(1, (const char *const[]){"sh", "-c", "exec cat /dev/zero", NULL}, 100);
    struct protocol_started started = is_started();
    size_t bytes = 0;
    struct protocol_frame frame;
    struct pollfd wait = {.fd = stream, .events = POLLIN};
    /* All of the window comes, however long that takes; a tenth of a second in which more could come. */
    while (poll(&wait, 1, bytes < PROTOCOL_WINDOW - (128 << 10) ? WAIT_LIMIT_MS : 100) == 1) {
        assert_true(receive(&frame));
        bytes += frame.length;
        while (inbox_next(&inbox, &frame, &failure) > 0)
            bytes += frame.length;
    }
    assert_true(bytes >= PROTOCOL_WINDOW - (128 << 10) && bytes < PROTOCOL_WINDOW + (128 << 10));
    close(stream);
    stream = -1;
    wait_until(NULL, is_gone((pid_t)started.pid), "it is there");
}

/* ---- ends */

TEST(a_closed_stream_ends_commands_and_agent) {
    greet();
    start(1, (const char *const[]){"sh", "-c", "trap '' TERM; echo set; exec sleep 84", NULL}, 50);
    pid_t stubborn = (pid_t)is_started().pid;
    struct protocol_frame frame;
    assert_true(receive(&frame));
    assert_int_equal(frame.type, PROTOCOL_OUTPUT); /* the trap is set */
    start(2, (const char *const[]){"sleep", "84", NULL}, WAIT_LIMIT_MS);
    pid_t mild = (pid_t)is_started().pid;
    close(stream);
    stream = -1;
    int status;
    assert_int_equal(waitpid(guardian, &status, 0), guardian);
    guardian = 0;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(kill(stubborn, 0), -1);
    assert_int_equal(kill(mild, 0), -1);
}

TEST(a_signal_to_the_guardian_ends_all_in_order) {
    greet();
    start(1, (const char *const[]){"sleep", "85", NULL}, 100);
    pid_t pid = (pid_t)is_started().pid;
    kill(guardian, SIGTERM);
    is_refused("the agent was asked to end by a signal");
    assert_int_equal(kill(pid, 0), -1);
}

TEST(a_killed_guardian_takes_the_agent_along) {
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
    assert_int_equal(protocol_get_message(&frame, &said, &failure), 0);
    assert_string_equal(said, "the agent was asked to end by a signal");
    while (receive(&frame))
        continue;
    wait_until(NULL, is_gone(pid), "it is there");
}

TEST_EACH(set_up, tear_down)
