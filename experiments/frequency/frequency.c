/*
 * At which frequency cores run when so many of them are busy: one row keeps some cores busy for some seconds,
 * and counts meanwhile how fast cycles pass on each of them (cycles.h). The README beside this file has the
 * rest.
 *
 *     cc -O3 -march=native -I../kernels -o frequency frequency.c \
 *         ../kernels/{buffer,rows,settings,team}.c -lpthread
 *
 * Exit codes: 0 done, 1 memory or input and output failed, 2 an option or a row is wrong.
 */
#include "buffer.h"
#include "cycles.h"
#include "rows.h"
#include "team.h"

#include <stdlib.h>

enum {
    SAMPLES = 4096, /* of a core; later ones replace the first */
    CHAIN = 50048,  /* cycles of a sample: 12 to 20 us, in which a frequency does not change by itself */
    ROUNDS = 50000, /* of the vector load between two samples: some 100 us */
    VECTORS = 10,   /* independent sums of products: as many as two units of a latency of five need */
};

static const char *const loads[] = {"integer", "vector", NULL};
static const char *const responses[] = {"frequency", "slowest", "fastest", NULL};

enum { CORES, LOAD, SECONDS, MOST_CORES, SETTINGS };
static const struct setting settings[SETTINGS] = {
    [CORES] = {"cores", SETTING_WHOLE, .least = 1, .most = 4096, .in_rows = true, .help = "busy cores"},
    [LOAD] = {"load", SETTING_WORD, .words = loads, .fallback = "integer", .in_rows = true,
              .help = "what the cores compute"},
    [SECONDS] = {"seconds", SETTING_NUMBER, .low = 1e-3, .high = 86400, .fallback = "10", .in_rows = true,
                 .help = "how long the cores compute, s; the second half is measured"},
    [MOST_CORES] = {"most-cores", SETTING_WHOLE, .least = 1, .most = 4096,
                    .help = "largest number of cores of the rows"},
};
static struct value values[SETTINGS];

/* One register: wider ones would be kept in memory between two operations, which then wait for it. */
#if defined __AVX512F__
enum { WIDTH = 64 };
#elif defined __AVX__
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif
enum { NUMBERS = WIDTH / sizeof(double) };
typedef double vector __attribute__((vector_size(WIDTH)));

static struct core {
    double frequency; /* Hz, the median of its samples */
    volatile double sink;
    double samples[SAMPLES];
} * cores;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ROUNDS of multiplications and additions of vectors, the vector load. Returns a result, so that the compiler
 * keeps them. */
static double multiply_and_add(double seed) {
    vector sums[VECTORS], factor, term;
    for (int k = 0; k < NUMBERS; k++) {
        factor[k] = 0.7 + 0.01 * k + seed; /* sums approach term / (1 - factor) */
        term[k] = 0.1234567 * (k + 1);
    }
    for (int i = 0; i < VECTORS; i++)
        sums[i] = term * (double)(i + 1);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < VECTORS; i++)
            sums[i] = sums[i] * factor + term;
    double sum = 0;
    for (int i = 0; i < VECTORS; i++)
        sum += sums[i][i % NUMBERS];
    return sum;
}

static int compare(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Keeps core INDEX busy for the seconds of the row and samples its frequency in the second half. Sets the
 * median of the samples. */
static void keep_busy(unsigned index, void *context) {
    (void)context;
    struct core *core = &cores[index];
    double begin = now(), end = begin + values[SECONDS].number, half = begin + values[SECONDS].number / 2, at;
    size_t count = 0;
    do {
        if (values[LOAD].word == 1)
            core->sink = multiply_and_add(1e-9 * index);
        double before = now();
        cycles_spend(CHAIN);
        at = now();
        if (at > half)
            core->samples[count++ % SAMPLES] = CHAIN / (at - before);
    } while (at < end || count == 0);
    count = count < SAMPLES ? count : SAMPLES;
    qsort(core->samples, count, sizeof *core->samples, compare);
    core->frequency = core->samples[count / 2];
}

int main(int argc, char **argv) {
    settings_read(argc, argv, "rows on standard input", settings, SETTINGS, values);
    settings_require(settings, SETTINGS, values);
    fact_process(NULL); /* before the team is pinned */
    team_start((unsigned)values[MOST_CORES].whole);
    cores = buffer_allocate(values[MOST_CORES].whole * sizeof *cores, "samples");
    rows_begin(settings, SETTINGS, values);
    rows_answers(responses, "frequency,slowest,fastest");
    while (rows_next()) {
        struct stopwatch watch;
        unsigned count = (unsigned)values[CORES].whole;
        double sum = 0, slowest = 0, fastest = 0;
        if (count > values[MOST_CORES].whole)
            rows_refuse("a row has %u cores; expected at most --most-cores %llu", count,
                        (unsigned long long)values[MOST_CORES].whole);
        team_run(count, keep_busy, NULL, &watch);
        for (unsigned i = 0; i < count; i++) {
            sum += cores[i].frequency;
            slowest = i == 0 || cores[i].frequency < slowest ? cores[i].frequency : slowest;
            fastest = cores[i].frequency > fastest ? cores[i].frequency : fastest;
        }
        rows_answer(&watch, (const double[]){sum / count, slowest, fastest});
    }
    return 0;
}
