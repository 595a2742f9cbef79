#include "engine/report/chart-axis.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 64,
    HEIGHT = 16,
    DOTS_ACROSS = 2, /* of a braille character */
    DOTS_DOWN = 4,
    DOTTED_MAX = 2000, /* more points are drawn as shades, by how many there are */
    LABEL = 9,
};

/* Of the points of several series that have names. */
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#";

struct canvas {
    uint32_t counts[HEIGHT][WIDTH];
    uint64_t series[HEIGHT][WIDTH]; /* a bit for each that has points there */
    unsigned char dots[HEIGHT][WIDTH];
    bool marked[HEIGHT][WIDTH];
    uint32_t largest;
    bool is_dotted, unicode, has_legend;
};

static size_t step_of(double place, size_t count) {
    double step = place * (double)count;
    return !(step >= 1) ? 0 : step >= (double)count ? count - 1 : (size_t)step;
}

/* The bit of a braille character for the dot in COLUMN and LINE: 1 2 3 down, 4 5 6 down, then 7 and 8. */
static unsigned char dot_bit(size_t column, size_t line) {
    static const unsigned char bits[DOTS_DOWN][DOTS_ACROSS] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    return bits[line][column];
}

static void draw_point(struct canvas *canvas, size_t series, double across, double up) {
    if (isnan(across) || isnan(up))
        return;
    size_t x = step_of(across, (size_t)WIDTH * DOTS_ACROSS), y = step_of(1 - up, (size_t)HEIGHT * DOTS_DOWN);
    uint32_t *count = &canvas->counts[y / DOTS_DOWN][x / DOTS_ACROSS];
    canvas->series[y / DOTS_DOWN][x / DOTS_ACROSS] |= UINT64_C(1) << series % 64;
    *count += 1;
    canvas->largest = *count > canvas->largest ? *count : canvas->largest;
    canvas->dots[y / DOTS_DOWN][x / DOTS_ACROSS] |= dot_bit(x % DOTS_ACROSS, y % DOTS_DOWN);
}

/* Draws all points and marks onto the canvas. */
static void draw_all(struct canvas *canvas, const struct chart *chart, const struct chart_axes *axes) {
    for (size_t s = 0; s < chart->series_count; s++)
        for (size_t i = 0; i < chart->series[s].count; i++)
            draw_point(canvas, s, chart_axis_place(&axes->x, chart->series[s].x[i]),
                       chart_axis_place(&axes->y, chart_clip(chart, chart->series[s].y[i])));
    for (size_t i = 0; i < chart->x_mark_count; i++) {
        double place = chart_axis_place(&axes->x, chart->x_marks[i]);
        for (size_t line = 0; !isnan(place) && line < HEIGHT; line++)
            canvas->marked[line][step_of(place, WIDTH)] = true;
    }
    for (size_t i = 0; i < chart->y_mark_count; i++) {
        double place = chart_axis_place(&axes->y, chart->y_marks[i]);
        for (size_t column = 0; !isnan(place) && column < WIDTH; column += 2)
            canvas->marked[step_of(1 - place, HEIGHT)][column] = true;
    }
}

/* Four steps of density, by the logarithm: one point is seen as well as a crowd. */
static size_t density(const struct canvas *canvas, uint32_t count) {
    return step_of(canvas->largest > 1 ? log(count) / log(canvas->largest) : 0, 4);
}

/* Series that share a place alternate along the line. */
static char letter_at(uint64_t series, size_t column) {
    for (int skip = (int)column % __builtin_popcountll(series); skip > 0; skip--)
        series &= series - 1;
    return letters[__builtin_ctzll(series)];
}

/* Appends the character of one cell: a letter of the legend, dots, or a shade by the number of points. */
static void append_cell(const struct canvas *canvas, size_t line, size_t column, struct text *ret) {
    static const char *const shades[] = {"\u2591", "\u2592", "\u2593", "\u2588"};
    uint32_t count = canvas->counts[line][column];
    unsigned dots = canvas->dots[line][column];
    if (count == 0)
        text_append_string(ret, !canvas->marked[line][column] ? " " : canvas->unicode ? "\u00b7" : "'");
    else if (canvas->has_legend)
        text_append_character(ret, letter_at(canvas->series[line][column], column));
    else if (canvas->unicode && canvas->is_dotted) /* U+2800 and the bits of the dots */
        text_printf(ret, "\xe2%c%c", (int)(0xa0 + (dots >> 6)), (int)(0x80 + (dots & 0x3f)));
    else if (canvas->unicode)
        text_append_string(ret, shades[density(canvas, count)]);
    else
        text_append_character(ret, canvas->is_dotted ? '*' : ".:o@"[density(canvas, count)]);
}

/* Appends the label left of LINE: a mark, or an end of the axis. */
static void append_label(const struct chart *chart, const struct chart_axis *axis, size_t line,
                         struct text *ret) {
    for (size_t i = 0; i < chart->y_mark_count; i++)
        if (step_of(1 - chart_axis_place(axis, chart->y_marks[i]), HEIGHT) == line) {
            text_printf(ret, "%*.3g ", LABEL, chart->y_marks[i]);
            return;
        }
    if (line == 0 || line == HEIGHT - 1)
        text_printf(ret, "%*.3g ", LABEL, line ? axis->low : axis->high);
    else
        text_printf(ret, "%*s ", LABEL, "");
}

static bool has_legend(const struct chart *chart) {
    bool has_names = chart->series_count > 1 && chart->series_count < sizeof letters;
    for (size_t s = 0; s < chart->series_count; s++)
        has_names = has_names && chart->series[s].name;
    return has_names;
}

static void append_legend(const struct chart *chart, struct text *ret) {
    for (size_t s = 0; s < chart->series_count; s++) {
        cleanup_free char *name = shown_copy(chart->series[s].name);
        text_printf(ret, "%*s  %c  %s\n", LABEL, "", letters[s], name);
    }
}

void chart_append_text(const struct chart *chart, bool unicode, struct text *ret) {
    struct chart_axes axes = chart_axes_of(chart);
    if (axes.points == 0)
        return;
    struct canvas *canvas = xcalloc(1, sizeof *canvas);
    canvas->unicode = unicode;
    canvas->is_dotted = axes.points <= DOTTED_MAX;
    canvas->has_legend = has_legend(chart);
    draw_all(canvas, chart, &axes);
    cleanup_free char *x_name = shown_copy(chart->x_name), *y_name = shown_copy(chart->y_name);
    text_printf(ret, "%*s %s%s\n", LABEL, "", y_name, axes.y.is_logarithmic ? ", logarithmic" : "");
    for (size_t line = 0; line < HEIGHT; line++) {
        append_label(chart, &axes.y, line, ret);
        text_append_string(ret, unicode ? "\u2502" : "|");
        size_t end = WIDTH;
        while (end > 0 && canvas->counts[line][end - 1] == 0 && !canvas->marked[line][end - 1])
            end--;
        for (size_t column = 0; column < end; column++)
            append_cell(canvas, line, column, ret);
        text_append_character(ret, '\n');
    }
    char left[32];
    snprintf(left, sizeof left, "%.4g", axes.x.low);
    text_printf(ret, "%*s  %s%*.4g\n", LABEL, "", left, WIDTH - (int)strlen(left), axes.x.high);
    text_printf(ret, "%*s  %s%s\n", LABEL, "", x_name, axes.x.is_logarithmic ? ", logarithmic" : "");
    if (canvas->has_legend)
        append_legend(chart, ret);
    free(canvas);
}
