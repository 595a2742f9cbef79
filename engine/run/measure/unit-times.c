#include "engine/run/measure/unit-times.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    BINS_AN_OCTAVE = 8,
    OCTAVES = 80, /* 2^-40 to 2^40: what is beyond counts as that */
    BINS = BINS_AN_OCTAVE * OCTAVES,
};
static const double quantile = 0.9, more_of_a_row = 1.1;
static const double most_seconds = 1e9; /* so that all sums fit */

struct unit_times {
    size_t rows, nodes;
    float *expected; /* a row, s; NULL: nothing is */
    float *longest;  /* a row, s; 0: not known */
    float *of_nodes; /* a row and node; NULL: too many */
    double longest_of_all;
    uint64_t ratios[BINS], ratio_count;
};

static float *copy_expected(size_t rows, const double *expected) {
    float *copy = calloc(rows + 1, sizeof *copy);
    for (size_t i = 0; copy && i < rows; i++)
        copy[i] = expected[i] > 0 && expected[i] <= most_seconds ? (float)expected[i] : 0;
    return copy;
}

struct unit_times *unit_times_new(size_t rows, size_t nodes, const double *expected) {
    struct unit_times *times = calloc(1, sizeof *times);
    if (!times)
        return NULL;
    times->rows = rows;
    times->nodes = nodes;
    times->longest = calloc(rows + 1, sizeof *times->longest);
    if (expected)
        times->expected = copy_expected(rows, expected);
    bool pairs = nodes > 0 && rows <= UNIT_TIMES_PAIRS_MOST / nodes;
    if (pairs)
        times->of_nodes = calloc(rows * nodes + 1, sizeof *times->of_nodes);
    if (!times->longest || (expected && !times->expected) || (pairs && !times->of_nodes)) {
        unit_times_free(times);
        return NULL;
    }
    return times;
}

void unit_times_free(struct unit_times *times) {
    if (!times)
        return;
    free(times->expected);
    free(times->longest);
    free(times->of_nodes);
    free(times);
}

static void take_ratio(struct unit_times *times, double ratio) {
    double bin = floor((log2(ratio) + OCTAVES / 2.0) * BINS_AN_OCTAVE);
    times->ratios[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : (size_t)bin]++;
    times->ratio_count++;
}

/* The upper edge of the bin that the quantile lies in; 1 while nothing is known. */
static double find_ratio(const struct unit_times *times) {
    if (times->ratio_count == 0)
        return 1;
    uint64_t wanted = (uint64_t)ceil(quantile * (double)times->ratio_count), seen = 0;
    size_t bin = 0;
    while (bin + 1 < BINS && (seen += times->ratios[bin]) < wanted)
        bin++;
    return exp2((double)(bin + 1) / BINS_AN_OCTAVE - OCTAVES / 2.0);
}

static void raise(float *value, double seconds) {
    if (seconds > (double)*value)
        *value = (float)seconds;
}

void unit_times_take(struct unit_times *times, size_t row, size_t node, int64_t took_ns) {
    double seconds = (double)took_ns * 1e-9;
    if (took_ns <= 0 || seconds > most_seconds || row >= times->rows || node >= times->nodes)
        return;
    raise(&times->longest[row], seconds);
    if (times->of_nodes)
        raise(&times->of_nodes[row * times->nodes + node], seconds);
    if (seconds > times->longest_of_all)
        times->longest_of_all = seconds;
    if (times->expected && times->expected[row] > 0)
        take_ratio(times, seconds / (double)times->expected[row]);
}

static double predict(const struct unit_times *times, size_t row, size_t node, enum unit_times_basis *ret) {
    if (row < times->rows && node < times->nodes && times->of_nodes &&
        times->of_nodes[row * times->nodes + node] > 0) {
        *ret = UNIT_TIMES_ROW_ON_NODE;
        return more_of_a_row * (double)times->of_nodes[row * times->nodes + node];
    }
    if (row < times->rows && times->longest[row] > 0) {
        *ret = UNIT_TIMES_ROW;
        return more_of_a_row * (double)times->longest[row];
    }
    if (row < times->rows && times->expected && times->expected[row] > 0) {
        *ret = UNIT_TIMES_EXPECTED;
        return find_ratio(times) * (double)times->expected[row];
    }
    *ret = times->longest_of_all > 0 ? UNIT_TIMES_LONGEST : UNIT_TIMES_UNKNOWN;
    return times->longest_of_all;
}

int64_t unit_times_predict(const struct unit_times *times, size_t row, size_t node,
                           enum unit_times_basis *ret_basis) {
    enum unit_times_basis basis;
    double seconds = predict(times, row, node, &basis);
    if (ret_basis)
        *ret_basis = basis;
    if (basis == UNIT_TIMES_UNKNOWN)
        return -1;
    return seconds > most_seconds ? (int64_t)(most_seconds * 1e9) : (int64_t)(seconds * 1e9);
}
