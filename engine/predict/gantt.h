/*
 * Intervals of time in lanes, such as the work of each process: as text for a terminal, as SVG, and as trace
 * events (Google, "Trace Event Format"), which Perfetto and chrome://tracing open. Used by this room alone.
 */
#ifndef ASSAY_PREDICT_GANTT_H
#define ASSAY_PREDICT_GANTT_H

#include "engine/predict/prediction.h"

enum {
    GANTT_LANES_MAX = 1024,       /* of an SVG; a text shows the first 40 */
    GANTT_INTERVALS_MAX = 100000, /* of an SVG */
};

/* ROWS are those of a table of the shape PREDICT_INTERVALS; what is not finite is left out. Adds
 * lines for a terminal, which are not in JSON, and notes of what they do not show. */
void gantt_report(const struct prediction_rows *rows, struct report_section *in);
/* Appends an element <svg>. FAILURE_INPUT: there are too many lanes or intervals. */
int gantt_append_svg(const struct prediction_rows *rows, const char *title, struct text *ret,
                     struct failure *failure);
/* Appends a JSON document with the intervals of table TABLE in all scenarios: a process each. */
void gantt_append_trace(const struct prediction *prediction, size_t table, struct text *ret);

#endif
