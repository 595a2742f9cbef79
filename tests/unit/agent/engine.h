/* For the tests of the daemon: an engine's half of a session, in raw frames, and the relay of its link. Each
 * test has a fresh folder. */
#ifndef ASSAY_TESTS_AGENT_ENGINE_H
#define ASSAY_TESTS_AGENT_ENGINE_H

#include "engine/agent/wire/mailbox.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "tests/simulation/moved-clock.h"
#include "tests/test.h"
#include "tests/wait.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char program[4096];
static const char *folder;

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
static struct engine engine;           /* that of the test; set_up() makes it */
static struct protocol_frame frame;    /* what has come last */
static char output[4096], words[1024]; /* of the last program */

static inline void engine_init(struct engine *self) {
    memset(self, 0, sizeof *self);
    assert_int_equal(getrandom(&self->session, sizeof self->session, 0), sizeof self->session);
    snprintf(self->name, sizeof self->name, "%016llx", (unsigned long long)self->session);
    inbox_init(&self->inbox);
    outbox_init(&self->outbox, &self->inbox, 64 << 20);
    outbox_restart(&self->outbox);
    self->to = self->from = self->words = -1;
    self->next = 1;
}

static inline void close_stream(struct engine *self) {
    if (self->to >= 0)
        close(self->to);
    if (self->from >= 0)
        close(self->from);
    self->to = self->from = -1;
}

