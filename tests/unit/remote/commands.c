/* Programs on a node, through the real agent. */
#include "tests/test.h"
#include "tests/unit/remote/fixture.h"

#include <sys/resource.h>

static struct remote_result result; /* of the last one */

static void run_as(const struct remote_command_specification *specification, const char *input,
                   size_t length) {
    remote_result_clear(&result);
    assert_done(&f, agent_link_run_and_wait(f.link, specification, input, length, &result, &f.failure));
}

static void run(const char *const *arguments, const char *input) {
    run_as(&(struct remote_command_specification){.arguments = arguments}, input, input ? strlen(input) : 0);
}

#define RUN_AS(...) run_as(&(struct remote_command_specification){__VA_ARGS__}, NULL, 0)

/* What was sent before is done, and what came of it has arrived. */
static void turn_until_answered(void) {
    run(SHELL("echo answered"), NULL);
    assert_string_equal(result.output, "answered\n");
}

TEST(streams_and_status_come_back) {
    run(SHELL("cat; echo err >&2; exit 3"), "hello\n");
    assert_string_equal(result.output, "hello\n");
    assert_string_equal(result.error, "err\n");
    assert_false(result.exit.signalled);
    assert_int_equal(result.exit.code, 3);
    assert_int_equal(result.exit.output_bytes, 6);
    assert_int_equal(result.exit.error_bytes, 4);
    assert_int_equal(result.exit.input_bytes, 6);
    assert_true(result.start.pid > 0);
    assert_true(result.exit.monotonic_ns > result.start.monotonic_ns);
    assert_true(result.exit.wall_ns > result.start.wall_ns);
    assert_true(result.exit.rss_peak_bytes > 100000);
    assert_false(result.exit.left_others);
    char text[128];
    assert_string_equal(remote_exit_describe(&result.exit, text, sizeof text), "exited with status 3");

    run(SHELL("kill -SEGV $$"), NULL);
    assert_true(result.exit.signalled);
    assert_int_equal(result.exit.code, SIGSEGV);
    assert_string_equal(remote_exit_describe(&result.exit, text, sizeof text),
                        "was killed by signal 11 (Segmentation fault)");
}

TEST(without_input_stdin_is_empty) {
    run((const char *const[]){"cat", NULL}, NULL);
    assert_int_equal(result.exit.code, 0);
    assert_int_equal(result.output_length, 0);
}

TEST(credentials_of_the_engine_are_not_handed_to_programs) {
    fixture_close(&f);
    setenv("SOME_TOKEN", "beware", 1);
    setenv("aws_secret_access_key", "beware", 1);
    setenv("SSH_AUTH_SOCK", "/beware", 1);
    setenv("MYSQL_PWD", "beware", 1);
    setenv("SLURM_JWT", "beware", 1);
    setenv("XAUTHORITY", "/beware", 1);
    setenv("http_proxy", "http://me:beware@proxy", 1);
    setenv("DATABASE_URL", "postgres://me:beware@host", 1);
    setenv("MODULE_PATH", "SOME_TOKEN=kept", 1);
    fixture_open(&f, NULL);
    run((const char *const[]){"env", NULL}, NULL);
    assert_int_equal(result.exit.code, 0);
    assert_null(strstr(result.output, "beware"));
    assert_non_null(strstr(result.output, "\nMODULE_PATH=SOME_TOKEN=kept\n"));
}

