#include "engine/command-line/model-report.h"

#include "engine/command-line/model-curve.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/model.h"
#include "engine/numerics/quantile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_IN_FULL = 3, PARTS_IN_FULL = 3, SKIPPED_SHOWN = 10, HEAD_BYTES_MAX = 1 << 16 };

/* A model whose cross-validated error is above these is not for prediction. */
static const double usable_relative = 0.10, usable_median = 0.05;
/* From here down a test rejects a model. */
static const double significant = 1e-3;

/* ---- Over the groups */

struct spread {
    double *values; /* that are defined */
    size_t count;
};

static void spread_clear(struct spread *spread) {
    free(spread->values);
}

static void spread_add(struct spread *spread, double value) {
    if (!isfinite(value))
        return;
    if ((spread->count & (spread->count - 1)) == 0) /* room doubles at each power of two */
        spread->values = xrealloc(spread->values, (2 * spread->count + 1) * sizeof *spread->values);
    spread->values[spread->count++] = value;
}

static double spread_quantile(struct spread *spread, double share) {
    quantile_sort(spread->values, spread->count);
    return quantile(spread->values, spread->count, share);
}

/* The values called NAME of all groups that have one. */
static struct spread collect(const struct model *model, const char *name) {
    struct spread spread = {0};
    for (size_t g = 0; g < model->group_count; g++)
        spread_add(&spread, model_group_value(&model->groups[g], name));
    return spread;
}

static double greatest(const struct model *model, const char *name) {
    cleanup(spread_clear) struct spread spread = collect(model, name);
    return spread_quantile(&spread, 1);
}

static double total(const struct model *model, const char *name) {
    cleanup(spread_clear) struct spread spread = collect(model, name);
    double sum = 0;
    for (size_t i = 0; i < spread.count; i++)
        sum += spread.values[i];
    return sum;
}

static double rows_of(const struct model *model) {
    double rows = 0;
    for (size_t g = 0; g < model->group_count; g++)
        rows += (double)model->groups[g].rows;
    return rows;
}

/* Where any group was observed, of a column; false where none says so. */
static bool find_range(const struct model *model, const char *name, double *ret_low, double *ret_high) {
    *ret_low = INFINITY;
    *ret_high = -INFINITY;
    for (size_t g = 0; g < model->group_count; g++)
        for (size_t p = 0; p < model->groups[g].part_count; p++) {
            const struct model_range *range = model_range_find(&model->groups[g].parts[p], name);
            *ret_low = range ? fmin(*ret_low, range->minimum) : *ret_low;
            *ret_high = range ? fmax(*ret_high, range->maximum) : *ret_high;
        }
    return *ret_low <= *ret_high;
}

/* ---- The verdict */

/* " of m 64 to 2973, n 64 to 2973" */
static void append_domain(const struct model *model, struct text *text) {
    const char *before = " of";
    for (size_t c = 0; c < model->column_count; c++) {
        double low, high;
        if (model->columns[c].level_count > 0 || !find_range(model, model->columns[c].name, &low, &high))
            continue;
        cleanup_free char *from = report_format(low, model->columns[c].unit, 4);
        cleanup_free char *to = report_format(high, model->columns[c].unit, 4);
        (void)text_printf(text, "%s %s %s to %s", before, model->columns[c].name, from, to);
        before = ",";
    }
}

static void append_scores(const struct model *model, double relative, double middle, struct text *text) {
    double settings = total(model, "settings");
    (void)text_printf(text, "cross-validated error %.2g %%%s (median %.2g %%) over %.0f settings",
                      100 * relative, model->group_count > 1 ? " in the worst group" : "", 100 * middle,
                      settings);
    append_domain(model, text);
}

/* Of how many groups the test rejects the formula, and the greatest F of them. */
static size_t count_lacking(const struct model *model, double *ret_f) {
    size_t lacking = 0;
    *ret_f = 0;
    for (size_t g = 0; g < model->group_count; g++)
        if (model_group_value(&model->groups[g], "lack_of_fit_p") < significant) {
            lacking++;
            *ret_f = fmax(*ret_f, model_group_value(&model->groups[g], "lack_of_fit_f"));
        }
    return lacking;
}

