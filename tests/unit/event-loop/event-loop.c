/* The event loop: order, removal at every moment, timers, signals, children by pidfd and by SIGCHLD. */
#include "engine/event-loop/event-loop.h"

#include "tests/simulation/virtual-clock.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct event_loop *loop;

static char record[256]; /* what was called, in order */

static int set_up(void **state) {
    record[0] = '\0';
    loop = event_loop_new(NULL);
    return loop ? 0 : -1;
}

static int tear_down(void **state) {
    event_loop_free(loop);
    clock_use(NULL);
    return 0;
}

TEST_EACH(set_up, tear_down)

static void note(char letter) {
    size_t length = strlen(record);
    assert_true(length + 1 < sizeof record);
    record[length] = letter;
    record[length + 1] = '\0';
}

/* Where nothing comes from outside: time is what the test says. */
static void use_virtual_clock(void) {
    event_loop_free(loop);
    clock_use(&virtual_clock);
    loop = event_loop_new(NULL);
}

struct named {
    char letter;
    struct event_source *source, *victim;
};

/* ---- timers */

static void on_named_timer(struct event_source *self, void *context) {
    struct named *named = context;
    assert_ptr_equal(self, named->source);
    note(named->letter);
    event_source_remove(named->victim);
}

TEST(timers_fire_in_order_of_deadline_then_of_arming) {
    use_virtual_clock();
    struct named timers[] = {{'b', 0, 0}, {'a', 0, 0}, {'c', 0, 0}, {'d', 0, 0}};
    const int64_t delays[] = {20, 10, 20, 30};
    for (int i = 0; i < 4; i++)
        timers[i].source =
            event_loop_add_timer(loop, delays[i] * EVENT_MILLISECOND, 0, on_named_timer, &timers[i]);
    int64_t start = clock_monotonic_ns();
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_string_equal(record, "abcd");
    assert_int_equal(clock_monotonic_ns() - start, 30 * EVENT_MILLISECOND);
    assert_false(event_source_timer_is_armed(timers[0].source));
}

/* The one that asks the kernel how long it waits. */
TEST(a_timer_never_fires_early) {
    for (int i = 1; i <= 20; i++) {
        struct named timer = {'x', 0, 0};
        int64_t delay = i * 137 * 1000, start = clock_monotonic_ns();
        timer.source = event_loop_add_timer(loop, delay, 0, on_named_timer, &timer);
        assert_int_equal(event_loop_run(loop, NULL), 0);
        assert_true(clock_monotonic_ns() - start >= delay);
        event_source_remove(timer.source);
    }
    assert_int_equal(strlen(record), 20);
}

static int64_t last_deadline;

static void on_ordered_timer(struct event_source *self, void *context) {
    const int64_t *deadline = context;
    assert_int_equal(*deadline, clock_monotonic_ns());
    assert_true(*deadline >= last_deadline);
    last_deadline = *deadline;
    note('.');
}

TEST(many_timers_stay_ordered) {
    use_virtual_clock();
    enum { COUNT = 500 };
    static struct event_source *sources[COUNT];
    static int64_t deadlines[COUNT];
    /* Armed, removed and armed anew at random, then all that are left fire in order: the heap is exercised.
     */
    srand(7);
    last_deadline = 0;
    for (int i = 0; i < COUNT; i++) {
        deadlines[i] = clock_monotonic_ns() + rand() % 1000;
        sources[i] = event_loop_add_timer(loop, deadlines[i] - clock_monotonic_ns(), 0, on_ordered_timer,
                                          &deadlines[i]);
    }
    for (int i = 0; i < COUNT; i += 3) {
        deadlines[i] = clock_monotonic_ns() + rand() % 1000;
        event_source_set_timer(sources[i], deadlines[i] - clock_monotonic_ns(), 0);
    }
    int left = COUNT;
    for (int i = 0; i < COUNT; i++)
        if (i % 5 != 0 || i >= 5 * 100) {
            event_source_remove(sources[i]);
            left--;
        }
    assert_int_equal(left, 100);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_int_equal(strlen(record), 100);
}

