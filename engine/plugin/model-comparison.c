#include "engine/plugin/model-comparison.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/plugin/group-names.h"
#include "engine/plugin/grouping.h"
#include "engine/plugin/noise-density.h"
#include "engine/plugin/noise-probability.h"
#include "engine/plugin/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LENGTH_MAX = 4096 };

/* What a 95% interval leaves out on each side. */
static const double tail = 0.025;

struct comparing {
    const struct model *model;
    const struct predict_model *view;
    struct table *table; /* the caller's */
    struct evaluation *evaluation;
    struct grouping *grouping;
    const char **labels; /* by, then the categories */
    size_t by_count, label_count;
    const char **columns; /* of the evaluation */
    size_t column_count;
    const char **numbers; /* response, weights if there are any, the columns that are numbers */
    double *multiply, *divide;
    size_t number_count;
    bool weighted;
    size_t *number_of, *label_of; /* of each column; SIZE_MAX: it is not used so */
    struct group_names *names;
    size_t *groups; /* by the table's group: the model's, or SIZE_MAX */
    size_t group_count, group_capacity;
    double *values; /* by column, of a row */
    const char **texts;
    struct model_comparison *ret;
};

static void comparing_clear(struct comparing *comparing) {
    evaluation_free(comparing->evaluation);
    grouping_free(comparing->grouping);
    free(comparing->labels);
    free(comparing->numbers);
    free(comparing->multiply);
    free(comparing->divide);
    free(comparing->columns);
    free(comparing->number_of);
    free(comparing->label_of);
    group_names_free(comparing->names);
    free(comparing->groups);
    free(comparing->values);
    free(comparing->texts);
}

/* ---- Columns */

static int allocate(struct comparing *comparing, struct failure *failure) {
    int r = model_labels(comparing->model, &comparing->labels, &comparing->by_count);
    r = r < 0 ? r : evaluation_columns(comparing->view, &comparing->columns, &comparing->column_count);
    if (r < 0)
        return r;
    size_t most = comparing->column_count + 2;
    comparing->label_count = comparing->by_count;
    const char **labels = realloc(comparing->labels, (comparing->by_count + most) * sizeof *labels);
    if (labels)
        comparing->labels = labels;
    comparing->numbers = calloc(most, sizeof *comparing->numbers);
    comparing->multiply = calloc(most, sizeof *comparing->multiply);
    comparing->divide = calloc(most, sizeof *comparing->divide);
    comparing->number_of = calloc(most, sizeof *comparing->number_of);
    comparing->label_of = calloc(most, sizeof *comparing->label_of);
    comparing->values = calloc(most, sizeof *comparing->values);
    comparing->texts = calloc(most, sizeof *comparing->texts);
    comparing->ret->groups = calloc(comparing->view->group_count, sizeof *comparing->ret->groups);
    bool all = labels && comparing->numbers && comparing->multiply && comparing->divide &&
               comparing->number_of && comparing->label_of && comparing->values && comparing->texts &&
               comparing->ret->groups;
    return all ? 0 : failure_memory(failure);
}

static bool has_column(const struct table *table, const char *name) {
    for (size_t i = 0; i < table_column_count(table); i++)
        if (strcmp(table_column(table, i)->name, name) == 0)
            return true;
    return false;
}

static void list_columns(struct comparing *comparing) {
    const char *weights = model_weights(comparing->model);
    comparing->numbers[comparing->number_count++] = comparing->view->response;
    comparing->weighted = weights && has_column(comparing->table, weights);
    if (comparing->weighted)
        comparing->numbers[comparing->number_count++] = weights;
    for (size_t c = 0; c < comparing->column_count; c++) {
        comparing->number_of[c] = comparing->label_of[c] = SIZE_MAX;
        if (evaluation_uses_number(comparing->evaluation, c)) {
            comparing->number_of[c] = comparing->number_count;
            comparing->numbers[comparing->number_count++] = comparing->columns[c];
        }
        if (evaluation_uses_text(comparing->evaluation, c)) {
            comparing->label_of[c] = comparing->label_count;
            comparing->labels[comparing->label_count++] = comparing->columns[c];
        }
    }
}

