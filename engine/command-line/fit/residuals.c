#include "engine/command-line/fit/residuals.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/curve.h"
#include "engine/report/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CURVES_MAX = 8 };

/* A few rows spoil a fit: beyond FAR residual standard errors, of at most FEW of all rows, with at least MUCH
 * of the squared error. */
static const double far = 5, few = 0.02, much = 0.3;
/* Residuals beyond this are drawn at the edge. */
static const double reach = 8;

/* ---- Residuals */

/* ROW is one of the furthest off if it is further than the last of them; of equals the first row is. */
static void take_worst(struct fit_residuals *residuals, size_t row) {
    const double *scaled = residuals->fit->scaled;
    double z = fabs(scaled[row]);
    size_t *worst = residuals->worst, place = residuals->worst_count;
    if (place == FIT_RESIDUALS_WORST && !(z > fabs(scaled[worst[place - 1]])))
        return;
    if (place < FIT_RESIDUALS_WORST)
        residuals->worst_count++;
    else
        place--;
    for (; place > 0 && z > fabs(scaled[worst[place - 1]]); place--)
        worst[place] = worst[place - 1];
    worst[place] = row;
}

static double response_of(const struct fit_residuals *residuals, size_t row) {
    return residuals->table->numbers[0].values[row] * residuals->fit->response_scale;
}

void fit_residuals_init(struct fit_residuals *residuals, const struct fit *fit, const struct table *table) {
    *residuals = (struct fit_residuals){.fit = fit, .table = table};
    for (size_t row = 0; row < table->rows; row++) {
        if (isnan(fit->scaled[row]))
            continue;
        residuals->count++;
        take_worst(residuals, row);
    }
}

char *fit_residuals_hint(const struct fit_residuals *residuals, bool has_outliers) {
    double all = 0, outer = 0;
    size_t count = 0;
    for (size_t row = 0; row < residuals->table->rows; row++) {
        double z = residuals->fit->scaled[row];
        all += isnan(z) ? 0 : z * z;
        if (fabs(z) > far) {
            outer += z * z;
            count++;
        }
    }
    if (count == 0 || (double)count > few * (double)residuals->count || outer < much * all)
        return NULL;
    return xformat("%zu of %zu rows make %.0f %% of the squared error%s", count, residuals->count,
                   100 * outer / all,
                   has_outliers ? ": --set outliers=3 leaves such rows out" : ": see them with --verbose");
}

/* ---- As text */

static char *with_unit(const char *name, const char *unit) {
    return xformat("%s%s%s%s", name, unit ? " (" : "", unit ? unit : "", unit ? ")" : "");
}

/* "calls.csv:17"; of archives the line of their table. */
static char *place_of(const struct table *table, size_t row) {
    const struct table_input *input;
    uint64_t line;
    if (!table_place(table, row, &input, &line))
        return xformat("row %zu", row + 1);
    return xformat("%s%s%s:%" PRIu64, input->name, input->archive ? ":" : "",
                   input->archive ? input->member : "", line);
}

static void report_worst(const struct fit_residuals *residuals, struct report_section *section) {
    const struct table *table = residuals->table;
    const struct model *model = residuals->fit->model;
    size_t numbers = table->number_count, texts = table->category_count, count = numbers + texts + 3, c = 0;
    cleanup_free struct report_column *columns = xcalloc(count, sizeof *columns);
    columns[c++] = (struct report_column){.name = "place"};
    for (size_t j = 0; j < texts; j++)
        columns[c++] = (struct report_column){.name = table->categories[j].name};
    for (size_t i = 1; i < numbers; i++) /* the first is the response */
        columns[c++] = (struct report_column){
            .name = table->numbers[i].name, .unit = table->numbers[i].unit, .digits = 6};
    columns[c++] = (struct report_column){.name = "measured", .unit = model->response_unit, .digits = 5};
    columns[c++] = (struct report_column){.name = "predicted", .unit = model->response_unit, .digits = 5};
    columns[c++] = (struct report_column){.name = "scaled", .label = "std deviations", .digits = 3};
    struct report_table *rows = report_table(section, "worst", "furthest off", columns, c);
    for (size_t k = 0; k < residuals->worst_count; k++) {
        size_t row = residuals->worst[k];
        cleanup_free char *place = place_of(table, row);
        report_cell_text(rows, place);
        for (size_t j = 0; j < texts; j++)
            report_cell_text(rows, table->categories[j].levels[table->categories[j].codes[row]]);
        for (size_t i = 1; i < numbers; i++)
            report_cell(rows, table->numbers[i].values[row]);
        report_cell(rows, response_of(residuals, row));
        report_cell(rows, residuals->fit->mean[row]);
        report_cell(rows, residuals->fit->scaled[row]);
    }
}

