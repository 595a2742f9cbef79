#include "engine/event-loop/event-loop.h"

#include "engine/event-loop/event-source.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { REPORTS_A_TURN = 64 };

/* ---- sources */

/* Allocates a source and adds it to the loop; NULL: no memory. */
struct event_source *event_source_new(struct event_loop *loop, enum event_kind kind, void *context) {
    struct event_source *source = calloc(1, sizeof *source);
    if (!source)
        return NULL;
    source->loop = loop;
    source->kind = kind;
    source->context = context;
    TAILQ_INSERT_TAIL(&loop->sources, source, all);
    return source;
}

static void free_source(struct event_source *source) {
    TAILQ_REMOVE(&source->loop->sources, source, all);
    free(source);
}

static void deferred_remove(struct event_source *source);

/* Removes a source (event-loop.h). Its memory is freed at the end of the turn, since reports of this turn and
 * lists being walked may still name it. */
void event_source_remove(struct event_source *source) {
    if (!source || source->removed)
        return;
    struct event_loop *loop = source->loop;
    switch (source->kind) {
    case EVENT_KIND_DESCRIPTOR:
        event_source_set_events(source, 0);
        break;
    case EVENT_KIND_TIMER:
        timer_remove(source);
        break;
    case EVENT_KIND_SIGNAL:
        signal_remove(source);
        break;
    case EVENT_KIND_CHILD:
        child_remove(source);
        break;
    case EVENT_KIND_DEFERRED:
        deferred_remove(source);
        break;
    }
    source->removed = true;
    /* While a turn is under way, the kernel's report and the lists that are being walked may name the source.
     */
    if (loop->depth == 0)
        free_source(source);
    else
        SLIST_INSERT_HEAD(&loop->buried, source, buried);
}

struct event_source *event_source_added(struct event_source *source, int r) {
    if (r >= 0)
        return source;
    event_source_remove(source);
    errno = -r;
    return NULL;
}

static void free_buried(struct event_loop *loop) {
    struct event_source *source;
    while ((source = SLIST_FIRST(&loop->buried))) {
        SLIST_REMOVE_HEAD(&loop->buried, buried);
        free_source(source);
    }
}

/* ---- descriptors */

int event_loop_watch(struct event_loop *loop, int operation, int descriptor, uint32_t events,
                     struct event_source *source) {
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(loop->epoll, operation, descriptor, &event) < 0 ? -errno : 0;
}

/* Changes the events that a descriptor is watched for; 0 stops the watch. Negative errno: the kernel
 * refused. */
int event_source_set_events(struct event_source *source, unsigned events) {
    unsigned before = source->descriptor.events;
    if (source->removed || events == before)
        return 0;
    int operation = !events ? EPOLL_CTL_DEL : before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    uint32_t mask = (events & EVENT_READ ? EPOLLIN : 0u) | (events & EVENT_WRITE ? EPOLLOUT : 0u);
    int r = event_loop_watch(source->loop, operation, source->descriptor.descriptor, mask, source);
    /* A descriptor that was closed too early has left the set by itself. */
    if (r < 0 && operation != EPOLL_CTL_DEL)
        return r;
    source->descriptor.events = events;
    if (!source->internal)
        source->loop->active += (size_t)!before - (size_t)!events;
    return 0;
}

struct event_source *event_loop_add_descriptor(struct event_loop *loop, int descriptor, unsigned events,
                                               event_descriptor_callback *callback, void *context) {
    struct event_source *source = event_source_new(loop, EVENT_KIND_DESCRIPTOR, context);
    if (!source)
        return NULL;
    source->descriptor.callback = callback;
    source->descriptor.descriptor = descriptor;
    return event_source_added(source, event_source_set_events(source, events));
}

/* Calls back for the reported events of a descriptor. Returns 1, or 0 if the source no longer wants them. */
static unsigned serve_descriptor(struct event_source *source, uint32_t reported) {
    unsigned interest = source->descriptor.events;
    unsigned events = (reported & EPOLLIN ? EVENT_READ : 0u) | (reported & EPOLLOUT ? EVENT_WRITE : 0u);
    events &= interest; /* a callback of this turn may have changed it */
    if (interest && reported & (EPOLLHUP | EPOLLERR))
        events |= EVENT_HANGUP;
    if (!events)
        return 0;
    source->descriptor.callback(source, source->descriptor.descriptor, events, source->context);
    return 1;
}

