/*
 * A chart of points and lines over two axes: data, which a report draws (report.h). An axis over positive
 * numbers of which the greatest is at least 100 times the least is logarithmic.
 */
#ifndef ASSAY_REPORT_CHART_H
#define ASSAY_REPORT_CHART_H

#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

struct chart_series {
    const double *x, *y; /* what is not finite is not drawn */
    size_t count;
    bool is_line;     /* points in order of x are joined; otherwise they stand alone */
    const char *name; /* in an SVG it is shown at the pointer, below lines of text in a legend; or NULL */
};

/* A stretch of the x axis; where FROM is TO, a moment on it. */
struct chart_span {
    double from, to;
    const char *name;
};

/* Texts and numbers are borrowed; those of chart_copy() are its own. */
struct chart {
    const char *title, *x_name, *y_name; /* names with units */
    const struct chart_series *series;
    size_t series_count;
    const double *x_marks, *y_marks; /* where lines are drawn across */
    size_t x_mark_count, y_mark_count;
    double y_reach; /* y beyond this, above or below 0, is drawn at the edge; 0: nothing is */

    const char *const *x_labels; /* of x = 0, 1, 2, ...; NULL: the axis has numbers */
    size_t x_label_count;
    const struct chart_span *spans;  /* phases, in order: shaded in turns, not in a text */
    const struct chart_span *events; /* moments: marks at the lower edge, not in a text */
    size_t span_count, event_count;
    /* On a page (report.h): */
    const char *x_unit, *y_unit; /* shown with values at the pointer, as people write them; NULL: none */
    const char *link;   /* charts with the same link, over time or order, have linear x axes that are zoomed
                           together; NULL */
    bool needs_scripts; /* it is not drawn without, as its page has too many others */
};

struct chart *chart_copy(const struct chart *chart);
void chart_free(struct chart *copy); /* NULL is fine */

/* Appends the chart as lines of text; nothing if no point can be drawn. UNICODE: with braille characters and
 * blocks. Points of several series that all have names are letters, which a legend explains. */
void chart_append_text(const struct chart *chart, bool unicode, struct text *ret);
/* Appends an <svg> element that shows the COUNT charts from top to bottom. */
void chart_append_svg(const struct chart *charts, size_t count, struct text *ret);
/* Appends an <svg> element with one chart, for a page, which styles it. */
void chart_append_figure(const struct chart *chart, struct text *ret);
/* Parts of an <svg> for pictures that are no charts: its beginning, with its size in pixels; an element
 * <text> at X, Y; TEXT with its special characters escaped. */
void chart_append_head(struct text *svg, size_t width, size_t height);
void chart_append_words(struct text *svg, double x, double y, const char *attributes, const char *words,
                        bool is_logarithmic);
void chart_append_escaped(struct text *svg, const char *text);

#endif