/* Whether rows are predicted differently: otherwise a chart over the prediction is one column of points. */
static bool is_drawable(const struct fit_residuals *residuals) {
    const double *mean = residuals->fit->mean, *scaled = residuals->fit->scaled;
    double first = NAN;
    for (size_t row = 0; row < residuals->table->rows; row++) {
        if (!isfinite(scaled[row]) || !isfinite(mean[row]))
            continue;
        first = isnan(first) ? mean[row] : first;
        if (mean[row] != first)
            return true;
    }
    return false;
}

static void report_residuals(const struct fit_residuals *residuals, struct report_section *section) {
    static const double sigmas[] = {-2, 0, 2};
    const struct fit *fit = residuals->fit;
    cleanup_free char *response = with_unit(fit->model->response, fit->model->response_unit);
    cleanup_free char *predicted = xformat("predicted %s", response);
    const struct chart_series points = {fit->mean, fit->scaled, residuals->table->rows, false};
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

void fit_residuals_report(const struct fit_residuals *residuals, struct report_section *section, bool worst) {
    if (is_drawable(residuals))
        report_residuals(residuals, report_section(section, "residuals", "", false));
    if (worst && residuals->count > 0)
        report_worst(residuals, section);
}

/* ---- The plot */

static const struct table_numbers *find_numbers(const struct table *table, const char *name) {
    for (size_t i = 0; i < table->number_count; i++)
        if (strcmp(table->numbers[i].name, name) == 0)
            return &table->numbers[i];
    return NULL;
}

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

/* GROUP's data and its curve. Returns whether there is one. */
static bool report_curve(const struct fit_residuals *residuals, const struct model_group *group,
                         struct report_section *section) {
    const struct table *table = residuals->table;
    const struct model *model = residuals->fit->model;
    struct model_curve curve;
    if (!model_curve(model, group, &curve))
        return false;
    const struct table_numbers *x = find_numbers(table, curve.column);
    if (!x)
        return false;
    cleanup_free double *y = xmalloc((table->rows + 1) * sizeof *y);
    for (size_t row = 0; row < table->rows; row++)
        y[row] = !isnan(residuals->fit->mean[row]) && is_of_group(table, model, group, row)
                     ? response_of(residuals, row)
                     : NAN;
    cleanup_free char *x_name = with_unit(x->name, x->unit);
    cleanup_free char *y_name = with_unit(model->response, model->response_unit);
    const struct chart_series series[] = {{x->values, y, table->rows, false},
                                          {curve.x, curve.y, MODEL_CURVE_POINTS, true}};
    const struct chart chart = {
        .title = group->name, .x_name = x_name, .y_name = y_name, .series = series, .series_count = 2};
    report_chart(section, "curve", &chart);
    return true;
}

int fit_residuals_plot(const struct fit_residuals *residuals, const char *path, struct failure *failure) {
    const struct model *model = residuals->fit->model;
    cleanup(report_cleanup) struct report *report = report_new();
    size_t curves = 0;
    report_residuals(residuals, report->root);
    for (size_t g = 0; g < model->group_count && curves < CURVES_MAX; g++)
        curves += report_curve(residuals, &model->groups[g], report->root);
    return report_write_svg(report, path, failure);
}
