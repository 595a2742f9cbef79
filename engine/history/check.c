#include "engine/history/check.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"
#include "engine/history/change-points.h"
#include "engine/history/non-regression.h"
#include "engine/history/plots.h"
#include "engine/history/series-csv.h"
#include "engine/history/shift.h"
#include "engine/numerics/holm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WHY_BYTES_MAX = 4096, DAY_SIZE = 32 };
static const double FAMILY_P_MOST = 0.05;

/* The result of testing one series. */
struct finding {
    char *campaign, *experiment, *response, *unit, *setting, *node;
    size_t runs, run;                /* how many; from 1, the first that is changed */
    double p, adjusted;              /* NaN: not tested */
    double time;                     /* of that run; NaN: not known */
    double before, after;            /* levels */
    double low, high;                /* of the difference; NaN: not known */
    int64_t archive_before, archive; /* the last run before the change, and the first after it */
    bool is_changed;
};

struct checking {
    const struct history_rule *rule;
    struct finding *findings;
    size_t count, room, most_runs;
};

/* ---- One series */

/* The runs since the last change of the log, without outliers. */
struct rows {
    double *values;
    size_t *runs; /* of each value: its place in the series */
    size_t count;
};

static void rows_clear(struct rows *rows) {
    free(rows->values), free(rows->runs);
}

/* Chooses the runs since the last change of the log, without outliers and values that are not finite. */
static void choose_rows(const struct history_series *series, struct rows *ret) {
    ret->values = xcalloc(series->count, sizeof *ret->values);
    ret->runs = xcalloc(series->count, sizeof *ret->runs);
    for (size_t i = 0; i < series->count; i++) {
        if (series->is_cut[i])
            ret->count = 0;
        if (series->is_outlier[i] || !isfinite(series->values[i]))
            continue;
        ret->values[ret->count] = series->values[i];
        ret->runs[ret->count++] = i;
    }
}

/* Sets where the series changed: at ROW of ROWS, from the level BEFORE to AFTER. */
static void set_change(const struct history_series *series, const struct rows *rows, size_t row,
                       double before, double after, struct finding *finding) {
    finding->before = before;
    finding->after = after;
    finding->run = rows->runs[row] + 1;
    finding->time = series->times[rows->runs[row]];
    finding->archive = series->archives[rows->runs[row]];
    finding->archive_before = series->archives[rows->runs[row > 0 ? row - 1 : 0]];
}

/* Tests for one change of level at an unknown run (shift.h). The finding stays untested when there are too
 * few runs. */
static void find_shift(const struct history_series *series, const struct rows *rows,
                       struct finding *finding) {
    struct shift shift;
    if (shift_find(rows->values, rows->count, &shift) < 0)
        return;
    set_change(series, rows, shift.row, shift.before, shift.after, finding);
    finding->low = shift.low;
    finding->high = shift.high;
    finding->p = shift.p;
}

/* Tests for the last of several change points (change-points.h). Too few rows leave FINDING as it is. */
static void find_change_point(const struct history_series *series, const struct rows *rows, double p_most,
                              struct finding *finding) {
    const struct change_points_rule rule = {.window = 30, .p_most = p_most};
    cleanup_free struct change_point *points = NULL;
    size_t count = 0;
    if (rows->count < SHIFT_ROWS_LEAST ||
        change_points_find(&rule, rows->values, rows->count, &points, &count) < 0)
        return;
    finding->p = 1;
    if (count == 0)
        return;
    const struct change_point *last = &points[count - 1];
    set_change(series, rows, last->row, last->before, last->after, finding);
    finding->p = last->p;
}

/* Tests whether the last run, or the mean of the last five, is off the runs before it (non-regression.h). The
 * finding stays untested when there are too few. */
static int find_regression(const struct history_series *series, double p_most, struct finding *finding) {
    const struct non_regression_rule rule = {.confidence = 1 - p_most, .least = 10, .keep = 5, .window = 5};
    size_t last = series->count - 1;
    while (last > 0 && series->is_outlier[last])
        last--;
    const struct rows rows = {.runs = &last, .count = 1};
    cleanup_free struct non_regression_row *marks = xcalloc(series->count, sizeof *marks);
    cleanup_free struct non_regression_verdict *verdicts = xcalloc(series->count, sizeof *verdicts);
    for (size_t i = 0; i < series->count; i++)
        marks[i] = (struct non_regression_row){series->is_cut[i], series->is_outlier[i]};
    int r = non_regression_check(&rule, series->count, 1, series->values, marks, verdicts);
    const struct non_regression_test *single = &verdicts[last].single, *windowed = &verdicts[last].windowed;
    const struct non_regression_test *test = windowed->p < single->p ? windowed : single;
    if (r < 0 || test->sign == NON_REGRESSION_NONE || isnan(test->p))
        return r;
    set_change(series, &rows, 0, test->mean, test->value, finding);
    finding->archive_before = series->archives[last > 0 ? last - 1 : 0];
    finding->p = fmin(1, 2 * test->p); /* the more striking of two tests */
    return 0;
}

