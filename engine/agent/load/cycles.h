/* Measures the frequency of a PU by instructions that run on it. */
#ifndef ASSAY_LOAD_CYCLES_H
#define ASSAY_LOAD_CYCLES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Spends COUNT cycles: runs COUNT additions each of which needs the result of the last, on x86-64 and on
 * aarch64, where an addition of two registers takes one cycle. (Adding a constant may take none: since Alder
 * Lake it is done by register renaming.) COUNT is a multiple of CYCLES_CHAIN. False on other processors,
 * where nothing is done.
 */
enum { CYCLES_CHAIN = 64 };
bool cycles_spend(uint64_t count);

/* The time stamp counter, which runs at the frequency of MPERF; 0 on processors without one. */
uint64_t cycles_time_stamp(void);

/* Readings of the counters at one moment; and the mean frequency between two readings while the PU was not
 * idle:
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
