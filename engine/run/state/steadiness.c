#include "engine/run/state/steadiness.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <math.h>

/* The value of COLUMN in ROW; STEADINESS_MEAN: the mean of the known values. NAN: not known. */
static double value_of(const struct history *history, size_t row, size_t column) {
    const double *values = history_row(history, row);
    if (column != STEADINESS_MEAN)
        return values[column];
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < history->columns; i++)
        if (!isnan(values[i])) {
            sum += values[i];
            known++;
        }
    return known ? sum / (double)known : NAN;
}

/* Least-squares line through COUNT samples. The slope is per second; the spread is the range of residuals. */
static struct steadiness_state fit_line(const double *times, const double *values, size_t count) {
    double mean_time = 0, mean = 0, covariance = 0, variance = 0;
    for (size_t i = 0; i < count; i++) {
        mean_time += times[i] / (double)count;
        mean += values[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        covariance += (times[i] - mean_time) * (values[i] - mean);
        variance += (times[i] - mean_time) * (times[i] - mean_time);
    }
    double rate = variance > 0 ? covariance / variance : 0, least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        double residual = values[i] - mean - rate * (times[i] - mean_time);
        least = residual < least ? residual : least;
        most = residual > most ? residual : most;
    }
    return (struct steadiness_state){.mean = mean, .slope = rate, .spread = most - least, .samples = count};
}

bool steadiness_of(const struct history *history, size_t column, double window_seconds,
                   struct steadiness_state *ret) {
    cleanup_free double *times = xcalloc(history->count, sizeof *times),
                        *values = xcalloc(history->count, sizeof *values);
    int64_t last_ns = 0;
    double level = 0;
    size_t count = 0;
    bool full = false;
    /* Back from the last sample, and relative to it: times since boot would cost digits, and what is constant
     * has no slope at all. */
    for (size_t row = history->count; row-- > 0 && !full;) {
        double value = value_of(history, row, column);
        int64_t time_ns = history_time(history, row);
        if (isnan(value))
            continue;
        if (count == 0) {
            last_ns = time_ns;
            level = value;
        }
        times[count] = (double)(time_ns - last_ns) * 1e-9;
        values[count++] = value - level;
        full = time_ns <= last_ns - (int64_t)(window_seconds * 1e9);
    }
    *ret = (struct steadiness_state){.samples = count};
    if (!full || count < 3)
        return false;
    *ret = fit_line(times, values, count);
    ret->mean += level;
    ret->slope *= window_seconds;
    return true;
}