/* Tests one series by the method of the rule, and adds what was found to the findings. */
static int test_series(void *context, const struct history_series *series) {
    struct checking *checking = context;
    cleanup(rows_clear) struct rows rows = {0};
    if (checking->count == checking->room) {
        checking->room = checking->room > 0 ? 2 * checking->room : 64;
        checking->findings = xrealloc(checking->findings, checking->room * sizeof *checking->findings);
    }
    struct finding *finding = &checking->findings[checking->count++];
    *finding = (struct finding){.campaign = xstrdup(series->campaign),
                                .experiment = xstrdup(series->experiment),
                                .response = xstrdup(series->response),
                                .unit = xstrdup(series->unit),
                                .setting = xstrdup(series->setting),
                                .node = xstrdup(series->node),
                                .runs = series->count,
                                .p = NAN,
                                .adjusted = NAN,
                                .low = NAN,
                                .high = NAN};
    checking->most_runs = series->count > checking->most_runs ? series->count : checking->most_runs;
    int r = 0;
    choose_rows(series, &rows);
    if (checking->rule->method == HISTORY_CHEW)
        r = find_regression(series, checking->rule->p_most, finding);
    else if (checking->rule->method == HISTORY_SHIFT)
        find_shift(series, &rows, finding);
    else
        find_change_point(series, &rows, checking->rule->p_most, finding);
    return r;
}

/* ---- All of them */

/* Adjusts the p values by Holm's method over all tested series, and decides which series have changed. */
static void decide_changes(struct checking *checking, struct history_result *ret) {
    cleanup_free double *adjusted = xcalloc(checking->count + 1, sizeof *adjusted);
    for (size_t i = 0; i < checking->count; i++)
        adjusted[i] = checking->findings[i].p;
    holm_adjust(adjusted, checking->count);
    ret->series = checking->count;
    for (size_t i = 0; i < checking->count; i++) {
        struct finding *finding = &checking->findings[i];
        finding->adjusted = adjusted[i];
        finding->is_changed = finding->p < checking->rule->p_most && adjusted[i] < FAMILY_P_MOST;
        ret->changed += finding->is_changed;
        ret->untested += isnan(finding->p);
    }
}

/* "2026-10-12", or "run 17" when the time of the run is not known. Returns BUFFER. */
static const char *print_since(const struct finding *finding, char buffer[DAY_SIZE]) {
    struct tm parts;
    if (isnan(finding->time)) {
        snprintf(buffer, DAY_SIZE, "run %zu", finding->run);
        return buffer;
    }
    time_t whole = (time_t)finding->time;
    strftime(buffer, DAY_SIZE, "%Y-%m-%d", gmtime_r(&whole, &parts));
    return buffer;
}

/* Adds a changed series to TABLE, with the recorded facts of its node that changed at the same run. */
static int report_finding(struct history_store *store, const struct finding *finding,
                          struct report_table *table, struct failure *failure) {
    cleanup(text_clear) struct text why;
    char day[DAY_SIZE];
    double percent = 100 / fabs(finding->before);
    text_init(&why, WHY_BYTES_MAX);
    int r = store ? history_store_describe_changes(store, finding->node, finding->archive_before,
                                                   finding->archive, &why, failure)
                  : 0;
    if (r < 0)
        return r;
    const char *const texts[] = {finding->campaign, finding->experiment, finding->node,
                                 finding->response, finding->unit,       finding->setting};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        report_cell_text(table, texts[i]);
    report_cell_text(table, print_since(finding, day));
    report_cell(table, (finding->after - finding->before) * percent);
    report_cell(table, finding->low * percent);
    report_cell(table, finding->high * percent);
    report_cell(table, finding->p);
    report_cell(table, finding->adjusted);
    report_cell(table, (double)finding->runs);
    report_cell_text(table, !store ? NULL : why.length > 0 ? why.bytes : "no recorded fact");
    return 0;
}

