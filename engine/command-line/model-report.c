#include "engine/command-line/model-report.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_IN_FULL = 3 }; /* with more, coefficients are a table with a line a group */

/* A model whose cross-validated error is above these is not for prediction. */
static const double usable_relative = 0.10, usable_median = 0.05;

/* ---- Over the groups */

static int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* The values called NAME of all groups that have one, sorted; the caller frees. */
static double *collect(const struct model *model, const char *name, size_t *ret_count) {
    double *values = xcalloc(model->group_count + 1, sizeof *values);
    *ret_count = 0;
    for (size_t g = 0; g < model->group_count; g++) {
        double value = model_group_value(&model->groups[g], name);
        if (isfinite(value))
            values[(*ret_count)++] = value;
    }
    qsort(values, *ret_count, sizeof *values, compare_doubles);
    return values;
}

/* The greatest of them; NaN: none has one. */
static double greatest(const struct model *model, const char *name) {
    size_t count;
    cleanup_free double *values = collect(model, name, &count);
    return count > 0 ? values[count - 1] : NAN;
}

static double total(const struct model *model, const char *name) {
    size_t count;
    cleanup_free double *values = collect(model, name, &count);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

static uint64_t rows_of(const struct model *model) {
    uint64_t rows = 0;
    for (size_t g = 0; g < model->group_count; g++)
        rows += model->groups[g].rows;
    return rows;
}

void model_report_verdict(struct report_section *section, const struct model *model) {
    double relative = greatest(model, "cv_relative"), middle = greatest(model, "cv_median_relative");
    double nonpositive = total(model, "nonpositive_rows"), settings = total(model, "settings");
    const char *worst = model->group_count > 1 ? " in the worst group" : "";
    if (isnan(relative)) {
        report_note(section, REPORT_LINE, "fitted to %llu rows; how well it predicts is not known",
                    (unsigned long long)rows_of(model));
    } else if (nonpositive > 0) {
        report_note(section, REPORT_LINE,
                    "not usable for prediction: it says 0 or less for %.0f of its own %llu rows", nonpositive,
                    (unsigned long long)rows_of(model));
    } else {
        bool usable = relative <= usable_relative && middle <= usable_median;
        report_note(
            section, REPORT_LINE, "%s: cross-validated error %.2g %%%s (median %.2g %%) over %.0f settings",
            usable ? "usable" : "not usable for prediction", 100 * relative, worst, 100 * middle, settings);
    }
    report_number(section, "cv_relative", "cross-validated error", relative, "1", 3, true);
    report_number(section, "cv_median_relative", "median relative error", middle, "1", 3, true);
    double p = greatest(model, "lack_of_fit_f");
    if (p > 0)
        report_number(section, "lack_of_fit_f", "lack of fit, greatest F", p, "1", 3, true);
    for (size_t i = 0; i < model->skipped_count; i++)
        report_note(section, REPORT_WARNING, "%s: not fitted: %s", model->skipped[i].name,
                    model->skipped[i].reason);
}

/* ---- One group */

static char *part_label(const struct model_part *part) {
    if (part->name)
        return xstrdup(part->name);
    if (isfinite(part->from) || isfinite(part->to))
        return xformat("%g to %g", part->from, part->to);
    return xstrdup(part->kind);
}

static void report_terms(struct report_section *section, const struct model *model,
                         const struct model_part *part) {
    static const struct report_column columns[] = {
        {.name = "term"},
        {.name = "estimate", .digits = 6},
        {.name = "standard_error", .label = "std error", .digits = 3},
        {.name = "unit"},
        {.name = "t", .digits = 4, .detail = true},
        {.name = "p", .digits = 3, .detail = true},
    };
    struct report_table *table =
        report_table(section, "terms", NULL, columns, sizeof columns / sizeof *columns);
    for (size_t t = 0; t < model->term_count; t++) {
        const struct model_estimate *estimate = &part->estimates[t];
        if (estimate->dropped)
            continue;
        report_cell_text(table, model->terms[t].name);
        report_cell(table, estimate->estimate);
        report_cell(table, estimate->standard_error);
        report_cell_text(table, estimate->at_bound     ? "at its bound"
                                : model->terms[t].unit ? model->terms[t].unit
                                                       : "");
        report_cell(table, estimate->t);
        report_cell(table, estimate->p);
    }
}

/* A value without a unit of its own is in the response's. */
static void report_values(struct report_section *section, const struct model *model,
                          const struct model_value *values, size_t count) {
    static const char *const shown[] = {"sigma",   "r2",        "cv_relative", "bandwidth",
                                        "latency", "half_size", "peak_flops",  "peak_bandwidth"};
    for (size_t i = 0; i < count; i++) {
        bool detail = true;
        for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
            detail = detail && strcmp(values[i].name, shown[k]) != 0;
        report_number(section, values[i].name, NULL, values[i].value,
                      values[i].unit ? values[i].unit : model->response_unit, 6, detail);
    }
}

static void report_group(struct report_section *in, const struct model *model,
                         const struct model_group *group) {
    struct report_section *section =
        report_section(in, group->name, model->group_count > 1 ? group->name : NULL, false);
    report_number(section, "rows", NULL, (double)group->rows, NULL, 0, false);
    for (size_t p = 0; p < group->part_count; p++) {
        const struct model_part *part = &group->parts[p];
        cleanup_free char *label = part_label(part);
        struct report_section *of_part =
            group->part_count > 1 ? report_section(section, label, label, false) : section;
        report_terms(of_part, model, part);
        report_values(of_part, model, part->values, part->value_count);
    }
    report_values(section, model, group->values, group->value_count);
    for (size_t i = 0; i < group->note_count; i++)
        report_note(section, REPORT_NOTE, "%s", group->notes[i]);
}

/* A line a group: rows, error, sigma, and the estimates of its first part. */
static void report_table_of_groups(struct report_section *section, const struct model *model) {
    size_t count = 4 + model->term_count;
    struct report_column *columns = xcalloc(count, sizeof *columns);
    columns[0] = (struct report_column){.name = "group"};
    columns[1] = (struct report_column){.name = "rows"};
    columns[2] = (struct report_column){.name = "cv_relative", .label = "error", .digits = 3};
    columns[3] = (struct report_column){.name = "sigma", .unit = model->response_unit, .digits = 3};
    for (size_t t = 0; t < model->term_count; t++)
        columns[4 + t] =
            (struct report_column){.name = model->terms[t].name, .unit = model->terms[t].unit, .digits = 4};
    struct report_table *table = report_table(section, "groups", NULL, columns, count);
    for (size_t g = 0; g < model->group_count; g++) {
        const struct model_group *group = &model->groups[g];
        report_cell_text(table, group->name);
        report_cell(table, (double)group->rows);
        report_cell(table, model_group_value(group, "cv_relative"));
        report_cell(table, model_group_value(group, "sigma"));
        for (size_t t = 0; t < model->term_count; t++)
            report_cell(table,
                        group->parts[0].estimates[t].dropped ? NAN : group->parts[0].estimates[t].estimate);
    }
    free(columns);
}

void model_report_groups(struct report_section *section, const struct model *model) {
    if (model->group_count > GROUPS_IN_FULL) {
        report_table_of_groups(section, model);
        return;
    }
    for (size_t g = 0; g < model->group_count; g++)
        report_group(section, model, &model->groups[g]);
}
