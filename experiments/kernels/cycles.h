/*
 * A fixed amount of work that depends on the clock of the core and on nothing else: additions of which each
 * needs the result of the one before. An addition of two registers takes one cycle on every x86-64 and
 * AArch64 core of the last twenty years, so COUNT of them in t seconds are a frequency of COUNT / t.
 */
#ifndef ASSAY_KERNELS_CYCLES_H
#define ASSAY_KERNELS_CYCLES_H

#include <stdint.h>

enum { CYCLES_STEP = 64 };

/* COUNT, rounded down to a multiple of CYCLES_STEP. */
static inline void cycles_spend(uint64_t count) {
    uint64_t sum = 0, one = 1;
    for (uint64_t i = count / CYCLES_STEP; i > 0; i--) {
#if defined __x86_64__
        __asm__ volatile(".rept 64\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(one));
#elif defined __aarch64__
        __asm__ volatile(".rept 64\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(one));
#else
        for (int step = 0; step < CYCLES_STEP; step++) {
            sum += one;
            __asm__ volatile("" : "+r"(sum));
        }
#endif
    }
}

#endif
