/* The parts of the sampler: lines that wait, files that are read again, the family's time, the chain of
 * additions. */
#include "engine/agent/load/cycles.h"
#include "engine/agent/probes/foreign.h"
#include "engine/agent/probes/output.h"
#include "engine/agent/probes/source.h"
#include "engine/foundation/clock.h"
#include "tests/test.h"
#include "tests/unit/agent/made-tree.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* ---- output */

TEST(what_nobody_reads_is_bounded) {
    struct output output;
    int ends[2];
    static char line[1000], back[2 * OUTPUT_LIMIT];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\n';
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    output_init(&output, ends[1]);
    size_t kept = 0;
    while (output_put(&output, line, sizeof line, true)) {
        kept++;
        if (kept == 10)
            output_flush(&output); /* the pipe takes these, and no more than it holds later on */
    }
    assert_int_equal(output.waiting.length / sizeof line, (OUTPUT_LIMIT - OUTPUT_RESERVE) / sizeof line);
    output_flush(&output);
    size_t after = output.waiting.length;
    assert_true(after > OUTPUT_LIMIT - OUTPUT_RESERVE - (128 << 10) && after < OUTPUT_LIMIT - OUTPUT_RESERVE);
    while (output_put(&output, line, sizeof line, true))
        kept++;
    assert_true(output_put(&output, "event\n", 6, false)); /* there is room for what is not a sample */
    assert_false(output_put(&output, line, OUTPUT_LIMIT, false));
    assert_false(output_drain(&output, 10)); /* nobody reads */
    assert_false(output.broken);
    size_t got = 0;
    while (output.waiting.length > 0) {
        ssize_t now = read(ends[0], back + got, sizeof back - got);
        assert_true(now > 0);
        got += (size_t)now;
        output_flush(&output);
    }
    close(ends[1]);
    for (ssize_t now; (now = read(ends[0], back + got, sizeof back - got)) > 0;)
        got += (size_t)now;
    assert_int_equal(got, kept * sizeof line + 6);
    for (size_t i = 0; i < kept; i++)
        assert_memory_equal(back + i * sizeof line, line, sizeof line);
    assert_memory_equal(back + kept * sizeof line, "event\n", 6);
    close(ends[0]);
    output_clear(&output);
}

TEST(a_reader_that_has_gone_is_noticed) {
    struct output output;
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    output_init(&output, ends[1]);
    assert_true(output_put(&output, "line\n", 5, true));
    close(ends[0]);
    output_flush(&output);
    assert_true(output.broken);
    assert_false(output_drain(&output, 1000));
    close(ends[1]);
    output_clear(&output);
}

/* ---- sources */

TEST(a_file_is_read_whole_or_not_at_all) {
    struct source source;
    char buffer[100], content[100];
    assert_int_equal(source_init(&source, "a"), 0);
    assert_int_equal(source_read(&source, &tree.machine, 0, buffer, sizeof buffer), -ENOENT);
    put("a", "12\n");
    assert_int_equal(source_read(&source, &tree.machine, PROBE_SECOND / 2, buffer, sizeof buffer), -ENODEV);
    assert_int_equal(source_read(&source, &tree.machine, PROBE_SECOND, buffer, sizeof buffer), 3);
    assert_string_equal(buffer, "12\n");
    assert_int_equal(source_read_digits(&source, &tree.machine, PROBE_SECOND, buffer, sizeof buffer), 2);
    assert_string_equal(buffer, "12");
    memset(content, '1', sizeof content - 1);
    content[sizeof content - 1] = '\0';
    put("a", content);
    assert_int_equal(source_read(&source, &tree.machine, 3 * PROBE_SECOND, buffer, sizeof buffer), 99);
    assert_int_equal(source_read(&source, &tree.machine, 3 * PROBE_SECOND, buffer, 99), -EFBIG);
    put("a", "");
    assert_int_equal(source_read(&source, &tree.machine, 5 * PROBE_SECOND, buffer, sizeof buffer), -ENODATA);
    source_clear(&source);
}

