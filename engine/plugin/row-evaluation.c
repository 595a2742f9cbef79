#include "engine/plugin/row-evaluation.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/plugin/evaluation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct row_evaluation {
    const struct fitting *fitting;
    const struct fitted_model *model;
    const struct kept_rows *rows;
    const uint32_t *groups;
    struct evaluation *evaluation;
    const double *response, *weights; /* columns; weights may be NULL */
    double *values;                   /* of the row in hand: the needed columns, then room for categories */
    const char **texts;
    size_t first_label; /* of the categories among the labels */
    size_t named_by;    /* of the texts; SIZE_MAX where parts have no names */
    bool has_texts;
};

void row_evaluation_free(struct row_evaluation *evaluation) {
    if (!evaluation)
        return;
    evaluation_free(evaluation->evaluation);
    free(evaluation->values);
    free((void *)evaluation->texts);
    free(evaluation);
}

void row_evaluation_cleanup(struct row_evaluation **evaluation) {
    row_evaluation_free(*evaluation);
}

static const double *find_column(const struct fitting *fitting, const char *name) {
    const struct fit_needs *needs = fitting_needs(fitting);
    for (size_t i = 0; i < needs->column_count; i++)
        if (strcmp(needs->columns[i], name) == 0)
            return fitting_kept_rows(fitting)->columns[i];
    return NULL;
}

/* Numbers first, so that a column that is both needed as a number and a category is found twice. */
static int bind_columns(struct row_evaluation *evaluation, struct failure *failure) {
    const struct fit_needs *needs = fitting_needs(evaluation->fitting);
    size_t count = needs->column_count + needs->category_count;
    cleanup_free const char **names = xcalloc(count + 1, sizeof *names);
    evaluation->values = xcalloc(count + 1, sizeof *evaluation->values);
    evaluation->texts = xcalloc(count + 1, sizeof *evaluation->texts);
    for (size_t i = 0; i < count; i++)
        names[i] = i < needs->column_count ? needs->columns[i] : needs->categories[i - needs->column_count];
    int r =
        evaluation_new(fitted_model_view(evaluation->model), names, count, &evaluation->evaluation, failure);
    const char *named_by = fitted_model_view(evaluation->model)->named_by;
    evaluation->named_by = SIZE_MAX;
    for (size_t i = 0; r == 0 && i < count; i++) {
        bool text = evaluation_uses_text(evaluation->evaluation, i);
        evaluation->has_texts |= text;
        if (text && named_by && strcmp(names[i], named_by) == 0)
            evaluation->named_by = i;
    }
    return r;
}

int row_evaluation_new(const struct fitting *fitting, const struct fitted_model *model,
                       const uint32_t *groups, struct row_evaluation **ret, struct failure *failure) {
    cleanup(row_evaluation_cleanup) struct row_evaluation *evaluation = calloc(1, sizeof *evaluation);
    if (!evaluation)
        return failure_memory(failure);
    const struct fitting_options *options = fitting_options(fitting);
    evaluation->fitting = fitting;
    evaluation->model = model;
    evaluation->rows = fitting_kept_rows(fitting);
    evaluation->groups = groups ? groups : evaluation->rows->groups;
    evaluation->first_label = options->by_count;
    evaluation->response = find_column(fitting, options->response);
    evaluation->weights = options->weights ? find_column(fitting, options->weights) : NULL;
    if (!evaluation->response || (options->weights && !evaluation->weights))
        return failure_set(failure, -ENOTSUP, "%s does not read the response as a number",
                           fitting_plugin(fitting)->name);
    int r = bind_columns(evaluation, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(evaluation);
    return 0;
}

bool row_evaluation_at(const struct row_evaluation *evaluation, size_t i, struct row_value *ret) {
    const struct kept_rows *rows = evaluation->rows;
    size_t group = fitted_model_group(evaluation->model, evaluation->groups[i]);
    double weight = evaluation->weights ? evaluation->weights[i] : 1;
    if (group == SIZE_MAX || !isfinite(evaluation->response[i]) || !(weight > 0) || !isfinite(weight))
        return false;
    for (size_t c = 0; c < rows->column_count; c++)
        evaluation->values[c] = rows->columns[c][i];
    size_t categories = fitting_needs(evaluation->fitting)->category_count, first = evaluation->first_label;
    for (size_t j = 0; evaluation->has_texts && j < categories; j++)
        evaluation->texts[rows->column_count + j] =
            table_label(fitting_table(evaluation->fitting), first + j, rows->labels[first + j][i]);
    struct fit_comparison comparison;
    fitting_compare(evaluation->fitting, i, &comparison);
    if (comparison.as && evaluation->named_by != SIZE_MAX)
        evaluation->texts[evaluation->named_by] = comparison.as;
    struct evaluation_value value;
    if (comparison.none ||
        evaluation_row(evaluation->evaluation, group, evaluation->values, evaluation->texts, &value) < 0)
        return false;
    const struct predict_part *part =
        evaluation_part(evaluation->evaluation, group, evaluation->values, evaluation->texts);
    *ret = (struct row_value){
        .observed = (evaluation->response[i] + comparison.plus) / comparison.divisor,
        .weight = weight,
        .mean = value.mean,
        .sigma = value.sigma / sqrt(weight),
        .noise = part->noise,
        .part = part,
    };
    return true;
}
