#include "engine/predict/explain.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 3 };
static const double step = 1e-3; /* relative: errors of rounding and of curvature are both below 1e-5 */

/* A quantity that is varied: a parameter, or the estimates of a term in all groups and parts of a model. */
struct varied {
    double **numbers;
    size_t count;
};

/* The elasticity d log(column) / d log(quantity) into *RET, by central differences; the quantity is
 * restored. */
static int vary(struct prediction *prediction, size_t column, const struct varied *varied, double *ret,
                struct failure *failure) {
    cleanup_free double *before = xcalloc(varied->count + 1, sizeof *before);
    double found[2] = {NAN, NAN}, middle = prediction->results[0].rows[0].values[column];
    int r = 0;
    for (size_t i = 0; i < varied->count; i++)
        before[i] = *varied->numbers[i];
    for (int side = 0; r == 0 && side < 2; side++) {
        for (size_t i = 0; i < varied->count; i++)
            *varied->numbers[i] = before[i] * (side ? 1 + step : 1 - step);
        models_draw(&prediction->models, 0);
        r = prediction_run_again(prediction, column, &found[side], failure);
    }
    for (size_t i = 0; i < varied->count; i++)
        *varied->numbers[i] = before[i];
    models_draw(&prediction->models, 0);
    *ret = (found[1] - found[0]) / (2 * step * middle);
    return r;
}

/* Adds a line for a quantity that has an effect on COLUMN. */
static int add_effect(struct prediction *prediction, size_t column, const struct varied *varied,
                      const char *of, const char *name, struct report_table *table, struct failure *failure) {
    double effect;
    int r = vary(prediction, column, varied, &effect, failure);
    if (r == 0 && effect != 0) {
        report_cell_text(table, of);
        report_cell_text(table, name);
        report_cell(table, effect); /* by 1 % more of it */
    }
    return r;
}

/* Adds a line for each term of a model. */
static int add_terms(struct prediction *prediction, size_t column, const struct given_model *given,
                     struct report_table *table, struct failure *failure) {
    struct model *model = given->model;
    size_t parts = 0;
    int r = 0;
    for (size_t g = 0; g < model->group_count; g++)
        parts += model->groups[g].part_count;
    cleanup_free double **numbers = xcalloc(parts + 1, sizeof *numbers);
    for (size_t t = 0; r == 0 && given->evaluator && t < model->term_count; t++) {
        struct varied varied = {.numbers = numbers};
        for (size_t g = 0; g < model->group_count; g++)
            for (size_t p = 0; p < model->groups[g].part_count; p++)
                numbers[varied.count++] = &model->groups[g].parts[p].estimates[t].estimate;
        r = add_effect(prediction, column, &varied, given->source.file, model->terms[t].name, table, failure);
    }
    return r;
}

/* Adds the parts of the main column, and the effects of terms and parameters on it. -EINVAL: the result is
 * not one row with a number. */
int prediction_explain(struct prediction *prediction, struct report_section *section, struct explanation *ret,
                       struct failure *failure) {
    static const struct column part_columns[] = {
        {.name = "part"}, {.name = "share", .unit = "%", .digits = DIGITS}, {.name = "help"}};
    static const struct column effect_columns[] = {
        {.name = "of"}, {.name = "name"}, {.name = "effect", .unit = "%", .digits = DIGITS}};
    const struct column *columns = prediction->plugin->columns;
    size_t column = prediction_main_column(prediction);
    const struct prediction_row *row = &prediction->results[0].rows[0];
    size_t scenarios = prediction->scenarios.count, rows = prediction->results[0].row_count;
    if (scenarios != 1 || rows != 1)
        return failure_input(failure, NULL, 0, 0,
                             "cannot explain %zu %s; set one value for each parameter, so that the result "
                             "has one row",
                             scenarios != 1 ? scenarios : rows, scenarios != 1 ? "scenarios" : "rows");
    if (column == prediction->column_count)
        return failure_input(failure, NULL, 0, 0,
                             "--explain is not possible: the result of %s has no numbers",
                             prediction->library->plugin->name);
    if (!isfinite(row->values[column]) || row->values[column] == 0)
        return failure_input(failure, NULL, 0, 0,
                             "cannot explain %s: its value is %g, and shares need a number other "
                             "than 0; run the scenario without --explain and read its warnings",
                             columns[column].name, row->values[column]);
    cleanup_free char *title = xformat("parts of %s", columns[column].name);
    report_text(section, "explained", NULL, columns[column].name, true);
    struct report_table *parts = report_table(section, "parts", title, part_columns, 3);
    for (size_t c = 0; c < prediction->column_count; c++)
        if (columns[c].part_of && strcmp(columns[c].part_of, columns[column].name) == 0) {
            report_cell_text(parts, columns[c].name);
            report_cell(parts, 100 * row->values[c] / row->values[column]);
            report_cell_text(parts, columns[c].help);
        }
    cleanup_free char *change =
        xformat("change of %s if a term or parameter is 1 %% greater", columns[column].name);
    struct report_table *effects = report_table(section, "effects", change, effect_columns, 3);
    int r = 0;
    for (size_t i = 0; r == 0 && i < prediction->models.count; i++)
        r = add_terms(prediction, column, &prediction->models.items[i], effects, failure);
    const struct parameters *parameters = &prediction->scenarios.items[0].parameters;
    for (size_t p = prediction->scenarios.option_count; r == 0 && p < parameters->count; p++) {
        const struct plugin_parameter *parameter = &parameters->table[p];
        double *number = &parameters->values[p].number;
        if (parameter->type == PLUGIN_NUMBER && !parameter->integer && isfinite(*number))
            r = add_effect(prediction, column, &(struct varied){&number, 1}, "parameter", parameter->name,
                           effects, failure);
    }
    *ret = (struct explanation){parts, effects};
    return r;
}