static void on_periodic(struct event_source *self, void *context) {
    int *count = context;
    if (++*count == 5)
        event_source_remove(self);
}

TEST(a_periodic_timer_repeats_until_it_removes_itself) {
    use_virtual_clock();
    int count = 0;
    int64_t start = clock_monotonic_ns();
    event_loop_add_timer(loop, 2 * EVENT_MILLISECOND, 3 * EVENT_MILLISECOND, on_periodic, &count);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_int_equal(count, 5);
    assert_int_equal(clock_monotonic_ns() - start, 14 * EVENT_MILLISECOND);
}

static void on_sleepy(struct event_source *self, void *context) {
    int *count = context;
    if (++*count == 1)
        virtual_now_ns += 25 * EVENT_MILLISECOND;
    else if (*count == 3)
        event_source_remove(self);
}

TEST(a_late_periodic_timer_skips_what_it_missed) {
    use_virtual_clock();
    int count = 0;
    int64_t start = clock_monotonic_ns();
    event_loop_add_timer(loop, 0, 5 * EVENT_MILLISECOND, on_sleepy, &count);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    /* At 0, at 25 for all that were due before, and at 30. */
    assert_int_equal(count, 3);
    assert_int_equal(clock_monotonic_ns() - start, 30 * EVENT_MILLISECOND);
}

static void on_again(struct event_source *self, void *context) {
    int *count = context;
    ++*count;
    event_source_set_timer(self, 0, 0);
}

TEST(a_timer_of_no_delay_that_arms_itself_fires_once_a_turn) {
    use_virtual_clock();
    int count = 0;
    event_loop_add_timer(loop, 0, 0, on_again, &count);
    for (int turn = 1; turn <= 5; turn++) {
        assert_int_equal(event_loop_run_once(loop, -1, NULL), 1);
        assert_int_equal(count, turn);
    }
}

TEST(a_timer_removes_one_that_is_due_in_the_same_turn) {
    use_virtual_clock();
    struct named first = {'a', 0, 0}, second = {'b', 0, 0};
    first.source = event_loop_add_timer(loop, 0, 0, on_named_timer, &first);
    second.source = first.victim = event_loop_add_timer(loop, 0, 0, on_named_timer, &second);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_string_equal(record, "a");
}

/* ---- descriptors */

struct ends {
    int read, write;
};

static struct ends make_pipe(void) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    return (struct ends){ends[0], ends[1]};
}

static void on_named_descriptor(struct event_source *self, int descriptor, unsigned events, void *context) {
    struct named *named = context;
    assert_ptr_equal(self, named->source);
    note(events & EVENT_READ ? named->letter : '?');
    char byte;
    assert_int_equal(read(descriptor, &byte, 1), 1);
    event_source_remove(named->victim);
}

TEST(a_callback_removes_a_source_that_the_kernel_has_reported) {
    struct ends one = make_pipe(), two = make_pipe();
    struct named first = {'1', 0, 0}, second = {'2', 0, 0};
    first.source = event_loop_add_descriptor(loop, one.read, EVENT_READ, on_named_descriptor, &first);
    second.source = event_loop_add_descriptor(loop, two.read, EVENT_READ, on_named_descriptor, &second);
    first.victim = second.source;
    second.victim = first.source;
    assert_int_equal(write(one.write, "x", 1), 1);
    assert_int_equal(write(two.write, "x", 1), 1);
    /* Each removes the other: whichever comes first, the second must not be called, in this turn or a later
     * one. */
    assert_int_equal(event_loop_run_once(loop, 0, NULL), 1);
    assert_int_equal(event_loop_run_once(loop, 0, NULL), 0);
    assert_int_equal(strlen(record), 1);
    close(one.read), close(one.write), close(two.read), close(two.write);
}

static void on_remove_self(struct event_source *self, int descriptor, unsigned events, void *context) {
    int *count = context;
    ++*count;
    event_source_remove(self);
    event_source_remove(self); /* twice is fine */
}

TEST(a_callback_removes_itself) {
    struct ends ends = make_pipe();
    int count = 0;
    event_loop_add_descriptor(loop, ends.write, EVENT_WRITE, on_remove_self, &count);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_int_equal(count, 1);
    close(ends.read), close(ends.write);
}

