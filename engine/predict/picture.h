/*
 * What a prediction looks like: a table that the plugin declares, or a column of the result over the
 * parameter that varies, as lines for a terminal, CSV, SVG, HTML or trace events.
 */
#ifndef ASSAY_PREDICT_PICTURE_H
#define ASSAY_PREDICT_PICTURE_H

#include "engine/predict/prediction.h"

/* Which table or column NAME is, and what FILE is to be by its ending. */
struct picture {
    char *name;
    const char *file;     /* NULL: lines of a report */
    size_t table, column; /* one of them is SIZE_MAX: the picture is of the other */
    enum picture_form { PICTURE_LINES, PICTURE_CSV, PICTURE_SVG, PICTURE_HTML, PICTURE_TRACE } form;
};

/* WORD is NAME or NAME=FILE, and outlives RET. FAILURE_INPUT: PREDICTION has no such table or column of
 * numbers, or its shape cannot be drawn in such a file. */
int picture_read(const struct prediction *prediction, const char *word, struct picture *ret,
                 struct failure *failure);
void picture_clear(struct picture *picture);

/* Writes the file, with units beside CSV, or adds to SECTION. FAILURE_INPUT: no number varies over the
 * scenarios, or there is too much to draw. */
int picture_draw(const struct prediction *prediction, const char *word, struct report_section *section,
                 struct failure *failure);

#endif