static void append_lack_of_fit(const struct model *model, struct text *text) {
    double f;
    size_t lacking = count_lacking(model, &f);
    if (lacking == 0)
        return;
    (void)text_printf(text, "; significant lack of fit (F = %.3g", f);
    if (model->group_count > 1)
        (void)text_printf(text, ", in %zu of %zu groups", lacking, model->group_count);
    (void)text_append_string(text, "): the standard errors are too small");
}

void model_report_verdict(struct report_section *section, const struct model *model, const char *hint) {
    cleanup(text_clear) struct text text;
    double relative = greatest(model, "cv_relative"), middle = greatest(model, "cv_median_relative");
    double nonpositive = total(model, "nonpositive_rows"), f;
    bool usable = relative <= usable_relative && middle <= usable_median && !(nonpositive > 0);
    text_init(&text, HEAD_BYTES_MAX); /* a sentence that is too long is cut */
    if (isnan(relative)) {
        (void)text_printf(&text, "fitted to %.0f rows", rows_of(model));
        append_domain(model, &text);
        (void)text_append_string(&text, "; how well it predicts is not known");
    } else {
        (void)text_append_string(&text, usable ? "usable: " : "not usable for prediction: ");
        append_scores(model, relative, middle, &text);
    }
    append_lack_of_fit(model, &text);
    if (nonpositive > 0)
        (void)text_printf(&text, "; 0 or less is predicted for %.0f of its own %.0f rows", nonpositive,
                          rows_of(model));
    if (hint)
        (void)text_printf(&text, "; %s", hint);
    report_text(section, "verdict", "", text.bytes, false);
    report_number(section, "cv_relative", "cross-validated error, of the mean", relative, "1", 3, true);
    report_number(section, "cv_median_relative", "median relative error", middle, "1", 3, true);
    report_number(section, "groups_lacking_fit", "groups that lack fit", (double)count_lacking(model, &f),
                  "1", 0, true);
}

/* ---- How fast a matrix product is */

/* The term m*n*k, or term_count. */
static size_t find_product(const struct model *model) {
    for (size_t t = 0; t < model->term_count; t++) {
        const struct model_term *term = &model->terms[t];
        bool seen[3] = {false, false, false}, other = term->factor_count != 3;
        for (size_t f = 0; !other && f < 3; f++) {
            const struct model_factor *factor = &term->factors[f];
            const char *place = strlen(factor->column) == 1 ? strpbrk("mnk", factor->column) : NULL;
            other = !place || factor->power != 1 || factor->level || factor->function;
            if (!other)
                seen[*place == 'm' ? 0 : *place == 'n' ? 1 : 2] = true;
        }
        if (!other && seen[0] && seen[1] && seen[2])
            return t;
    }
    return model->term_count;
}

/* 2mnk operations in the time that m*n*k adds; NaN: not known. */
static double speed_of(const struct model *model, const struct model_group *group) {
    size_t t = find_product(model);
    if (t == model->term_count || !(model->response_seconds > 0) || group->part_count != 1)
        return NAN;
    double seconds = group->parts[0].estimates[t].estimate * model->response_seconds;
    return seconds > 0 ? 2 / seconds : NAN;
}

void model_report_speed(struct report_section *section, const struct model *model) {
    const struct model_group *slowest = NULL, *fastest = NULL;
    cleanup(spread_clear) struct spread spread = {0};
    for (size_t g = 0; g < model->group_count; g++) {
        double speed = speed_of(model, &model->groups[g]);
        if (isnan(speed))
            continue;
        slowest = slowest && speed_of(model, slowest) <= speed ? slowest : &model->groups[g];
        fastest = fastest && speed_of(model, fastest) >= speed ? fastest : &model->groups[g];
        spread_add(&spread, speed);
    }
    if (spread.count == 0)
        return;
    double least = speed_of(model, slowest), most = speed_of(model, fastest);
    report_number(section, "speed", "speed, asymptotic, of 2mnk operations", spread_quantile(&spread, 0.5),
                  "flop/s", 3, false);
    if (spread.count == 1)
        return;
    cleanup_free char *slow = report_format(least, "flop/s", 3), *fast = report_format(most, "flop/s", 3);
    cleanup_free char *pair = xformat("%s (%s) and %s (%s): the slowest has %.3g %% of the fastest", slow,
                                      slowest->name, fast, fastest->name, 100 * least / most);
    report_text(section, "speeds", "slowest and fastest group", pair, false);
}

