/*
 * A line of results.csv. One table of columns (results-row.c) describes the columns that every run has,
 * prints and reads them. The columns of the run's own plan, factors and responses, stand between
 * RESULTS_START_MONOTONIC and RESULTS_FREQUENCY; the caller prints them.
 */
#ifndef ASSAY_RECORD_RESULTS_ROW_H
#define ASSAY_RECORD_RESULTS_ROW_H

#include "engine/documents/column.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum results_column {
    RESULTS_ROW,
    RESULTS_REPETITION,
    RESULTS_ORDER,
    RESULTS_BLOCK,
    RESULTS_ATTEMPT,
    RESULTS_NODE,
    RESULTS_CORE,
    RESULTS_START,
    RESULTS_START_MONOTONIC,
    RESULTS_FACTORS, /* so many before those of the plan */
    RESULTS_FREQUENCY = RESULTS_FACTORS,
    RESULTS_TEMPERATURE,
    RESULTS_FLAGS,
    RESULTS_COLUMNS,
};

/* Not ended by NUL; without the quotes around them, but with quotes doubled inside. */
struct results_text {
    const char *bytes;
    size_t length;
};

struct results_row {
    int64_t row, repetition, order, block, attempt; /* from 1 */
    struct results_text node, core;
    int64_t start_ns, start_monotonic_ns; /* by the node's clocks; the latter -1: not known */
    double frequency_hz, temperature;     /* NaN: not known */
    struct results_text flags;
    struct results_text picked; /* reading: the column of the plan that was asked for */
};

/* The description of COLUMN for datapackage.json. */
const struct column *results_column_describe(enum results_column column);
/* Appends the fields of the columns from FROM to before TO, each behind a comma but for RESULTS_ROW. When the
 * text is full, text_keep() says so. */
void results_row_append(struct text *text, const struct results_row *row, enum results_column from,
                        enum results_column to);
/* Takes the field BYTES of COLUMN into RET. Times and temperatures, which nobody reads back, are not taken.
 * False: it is none of that column. */
bool results_row_parse_field(enum results_column column, const char *bytes, size_t length,
                             struct results_row *ret);
/* Reads the line AT, which ends before END, into RET; its texts are the line's. BETWEEN: the number of
 * columns of the plan; PICKED: the one of them, from 0, that RET also has. Returns the line's newline; NULL:
 * it is no line of such results. */
const char *results_row_read(const char *at, const char *end, size_t between, size_t picked,
                             struct results_row *ret);

#endif
