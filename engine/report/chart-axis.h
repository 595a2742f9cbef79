/* The axes of a chart. Used by this room alone. */
#ifndef ASSAY_REPORT_CHART_AXIS_H
#define ASSAY_REPORT_CHART_AXIS_H

#include "engine/report/chart.h"

struct chart_axis {
    double low, high;
    double from, range; /* of places: what `low` is on the scale, and how far `high` is from that */
    bool is_logarithmic;
};

struct chart_axes {
    struct chart_axis x, y;
    size_t points; /* that can be drawn */
};

struct chart_axes chart_axes_of(const struct chart *chart);
/* The place of VALUE on the axis, from 0 to 1; 0.5 if both ends are equal; NaN: it is not on the axis. */
double chart_axis_place(const struct chart_axis *axis, double value);
/* Y, or the edge of the chart if y is beyond y_reach. */
double chart_clip(const struct chart *chart, double y);
/* Ticks of an axis: 1, 2 or 5 times a power of ten, or powers of ten alone. Returns how many, at most MAX. */
size_t chart_axis_ticks(const struct chart_axis *axis, size_t max, double *ret);

#endif
