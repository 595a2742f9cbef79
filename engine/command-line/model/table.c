/* assay model table: the coefficients of models as CSV, a row a group, or a part of one. */
#include "engine/command-line/model/command.h"

#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct table_of_models {
    struct model **models;
    size_t model_count;
    bool has_parts;
    bool *has_noise;                   /* of each term: sigma has a coefficient of it */
    const struct model_value **values; /* of what parts have besides: the first of each name */
    size_t value_count;
    char **names; /* of the columns, owned */
    struct column *columns;
    size_t column_count;
};

static void table_of_models_clear(struct table_of_models *table) {
    for (size_t i = 0; i < table->model_count; i++)
        model_free(table->models[i]);
    for (size_t c = 0; c < table->column_count; c++)
        free(table->names[c]);
    free(table->models), free(table->has_noise), free(table->values);
    free(table->names), free(table->columns);
}

/* ---- Models */

/* In which respect MODEL differs from FIRST, "other terms"; NULL: in none. */
static const char *find_difference(const struct model *first, const struct model *model) {
    bool terms = first->term_count == model->term_count, by = first->by_count == model->by_count;
    for (size_t t = 0; terms && t < model->term_count; t++)
        terms = strcmp(first->terms[t].name, model->terms[t].name) == 0;
    for (size_t j = 0; by && j < model->by_count; j++)
        by = strcmp(first->by[j], model->by[j]) == 0;
    for (size_t t = 0; terms && t < model->term_count; t++)
        if (!text_is_same(first->terms[t].unit, model->terms[t].unit))
            return "coefficients in other units";
    return !terms                                                      ? "other terms"
           : !by                                                       ? "groups by other columns"
           : !text_is_same(first->over, model->over)                   ? "segments over another column"
           : !text_is_same(first->response_unit, model->response_unit) ? "a response in another unit"
                                                                       : NULL;
}

/* Reads the model files. Refused: models that differ in terms, groups or units, because they share one table.
 */
static int read_models(struct table_of_models *table, const struct verb_arguments *arguments,
                       struct failure *failure) {
    size_t count = arguments->operand_count - 1;
    const char *const *files = arguments->operands + 1;
    table->models = xcalloc(count, sizeof *table->models);
    for (size_t i = 0; i < count; i++) {
        int r = model_file_read(files[i], &table->models[i], failure);
        if (r < 0)
            return r;
        table->model_count++;
        model_command_warn(table->models[i]);
        const char *what = find_difference(table->models[0], table->models[i]);
        if (what)
            return failure_input(failure, files[i], 0, 0,
                                 "the model has %s than '%s'; expected models of one formula and one unit",
                                 what, files[0]);
    }
    return 0;
}

static void scan_part(struct table_of_models *table, const struct model *model,
                      const struct model_part *part) {
    for (size_t t = 0; part->noise.coefficients && t < model->term_count; t++)
        table->has_noise[t] |= part->noise.coefficients[t] != 0;
    for (size_t v = 0; v < part->value_count; v++)
        if (strcmp(part->values[v].name, "sigma") != 0)
            model_values_add(&table->values, &table->value_count, &part->values[v]);
}

static void scan_parts(struct table_of_models *table) {
    table->has_noise = xcalloc(table->models[0]->term_count + 1, sizeof *table->has_noise);
    for (size_t i = 0; i < table->model_count; i++)
        for (size_t g = 0; g < table->models[i]->group_count; g++) {
            const struct model_group *group = &table->models[i]->groups[g];
            table->has_parts |= group->part_count > 1 || table->models[i]->over;
            for (size_t p = 0; p < group->part_count; p++)
                scan_part(table, table->models[i], &group->parts[p]);
        }
}

/* ---- Columns and rows */

/* Adds a column. A term or label with the name of one of our columns gets the prefix "model.". */
static void add_column(struct table_of_models *table, const char *prefix, const char *name,
                       const char *unit) {
    char *full = xformat("%s%s", prefix, name);
    for (size_t c = 0; c < table->column_count; c++)
        if (strcmp(table->names[c], full) == 0) { /* a term or label that is called as one of ours */
            char *apart = xformat("model.%s", full);
            free(full);
            full = apart;
        }
    size_t count = table->column_count + 1;
    table->names = xrealloc(table->names, count * sizeof *table->names);
    table->columns = xrealloc(table->columns, count * sizeof *table->columns);
    table->names[table->column_count] = full;
    table->columns[table->column_count++] = (struct column){.name = full, .unit = unit};
}