/* ---- deferred calls */

struct event_source *event_loop_add_deferred(struct event_loop *loop, event_deferred_callback *callback,
                                             void *context) {
    struct event_source *source = event_source_new(loop, EVENT_KIND_DEFERRED, context);
    if (source)
        source->deferred.callback = callback;
    return source;
}

void event_source_defer(struct event_source *source) {
    struct event_loop *loop = source->loop;
    if (source->removed || source->deferred.pending)
        return;
    source->deferred.pending = true;
    source->deferred.generation = loop->deferred_generation;
    TAILQ_INSERT_TAIL(&loop->deferred, source, deferred.queue);
}

static void deferred_remove(struct event_source *source) {
    if (source->deferred.pending)
        TAILQ_REMOVE(&source->loop->deferred, source, deferred.queue);
    source->deferred.pending = false;
}

/* Calls the deferred calls of earlier generations; calls deferred meanwhile wait for the next turn, so that
 * each turn is bounded, even when a callback turns the loop itself. Returns the number of calls. */
static unsigned serve_deferred(struct event_loop *loop) {
    unsigned served = 0;
    uint64_t limit = ++loop->deferred_generation;
    struct event_source *source;
    while ((source = TAILQ_FIRST(&loop->deferred)) && source->deferred.generation < limit && !loop->stopped) {
        deferred_remove(source);
        source->deferred.callback(source, source->context);
        served++;
    }
    return served;
}

/* ---- the loop */

/* A loop without sources; NULL with FAILURE. */
struct event_loop *event_loop_new(struct failure *failure) {
    struct event_loop *loop = calloc(1, sizeof *loop);
    if (!loop) {
        failure_memory(failure);
        return NULL;
    }
    TAILQ_INIT(&loop->sources);
    TAILQ_INIT(&loop->deferred);
    loop->signals = -1;
    sigemptyset(&loop->wanted);
    sigemptyset(&loop->blocked);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0) {
        failure_set(failure, -errno, "cannot make an event loop: %s", strerror(errno));
        free(loop);
        return NULL;
    }
    loop->now = clock_monotonic_ns();
    return loop;
}

/* Frees the loop and all its sources, and gives their signals back. */
void event_loop_free(struct event_loop *loop) {
    if (!loop)
        return;
    for (int number = 1; number < NSIG; number++)
        signal_unwant(loop, number);
    while (!TAILQ_EMPTY(&loop->sources))
        event_source_remove(TAILQ_LAST(&loop->sources, event_sources));
    if (loop->signals >= 0)
        close(loop->signals);
    close(loop->epoll);
    free(loop->timers);
    free(loop);
}

void event_loop_cleanup(struct event_loop **loop) {
    event_loop_free(*loop);
}

void event_loop_stop(struct event_loop *loop) {
    loop->stopped = true;
}

void event_loop_resume(struct event_loop *loop) {
    loop->stopped = false;
}

bool event_loop_is_stopped(const struct event_loop *loop) {
    return loop->stopped;
}

int64_t event_loop_now(const struct event_loop *loop) {
    return loop->now;
}

/* Waits for events for TIMEOUT nanoseconds (negative: for ever). epoll_pwait2 (Linux 5.11) is exact;
 * epoll_wait counts in milliseconds, rounded up, so that it does not return before a timer is due. Returns
 * the number of reports, 0 when interrupted, or a negative errno. */
static int wait_for_reports(struct event_loop *loop, struct epoll_event *reports, int64_t timeout) {
    int count;
#ifdef SYS_epoll_pwait2
    if (!loop->plain_wait) {
        struct timespec span = {.tv_sec = (time_t)(timeout / EVENT_SECOND),
                                .tv_nsec = (long)(timeout % EVENT_SECOND)};
        count = (int)syscall(SYS_epoll_pwait2, loop->epoll, reports, REPORTS_A_TURN,
                             timeout < 0 ? NULL : &span, NULL, (size_t)0);
        /* Old kernels do not know it, and the seccomp filters of some containers refuse it. */
        if (count >= 0 || (errno != ENOSYS && errno != EPERM))
            return count >= 0 ? count : errno == EINTR ? 0 : -errno;
        loop->plain_wait = true;
    }
#endif
    int64_t most = (int64_t)3600 * 1000;
    int64_t milliseconds = timeout / EVENT_MILLISECOND + (timeout % EVENT_MILLISECOND > 0);
    count = epoll_wait(loop->epoll, reports, REPORTS_A_TURN,
                       timeout < 0 ? -1 : (int)(milliseconds < most ? milliseconds : most));
    return count >= 0 ? count : errno == EINTR ? 0 : -errno;
}

