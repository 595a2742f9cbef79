/*
 * A clock that stands still until whoever reads it has nothing to do, and then is at the next deadline. For
 * programs in which nothing happens by itself: no other process, no thread.
 */
#ifndef ASSAY_TESTS_SIMULATION_VIRTUAL_CLOCK_H
#define ASSAY_TESTS_SIMULATION_VIRTUAL_CLOCK_H

#include "engine/foundation/clock.h"

#include <stdlib.h>

#define VIRTUAL_CLOCK_START INT64_C(1000000000000)            /* CLOCK_MONOTONIC at its beginning, ns */
#define VIRTUAL_CLOCK_WALL_START INT64_C(1800000000000000000) /* CLOCK_REALTIME: January 2027 */

static int64_t virtual_now_ns = VIRTUAL_CLOCK_START;

static inline int64_t virtual_wall_ns(void *context) {
    (void)context;
    return VIRTUAL_CLOCK_WALL_START + virtual_now_ns - VIRTUAL_CLOCK_START;
}

static inline int64_t virtual_monotonic_ns(void *context) {
    (void)context;
    return virtual_now_ns;
}

/* Nothing will ever happen where there is no deadline: better an end than a wait. */
static inline void virtual_pass(void *context, int64_t deadline_ns) {
    (void)context;
    if (deadline_ns == INT64_MAX)
        abort();
    virtual_now_ns = deadline_ns;
}

static const struct clock_source virtual_clock = {
    .wall_ns = virtual_wall_ns, .monotonic_ns = virtual_monotonic_ns, .pass = virtual_pass};

#endif
