/* The daemon where little is granted: commands that it may not signal, names that others hold, descriptors
 * that run out, kernels that refuse. */
#include "engine/agent/control.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/text.h"
#include "tests/unit/agent/engine.h"

#include <grp.h>

enum { NOBODY = 65534 };

static void become_nobody(void) {
    if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        _exit(125);
}

static void say_hello_and_take(struct engine *engine) {
    assert_true(read_line(engine));
    say_hello(engine, engine->session);
    take_hello(engine);
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

static void copy_file(const char *from, const char *to, mode_t mode) {
    struct text bytes;
    text_init(&bytes, 256 << 20);
    assert_int_equal(file_read(from, &bytes, &failure), 0);
    assert_int_equal(file_replace(to, bytes.bytes, bytes.length, 0700, &failure), 0);
    assert_int_equal(chmod(to, mode), 0);
    text_clear(&bytes);
}

/* A command of another user ends neither by the time limit nor when the agent leaves; both go on without it.
 */
static void a_command_of_another_user_is_given_up(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip();
    struct engine engine;
    struct protocol_frame frame;
    struct protocol_exited exited;
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(mkdir(below("run"), 0700), 0);
    assert_int_equal(chown(below("run"), NOBODY, NOBODY), 0);
    copy_file("/proc/self/exe", below("stubborn"), 04755);
    engine_init(&engine);
    start_relay(&engine, "--attach", (const char *const[]){"--directory", below("run"), NULL}, become_nobody);
    say_hello_and_take(&engine);
    const char *arguments[] = {below("stubborn"), stubborn_argument};
    struct protocol_run message = {.command = engine.next++,
                                   .folder = ".",
                                   .grace_ms = 100,
                                   .timeout_ms = 300,
                                   .arguments = arguments,
                                   .argument_count = 2};
    begin(&engine, PROTOCOL_RUN);
    protocol_put_run(&writer, &message);
    end(&engine);
    expect(&engine, PROTOCOL_STARTED, &frame);
    do
        assert_true(receive(&engine, &frame));
    while (frame.type == PROTOCOL_ACK);
    if (frame.type ==
        PROTOCOL_EXITED) { /* it could not become root: there are no set-user-id programs here */
        leave(&engine);
        engine_clear(&engine);
        skip();
    }
    assert_int_equal(frame.type, PROTOCOL_OUTPUT);
    pid_t stubborn = printed_pid(&frame);
    expect(&engine, PROTOCOL_EXITED, &frame);
    assert_int_equal(protocol_get_exited(&frame, &exited, &failure), 0);
    assert_int_equal(exited.flags, PROTOCOL_EXIT_ABANDONED | PROTOCOL_EXIT_TIMED_OUT);
    assert_int_equal(exited.code, 255);
    assert_true(is_alive(stubborn));
    leave(&engine);
    assert_true(is_alive(stubborn));
    kill(stubborn, SIGKILL);
    engine_clear(&engine);
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], stubborn_argument) == 0)
        return wait_as_root();
    find_program();
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(a_command_of_another_user_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
