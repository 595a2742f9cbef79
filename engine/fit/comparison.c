#include "engine/fit/comparison.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/model.h"
#include "engine/model/read.h"
#include "engine/table/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void comparison_clear(struct comparison *comparison) {
    for (size_t i = 0; i < comparison->count; i++) {
        contender_clear(&comparison->contenders[i]);
        measured_free(comparison->measured[i]);
        table_free(comparison->tables[i]);
        model_free(comparison->models[i]);
    }
}

/* Reads COUNT model files into RET. -EINVAL: too few or too many, or models of different responses. */
static int read_models(const char *const *files, size_t count, struct comparison *ret,
                       struct failure *failure) {
    if (count < 2 || count > COMPARISON_MODELS_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "'assay fit compare' got %zu model file%s; expected 2 to %d", count,
                             count == 1 ? "" : "s", (int)COMPARISON_MODELS_MAX);
    for (; ret->count < count; ret->count++) {
        int r = model_file_read(files[ret->count], &ret->models[ret->count], failure);
        if (r < 0)
            return r;
        contender_describe(&ret->contenders[ret->count], ret->models[ret->count]);
    }
    const struct model *first = ret->models[0];
    for (size_t i = 1; i < count; i++)
        if (strcmp(ret->models[i]->response, first->response) != 0)
            return failure_input(failure, ret->models[i]->file, 0, 0,
                                 "the model's response is '%s'; expected '%s', the response of '%s'",
                                 ret->models[i]->response, first->response, first->file);
    return 0;
}

/* ---- On measurements */

/* Reads the inputs as model I needs them, and predicts each row, in the unit of the first model. */
static int predict_by_model(struct comparison *comparison, size_t i, const char *const *inputs, size_t count,
                            const struct measured_options *options, struct failure *failure) {
    static const struct table_options hashed = {.hash = true};
    const struct model *model = comparison->models[i], *first = comparison->models[0];
    struct contender *contender = &comparison->contenders[i];
    int r = table_open(inputs, count, &hashed, &comparison->tables[i], failure);
    r = r < 0 ? r : measured_read(model, comparison->tables[i], options, &comparison->measured[i], failure);
    if (r < 0)
        return r;
    const struct score_rows *rows = &comparison->measured[i]->rows;
    contender->predicted = xcalloc(rows->count + 1, sizeof *contender->predicted);
    score_predict(comparison->measured[i]->evaluator, model->groups, rows, NULL, rows->count,
                  contender->predicted);
    return contender_convert(contender, rows->count, model->response_unit, first->response_unit)
               ? 0
               : failure_input(failure, model->file, 0, 0,
                               "the response '%s' has the unit '%s'; expected a unit that converts to "
                               "'%s', the unit in '%s'",
                               model->response, model->response_unit, first->response_unit, first->file);
}

/* Compares all models on the rows. Weights are those of the first model that has weights. Rows are one
 * setting if they are one setting to every model. */
static void choose_model(struct comparison *comparison) {
    struct score_rows rows = comparison->measured[0]->rows;
    const uint32_t *settings[COMPARISON_MODELS_MAX];
    cleanup_free uint32_t *units = xcalloc(rows.count + 1, sizeof *units);
    for (size_t i = 0; i < comparison->count; i++) {
        settings[i] = comparison->measured[i]->rows.settings;
        rows.weights = rows.weights ? rows.weights : comparison->measured[i]->rows.weights;
    }
    folds_units(&(struct folds_columns){.codes = settings, .code_count = comparison->count}, rows.count,
                units);
    rows.settings = units;
    choice_make(comparison->contenders, comparison->count, &rows, &comparison->choice);
}

int comparison_make(const char *const *files, size_t count, const char *const *inputs, size_t input_count,
                    const struct measured_options *options, struct comparison *ret, struct failure *failure) {
    int r = read_models(files, count, ret, failure);
    for (size_t i = 0; r == 0 && input_count > 0 && i < ret->count; i++)
        r = predict_by_model(ret, i, inputs, input_count, options, failure);
    if (r == 0 && input_count > 0)
        choose_model(ret);
    return r;
}

/* ---- The report */

/* "A", "B", ...; the name lasts. */
static const char *letter(size_t i) {
    static const char letters[COMPARISON_MODELS_MAX][2] = {"A", "B", "C", "D", "E", "F", "G", "H",
                                                           "I", "J", "K", "L", "M", "N", "O", "P"};
    return letters[i];
}

static bool is_input(const struct model *model, const struct table_input *input) {
    for (size_t i = 0; i < model->origin.input_count; i++)
        if (input->sha256[0] && strcmp(model->origin.inputs[i].sha256, input->sha256) == 0)
            return true;
    return false;
}

