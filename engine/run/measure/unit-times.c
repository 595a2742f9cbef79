#include "engine/run/measure/unit-times.h"

#include "engine/foundation/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static const double row_allowance = 1.1;
static const double seconds_max = 1e9; /* so that all sums fit */

struct row_times {
    float expected, longest; /* s; 0: not known */
    float mean;              /* s, of `ended` units: from the end of the unit before to their own */
    uint32_t ended, left;    /* units */
};

struct unit_times {
    double longest, ratio; /* of all rows; 0: not known */
    double usual;          /* weight of a row of which nothing is expected */
    double seconds_ended, weight_ended;
    size_t count;
    struct row_times rows[];
};

struct unit_times *unit_times_new(size_t rows, const double *expected) {
    struct unit_times *times = xcalloc(1, sizeof *times + rows * sizeof *times->rows);
    size_t known = 0;
    times->count = rows;
    for (size_t i = 0; expected && i < rows; i++) {
        times->rows[i].expected = expected[i] > 0 && expected[i] <= seconds_max ? (float)expected[i] : 0;
        times->usual += (double)times->rows[i].expected;
        known += times->rows[i].expected > 0;
    }
    times->usual = known > 0 ? times->usual / (double)known : 1;
    return times;
}

void unit_times_free(struct unit_times *times) {
    free(times);
}

void unit_times_add(struct unit_times *times, size_t row, int64_t took_ns) {
    struct row_times *of = &times->rows[row];
    double seconds = (double)took_ns * 1e-9;
    if (took_ns <= 0 || seconds > seconds_max)
        return;
    of->longest = fmaxf(of->longest, (float)seconds);
    times->longest = fmax(times->longest, seconds);
    if (of->expected > 0)
        times->ratio = fmax(times->ratio, seconds / (double)of->expected);
}

/* ---- All units that are left */

static double weight_of(const struct unit_times *times, const struct row_times *of) {
    return of->expected > 0 ? (double)of->expected : times->usual;
}

void unit_times_plan(struct unit_times *times, size_t row, int64_t units) {
    int64_t left = (int64_t)times->rows[row].left + units;
    times->rows[row].left = left < 0 ? 0 : (uint32_t)left;
}

void unit_times_plan_none(struct unit_times *times) {
    for (size_t i = 0; i < times->count; i++)
        times->rows[i].left = 0;
}

void unit_times_end(struct unit_times *times, size_t row, double seconds) {
    struct row_times *of = &times->rows[row];
    unit_times_plan(times, row, -1);
    if (seconds < 0 || seconds > seconds_max)
        return;
    of->mean += (float)((seconds - (double)of->mean) / ++of->ended);
    times->seconds_ended += seconds;
    times->weight_ended += weight_of(times, of);
}

double unit_times_mean(const struct unit_times *times, size_t row) {
    const struct row_times *of = &times->rows[row];
    if (of->ended > 0)
        return (double)of->mean;
    return times->weight_ended > 0 ? weight_of(times, of) * times->seconds_ended / times->weight_ended : -1;
}

double unit_times_left(const struct unit_times *times) {
    double left = 0;
    bool is_known = true;
    for (size_t i = 0; i < times->count; i++)
        if (times->rows[i].left > 0) {
            double mean = unit_times_mean(times, i);
            is_known = is_known && mean >= 0;
            left += mean * times->rows[i].left;
        }
    return is_known ? left : -1;
}

int64_t unit_times_predict(const struct unit_times *times, size_t row) {
    const struct row_times *of = &times->rows[row];
    double seconds = times->longest;
    if (of->longest > 0)
        seconds = row_allowance * (double)of->longest;
    else if (of->expected > 0)
        seconds = (times->ratio > 0 ? times->ratio : 1) * (double)of->expected;
    return seconds > 0 ? (int64_t)(fmin(seconds, seconds_max) * 1e9) : -1;
}
