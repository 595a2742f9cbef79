/* How fast a PU is, from the inside. */
#ifndef ASSAY_LOAD_CYCLES_H
#define ASSAY_LOAD_CYCLES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * COUNT additions each of which needs the one before it: as many cycles, on x86-64 and on aarch64, where an
 * addition of two registers takes one cycle. (One of a constant may take none: since Alder Lake it is done
 * while it is renamed.) COUNT is a multiple of CYCLES_CHAIN. False on other processors: nothing was done.
 */
enum { CYCLES_CHAIN = 64 };
bool cycles_spend(uint64_t count);

/* The time stamp counter; 0 on processors without one. It runs at the frequency at which MPERF counts. */
uint64_t cycles_time_stamp(void);

/* What counters said at a moment, and the mean frequency between two of them while the PU was not asleep:
 *
 *   (APERF2 - APERF1) / (MPERF2 - MPERF1) * (TSC2 - TSC1) / time
 *
 * because MPERF counts at the rate of the time stamp counter (Intel SDM 3B, 15.5.4; AMD APM 2, 17.3). 0 if a
 * counter stood still or ran back. */
struct cycles_counters {
    uint64_t actual, maximum, stamp; /* APERF, MPERF, TSC */
    int64_t now_ns;
};
double cycles_mean_hz(const struct cycles_counters *from, const struct cycles_counters *to);

#endif