static unsigned seen_events;

static void on_events(struct event_source *self, int descriptor, unsigned events, void *context) {
    seen_events = events;
}

TEST(interest_decides_what_is_reported) {
    struct ends ends = make_pipe();
    struct event_source *source = event_loop_add_descriptor(loop, ends.read, 0, on_events, NULL);
    assert_int_equal(write(ends.write, "x", 1), 1);
    assert_int_equal(event_loop_run_once(loop, 0, NULL), 0);
    assert_int_equal(event_source_set_events(source, EVENT_READ), 0);
    assert_int_equal(event_loop_run_once(loop, 0, NULL), 1);
    assert_int_equal(seen_events, EVENT_READ);
    /* Level-triggered: it is still there. */
    assert_int_equal(event_loop_run_once(loop, 0, NULL), 1);
    close(ends.write);
    assert_int_equal(event_loop_run_once(loop, 0, NULL), 1);
    assert_int_equal(seen_events, EVENT_READ | EVENT_HANGUP);
    /* Without interest not even a hang-up wakes the loop. */
    assert_int_equal(event_source_set_events(source, 0), 0);
    assert_int_equal(event_loop_run_once(loop, 0, NULL), 0);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    close(ends.read);
}

TEST(what_cannot_be_watched_is_refused) {
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    errno = 0;
    assert_null(event_loop_add_descriptor(loop, file, EVENT_READ, on_events, NULL));
    assert_int_equal(errno, EPERM);
    assert_null(event_loop_add_descriptor(loop, 9999, EVENT_READ, on_events, NULL));
    assert_int_equal(errno, EBADF);
    close(file);
}

static void on_inner_turn(struct event_source *self, int descriptor, unsigned events, void *context) {
    note(*(char *)context);
    char byte;
    if (read(descriptor, &byte, 1) == 1)
        event_loop_run_once(loop, 0, NULL);
    else
        note('!');
}

TEST(a_turn_within_a_turn_leaves_no_stale_report) {
    struct ends one = make_pipe(), two = make_pipe();
    char a = 'a', b = 'b';
    event_loop_add_descriptor(loop, one.read, EVENT_READ, on_inner_turn, &a);
    event_loop_add_descriptor(loop, two.read, EVENT_READ, on_inner_turn, &b);
    assert_int_equal(write(one.write, "x", 1), 1);
    assert_int_equal(write(two.write, "x", 1), 1);
    /* The inner turn serves the second pipe; the outer one must not call for it again, for it would find
     * nothing. */
    event_loop_run_once(loop, 0, NULL);
    assert_int_equal(strlen(record), 2);
    assert_null(strchr(record, '!'));
    close(one.read), close(one.write), close(two.read), close(two.write);
}

/* ---- deferred */

static void on_deferred(struct event_source *self, void *context) {
    struct named *named = context;
    note(named->letter);
    if (named->letter == 'r')
        event_source_defer(self);
    event_source_remove(named->victim);
}

TEST(deferred_calls_come_once_and_in_order) {
    struct named a = {'a', 0, 0}, b = {'b', 0, 0}, c = {'c', 0, 0};
    a.source = event_loop_add_deferred(loop, on_deferred, &a);
    b.source = event_loop_add_deferred(loop, on_deferred, &b);
    c.source = event_loop_add_deferred(loop, on_deferred, &c);
    event_source_defer(b.source);
    event_source_defer(a.source);
    event_source_defer(b.source);
    event_source_defer(c.source);
    b.victim = c.source;
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_string_equal(record, "ba");
}

TEST(a_deferred_call_that_defers_itself_waits_for_the_next_turn) {
    struct named r = {'r', 0, 0};
    r.source = event_loop_add_deferred(loop, on_deferred, &r);
    event_source_defer(r.source);
    assert_int_equal(event_loop_run_once(loop, -1, NULL), 1);
    assert_string_equal(record, "r");
    /* Not asleep although there is nothing else and the timeout is for ever. */
    assert_int_equal(event_loop_run_once(loop, -1, NULL), 1);
    assert_string_equal(record, "rr");
}