/* Adds the table of models with their scores, and warns of models that were fitted to these data. */
static void report_models(struct report_section *in, const struct comparison *comparison) {
    static const struct column columns[] = {{.name = "model"}, {.name = "file"}, {.name = "kind"}};
    const char *labels[COMPARISON_MODELS_MAX * 3];
    const struct table *table = comparison->tables[0]; /* all are read from the same inputs */
    for (size_t i = 0; table && i < table->note_count; i++)
        report_note(in, REPORT_NOTE, "%s", table->notes[i]);
    for (size_t i = 0; i < comparison->count; i++) {
        labels[3 * i] = letter(i);
        labels[3 * i + 1] = comparison->models[i]->file;
        labels[3 * i + 2] = comparison->models[i]->kind;
        for (size_t k = 0; comparison->tables[i] && k < comparison->tables[i]->input_count; k++)
            if (is_input(comparison->models[i], &comparison->tables[i]->inputs[k]))
                report_note(in, REPORT_WARNING,
                            "model %s was fitted to '%s': its errors on these data are smaller "
                            "than on data that it has not seen",
                            letter(i), comparison->tables[i]->inputs[k].name);
    }
    report_number(in, "rows", "rows of the data", (double)comparison->choice.rows, NULL, 0, !table);
    report_number(in, "rows_beyond", "rows left out, as some model cannot predict them",
                  (double)comparison->choice.rows_beyond, NULL, 0, comparison->choice.rows_beyond == 0);
    choice_report(in, columns, labels, 3, comparison->contenders, comparison->count, &comparison->choice,
                  comparison->models[0]->response_unit);
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->contenders[i].grade == REPORT_NOT_USABLE)
            report_note(in, REPORT_WARNING, "%s is %s", letter(i), comparison->contenders[i].verdict);
    if (!table)
        report_note(in, REPORT_NOTE,
                    "to see which model suffices, give measurements that all models can "
                    "predict: --data INPUT");
    else if (comparison->choice.rows == 0)
        report_note(in, REPORT_WARNING,
                    "the models could not be compared: no row of the data is predicted by "
                    "all of them");
}

/* ---- Estimates */

/* Whether two models were fitted to some of the same inputs, by checksum or run. */
static bool share_inputs(const struct model *one, const struct model *other) {
    for (size_t i = 0; i < one->origin.input_count; i++)
        for (size_t k = 0; k < other->origin.input_count; k++) {
            const struct model_input *a = &one->origin.inputs[i], *b = &other->origin.inputs[k];
            if ((a->sha256[0] && strcmp(a->sha256, b->sha256) == 0) ||
                (a->run_id && b->run_id && strcmp(a->run_id, b->run_id) == 0))
                return true;
        }
    return false;
}

/* The estimate of TERM in the group GROUP. NULL: the model lacks the group or the term, has several parts, or
 * another unit. */
static const struct model_estimate *find_estimate(const struct model *model, const char *group,
                                                  const struct model_term *term) {
    size_t g = 0, t = 0;
    while (g < model->group_count && strcmp(model->groups[g].name, group) != 0)
        g++;
    while (t < model->term_count && strcmp(model->terms[t].name, term->name) != 0)
        t++;
    if (g == model->group_count || t == model->term_count || model->groups[g].part_count != 1 ||
        (model->terms[t].unit && term->unit && strcmp(model->terms[t].unit, term->unit) != 0))
        return NULL;
    const struct model_estimate *estimate = &model->groups[g].parts[0].estimates[t];
    return estimate->dropped ? NULL : estimate;
}

/* Adds a line for each model that has an estimate of a term of GROUP, with its distance from the first
 * model's: terms of the first model first, then those that other models add. */
static void report_group(struct report_table *table, const struct comparison *comparison, const char *group) {
    const struct model *first = comparison->models[0];
    for (size_t i = 0; i < comparison->count; i++)
        for (size_t t = 0; t < comparison->models[i]->term_count; t++) {
            const struct model_term *term = &comparison->models[i]->terms[t];
            const struct model_estimate *of_first = find_estimate(first, group, term);
            bool is_listed = false;
            for (size_t k = 0; k < i; k++)
                is_listed = is_listed || find_estimate(comparison->models[k], group, term);
            for (size_t k = i; !is_listed && k < comparison->count; k++) {
                const struct model_estimate *own = find_estimate(comparison->models[k], group, term);
                if (!own)
                    continue;
                bool is_known = k > 0 && of_first && !share_inputs(first, comparison->models[k]);
                report_cell_text(table, group);
                report_cell_text(table, term->name);
                report_cell_text(table, letter(k));
                report_cell(table, own->estimate);
                report_cell(table, own->standard_error);
                report_cell_text(table, term->unit ? term->unit : "");
                report_cell(table, is_known ? (own->estimate - of_first->estimate) /
                                                  hypot(own->standard_error, of_first->standard_error)
                                            : NAN);
            }
        }
}

/* Adds a table of the estimates of all models, group by group. */
static void report_estimates(struct report_section *in, const struct comparison *comparison) {
    static const struct column columns[] = {{.name = "group"},
                                            {.name = "term"},
                                            {.name = "model"},
                                            {.name = "estimate", .digits = 6},
                                            {.name = "standard_error", .label = "std error", .digits = 3},
                                            {.name = "unit"},
                                            {.name = "from_a", .label = "from A (std errors)", .digits = 3}};
    const struct model *first = comparison->models[0];
    struct report_section *section = report_section(in, "estimates", "estimates", false);
    struct report_table *table =
        report_table(section, "terms", NULL, columns, sizeof columns / sizeof *columns);
    for (size_t g = 0; g < first->group_count; g++)
        report_group(table, comparison, first->groups[g].name);
    for (size_t i = 1; i < comparison->count; i++)
        if (share_inputs(first, comparison->models[i]))
            report_note(section, REPORT_NOTE,
                        "models A and %s were fitted to the same data: the errors of their "
                        "estimates are correlated, so that the standard error of the "
                        "difference is not known",
                        letter(i));
}

void comparison_report(struct report_section *in, const struct comparison *comparison) {
    report_models(in, comparison);
    report_estimates(in, comparison);
}
