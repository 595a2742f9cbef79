/* The charts of a report as one SVG. */
#include "engine/report/chart-axis.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/report-tree.h"
#include "engine/report/shown.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 640,  /* of the inside of a chart, in pixels */
    HEIGHT = 320, /* likewise */
    LEFT = 90,
    TOP = 40,
    BELOW = 60,
    PANEL = TOP + HEIGHT + BELOW,
    TICKS_MAX = 8,
    LINE_POINTS_MAX = 16000, /* of all lines of a chart: with more, each is thinned */
    LINE_COLUMNS_LEAST = 32,
    COLOURS = 7, /* of series on a page, page.css; then the dashes change, of which there are as many: */
    DASHES = 3,
    LABELS_UPRIGHT_MAX = 8,
    LETTER = 7, /* of a name, in pixels */
    LABEL_CHARACTERS_MAX = 24,
};

static const char style[] =
    "<style>text{font:13px sans-serif}.t{font-size:15px}.f{fill:none;stroke:#888}"
    ".p{fill:#1f5fa8;fill-opacity:.5}.l{fill:none;stroke:#c03020;stroke-width:1.5;"
    "stroke-linecap:round}"
    ".m{stroke:#888;stroke-dasharray:4 3}.e{stroke:#888}.zt{font-size:11px}</style>\n";

