/*
 * Numbers with names as horizontal bars, the greatest first (a tornado chart): as text for a terminal, and as
 * SVG. Used by this room alone.
 */
#ifndef ASSAY_PREDICT_BARS_H
#define ASSAY_PREDICT_BARS_H

#include "engine/predict/prediction.h"

enum { BARS_MAX = 32 }; /* the least ones beyond are left out, and named in a line */

/* ROWS are those of a table of the shape PREDICT_BARS, whose COLUMNS are the name and the number; a number
 * that is not finite has no bar. Adds lines for a terminal, which are not in JSON. */
void bars_report(const struct prediction_rows *rows, const struct column *columns, struct report_section *in);
/* Appends an element <svg>. */
void bars_append_svg(const struct prediction_rows *rows, const struct column *columns, const char *title,
                     struct text *ret);

#endif