static void on_inner_deferred(struct event_source *self, void *context) {
    note('(');
    event_loop_run_once(loop, 0, NULL);
    note(')');
}

TEST(a_turn_within_a_deferred_call_serves_those_behind_it) {
    struct named b = {'b', 0, 0};
    struct event_source *outer = event_loop_add_deferred(loop, on_inner_deferred, NULL);
    b.source = event_loop_add_deferred(loop, on_deferred, &b);
    event_source_defer(outer);
    event_source_defer(b.source);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_string_equal(record, "(b)");
}

/* ---- what comes while nobody looks */

static int news = -1; /* a pipe; at the next look at the clock a byte is in it, and an hour is over */

static int64_t late_clock_ns(void *context) {
    if (news >= 0) {
        assert_int_equal(write(news, "x", 1), 1);
        virtual_now_ns += 3600 * EVENT_SECOND;
        news = -1;
    }
    return virtual_now_ns;
}

static void on_deferring(struct event_source *self, int descriptor, unsigned events, void *context) {
    char byte;
    assert_int_equal(read(descriptor, &byte, 1), 1);
    note('d');
    event_source_defer(context);
}

/* Here it is the timer that waits for the byte, and what follows from the byte ends the timer. */
TEST(what_came_before_a_timer_was_due_is_served_first) {
    static const struct clock_source late = {
        .wall_ns = virtual_wall_ns, .monotonic_ns = late_clock_ns, .look_again_ns = EVENT_MILLISECOND};
    clock_use(&late);
    struct ends ends = make_pipe();
    struct named timer = {'t', 0, 0}, end = {'e', 0, 0};
    timer.source = event_loop_add_timer(loop, 3600 * EVENT_SECOND, 0, on_named_timer, &timer);
    end.source = event_loop_add_deferred(loop, on_deferred, &end);
    end.victim = timer.source;
    event_loop_add_descriptor(loop, ends.read, EVENT_READ, on_deferring, end.source);
    news = ends.write;
    assert_int_equal(event_loop_run_once(loop, 0, NULL), 1);
    assert_string_equal(record, "de");
    close(ends.read), close(ends.write);
}

/* ---- stop */

static void on_stop(struct event_source *self, void *context) {
    event_loop_stop(loop);
}

TEST(stop_ends_run_and_holds_until_resume) {
    use_virtual_clock();
    struct named late = {'l', 0, 0};
    event_loop_add_timer(loop, 0, 0, on_stop, NULL);
    late.source = event_loop_add_timer(loop, EVENT_MILLISECOND, 0, on_named_timer, &late);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_true(event_loop_is_stopped(loop));
    virtual_now_ns += 2 * EVENT_MILLISECOND;
    assert_int_equal(event_loop_run_once(loop, -1, NULL), 0);
    assert_string_equal(record, "");
    event_loop_resume(loop);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_string_equal(record, "l");
}

TEST(a_loop_with_nothing_returns_at_once) {
    assert_int_equal(event_loop_run(loop, NULL), 0);
    int64_t start = clock_monotonic_ns();
    assert_int_equal(event_loop_run_once(loop, 5 * EVENT_MILLISECOND, NULL), 0);
    assert_true(clock_monotonic_ns() - start >= 5 * EVENT_MILLISECOND);
}

/* ---- signals */

static void on_signal(struct event_source *self, int number, void *context) {
    int *count = context;
    assert_int_equal(number, SIGUSR1);
    ++*count;
    event_source_remove(self);
}

TEST(a_signal_reaches_all_who_want_it) {
    int count = 0;
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    event_loop_add_signal(loop, SIGUSR1, on_signal, &count);
    event_loop_add_signal(loop, SIGUSR1, on_signal, &count);
    raise(SIGUSR1);
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_int_equal(count, 2);
    sigprocmask(SIG_SETMASK, NULL, &after);
    assert_false(sigismember(&after, SIGUSR1));
    assert_false(sigismember(&before, SIGUSR1));
    errno = 0;
    assert_null(event_loop_add_signal(loop, SIGCHLD, on_signal, NULL));
    assert_int_equal(errno, EINVAL);
    assert_null(event_loop_add_signal(loop, 9999, on_signal, NULL));
}