/* The exit status of the relay; what it said on stderr in `words`. */
static inline int relay_end(struct engine *self) {
    size_t length = 0;
    struct pollfd wait = {.fd = self->words, .events = POLLIN};
    ssize_t got;
    do {
        if (poll(&wait, 1, WAIT_LIMIT_MS) != 1) {
            kill(self->relay, SIGKILL);
            break;
        }
        got = read(self->words, words + length, 1023 - length);
        length += got > 0 ? (size_t)got : 0;
    } while (got > 0 && length < 1023);
    words[length] = '\0';
    close(self->words);
    self->words = -1;
    int status = 0;
    assert_int_equal(waitpid(self->relay, &status, 0), self->relay);
    self->relay = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void engine_clear(struct engine *self) {
    close_stream(self);
    if (self->relay > 0)
        relay_end(self);
    inbox_clear(&self->inbox);
    outbox_clear(&self->outbox);
}

/* Starts the agent with ARGUMENTS, its stdin, stdout and stderr ours; BEFORE is called in its process. */
static inline void start(struct engine *self, const char *const *arguments, void (*before)(void)) {
    int in[2], out[2], err[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    self->relay = fork();
    if (self->relay == 0) {
        const char *all[16] = {program};
        for (size_t i = 0; arguments[i]; i++)
            all[1 + i] = arguments[i];
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        if (before)
            before();
        execv(program, (char **)all);
        _exit(126);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    self->to = in[1];
    self->from = out[0];
    self->words = err[0];
}

/* Runs the relay with MODE and up to eight more ARGUMENTS. */
static inline void start_relay(struct engine *self, const char *mode, const char *const *arguments,
                               void (*before)(void)) {
    const char *all[16] = {mode, self->name};
    for (size_t i = 0; arguments && arguments[i]; i++)
        all[2 + i] = arguments[i];
    start(self, all, before);
}

/* The line that comes before all frames; false when the stream ends without it. */
static inline bool read_line(struct engine *self) {
    char line[64], expected[64];
    size_t length = 0;
    int size = snprintf(expected, sizeof expected, "\nASSAY-AGENT ATTACHED %s\n", self->name);
    while (length < (size_t)size) {
        struct pollfd wait = {.fd = self->from, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, WAIT_LIMIT_MS), 1);
        ssize_t got = read(self->from, line + length, (size_t)size - length);
        if (got <= 0)
            return false;
        length += (size_t)got;
    }
    assert_memory_equal(line, expected, (size_t)size);
    return true;
}

static inline void flush(struct engine *self) {
    size_t length;
    const char *bytes;
    while (self->to >= 0 && (bytes = outbox_unsent(&self->outbox, &length))) {
        ssize_t sent = write(self->to, bytes, length);
        if (sent <= 0)
            return; /* it has gone; reading will tell */
        outbox_sent(&self->outbox, (size_t)sent);
    }
}

static inline void begin(struct engine *self, enum protocol_type type) {
    outbox_begin(&self->outbox, &writer, type);
}

static inline void end(struct engine *self) {
    assert_int_equal(outbox_end(&self->outbox, &writer), 0);
    flush(self);
}

static inline void say_hello(struct engine *self, uint64_t session) {
    begin(self, PROTOCOL_HELLO);
    protocol_put_message(&writer, &(struct protocol_hello){.version = PROTOCOL_VERSION,
                                                           .session = session,
                                                           .payload_limit = PROTOCOL_PAYLOAD_LIMIT,
                                                           .program = "test",
                                                           .host = "here"});
    end(self);
}

/* The next frame, in `frame`; false at the end of the stream. */
static inline bool receive(struct engine *self) {
    for (;;) {
        int r = inbox_next(&self->inbox, &frame, &failure);
        if (r < 0)
            fail_msg("%s", failure.text);
        if (r > 0)
            return true;
        struct pollfd wait = {.fd = self->from, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, WAIT_LIMIT_MS), 1);
        char *space;
        size_t size;
        assert_int_equal(inbox_reserve(&self->inbox, &space, &size), 0);
        ssize_t got = read(self->from, space, size);
        if (got <= 0)
            return false;
        inbox_fill(&self->inbox, (size_t)got);
    }
}

static inline void take_hello(struct engine *self) {
    struct protocol_hello hello;
    assert_true(receive(self));
    if (frame.type == PROTOCOL_REFUSE)
        fail_msg("refused: %s", frame.payload + 4);
    assert_int_equal(frame.type, PROTOCOL_HELLO);
    assert_int_equal(protocol_get_message(&frame, &hello, &failure), 0);
    assert_int_equal(hello.session, self->session);
    self->agent = (pid_t)hello.pid;
    assert_int_equal(outbox_resume(&self->outbox, frame.acknowledged, &failure), 0);
    flush(self);
}

static inline void attach(struct engine *self, const char *const *arguments) {
    start_relay(self, "--attach", arguments, NULL);
    assert_true(read_line(self));
    say_hello(self, self->session);
    take_hello(self);
}

static inline void break_stream(struct engine *self) {
    close_stream(self);
    inbox_restart(&self->inbox);
    outbox_restart(&self->outbox);
}

static inline void resume(struct engine *self) {
    start_relay(self, "--resume", NULL, NULL);
    assert_true(read_line(self));
    say_hello(self, self->session);
    take_hello(self);
}

/* A frame that is more than bookkeeping. */
static inline void expect(struct engine *self, enum protocol_type type) {
    do {
        if (!receive(self))
            fail_msg("the stream ended where %s was expected", protocol_type_name(type));
        assert_int_equal(outbox_acknowledge(&self->outbox, frame.acknowledged, &failure), 0);
    } while (frame.type == PROTOCOL_ACK);
    if (frame.type != type)
        fail_msg("%s came where %s was expected", protocol_type_name(frame.type), protocol_type_name(type));
}

static inline void leave(struct engine *self) {
    begin(self, PROTOCOL_LEAVE);
    end(self);
    while (receive(self))
        continue;
    assert_int_equal(relay_end(self), 0);
    assert_string_equal(words, "");
}

static inline uint32_t run(struct engine *self, const char *const *arguments, uint8_t input) {
    uint32_t count = 0;
    while (arguments[count])
        count++;
    struct protocol_run message = {.command = self->next++,
                                   .input = input,
                                   .folder = ".",
                                   .arguments = (const char **)arguments,
                                   .argument_count = count};
    begin(self, PROTOCOL_RUN);
    protocol_put_message(&writer, &message);
    end(self);
    return message.command;
}

/* Until it has started. */
static inline void run_shell(struct engine *self, const char *script) {
    run(self, (const char *const[]){"/bin/sh", "-c", script, NULL}, PROTOCOL_MODE_NULL);
    expect(self, PROTOCOL_STARTED);
}

/* Its exit status. It prints nothing. */
static inline uint32_t run_to_end(struct engine *self, const char *script) {
    struct protocol_exited exited;
    run_shell(self, script);
    expect(self, PROTOCOL_EXITED);
    assert_int_equal(protocol_get_message(&frame, &exited, &failure), 0);
    return exited.code;
}

/* A number that a program has printed, in an OUTPUT frame. */
static inline pid_t printed_pid(void) {
    struct protocol_data data;
    assert_int_equal(protocol_get_message(&frame, &data, &failure), 0);
    char digits[32] = "";
    assert_true(data.length < sizeof digits);
    memcpy(digits, data.bytes, data.length);
    pid_t pid = (pid_t)strtol(digits, NULL, 10);
    assert_true(pid > 1);
    return pid;
}

/* The process id that SCRIPT prints first. */
static inline pid_t run_and_print_pid(struct engine *self, const char *script) {
    run_shell(self, script);
    expect(self, PROTOCOL_OUTPUT);
    return printed_pid();
}

/* Something is asked and answered: what was sent before has been received. */
static inline void exchange(struct engine *self) {
    begin(self, PROTOCOL_CLOCK);
    protocol_put_u32(&writer, self->next++);
    end(self);
    expect(self, PROTOCOL_CLOCK_REPLY);
}

static inline void set_lease(struct engine *self, uint64_t ms) {
    begin(self, PROTOCOL_LEASE);
    protocol_put_u64(&writer, ms);
    end(self);
}

/* ---- the node */

/* The number after NAME in /proc/PID/status. */
static inline long status_of(pid_t pid, const char *name) {
    const char *at = strstr(test_read(test_formatted("/proc/%ld/status", (long)pid), NULL), name);
    assert_non_null(at);
    return strtol(at + strlen(name), NULL, 10);
}

static inline bool is_alive(pid_t pid) {
    return kill(pid, 0) == 0;
}

static inline void wait_until_gone(pid_t pid) {
    wait_until(NULL, !is_alive(pid), "process %ld is there", (long)pid);
}

/* A socket with FLAGS, and BIND_OR_CONNECT done to the name that root's session NAME has. */
static inline int socket_named(const char *name, int flags,
                               int (*bind_or_connect)(int, const struct sockaddr *, socklen_t)) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "assay-agent-0-%s", name);
    int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return bind_or_connect(descriptor, (struct sockaddr *)&address, size) < 0 ? -1 : descriptor;
}

