#include "engine/run/measure/held-units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t slot(const struct held_units *held, size_t i) {
    return (held->first + i) % held->capacity;
}

static int grow(struct held_units *held) {
    size_t capacity = held->capacity ? 2 * held->capacity : 16;
    struct measured_unit *units = calloc(capacity, sizeof *units);
    double *responses = calloc(capacity, (held->width ? held->width : 1) * sizeof *responses);
    if (!units || !responses) {
        free(units);
        free(responses);
        return -ENOMEM;
    }
    for (size_t i = 0; i < held->count; i++) {
        units[i] = held->units[slot(held, i)];
        memcpy(responses + i * held->width, held->responses + slot(held, i) * held->width,
               held->width * sizeof *responses);
    }
    free(held->units);
    free(held->responses);
    held->units = units;
    held->responses = responses;
    held->capacity = capacity;
    held->first = 0;
    return 0;
}

int held_units_add(struct held_units *held, const struct measured_unit *unit, const double *responses,
                   size_t width) {
    held->width = width;
    if (held->count == held->capacity && grow(held) < 0)
        return -ENOMEM;
    size_t place = slot(held, held->count++);
    held->units[place] = *unit;
    memcpy(held->responses + place * width, responses, width * sizeof *responses);
    return 0;
}

void held_units_end_last(struct held_units *held, int64_t end_ns) {
    if (held->count == 0)
        return;
    struct measured_unit *last = &held->units[slot(held, held->count - 1)];
    if (last->end_ns < 0)
        last->end_ns = end_ns > last->begun_ns ? end_ns : last->begun_ns;
}

const struct measured_unit *held_units_first(const struct held_units *held, const double **ret_responses) {
    if (held->count == 0)
        return NULL;
    *ret_responses = held->responses + slot(held, 0) * held->width;
    return &held->units[slot(held, 0)];
}

void held_units_drop(struct held_units *held) {
    held->first = slot(held, 1);
    held->count--;
}

void held_units_clear(struct held_units *held) {
    free(held->units);
    free(held->responses);
    *held = (struct held_units){0};
}
