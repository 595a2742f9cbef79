#include "engine/run/state/steadiness.h"

#include <errno.h>
#include <stdlib.h>

static struct steadiness_sample *at(const struct steadiness *steadiness, size_t i) {
    return &steadiness->samples[(steadiness->first + i) % steadiness->capacity];
}

static int grow(struct steadiness *steadiness) {
    size_t capacity = steadiness->capacity ? 2 * steadiness->capacity : 64;
    struct steadiness_sample *samples = calloc(capacity, sizeof *samples);
    if (!samples)
        return -ENOMEM;
    for (size_t i = 0; i < steadiness->count; i++)
        samples[i] = *at(steadiness, i);
    free(steadiness->samples);
    steadiness->samples = samples;
    steadiness->capacity = capacity;
    steadiness->first = 0;
    return 0;
}

static void thin_out(struct steadiness *steadiness) {
    size_t kept = 0;
    for (size_t i = 0; i < steadiness->count; i += 2)
        *at(steadiness, kept++) = *at(steadiness, i);
    steadiness->count = kept;
}

int steadiness_add(struct steadiness *steadiness, double window_seconds, int64_t time_ns, double value) {
    if (steadiness->count == STEADINESS_SAMPLES_MOST)
        thin_out(steadiness);
    if (steadiness->count == steadiness->capacity && grow(steadiness) < 0)
        return -ENOMEM;
    *at(steadiness, steadiness->count++) = (struct steadiness_sample){time_ns, value};
    /* One sample at the window's edge or before it stays, so that the samples span a whole window. */
    int64_t edge = time_ns - (int64_t)(window_seconds * 1e9);
    while (steadiness->count > 1 && at(steadiness, 1)->time_ns <= edge) {
        steadiness->first = (steadiness->first + 1) % steadiness->capacity;
        steadiness->count--;
    }
    steadiness->full = at(steadiness, 0)->time_ns <= edge;
    return 0;
}

void steadiness_clear(struct steadiness *steadiness) {
    free(steadiness->samples);
    *steadiness = (struct steadiness){0};
}

bool steadiness_state(const struct steadiness *steadiness, double window_seconds,
                      struct steadiness_state *ret) {
    size_t count = steadiness->count;
    if (!steadiness->full || count < 3)
        return false;
    /* From the last sample: times since boot would cost digits, and what is constant has no slope at all. */
    int64_t origin = at(steadiness, count - 1)->time_ns;
    double level = at(steadiness, count - 1)->value;
    double mean_time = 0, mean = 0, covariance = 0, variance = 0;
    for (size_t i = 0; i < count; i++) {
        mean_time += (double)(at(steadiness, i)->time_ns - origin) * 1e-9 / (double)count;
        mean += (at(steadiness, i)->value - level) / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        double time = (double)(at(steadiness, i)->time_ns - origin) * 1e-9 - mean_time;
        covariance += time * (at(steadiness, i)->value - level - mean);
        variance += time * time;
    }
    double rate = variance > 0 ? covariance / variance : 0, least = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        double time = (double)(at(steadiness, i)->time_ns - origin) * 1e-9 - mean_time;
        double residual = at(steadiness, i)->value - level - mean - rate * time;
        least = i == 0 || residual < least ? residual : least;
        most = i == 0 || residual > most ? residual : most;
    }
    *ret = (struct steadiness_state){
        .mean = level + mean, .slope = rate * window_seconds, .spread = most - least, .samples = count};
    return true;
}
