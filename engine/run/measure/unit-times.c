#include "engine/run/measure/unit-times.h"

#include "engine/foundation/memory.h"

#include <math.h>
#include <stdlib.h>

static const double row_allowance = 1.1;
static const double seconds_max = 1e9; /* so that all sums fit */

struct row_times {
    float expected, longest; /* s; 0: not known */
};

struct unit_times {
    double longest, ratio; /* of all rows; 0: not known */
    struct row_times rows[];
};

struct unit_times *unit_times_new(size_t rows, const double *expected) {
    struct unit_times *times = xcalloc(1, sizeof *times + rows * sizeof *times->rows);
    for (size_t i = 0; expected && i < rows; i++)
        times->rows[i].expected = expected[i] > 0 && expected[i] <= seconds_max ? (float)expected[i] : 0;
    return times;
}

void unit_times_free(struct unit_times *times) {
    free(times);
}

void unit_times_take(struct unit_times *times, size_t row, int64_t took_ns) {
    struct row_times *of = &times->rows[row];
    double seconds = (double)took_ns * 1e-9;
    if (took_ns <= 0 || seconds > seconds_max)
        return;
    of->longest = fmaxf(of->longest, (float)seconds);
    times->longest = fmax(times->longest, seconds);
    if (of->expected > 0)
        times->ratio = fmax(times->ratio, seconds / (double)of->expected);
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
