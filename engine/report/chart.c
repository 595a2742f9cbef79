#include "engine/report/chart.h"

#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

static void *copy_items(const void *items, size_t count, size_t size) {
    void *copy = xcalloc(count + 1, size);
    return count > 0 ? memcpy(copy, items, count * size) : copy;
}

static const struct chart_span *copy_spans(const struct chart_span *spans, size_t count) {
    struct chart_span *copy = copy_items(spans, count, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i].name = xstrdup(copy[i].name);
    return copy;
}

struct chart *chart_copy(const struct chart *chart) {
    struct chart *copy = copy_items(chart, 1, sizeof *copy);
    struct chart_series *series = copy_items(chart->series, chart->series_count, sizeof *series);
    const char **labels = xcalloc(chart->x_label_count + 1, sizeof *labels);
    const char **const texts[] = {&copy->title,  &copy->x_name, &copy->y_name,
                                  &copy->x_unit, &copy->y_unit, &copy->link};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = xstrdup_or_null(*texts[i]);
    copy->x_marks = copy_items(chart->x_marks, chart->x_mark_count, sizeof *chart->x_marks);
    copy->y_marks = copy_items(chart->y_marks, chart->y_mark_count, sizeof *chart->y_marks);
    copy->spans = copy_spans(chart->spans, chart->span_count);
    copy->events = copy_spans(chart->events, chart->event_count);
    copy->series = series;
    for (size_t i = 0; i < chart->series_count; i++) {
        series[i].x = copy_items(series[i].x, series[i].count, sizeof *series[i].x);
        series[i].y = copy_items(series[i].y, series[i].count, sizeof *series[i].y);
        series[i].name = xstrdup_or_null(series[i].name);
    }
    for (size_t i = 0; i < chart->x_label_count; i++)
        labels[i] = xstrdup(chart->x_labels[i]);
    copy->x_labels = chart->x_label_count > 0 ? labels : NULL;
    if (chart->x_label_count == 0)
        free(labels);
    return copy;
}

static void free_spans(const struct chart_span *spans, size_t count) {
    for (size_t i = 0; i < count; i++)
        free((char *)spans[i].name);
    free((struct chart_span *)spans);
}

void chart_free(struct chart *chart) {
    if (!chart)
        return;
    for (size_t i = 0; i < chart->series_count; i++)
        free((double *)chart->series[i].x), free((double *)chart->series[i].y),
            free((char *)chart->series[i].name);
    for (size_t i = 0; i < chart->x_label_count; i++)
        free((char *)chart->x_labels[i]);
    free_spans(chart->spans, chart->span_count);
    free_spans(chart->events, chart->event_count);
    free((char *)chart->title), free((char *)chart->x_name), free((char *)chart->y_name);
    free((char *)chart->x_unit), free((char *)chart->y_unit), free((char *)chart->link);
    free((double *)chart->x_marks), free((double *)chart->y_marks), free((void *)chart->x_labels),
        free((struct chart_series *)chart->series);
    free(chart);
}
