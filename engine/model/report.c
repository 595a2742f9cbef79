#include "engine/model/report.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/curve.h"
#include "engine/model/evaluator.h"
#include "engine/model/model.h"
#include "engine/model/spread.h"
#include "engine/model/verdict.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUPS_IN_FULL = 3,
    PARTS_IN_FULL = 3,
    SKIPPED_SHOWN = 10,
    BREAKS_BYTES_MAX = 1 << 16,
    TERMS_WRITTEN = 12 /* of a formula; the others are in the table of coefficients */
};

/* ---- One group */

/* The name of a part with its bounds, as "Send, from 1420 to 65536"; without bounds or name its kind. The
 * caller frees. */
static char *part_label(const struct model_part *part) {
    bool has_from = isfinite(part->from), has_to = isfinite(part->to);
    cleanup_free char *from = has_from ? xformat("from %.10g", part->from) : NULL;
    cleanup_free char *to = has_to ? xformat("%s %.10g", has_from ? " to" : "below", part->to) : NULL;
    return xformat("%s%s%s%s",
                   part->name           ? part->name
                   : has_from || has_to ? ""
                                        : part->kind,
                   part->name && (has_from || has_to) ? ", " : "", from ? from : "", to ? to : "");
}

/* The label of a part as a heading, as "size below 1420 byte". The caller frees. */
static char *part_title(const struct model *model, const struct model_part *part) {
    cleanup_free char *label = part_label(part);
    bool has_range = model->over && !part->name && (isfinite(part->from) || isfinite(part->to));
    const char *unit = has_range ? unit_label(model_column_unit(model, model->over)) : "";
    return xformat("%s%s%s%s%s", has_range ? model->over : "", has_range ? " " : "", label,
                   unit[0] ? " " : "", unit);
}

/* Adds a table of the part's estimates; terms that were dropped are left out. */
static void report_terms(struct report_section *section, const struct model *model,
                         const struct model_part *part) {
    const struct column columns[] = {
        {.name = "term"},
        {.name = "estimate", .digits = 7},
        {.name = "standard_error", .label = "std error", .digits = 3},
        {.name = "unit"},
        {.name = "t", .digits = 4, .detail = true},
        {.name = "p", .digits = 3, .detail = true},
        {.name = "noise", .digits = 4, .detail = !part->noise.coefficients},
        {.name = "remark", .label = ""},
        {.name = "deviation", .label = "std deviation", .digits = 4},
    };
    bool is_population = !evaluator_knows(model->kind) && part->covariance; /* between machines or days */
    struct report_table *table = report_table(section, "terms", NULL, columns, is_population ? 9 : 8);
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
        if (is_population)
            report_cell(table, sqrt(part->covariance[t * model->term_count + t]));
    }
}

/* Whether the value NAME is printed without --verbose. */
static bool is_main(const struct model *model, const char *name) {
    return text_find(name, (const char *const *)model->main_values, model->main_value_count) <
           model->main_value_count;
}

/* The unit of VALUE; the response's if it has none of its own. */
static const char *unit_of(const struct model *model, const struct model_value *value) {
    return value->unit ? value->unit : model->response_unit;
}

static void report_values(struct report_section *section, const struct model *model,
                          const struct model_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        report_number(section, values[i].name, NULL, values[i].value, unit_of(model, &values[i]), 6,
                      !is_main(model, values[i].name));
}

