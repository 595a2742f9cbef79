#include "engine/report/chart-axis.h"

#include <math.h>

/* From so many times on an axis is logarithmic. */
static const double wide = 100;

double chart_clip(const struct chart *chart, double y) {
    double reach = chart->y_reach;
    return !(reach > 0) ? y : y > reach ? reach : y < -reach ? -reach : y;
}

static void include(struct chart_axis *axis, double value) {
    axis->low = value < axis->low ? value : axis->low;
    axis->high = value > axis->high ? value : axis->high;
}

/* Half, so that the range of what is greatest is finite. */
static double on_scale(const struct chart_axis *axis, double value) {
    return axis->is_logarithmic ? log(value) : value / 2;
}

/* Values of 0 or less have no place on a logarithmic axis: one such makes it linear. */
static void choose_scale(struct chart_axis *axis, bool may_be_logarithmic) {
    axis->is_logarithmic = may_be_logarithmic && axis->low > 0 && axis->high / axis->low >= wide;
    axis->from = on_scale(axis, axis->low);
    axis->range = on_scale(axis, axis->high) - axis->from;
}

/* The axes of a chart, which span all points that can be drawn, the marks, and the labels. */
struct chart_axes chart_axes_of(const struct chart *chart) {
    struct chart_axes axes = {.x = {.low = INFINITY, .high = -INFINITY},
                              .y = {.low = INFINITY, .high = -INFINITY}};
    for (size_t s = 0; s < chart->series_count; s++)
        for (size_t i = 0; i < chart->series[s].count; i++) {
            double x = chart->series[s].x[i], y = chart->series[s].y[i];
            if (!isfinite(x) || !isfinite(y))
                continue;
            include(&axes.x, x);
            include(&axes.y, chart_clip(chart, y));
            axes.points++;
        }
    for (size_t i = 0; i < chart->y_mark_count; i++)
        include(&axes.y, chart->y_marks[i]);
    if (chart->x_label_count > 0) { /* each in the middle of its place */
        include(&axes.x, -0.5);
        include(&axes.x, (double)chart->x_label_count - 0.5);
    }
    choose_scale(&axes.x, !chart->link);
    choose_scale(&axes.y, true);
    return axes;
}

double chart_axis_place(const struct chart_axis *axis, double value) {
    if (!(axis->high > axis->low))
        return 0.5;
    double place = (on_scale(axis, value) - axis->from) / axis->range;
    return !(place >= -1e-9 && place <= 1 + 1e-9) ? NAN : place < 0 ? 0 : place > 1 ? 1 : place;
}

/* Chooses at most MAX ticks: 1, 2 or 5 times a power of ten, or powers of ten, if they are many every k-th.
 */
size_t chart_axis_ticks(const struct chart_axis *axis, size_t max, double *ret) {
    static const double steps[] = {1, 2, 5};
    size_t count = 0;
    double range = axis->high - axis->low;
    if (!(range > 0) || !isfinite(range))
        return 0;
    if (axis->is_logarithmic) {
        int from = (int)ceil(log10(axis->low)), to = (int)floor(log10(axis->high));
        int each = 1 + (to - from) / (int)max;
        for (int power = from; power <= to && count < max; power += each)
            ret[count++] = pow(10, power);
        return count;
    }
    double unit = pow(10, floor(log10(range / (double)max))), step = 10 * unit;
    for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
        step = range / (steps[i] * unit) <= (double)max - 1 ? steps[i] * unit : step;
    for (double at = ceil(axis->low / step) * step; at <= axis->high + step * 1e-9 && count < max; at += step)
        ret[count++] = fabs(at) < step * 1e-9 ? 0 : at;
    return count;
}
