/*
 * The last samples of one probe of one node, to find out what happened between two instants. Rows,
 * times ascending. It is bounded, and forgets no time: when it is full, every second row goes.
 */
#ifndef ASSAY_STATE_HISTORY_H
#define ASSAY_STATE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_BYTES_MAX = 4 << 20 };

/* Zeroed memory has no columns and no rows. */
struct history {
    size_t columns;
    size_t first, count, capacity; /* rows; those before the first are forgotten */
    int64_t *times;                /* owned; ns */
    double *values;                /* owned; COLUMNS a row; nan: not known */
};

/* Forgets all, and has COLUMNS from now on. */
void history_reset(struct history *history, size_t columns);
void history_clear(struct history *history);
/* A row whose time is not after the last one's is left out. */
void history_add(struct history *history, int64_t time_ns, const double *values);
/* Nothing before the last row at or before TIME_NS will be asked for. */
void history_forget(struct history *history, int64_t time_ns);

/* The rows that cover START..END: from the last one at or before START (the first, if there is none) to the
 * first at or after END (the last, if there is none yet). False when there are no rows. */
struct history_span {
    size_t first, last; /* for history_row() */
    bool before, after; /* is there one at or before START, at or after END? */
};
bool history_span(const struct history *history, int64_t start_ns, int64_t end_ns, struct history_span *ret);
int64_t history_time(const struct history *history, size_t row);
const double *history_row(const struct history *history, size_t row);

#endif
