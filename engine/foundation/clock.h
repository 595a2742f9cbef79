/* Two clocks: wall time for stamps, monotonic time for durations. Nanoseconds, integers. */
#ifndef ASSAY_FOUNDATION_CLOCK_H
#define ASSAY_FOUNDATION_CLOCK_H

#include <stdint.h>

int64_t clock_wall_ns(void);      /* CLOCK_REALTIME, since 1970-01-01T00:00:00Z */
int64_t clock_monotonic_ns(void); /* CLOCK_MONOTONIC */

enum { CLOCK_TEXT_SIZE = 40 };

/* "2026-11-20T10:02:03.123+00:00": UTC, milliseconds, the one form that RO-Crate's validators take. */
const char *clock_format(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]);
/* "20261120T100203Z", for file names. */
const char *clock_format_compact(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]);

#endif
