/* The agent as a daemon, as a program: how it comes to be, who may speak with it, and how it ends. */
#include "engine/agent/daemon/control-socket.h"
#include "engine/foundation/clock.h"
#include "tests/unit/agent/engine.h"

#include <sys/mount.h>

TEST_EACH(set_up, tear_down)

/* ---- life */

TEST(it_comes_and_goes) {
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    assert_true(file_is_folder(below("run")));
    assert_int_equal(run_to_end(&engine, "echo here >file; exit 3"), 3);
    assert_true(file_exists(below("run/file")));
    /* A process that left its group and ignores what is polite is gone, too, when the relay has ended. */
    pid_t stray = run_and_print_pid(&engine, "trap '' TERM; setsid sleep 1000 & echo $!; sleep 1000");
    pid_t agent = engine.agent;
    assert_true(stray > 0 && is_alive(stray) && is_alive(agent));
    leave(&engine);
    assert_false(is_alive(stray));
    assert_false(is_alive(agent));
    assert_false(file_exists(below("run")));
}

TEST(it_outlives_its_link) {
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    run_shell(&engine, "until [ -e broken ]; do sleep 0.01; done; echo done; touch ended");
    pid_t agent = engine.agent;
    break_stream(&engine);
    assert_int_equal(relay_end(&engine), 0);
    assert_string_equal(words, "");
    close(open(below("run/broken"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    wait_until(NULL, file_exists(below("run/ended")), "run/ended");
    assert_true(is_alive(agent));
    resume(&engine);
    assert_int_equal(engine.agent, agent);
    expect(&engine, PROTOCOL_OUTPUT);
    assert_memory_equal(frame.payload + 5, "done\n", 5);
    expect(&engine, PROTOCOL_EXITED);
    /* To attach is as good, when it is there. */
    break_stream(&engine);
    assert_int_equal(relay_end(&engine), 0);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    assert_int_equal(engine.agent, agent);
    leave(&engine);
}

TEST(a_killed_relay_ends_the_link_only) {
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    kill(engine.relay, SIGHUP); /* is nothing to it */
    run_shell(&engine, "echo one");
    expect(&engine, PROTOCOL_OUTPUT);
    expect(&engine, PROTOCOL_EXITED);
    kill(engine.relay, SIGKILL);
    assert_false(receive(&engine)); /* the daemon has let go of the stream */
    assert_int_equal(relay_end(&engine), 128 + SIGKILL);
    break_stream(&engine);
    resume(&engine);
    leave(&engine);
}

TEST(a_killed_worker_is_told) {
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    pid_t stray = run_and_print_pid(&engine, "setsid sleep 1000 & echo $!; sleep 1000");
    kill(engine.agent, SIGKILL);
    assert_false(receive(&engine));
    assert_int_equal(relay_end(&engine), 1);
    assert_string_equal(words, "assay-agent: the agent died\n");
    assert_false(is_alive(stray));
    assert_false(file_exists(below("run")));
    break_stream(&engine);
    start_relay(&engine, "--resume", NULL, NULL);
    assert_false(read_line(&engine));
    assert_int_equal(relay_end(&engine), 69);
}

TEST(an_unknown_session_is_unavailable) {
    char expected[128];
    start_relay(&engine, "--resume", NULL, NULL);
    assert_false(read_line(&engine));
    assert_int_equal(relay_end(&engine), 69);
    snprintf(expected, sizeof expected, "assay-agent: there is no agent of session %s on this node\n",
             engine.name);
    assert_string_equal(words, expected);
}

TEST(sessions_do_not_meet) {
    struct engine one, two;
    engine_init(&one);
    engine_init(&two);
    attach(&one, (const char *const[]){"--folder", "one", "--workspace", folder, "--remove-directory", NULL});
    attach(&two, (const char *const[]){"--folder", "two", "--workspace", folder, "--remove-directory", NULL});
    assert_int_not_equal(one.agent, two.agent);
    run_shell(&one, "echo 1 >file; sleep 1000");
    run_to_end(&two, "echo 2 >file");
    leave(&one);
    assert_false(file_exists(below("one")));
    assert_true(file_exists(below("two/file")));
    run_to_end(&two, "rm file");
    leave(&two);
    assert_false(file_exists(below("two")));
    engine_clear(&one);
    engine_clear(&two);
}

TEST(a_new_link_replaces_a_stale_one) {
    struct engine stale;
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    /* The stream stays open at both ends, and nothing moves: so it looks when a cable is pulled. */
    stale = engine;
    inbox_restart(&engine.inbox);
    outbox_restart(&engine.outbox);
    resume(&engine);
    assert_int_equal(relay_end(&stale), 0);
    assert_string_equal(words, "");
    char byte;
    assert_int_equal(read(stale.from, &byte, 1), 0);
    close_stream(&stale);
    run_to_end(&engine, "true");
    leave(&engine);
}

/* ---- what it sends */

/* sshd makes a packet of what it finds in the pipe, and libssh's buffers grow to the largest packet. */
TEST(its_pipe_is_narrow_until_much_waits) {
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    assert_int_equal(fcntl(engine.from, F_GETPIPE_SZ), 4 << 10);
    run_shell(&engine, "head -c 3000000 /dev/zero");
    wait_until(NULL, fcntl(engine.from, F_GETPIPE_SZ) == 64 << 10, "the pipe holds %d bytes",
               fcntl(engine.from, F_GETPIPE_SZ));
    do
        assert_true(receive(&engine));
    while (frame.type != PROTOCOL_EXITED);
    leave(&engine);
}

/* ---- at rest */

static long switches_of(const pid_t processes[3]) {
    long sum = 0;
    for (int i = 0; i < 3; i++)
        sum += status_of(processes[i], "\nvoluntary_ctxt_switches:");
    return sum;
}

/* Nothing wakes, and there is little of it, also after it has had much to do. */
TEST(at_rest_it_is_small_and_quiet) {
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    set_lease(&engine, 300000);
    run_shell(&engine, "head -c 30000000 /dev/zero");
    do {
        assert_true(receive(&engine));
        if (inbox_owes(&engine.inbox)) {
            assert_int_equal(outbox_put_acknowledgement(&engine.outbox), 0);
            flush(&engine);
        }
    } while (frame.type != PROTOCOL_EXITED);
    assert_int_equal(outbox_put_acknowledgement(&engine.outbox), 0);
    flush(&engine);
    const pid_t all[3] = {engine.agent, (pid_t)status_of(engine.agent, "PPid:"), engine.relay};
    /* On a busy machine it takes its time to come to rest; what wakes now and then never does. */
    long before = -1, after = switches_of(all);
    for (int i = 0; i < WAIT_LIMIT_MS / 1500 && before != after; i++) {
        before = after;
        clock_sleep_ns(1500 * EVENT_MILLISECOND);
        after = switches_of(all);
    }
    assert_int_equal(before, after);
    long own = 0; /* KiB; how much of its file is in memory too is the kernel's choice */
    for (int i = 0; i < 3; i++)
        own += status_of(all[i], "RssAnon:");
#ifndef __SANITIZE_ADDRESS__
    assert_in_range(own, 1, 512);
#endif
    leave(&engine);
}

/* ---- the lease */

/* The agent gives no sign for 30 s, its engine none for longer: see tests/simulation for what happens then in
 * all the ways that a link can fail. Here it is that all of it goes, the guardian's part too. */
static void the_lease_runs_out(bool linked) {
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    set_lease(&engine, 30000);
    pid_t command = run_and_print_pid(&engine, "trap '' TERM; echo $$; while :; do sleep 1; done"),
          agent = engine.agent;
    for (int i = 0; i < 4; i++) { /* as long as it is heard, the agent stays */
        moved_clock_advance(20000);
        exchange(&engine);
    }
    assert_true(is_alive(agent) && is_alive(command));
    if (!linked) {
        break_stream(&engine);
        assert_int_equal(relay_end(&engine), 0);
    }
    moved_clock_advance(30000);
    const char *told;
    if (linked) { /* a link that is up and silent is no better than none */
        assert_true(receive(&engine));
        assert_int_equal(protocol_get_message(&frame, &told, &failure), 0);
        assert_non_null(strstr(told, "the lease has run out: the engine sent nothing for 3"));
        assert_false(receive(&engine));
    }
    hurry();
    wait_until_gone(agent);
    wait_until_gone(command);
    if (linked)
        assert_int_equal(relay_end(&engine), 0);
    wait_until(NULL, !file_exists(below("run")), "run");
}

TEST(the_lease_of_a_silent_engine_runs_out) {
    move_clock();
    the_lease_runs_out(true);
}

TEST(the_lease_runs_out_alone) {
    move_clock();
    the_lease_runs_out(false);
}

/* ---- time limits */

static bool has_ended(pid_t pid) { /* and nobody has waited for it */
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    (void)!read(file, line, sizeof line - 1);
    close(file);
    return strstr(line, ") Z ");
}

/* The agent does not run, as on a node that is busy, while the command ends and its time limit passes. */
TEST(a_command_that_ended_in_time_is_not_late_when_the_agent_is) {
    move_clock();
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    const char *script = "echo $$; until [ -e go ]; do sleep 0.01; done; exit 3";
    struct protocol_run message = {.command = engine.next++,
                                   .folder = ".",
                                   .arguments = (const char *[]){"/bin/sh", "-c", script},
                                   .argument_count = 3,
                                   .timeout_ms = 3600000};
    begin(&engine, PROTOCOL_RUN);
    protocol_put_message(&writer, &message);
    end(&engine);
    expect(&engine, PROTOCOL_STARTED);
    expect(&engine, PROTOCOL_OUTPUT);
    pid_t command = printed_pid();
    kill(engine.agent, SIGSTOP);
    close(open(below("run/go"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    wait_until(NULL, has_ended(command), "process %ld has not ended", (long)command);
    moved_clock_advance(3600000);
    kill(engine.agent, SIGCONT);
    struct protocol_exited exited;
    expect(&engine, PROTOCOL_EXITED);
    assert_int_equal(protocol_get_message(&frame, &exited, &failure), 0);
    assert_int_equal(exited.code, 3);
    assert_int_equal(exited.flags & PROTOCOL_EXIT_TIMED_OUT, 0);
    leave(&engine);
}

/* ---- who may */

TEST(other_users_are_not_served) {
    test_need_root();
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    pid_t other = fork();
    if (other == 0) {
        struct control_message message;
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(2);
        /* Its own sessions are others. */
        if (control_socket_connect(engine.session, 0, NULL) != -ECONNREFUSED)
            _exit(3);
        /* By our name, which nothing keeps it from, it is hung up on without a word. */
        int socket = socket_named(engine.name, 0, connect);
        if (socket < 0)
            _exit(4);
        (void)control_socket_send(socket, CONTROL_END, NULL, NULL, 0);
        _exit(control_socket_receive(socket, &message) <= 0 ? 0 : 5);
    }
    int status;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    run_to_end(&engine, "true"); /* and it is still there */
    leave(&engine);
}

/* Somebody else has our session's name: no descriptor of ours goes there. */
TEST(a_squatter_gets_nothing) {
    test_need_root();
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t squatter = fork();
    if (squatter == 0) {
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int socket = socket_named(engine.name, 0, bind);
        if (socket < 0 || listen(socket, 4) < 0)
            _exit(2);
        (void)!write(ready[1], "r", 1);
        pause();
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    start_relay(&engine, "--attach", (const char *const[]){"--directory", below("run"), NULL}, NULL);
    assert_false(read_line(&engine));
    assert_int_equal(relay_end(&engine), 1);
    assert_string_equal(words, "assay-agent: the session's socket belongs to another user\n");
    assert_false(file_exists(below("run")));
    /* Nor is it listed as one of ours. */
    assert_int_equal(call((const char *const[]){"--list", NULL}), 0);
    assert_null(strstr(output, engine.name));
    kill(squatter, SIGKILL);
    waitpid(squatter, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

/* ---- from the outside */

/* The line of ENGINE's daemon, taken apart; false if there is none. */
static bool find_line(const struct engine *self, char *fields[9]) {
    assert_int_equal(call((const char *const[]){"--list", NULL}), 0);
    assert_string_equal(words, "");
    char *rest = output, *line;
    while ((line = strsep(&rest, "\n")))
        if (strncmp(line, self->name, 16) == 0) {
            for (int i = 0; i < 9; i++)
                assert_non_null(fields[i] = strsep(&line, "\t"));
            assert_null(line);
            return true;
        }
    return false;
}

TEST(daemons_are_listed) {
    char *fields[9], pid[32];
    time_t begun = time(NULL);
    attach(&engine, (const char *const[]){"--folder", "a b\tc", "--workspace", folder, "--label",
                                          "ada@login:42", NULL});
    set_lease(&engine, 77000);
    run_shell(&engine, "sleep 1000");
    assert_true(find_line(&engine, fields));
    snprintf(pid, sizeof pid, "%ld", (long)engine.agent);
    assert_string_equal(fields[1], "attached");
    assert_string_equal(fields[3], "77");
    assert_string_equal(fields[4], "1");
    assert_string_equal(fields[5], pid);
    assert_in_range(strtoll(fields[6], NULL, 10), begun, time(NULL));
    assert_string_equal(fields[7], below("a b?c"));
    assert_string_equal(fields[8], "ada@login:42");
    break_stream(&engine);
    relay_end(&engine);
    assert_true(find_line(&engine, fields));
    assert_string_equal(fields[1], "alone");
    /* One that is stopped is listed, without its own words, and is not waited for. */
    kill(engine.agent, SIGSTOP);
    assert_true(find_line(&engine, fields));
    assert_string_equal(fields[1], "silent");
    assert_true(strtol(fields[5], NULL, 10) > 0);
    assert_int_equal(call((const char *const[]){"--end", engine.name, NULL}), 1);
    assert_non_null(strstr(words, "does not answer"));
    kill(engine.agent, SIGCONT);
    wait_until_gone(engine.agent); /* it has heard it after all */
    assert_false(find_line(&engine, fields));
}

TEST(daemons_are_ended) {
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    pid_t stray = run_and_print_pid(&engine, "setsid sleep 1000 & echo $!; sleep 1000");
    assert_int_equal(call((const char *const[]){"--end", engine.name, NULL}), 0);
    assert_string_equal(words, "");
    assert_false(is_alive(stray));
    assert_false(is_alive(engine.agent));
    assert_false(file_exists(below("run")));
    refused(&engine, "the agent was asked on its node to leave");
    assert_int_equal(relay_end(&engine), 0);
    assert_int_equal(call((const char *const[]){"--end", engine.name, NULL}), 69);
    assert_non_null(strstr(words, "there is no agent of session"));
}

/* The directory cannot be removed: that is said where somebody waits for it. */
TEST(last_words_reach_the_relay) {
    test_need_mounts();
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    assert_int_equal(mkdir(below("run/mount"), 0700), 0);
    assert_int_equal(mount("none", below("run/mount"), "tmpfs", 0, "size=64k"), 0);
    begin(&engine, PROTOCOL_LEAVE);
    end(&engine);
    assert_false(receive(&engine));
    int status = relay_end(&engine);
    umount2(below("run/mount"), MNT_DETACH);
    assert_int_equal(status, 1);
    assert_string_equal(
        words, "assay-agent: the run directory 'run' stays: cannot remove '.': Device or resource busy\n");
}

/* ---- where it works */

static void start_fails(const char *const *arguments, void (*before)(void), const char *sentence) {
    char expected[1024];
    start_relay(&engine, "--attach", arguments, before);
    assert_false(read_line(&engine));
    assert_int_equal(relay_end(&engine), 1);
    snprintf(expected, sizeof expected, "assay-agent: %s\n", sentence);
    assert_string_equal(words, expected);
    start_relay(&engine, "--resume", NULL, NULL);
    assert_false(read_line(&engine));
    assert_int_equal(relay_end(&engine), 69);
}

static void in_a_read_only_file_system(void) {
    if (test_own_mounts(0) < 0 || mount("none", folder, "tmpfs", MS_RDONLY, "size=1m") < 0)
        _exit(125);
}

TEST(read_only_file_system_is_told) {
    char sentence[1024];
    test_need_own_mounts(0);
    snprintf(sentence, sizeof sentence, "cannot make the run directory '%s': Read-only file system",
             below("run"));
    start_fails((const char *const[]){"--directory", below("run"), NULL}, in_a_read_only_file_system,
                sentence);
}

TEST(what_is_wrong_at_the_start_is_told) {
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "cannot use the workspace '%s': No such file or directory",
             below("none"));
    start_fails((const char *const[]){"--folder", "run", "--workspace", below("none"), NULL}, NULL, sentence);
    start_fails((const char *const[]){"--directory", "/dev/null", NULL}, NULL,
                "cannot open the run directory '/dev/null': Not a directory");
    snprintf(sentence, sizeof sentence, "cannot open the run directory '%s': Not a directory", below("link"));
    assert_int_equal(symlink("/", below("link")), 0);
    start_fails((const char *const[]){"--folder", "link", "--workspace", folder, NULL}, NULL, sentence);
    test_need_root();
    assert_int_equal(mkdir(below("theirs"), 0700), 0);
    assert_int_equal(chown(below("theirs"), 65534, 65534), 0);
    snprintf(
        sentence, sizeof sentence,
        "cannot use '%1$s': '%1$s' belongs to user 65534 and has mode 0700; root uses only what root owns "
        "and no other user may write to. Change its owner or mode, or name its folder in "
        "ASSAY_TRUSTED_FOLDERS",
        below("theirs"));
    start_fails((const char *const[]){"--folder", "theirs", "--workspace", folder, NULL}, NULL, sentence);
}

static bool without_home;

static void mount_or_die(const char *source, const char *where, const char *type, unsigned long flags) {
    if (mount(source, where, type, flags, NULL) < 0)
        _exit(125);
}

/* $TMPDIR is not there, /tmp is read-only, /var/tmp runs no programs. */
static void with_little_to_choose_from(void) {
    if (test_own_mounts(0) < 0)
        _exit(125);
    mount_or_die("none", "/var/tmp", "tmpfs", MS_NOEXEC);
    mount_or_die("none", "/dev/shm", "tmpfs", without_home ? MS_RDONLY : 0);
    mount_or_die("/tmp", "/tmp", NULL, MS_BIND);
    mount_or_die(folder, folder, NULL, MS_BIND); /* stays as it is */
    mount_or_die(NULL, "/tmp", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY);
    setenv("TMPDIR", "/tmp/assay-test-none", 1);
    if (without_home)
        unsetenv("HOME");
    else
        setenv("HOME", folder, 1);
}

TEST(it_finds_a_place) {
    test_need_own_mounts(0);
    copy_program();
    char path[256], *fields[9], sentence[1024];
    start_relay(&engine, "--attach", (const char *const[]){"--remove-directory", NULL},
                with_little_to_choose_from);
    assert_true(read_line(&engine));
    say_hello(&engine, engine.session);
    take_hello(&engine);
    snprintf(path, sizeof path, "%s/.cache/assay/assay-%s", folder, engine.name);
    assert_true(find_line(&engine, fields));
    assert_string_equal(fields[7], path);
    assert_true(file_is_folder(path));
    leave(&engine);
    assert_false(file_exists(path));
    without_home = true;
    snprintf(sentence, sizeof sentence,
             "there is no folder for the run directory: "
             "cannot use the workspace '/tmp/assay-test-none': No such file or directory; "
             "cannot make the run directory '/tmp/run': Read-only file system; "
             "programs cannot be run from '/var/tmp'; "
             "cannot make the run directory '/dev/shm/run': Read-only file system");
    start_fails((const char *const[]){"--folder", "run", NULL}, with_little_to_choose_from, sentence);
}

TEST(options_are_checked) {
    static const struct {
        const char *arguments[6], *sentence;
    } wrong[] = {
        {{"--attach", "12"}, "a session has 16 hexadecimal digits, not all 0"},
        {{"--attach", "0000000000000000"}, "a session has 16 hexadecimal digits, not all 0"},
        {{"--resume", "000000000000000g"}, "a session has 16 hexadecimal digits, not all 0"},
        {{"--end", "ALL"}, "a session has 16 hexadecimal digits, not all 0"},
        {{"--list", "--resume", "0000000000000001"},
         "--attach, --serve, --resume, --list and --end exclude each other"},
        {{"--attach", "0000000000000001", "--serve", "0000000000000001"},
         "--attach, --serve, --resume, --list and --end exclude each other"},
        {{"--serve", "12"}, "a session has 16 hexadecimal digits, not all 0"},
        {{"--serve", "0000000000000001", "--folder", "a/b"}, "--folder is a name, without a slash"},
        {{"--attach", "0000000000000001", "--folder", "a/b"}, "--folder is a name, without a slash"},
        {{"--attach", "0000000000000001", "--folder", ".."}, "--folder is a name, without a slash"},
        {{"--attach", "0000000000000001", "--label", "a b"}, "a label is one word"},
        {{"--directory", "/tmp", "--leave-controls"},
         "--folder, --workspace, --leave-controls and --label go with --attach and --serve"},
        {{"--directory", "/tmp", "--label", "x"},
         "--folder, --workspace, --leave-controls and --label go with --attach and --serve"},
    };
    char expected[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(call(wrong[i].arguments), 2);
        snprintf(expected, sizeof expected, "assay-agent: %s\n", wrong[i].sentence);
        assert_string_equal(words, expected);
    }
    assert_int_equal(call((const char *const[]){"--attach", "0000000000000001", "--directory", "/tmp",
                                                "--folder", "x", NULL}),
                     2);
}