/* A file that opens and cannot be read (EBUSY of a PU that is offline, say) is not opened at every sample. */
TEST(what_cannot_be_read_is_looked_for_once_a_second) {
    struct source source;
    char buffer[8];
    const int64_t at = 10 * PROBE_SECOND;
    assert_int_equal(source_init(&source, "a"), 0);
    put("a", "more than eight bytes\n");
    assert_int_equal(source_read(&source, &tree.machine, at, buffer, sizeof buffer), -EFBIG);
    take_away("a");
    put("a", "12\n"); /* another file */
    assert_int_equal(source_read(&source, &tree.machine, at + PROBE_SECOND / 2, buffer, sizeof buffer),
                     -EFBIG);
    assert_int_equal(source_read(&source, &tree.machine, at + PROBE_SECOND - 1, buffer, sizeof buffer),
                     -EFBIG);
    assert_int_equal(source_read(&source, &tree.machine, at + 2 * PROBE_SECOND, buffer, sizeof buffer),
                     -ENODEV);
    assert_int_equal(source_read(&source, &tree.machine, at + 3 * PROBE_SECOND, buffer, sizeof buffer), 3);
    /* And what can be read again is read at once. */
    put("a", "123456789\n");
    assert_int_equal(source_read(&source, &tree.machine, at + 3 * PROBE_SECOND, buffer, sizeof buffer),
                     -EFBIG);
    put("a", "34\n");
    assert_int_equal(source_read(&source, &tree.machine, at + 3 * PROBE_SECOND, buffer, sizeof buffer), 3);
    source_clear(&source);
}

TEST(columns_have_names_of_their_own) {
    struct probing *probing = &tree.probing;
    probing->probe = probe_find("memory");
    assert_true(probing_add_column(probing, "1", "a b,c:d\te"));
    assert_true(probing_add_column(probing, "1", "a b,c:d\te"));
    assert_true(probing_add_column(probing, "1", "%0*d", 200, 7));
    assert_true(probing_add_column(probing, "1", "%0*d", 200, 7));
    assert_string_equal(probing->columns[0].name, "a-b-c-d-e");
    assert_string_equal(probing->columns[1].name, "a-b-c-d-e-2");
    assert_true(strcmp(probing->columns[2].name, probing->columns[3].name) != 0);
    while (probing->count < PROBE_COLUMN_LIMIT)
        assert_true(probing_add_column(probing, "1", "x"));
    assert_false(probing_add_column(probing, "1", "x"));
    assert_string_equal(probing->why, "more than 1024 columns: the rest is left out");
}

TEST(more_pus_than_columns) {
    put("sys/devices/system/cpu/online", "0-1099\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1000\n");
    for (int pu = 1; pu < 1100; pu++) {
        char path[64];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d", pu);
        assert_int_equal(symlinkat("cpu0", tree.machine.root, path), 0);
    }
    assert_int_equal(begin("frequency"), 0);
    assert_int_equal(tree.probing.count, PROBE_COLUMN_LIMIT);
    assert_string_equal(tree.probing.why, "more than 1024 columns: the rest is left out");
    tree.probing.now_ns = 101 * PROBE_SECOND;
    probing_sample(&tree.probing);
    assert_int_equal(tree.probing.length, PROBE_COLUMN_LIMIT * strlen(",1000000"));
}

/* ---- the family's time */

static void burn(int milliseconds) {
    struct timespec now;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < milliseconds);
}

/* A child that uses CPU time, says so, and waits for its input to end. */
static pid_t start_burner(int milliseconds, int ready[2], int hold[2]) {
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char byte = 0;
    close(hold[1]);
    burn(milliseconds);
    (void)!write(ready[1], &byte, 1);
    (void)!read(hold[0], &byte, 1);
    _exit(0);
}

