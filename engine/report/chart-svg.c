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
};

static const char style[] = "<style>text{font:13px sans-serif}.t{font-size:15px}.f{fill:none;stroke:#888}"
                            ".p{fill:#1f5fa8;fill-opacity:.5}.l{fill:none;stroke:#c03020;stroke-width:1.5;"
                            "stroke-linecap:round}"
                            ".m{stroke:#888;stroke-dasharray:4 3}</style>\n";

void chart_append_escaped(struct text *svg, const char *text) {
    cleanup_free char *shown = shown_copy(text);
    for (const char *at = shown; *at; at++)
        if (*at == '<' || *at == '&')
            text_append_string(svg, *at == '<' ? "&lt;" : "&amp;");
        else
            text_append_character(svg, *at);
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

/* A point that falls on the same pixel as one before is left out. */
static void append_points(const struct chart *chart, const struct chart_axes *axes,
                          const struct chart_series *series, struct text *svg) {
    cleanup_free bool *drawn = xcalloc((size_t)(WIDTH + 1) * (HEIGHT + 1), sizeof *drawn);
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

static void append_line(const struct chart *chart, const struct chart_axes *axes,
                        const struct chart_series *series, struct text *svg) {
    text_append_string(svg, "<path class=\"l\" d=\"");
    bool is_down = false; /* the pen */
    for (size_t i = 0; i < series->count; i++) {
        double x = across(axes, series->x[i]), y = down(chart, axes, series->y[i]);
        bool is_drawn = !isnan(x) && !isnan(y);
        if (is_drawn)
            text_printf(svg, is_down ? "L%.1f %.1f " : "M%.1f %.1fh0", x, y); /* h0: a point alone is seen */
        is_down = is_drawn;
    }
    text_append_string(svg, series->name ? "\"><title>" : "\"/>\n");
    if (!series->name)
        return;
    chart_append_escaped(svg, series->name);
    text_append_string(svg, "</title></path>\n");
}

static void append_axes(const struct chart *chart, const struct chart_axes *axes, struct text *svg) {
    double ticks[TICKS_MAX];
    char label[32];
    text_printf(svg, "<rect class=\"f\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT, TOP, WIDTH,
                HEIGHT);
    size_t count = chart_axis_ticks(&axes->x, TICKS_MAX, ticks);
    for (size_t i = 0; i < count; i++) {
        snprintf(label, sizeof label, "%.4g", ticks[i]);
        chart_append_words(svg, across(axes, ticks[i]), TOP + HEIGHT + 18, "text-anchor=\"middle\"", label,
                           false);
    }
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

static void append_chart(const struct chart *chart, size_t place, struct text *svg) {
    struct chart_axes axes = chart_axes_of(chart);
    text_printf(svg, "<g transform=\"translate(0 %zu)\">\n", place * (size_t)PANEL);
    append_axes(chart, &axes, svg);
    append_marks(chart, &axes, svg);
    for (size_t s = 0; s < chart->series_count; s++)
        if (chart->series[s].is_line)
            append_line(chart, &axes, &chart->series[s], svg);
        else
            append_points(chart, &axes, &chart->series[s], svg);
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
        append_chart(&charts[c], c, ret);
    text_append_string(ret, "</svg>\n");
}

/* Appends the charts of SECTION and of the sections in it; COUNT charts are above them. Returns how many
 * there are then. */
static size_t append_charts(const struct report_section *section, size_t count, struct text *svg) {
    for (size_t i = 0; i < section->count; i++)
        if (section->items[i].kind == ITEM_CHART)
            append_chart(section->items[i].chart, count++, svg);
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
