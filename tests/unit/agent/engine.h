/* For the tests of the daemon: an engine's half of a session, in raw frames, and the relay of its link. Each
 * test has a fresh folder. */
#ifndef ASSAY_TESTS_AGENT_ENGINE_H
#define ASSAY_TESTS_AGENT_ENGINE_H

#include "engine/agent/wire/mailbox.h"
#include "engine/foundation/file.h"
#include "tests/simulation/moved-clock.h"
#include "tests/test.h"
#include "tests/wait.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char program[4096], folder[64];

/* ---- an engine: what it has of a session, and the relay of its link */

struct engine {
    uint64_t session;
    char name[17]; /* the session in hexadecimal */
    struct inbox inbox;
    struct outbox outbox;
    pid_t relay;
    int to, from, words; /* the relay's stdin, stdout and stderr; -1: closed */
    pid_t agent;         /* the worker */
    uint32_t next;       /* request and command numbers */
};

static struct protocol_writer writer;
static struct failure failure;

static inline void engine_init(struct engine *engine) {
    memset(engine, 0, sizeof *engine);
    assert_int_equal(getrandom(&engine->session, sizeof engine->session, 0), sizeof engine->session);
    snprintf(engine->name, sizeof engine->name, "%016llx", (unsigned long long)engine->session);
    inbox_init(&engine->inbox);
    outbox_init(&engine->outbox, &engine->inbox, 64 << 20);
    outbox_restart(&engine->outbox);
    engine->to = engine->from = engine->words = -1;
    engine->next = 1;
}

static inline void close_stream(struct engine *engine) {
    if (engine->to >= 0)
        close(engine->to);
    if (engine->from >= 0)
        close(engine->from);
    engine->to = engine->from = -1;
}

/* The exit status of the relay; what it said on stderr in WORDS. */
static inline int relay_end(struct engine *engine, char words[static 1024]) {
    size_t length = 0;
    struct pollfd wait = {.fd = engine->words, .events = POLLIN};
    ssize_t got;
    do {
        if (poll(&wait, 1, WAIT_LIMIT_MS) != 1) {
            kill(engine->relay, SIGKILL);
            break;
        }
        got = read(engine->words, words + length, 1023 - length);
        length += got > 0 ? (size_t)got : 0;
    } while (got > 0 && length < 1023);
    words[length] = '\0';
    close(engine->words);
    engine->words = -1;
    int status = 0;
    assert_int_equal(waitpid(engine->relay, &status, 0), engine->relay);
    engine->relay = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void engine_clear(struct engine *engine) {
    close_stream(engine);
    if (engine->relay > 0) {
        char words[1024];
        relay_end(engine, words);
    }
    inbox_clear(&engine->inbox);
    outbox_clear(&engine->outbox);
}

/* Runs the relay with MODE and up to eight more ARGUMENTS; BEFORE is called in its process. */
static inline void start_relay(struct engine *engine, const char *mode, const char *const *arguments,
                               void (*before)(void)) {
    int in[2], out[2], words[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(words, O_CLOEXEC), 0);
    engine->relay = fork();
    if (engine->relay == 0) {
        const char *all[16] = {program, mode, engine->name};
        for (size_t i = 0; arguments && arguments[i]; i++)
            all[3 + i] = arguments[i];
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(words[1], 2);
        if (before)
            before();
        execv(program, (char **)all);
        _exit(126);
    }
    close(in[0]);
    close(out[1]);
    close(words[1]);
    engine->to = in[1];
    engine->from = out[0];
    engine->words = words[0];
}

/* The line that comes before all frames; false when the stream ends without it. */
static inline bool read_line(struct engine *engine) {
    char line[64], expected[64];
    size_t length = 0;
    int size = snprintf(expected, sizeof expected, "\nASSAY-AGENT ATTACHED %s\n", engine->name);
    while (length < (size_t)size) {
        struct pollfd wait = {.fd = engine->from, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, WAIT_LIMIT_MS), 1);
        ssize_t got = read(engine->from, line + length, (size_t)size - length);
        if (got <= 0)
            return false;
        length += (size_t)got;
    }
    assert_memory_equal(line, expected, (size_t)size);
    return true;
}

