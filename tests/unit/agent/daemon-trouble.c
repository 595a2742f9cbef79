/* The daemon where little is granted: commands that it may not signal, names that others hold, descriptors
 * that run out, kernels that refuse. */
#include "engine/agent/daemon/control-socket.h"
#include "engine/foundation/text.h"
#include "tests/unit/agent/engine.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

TEST_EACH(set_up, tear_down)

enum { NOBODY = 65534 };

static void become_nobody(void) {
    if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        _exit(125);
}

static void say_hello_and_take(struct engine *self) {
    assert_true(read_line(self));
    say_hello(self, self->session);
    take_hello(self);
}

/* ---- a command that is not ours to signal */

static const char *const stubborn_argument = "become-root-and-wait";

/* What the set-user-id copy of this program does. */
static int wait_as_root(void) {
    char pid[32];
    if (setresuid(0, 0, 0) < 0)
        return 77;
    int length = snprintf(pid, sizeof pid, "%ld", (long)getpid());
    if (write(1, pid, (size_t)length) != length)
        return 1;
    for (;;)
        pause();
}

/* A command of another user ends neither by the time limit nor when the agent leaves; both go on without it.
 */
TEST(a_command_of_another_user_is_given_up) {
    move_clock();
    test_need_root();
    struct protocol_exited exited;
    copy_program();
    assert_int_equal(mkdir(below("run"), 0700), 0);
    assert_int_equal(chown(below("run"), NOBODY, NOBODY), 0);
    copy_file("/proc/self/exe", below("stubborn"), 04755);
    start_relay(&engine, "--attach", (const char *const[]){"--directory", below("run"), NULL}, become_nobody);
    say_hello_and_take(&engine);
    set_lease(&engine, 1000000000);
    exchange(&engine);
    const char *arguments[] = {below("stubborn"), stubborn_argument};
    struct protocol_run message = {.command = engine.next++,
                                   .folder = ".",
                                   .grace_ms = 100,
                                   .timeout_ms = 300,
                                   .arguments = arguments,
                                   .argument_count = 2};
    begin(&engine, PROTOCOL_RUN);
    protocol_put_message(&writer, &message);
    end(&engine);
    expect(&engine, PROTOCOL_STARTED);
    do
        assert_true(receive(&engine));
    while (frame.type == PROTOCOL_ACK);
    if (frame.type == PROTOCOL_EXITED) {
        leave(&engine);
        test_skip("'%s' does not become root: set-user-id programs are not honoured there",
                  below("stubborn"));
    }
    assert_int_equal(frame.type, PROTOCOL_OUTPUT);
    pid_t stubborn = printed_pid();
    hurry();
    expect(&engine, PROTOCOL_EXITED);
    assert_int_equal(protocol_get_message(&frame, &exited, &failure), 0);
    assert_int_equal(exited.flags, PROTOCOL_EXIT_ABANDONED | PROTOCOL_EXIT_TIMED_OUT);
    assert_int_equal(exited.code, 255);
    assert_true(is_alive(stubborn));
    leave(&engine);
    assert_true(is_alive(stubborn));
    kill(stubborn, SIGKILL);
}

/* ---- a name of ours that somebody else has */

/* Listens by the name that root's session NAME has, and fills the queue of those who would come in. */
static _Noreturn void squat(const char *name, int ready) {
    become_nobody();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int listener = socket_named(name, 0, bind);
    if (listener < 0 || listen(listener, 0) < 0)
        _exit(2);
    while (socket_named(name, SOCK_NONBLOCK, connect) >= 0)
        continue;
    if (write(ready, "r", 1) == 1)
        pause();
    _exit(3);
}

TEST(a_door_that_nobody_opens_is_not_waited_at) {
    move_clock();
    test_need_root();
    char byte;
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t squatter = fork();
    if (squatter == 0)
        squat(engine.name, ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    hurry();
    assert_int_equal(call((const char *const[]){"--list", NULL}), 0);
    const char *line = strstr(output, engine.name);
    assert_non_null(line);
    assert_memory_equal(line + 16, "\tsilent\t0\t0\t0\t0\t", 16);
    assert_int_equal(call((const char *const[]){"--end", engine.name, NULL}), 1);
    assert_non_null(strstr(words, "does not answer"));
    start_relay(&engine, "--resume", NULL, NULL);
    assert_false(read_line(&engine));
    assert_int_equal(relay_end(&engine), 1);
    assert_string_equal(words, "assay-agent: the session's socket does not answer\n");
    kill(squatter, SIGKILL);
    waitpid(squatter, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

/* ---- the end of one and the beginning of the next */

/* The guardian of a worker that was killed takes a while; it must not take the next one's directory. */
TEST(the_next_agent_waits_for_the_end_of_the_last) {
    struct engine next;
    struct protocol_exited exited;
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    run_shell(&engine, "setsid sh -c \"trap '' TERM; echo ready; while :; do sleep 0.1; done\"");
    expect(&engine, PROTOCOL_OUTPUT);
    engine_init(&next);
    next.session = engine.session;
    memcpy(next.name, engine.name, sizeof next.name);
    kill(engine.agent, SIGKILL);
    attach(&next, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    assert_int_equal(relay_end(&engine), 1); /* now all of it is gone */
    run_to_end(&next, "echo here >file");
    assert_int_equal(protocol_get_message(&frame, &exited, &failure), 0);
    assert_int_equal(exited.code, 0);
    assert_true(file_exists(below("run/file")));
    leave(&next);
    engine_clear(&next);
}

/* ---- the root */

static void enter_folder(void) {
    if (chdir(folder) < 0)
        _exit(125);
}

TEST(a_relative_root_is_that_of_who_gave_it) {
    assert_int_equal(mkdir(below("root"), 0700), 0);
    start_relay(&engine, "--attach", (const char *const[]){"--directory", "run", "--root", "root", NULL},
                enter_folder);
    say_hello_and_take(&engine);
    leave(&engine);
}

/* ---- a kernel that refuses */

/* As the seccomp filters of containers do with calls that are younger than they. */
static void refuse_epoll_pwait2(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 441 /* on every machine */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) < 0)
        _exit(125);
}

TEST(a_filter_that_does_not_know_a_call_is_no_end) {
    start_relay(&engine, "--attach", (const char *const[]){"--directory", below("run"), NULL},
                refuse_epoll_pwait2);
    say_hello_and_take(&engine);
    run_to_end(&engine, "sleep 0.1");
    leave(&engine);
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], stubborn_argument) == 0)
        return wait_as_root();
    return test_run();
}