/* ---- One group */

static char *part_label(const struct model_part *part) {
    bool has_from = isfinite(part->from), has_to = isfinite(part->to);
    cleanup_free char *from = has_from ? xformat("from %g", part->from) : NULL;
    cleanup_free char *to = has_to ? xformat("%s %g", has_from ? " to" : "below", part->to) : NULL;
    return xformat("%s%s%s%s",
                   part->name           ? part->name
                   : has_from || has_to ? ""
                                        : part->kind,
                   part->name && (has_from || has_to) ? ", " : "", from ? from : "", to ? to : "");
}

static void report_terms(struct report_section *section, const struct model *model,
                         const struct model_part *part) {
    const struct report_column columns[] = {
        {.name = "term"},
        {.name = "estimate", .digits = 7},
        {.name = "standard_error", .label = "std error", .digits = 3},
        {.name = "unit"},
        {.name = "t", .digits = 4, .detail = true},
        {.name = "p", .digits = 3, .detail = true},
        {.name = "noise", .digits = 4, .detail = !part->noise.coefficients},
        {.name = "remark", .label = ""},
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
        report_cell_text(table, model->terms[t].unit ? model->terms[t].unit : "");
        report_cell(table, estimate->t);
        report_cell(table, estimate->p);
        report_cell(table, part->noise.coefficients ? part->noise.coefficients[t] : NAN);
        report_cell_text(table, estimate->at_bound ? "at its bound" : "");
    }
}

/* Those that are printed without --verbose. */
static bool is_shown(const char *name) {
    static const char *const shown[] = {"r2",         "bandwidth",  "latency",        "half_size",
                                        "peak_flops", "peak_speed", "peak_bandwidth", "lat_factor",
                                        "bw_factor",  "charged",    "weight",         "outliers_deleted"};
    for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
        if (strcmp(name, shown[k]) == 0)
            return true;
    return false;
}

/* A value without a unit of its own is in the response's. */
static void report_values(struct report_section *section, const struct model *model,
                          const struct model_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        report_number(section, values[i].name, NULL, values[i].value,
                      values[i].unit ? values[i].unit : model->response_unit, 6, !is_shown(values[i].name));
}

static void report_noise(struct report_section *in, const struct model *model,
                         const struct model_noise *noise) {
    static const char *const kinds[] = {[MODEL_NOISE_HOMOSCEDASTIC] = "homoscedastic",
                                        [MODEL_NOISE_HETEROSCEDASTIC] = "heteroscedastic",
                                        [MODEL_NOISE_MIXTURE] = "mixture of normals"};
    static const struct report_column columns[] = {
        {.name = "weight", .digits = 4}, {.name = "mean", .digits = 5}, {.name = "sigma", .digits = 5}};
    if (noise->kind == MODEL_NOISE_NONE)
        return;
    cleanup_free char *text =
        xformat("%s%s%s%s", kinds[noise->kind], noise->half_normal ? ", half-normal" : "",
                noise->method ? ", by " : "", noise->method ? noise->method : "");
    report_text(in, "noise", NULL, text, false);
    if (noise->kind != MODEL_NOISE_MIXTURE)
        report_number(in, "noise_constant",
                      noise->kind == MODEL_NOISE_HOMOSCEDASTIC ? "residual standard error"
                                                               : "noise, constant",
                      noise->constant, model->response_unit, 4, false);
    if (noise->component_count == 0)
        return;
    struct report_table *table = report_table(in, "components", NULL, columns, 3);
    for (size_t i = 0; i < noise->component_count; i++) {
        report_cell(table, noise->components[i].weight);
        report_cell(table, noise->components[i].mean);
        report_cell(table, noise->components[i].sigma);
    }
}

static void report_domain(struct report_section *section, const struct model *model,
                          const struct model_part *part) {
    static const struct report_column columns[] = {
        {.name = "of"}, {.name = "minimum", .digits = 6}, {.name = "maximum", .digits = 6}, {.name = "unit"}};
    if (part->domain_count == 0)
        return;
    struct report_section *in = report_section(section, "domain", "measured for", true);
    struct report_table *table = report_table(in, "ranges", NULL, columns, 4);
    for (size_t i = 0; i < part->domain_count; i++) {
        const char *unit = model_column_unit(model, part->domain[i].name);
        report_cell_text(table, part->domain[i].name);
        report_cell(table, part->domain[i].minimum);
        report_cell(table, part->domain[i].maximum);
        report_cell_text(table, unit ? unit : "");
    }
}

