#include "engine/run/state/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void history_reset(struct history *history, size_t columns, bool counters) {
    history_clear(history);
    history->columns = columns;
    history->counters = counters;
}

void history_clear(struct history *history) {
    free(history->times);
    free(history->values);
    *history = (struct history){0};
}

static size_t slot(const struct history *history, size_t row) {
    return (history->first + row) % history->capacity;
}

int64_t history_time(const struct history *history, size_t row) {
    return history->times[slot(history, row)];
}

const double *history_row(const struct history *history, size_t row) {
    return history->values + slot(history, row) * history->columns;
}

static size_t most_rows(const struct history *history) {
    size_t rows = HISTORY_BYTES_MOST / (sizeof(int64_t) + history->columns * sizeof(double));
    return rows < 16 ? 16 : rows;
}

static int grow(struct history *history) {
    size_t capacity = history->capacity ? 2 * history->capacity : 16;
    if (capacity > most_rows(history))
        capacity = most_rows(history);
    int64_t *times = calloc(capacity, sizeof *times);
    double *values = calloc(capacity, (history->columns ? history->columns : 1) * sizeof *values);
    if (!times || !values) {
        free(times);
        free(values);
        return -ENOMEM;
    }
    for (size_t row = 0; row < history->count; row++) {
        times[row] = history_time(history, row);
        memcpy(values + row * history->columns, history_row(history, row), history->columns * sizeof *values);
    }
    free(history->times);
    free(history->values);
    history->times = times;
    history->values = values;
    history->capacity = capacity;
    history->first = 0;
    return 0;
}

static void thin_out(struct history *history) {
    size_t kept = 0;
    for (size_t row = 0; row < history->count; row += 2, kept++) {
        size_t from = slot(history, row), to = slot(history, kept);
        history->times[to] = history->times[from];
        memmove(history->values + to * history->columns, history->values + from * history->columns,
                history->columns * sizeof *history->values);
    }
    history->count = kept;
}

static bool is_same(const struct history *history, size_t row, const double *values) {
    return memcmp(history_row(history, row), values, history->columns * sizeof *values) == 0;
}

int history_add(struct history *history, int64_t time_ns, const double *values) {
    size_t count = history->count;
    if (count > 0 && time_ns <= history_time(history, count - 1))
        return 0;
    if (history->counters && count > 1 && is_same(history, count - 1, values) &&
        is_same(history, count - 2, values)) {
        history->times[slot(history, count - 1)] = time_ns;
        return 0;
    }
    if (count == history->capacity && history->capacity < most_rows(history) && grow(history) < 0)
        return -ENOMEM;
    if (history->count == history->capacity)
        thin_out(history);
    size_t place = slot(history, history->count++);
    history->times[place] = time_ns;
    memcpy(history->values + place * history->columns, values, history->columns * sizeof *values);
    return 0;
}

/* The first row whose time is at or after TIME_NS; COUNT if there is none. */
static size_t find(const struct history *history, int64_t time_ns) {
    size_t low = 0, high = history->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (history_time(history, middle) < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void history_forget(struct history *history, int64_t time_ns) {
    size_t row = find(history, time_ns);
    if (row == history->count || (row > 0 && history_time(history, row) > time_ns))
        row = row > 0 ? row - 1 : 0;
    if (history->capacity == 0)
        return;
    history->first = (history->first + row) % history->capacity;
    history->count -= row;
}

bool history_span(const struct history *history, int64_t start_ns, int64_t end_ns, struct history_span *ret) {
    if (history->count == 0)
        return false;
    size_t first = find(history, start_ns), last = find(history, end_ns);
    struct history_span span = {.first = first, .last = last, .after = last < history->count};
    span.before = first < history->count && history_time(history, first) == start_ns;
    if (!span.before && first > 0) {
        span.first = first - 1;
        span.before = true;
    }
    if (span.first == history->count)
        span.first--;
    if (!span.after)
        span.last = history->count - 1;
    *ret = span;
    return true;
}
