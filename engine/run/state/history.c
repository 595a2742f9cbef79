#include "engine/run/state/history.h"

#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

void history_reset(struct history *history, size_t columns) {
    history_clear(history);
    history->columns = columns;
}

void history_clear(struct history *history) {
    free(history->times);
    free(history->values);
    *history = (struct history){0};
}

int64_t history_time(const struct history *history, size_t row) {
    return history->times[history->first + row];
}

const double *history_row(const struct history *history, size_t row) {
    return history->values + (history->first + row) * history->columns;
}

/* Row FROM is row TO of those that start the memory. */
static void move(struct history *history, size_t from, size_t to) {
    history->times[to] = history_time(history, from);
    memmove(history->values + to * history->columns, history_row(history, from),
            history->columns * sizeof *history->values);
}

/* Makes room for one more row: forgotten rows at the front are removed, or the arrays grow, or, at
 * HISTORY_BYTES_MAX, every second row is dropped. */
static void make_room(struct history *history) {
    size_t most = HISTORY_BYTES_MAX / (sizeof(int64_t) + history->columns * sizeof(double));
    size_t step = 1, kept = 0;
    if (history->first + history->count < history->capacity)
        return;
    if (most < 16)
        most = 16;
    if (history->first <= history->capacity / 2 && history->capacity < most) {
        size_t capacity = history->capacity ? 2 * history->capacity : 16;
        history->capacity = capacity < most ? capacity : most;
        history->times = xrealloc(history->times, history->capacity * sizeof *history->times);
        history->values =
            xrealloc(history->values, history->capacity * history->columns * sizeof *history->values);
        return;
    }
    if (history->first <= history->capacity / 2)
        step = 2;
    for (size_t row = 0; row < history->count; row += step)
        move(history, row, kept++);
    history->first = 0;
    history->count = kept;
}

void history_add(struct history *history, int64_t time_ns, const double *values) {
    if (history->count > 0 && time_ns <= history_time(history, history->count - 1))
        return;
    make_room(history);
    size_t end = history->first + history->count++;
    history->times[end] = time_ns;
    memcpy(history->values + end * history->columns, values, history->columns * sizeof *values);
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
    if (history->count < 2 || history_time(history, 1) > time_ns)
        return;
    size_t row = find(history, time_ns);
    if (row == history->count || (row > 0 && history_time(history, row) > time_ns))
        row = row > 0 ? row - 1 : 0;
    history->first += row;
    history->count -= row;
}

/* Finds the rows around START_NS to END_NS by bisection. False: there are no rows. */
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
