/*
 * Points as a picture of characters: dots of braille where they are few and can be shown, else how many there
 * are in each place. Shares run from 0 at the left and the bottom to 1.
 */
#ifndef ASSAY_COMMAND_LINE_CHART_CANVAS_H
#define ASSAY_COMMAND_LINE_CHART_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CHART_WIDTH = 60,
    CHART_HEIGHT = 13,       /* odd: the middle is a line's middle */
    CHART_DOTTED_MAX = 2000, /* of more points the density says more than dots */
};

struct chart_canvas {
    uint32_t counts[CHART_HEIGHT][CHART_WIDTH];
    unsigned char dots[CHART_HEIGHT][CHART_WIDTH]; /* braille: bits as Unicode numbers them */
    bool marked[CHART_HEIGHT][CHART_WIDTH];        /* a line goes through, where no point is */
    uint32_t largest;
    size_t points;
};

/* Which of COUNT steps from LEAST to GREATEST; those beyond are the first or the last. */
size_t chart_step(double value, double least, double greatest, size_t count);

void chart_canvas_add(struct chart_canvas *canvas, double across, double up);
/* The line from the lower left corner through the point that is ACROSS and UP. */
void chart_canvas_mark(struct chart_canvas *canvas, double across, double up);
/* The LINE-th from above, and the line's end; DASHED: with a line drawn across. */
void chart_canvas_print_line(FILE *stream, const struct chart_canvas *canvas, bool unicode, size_t line,
                             bool dashed);

#endif