static inline void flush(struct engine *engine) {
    size_t length;
    const char *bytes;
    while (engine->to >= 0 && (bytes = outbox_unsent(&engine->outbox, &length))) {
        ssize_t sent = write(engine->to, bytes, length);
        if (sent <= 0)
            return; /* it has gone; reading will tell */
        outbox_sent(&engine->outbox, (size_t)sent);
    }
}

static inline void begin(struct engine *engine, enum protocol_type type) {
    outbox_begin(&engine->outbox, &writer, type);
}

static inline void end(struct engine *engine) {
    assert_int_equal(outbox_end(&engine->outbox, &writer), 0);
    flush(engine);
}

static inline void say_hello(struct engine *engine, uint64_t session) {
    begin(engine, PROTOCOL_HELLO);
    protocol_put_message(&writer, &(struct protocol_hello){.version = PROTOCOL_VERSION,
                                                           .session = session,
                                                           .payload_limit = PROTOCOL_PAYLOAD_LIMIT,
                                                           .program = "test",
                                                           .host = "here"});
    end(engine);
}

/* The next frame; false at the end of the stream. */
static inline bool receive(struct engine *engine, struct protocol_frame *frame) {
    for (;;) {
        int r = inbox_next(&engine->inbox, frame, &failure);
        if (r < 0)
            fail_msg("%s", failure.text);
        if (r > 0)
            return true;
        struct pollfd wait = {.fd = engine->from, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, WAIT_LIMIT_MS), 1);
        char *space;
        size_t size;
        assert_int_equal(inbox_reserve(&engine->inbox, &space, &size), 0);
        ssize_t got = read(engine->from, space, size);
        if (got <= 0)
            return false;
        inbox_fill(&engine->inbox, (size_t)got);
    }
}

static inline void take_hello(struct engine *engine) {
    struct protocol_frame frame;
    struct protocol_hello hello;
    assert_true(receive(engine, &frame));
    if (frame.type == PROTOCOL_REFUSE)
        fail_msg("refused: %s", frame.payload + 4);
    assert_int_equal(frame.type, PROTOCOL_HELLO);
    assert_int_equal(protocol_get_message(&frame, &hello, &failure), 0);
    assert_int_equal(hello.session, engine->session);
    engine->agent = (pid_t)hello.pid;
    assert_int_equal(outbox_resume(&engine->outbox, frame.acknowledged, &failure), 0);
    flush(engine);
}

static inline void attach(struct engine *engine, const char *const *arguments) {
    start_relay(engine, "--attach", arguments, NULL);
    assert_true(read_line(engine));
    say_hello(engine, engine->session);
    take_hello(engine);
}

static inline void break_stream(struct engine *engine) {
    close_stream(engine);
    inbox_restart(&engine->inbox);
    outbox_restart(&engine->outbox);
}

static inline void resume(struct engine *engine) {
    start_relay(engine, "--resume", NULL, NULL);
    assert_true(read_line(engine));
    say_hello(engine, engine->session);
    take_hello(engine);
}

/* A frame that is more than bookkeeping. */
static inline void expect(struct engine *engine, enum protocol_type type, struct protocol_frame *frame) {
    do {
        if (!receive(engine, frame))
            fail_msg("the stream ended where %s was expected", protocol_type_name(type));
        assert_int_equal(outbox_acknowledge(&engine->outbox, frame->acknowledged, &failure), 0);
    } while (frame->type == PROTOCOL_ACK);
    if (frame->type != type)
        fail_msg("%s came where %s was expected", protocol_type_name(frame->type), protocol_type_name(type));
}

static inline void leave(struct engine *engine) {
    begin(engine, PROTOCOL_LEAVE);
    end(engine);
    struct protocol_frame frame;
    while (receive(engine, &frame))
        continue;
    char words[1024];
    assert_int_equal(relay_end(engine, words), 0);
    assert_string_equal(words, "");
}

static inline uint32_t run(struct engine *engine, const char *const *arguments, uint8_t input) {
    uint32_t count = 0;
    while (arguments[count])
        count++;
    struct protocol_run message = {.command = engine->next++,
                                   .input = input,
                                   .folder = ".",
                                   .arguments = (const char **)arguments,
                                   .argument_count = count};
    begin(engine, PROTOCOL_RUN);
    protocol_put_message(&writer, &message);
    end(engine);
    return message.command;
}

