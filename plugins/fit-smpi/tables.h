/*
 * From the calls of one group to SMPI's factor tables. See README.md for every formula and its source.
 */
#ifndef ASSAY_FIT_SMPI_TABLES_H
#define ASSAY_FIT_SMPI_TABLES_H

#include "plugins/fit-smpi/calls.h"
#include "plugins/numerics/straight-line.h"

#include <stdbool.h>

enum {
    TABLES_BREAKS_MAX = 8,
    TABLES_SEGMENTS_MAX = TABLES_BREAKS_MAX + 1,
    TABLES_LINES = OPERATION_PING_PONG + 1, /* operations that are lines over the size */
    TABLES_REASON_SIZE = 256,
    TABLES_NOTES_MAX = 24,
    TABLES_NOTE_SIZE = 256,
};

enum trim_per { TRIM_AUTO, TRIM_ROWS, TRIM_SIZE };

struct tables_settings {
    double breaks[TABLES_BREAKS_MAX]; /* bytes, ascending */
    size_t break_count;
    double async_threshold, detached_threshold; /* bytes */
    double latency, bandwidth;                  /* of the base link: s, byte/s */
    double seconds;                             /* in one unit of the response */
    double trim, trim_ping_pong;                /* shares at either end */
    size_t block;
    enum trim_rule rule;
    enum trim_per per;
    double wtime_calls;
};

struct tables_line {
    bool fitted;
    struct straight_line line; /* in the response's unit */
    double minimum, maximum;   /* sizes */
    /* Whether SMPI is to charge it: `os` and `ois` in segments that end at or below the detached threshold,
     * `or` in segments that end below it. */
    bool charged;
};

struct tables {
    uint64_t rows; /* used */
    struct tables_line lines[TABLES_LINES][TABLES_SEGMENTS_MAX];
    double latency_factors[TABLES_SEGMENTS_MAX], bandwidth_factors[TABLES_SEGMENTS_MAX];
    double latency_errors[TABLES_SEGMENTS_MAX], bandwidth_errors[TABLES_SEGMENTS_MAX]; /* standard */
    double costs[OPERATION_COUNT]; /* a call of Iprobe, Test, Wtime; NaN: there is none */
    double
        cost_sigmas[OPERATION_COUNT]; /* standard deviation of what the mean is of; NaN with fewer than 2 */
    uint64_t cost_rows[OPERATION_COUNT];
    char notes[TABLES_NOTES_MAX][TABLES_NOTE_SIZE];
    size_t note_count;
};

/* The ends of segment I: from <= size < to. */
double tables_from(const struct tables_settings *settings, size_t segment);
double tables_to(const struct tables_settings *settings, size_t segment); /* INFINITY for the last */

/* Trims CALLS in place and fits. SCRATCH has room for as many values as the longest operation has calls.
 * False, and why in REASON, when the group has no ping-pong line in some segment. */
bool tables_fit(const struct tables_settings *settings, struct group_calls *calls, double *scratch,
                struct tables *ret, char reason[static TABLES_REASON_SIZE]);

#endif
