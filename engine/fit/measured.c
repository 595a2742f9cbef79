#include "engine/fit/measured.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/model/model.h"
#include "engine/table/folds.h"
#include "engine/table/groups.h"

#include <stdlib.h>
#include <string.h>

/* The columns to load from the table. Numbers: the response and the weights, then the model's inputs.
 * Categories: the inputs that are texts, then the columns of --by. */
struct selection {
    const char **numbers, **categories;
    size_t number_count, category_count, response_count;
};

static void selection_clear(struct selection *selection) {
    free(selection->numbers), free(selection->categories);
}

/* The columns of the table that the model needs. The caller clears the selection. */
static struct selection select_columns(const struct measured *measured, const struct model *model,
                                       const struct measured_options *options) {
    const struct evaluator *evaluator = measured->evaluator;
    struct selection selection = {
        .numbers = xcalloc(evaluator->input_count + 2, sizeof(char *)),
        .categories = xcalloc(evaluator->input_count + model->by_count + 1, sizeof(char *)),
    };
    if (options->response)
        selection.numbers[selection.number_count++] = model->response;
    if (options->response && model->weights)
        selection.numbers[selection.number_count++] = model->weights;
    selection.response_count = selection.number_count;
    for (size_t i = 0; i < evaluator->input_count; i++)
        if (evaluator->inputs[i].is_text)
            selection.categories[selection.category_count++] = evaluator->inputs[i].name;
        else
            selection.numbers[selection.number_count++] = evaluator->inputs[i].name;
    for (size_t j = 0; j < model->by_count; j++)
        selection.categories[selection.category_count++] = model->by[j];
    return selection;
}

/* -EINVAL with FAILURE if the table lacks an input or a label that the model needs; expressions are not
 * checked here. */
static int check_columns(const struct table *table, const struct selection *selection,
                         struct failure *failure) {
    for (size_t i = selection->response_count; i < selection->number_count; i++)
        if (!table_find(table, selection->numbers[i]) && !strpbrk(selection->numbers[i], "+-*/%^(<>="))
            return table_no_column(table, "needed", selection->numbers[i], failure);
    for (size_t j = 0; j < selection->category_count; j++)
        if (!table_find(table, selection->categories[j]))
            return table_no_column(table, "needed", selection->categories[j], failure);
    return 0;
}

/* Converts the values of a loaded column to UNIT. -EINVAL: its unit has another dimension. */
static int convert_column(const struct table *table, struct table_numbers *numbers, const char *unit,
                          struct failure *failure) {
    double multiply, divide;
    if (!numbers->unit || !unit || strcmp(numbers->unit, unit) == 0)
        return 0;
    if (!unit_conversion(numbers->unit, unit, &multiply, &divide))
        return failure_input(failure, table->inputs[0].path, 0, 0,
                             "the column '%s' has the unit '%s'; expected a unit that converts to "
                             "'%s', the unit in the model",
                             numbers->name, numbers->unit, unit);
    for (size_t row = 0; row < table->rows; row++)
        numbers->values[row] = numbers->values[row] * multiply / divide;
    return 0;
}

/* Points each input of the evaluator to its column of the table, from number column NUMBER on, in the model's
 * unit; texts become codes of the evaluator. */
static int bind_inputs(struct measured *measured, const struct model *model, const struct table *table,
                       size_t number, struct failure *failure) {
    const struct evaluator *evaluator = measured->evaluator;
    size_t category = 0;
    for (size_t i = 0; i < evaluator->input_count; i++) {
        struct evaluator_column *column = &measured->columns[i];
        if (!evaluator->inputs[i].is_text) {
            struct table_numbers *numbers = &table->numbers[number++];
            int r = convert_column(table, numbers, model_column_unit(model, numbers->name), failure);
            if (r < 0)
                return r;
            column->numbers = numbers->values;
            continue;
        }
        const struct table_category *texts = &table->categories[category++];
        double *values = xcalloc(texts->level_count + 1, sizeof *values);
        for (size_t level = 0; level < texts->level_count; level++)
            values[level] = evaluator_code(evaluator, i, texts->levels[level]);
        column->codes = texts->codes;
        column->values = values;
    }
    return 0;
}

/* By row of the table: the index of its group in the model, UINT32_MAX if its labels are of no group. The
 * columns of --by are the table's categories from FIRST on. The caller frees. */
