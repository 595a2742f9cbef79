/*
 * Two clocks: wall time for stamps, monotonic time for durations. Nanoseconds, integers. Everything that
 * reads the time, sleeps, or waits with a limit does it here or through the event loop, because a test can
 * replace the source of time.
 */
#ifndef ASSAY_FOUNDATION_CLOCK_H
#define ASSAY_FOUNDATION_CLOCK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

int64_t clock_wall_ns(void);      /* CLOCK_REALTIME, since 1970-01-01T00:00:00Z */
int64_t clock_monotonic_ns(void); /* CLOCK_MONOTONIC */

/* Sleeps so long, or until a signal comes. */
void clock_sleep_ns(int64_t duration_ns);
/* poll(2) of one descriptor with a limit on this clock; negative: none. */
int clock_poll(struct pollfd *item, int64_t limit_ns);

/* ---- for tests, and for whoever waits in another way */

struct clock_source {
    int64_t (*wall_ns)(void *context);
    int64_t (*monotonic_ns)(void *context);
    /* NULL: time passes by itself, but may also jump, so that nobody waits longer than LOOK_AGAIN_NS before
     * reading the clock again. Otherwise the clock is virtual: nobody waits, and who has nothing to do before
     * DEADLINE_NS (monotonic; INT64_MAX: ever) calls this. It lets others act, or sets the clock forward, to
     * the deadline at most; it is called again until the deadline is there or there is something to do. */
    void (*pass)(void *context, int64_t deadline_ns);
    int64_t look_again_ns;
    void *context;
};

/* SOURCE is not copied; NULL: the system's clocks. Before threads are started. */
void clock_use(const struct clock_source *source);

/* How long poll(2) and its like may wait for DEADLINE_NS (INT64_MAX: none), in real time; negative: for ever.
 */
int64_t clock_wait_ns(int64_t deadline_ns);
/* The same as a time of CLOCK_MONOTONIC at which to look again; not for a virtual clock. */
int64_t clock_system_ns(int64_t deadline_ns);
/* After such a wait, in which nothing came: is there to be another one, the deadline being yet to come? A
 * virtual clock moves in this call. With the system's clock one wait is enough: false. */
bool clock_waits_again(int64_t deadline_ns);

enum { CLOCK_TEXT_SIZE = 40 };

/* "2026-11-20T10:02:03.123+00:00": UTC, milliseconds, the one form that RO-Crate's validators take. */
const char *clock_format(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]);
/* "2026-11-20T10:02:03.123456789Z". */
const char *clock_format_ns(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]);
/* Reads a time such as the former, with any fraction of a second and any offset from UTC. False: it is none,
 * or has no offset. */
bool clock_parse(const char *text, int64_t *ret_ns);
/* "20261120T100203Z", for file names. */
const char *clock_format_compact(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]);

#endif