static inline uint32_t run_shell(struct engine *engine, const char *script) {
    return run(engine, (const char *const[]){"/bin/sh", "-c", script, NULL}, PROTOCOL_MODE_NULL);
}

/* A number that a program printed, in an OUTPUT frame. */
static inline pid_t printed_pid(const struct protocol_frame *frame) {
    struct protocol_data data;
    assert_int_equal(protocol_get_message(frame, &data, &failure), 0);
    char digits[32] = "";
    assert_true(data.length < sizeof digits);
    memcpy(digits, data.bytes, data.length);
    pid_t pid = (pid_t)strtol(digits, NULL, 10);
    assert_true(pid > 1);
    return pid;
}

/* Something is asked and answered: what was sent before has been received. */
static inline void exchange(struct engine *engine) {
    struct protocol_frame frame;
    begin(engine, PROTOCOL_CLOCK);
    protocol_put_u32(&writer, engine->next++);
    end(engine);
    expect(engine, PROTOCOL_CLOCK_REPLY, &frame);
}

static inline void set_lease(struct engine *engine, uint64_t ms) {
    begin(engine, PROTOCOL_LEASE);
    protocol_put_u64(&writer, ms);
    end(engine);
}

/* ---- the node */

static inline bool is_alive(pid_t pid) {
    return kill(pid, 0) == 0;
}

static inline void wait_until_gone(pid_t pid) {
    wait_until(NULL, !is_alive(pid), "process %ld is there", (long)pid);
}

static inline const char *below(const char *name) {
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void find_program(void) {
    const char *given = getenv("ASSAY_AGENT");
    snprintf(program, sizeof program, "%s%s", given ? given : test_build(),
             given ? "" : "/libexec/assay/assay-agent");
    signal(SIGPIPE, SIG_IGN);
    umask(022);
}

static inline int set_up(void **state) {
    (void)state;
    find_program();
    snprintf(folder, sizeof folder, "/tmp/assay-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* The agent is one that goes by a clock that the test moves. */
static inline void move_clock(void) {
    snprintf(program, sizeof program, "%s/tests/moved/libexec/assay/assay-agent", test_build());
    moved_clock_use(below("clock"));
}

/* From here on time passes quickly for who sees it move (move_clock()); leases too, so that they are to be
 * long. */
static pid_t hurrier;
static inline void hurry(void) {
    hurrier = fork();
    if (hurrier != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;; (void)poll(NULL, 0, 5))
        moved_clock_advance(100);
}

static inline void hurry_end(void) {
    if (hurrier <= 0)
        return;
    kill(hurrier, SIGKILL);
    waitpid(hurrier, NULL, 0);
    hurrier = 0;
}

static inline int tear_down(void **state) {
    (void)state;
    hurry_end();
    return file_remove_tree(folder, NULL);
}

/* Runs the agent with ARGUMENTS and nothing on stdin. Its status; what it said in OUTPUT and WORDS. */
static inline int call(const char *const *arguments, char output[static 4096], char words[static 1024]) {
    struct engine engine = {.name = "", .to = -1, .from = -1, .words = -1};
    int out[2], err[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    engine.relay = fork();
    if (engine.relay == 0) {
        const char *all[8] = {program};
        for (size_t i = 0; arguments[i]; i++)
            all[1 + i] = arguments[i];
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        execv(program, (char **)all);
        _exit(126);
    }
    close(out[1]);
    close(err[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(out[0], output + length, 4095 - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    close(out[0]);
    engine.words = err[0];
    return relay_end(&engine, words);
}

/* REFUSE comes next, and nothing after it. */
static inline void refused(struct engine *engine, const char *sentence) {
    struct protocol_frame frame;
    const char *told;
    assert_true(receive(engine, &frame));
    assert_int_equal(frame.type, PROTOCOL_REFUSE);
    assert_int_equal(protocol_get_message(&frame, &told, &failure), 0);
    assert_string_equal(told, sentence);
    assert_false(receive(engine, &frame));
}

#endif
