/*
 * The one way in which a C test waits for what no call waits for: until it is so, for at most 120 s, which is
 * more than any machine needs; what was seen last is printed then.
 */
#ifndef ASSAY_TESTS_WAIT_H
#define ASSAY_TESTS_WAIT_H

#include "engine/event-loop/event-loop.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

enum { WAIT_LIMIT_MS = 120000 };

/* The time that passes for everyone: the test may have another clock. */
static inline int64_t wait_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* LOOP is served for some milliseconds; NULL: sleeps so long. */
static inline void turn_or_sleep(struct event_loop *loop) {
    if (loop)
        assert_true(event_loop_run_once(loop, 5 * EVENT_MILLISECOND, NULL) >= 0);
    else
        (void)poll(NULL, 0, 2);
}

/* Until CONDITION holds; between two looks LOOP is served, or nothing is done if it is NULL. What follows is
 * a printf format and its arguments: the state that is printed if it never does. */
#define wait_until(loop, condition, ...)                                                                     \
    do {                                                                                                     \
        int64_t wait_end = wait_now_ns() + WAIT_LIMIT_MS * EVENT_MILLISECOND;                                \
        for (; !(condition); turn_or_sleep(loop))                                                            \
            if (wait_now_ns() > wait_end) {                                                                  \
                print_error("last seen: " __VA_ARGS__);                                                      \
                fail_msg("; not within %d ms: %s", WAIT_LIMIT_MS, #condition);                               \
            }                                                                                                \
    } while (0)

#endif