static inline const char *below(const char *name) {
    return test_formatted("%s/%s", folder, name);
}

static inline void find_program(void) {
    snprintf(program, sizeof program, "%s", test_agent());
    signal(SIGPIPE, SIG_IGN);
    umask(022);
}

static inline int set_up(void **state) {
    (void)state;
    find_program();
    folder = test_own_folder();
    engine_init(&engine);
    return 0;
}

static inline void copy_file(const char *from, const char *to, mode_t mode) {
    size_t length;
    const char *bytes = test_read(from, &length);
    assert_int_equal(file_replace(to, bytes, length, 0700, &failure), 0);
    assert_int_equal(chmod(to, mode), 0);
}

/* From here on the agent is a copy in `folder`, which any user may enter and run: the build may be in a
 * folder of root's, or below one that the test mounts over. */
static inline void copy_program(void) {
    assert_int_equal(chmod(folder, 0755), 0);
    copy_file(program, below("agent"), 0755);
    snprintf(program, sizeof program, "%s", below("agent"));
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
    engine_clear(&engine);
    return 0;
}

/* Runs the agent with ARGUMENTS and nothing on stdin. Its status; what it said in `output` and `words`. */
static inline int call(const char *const *arguments) {
    struct engine caller = {.name = ""};
    start(&caller, arguments, NULL);
    close(caller.to);
    size_t length = 0;
    ssize_t got;
    while ((got = read(caller.from, output + length, sizeof output - 1 - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    char rest[4096]; /* such as folders that agents of others have left in /tmp: they would find nobody to
                        write to */
    while ((got = read(caller.from, rest, sizeof rest)) > 0)
        continue;
    close(caller.from);
    return relay_end(&caller);
}

/* REFUSE comes next, and nothing after it. */
static inline void refused(struct engine *self, const char *sentence) {
    const char *told;
    assert_true(receive(self));
    assert_int_equal(frame.type, PROTOCOL_REFUSE);
    assert_int_equal(protocol_get_message(&frame, &told, &failure), 0);
    assert_string_equal(told, sentence);
    assert_false(receive(self));
}

#endif
