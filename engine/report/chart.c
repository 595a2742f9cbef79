#include "engine/report/chart.h"

#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

static const double *copy_numbers(const double *numbers, size_t count) {
    double *copy = xcalloc(count + 1, sizeof *copy);
    return count > 0 ? memcpy(copy, numbers, count * sizeof *copy) : copy;
}

struct chart *chart_copy(const struct chart *chart) {
    struct chart *copy = xmalloc(sizeof *copy);
    struct chart_series *series = xcalloc(chart->series_count + 1, sizeof *series);
    *copy = *chart;
    copy->title = xstrdup(chart->title);
    copy->x_name = xstrdup(chart->x_name);
    copy->y_name = xstrdup(chart->y_name);
    copy->x_marks = copy_numbers(chart->x_marks, chart->x_mark_count);
    copy->y_marks = copy_numbers(chart->y_marks, chart->y_mark_count);
    copy->series = series;
    for (size_t i = 0; i < chart->series_count; i++) {
        series[i] = chart->series[i];
        series[i].x = copy_numbers(series[i].x, series[i].count);
        series[i].y = copy_numbers(series[i].y, series[i].count);
        series[i].name = xstrdup_or_null(series[i].name);
    }
    return copy;
}

void chart_free(struct chart *chart) {
    if (!chart)
        return;
    for (size_t i = 0; i < chart->series_count; i++)
        free((double *)chart->series[i].x), free((double *)chart->series[i].y),
            free((char *)chart->series[i].name);
    free((char *)chart->title), free((char *)chart->x_name), free((char *)chart->y_name);
    free((double *)chart->x_marks), free((double *)chart->y_marks),
        free((struct chart_series *)chart->series);
    free(chart);
}