/* What brings a column of the table to the model's unit; nothing where one of both is not known. */
static int find_conversions(struct comparing *comparing, struct failure *failure) {
    for (size_t i = 0; i < comparing->number_count; i++) {
        size_t column;
        int r = table_stream_find(comparing->table, "needed", comparing->numbers[i], &column, failure);
        if (r < 0)
            return r;
        const char *have = table_column(comparing->table, column)->unit,
                   *want = model_unit(comparing->model, comparing->numbers[i]);
        comparing->multiply[i] = comparing->divide[i] = 1;
        if (have && want && strcmp(have, want) != 0 &&
            !unit_conversion(have, want, &comparing->multiply[i], &comparing->divide[i]))
            return failure_input(failure, table_input(comparing->table, 0)->path, 0, 0,
                                 "the column '%s' is in '%.64s'; expected '%.64s', as in the model",
                                 comparing->numbers[i], have, want);
    }
    if (comparing->label_count > TABLE_LABELS_MAX)
        return failure_input(failure, comparing->view->name, 0, 0,
                             "the model has %zu columns of labels and categories; expected at most %d",
                             comparing->label_count, (int)TABLE_LABELS_MAX);
    for (size_t j = 0; j < comparing->label_count; j++) {
        size_t column;
        int r = table_stream_find(comparing->table, "group", comparing->labels[j], &column, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- Groups */

/* The model's group for a group of the table. A name that is too long is none of the model's. */
static size_t find_group(const struct comparing *comparing, uint32_t group) {
    const char *labels[TABLE_LABELS_MAX];
    char name[NAME_LENGTH_MAX];
    for (size_t j = 0; j < comparing->by_count; j++)
        labels[j] = table_label(comparing->table, j, grouping_label(comparing->grouping, group, j));
    return group_names_join(labels, comparing->by_count, name, sizeof name)
               ? group_names_find(comparing->names, name)
               : SIZE_MAX;
}

static int find_new_groups(struct comparing *comparing, struct failure *failure) {
    size_t count = grouping_count(comparing->grouping);
    if (list_reserve(&comparing->groups, &comparing->group_capacity, count, sizeof *comparing->groups,
                     GROUPING_MAX) < 0)
        return failure_memory(failure);
    for (; comparing->group_count < count; comparing->group_count++)
        comparing->groups[comparing->group_count] = find_group(comparing, (uint32_t)comparing->group_count);
    return 0;
}

/* ---- Rows */

/* Until the end, the members hold sums. */
static void add(struct comparison *comparison, double observed, const struct evaluation_value *value,
                double sigma, double log_density, double probability) {
    double error = observed - value->mean;
    comparison->rows++;
    comparison->error += error * error;
    comparison->relative += fabs(observed);
    comparison->bias += error;
    comparison->noise += sigma * sigma;
    comparison->log_score += log_density;
    comparison->coverage += isnan(probability) ? NAN : probability >= tail && probability <= 1 - tail;
    evaluation_tally_add(&comparison->tally, value);
}

static double number_at(const struct comparing *comparing, const struct table_block *block, size_t i,
                        size_t row) {
    return block->numbers[i][row] * comparing->multiply[i] / comparing->divide[i];
}

static void compare_row(struct comparing *comparing, const struct table_block *block, size_t row,
                        size_t group) {
    double observed = number_at(comparing, block, 0, row),
           weight = comparing->weighted ? block->numbers[1][row] : 1;
    for (size_t c = 0; c < comparing->column_count; c++) {
        size_t i = comparing->number_of[c], j = comparing->label_of[c];
        comparing->values[c] = i == SIZE_MAX ? NAN : number_at(comparing, block, i, row);
        comparing->texts[c] = j == SIZE_MAX ? NULL : table_label(comparing->table, j, block->labels[j][row]);
    }
    if (group == SIZE_MAX) {
        comparing->ret->strangers++;
        return;
    }
    struct evaluation_value value;
    if (!isfinite(observed) || !(weight > 0) ||
        evaluation_row(comparing->evaluation, group, comparing->values, comparing->texts, &value) < 0) {
        comparing->ret->incomplete++;
        return;
    }
    const struct predict_part *part =
        evaluation_part(comparing->evaluation, group, comparing->values, comparing->texts);
    if (!evaluation_is_of_row(comparing->evaluation, part)) {
        comparing->ret->incomplete++;
        return;
    }
    const struct plugin_noise *noise = part->noise;
    double error =
               evaluation_standard_error(comparing->evaluation, group, comparing->values, comparing->texts),
           sigma = value.sigma / sqrt(weight), spread = isnan(error) ? sigma : hypot(sigma, error),
           density = noise_log_density(noise, value.mean, sigma, observed),
           probability = noise_probability(noise, value.mean, spread, observed);
    add(&comparing->ret->groups[group], observed, &value, sigma, density, probability);
    add(&comparing->ret->all, observed, &value, sigma, density, probability);
}

static int compare_rows(struct comparing *comparing, struct failure *failure) {
    struct table_block block;
    int r = table_begin(comparing->table, comparing->numbers, comparing->number_count, comparing->labels,
                        comparing->label_count, failure);
    while (r >= 0 && (r = table_next(comparing->table, &block, failure)) > 0) {
        const uint32_t *groups;
        r = grouping_assign(comparing->grouping, block.rows, block.labels, &groups, failure);
        r = r < 0 ? r : find_new_groups(comparing, failure);
        for (size_t row = 0; r >= 0 && row < block.rows; row++)
            compare_row(comparing, &block, row, comparing->groups[groups[row]]);
    }
    return r;
}

static void finish(struct comparison *comparison) {
    double rows = (double)comparison->rows, size = comparison->relative / rows;
    comparison->error = sqrt(comparison->error / rows);
    comparison->relative = comparison->error / size;
    comparison->bias /= rows;
    comparison->noise = sqrt(comparison->noise / rows);
    comparison->log_score /= rows;
    comparison->coverage /= rows;
}

int model_compare(const struct model *model, struct table *table, struct model_comparison *ret,
                  struct failure *failure) {
    cleanup(model_comparison_clear) struct model_comparison comparison = {0};
    cleanup(comparing_clear) struct comparing comparing = {
        .model = model, .view = model_view(model), .table = table, .ret = &comparison};
    int r = allocate(&comparing, failure);
    if (r < 0)
        return r;
    r = evaluation_new(comparing.view, comparing.columns, comparing.column_count, &comparing.evaluation,
                       failure);
    if (r < 0)
        return r;
    list_columns(&comparing);
    r = find_conversions(&comparing, failure);
    r = r < 0 ? r : grouping_new(comparing.by_count, &comparing.grouping, failure);
    r = r < 0 ? r : group_names_new(comparing.view, &comparing.names, failure);
    r = r < 0 ? r : compare_rows(&comparing, failure);
    if (r < 0)
        return r;
    for (size_t g = 0; g < comparing.view->group_count; g++)
        finish(&comparison.groups[g]);
    finish(&comparison.all);
    *ret = comparison;
    comparison = (struct model_comparison){0};
    return 0;
}

void model_comparison_clear(struct model_comparison *comparison) {
    free(comparison->groups);
    *comparison = (struct model_comparison){0};
}