/* Adds the verdict, and a table of the changed series if there are any. */
static int report_all(struct history_store *store, const struct checking *checking,
                      const struct history_result *result, struct report_section *in,
                      struct failure *failure) {
    static const struct column columns[] = {
        {.name = "campaign", .type = COLUMN_STRING},
        {.name = "experiment", .type = COLUMN_STRING},
        {.name = "node", .type = COLUMN_STRING},
        {.name = "response", .type = COLUMN_STRING},
        {.name = "unit", .type = COLUMN_STRING, .detail = true},
        {.name = "setting", .type = COLUMN_STRING},
        {.name = "since", .type = COLUMN_TIME},
        {.name = "change", .unit = "%", .digits = 3},
        {.name = "low", .unit = "%", .digits = 3, .help = "end of the 95 % interval of the change"},
        {.name = "high", .unit = "%", .digits = 3, .help = "end of the 95 % interval of the change"},
        {.name = "p", .unit = "1", .digits = 2},
        {.name = "p_adjusted", .unit = "1", .label = "p adjusted", .digits = 2, .detail = true},
        {.name = "runs", .unit = "1", .digits = 6, .detail = true},
        {.name = "changed", .type = COLUMN_STRING, .label = "recorded facts that changed with it"},
    };
    cleanup_free char *verdict =
        xformat("%zu of %zu series changed (the longest has %zu runs); %zu series have "
                "too few runs to be tested",
                result->changed, result->series, checking->most_runs, result->untested);
    bool all_untested = result->untested == result->series;
    report_verdict(in, "verdict",
                   all_untested      ? REPORT_UNKNOWN
                   : result->changed ? REPORT_NOT_USABLE
                                     : REPORT_USABLE,
                   verdict);
    if (result->changed == 0)
        return 0;
    struct report_table *table = report_table(in, "changes", NULL, columns, sizeof columns / sizeof *columns);
    int r = 0;
    for (size_t i = 0; r == 0 && i < checking->count; i++)
        if (checking->findings[i].is_changed)
            r = report_finding(store, &checking->findings[i], table, failure);
    return r;
}

/* ---- Charts */

/* State of the second walk over the series, which draws them; it has the order of the findings. */
struct plotting {
    const struct checking *checking;
    size_t next; /* finding */
    struct report_section *in, **of_nodes;
    struct text_set nodes; /* the names of of_nodes, by the same numbers */
};

/* Adds the chart of a series to the section of its node. Series come in the same order as when they were
 * tested. Those beyond HISTORY_CHARTS_MAX have none. */
static int plot_series(void *context, const struct history_series *series) {
    struct plotting *plotting = context;
    const struct finding *finding = &plotting->checking->findings[plotting->next++];
    const char *node = series->node[0] ? series->node : "all nodes";
    size_t known = plotting->nodes.count;
    if (plotting->next > HISTORY_CHARTS_MAX)
        return 0;
    uint32_t index = text_set_add(&plotting->nodes, node, strlen(node));
    if (index == known) {
        plotting->of_nodes = xrealloc(plotting->of_nodes, (known + 1) * sizeof(struct report_section *));
        plotting->of_nodes[known] = report_section(plotting->in, node, node, false);
    }
    return history_plot(plotting->of_nodes[index], series, finding->is_changed ? finding->run : 0,
                        plotting->checking->rule->p_most, plotting->next);
}

static int read_series(const struct history_source *source, const struct history_filter *filter,
                       history_series_handler *handle, void *context, struct failure *failure) {
    return source->store
               ? history_store_read(source->store, filter, handle, context, failure)
               : history_csv_read(source->paths, source->path_count, filter, handle, context, failure);
}

static int plot_all(const struct checking *checking, const struct history_source *source,
                    const struct history_filter *filter, struct report_section *in, struct failure *failure) {
    struct plotting plotting = {.checking = checking, .in = in};
    int r = read_series(source, filter, plot_series, &plotting, failure);
    if (checking->count > HISTORY_CHARTS_MAX)
        report_note(in, REPORT_NOTE,
                    "only the first %d of %zu series have a chart; choose others with "
                    "--node, --response or --campaign",
                    (int)HISTORY_CHARTS_MAX, checking->count);
    text_set_clear(&plotting.nodes);
    free(plotting.of_nodes);
    return r;
}

int history_check(const struct history_source *source, const struct history_filter *filter,
                  const struct history_rule *rule, struct report_section *in, struct history_result *ret,
                  struct failure *failure) {
    struct checking checking = {.rule = rule};
    *ret = (struct history_result){0};
    int r = read_series(source, filter, test_series, &checking, failure);
    if (r == 0) {
        decide_changes(&checking, ret);
        r = report_all(source->store, &checking, ret, in, failure);
        if (r == 0 && rule->with_charts)
            r = plot_all(&checking, source, filter, in, failure);
    }
    for (size_t i = 0; i < checking.count; i++) {
        struct finding *finding = &checking.findings[i];
        free(finding->campaign), free(finding->experiment), free(finding->response);
        free(finding->unit), free(finding->setting), free(finding->node);
    }
    free(checking.findings);
    return r;
}