/* Adds the columns: model and groups, parts, terms, sigma, terms of the noise, and the values of parts. */
static void add_columns(struct table_of_models *table) {
    const struct model *first = table->models[0];
    if (table->model_count > 1)
        add_column(table, "", "model", NULL);
    for (size_t j = 0; j < first->by_count; j++)
        add_column(table, "", first->by[j], NULL);
    add_column(table, "", "rows", "1");
    if (table->has_parts) {
        const char *unit = first->over ? model_column_unit(first, first->over) : NULL;
        add_column(table, "", "part", NULL);
        add_column(table, "", "from", unit);
        add_column(table, "", "to", unit);
    }
    for (size_t t = 0; t < first->term_count; t++)
        add_column(table, "", first->terms[t].name, first->terms[t].unit);
    add_column(table, "", "sigma", first->response_unit);
    for (size_t t = 0; t < first->term_count; t++)
        if (table->has_noise[t])
            add_column(table, "sigma.", first->terms[t].name, first->terms[t].unit);
    for (size_t v = 0; v < table->value_count; v++)
        add_column(table, "", table->values[v]->name,
                   table->values[v]->unit ? table->values[v]->unit : first->response_unit);
}

static double value_of(const struct model_part *part, const char *name) {
    const struct model_value *value = model_value_find(part->values, part->value_count, name);
    return value ? value->value : NAN;
}

/* Adds the row of one part of a model. A protocol has no estimates. */
static void add_part(struct table_of_models *of, struct report_table *table, const struct model *model,
                     const struct model_group *group, const struct model_part *part) {
    const struct model_noise *noise = &part->noise;
    bool has_estimates = strcmp(part->kind, "protocol") != 0;
    bool has_constant =
        noise->kind == MODEL_NOISE_HOMOSCEDASTIC || noise->kind == MODEL_NOISE_HETEROSCEDASTIC;
    if (of->model_count > 1)
        report_cell_text(table, model->file);
    for (size_t j = 0; j < model->by_count; j++)
        report_cell_text(table, group->labels[j]);
    report_cell(table, (double)group->rows);
    if (of->has_parts) {
        report_cell_text(table, part->name ? part->name : part->kind);
        report_cell(table, part->from);
        report_cell(table, part->to);
    }
    for (size_t t = 0; t < model->term_count; t++)
        report_cell(table, has_estimates ? part->estimates[t].estimate : NAN);
    report_cell(table, has_constant ? noise->constant : value_of(part, "sigma"));
    for (size_t t = 0; t < model->term_count; t++)
        if (of->has_noise[t])
            report_cell(table, noise->coefficients ? noise->coefficients[t] : NAN);
    for (size_t v = 0; v < of->value_count; v++)
        report_cell(table, value_of(part, of->values[v]->name));
}

int model_command_table(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(table_of_models_clear) struct table_of_models table = {0};
    cleanup(report_cleanup) struct report *report = report_new();
    const char *output = verb_value(arguments, "--output");
    int r = output_check(output, arguments->operands + 1, arguments->operand_count - 1, failure);
    r = r < 0 ? r : read_models(&table, arguments, failure);
    if (r < 0)
        return r;
    scan_parts(&table);
    add_columns(&table);
    struct report_table *rows =
        report_table(report->root, "coefficients", NULL, table.columns, table.column_count);
    for (size_t i = 0; i < table.model_count; i++)
        for (size_t g = 0; g < table.models[i]->group_count; g++)
            for (size_t p = 0; p < table.models[i]->groups[g].part_count; p++)
                add_part(&table, rows, table.models[i], &table.models[i]->groups[g],
                         &table.models[i]->groups[g].parts[p]);
    if (!verb_switch(arguments, "--json"))
        return output_table(rows, output, failure);
    output_report(report, true, false);
    return 0;
}
