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

#endif