/* Ranks that a command starts would take themselves for that rank, and programs would write 0,5. */
TEST(programs_are_no_rank_and_write_a_decimal_point) {
    static const char *const of_rank[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
    fixture_close(&f);
    for (size_t i = 0; i < sizeof of_rank / sizeof *of_rank; i++)
        setenv(of_rank[i], "beware", 1);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    fixture_open(&f, NULL);
    run((const char *const[]){"env", NULL}, NULL);
    assert_null(strstr(result.output, "beware"));
    assert_non_null(strstr(result.output, "\nSLURM_JOB_ID=7\n"));
    assert_true(strstr(result.output, "\nLC_ALL=C.UTF-8\n") || strstr(result.output, "\nLC_ALL=C\n"));
    for (size_t i = 0; i < sizeof of_rank / sizeof *of_rank; i++)
        unsetenv(of_rank[i]);
    unsetenv("SLURM_JOB_ID");
    unsetenv("LC_ALL");
}

static void count_started(struct remote_command *command, const struct remote_start *start, void *context) {
    ++*(unsigned *)context;
}

/* Each takes three descriptors of the agent's, which begins with the usual soft limit; programs keep that
 * one. */
TEST(descriptors_are_enough_for_many_programs) {
    enum { MANY = 500 };
    struct rlimit limit, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 3 * MANY + 100)
        test_skip("a process may have only %llu descriptors here", (unsigned long long)limit.rlim_max);
    fixture_close(&f);
    low = limit;
    low.rlim_cur = 1024;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    fixture_open(&f, NULL);
    run(SHELL("ulimit -Sn"), NULL);
    assert_string_equal(result.output, "1024\n");
    static struct remote_command *commands[MANY];
    unsigned started = 0;
    static const struct remote_command_callbacks callbacks = {.on_started = count_started};
    struct remote_command_specification specification = {.arguments = (const char *const[]){"cat", NULL},
                                                         .input = REMOTE_INPUT_STREAM};
    for (int i = 0; i < MANY; i++)
        assert_done(
            &f, remote_command_start(f.link, &specification, &callbacks, &started, &commands[i], &f.failure));
    wait_until(f.loop, started == MANY, "%u have started", started);
    for (int i = 0; i < MANY; i++)
        remote_command_free(commands[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(the_environment_is_added_to) {
    setenv("ASSAY_TEST_GONE", "1", 1);
    fixture_close(&f);
    fixture_open(&f, NULL); /* an agent that has the variable */
    const char *const environment[] = {"OMP_NUM_THREADS=4", "LATER=1", "LATER=2", "ASSAY_TEST_GONE", NULL};
    RUN_AS(.arguments = SHELL("echo $OMP_NUM_THREADS $LATER ${ASSAY_TEST_GONE-gone}"),
           .environment = environment);
    assert_string_equal(result.output, "4 2 gone\n");
    unsetenv("ASSAY_TEST_GONE");
}

TEST(the_folder_is_below_the_run_directory) {
    assert_int_equal(file_make_folders(fixture_path(&f, "a/b"), NULL), 0);
    RUN_AS(.arguments = SHELL("pwd"), .folder = "a/b");
    result.output[result.output_length - 1] = '\0';
    assert_string_equal(result.output, fixture_path(&f, "a/b"));
}

static void refused(const struct remote_command_specification *specification, int code,
                    const char *sentence) {
    memset(&f.failure, 0, sizeof f.failure);
    assert_int_equal(agent_link_run_and_wait(f.link, specification, NULL, 0, &result, &f.failure), code);
    assert_string_equal(f.failure.place, "node testnode");
    assert_int_equal(f.failure.kind, FAILURE_EXPERIMENT);
    if (!strstr(f.failure.text, sentence)) {
        print_error("got: %s\nexpected: %s\n", f.failure.text, sentence);
        fail();
    }
}

TEST(what_cannot_start_says_why) {
    refused(
        &(struct remote_command_specification){.arguments = (const char *const[]){"no-such-program", NULL}},
        -ENOENT, "cannot run 'no-such-program': No such file or directory; PATH is '");
    refused(&(struct remote_command_specification){.arguments = (const char *const[]){"./nothing", NULL}},
            -ENOENT,
            "cannot run './nothing' in folder '.': No such file or directory (or the interpreter that it "
            "names is "
            "missing)");
    assert_done(&f, agent_link_write_file_and_wait(f.link, "plain", "x", 1, 0644, &f.failure));
    refused(&(struct remote_command_specification){.arguments = (const char *const[]){"./plain", NULL}},
            -EACCES, "cannot run './plain' in folder '.': Permission denied");
    refused(&(struct remote_command_specification){.arguments = SHELL("true"), .folder = "missing"}, -ENOENT,
            "cannot run 'sh': cannot read 'missing': No such file or directory");
    refused(&(struct remote_command_specification){.arguments = SHELL("true"), .folder = "../.."}, -EXDEV,
            "cannot run 'sh': '../..' leads out of the run directory; expected a path below it");
    refused(&(struct remote_command_specification){.arguments = SHELL("true"), .folder = "/tmp"}, -EXDEV,
            "cannot run 'sh': '/tmp' is absolute; expected a path below the run directory");
    refused(
        &(struct remote_command_specification){
            .arguments = SHELL("true"), .pus = (unsigned[]){0, 8191}, .pu_count = 2},
        -EINVAL, "cannot run 'sh': cannot pin it to PUs 0,8191: Invalid argument; the agent may use PUs 0");
    refused(&(struct remote_command_specification){.arguments = (const char *const[]){NULL}}, -EINVAL,
            "a command has no program");
    refused(&(struct remote_command_specification){.arguments = SHELL("true"),
                                                   .pus = (unsigned[]){8192},
                                                   .pu_count = 1},
            -EINVAL, "there is no PU 8192");
    refused(&(struct remote_command_specification){.arguments = SHELL("true"),
                                                   .environment = (const char *const[]){"=x", NULL}},
            -EINVAL, "an environment variable has no name: '=x'");
    static char long_argument[300 << 10];
    memset(long_argument, 'a', sizeof long_argument - 1);
    refused(&(struct remote_command_specification){.arguments =
                                                       (const char *const[]){"echo", long_argument, NULL}},
            -E2BIG, "the arguments of 'echo' have more than 262144 bytes");
    turn_until_answered(); /* none of it has harmed the link */
}

/* What is wrong with the command from what is wrong with the node: by the kind of the failure. */
TEST(a_dead_link_is_told_from_a_command_that_cannot_start) {
    struct remote_command_specification good = {.arguments = SHELL("kill -KILL $PPID; sleep 62")};
    struct remote_command_specification bad = {.arguments = (const char *const[]){"./nothing", NULL}};
    assert_int_equal(agent_link_run_and_wait(f.link, &bad, NULL, 0, &result, &f.failure), -ENOENT);
    assert_int_equal(f.failure.kind, FAILURE_EXPERIMENT);
    /* The link is as it was, until a command kills the agent. */
    assert_int_equal(agent_link_run_and_wait(f.link, &good, NULL, 0, &result, &f.failure), -ECONNRESET);
    assert_int_equal(f.failure.kind, FAILURE_SYSTEM);
    assert_int_equal(agent_link_run_and_wait(f.link, &bad, NULL, 0, &result, &f.failure), -ENOTCONN);
    assert_int_equal(f.failure.kind, FAILURE_SYSTEM);
}

TEST(a_program_is_pinned) {
    struct node_facts *facts = NULL;
    assert_done(&f, agent_link_inspect_and_wait(f.link, &facts, &f.failure));
    for (size_t i = 0; i < facts->pu_count; i++) {
        if (!facts->pus[i].allowed)
            continue;
        unsigned pu = facts->pus[i].index;
        char expected[64];
        snprintf(expected, sizeof expected, "Cpus_allowed_list:\t%u\n", pu);
        RUN_AS(.arguments = SHELL("grep Cpus_allowed_list /proc/self/status"), .pus = &pu, .pu_count = 1);
        assert_string_equal(result.output, expected);
    }
    node_facts_free(facts);
}

TEST(signals_and_streams_are_as_a_program_expects) {
    run(SHELL("grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l; "
              "[ $(ps -o sid= -p $$) = $$ ] && echo leader"),
        NULL);
    unsigned long long blocked, ignored;
    int descriptors, end = 0;
    assert_int_equal(sscanf(result.output, "SigBlk: %llx SigIgn: %llx %d leader%n", &blocked, &ignored,
                            &descriptors, &end),
                     3);
    assert_true(end > 0);
    assert_int_equal(blocked, 0);
    /* Signals 32 and 33 are libc's own; its posix_spawn leaves them ignored, and no program uses them. */
    assert_int_equal(ignored & ~(3ull << 31), 0);
    assert_int_equal(descriptors, 4); /* ls itself opens one beside the three */
}

/* ---- time and ends */

/* With longer and longer time limits, until one was long enough for SCRIPT to say "set". */
static void run_past_limit(const char *script, uint32_t grace_ms) {
    for (uint64_t limit_ms = 50;; limit_ms *= 2) {
        RUN_AS(.arguments = SHELL(script), .timeout_ms = limit_ms, .grace_ms = grace_ms);
        assert_true(result.exit.timed_out);
        if (strcmp(result.output, "set\n") == 0)
            return;
        assert_string_equal(result.output, "");
        assert_true(limit_ms < WAIT_LIMIT_MS);
    }
}

TEST(who_ignores_sigterm_gets_sigkill_after_the_grace) {
    run_past_limit("trap '' TERM; echo set; exec sleep 60", 50);
    assert_int_equal(result.exit.code, SIGKILL);
}

TEST(what_is_left_of_a_group_is_ended) {
    RUN_AS(.arguments =
               SHELL("trap '' TERM; (sleep 61 & echo $!; trap '' TERM; sleep 62 & echo $!) ; exit 5"),
           .grace_ms = 20);
    assert_int_equal(result.exit.code, 5);
    assert_true(result.exit.left_others);
    long first, second;
    assert_int_equal(sscanf(result.output, "%ld %ld", &first, &second), 2);
    assert_false(process_lives((pid_t)first));
    assert_false(process_lives((pid_t)second));
}

TEST(late_writers_of_a_group_finish_what_they_write) {
    /* The shell ends before the other side of its pipe has written everything down. */
    RUN_AS(.arguments = SHELL("trap '' TERM; (while kill -0 $$; do :; done 2>/dev/null; echo late) & exit 0"),
           .grace_ms = 120000);
    assert_string_equal(result.output, "late\n");
}

TEST(who_left_the_group_does_not_hold_its_end_up) {
    run(SHELL("mkfifo up; setsid sh -c 'echo $$ >up; exec sleep 300' & cat up"), NULL);
    assert_int_equal(result.exit.code, 0);
    long daemon;
    assert_int_equal(sscanf(result.output, "%ld", &daemon), 1);
    assert_true(process_lives((pid_t)daemon)); /* it left on purpose, and may serve the next command */
    /* But it does not outlive the agent. */
    assert_done(&f, agent_link_close_and_wait(f.link, WAIT_LIMIT_MS * EVENT_MILLISECOND, &f.failure));
    assert_true(process_ends((pid_t)daemon));
}

struct watch {
    struct remote_command *command;
    struct text output;
    int started, drained, exited;
    struct remote_exit exit;
    struct failure failure;
};

static void on_started(struct remote_command *command, const struct remote_start *start, void *context) {
    struct watch *watch = context;
    assert_int_equal(remote_command_pid(command), start->pid);
    watch->started++;
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    struct watch *watch = context;
    assert_int_equal(text_append(&watch->output, bytes, length), 0);
}

static void on_exit_of(struct remote_command *command, const struct remote_exit *exit,
                       const struct failure *failure, void *context) {
    struct watch *watch = context;
    assert_true(!exit != !failure);
    assert_true(remote_command_ended(command));
    watch->exited++;
    if (exit)
        watch->exit = *exit;
    else
        watch->failure = *failure;
}

static void on_drain(struct remote_command *command, void *context) {
    struct watch *watch = context;
    watch->drained++;
}

static const struct remote_command_callbacks watching = {
    .on_started = on_started, .on_output = on_output, .on_drain = on_drain, .on_exit = on_exit_of};

static void watch_start(struct watch *watch, const struct remote_command_specification *specification) {
    memset(watch, 0, sizeof *watch);
    text_init(&watch->output, 64 << 20);
    assert_done(&f,
                remote_command_start(f.link, specification, &watching, watch, &watch->command, &f.failure));
    assert_int_equal(watch->started, 0); /* never from within the call */
}

static void watch_until(const int *count) {
    wait_until(f.loop, *count > 0, "%d times", *count);
    assert_int_equal(*count, 1);
}

static void watch_clear(struct watch *watch) {
    remote_command_free(watch->command);
    text_clear(&watch->output);
}

TEST(kill_reaches_the_whole_group) {
    struct watch watch;
    watch_start(&watch, &(struct remote_command_specification){
                            .arguments = SHELL("sleep 63 & (sleep 64 & echo $!; wait) & echo $!; wait")});
    while (!memchr(watch.output.bytes, '\n', watch.output.length) ||
           !strchr(strchr(watch.output.bytes, '\n') + 1, '\n'))
        assert_true(event_loop_run_once(f.loop, EVENT_SECOND, NULL) >= 0);
    long first, second;
    assert_int_equal(sscanf(watch.output.bytes, "%ld %ld", &first, &second), 2);
    assert_true(process_lives((pid_t)first) && process_lives((pid_t)second));
    assert_done(&f, remote_command_kill(watch.command, SIGKILL, &f.failure));
    watch_until(&watch.exited);
    assert_int_equal(watch.exit.code, SIGKILL);
    assert_true(process_ends((pid_t)first) && process_ends((pid_t)second));
    assert_int_equal(remote_command_kill(watch.command, SIGKILL, NULL), 0); /* fine after its end */
    watch_clear(&watch);
}

TEST(a_kill_before_it_has_started_is_not_lost) {
    for (int i = 0; i < 20; i++) {
        struct watch watch;
        watch_start(&watch, &(struct remote_command_specification){.arguments = SHELL("sleep 65")});
        assert_done(&f, remote_command_kill(watch.command, SIGTERM, &f.failure));
        watch_until(&watch.exited);
        assert_int_equal(watch.exit.code, SIGTERM);
        watch_clear(&watch);
    }
}

/* The gentle way: SIGTERM, and on_exit when it has gone; the command is freed only then. */
TEST(sigterm_leaves_time_for_an_orderly_end) {
    struct watch watch;
    watch_start(&watch, &(struct remote_command_specification){
                            .arguments = SHELL("trap 'sleep 0.01; echo tidy; exit 4' TERM; echo set; "
                                               "while :; do sleep 0.01; done"),
                            .grace_ms = 120000,
                            .error = REMOTE_OUTPUT_NULL}); /* some shells tell of their killed sleep */
    wait_until(f.loop, watch.output.length > 0, "no output");
    assert_done(&f, remote_command_kill(watch.command, SIGTERM, &f.failure));
    watch_until(&watch.exited);
    assert_false(watch.exit.signalled);
    assert_int_equal(watch.exit.code, 4);
    assert_string_equal(watch.output.bytes, "set\ntidy\n");
    watch_clear(&watch);
}

TEST(a_freed_command_is_killed_and_silent) {
    struct watch watch;
    watch_start(&watch, &(struct remote_command_specification){.arguments = SHELL("sleep 66")});
    watch_until(&watch.started);
    pid_t pid = remote_command_pid(watch.command);
    remote_command_free(watch.command);
    watch.command = NULL;
    turn_until_answered();
    assert_true(process_ends(pid));
    assert_int_equal(watch.exited, 0);
    watch_clear(&watch);
}

/* ---- output */

TEST(streams_can_be_merged_and_dropped) {
    static const char script[] = "echo one; echo two >&2; echo three";
    RUN_AS(.arguments = SHELL(script), .error = REMOTE_OUTPUT_MERGE);
    assert_string_equal(result.output, "one\ntwo\nthree\n");
    assert_string_equal(result.error, "");
    RUN_AS(.arguments = SHELL(script), .output = REMOTE_OUTPUT_NULL);
    assert_string_equal(result.output, "");
    assert_string_equal(result.error, "two\n");
}

TEST(coalescing_keeps_order_and_loses_nothing) {
    /* In bursts, slowly, and faster than any pipe, with an end in the middle of a wait. */
    RUN_AS(.arguments = SHELL("seq 1 20000; for i in 20001 20002 20003; do echo $i; sleep 0.03; done; "
                              "seq 20004 300000; echo last"),
           .coalesce_ms = 50);
    const char *at = result.output;
    for (long i = 1; i <= 300000; i++) {
        char *end;
        assert_int_equal(strtol(at, &end, 10), i);
        assert_int_equal(*end, '\n');
        at = end + 1;
    }
    assert_string_equal(at, "last\n");
}

/* A few times in the time that is waited, however long the program takes, and not for every line of it. */
TEST(coalescing_wakes_the_agent_seldom) {
    struct agent_statistics before = {0}, after = {0};
    assert_done(&f, agent_link_statistics_and_wait(f.link, &before, &f.failure));
    RUN_AS(.arguments = SHELL("for i in $(seq 200); do echo $i; sleep 0.001; done"), .coalesce_ms = 100);
    assert_done(&f, agent_link_statistics_and_wait(f.link, &after, &f.failure));
    assert_int_equal(result.output_length, 9 * 2 + 90 * 3 + 101 * 4);
    int64_t waits = (result.exit.monotonic_ns - result.start.monotonic_ns) / (100 * EVENT_MILLISECOND);
    print_message("%llu times in %lld waits\n", (unsigned long long)(after.wakeups - before.wakeups),
                  (long long)waits);
    assert_in_range(after.wakeups - before.wakeups, 1, 20 + 4 * waits);
}

/* ---- input */

TEST(what_is_large_goes_through_a_program_unchanged) {
    enum { SIZE = 36 << 20 };
    char *bytes = malloc(SIZE);
    uint64_t seed = 12345;
    for (size_t i = 0; i < SIZE; i += 8) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        memcpy(bytes + i, &seed, 8);
    }
    for (unsigned coalesce = 0; coalesce <= 20; coalesce += 20) {
        run_as(&(struct remote_command_specification){.arguments = SHELL("cat"),
                                                      .output_limit = SIZE + 1,
                                                      .coalesce_ms = coalesce},
               bytes, SIZE);
        assert_int_equal(result.output_length, SIZE);
        assert_int_equal(result.exit.input_bytes, SIZE);
        assert_memory_equal(result.output, bytes, SIZE);
    }
    free(bytes);
    struct agent_statistics statistics = {0};
    assert_done(&f, agent_link_statistics_and_wait(f.link, &statistics, &f.failure));
    /* What is on its way is bounded by windows and queues, not by what passes through. */
    if (!SANITIZED)
        assert_true(statistics.rss_peak_bytes < (uint64_t)32 << 20);
    print_message("agent's peak %.1f MiB\n", (double)statistics.rss_peak_bytes / 1048576);
}

TEST(a_program_that_does_not_read_blocks_nobody) {
    static char bytes[8 << 20];
    struct watch idle;
    watch_start(&idle, &(struct remote_command_specification){.arguments = SHELL("sleep 67"),
                                                              .input = REMOTE_INPUT_STREAM});
    size_t queued = 0;
    assert_done(&f, remote_command_write(idle.command, bytes, sizeof bytes, &queued, &f.failure));
    assert_int_equal(queued, sizeof bytes);
    run((const char *const[]){"cat", NULL}, "through\n");
    assert_string_equal(result.output, "through\n");
    /* The pipe and the window have taken their share and no more. */
    assert_true(remote_command_queued(idle.command) > sizeof bytes - (4 << 20));
    assert_int_equal(idle.drained, 0);
    assert_int_equal(remote_command_write(idle.command, bytes, REMOTE_INPUT_LIMIT, NULL, &f.failure),
                     -ENOBUFS);
    assert_done(&f, remote_command_kill(idle.command, SIGKILL, &f.failure));
    watch_until(&idle.exited);
    assert_int_equal(remote_command_write(idle.command, "x", 1, NULL, &f.failure), -EPIPE);
    watch_clear(&idle);
}

TEST(a_program_that_closes_its_stdin_loses_nothing_else) {
    static char bytes[4 << 20];
    run_as(&(struct remote_command_specification){.arguments = SHELL("exec <&-; echo done")}, bytes,
           sizeof bytes);
    assert_string_equal(result.output, "done\n");
    assert_int_equal(result.exit.code, 0);
    assert_true(result.exit.input_bytes < sizeof bytes);
}

/* ---- letting go */

static int free_at; /* 1: started, 2: output, 3: exit */
static int freed;

static void free_when(struct remote_command *command, int now) {
    if (free_at == now) {
        remote_command_free(command);
        freed++;
    }
}

static void on_started_free(struct remote_command *command, const struct remote_start *start, void *context) {
    free_when(command, 1);
}

static void on_output_free(struct remote_command *command, enum remote_stream stream, const char *bytes,
                           size_t length, void *context) {
    free_when(command, 2);
}

static void on_exit_free(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    free_when(command, 3);
}

TEST(a_command_may_be_freed_in_each_of_its_callbacks) {
    static const struct remote_command_callbacks callbacks = {
        .on_started = on_started_free, .on_output = on_output_free, .on_exit = on_exit_free};
    for (free_at = 1; free_at <= 3; free_at++) {
        struct remote_command *command;
        freed = 0;
        assert_done(&f, remote_command_start(
                            f.link, &(struct remote_command_specification){.arguments = SHELL("echo x")},
                            &callbacks, NULL, &command, &f.failure));
        wait_until(f.loop, freed, "not freed");
        turn_until_answered();
        assert_int_equal(freed, 1);
    }
}

static int clear(void **state) {
    remote_result_clear(&result);
    return link_tear_down(state);
}

TEST_EACH(link_set_up, clear)
