/* Declarations shared by the files of the event loop; not for other rooms. */
#ifndef ASSAY_EVENT_LOOP_EVENT_SOURCE_H
#define ASSAY_EVENT_LOOP_EVENT_SOURCE_H

#include "engine/event-loop/event-loop.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/queue.h>

enum event_kind {
    EVENT_KIND_DESCRIPTOR,
    EVENT_KIND_TIMER,
    EVENT_KIND_SIGNAL,
    EVENT_KIND_CHILD,
    EVENT_KIND_DEFERRED
};

struct event_source {
    struct event_loop *loop;
    TAILQ_ENTRY(event_source) all; /* in loop->sources, until the memory is freed */
    enum event_kind kind;
    bool removed;
    bool internal;   /* the loop's own: does not keep event_loop_run() going */
    uint64_t served; /* the turn in which it was last called: an outer turn's older report is stale then */
    void *context;
    SLIST_ENTRY(event_source) buried;
    union {
        struct {
            event_descriptor_callback *callback;
            int descriptor;
            unsigned events; /* 0: not in the epoll set */
        } descriptor;
        struct {
            event_timer_callback *callback;
            int64_t deadline, period;
            uint64_t order; /* among equal deadlines, as they were armed */
            uint64_t armed; /* the turn in which it was armed */
            size_t slot;    /* in loop->timers; TIMER_DISARMED */
        } timer;
        struct {
            event_signal_callback *callback;
            int number;
        } signal;
        struct {
            event_child_callback *callback;
            pid_t pid;
            int pidfd; /* -1: watched by SIGCHLD */
        } child;
        struct {
            event_deferred_callback *callback;
            TAILQ_ENTRY(event_source) queue;
            uint64_t generation;
            bool pending;
        } deferred;
    };
};

struct event_loop {
    int epoll;
    TAILQ_HEAD(event_sources, event_source)
    sources;                           /* all that have memory, removed ones included, newest last */
    size_t active;                     /* what keeps event_loop_run() going */
    unsigned depth;                    /* turns under way */
    SLIST_HEAD(, event_source) buried; /* removed sources wait for depth 0 */
    bool stopped;
    bool plain_wait; /* no epoll_pwait2: milliseconds */
    uint64_t turn;
    int64_t now;

    struct event_source **timers; /* a binary heap: the earliest first */
    size_t timer_count, timer_capacity, timer_sources;
    uint64_t timer_order;

    TAILQ_HEAD(, event_source) deferred;
    uint64_t deferred_generation;

    int signals; /* the signalfd, or -1 */
    struct event_source *signal_source;
    sigset_t wanted;  /* in the signalfd */
    sigset_t blocked; /* those of them that were not blocked before */

    bool avoid_pidfd;
    bool sigchld; /* children are watched by SIGCHLD */
    bool orphans;
    event_child_callback *orphan_callback;
    void *orphan_context;
    struct event_source *child_check; /* deferred: looks for children that ended before they were watched */
};

enum { TIMER_LIMIT = 1 << 20 };
#define TIMER_DISARMED SIZE_MAX

/* Allocates and links; NULL with errno set. */
struct event_source *event_source_new(struct event_loop *loop, enum event_kind kind, void *context);
/* SOURCE, or, where R is a negative errno, NULL with errno set and SOURCE removed. */
struct event_source *event_source_added(struct event_source *source, int r);
/* Puts DESCRIPTOR into the epoll set for SOURCE, or changes or takes it out. 0 or a negative errno. */
int event_loop_watch(struct event_loop *loop, int operation, int descriptor, uint32_t events,
                     struct event_source *source);

void timer_remove(struct event_source *source);
/* Calls those that are due; how many. */
unsigned serve_timers(struct event_loop *loop);
/* The earliest deadline, or INT64_MAX. */
int64_t timer_earliest(const struct event_loop *loop);

void signal_remove(struct event_source *source);
/* Adds a signal to, or removes it from, the signalfd and the thread's mask. 0 or a negative errno. */
int signal_want(struct event_loop *loop, int number);
void signal_unwant(struct event_loop *loop, int number);

void child_remove(struct event_source *source);
/* A pidfd is readable; 1 if the callback was called. */
unsigned serve_child(struct event_source *source);
/* SIGCHLD came. */
void child_collect(struct event_loop *loop);

#endif