static void *start_from_thread(void *context) {
    int(*pipes)[2] = context;
    return (void *)(intptr_t)start_burner(300, pipes[0], pipes[1]);
}

TEST(the_familys_time_has_children_of_threads_and_of_the_dead) {
    if (foreign_find_family() == 0)
        test_skip("the kernel has no /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN)");
    int pipes[2][2];
    pthread_t thread;
    void *child;
    char byte;
    uint64_t before, during, after, own;
    long per_second = sysconf(_SC_CLK_TCK);
    assert_int_equal(pipe2(pipes[0], O_CLOEXEC) + pipe2(pipes[1], O_CLOEXEC), 0);
    assert_true(foreign_family_ticks(getpid(), &before));
    assert_int_equal(pthread_create(&thread, NULL, start_from_thread, pipes), 0);
    assert_int_equal(read(pipes[0][0], &byte, 1), 1);
    assert_true(foreign_family_ticks(getpid(), &during));
    assert_true(during >=
                before + (uint64_t)per_second / 5); /* it is the child of a thread that may have ended */
    pthread_join(thread, &child);
    close(pipes[1][1]);
    assert_int_equal(waitpid((pid_t)(intptr_t)child, NULL, 0), (pid_t)(intptr_t)child);
    assert_true(foreign_family_ticks(getpid(), &after));
    assert_true(after + 1 >= during);
    /* what is ours is nobody else's */
    burn((int)(clock() / (CLOCKS_PER_SEC / 1000)) + 200);
    assert_int_equal(pipe2(pipes[1], O_CLOEXEC), 0);
    pid_t idle = start_burner(0, pipes[0], pipes[1]);
    assert_true(foreign_family_ticks(idle, &own));
    assert_true(own <= 2);
    close(pipes[1][1]);
    waitpid(idle, NULL, 0);
}

/* ---- load */

TEST(a_chain_takes_a_cycle_a_link) {
    if (!cycles_spend(CYCLES_CHAIN))
        test_skip("there is no such chain for this processor");
    /* Twice as many take twice as long, and the speed is one that processors have. */
    int64_t best[2] = {INT64_MAX, INT64_MAX};
    for (int i = 0; i < 2000; i++)
        for (int k = 0; k < 2; k++) {
            int64_t began = clock_monotonic_ns();
            assert_true(cycles_spend((uint64_t)(512 << k) * CYCLES_CHAIN));
            int64_t took = clock_monotonic_ns() - began;
            best[k] = took < best[k] ? took : best[k];
        }
    double hz = 512.0 * CYCLES_CHAIN * 1e9 / (double)(best[1] - best[0]);
    if (hz < 0.2e9 || hz > 8e9)
        fail_msg("%g Hz", hz);
}

TEST(counters_give_the_mean_while_awake) {
    /* half a second, asleep for half of it, at 3 GHz beside a time stamp of 2 GHz */
    struct cycles_counters from = {1000, 2000, 3000, 4000}, to = from;
    to.actual += 750000000;
    to.maximum += 500000000;
    to.stamp += 1000000000;
    to.now_ns += 500000000;
    assert_true(fabs(cycles_mean_hz(&from, &to) - 3e9) < 1);
    assert_true(cycles_mean_hz(&to, &from) == 0);
    assert_true(cycles_mean_hz(&from, &from) == 0);
    struct cycles_counters still = to;
    still.maximum = from.maximum;
    assert_true(cycles_mean_hz(&from, &still) == 0);
    still = to;
    still.actual = from.actual - 1;
    assert_true(cycles_mean_hz(&from, &still) == 0);
}

TEST(pus_are_counted) {
    struct pu_set set;
    assert_int_equal(pu_set_parse("0-3,8,8191", &set), 0);
    assert_int_equal(pu_set_count(&set), 6);
    assert_int_equal(pu_set_allowed(&set), 0);
    assert_in_range(pu_set_count(&set), 1, sysconf(_SC_NPROCESSORS_CONF));
}