/* Adds kind, size and, for a mixture, components of the noise; nothing for a part without noise. */
static void report_noise(struct report_section *in, const struct model *model,
                         const struct model_noise *noise) {
    static const char *const kinds[] = {[MODEL_NOISE_HOMOSCEDASTIC] = "homoscedastic",
                                        [MODEL_NOISE_HETEROSCEDASTIC] = "heteroscedastic",
                                        [MODEL_NOISE_MIXTURE] = "mixture of normals"};
    static const struct column columns[] = {
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

/* Adds a table of the ranges that the part was measured for. */
static void report_domain(struct report_section *section, const struct model *model,
                          const struct model_part *part) {
    static const struct column columns[] = {
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
        for (size_t v = 0; v < group->parts[p].value_count; v++)
            model_values_add(&values, ret_count, &group->parts[p].values[v]);
    return values;
}

/* Adds a table with a line for each part: estimates, noise, values. */
static void report_table_of_parts(struct report_section *section, const struct model *model,
                                  const struct model_group *group) {
    size_t value_count, count = 0;
    cleanup_free const struct model_value **values = collect_values(group, &value_count);
    cleanup_free struct column *columns = xcalloc(2 + model->term_count + value_count, sizeof *columns);
    const char *unit = model->over ? model_column_unit(model, model->over) : NULL;
    cleanup_free char *by = model->over ? xformat("part by %s", model->over) : NULL;
    columns[count++] = (struct column){.name = "part", .label = by, .unit = unit};
    for (size_t t = 0; t < model->term_count; t++)
        columns[count++] =
            (struct column){.name = model->terms[t].name, .unit = model->terms[t].unit, .digits = 5};
    columns[count++] = (struct column){
        .name = "noise", .label = "noise, constant", .unit = model->response_unit, .digits = 3};
    for (size_t v = 0; v < value_count; v++)
        columns[count++] = (struct column){.name = values[v]->name,
                                           .unit = unit_of(model, values[v]),
                                           .digits = 5,
                                           .detail = !is_main(model, values[v]->name)};
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

/* Adds rows, parts, values and notes of GROUP; many parts as one table. */
void model_report_group(struct report_section *in, const struct model *model, const struct model_group *group,
                        bool has_chart) {
    const char *title = model->group_count == 1 ? "" : group->name[0] ? group->name : "(empty)";
    struct report_section *section = report_section(in, group->name, title, false);
    report_number(section, "rows", NULL, (double)group->rows, NULL, 0, false);
    if (group->part_count > PARTS_IN_FULL)
        report_table_of_parts(section, model, group);
    for (size_t p = 0; group->part_count <= PARTS_IN_FULL && p < group->part_count; p++) {
        const struct model_part *part = &group->parts[p];
        cleanup_free char *label = part_label(part), *heading = part_title(model, part);
        struct report_section *of_part =
            group->part_count > 1 ? report_section(section, label, heading, false) : section;
        report_terms(of_part, model, part);
        report_noise(of_part, model, &part->noise);
        report_values(of_part, model, part->values, part->value_count);
        report_domain(of_part, model, part);
    }
    report_values(section, model, group->values, group->value_count);
    if (has_chart)
        model_report_curve(section, model, group);
    for (size_t i = 0; i < group->note_count; i++)
        report_note(section, REPORT_NOTE, "%s", group->notes[i]);
}

/* ---- Many groups */

/* Where the segments of a group begin, as "35, 8100, 65591"; "" if parts are told apart by name. The caller
 * frees. */
static char *list_breaks(const struct model *model, const struct model_group *group) {
    cleanup(text_clear) struct text text;
    text_init(&text, BREAKS_BYTES_MAX);
    for (size_t p = 1; !model->named_by && p < group->part_count; p++)
        (void)text_printf(&text, "%s%.10g", p > 1 ? ", " : "", group->parts[p].from);
    return xstrdup(text.bytes ? text.bytes : "");
}

/* Adds a table with a line for each group of segments: rows, error, and where segments begin; estimates do
 * not fit into a line. */
static void report_table_of_segments(struct report_section *section, const struct model *model) {
    const struct column columns[] = {{.name = "group"},
                                     {.name = "rows"},
                                     {.name = "cv_relative", .label = "error", .unit = "%", .digits = 3},
                                     {.name = "parts"},
                                     {.name = "breaks", .unit = model_column_unit(model, model->over)}};
    struct report_table *table = report_table(section, "groups", "", columns, 5);
    for (size_t g = 0; g < model->group_count; g++) {
        const struct model_group *group = &model->groups[g];
        cleanup_free char *breaks = list_breaks(model, group);
        report_cell_text(table, group->name);
        report_cell(table, (double)group->rows);
        report_cell(table, 100 * model_group_value(group, "cv_relative"));
        report_cell(table, (double)group->part_count);
        report_cell_text(table, breaks);
    }
    report_note(section, REPORT_NOTE,
                "'assay model show MODEL --group NAME' prints the estimates of a group");
}

/* Adds a table with a line for each group: rows, error, sigma, speed, and the estimates of its first part. */
static void report_table_of_groups(struct report_section *section, const struct model *model) {
    size_t count = 5 + model->term_count;
    cleanup_free struct column *columns = xcalloc(count, sizeof *columns);
    bool has_speed = !isnan(model_verdict_speed_of(model, &model->groups[0]));
    columns[0] = (struct column){.name = "group"};
    columns[1] = (struct column){.name = "rows"};
    columns[2] = (struct column){.name = "cv_relative", .label = "error", .unit = "%", .digits = 3};
    columns[3] = (struct column){.name = "sigma", .unit = model->response_unit, .digits = 3};
    columns[4] = (struct column){.name = "speed", .unit = "Gflop/s", .digits = 3, .detail = !has_speed};
    for (size_t t = 0; t < model->term_count; t++)
        columns[5 + t] =
            (struct column){.name = model->terms[t].name, .unit = model->terms[t].unit, .digits = 4};
    struct report_table *table = report_table(section, "groups", "", columns, count);
    for (size_t g = 0; g < model->group_count; g++) {
        const struct model_group *group = &model->groups[g];
        report_cell_text(table, group->name);
        report_cell(table, (double)group->rows);
        report_cell(table, 100 * model_group_value(group, "cv_relative"));
        report_cell(table, model_group_value(group, "sigma"));
        report_cell(table, model_verdict_speed_of(model, group) / 1e9);
        for (size_t t = 0; t < model->term_count; t++)
            report_cell(table,
                        group->parts[0].estimates[t].dropped ? NAN : group->parts[0].estimates[t].estimate);
    }
}

static void report_spread(struct report_table *table, const char *name, const char *unit,
                          struct model_spread *spread, double error) {
    report_cell_text(table, name);
    report_cell(table, model_spread_quantile(spread, 0));
    report_cell(table, model_spread_quantile(spread, 0.5));
    report_cell(table, model_spread_quantile(spread, 1));
    report_cell(table, error);
    report_cell_text(table, unit ? unit : "");
}

/* Adds a table of minimum, median and maximum over the groups: of each estimate, then of each value of the
 * first part. */
static void report_spreads(struct report_section *section, const struct model *model) {
    static const struct column columns[] = {
        {.name = "name", .label = ""},
        {.name = "minimum", .digits = 6},
        {.name = "median", .digits = 6},
        {.name = "maximum", .digits = 6},
        {.name = "standard_error", .label = "median std error", .digits = 3},
        {.name = "unit"}};
    struct report_table *table = report_table(section, "spread", "summary over the groups", columns, 6);
    struct report_table *more =
        report_table(report_section(section, "values", NULL, true), "values", "", columns, 6);
    for (size_t t = 0; t < model->term_count; t++) {
        cleanup(model_spread_clear) struct model_spread estimates = {0}, errors = {0};
        for (size_t g = 0; g < model->group_count; g++)
            for (size_t p = 0; p < model->groups[g].part_count; p++) {
                const struct model_estimate *estimate = &model->groups[g].parts[p].estimates[t];
                model_spread_add(&estimates, estimate->dropped ? NAN : estimate->estimate);
                model_spread_add(&errors, estimate->standard_error);
            }
        report_spread(table, model->terms[t].name, model->terms[t].unit, &estimates,
                      model_spread_quantile(&errors, 0.5));
    }
    const struct model_part *first = &model->groups[0].parts[0];
    for (size_t v = 0; v < first->value_count; v++) {
        cleanup(model_spread_clear) struct model_spread values =
            model_spread_collect(model, first->values[v].name);
        const char *name = first->values[v].name;
        bool is_first = is_main(model, name) || strcmp(name, "sigma") == 0;
        report_spread(is_first ? table : more, name, unit_of(model, &first->values[v]), &values, NAN);
    }
}

/* Adds all groups: a few of them in full, many as tables; and the groups that were not fitted. */
void model_report_groups(struct report_section *section, const struct model *model, bool has_charts) {
    struct report_section *in = report_section(section, "groups", NULL, false);
    for (size_t g = 0; model->group_count <= GROUPS_IN_FULL && g < model->group_count; g++)
        model_report_group(in, model, &model->groups[g], has_charts);
    if (model->group_count > GROUPS_IN_FULL && model->over) {
        report_table_of_segments(in, model);
    } else if (model->group_count > GROUPS_IN_FULL) {
        report_table_of_groups(in, model);
        report_spreads(report_section(section, "spread", NULL, false), model);
    }
    for (size_t i = 0; i < model->skipped_count && i < SKIPPED_SHOWN; i++)
        report_note(section, REPORT_WARNING, "%s: not fitted: %s", model->skipped[i].name,
                    model->skipped[i].reason);
    if (model->skipped_count > SKIPPED_SHOWN)
        report_note(section, REPORT_WARNING, "%zu more groups are not fitted",
                    model->skipped_count - SKIPPED_SHOWN);
}

/* ---- The model */

/* Adds the formula, as "duration (s) = c1 + c2 m*n*k; by host"; for a kind without a formula the names of its
 * coefficients, as "intercept, mnk; by host". */
static void report_formula(struct report_section *section, const struct model *model) {
    bool is_formula = evaluator_knows(model->kind);
    size_t shown = is_formula && model->term_count > TERMS_WRITTEN ? TERMS_WRITTEN : model->term_count;
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    if (is_formula)
        text_printf(&text, "%s%s%s%s =", model->response, model->response_unit ? " (" : "",
                    model->response_unit ? model->response_unit : "", model->response_unit ? ")" : "");
    for (size_t t = 0; t < shown; t++) {
        const char *name = model->terms[t].name, *factor = strcmp(name, "1") == 0 ? "" : name;
        if (is_formula)
            text_printf(&text, "%s c%zu%s%s", t ? " +" : "", t + 1, factor[0] ? " " : "", factor);
        else
            text_printf(&text, "%s%s", t ? ", " : "", name);
    }
    if (shown < model->term_count)
        text_printf(&text, " + ... (%zu terms)", model->term_count);
    for (size_t j = 0; j < model->by_count; j++)
        text_printf(&text, "%s%s", j ? ", " : "; by ", model->by[j]);
    report_text(section, is_formula ? "formula" : "coefficients", NULL, text.bytes, false);
}

static void report_pair(struct report_section *section, const char *name, const char *text, bool detail) {
    if (text)
        report_text(section, name, NULL, text, detail);
}

/* Adds a table of the inputs that the model was fitted to, if they are known. */
static void report_inputs(struct report_section *section, const struct model_origin *origin) {
    static const struct column columns[] = {{.name = "name", .label = "input"},
                                            {.name = "rows"},
                                            {.name = "experiment"},
                                            {.name = "run_id", .label = "run"},
                                            {.name = "sha256"}};
    if (origin->input_count == 0)
        return;
    struct report_table *table = report_table(section, "inputs", NULL, columns, 5);
    for (size_t i = 0; i < origin->input_count; i++) {
        const struct model_input *input = &origin->inputs[i];
        report_cell_text(table, input->name);
        report_cell(table, (double)input->rows);
        report_cell_text(table, input->experiment ? input->experiment : "");
        report_cell_text(table, input->run_id ? input->run_id : "");
        report_cell_text(table, input->sha256);
    }
}

/* Adds how the model was made: plugin, settings, rows, inputs. */
static void report_origin(struct report_section *in, const struct model *model) {
    const struct model_origin *origin = &model->origin;
    struct report_section *section = report_section(in, "origin", NULL, false);
    cleanup_free char *made = xformat(
        "%s %s, assay %s, %s", origin->plugin ? origin->plugin : "-", origin->version ? origin->version : "-",
        origin->engine ? origin->engine : "-", origin->created ? origin->created : "-");
    report_text(section, "made", "made by", made, false);
    cleanup(text_clear) struct text settings;
    text_init(&settings, SIZE_MAX / 4);
    for (size_t i = 0; i < origin->setting_count; i++)
        text_printf(&settings, "%s%s=%s", i ? " " : "", origin->settings[i], origin->setting_values[i]);
    if (origin->setting_count > 0)
        report_text(section, "settings", NULL, settings.bytes, false);
    report_pair(section, "where", origin->where, false);
    report_pair(section, "weights", model->weights, false);
    report_pair(section, "folds_by", origin->folds_by, true);
    report_number(section, "rows", NULL, (double)origin->rows, NULL, 0, false);
    report_number(section, "seed", NULL, (double)origin->seed, NULL, 0, true);
    report_inputs(section, origin);
}

/* Adds the report of MODEL, or of one GROUP of it if that is not NULL. */
void model_report(struct report_section *in, const struct model *model, const struct model_group *group) {
    cleanup_free char *head =
        xformat("%s: %s model of %s, %zu group%s", model->file, model->kind, model->response,
                model->group_count, model->group_count == 1 ? "" : "s");
    report_text(in, "model", "", head, false);
    if (!group)
        model_verdict_report(in, model, NULL);
    report_pair(in, "kind", model->kind, true);
    report_pair(in, "over", model->over, model->over == NULL);
    report_pair(in, "named_by", model->named_by, false);
    report_number(in, "group_count", "groups", (double)model->group_count, NULL, 0, true);
    if (!group)
        model_verdict_speed(in, model);
    report_formula(in, model);
    report_origin(in, model);
    if (group)
        model_report_group(report_section(in, "groups", NULL, false), model, group, true);
    else
        model_report_groups(in, model, true);
}
