/*
 * One panel of a plot as SVG: a frame, two axes with ticks, units and titles, and what is drawn inside.
 * Nothing from elsewhere: no scripts, no fonts, no styles but attributes; every text escaped.
 */
#ifndef ASSAY_PLUGIN_PLOT_PANEL_H
#define ASSAY_PLUGIN_PLOT_PANEL_H

#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

/* A scale: values on pixels. */
struct plot_axis {
    const char *title;
    double minimum, maximum;
    bool logarithmic;   /* both bounds are positive */
    double first, last; /* pixels of the bounds */
};

struct plot_panel {
    struct text *text; /* gets the SVG; for the limit see its own */
    int error;         /* the first append that failed, or 0 */
    const char *title;
    struct plot_axis x, y;
};

/* Escaped for text and attributes; what XML cannot hold becomes U+FFFD. */
int plot_append_escaped(struct text *text, const char *string);

/* The element <svg> of that many pixels as far as to the panels, with two lines above them; "</svg>" ends it.
 */
int plot_append_head(struct text *text, unsigned width, unsigned height, const char *title,
                     const char *subtitle);

/* Widens bounds a little, so that no point is on the frame; makes room where they are equal. */
void plot_axis_widen(struct plot_axis *axis);
double plot_axis_pixel(const struct plot_axis *axis, double value);

/* Where the panel is, in pixels, with its titles. */
void plot_panel_place(struct plot_panel *panel, double left, double top, double width, double height);
void plot_panel_frame(struct plot_panel *panel);
/* Points, as dots where there are few, else as a raster that is the darker the more there are. Those outside
 * are drawn at the edge. */
void plot_panel_points(struct plot_panel *panel, const double *x, const double *y, size_t count,
                       const char *colour);
/* A polyline through what is finite; outside of the frame it is cut off. */
void plot_panel_line(struct plot_panel *panel, const double *x, const double *y, size_t count,
                     const char *colour, bool dashed);
/* The LINE-th line of a legend. */
void plot_panel_legend(struct plot_panel *panel, size_t line, const char *name, const char *colour);

#endif
