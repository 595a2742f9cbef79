#include "engine/fit/report.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/curve.h"
#include "engine/model/model.h"
#include "engine/model/report.h"
#include "engine/model/verdict.h"
#include "engine/report/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CURVES_MAX = 8, WORST = 5 };

/* A few rows dominate the error of a fit: at most the share FEW of all rows, each beyond FAR residual
 * standard errors, with at least the share MUCH of the squared error. */
static const double far = 5, few = 0.02, much = 0.3;
/* Residuals beyond this are drawn at the edge. */
static const double reach = 8;

/* ---- Rows furthest off */

/* Lists the WORST rows with the largest scaled residuals in RET, the largest first, equal ones in their
 * order. Returns how many; 0 where FIT has no predictions. */
static size_t find_worst(const struct fit *fit, const struct table *table, size_t ret[static WORST]) {
    size_t count = 0;
    for (size_t row = 0; fit->scaled && row < table->rows; row++) {
        double z = fabs(fit->scaled[row]);
        if (isnan(z) || (count == WORST && !(z > fabs(fit->scaled[ret[count - 1]]))))
            continue;
        size_t place = count < WORST ? count++ : count - 1;
        for (; place > 0 && z > fabs(fit->scaled[ret[place - 1]]); place--)
            ret[place] = ret[place - 1];
        ret[place] = row;
    }
    return count;
}

static double response_of(const struct fit *fit, const struct table *table, size_t row) {
    return table->numbers[0].values[row] * fit->response_scale;
}

/* Whether the plugin has the parameter NAME and the user has not set it. */
static bool has_unset_parameter(const struct library *library, const struct fit_options *options,
                                const char *name) {
    const struct plugin_parameter *parameter = library->fit->parameters;
    for (size_t i = 0; i < options->setting_count; i++)
        if (strncmp(options->settings[i], name, strlen(name)) == 0)
            return false; /* it is set already */
    for (; parameter && parameter->name; parameter++)
        if (strcmp(parameter->name, name) == 0)
            return true;
    return false;
}

/* A hint on outliers, as "12 of 3264 rows cause 83 % of the squared error", if a few rows dominate the error;
 * otherwise NULL. The caller frees. */
static char *outlier_hint(const struct fit *fit, const struct table *table, bool has_outliers) {
    double all = 0, outer = 0;
    size_t rows = 0, count = 0;
    for (size_t row = 0; fit->scaled && row < table->rows; row++) {
        double z = fit->scaled[row];
        if (isnan(z))
            continue;
        rows++;
        all += z * z;
        if (fabs(z) > far) {
            outer += z * z;
            count++;
        }
    }
    if (count == 0 || (double)count > few * (double)rows || outer < much * all)
        return NULL;
    return xformat("%zu of %zu rows cause %.0f %% of the squared error%s", count, rows, 100 * outer / all,
                   has_outliers ? ": --set outliers=3 leaves rows out that lie more than 3 standard "
                                  "deviations from the fit"
                                : ": --verbose lists these rows");
}

/* Where ROW was read, as "calls.csv:17"; for an archive the line in its table. The caller frees. */
static char *place_of(const struct table *table, size_t row) {
    const struct table_input *input;
    uint64_t line;
    if (!table_place(table, row, &input, &line))
        return xformat("row %zu", row + 1);
    return xformat("%s%s%s:%" PRIu64, input->name, input->archive ? ":" : "",
                   input->archive ? input->member : "", line);
}

/* Adds a table of the rows furthest off, with their factors, measured and predicted response. */
static void report_worst(const struct fit *fit, const struct table *table, const size_t *worst,
                         size_t worst_count, struct report_section *section) {
    const struct model *model = fit->model;
    size_t numbers = table->number_count, texts = table->category_count, count = numbers + texts + 3, c = 0;
    cleanup_free struct column *columns = xcalloc(count, sizeof *columns);
    columns[c++] = (struct column){.name = "place"};
    for (size_t j = 0; j < texts; j++)
        columns[c++] = (struct column){.name = table->categories[j].name};
    for (size_t i = 1; i < numbers; i++) /* the first is the response */
        columns[c++] =
            (struct column){.name = table->numbers[i].name, .unit = table->numbers[i].unit, .digits = 6};
    columns[c++] = (struct column){.name = "measured", .unit = model->response_unit, .digits = 5};
    columns[c++] = (struct column){.name = "predicted", .unit = model->response_unit, .digits = 5};
    columns[c++] = (struct column){.name = "scaled", .label = "std deviations", .digits = 3};
    struct report_table *rows = report_table(section, "worst", "furthest off", columns, c);
    for (size_t k = 0; k < worst_count; k++) {
        size_t row = worst[k];
        cleanup_free char *place = place_of(table, row);
        report_cell_text(rows, place);
        for (size_t j = 0; j < texts; j++)
            report_cell_text(rows, table->categories[j].levels[table->categories[j].codes[row]]);
        for (size_t i = 1; i < numbers; i++)
            report_cell(rows, table->numbers[i].values[row]);
        report_cell(rows, response_of(fit, table, row));
        report_cell(rows, fit->mean[row]);
        report_cell(rows, fit->scaled[row]);
    }
}

/* ---- Charts */

/* Whether some row's prediction differs from that of row KNOWN: otherwise a chart over the prediction would
 * be one column of points. */
static bool is_drawable(const struct fit *fit, const struct table *table, size_t known) {
    for (size_t row = 0; row < table->rows; row++)
        if (!isnan(fit->scaled[row]) && fit->mean[row] != fit->mean[known])
            return true;
    return false;
}

