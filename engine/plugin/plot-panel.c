#include "engine/plugin/plot-panel.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOTS_MAX = 3000,
    CELL = 3, /* pixels of the raster */
    SHADES = 5,
    TICKS_MAX = 64,
    LEFT_MARGIN = 64,
    RIGHT_MARGIN = 14,
    TOP_MARGIN = 30,
    BOTTOM_MARGIN = 46,
};

__attribute__((format(printf, 2, 3))) static void put(struct plot_panel *panel, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int r = text_vprintf(panel->text, format, arguments);
    va_end(arguments);
    if (r < 0 && !panel->error)
        panel->error = r;
}

static void put_escaped(struct plot_panel *panel, const char *string) {
    int r = plot_append_escaped(panel->text, string);
    if (r < 0 && !panel->error)
        panel->error = r;
}

/* How many bytes at AT can stand as they are; 0: the byte there cannot. */
static size_t plain_length(const char *at) {
    size_t length = 0;
    while (at[length] && !strchr("<>&\"'", at[length]) && (unsigned char)at[length] >= 0x20 &&
           at[length] != 0x7f)
        length++;
    return text_invalid_utf8(at, length);
}

int plot_append_escaped(struct text *text, const char *string) {
    for (const char *at = string; *at;) {
        size_t length = plain_length(at);
        int r = length > 0 ? text_append(text, at, length) : 0;
        at += length;
        if (r == 0 && length == 0) {
            const char *entity = *at == '<'    ? "&lt;"
                                 : *at == '>'  ? "&gt;"
                                 : *at == '&'  ? "&amp;"
                                 : *at == '"'  ? "&quot;"
                                 : *at == '\'' ? "&#39;"
                                               : "\xef\xbf\xbd";
            r = text_append_string(text, entity);
            at++;
        }
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- Axes */

int plot_append_head(struct text *text, unsigned width, unsigned height, const char *title,
                     const char *subtitle) {
    int r = text_printf(text,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                        "viewBox=\"0 0 %u %u\" font-family=\"sans-serif\" font-size=\"11\" "
                        "fill=\"#222\">\n<rect width=\"%u\" height=\"%u\" fill=\"#fff\"/>\n"
                        "<text x=\"14\" y=\"20\" font-size=\"14\" font-weight=\"bold\">",
                        width, height, width, height, width, height);
    r = r < 0 ? r : plot_append_escaped(text, title);
    r = r < 0 ? r : text_append_string(text, "</text>\n<text x=\"14\" y=\"38\">");
    r = r < 0 ? r : plot_append_escaped(text, subtitle);
    return r < 0 ? r : text_append_string(text, "</text>\n");
}

void plot_axis_widen(struct plot_axis *axis) {
    const double margin = 0.03;
    if (axis->logarithmic) {
        double range = log(axis->maximum / axis->minimum);
        double factor = range > 0 ? exp(margin * range) : 2;
        axis->minimum = fmax(axis->minimum / factor, DBL_MIN);
        axis->maximum = fmin(axis->maximum * factor, DBL_MAX);
        return;
    }
    double range = axis->maximum - axis->minimum;
    double wider = range > 0 ? margin * range : axis->minimum != 0 ? 0.5 * fabs(axis->minimum) : 1;
    axis->minimum = fmax(axis->minimum - wider, -DBL_MAX);
    axis->maximum = fmin(axis->maximum + wider, DBL_MAX);
}

double plot_axis_pixel(const struct plot_axis *axis, double value) {
    if (axis->logarithmic && value <= 0)
        value = axis->minimum; /* at the edge, where what is too small for the scale is */
    double share = axis->logarithmic ? log(value / axis->minimum) / log(axis->maximum / axis->minimum)
                                     : (value - axis->minimum) / (axis->maximum - axis->minimum);
    return axis->first + share * (axis->last - axis->first);
}

/* The least of 1, 2, 5 x 10^n that is at least VALUE. */
static double round_up(double value) {
    double power = pow(10, floor(log10(value)));
    double digits = value / power;
    return power * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10);
}

/* Ticks of a logarithmic scale: decades, or 1, 2 and 5 of each where there are few. */
static size_t make_decades(const struct plot_axis *axis, double *ret) {
    static const double digits[] = {1, 2, 5};
    double first = floor(log10(axis->minimum)), last = ceil(log10(axis->maximum));
    size_t each = last - first > 3 ? 1 : 3, count = 0;
    double step = ceil((last - first) / 7);
    for (double decade = first; decade <= last && count < TICKS_MAX; decade += each == 3 ? 1 : step)
        for (size_t i = 0; i < each && count < TICKS_MAX; i++) {
            double tick = digits[i] * pow(10, decade);
            if (tick >= axis->minimum && tick <= axis->maximum)
                ret[count++] = tick;
        }
    return count;
}

static size_t make_ticks(const struct plot_axis *axis, double *ret) {
    if (axis->logarithmic)
        return make_decades(axis, ret);
    double step = round_up(axis->maximum / 6 - axis->minimum / 6);
    size_t count = 0;
    for (double i = ceil(axis->minimum / step); i * step <= axis->maximum && count < TICKS_MAX; i++)
        ret[count++] = i * step + 0.0; /* not -0 */
    return count;
}

/* ---- Panels */

void plot_panel_place(struct plot_panel *panel, double left, double top, double width, double height) {
    panel->x.first = left + LEFT_MARGIN;
    panel->x.last = left + width - RIGHT_MARGIN;
    panel->y.first = top + height - BOTTOM_MARGIN;
    panel->y.last = top + TOP_MARGIN;
}

static void put_ticks(struct plot_panel *panel) {
    double ticks[TICKS_MAX];
    size_t count = make_ticks(&panel->x, ticks);
    for (size_t i = 0; i < count; i++) {
        double x = plot_axis_pixel(&panel->x, ticks[i]);
        put(panel, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#e4e4e4\"/>", x, panel->y.first, panel->y.last);
        put(panel, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.4g</text>\n", x, panel->y.first + 15,
            ticks[i]);
    }
    count = make_ticks(&panel->y, ticks);
    for (size_t i = 0; i < count; i++) {
        double y = plot_axis_pixel(&panel->y, ticks[i]);
        put(panel, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#e4e4e4\"/>", panel->x.first, y, panel->x.last);
        put(panel, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", panel->x.first - 6, y + 4,
            ticks[i]);
    }
}

void plot_panel_frame(struct plot_panel *panel) {
    double left = panel->x.first, right = panel->x.last, top = panel->y.last, bottom = panel->y.first;
    put_ticks(panel);
    put(panel, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#444\"/>\n",
        left, top, right - left, bottom - top);
    put(panel, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"13\" font-weight=\"bold\">", left, top - 10);
    put_escaped(panel, panel->title);
    put(panel, "</text>\n<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (left + right) / 2,
        bottom + 34);
    put_escaped(panel, panel->x.title);
    put(panel, "</text>\n<text transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"middle\">",
        left - LEFT_MARGIN + 14, (top + bottom) / 2);
    put_escaped(panel, panel->y.title);
    put(panel, "</text>\n");
}

static double clamp(double value, double a, double b) {
    return fmin(fmax(value, fmin(a, b)), fmax(a, b));
}

/* Where a point is drawn; false for one that has no place. */
static bool place_point(const struct plot_panel *panel, double x, double y, double *ret_x, double *ret_y) {
    double across = plot_axis_pixel(&panel->x, x), up = plot_axis_pixel(&panel->y, y);
    if (isnan(across) || isnan(up))
        return false;
    *ret_x = clamp(across, panel->x.first, panel->x.last);
    *ret_y = clamp(up, panel->y.first, panel->y.last);
    return true;
}

static void put_dots(struct plot_panel *panel, const double *x, const double *y, size_t count,
                     const char *colour) {
    put(panel,
        "<path fill=\"none\" stroke=\"%s\" stroke-opacity=\"0.55\" stroke-width=\"3.2\" "
        "stroke-linecap=\"round\" d=\"",
        colour);
    for (size_t i = 0; i < count; i++) {
        double across, up;
        if (place_point(panel, x[i], y[i], &across, &up))
            put(panel, "M%.1f %.1fh0", across, up);
    }
    put(panel, "\"/>\n");
}

/* Cells of one path for each shade: thousands of points in a few kilobytes. */
static void put_raster(struct plot_panel *panel, const uint32_t *cells, size_t columns, size_t lines,
                       const char *colour) {
    uint32_t largest = 1;
    for (size_t i = 0; i < columns * lines; i++)
        largest = cells[i] > largest ? cells[i] : largest;
    for (int shade = 0; shade < SHADES; shade++) {
        put(panel, "<path fill=\"%s\" fill-opacity=\"%.2f\" d=\"", colour, (shade + 1.5) / (SHADES + 0.5));
        for (size_t i = 0; i < columns * lines; i++) {
            double share = largest > 1 ? log(cells[i]) / log(largest) : 0;
            int of = (int)(share * SHADES);
            if (cells[i] == 0 || (of < SHADES ? of : SHADES - 1) != shade)
                continue;
            put(panel, "M%.0f %.0fh%dv%dh-%dz", floor(panel->x.first) + (double)(i % columns) * CELL,
                floor(panel->y.last) + (double)(i / columns) * CELL, CELL, CELL, CELL);
        }
        put(panel, "\"/>\n");
    }
}

static void put_crowd(struct plot_panel *panel, const double *x, const double *y, size_t count,
                      const char *colour) {
    size_t columns = (size_t)((panel->x.last - panel->x.first) / CELL);
    size_t lines = (size_t)((panel->y.first - panel->y.last) / CELL);
    cleanup_free uint32_t *cells = calloc((columns + 1) * (lines + 1), sizeof *cells);
    if (!cells) {
        panel->error = panel->error ? panel->error : -ENOMEM;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double across, up;
        if (!place_point(panel, x[i], y[i], &across, &up))
            continue;
        size_t column = (size_t)((across - panel->x.first) / CELL),
               line = (size_t)((up - panel->y.last) / CELL);
        cells[(line < lines ? line : lines - 1) * columns + (column < columns ? column : columns - 1)]++;
    }
    put_raster(panel, cells, columns, lines, colour);
}

void plot_panel_points(struct plot_panel *panel, const double *x, const double *y, size_t count,
                       const char *colour) {
    if (count <= DOTS_MAX)
        put_dots(panel, x, y, count, colour);
    else
        put_crowd(panel, x, y, count, colour);
}

void plot_panel_line(struct plot_panel *panel, const double *x, const double *y, size_t count,
                     const char *colour, bool dashed) {
    put(panel, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s d=\"", colour,
        dashed ? " stroke-dasharray=\"5 4\"" : "");
    bool drawn = false;
    for (size_t i = 0; i < count; i++) {
        double across, up;
        double least = fmin(panel->y.minimum, panel->y.maximum),
               greatest = fmax(panel->y.minimum, panel->y.maximum);
        bool inside = y[i] >= least && y[i] <= greatest && place_point(panel, x[i], y[i], &across, &up);
        if (inside)
            put(panel, "%c%.1f %.1f", drawn ? 'L' : 'M', across, up);
        drawn = inside;
    }
    put(panel, "\"/>\n");
}

void plot_panel_legend(struct plot_panel *panel, size_t line, const char *name, const char *colour) {
    double x = panel->x.first + 10, y = panel->y.last + 16 + 15 * (double)line;
    put(panel, "<path d=\"M%.1f %.1fh16\" stroke=\"%s\" stroke-width=\"3\"/>", x, y - 4, colour);
    put(panel, "<text x=\"%.1f\" y=\"%.1f\">", x + 22, y);
    put_escaped(panel, name);
    put(panel, "</text>\n");
}