void chart_append_escaped(struct text *svg, const char *text) {
    static const struct {
        char character;
        const char *entity;
    } escapes[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    cleanup_free char *shown = shown_copy(text);
    for (const char *at = shown; *at; at++) {
        size_t i = 0, count = sizeof escapes / sizeof *escapes;
        while (i < count && escapes[i].character != *at)
            i++;
        if (i < count)
            text_append_string(svg, escapes[i].entity);
        else
            text_append_character(svg, *at);
    }
}

void chart_append_words(struct text *svg, double x, double y, const char *attributes, const char *words,
                        bool is_logarithmic) {
    text_printf(svg, "<text x=\"%g\" y=\"%g\" %s>", x, y, attributes);
    chart_append_escaped(svg, words);
    text_printf(svg, "%s</text>\n", is_logarithmic ? ", logarithmic" : "");
}

static double across(const struct chart_axes *axes, double x) {
    return LEFT + WIDTH * chart_axis_place(&axes->x, x);
}

static double down(const struct chart *chart, const struct chart_axes *axes, double y) {
    return TOP + HEIGHT * (1 - chart_axis_place(&axes->y, chart_clip(chart, y)));
}

/* Appends the points of series S. Points that fall on one pixel are drawn once. */
static void append_points(const struct chart *chart, const struct chart_axes *axes, size_t s, bool is_page,
                          struct text *svg) {
    const struct chart_series *series = &chart->series[s];
    cleanup_free bool *drawn = xcalloc((size_t)(WIDTH + 1) * (HEIGHT + 1), sizeof *drawn);
    if (is_page)
        text_printf(svg, "<g class=\"p s%zu\">\n", s % COLOURS);
    else
        text_append_string(svg, "<g class=\"p\">\n");
    for (size_t i = 0; i < series->count; i++) {
        double x = across(axes, series->x[i]), y = down(chart, axes, series->y[i]);
        if (isnan(x) || isnan(y))
            continue;
        bool *at = &drawn[(size_t)(y - TOP) * (WIDTH + 1) + (size_t)(x - LEFT)];
        if (!*at)
            text_printf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n", x, y);
        *at = true;
    }
    text_append_string(svg, "</g>\n");
}

/* The number of pixel columns for which a line is drawn, with two points each, so that all lines of CHART
 * have at most LINE_POINTS_MAX. */
static size_t line_columns(const struct chart *chart) {
    size_t lines = 0;
    for (size_t s = 0; s < chart->series_count; s++)
        lines += chart->series[s].is_line;
    size_t columns = LINE_POINTS_MAX / 2 / (lines ? lines : 1);
    return columns > WIDTH ? WIDTH : columns < LINE_COLUMNS_LEAST ? LINE_COLUMNS_LEAST : columns;
}

/* The pen of a line that is drawn, and what is not yet drawn of its column: its least and greatest point. */
struct pen {
    struct text *svg;
    bool is_down;
    size_t column; /* SIZE_MAX: none is begun */
    double low[2], high[2];
    bool high_is_later;
};

static void pen_draw(struct pen *pen, const double *point) {
    text_printf(pen->svg, pen->is_down ? "L%.1f %.1f" : "M%.1f %.1fh0", point[0],
                point[1]); /* h0: a point alone is seen */
    pen->is_down = true;
}

static void pen_end_column(struct pen *pen) {
    if (pen->column == SIZE_MAX)
        return;
    pen_draw(pen, pen->high_is_later ? pen->low : pen->high);
    if (pen->low[1] != pen->high[1])
        pen_draw(pen, pen->high_is_later ? pen->high : pen->low);
    pen->column = SIZE_MAX;
}

static void pen_move(struct pen *pen, size_t column, double x, double y) {
    if (column != pen->column) {
        pen_end_column(pen);
        *pen = (struct pen){pen->svg, pen->is_down, column, {x, y}, {x, y}, false};
    } else if (y > pen->high[1]) {
        pen->high[0] = x, pen->high[1] = y, pen->high_is_later = true;
    } else if (y < pen->low[1]) {
        pen->low[0] = x, pen->low[1] = y, pen->high_is_later = false;
    }
}

/* Appends the line of series S. On a page a line with more points than columns is thinned: the least and the
 * greatest of each column are drawn, so that no peak is lost. */
static void append_line(const struct chart *chart, const struct chart_axes *axes, size_t s, bool is_page,
                        struct text *svg) {
    const struct chart_series *series = &chart->series[s];
    size_t columns = line_columns(chart);
    bool is_thinned = is_page && series->count > 2 * columns;
    struct pen pen = {.svg = svg, .column = SIZE_MAX};
    if (is_page)
        text_printf(svg, "<path class=\"l s%zu k%zu\" d=\"", s % COLOURS, s / COLOURS % DASHES);
    else
        text_append_string(svg, "<path class=\"l\" d=\"");
    for (size_t i = 0; i < series->count; i++) {
        double x = across(axes, series->x[i]), y = down(chart, axes, series->y[i]);
        if (isnan(x) || isnan(y)) {
            pen_end_column(&pen);
            pen.is_down = false;
        } else {
            pen_move(&pen, is_thinned ? (size_t)((x - LEFT) / WIDTH * (double)columns) : i, x, y);
        }
    }
    pen_end_column(&pen);
    text_append_string(svg, series->name ? "\"><title>" : "\"/>\n");
    if (!series->name)
        return;
    chart_append_escaped(svg, series->name);
    text_append_string(svg, "</title></path>\n");
}

/* Appends label I of the x axis. Of many labels only every k-th is drawn, so that they do not overlap. */
static void append_label(const struct chart *chart, const struct chart_axes *axes, size_t i,
                         struct text *svg) {
    size_t each = 1 + (chart->x_label_count - 1) / LABELS_UPRIGHT_MAX;
    if (i % each != 0)
        return;
    cleanup_free char *label = xstrdup(chart->x_labels[i]);
    size_t length = text_shorten(label, strlen(label), LABEL_CHARACTERS_MAX);
    label[length] = '\0';
    chart_append_words(svg, across(axes, (double)i), TOP + HEIGHT + 18, "text-anchor=\"middle\"", label,
                       false);
}

/* Appends the frame, the ticks of both axes, and the titles. */
static void append_axes(const struct chart *chart, const struct chart_axes *axes, struct text *svg) {
    double ticks[TICKS_MAX];
    char label[32];
    text_printf(svg, "<rect class=\"f\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT, TOP, WIDTH,
                HEIGHT);
    size_t count = chart->x_labels ? 0 : chart_axis_ticks(&axes->x, TICKS_MAX, ticks);
    for (size_t i = 0; i < count; i++) {
        snprintf(label, sizeof label, "%.4g", ticks[i]);
        chart_append_words(svg, across(axes, ticks[i]), TOP + HEIGHT + 18, "text-anchor=\"middle\"", label,
                           false);
    }
    for (size_t i = 0; i < chart->x_label_count; i++)
        append_label(chart, axes, i, svg);
    count = chart_axis_ticks(&axes->y, TICKS_MAX, ticks);
    for (size_t i = 0; i < count; i++) {
        snprintf(label, sizeof label, "%.4g", ticks[i]);
        chart_append_words(svg, LEFT - 6, down(chart, axes, ticks[i]) + 4, "text-anchor=\"end\"", label,
                           false);
    }
    chart_append_words(svg, LEFT, TOP - 22, "class=\"t\"", chart->title, false);
    chart_append_words(svg, LEFT, TOP - 6, "", chart->y_name, axes->y.is_logarithmic);
    chart_append_words(svg, LEFT + WIDTH / 2, TOP + HEIGHT + 40, "text-anchor=\"middle\"", chart->x_name,
                       axes->x.is_logarithmic);
}

static void append_marks(const struct chart *chart, const struct chart_axes *axes, struct text *svg) {
    for (size_t i = 0; i < chart->x_mark_count; i++) {
        double x = across(axes, chart->x_marks[i]);
        if (!isnan(x))
            text_printf(svg, "<path class=\"m\" d=\"M%.1f %dv%d\"/>\n", x, TOP, HEIGHT);
    }
    for (size_t i = 0; i < chart->y_mark_count; i++) {
        double y = down(chart, axes, chart->y_marks[i]);
        if (!isnan(y))
            text_printf(svg, "<path class=\"m\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, WIDTH);
    }
}

/* Appends phases, shaded in turns and named where there is room, and events as short marks. */
static void append_spans(const struct chart *chart, const struct chart_axes *axes, struct text *svg) {
    double low = axes->x.low, high = axes->x.high;
    for (size_t i = 0; i < chart->span_count; i++) {
        const struct chart_span *span = &chart->spans[i];
        if (!(span->to > low && span->from < high))
            continue;
        double from = across(axes, fmax(span->from, low)), width = across(axes, fmin(span->to, high)) - from;
        text_printf(svg, "<rect class=\"z\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"%s><title>", from,
                    TOP, width, HEIGHT, i % 2 ? " fill-opacity=\"0\"" : " fill-opacity=\".05\"");
        chart_append_escaped(svg, span->name);
        text_append_string(svg, "</title></rect>\n");
        if (width > LETTER * (double)strlen(span->name))
            chart_append_words(svg, from + 3, TOP + 13, "class=\"zt\"", span->name, false);
    }
    for (size_t i = 0; i < chart->event_count; i++) {
        double x = across(axes, chart->events[i].from);
        if (!isnan(x))
            text_printf(svg, "<path class=\"e\" d=\"M%.1f %dv-6\"/>\n", x, TOP + HEIGHT);
    }
}

static void append_chart(const struct chart *chart, size_t place, bool is_page, struct text *svg) {
    struct chart_axes axes = chart_axes_of(chart);
    text_printf(svg, "<g transform=\"translate(0 %zu)\">\n", place * (size_t)PANEL);
    append_axes(chart, &axes, svg);
    append_spans(chart, &axes, svg);
    append_marks(chart, &axes, svg);
    for (size_t s = 0; s < chart->series_count; s++)
        if (chart->series[s].is_line)
            append_line(chart, &axes, s, is_page, svg);
        else
            append_points(chart, &axes, s, is_page, svg);
    text_append_string(svg, "</g>\n");
}

void chart_append_head(struct text *svg, size_t width, size_t height) {
    text_printf(svg,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %zu %zu\">\n%s"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                width, height, style);
}

void chart_append_svg(const struct chart *charts, size_t count, struct text *ret) {
    chart_append_head(ret, LEFT + WIDTH + 20, count * (size_t)PANEL);
    for (size_t c = 0; c < count; c++)
        append_chart(&charts[c], c, false, ret);
    text_append_string(ret, "</svg>\n");
}

void chart_append_figure(const struct chart *chart, struct text *ret) {
    text_printf(ret, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", LEFT + WIDTH + 20, PANEL);
    chart_append_escaped(ret, chart->title);
    text_append_string(ret, "\">\n");
    append_chart(chart, 0, true, ret);
    text_append_string(ret, "</svg>\n");
}

/* Appends the charts of SECTION and of its sections; COUNT charts are above them. Returns how many there are
 * then. */
static size_t append_charts(const struct report_section *section, size_t count, struct text *svg) {
    for (size_t i = 0; i < section->count; i++)
        if (section->items[i].kind == ITEM_CHART)
            append_chart(section->items[i].chart, count++, false, svg);
        else if (section->items[i].kind == ITEM_SECTION)
            count = append_charts(section->items[i].section, count, svg);
    return count;
}

int report_write_svg(const struct report *report, const char *path, struct failure *failure) {
    cleanup(text_clear) struct text svg, charts;
    text_init(&svg, SIZE_MAX / 4);
    text_init(&charts, SIZE_MAX / 4);
    size_t count = append_charts(report->root, 0, &charts);
    chart_append_head(&svg, LEFT + WIDTH + 20, count * (size_t)PANEL);
    text_append(&svg, charts.bytes, charts.length);
    int r = text_append_string(&svg, "</svg>\n");
    return r < 0 ? failure_set(failure, r, "cannot draw '%s': %s", path, strerror(-r))
                 : file_write_output(path, svg.bytes, svg.length, failure);
}