/* The values of all parts, the first of each name; the caller frees. */
static const struct model_value **collect_values(const struct model_group *group, size_t *ret_count) {
    const struct model_value **values = NULL;
    *ret_count = 0;
    for (size_t p = 0; p < group->part_count; p++)
        for (size_t v = 0; v < group->parts[p].value_count; v++) {
            size_t known = 0;
            while (known < *ret_count && strcmp(values[known]->name, group->parts[p].values[v].name) != 0)
                known++;
            if (known < *ret_count)
                continue;
            values = xrealloc(values, (known + 1) * sizeof *values);
            values[(*ret_count)++] = &group->parts[p].values[v];
        }
    return values;
}

/* A line each. */
static void report_table_of_parts(struct report_section *section, const struct model *model,
                                  const struct model_group *group) {
    size_t value_count, count = 0;
    cleanup_free const struct model_value **values = collect_values(group, &value_count);
    cleanup_free struct report_column *columns =
        xcalloc(2 + model->term_count + value_count, sizeof *columns);
    columns[count++] = (struct report_column){.name = "part"};
    for (size_t t = 0; t < model->term_count; t++)
        columns[count++] =
            (struct report_column){.name = model->terms[t].name, .unit = model->terms[t].unit, .digits = 5};
    columns[count++] = (struct report_column){.name = "noise", .unit = model->response_unit, .digits = 3};
    for (size_t v = 0; v < value_count; v++)
        columns[count++] =
            (struct report_column){.name = values[v]->name,
                                   .unit = values[v]->unit ? values[v]->unit : model->response_unit,
                                   .digits = 5,
                                   .detail = !is_shown(values[v]->name)};
    struct report_table *table = report_table(section, "parts", NULL, columns, count);
    for (size_t p = 0; p < group->part_count; p++) {
        const struct model_part *part = &group->parts[p];
        cleanup_free char *label = part_label(part);
        report_cell_text(table, label);
        for (size_t t = 0; t < model->term_count; t++)
            report_cell(table, part->estimates[t].dropped ? NAN : part->estimates[t].estimate);
        report_cell(table, part->noise.kind == MODEL_NOISE_NONE ? NAN : part->noise.constant);
        for (size_t v = 0; v < value_count; v++) {
            const struct model_value *value =
                model_value_find(part->values, part->value_count, values[v]->name);
            report_cell(table, value ? value->value : NAN);
        }
    }
}

void model_report_group(struct report_section *in, const struct model *model,
                        const struct model_group *group) {
    bool is_alone = model->group_count == 1;
    const char *title = is_alone ? NULL : group->name[0] ? group->name : "(empty)";
    struct report_section *section = report_section(in, group->name, title, false);
    report_number(section, "rows", NULL, (double)group->rows, NULL, 0, false);
    if (group->part_count > PARTS_IN_FULL)
        report_table_of_parts(section, model, group);
    for (size_t p = 0; group->part_count <= PARTS_IN_FULL && p < group->part_count; p++) {
        const struct model_part *part = &group->parts[p];
        cleanup_free char *label = part_label(part);
        struct report_section *of_part =
            group->part_count > 1 ? report_section(section, label, label, false) : section;
        report_terms(of_part, model, part);
        report_noise(of_part, model, &part->noise);
        report_values(of_part, model, part->values, part->value_count);
        report_domain(of_part, model, part);
    }
    report_values(section, model, group->values, group->value_count);
    model_report_curve(section, model, group);
    for (size_t i = 0; i < group->note_count; i++)
        report_note(section, REPORT_NOTE, "%s", group->notes[i]);
}

/* ---- Many groups */

