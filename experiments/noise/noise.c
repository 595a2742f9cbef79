/*
 * Fixed work quantum: the same work again and again, each time timed; what takes longer than the others has
 * been interrupted. Prints quantiles, and a line for each detour. The README beside this file has the rest.
 *
 *     cc -O2 -I../kernels -o noise noise.c ../kernels/{buffer,settings}.c
 *
 * Exit codes: 0 done, 1 memory or output failed, 2 an option is wrong.
 */
#include "buffer.h"
#include "cycles.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUANTA, CYCLES, THRESHOLD, LINES, SETTINGS };
static const struct setting settings[SETTINGS] = {
    [QUANTA] = {"quanta", SETTING_WHOLE, .least = 10, .most = 100000000, .fallback = "10000",
                .help = "number of times that the quantum of work is done"},
    [CYCLES] = {"cycles", SETTING_WHOLE, .least = CYCLES_STEP, .most = 1000000000, .fallback = "100000",
                .help = "number of additions in a quantum; each takes a cycle"},
    [THRESHOLD] = {"threshold", SETTING_NUMBER, .low = 0, .high = 1e6, .fallback = "0.05",
                   .help = "share by which a quantum must exceed the median to count as a detour"},
    [LINES] = {"lines", SETTING_WHOLE, .most = 100000, .fallback = "10000",
               .help = "largest number of detours that are printed (the first)"},
};

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int compare(const void *left, const void *right) {
    const int64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The quantile SHARE (0 to 1) of COUNT sorted values in ns, in s. */
static double quantile(const int64_t *sorted, uint64_t count, double share) {
    uint64_t rank = (uint64_t)((double)count * share);
    return 1e-9 * (double)sorted[rank < count ? rank : count - 1];
}

int main(int argc, char **argv) {
    struct value values[SETTINGS];
    settings_read(argc, argv, "", settings, SETTINGS, values);
    uint64_t quanta = values[QUANTA].whole, cycles = values[CYCLES].whole, detours = 0;
    int64_t *ends = buffer_allocate((quanta + 1) * sizeof *ends, "the times of the quanta"),
            *sorted = buffer_allocate(quanta * sizeof *sorted, "the times of the quanta");
    memset(ends, 1, (quanta + 1) * sizeof *ends); /* so that no page is new while it is measured */
    for (uint64_t i = 0; i <= quanta; i++) {      /* the first one is the warm-up, and begins the others */
        cycles_spend(cycles);
        ends[i] = now_ns();
    }
    for (uint64_t i = 0; i < quanta; i++)
        sorted[i] = ends[i + 1] - ends[i];
    qsort(sorted, quanta, sizeof *sorted, compare);
    int64_t median_ns = sorted[quanta / 2];
    double total = 1e-9 * (double)(ends[quanta] - ends[0]), median = 1e-9 * (double)median_ns;
    for (uint64_t i = 0; i < quanta; i++) {
        int64_t late_ns = ends[i + 1] - ends[i] - median_ns;
        if ((double)late_ns > values[THRESHOLD].number * (double)median_ns && detours++ < values[LINES].whole)
            printf("detour %.9f %.9f\n", 1e-9 * (double)(ends[i] - ends[0]), 1e-9 * (double)late_ns);
    }
    printf("quanta %llu detours %llu total %.9f\n", (unsigned long long)quanta, (unsigned long long)detours,
           total);
    printf("minimum %.9f median %.9f q99 %.9f q999 %.9f maximum %.9f\n", quantile(sorted, quanta, 0), median,
           quantile(sorted, quanta, 0.99), quantile(sorted, quanta, 0.999), quantile(sorted, quanta, 1));
    printf("lost %.9f frequency %.0f\n", 1 - (double)quanta * quantile(sorted, quanta, 0) / total,
           (double)(cycles / CYCLES_STEP * CYCLES_STEP) / median);
    if (fflush(stdout) != 0)
        die(EXIT_SYSTEM, "cannot write the results");
    return 0;
}