static const uint32_t *find_groups(const struct model *model, const struct table *table, size_t first) {
    struct groups groups = {0};
    uint32_t *ret = xcalloc(table->rows + 1, sizeof *ret);
    cleanup_free size_t *by = xcalloc(model->by_count + 1, sizeof *by);
    for (size_t j = 0; j < model->by_count; j++)
        by[j] = first + j;
    cleanup(text_set_clear) struct text_set names = {0};
    cleanup_free size_t *named = xcalloc(model->group_count + 1, sizeof *named); /* the first of each name */
    for (size_t g = 0, before = 0; g < model->group_count; g++, before = names.count)
        if (text_set_add(&names, model->groups[g].name, strlen(model->groups[g].name)) == before)
            named[before] = g;
    groups_make(&groups, table, by, model->by_count);
    for (size_t g = 0; g < groups.count; g++) {
        cleanup_free char *name = groups_name(&groups, table, by, g);
        uint32_t found = 0;
        bool is_known = model->by_count == 0 || text_set_find(&names, name, strlen(name), &found);
        for (size_t i = groups.first[g]; i < groups.first[g + 1]; i++)
            ret[groups.rows[i]] = is_known ? (uint32_t)named[found] : UINT32_MAX;
    }
    groups_clear(&groups);
    return ret;
}

/* By row: the number of its setting; rows that are equal in all inputs are one setting. The caller frees. */
static const uint32_t *find_settings(const struct measured *measured, size_t count) {
    size_t inputs = measured->evaluator->input_count;
    cleanup_free const double **numbers = xcalloc(inputs + 1, sizeof *numbers);
    cleanup_free const uint32_t **codes = xcalloc(inputs + 2, sizeof *codes);
    uint32_t *ret = xcalloc(count + 1, sizeof *ret);
    struct folds_columns columns = {.numbers = numbers, .codes = codes};
    for (size_t i = 0; i < inputs; i++)
        if (measured->columns[i].numbers)
            numbers[columns.number_count++] = measured->columns[i].numbers;
        else
            codes[columns.code_count++] = measured->columns[i].codes;
    codes[columns.code_count++] = measured->rows.groups;
    folds_units(&columns, count, ret);
    return ret;
}

/* Loads the rows that a model is compared with: response, weights, inputs, group and setting of each
 * (measured.h). */
int measured_read(const struct model *model, struct table *table, const struct measured_options *options,
                  struct measured **ret, struct failure *failure) {
    cleanup(measured_cleanup) struct measured *measured = xcalloc(1, sizeof *measured);
    int r = evaluator_new(model, &measured->evaluator, failure);
    if (r < 0)
        return r;
    cleanup(selection_clear) struct selection selection = select_columns(measured, model, options);
    r = check_columns(table, &selection, failure);
    r = r < 0 ? r
              : table_load(table,
                           &(struct table_selection){.numbers = selection.numbers,
                                                     .categories = selection.categories,
                                                     .number_count = selection.number_count,
                                                     .category_count = selection.category_count,
                                                     .where = options->where,
                                                     .with_flagged = options->with_flagged},
                           failure);
    measured->columns = xcalloc(measured->evaluator->input_count + 1, sizeof *measured->columns);
    r = r < 0 ? r : bind_inputs(measured, model, table, selection.response_count, failure);
    if (r == 0 && options->response)
        r = convert_column(table, &table->numbers[0], model->response_unit, failure);
    if (r < 0)
        return r;
    measured->rows = (struct score_rows){
        .count = table->rows,
        .response = options->response ? table->numbers[0].values : NULL,
        .weights = selection.response_count > 1 ? table->numbers[1].values : NULL,
        .groups = find_groups(model, table, selection.category_count - model->by_count),
        .columns = measured->columns,
    };
    measured->rows.settings = find_settings(measured, table->rows);
    *ret = take_pointer(measured);
    return 0;
}

void measured_free(struct measured *measured) {
    if (!measured)
        return;
    for (size_t i = 0; measured->columns && i < measured->evaluator->input_count; i++)
        free((double *)measured->columns[i].values);
    evaluator_free(measured->evaluator);
    free((uint32_t *)measured->rows.groups), free((uint32_t *)measured->rows.settings);
    free(measured->columns), free(measured);
}

void measured_cleanup(struct measured **measured) {
    measured_free(*measured);
}