/* Adds a chart of scaled residuals over the prediction. */
static void report_residuals(const struct fit *fit, const struct table *table,
                             struct report_section *section) {
    static const double sigmas[] = {-2, 0, 2};
    const struct column response = {.name = fit->model->response, .unit = fit->model->response_unit};
    cleanup_free char *heading = column_heading(&response), *predicted = xformat("predicted %s", heading);
    const struct chart_series points = {fit->mean, fit->scaled, table->rows, false, NULL};
    const struct chart chart = {.title = "residuals",
                                .x_name = predicted,
                                .y_name = "residuals in standard deviations of the noise",
                                .series = &points,
                                .series_count = 1,
                                .y_marks = sigmas,
                                .y_mark_count = sizeof sigmas / sizeof *sigmas,
                                .y_reach = reach};
    report_chart(section, "residuals", &chart);
}

static const struct table_numbers *find_numbers(const struct table *table, const char *name) {
    for (size_t i = 0; i < table->number_count; i++)
        if (strcmp(table->numbers[i].name, name) == 0)
            return &table->numbers[i];
    return NULL;
}

/* Whether ROW has the labels of GROUP in all columns of --by. */
static bool is_of_group(const struct table *table, const struct model *model, const struct model_group *group,
                        size_t row) {
    for (size_t j = 0; j < model->by_count; j++)
        for (size_t c = 0; c < table->category_count; c++) {
            const struct table_category *category = &table->categories[c];
            if (strcmp(category->name, model->by[j]) == 0 &&
                strcmp(category->levels[category->codes[row]], group->labels[j]) != 0)
                return false;
        }
    return true;
}

/* Adds a chart of GROUP's measurements and its fitted curve. false: the model has no curve over one
 * column. */
static bool report_curve(const struct fit *fit, const struct table *table, const struct model_group *group,
                         struct report_section *section) {
    const struct model *model = fit->model;
    struct model_curve curve;
    if (!model_curve(model, group, &curve))
        return false;
    const struct table_numbers *x = find_numbers(table, curve.column);
    if (!x)
        return false;
    cleanup_free double *y = xmalloc((table->rows + 1) * sizeof *y);
    for (size_t row = 0; row < table->rows; row++)
        y[row] = !isnan(fit->mean[row]) && is_of_group(table, model, group, row)
                     ? response_of(fit, table, row)
                     : NAN;
    const struct column columns[] = {{.name = x->name, .unit = x->unit},
                                     {.name = model->response, .unit = model->response_unit}};
    cleanup_free char *x_name = column_heading(&columns[0]), *y_name = column_heading(&columns[1]);
    const struct chart_series series[] = {{x->values, y, table->rows, false, NULL},
                                          {curve.x, curve.y, MODEL_CURVE_POINTS, true, NULL}};
    const struct chart chart = {
        .title = group->name, .x_name = x_name, .y_name = y_name, .series = series, .series_count = 2};
    report_chart(section, "curve", &chart);
    return true;
}

void fit_report_curves(struct report_section *in, const struct fit *fit, const struct table *table) {
    const struct model *model = fit->model;
    size_t curves = 0;
    for (size_t g = 0; g < model->group_count && curves < CURVES_MAX; g++)
        curves += report_curve(fit, table, &model->groups[g], in);
}

/* Writes the charts of the fit as SVG into PATH. -EINVAL with FAILURE: the method has no residuals. */
int fit_plot(const struct fit *fit, const struct library *library, const struct table *table,
             const char *path, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    size_t worst[WORST];
    if (find_worst(fit, table, worst) == 0)
        return failure_input(failure, NULL, 0, 0,
                             "--plot: the method '%s' has no residuals that could be drawn; remove "
                             "--plot",
                             library->plugin->name);
    report_residuals(fit, table, report->root);
    fit_report_curves(report->root, fit, table);
    return report_write_svg(report, path, failure);
}

/* ---- The report */

/* Adds the notes of the fit, and how many rows were left out and why. */
static void report_notes(struct report_section *section, const struct fit *fit, const struct table *table) {
    for (size_t i = 0; i < fit->note_count; i++)
        report_note(section, REPORT_NOTE, "%s", fit->notes[i]);
    if (table->rows_not_matching > 0)
        report_note(section, REPORT_NOTE, "%llu rows do not match --where and are left out",
                    (unsigned long long)table->rows_not_matching);
    double missing = 0;
    for (size_t g = 0; g < fit->model->group_count; g++) {
        double group_missing = model_group_value(&fit->model->groups[g], "rows_left_out");
        missing += isnan(group_missing) ? 0 : group_missing;
    }
    if (missing > 0)
        report_note(section, REPORT_NOTE, "%.0f rows are left out: a value is missing or not finite",
                    missing);
}

/* Adds the report of a fit: verdict, notes, groups, the plugin's tables, and, if HAS_CHARTS, residuals and
 * the worst rows. */
void fit_report(struct report_section *in, struct fit *fit, const struct library *library,
                const struct table *table, const struct fit_options *options, bool has_charts) {
    size_t worst[WORST], worst_count = find_worst(fit, table, worst);
    cleanup_free char *hint = outlier_hint(fit, table, has_unset_parameter(library, options, "outliers"));
    const char *flags = table->ignores_flags ? "every row was flagged" : NULL;
    cleanup_free char *both =
        xformat("%s%s%s", flags ? flags : "", flags && hint ? "; " : "", hint ? hint : "");
    model_verdict_report(in, fit->model, both[0] ? both : NULL);
    report_notes(in, fit, table);
    model_verdict_speed(in, fit->model);
    model_report_groups(in, fit->model, has_charts);
    report_move(in, fit->tables->root);
    if (!has_charts || worst_count == 0)
        return;
    if (is_drawable(fit, table, worst[0]))
        report_residuals(fit, table, report_section(in, "residuals", "", false));
    report_worst(fit, table, worst, worst_count, report_section(in, "worst", NULL, !hint));
}