/* Waits until something is reported, TIMEOUT is over, a timer is due, or a call is deferred. Returns the
 * number of reports or a negative errno. */
static int wait_for_events_or_timers(struct event_loop *loop, struct epoll_event *reports, int64_t timeout) {
    if (timeout == 0 || !TAILQ_EMPTY(&loop->deferred))
        return wait_for_reports(loop, reports, 0);
    int64_t earliest = timer_earliest(loop), deadline;
    if (timeout < 0 || __builtin_add_overflow(clock_monotonic_ns(), timeout, &deadline) ||
        earliest < deadline)
        deadline = earliest;
    int count;
    /* With a virtual clock others act in the last of these, and may put off calls of this loop's. */
    do
        count = wait_for_reports(loop, reports, clock_wait_ns(deadline));
    while (count == 0 && TAILQ_EMPTY(&loop->deferred) && clock_waits_again(deadline));
    return count;
}

static unsigned serve_report(struct event_source *source, uint32_t events, uint64_t turn) {
    /* A callback that turned the loop itself may have served it with news that are newer than this report. */
    if (source->removed || source->served > turn)
        return 0;
    source->served = source->loop->turn;
    return source->kind == EVENT_KIND_CHILD ? serve_child(source) : serve_descriptor(source, events);
}

/* One turn: waits at most TIMEOUT_NS, then serves reports, deferred calls and timers. 1 if anything was
 * served, 0 if not or if the loop is stopped, negative with FAILURE. */
int event_loop_run_once(struct event_loop *loop, int64_t timeout_ns, struct failure *failure) {
    if (loop->stopped)
        return 0;
    struct epoll_event reports[REPORTS_A_TURN];
    int count = wait_for_events_or_timers(loop, reports, timeout_ns);
    loop->now = clock_monotonic_ns();
    /* This process may not have run for a while: what came before a timer was due is served before it. */
    if (count >= 0 && timer_earliest(loop) <= loop->now)
        count = wait_for_reports(loop, reports, 0);
    if (count < 0)
        return failure_set(failure, count, "the event loop cannot wait: %s", strerror(-count));
    uint64_t turn = ++loop->turn;
    loop->depth++;
    unsigned served = 0;
    for (int i = 0; i < count && !loop->stopped; i++)
        served += serve_report(reports[i].data.ptr, reports[i].events, turn);
    served += serve_deferred(loop);
    served += serve_timers(loop);
    loop->depth--;
    if (loop->depth == 0)
        free_buried(loop);
    return served > 0;
}

int event_loop_run(struct event_loop *loop, struct failure *failure) {
    while (!loop->stopped && (loop->active || loop->timer_count || !TAILQ_EMPTY(&loop->deferred))) {
        int r = event_loop_run_once(loop, -1, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

static void on_late(struct event_source *source, void *context) {
    (void)source;
    *(bool *)context = true;
}

int event_loop_turn(struct event_loop *loop, int64_t timeout_ns, struct failure *failure) {
    return event_loop_is_stopped(loop) ? failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted")
                                       : event_loop_run_once(loop, timeout_ns, failure);
}

/* Turns the loop until *DONE. 0, or -ETIMEDOUT after TIMEOUT_NS, or another negative number with FAILURE. */
int event_loop_turn_until(struct event_loop *loop, const bool *done, int64_t timeout_ns,
                          struct failure *failure) {
    bool is_late = false;
    struct event_source *timer = event_loop_add_timer(loop, timeout_ns, 0, on_late, &is_late);
    int r = timer ? 0 : failure_memory(failure);
    while (r >= 0 && !*done && !is_late)
        r = event_loop_turn(loop, -1, failure);
    event_source_remove(timer);
    return r < 0 ? r : *done ? 0 : -ETIMEDOUT;
}
