/*
 * One loop for one thread: descriptors, timers, signals, child processes and calls put off until later. libc
 * only (epoll, signalfd, pidfd), because the agent uses it too.
 *
 *     struct event_loop *loop = event_loop_new(failure);
 *     event_loop_add_timer(loop, 50 * EVENT_MILLISECOND, 0, say_hello, context);
 *     event_loop_run(loop);
 *     event_loop_free(loop);
 *
 * Every add function gives a source that the loop owns; event_source_remove() ends it. A source may be
 * removed at any time, from its own callback and from any other: its callback is not called again, not even
 * for an event that the kernel has already reported. The source's memory stays valid until the callback that
 * removed it has returned. event_loop_free() removes all that is left.
 *
 * Order within one turn: descriptors, signals and children as the kernel reports them, then the deferred
 * calls, then timers that are due (earliest first). So a time limit never expires while the event that it
 * waits for has already come, even if this process was stopped or starved. A turn never starves anyone: a
 * callback that adds sources sees them served in a later turn; for deferred calls see event_source_defer().
 *
 * The add functions return NULL with errno set: ENOMEM, or what the system said. The loop is not thread-safe.
 */
#ifndef ASSAY_EVENT_LOOP_EVENT_LOOP_H
#define ASSAY_EVENT_LOOP_EVENT_LOOP_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct event_loop;
struct event_source;

#define EVENT_MILLISECOND INT64_C(1000000) /* nanoseconds */
#define EVENT_SECOND INT64_C(1000000000)   /* nanoseconds */

/* NULL when the system refuses descriptors or memory; FAILURE says why. */
struct event_loop *event_loop_new(struct failure *failure);
/* Removes all sources and restores the signal mask. Must not be called from a callback. NULL is fine. */
void event_loop_free(struct event_loop *loop);
void event_loop_cleanup(struct event_loop **loop);

/* Turns until event_loop_stop() is called, or until nothing is left that could ever call back (no descriptor
 * with interest, no armed timer, no signal, no child, no deferred call). 0, or a negative errno from the
 * kernel. */
int event_loop_run(struct event_loop *loop, struct failure *failure);

/* Waits at most TIMEOUT_NS (negative: without limit; 0: not at all) for an event, and calls back for all
 * events that have happened. May be called from a callback. 1 if a callback was called, 0 if not, or a
 * negative errno. Returns 0 at once when the loop was stopped. */
int event_loop_run_once(struct event_loop *loop, int64_t timeout_ns, struct failure *failure);

/* As event_loop_run_once(), but fails with -EINTR and a sentence when the loop was stopped. */
int event_loop_turn(struct event_loop *loop, int64_t timeout_ns, struct failure *failure);

/* Turns until *DONE, which a callback sets: 0; -ETIMEDOUT, without a sentence, after TIMEOUT_NS; -EINTR when
 * the loop was stopped; or a negative errno from the kernel. */
int event_loop_turn_until(struct event_loop *loop, const bool *done, int64_t timeout_ns,
                          struct failure *failure);

/* Asks event_loop_run() to return after the callback that is running; it stays stopped, and
 * event_loop_run_once() does nothing, until event_loop_resume(). Everyone who turns the loop by hand looks at
 * event_loop_is_stopped(). */
void event_loop_stop(struct event_loop *loop);
void event_loop_resume(struct event_loop *loop);
bool event_loop_is_stopped(const struct event_loop *loop);

/* clock_monotonic_ns() as of the start of this turn: one system call a turn, however many ask. */
int64_t event_loop_now(const struct event_loop *loop);

/* NULL is fine. */
void event_source_remove(struct event_source *source);

/* ---- descriptors */

enum event_interest {
    EVENT_READ = 1,
    EVENT_WRITE = 2,
    EVENT_HANGUP =
        4, /* only ever reported: the other side is gone, or the descriptor is in error; reading says which */
};

typedef void event_descriptor_callback(struct event_source *source, int descriptor, unsigned events,
                                       void *context);

/* Level-triggered. EVENT_HANGUP is reported whenever there is any interest at all; with none, the descriptor
 * is not watched, not even for that. The descriptor stays the caller's: remove the source before closing it.
 * A descriptor can be watched once; regular files and /dev/null cannot be watched (EPERM). */
struct event_source *event_loop_add_descriptor(struct event_loop *loop, int descriptor, unsigned events,
                                               event_descriptor_callback *callback, void *context);
/* Changes the interest; the same again costs nothing. 0 or a negative errno. */
int event_source_set_events(struct event_source *source, unsigned events);

/* ---- timers */

typedef void event_timer_callback(struct event_source *source, void *context);

/* First call DELAY_NS from now (negative: not armed), then every PERIOD_NS (0: once). A one-shot timer that
 * has fired stays, disarmed, until it is removed or set again. A periodic timer that is late skips what it
 * missed. */
struct event_source *event_loop_add_timer(struct event_loop *loop, int64_t delay_ns, int64_t period_ns,
                                          event_timer_callback *callback, void *context);
/* Arms anew; a negative delay disarms. Cannot fail. */
void event_source_set_timer(struct event_source *source, int64_t delay_ns, int64_t period_ns);
bool event_source_timer_is_armed(const struct event_source *source);

/* ---- signals */

typedef void event_signal_callback(struct event_source *source, int signal_number, void *context);

/* The signal is blocked in this thread while any source wants it; threads that exist already must have it
 * blocked too. Several sources may want one signal. SIGCHLD is the loop's own: EINVAL. */
struct event_source *event_loop_add_signal(struct event_loop *loop, int signal_number,
                                           event_signal_callback *callback, void *context);

/* ---- child processes */

struct event_child_exit {
    pid_t pid;
    bool signalled; /* ended by a signal */
    bool core_dumped;
    int code;            /* the exit status, or the signal's number */
    struct rusage usage; /* of the child and of the descendants that it waited for */
};

typedef void event_child_callback(struct event_source *source, const struct event_child_exit *exit,
                                  void *context);

/* Calls back once when the child PID has ended, while it is still a zombie, so that its number and its
 * process group's number cannot yet mean anybody else; the loop reaps it when the callback returns. A source
 * that is removed before leaves its child to the caller. Uses a pidfd, or SIGCHLD where the kernel has none
 * (before 5.3). */
struct event_source *event_loop_add_child(struct event_loop *loop, pid_t pid, event_child_callback *callback,
                                          void *context);

/* From now on the loop also reaps children that nobody watches: for a process that owns all of its children
 * and adopts orphans (PR_SET_CHILD_SUBREAPER). CALLBACK (may be NULL) hears of each after it was reaped;
 * SOURCE is then NULL. To be called before the first child is watched; children are then watched by SIGCHLD.
 * 0 or a negative errno. */
int event_loop_reap_orphans(struct event_loop *loop, event_child_callback *callback, void *context);

/* For tests: watch children by SIGCHLD even where there are pidfds. Before the first child. 0 or a negative
 * errno. */
int event_loop_avoid_pidfd(struct event_loop *loop);

/* ---- later */

typedef void event_deferred_callback(struct event_source *source, void *context);

/* A call that can be put off: event_source_defer() asks for it after the descriptors, signals and children of
 * this turn (if no turn is under way, of the next one); asking twice before it is served gives one call. What
 * a timer or a deferred call defers waits for the next turn, which then does not sleep. Cannot fail once
 * added. */
struct event_source *event_loop_add_deferred(struct event_loop *loop, event_deferred_callback *callback,
                                             void *context);
void event_source_defer(struct event_source *source);

#endif