TEST(a_signal_that_is_pending_at_the_end_kills_nobody) {
    int count = 0;
    struct event_loop *other = event_loop_new(NULL);
    event_loop_add_signal(other, SIGUSR2, on_signal, &count);
    raise(SIGUSR2);
    event_loop_free(other);
    assert_int_equal(count, 0);
}

/* ---- children */

static struct event_child_exit last_exit;
static int exits;

static void on_exit_of(struct event_source *self, const struct event_child_exit *exit, void *context) {
    last_exit = *exit;
    exits++;
    /* Still a zombie: its number is nobody else's yet. */
    assert_int_equal(kill(exit->pid, 0), 0);
}

static pid_t fork_child(int status, int signal_number) {
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (signal_number)
            raise(signal_number);
        _exit(status);
    }
    assert_true(pid > 0);
    return pid;
}

static void wait_until_zombie(pid_t pid) {
    siginfo_t end;
    assert_int_equal(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
}

static void children_are_told_and_reaped(void) {
    exits = 0;
    pid_t pid = fork_child(7, 0);
    assert_non_null(event_loop_add_child(loop, pid, on_exit_of, NULL));
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_int_equal(exits, 1);
    assert_int_equal(last_exit.pid, pid);
    assert_false(last_exit.signalled);
    assert_int_equal(last_exit.code, 7);
    assert_true(last_exit.usage.ru_maxrss > 0);
    assert_int_equal(kill(pid, 0), -1);

    pid = fork_child(0, SIGTERM);
    wait_until_zombie(pid); /* before it is watched */
    assert_non_null(event_loop_add_child(loop, pid, on_exit_of, NULL));
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_int_equal(exits, 2);
    assert_true(last_exit.signalled);
    assert_int_equal(last_exit.code, SIGTERM);
}

static void many_children_end_at_once(void) {
    enum { COUNT = 60 };
    exits = 0;
    for (int i = 0; i < COUNT; i++)
        assert_non_null(event_loop_add_child(loop, fork_child(i, 0), on_exit_of, NULL));
    assert_int_equal(event_loop_run(loop, NULL), 0);
    assert_int_equal(exits, COUNT);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(children_by_pidfd) {
    children_are_told_and_reaped();
    many_children_end_at_once();
}

TEST(children_by_sigchld) {
    assert_int_equal(event_loop_avoid_pidfd(loop), 0);
    children_are_told_and_reaped();
    many_children_end_at_once();
}

TEST(a_removed_child_is_left_to_the_caller) {
    exits = 0;
    pid_t pid = fork_child(3, 0);
    event_source_remove(event_loop_add_child(loop, pid, on_exit_of, NULL));
    wait_until_zombie(pid);
    event_loop_run_once(loop, 0, NULL);
    assert_int_equal(exits, 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 3);
}

static int orphans;

static void on_orphan(struct event_source *self, const struct event_child_exit *exit, void *context) {
    assert_null(self);
    assert_true(exit->pid > 0);
    orphans++;
}

static void on_orphan_timeout(struct event_source *self, void *context) {
    event_loop_stop(loop);
}

TEST(orphans_are_adopted_and_reaped) {
    exits = orphans = 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_int_equal(event_loop_reap_orphans(loop, on_orphan, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pid_t parent = getpid();
        if (fork() == 0) {
            while (getppid() == parent)
                sched_yield();
            _exit(0);
        }
        _exit(4);
    }
    assert_non_null(event_loop_add_child(loop, pid, on_exit_of, NULL));
    event_loop_add_timer(loop, 120 * EVENT_SECOND, 0, on_orphan_timeout, NULL);
    while (orphans == 0 && !event_loop_is_stopped(loop))
        event_loop_run_once(loop, -1, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    assert_int_equal(exits, 1);
    assert_int_equal(last_exit.code, 4);
    assert_int_equal(orphans, 1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}
