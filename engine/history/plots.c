#include "engine/history/plots.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/history/non-regression.h"
#include "engine/report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 5, DAY_CHARACTERS = 10 };

/* The lines of a chart, each with a value for every run: the runs, the outliers, the mean of the last runs
 * and its limits. */
enum line { RUNS, OUTLIERS, MEANS, LOW, HIGH, LINES };

struct plot {
    double *x, *y[LINES];
    struct chart_span *events;
    size_t event_count;
    bool has_outliers;
};

static void plot_clear(struct plot *plot) {
    free(plot->x), free(plot->events);
    for (size_t i = 0; i < LINES; i++)
        free(plot->y[i]);
}

static void add_event(struct plot *plot, double x, const char *name) {
    plot->events[plot->event_count++] = (struct chart_span){x, x, name};
}

/* Fills the lines of the chart: runs, outliers, rolling means with their limits. SINCE: the run that is
 * marked as a change; 0: none. */
static int fill_plot(const struct history_series *series, size_t since, double p_most, struct plot *ret) {
    const struct non_regression_rule rule = {
        .confidence = 1 - p_most, .least = 10, .keep = WINDOW, .window = WINDOW};
    size_t count = series->count;
    cleanup_free struct non_regression_row *marks = xcalloc(count, sizeof *marks);
    cleanup_free struct non_regression_verdict *verdicts = xcalloc(count, sizeof *verdicts);
    bool has_times = !isnan(series->times[0]);
    ret->x = xcalloc(count, sizeof *ret->x);
    ret->events = xcalloc(count + 1, sizeof *ret->events);
    for (size_t k = 0; k < LINES; k++)
        ret->y[k] = xcalloc(count, sizeof *ret->y[k]);
    for (size_t i = 0; i < count; i++)
        marks[i] = (struct non_regression_row){series->is_cut[i], series->is_outlier[i]};
    int r = non_regression_check(&rule, count, 1, series->values, marks, verdicts);
    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct non_regression_test *windowed = &verdicts[i].windowed;
        bool is_tested = windowed->sign != NON_REGRESSION_NONE;
        ret->x[i] = has_times ? (series->times[i] - series->times[0]) / 86400 : (double)i + 1;
        ret->y[RUNS][i] = series->is_outlier[i] ? NAN : series->values[i];
        ret->y[OUTLIERS][i] = series->is_outlier[i] ? series->values[i] : NAN;
        ret->has_outliers = ret->has_outliers || series->is_outlier[i];
        ret->y[MEANS][i] = is_tested ? windowed->value : NAN;
        ret->y[LOW][i] = is_tested ? windowed->low : NAN;
        ret->y[HIGH][i] = is_tested ? windowed->high : NAN;
        if (i + 1 == since)
            add_event(ret, ret->x[i], "changed since this run");
        else if (series->is_cut[i])
            add_event(ret, ret->x[i], "change noted in the log");
    }
    return r;
}

int history_plot(struct report_section *in, const struct history_series *series, size_t since, double p_most,
                 size_t charts) {
    static const char *const names[LINES] = {"a run", "outlier noted in the log", "mean of the last 5 runs",
                                             "lower limit of the mean of the last 5 runs",
                                             "upper limit of the mean of the last 5 runs"};
    cleanup(plot_clear) struct plot plot = {0};
    struct chart_series lines[LINES];
    const char *response = series->response[0] ? series->response : "value";
    char begin[CLOCK_TEXT_SIZE] = "";
    size_t line_count = 0;
    int r = fill_plot(series, since, p_most, &plot);
    if (r < 0)
        return r;
    for (size_t k = 0; k < LINES; k++)
        if (k != OUTLIERS || plot.has_outliers)
            lines[line_count++] = (struct chart_series){
                .x = plot.x, .y = plot.y[k], .count = series->count, .is_line = k >= MEANS, .name = names[k]};
    bool has_times = !isnan(series->times[0]);
    if (has_times)
        clock_format((int64_t)series->times[0] * 1000000000, begin);
    cleanup_free char *title = xformat("%s%s%s%s", response, series->setting[0] ? ", " : "", series->setting,
                                       since > 0 ? ": changed" : "");
    cleanup_free char *x = has_times ? xformat("days since %.*s", DAY_CHARACTERS, begin) : xstrdup("run");
    cleanup_free char *y = xformat("%s%s%s", response, series->unit[0] ? ", " : "", series->unit);
    const struct chart chart = {.title = title,
                                .x_name = x,
                                .y_name = y,
                                .y_unit = series->unit[0] ? series->unit : NULL,
                                .x_unit = has_times ? "d" : NULL,
                                .series = lines,
                                .series_count = line_count,
                                .events = plot.events,
                                .event_count = plot.event_count,
                                .link = "history",
                                .needs_scripts = charts > HISTORY_CHARTS_DRAWN};
    report_chart(in, "chart", &chart);
    return 0;
}