/* A line a group: rows, error, sigma, and the estimates of its first part. */
static void report_table_of_groups(struct report_section *section, const struct model *model) {
    size_t count = 5 + model->term_count;
    cleanup_free struct report_column *columns = xcalloc(count, sizeof *columns);
    bool has_speed = find_product(model) < model->term_count && model->response_seconds > 0;
    columns[0] = (struct report_column){.name = "group"};
    columns[1] = (struct report_column){.name = "rows"};
    columns[2] = (struct report_column){.name = "cv_relative", .label = "error", .unit = "%", .digits = 3};
    columns[3] = (struct report_column){.name = "sigma", .unit = model->response_unit, .digits = 3};
    columns[4] =
        (struct report_column){.name = "speed", .unit = "Gflop/s", .digits = 3, .detail = !has_speed};
    for (size_t t = 0; t < model->term_count; t++)
        columns[5 + t] =
            (struct report_column){.name = model->terms[t].name, .unit = model->terms[t].unit, .digits = 4};
    struct report_table *table = report_table(section, "groups", NULL, columns, count);
    for (size_t g = 0; g < model->group_count; g++) {
        const struct model_group *group = &model->groups[g];
        report_cell_text(table, group->name);
        report_cell(table, (double)group->rows);
        report_cell(table, 100 * model_group_value(group, "cv_relative"));
        report_cell(table, model_group_value(group, "sigma"));
        report_cell(table, speed_of(model, group) / 1e9);
        for (size_t t = 0; t < model->term_count; t++)
            report_cell(table,
                        group->parts[0].estimates[t].dropped ? NAN : group->parts[0].estimates[t].estimate);
    }
}

static void report_spread(struct report_table *table, const char *name, const char *unit,
                          struct spread *spread, double error) {
    report_cell_text(table, name);
    report_cell(table, spread_quantile(spread, 0));
    report_cell(table, spread_quantile(spread, 0.5));
    report_cell(table, spread_quantile(spread, 1));
    report_cell(table, error);
    report_cell_text(table, unit ? unit : "");
}

/* How the estimates differ between groups, and how sure a single one is; then the values of the first part.
 */
static void report_spreads(struct report_section *section, const struct model *model) {
    static const struct report_column columns[] = {
        {.name = "name", .label = ""},
        {.name = "minimum", .digits = 6},
        {.name = "median", .digits = 6},
        {.name = "maximum", .digits = 6},
        {.name = "standard_error", .label = "median std error", .digits = 3},
        {.name = "unit"}};
    struct report_table *table = report_table(section, "spread", "over the groups", columns, 6);
    for (size_t t = 0; t < model->term_count; t++) {
        cleanup(spread_clear) struct spread estimates = {0}, errors = {0};
        for (size_t g = 0; g < model->group_count; g++)
            for (size_t p = 0; p < model->groups[g].part_count; p++) {
                const struct model_estimate *estimate = &model->groups[g].parts[p].estimates[t];
                spread_add(&estimates, estimate->dropped ? NAN : estimate->estimate);
                spread_add(&errors, estimate->standard_error);
            }
        report_spread(table, model->terms[t].name, model->terms[t].unit, &estimates,
                      spread_quantile(&errors, 0.5));
    }
    const struct model_part *first = &model->groups[0].parts[0];
    for (size_t v = 0; v < first->value_count; v++) {
        cleanup(spread_clear) struct spread values = collect(model, first->values[v].name);
        const char *unit = first->values[v].unit ? first->values[v].unit : model->response_unit;
        report_spread(table, first->values[v].name, unit, &values, NAN);
    }
}

void model_report_groups(struct report_section *section, const struct model *model) {
    struct report_section *in = report_section(section, "groups", NULL, false);
    for (size_t g = 0; model->group_count <= GROUPS_IN_FULL && g < model->group_count; g++)
        model_report_group(in, model, &model->groups[g]);
    if (model->group_count > GROUPS_IN_FULL) {
        report_table_of_groups(in, model);
        report_spreads(report_section(section, "spread", NULL, false), model);
    }
    for (size_t i = 0; i < model->skipped_count && i < SKIPPED_SHOWN; i++)
        report_note(section, REPORT_WARNING, "%s: not fitted: %s", model->skipped[i].name,
                    model->skipped[i].reason);
    if (model->skipped_count > SKIPPED_SHOWN)
        report_note(section, REPORT_WARNING, "and %zu more groups are not fitted",
                    model->skipped_count - SKIPPED_SHOWN);
}
