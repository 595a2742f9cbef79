#include "engine/fit/fit.h"

#include "engine/fit/binding.h"
#include "engine/fit/description.h"
#include "engine/fit/result.h"
#include "engine/fit/rows.h"
#include "engine/fit/scores.h"
#include "engine/fit/sums.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/evaluator.h"
#include "engine/model/hull.h"
#include "engine/model/model.h"
#include "engine/model/noise.h"
#include "engine/numerics/range.h"
#include "engine/table/folds.h"
#include "engine/table/groups.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fitting {
    struct fit_binding binding;
    struct groups groups;
    struct formula_names names;
    size_t *widths;               /* by fitted group: the number of the model's terms when it was fitted */
    struct rows all;              /* of the group that is being fitted */
    bool *outliers;               /* by row of `all`: an outlier, which is not scored; NULL: no outliers */
    struct rows folded;           /* the rows of `all`, ordered fold by fold */
    struct rows left_out, others; /* windows on `folded`: one fold, and all other folds */
    struct fit *fit;
    /* Evaluates the model's first `evaluator_terms` terms over columns of rows. NULL until it is needed. */
    struct evaluator *evaluator;
    struct evaluator_column *columns;
    size_t evaluator_terms;
};

/* ---- Predictions of a fit */

/* Adds the term NAME to the model: a term of the formula, or another one of a single factor or product ("1",
 * "size"). -EPROTO with FAILURE: the plugin's name is not a term. */
static int add_term(struct fitting *fitting, const char *name, struct failure *failure) {
    struct fit_binding *binding = &fitting->binding;
    struct model *model = fitting->fit->model;
    model->terms = xrealloc(model->terms, (model->term_count + 1) * sizeof *model->terms);
    struct model_term *term = &model->terms[model->term_count];
    for (size_t t = 0; t < binding->formula.term_count; t++)
        if (strcmp(binding->formula.terms[t].name, name) == 0) {
            *term = model_term_copy(&binding->formula.terms[t]);
            model->term_count++;
            return 0;
        }
    struct formula formula = {0};
    struct formula_context context = {.columns = binding->model_columns,
                                      .column_count = binding->model_column_count};
    int r = formula_read(name, &context, &formula, failure);
    if (r == 0 && formula.term_count != 1)
        r = failure_set(failure, -EPROTO, "'%s' is not a single term", name);
    if (r == 0) {
        *term = model_term_copy(&formula.terms[0]);
        model->term_count++;
    } else {
        failure_prefix(failure, "fit-%s", binding->library->plugin->name);
    }
    formula_clear(&formula);
    return r;
}

static int add_terms(struct fitting *fitting, struct failure *failure) {
    int r = 0;
    while (r == 0 && fitting->fit->model->term_count < fitting->names.count)
        r = add_term(fitting, fitting->names.names[fitting->fit->model->term_count], failure);
    return r;
}

/* Sets the model's kind from the first fitted group; all groups have the same kind (formula_names). */
static void set_kind(struct fitting *fitting) {
    struct model *model = fitting->fit->model;
    if (model->kind)
        return;
    const struct formula_names *names = &fitting->names;
    model->kind = xstrdup(names->kind ? names->kind : "linear");
    model->over = names->over ? xstrdup(names->over) : NULL;
    model->named_by = names->named_by ? xstrdup(names->named_by) : NULL;
}

/* Points input INPUT of the evaluator to the column of ROWS with its name; texts become the evaluator's
 * codes. -EPROTO: the plugin declares no such column. */
static int bind_input(struct fitting *fitting, const struct rows *rows, size_t input,
                      struct failure *failure) {
    const struct evaluator *evaluator = fitting->evaluator;
    const char *name = evaluator->inputs[input].name;
    const struct formula_column *found = rows_find(rows, name);
    struct evaluator_column *column = &fitting->columns[input];
    if (!found)
        return failure_set(failure, -EPROTO,
                           "fit-%s: a term uses '%s', which the plugin does not declare as a column",
                           fitting->binding.library->plugin->name, name);
    free((double *)column->values);
    *column = (struct evaluator_column){.numbers = found->numbers, .codes = found->codes};
    double *values = found->codes ? xcalloc(found->text_count + 1, sizeof *values) : NULL;
    for (size_t i = 0; values && i < found->text_count; i++)
        values[i] = evaluator_code(evaluator, input, found->texts[i]);
    column->values = values;
    return 0;
}

static void free_evaluator(struct fitting *fitting) {
    for (size_t i = 0; fitting->evaluator && i < fitting->evaluator->input_count; i++)
        free((double *)fitting->columns[i].values);
    free(take_pointer(fitting->columns));
    evaluator_free(take_pointer(fitting->evaluator));
}

/* Makes the evaluator anew if terms were added, and points its inputs to the columns of ROWS. 0, or negative
 * with FAILURE. */
static int prepare_evaluator(struct fitting *fitting, const struct rows *rows, struct failure *failure) {
    struct model *model = fitting->fit->model;
    int r = 0;
    if (!fitting->evaluator || fitting->evaluator_terms != model->term_count) {
        free_evaluator(fitting);
        r = evaluator_new(model, &fitting->evaluator, failure);
        if (r < 0)
            return r;
        fitting->columns = xcalloc(fitting->evaluator->input_count + 1, sizeof *fitting->columns);
        fitting->evaluator_terms = model->term_count;
    }
    for (size_t i = 0; r == 0 && i < fitting->evaluator->input_count; i++)
        r = bind_input(fitting, rows, i, failure);
    return r;
}

/* The log density of each row's measured response under the noise of GROUP around MEAN, into RET; NaN where
 * no part of the model holds. */
static void compute_log_densities(const struct fitting *fitting, const struct model_group *group,
                                  const struct rows *rows, const double *mean, const double *sigma,
                                  double *ret) {
    const struct evaluator *evaluator = fitting->evaluator; /* NULL: not needed */
    cleanup_free double *inputs = xcalloc((evaluator ? evaluator->input_count : 0) + 1, sizeof *inputs);
    const struct model_noise *only = group->part_count == 1 ? &group->parts[0].noise : NULL;
    bool is_normal =
        only && !only->half_normal && only->kind != MODEL_NOISE_NONE && only->kind != MODEL_NOISE_MIXTURE;
    double last = NAN, at_mean = NAN; /* a deviation, and its log density there */
    for (size_t i = 0; i < rows->view.count; i++) {
        const struct model_part *part = &group->parts[0];
        if (group->part_count > 1) {
            evaluator_gather(evaluator, fitting->columns, i, inputs);
            part = evaluator_part(evaluator, group, inputs);
        }
        double deviation = rows->view.weights ? sigma[i] / sqrt(rows->view.weights[i]) : sigma[i];
        double offset = rows->view.response[i] - mean[i], z = offset / deviation;
        if (is_normal && deviation > 0 && isfinite(offset)) { /* a logarithm for all rows of one deviation */
            if (deviation != last)
                at_mean = noise_density(only, last = deviation, 0);
            ret[i] = at_mean - z * z / 2;
            continue;
        }
        ret[i] = part ? noise_density(&part->noise, deviation, offset) : NAN;
    }
}

/* Predicts ROWS by the fit of GROUP, with the plugin's predict() if it has one: mean, standard deviation of
 * the noise, and log density of the measured response (LOG_DENSITY may be NULL). NaN where the model does not
 * apply. */
static int predict_rows(struct fitting *fitting, const struct model_group *group, const struct rows *rows,
                        double *mean, double *sigma, double *log_density, struct failure *failure) {
    const struct fit_plugin *plugin = fitting->binding.library->fit;
    struct model *model = fitting->fit->model;
    struct plugin_message message = {""};
    int r;
    if (plugin->predict) {
        static const struct model_noise normal = {.kind = MODEL_NOISE_HOMOSCEDASTIC};
        r = plugin->predict(model, group, &rows->view, &fitting->binding.view, mean, sigma, &message);
        if (r < 0)
            return library_failure(fitting->binding.library, r, &message, failure);
        for (size_t i = 0; log_density && i < rows->view.count; i++)
            log_density[i] = noise_density(&normal, sigma[i], rows->view.response[i] - mean[i]);
        return 0;
    }
    if (!sums_predict(model, group, &fitting->binding.formula, &rows->view, mean, sigma)) {
        r = prepare_evaluator(fitting, rows, failure);
        if (r < 0)
            return r;
        evaluator_rows(fitting->evaluator, group, NULL, rows->view.count, fitting->columns, mean, sigma);
    }
    if (log_density)
        compute_log_densities(fitting, group, rows, mean, sigma, log_density);
    return 0;
}

/* ---- One group */

/* Calls the plugin's fit() on ROWS, with its results in RET, which the caller clears. 0; -EDOM with the
 * reason in MESSAGE: these rows cannot be fitted; or another negative number with FAILURE. */
static int call_fit(struct fitting *fitting, const struct rows *rows, bool is_fold,
                    struct report_section *tables, struct result *ret, struct plugin_message *message,
                    struct failure *failure) {
    const struct library *library = fitting->binding.library;
    struct fit_result ear;
    result_init(ret, rows->view.count, &fitting->names, tables, &ear);
    fitting->binding.view.is_fold = is_fold;
    message->text[0] = '\0';
    int r = library->fit->fit(&rows->view, &fitting->binding.view, &ear, message);
    if (r > 0)
        ret->problem = "fit() returned a number above 0; expected 0 or a negative error number";
    if (r >= 0 && ret->problem)
        return failure_set(failure, -EPROTO, "fit-%s: %s", library->plugin->name, ret->problem);
    if (r == 0 && ret->undefined)
        r = plugin_refuse(message, -EDOM, "%s", ret->undefined);
    if (r < 0 && r != -EDOM)
        return library_failure(library, r, message, failure);
    if (r == 0) {
        r = add_terms(fitting, failure);
        set_kind(fitting);
    }
    return r;
}

/* By row of a group: what its fit predicts. */
struct predictions {
    double *mean, *sigma, *log_density;
};

static struct predictions predictions_new(size_t count) {
    return (struct predictions){xcalloc(count + 1, sizeof(double)), xcalloc(count + 1, sizeof(double)),
                                xcalloc(count + 1, sizeof(double))};
}

static void predictions_clear(struct predictions *predictions) {
    free(predictions->mean), free(predictions->sigma), free(predictions->log_density);
}

/* Predicts the rows BEGIN to END - 1 of `folded`, which are one fold, by a fit to all other rows. -EDOM with
 * the reason in MESSAGE: the other rows cannot be fitted. */
static int predict_fold(struct fitting *fitting, size_t begin, size_t end, struct predictions *predictions,
                        struct plugin_message *message, struct failure *failure) {
    const struct rows_layout *layout = &fitting->binding.layout;
    struct result result;
    rows_window(&fitting->others, layout, &fitting->folded, end, fitting->folded.view.count - (end - begin));
    rows_window(&fitting->left_out, layout, &fitting->folded, begin, end - begin);
    size_t rows_min = fitting->binding.library->fit->rows_min;
    if (fitting->others.view.count < (rows_min > 0 ? rows_min : 1))
        return plugin_refuse(message, -EDOM, "%zu rows remain outside the fold; expected at least %zu",
                             fitting->others.view.count, rows_min > 0 ? rows_min : 1);
    int r = call_fit(fitting, &fitting->others, true, NULL, &result, message, failure);
    struct model_group group = {.rows = fitting->others.view.count};
    if (r == 0) {
        result_finish(&result, fitting->fit->model->term_count, &group);
        r = predict_rows(fitting, &group, &fitting->left_out, predictions->mean + begin,
                         predictions->sigma + begin, predictions->log_density + begin, failure);
    }
    result_clear(&result);
    model_group_clear(&group, 0);
    return r;
}

static void add_score(struct model_group *group, const char *name, double value, const char *unit) {
    group->values = xrealloc(group->values, (group->value_count + 1) * sizeof *group->values);
    group->values[group->value_count++] =
        (struct model_value){xstrdup(name), value, unit ? xstrdup(unit) : NULL};
}

static void add_scores(struct model_group *group, const struct scores *scores) {
    add_score(group, "cv_rmse", scores->rmse, NULL);
    add_score(group, "cv_relative", scores->relative, "1");
    add_score(group, "cv_median_relative", scores->median_relative, "1");
    add_score(group, "cv_log_score", scores->log_score, "1");
    add_score(group, "cv_mse_error", scores->mse_error, NULL);
    add_score(group, "cv_log_score_error", scores->log_score_error, "1");
    add_score(group, "folds", (double)scores->folds, "1");
}

/* Numbers the units of cross-validation: rows with the same number in UNITS are in the same fold. Returns the
 * number of units. */
static size_t number_units(const struct fitting *fitting, uint32_t *units) {
    const struct rows *rows = &fitting->all;
    const struct folds_columns each_row = {0};
    enum fit_folds_by by = fitting->binding.options->folds_by;
    if (by != FIT_FOLDS_BY_SETTING)
        return folds_units(by == FIT_FOLDS_BY_ROW ? &each_row : &rows->fold_columns, rows->view.count, units);
    memcpy(units, rows->view.settings, rows->view.count * sizeof *units);
    return rows->view.setting_count;
}

/* Computes SCORES from the predictions of all folds, without rows that are skipped. IS_SKIPPED is by row of
 * `folded`; ORDER[i] is the row of `all` that row i of `folded` is; UNITS is by row of `all`. Moves the rows
 * of PREDICTIONS that count to its front. */
static void score_rows(const struct fitting *fitting, struct predictions *predictions, const bool *is_skipped,
                       const uint32_t *order, const uint32_t *units, struct scores *scores) {
    const struct fit_rows *rows = &fitting->folded.view;
    size_t count = fitting->all.view.count, scored = 0, unit_count = 0;
    cleanup_free double *response = xcalloc(count + 1, sizeof *response);
    cleanup_free double *weights = xcalloc(count + 1, sizeof *weights);
    cleanup_free uint32_t *scored_units = xcalloc(count + 1, sizeof *scored_units);
    cleanup_free uint32_t *numbers = xcalloc(scores->units + 1, sizeof *numbers); /* of units, and one */
    for (size_t i = 0; i < count; i++) {
        uint32_t *number = &numbers[units[order[i]]];
        if (is_skipped[i])
            continue;
        *number = *number ? *number : (uint32_t)++unit_count;
        response[scored] = rows->response[i];
        weights[scored] = rows->weights ? rows->weights[i] : 1;
        predictions->mean[scored] = predictions->mean[i];
        predictions->log_density[scored] = predictions->log_density[i];
        scored_units[scored++] = *number - 1;
    }
    scores_compute(scores, scored, response, predictions->mean, predictions->log_density,
                   rows->weights ? weights : NULL, scored_units, unit_count);
}

/* Predicts each fold of the group by a fit to the other folds, and scores the predictions. Rows of fold
 * number scores->folds are never left out. A fold whose other rows cannot be fitted is not scored: its rows
 * are added to *RET_FAILED, and MESSAGE says why. -EDOM: fewer than two folds could be scored. */
static int score_folds(struct fitting *fitting, const uint8_t *folds, const uint32_t *units,
                       struct scores *scores, size_t *ret_failed, struct plugin_message *message,
                       struct failure *failure) {
    const struct rows *rows = &fitting->folded;
    size_t count = fitting->all.view.count, first[FOLDS_MAX + 2], done = 0;
    cleanup_free uint32_t *order = xcalloc(count + 1, sizeof *order);
    cleanup_free bool *is_skipped = xcalloc(count + 1, sizeof *is_skipped);
    struct predictions predictions = predictions_new(count);
    rows_arrange(&fitting->folded, &fitting->binding.layout, &fitting->all, folds, scores->folds + 1, first,
                 order);
    int r = scores->folds < 2 ? plugin_refuse(message, -EDOM, "fewer than two folds could be made") : 0;
    for (size_t fold = 0; r == 0 && fold < scores->folds; fold++) {
        size_t begin = first[fold], end = first[fold + 1];
        if (begin == end)
            continue; /* folds of a whole table may have no row of this group */
        struct plugin_message why = {""};
        r = predict_fold(fitting, begin, end, &predictions, &why, failure);
        done += r == 0;
        if (r == -EDOM)
            *message = why;
        *ret_failed += r == -EDOM ? end - begin : 0;
        for (size_t i = begin; r == -EDOM && i < end; i++)
            is_skipped[i] = true;
        r = r == -EDOM ? 0 : r;
    }
    for (size_t i = first[scores->folds]; i < count; i++)
        is_skipped[i] = true;
    if (r == 0 && done < 2)
        r = message->text[0] ? -EDOM : plugin_refuse(message, -EDOM, "fewer than two folds could be fitted");
    for (size_t i = 0; r == 0 && fitting->binding.options->held_out && i < count; i++)
        fitting->binding.options->held_out[rows->view.numbers[i]] =
            (struct score_row){.mean = is_skipped[i] ? NAN : predictions.mean[i],
                               .sigma = predictions.sigma[i],
                               .log_density = predictions.log_density[i],
                               .share = NAN};
    for (size_t i = 0; fitting->outliers && i < count; i++)
        is_skipped[i] |= fitting->outliers[order[i]];
    if (r == 0)
        score_rows(fitting, &predictions, is_skipped, order, units, scores);
    predictions_clear(&predictions);
    return r;
}

/* Moves rows whose level of a category occurs in one fold only to the fold FOLD_COUNT, which is never left
 * out: without them the level could not be fitted. Adds a note for each such category. */
static void keep_rare_levels(const struct fitting *fitting, struct model_group *group, size_t fold_count,
                             uint8_t *folds) {
    const struct rows *rows = &fitting->all;
    for (size_t c = 0; c < rows->factor_count; c++) {
        const struct formula_column *column = &rows->factors[c];
        size_t first, kept = 0;
        if (column->codes)
            kept = folds_keep_rare(column->codes, column->text_count, rows->view.count, fold_count, folds,
                                   &first);
        if (kept > 0)
            xappend(&group->notes, &group->note_count,
                    xformat("%zu row%s not cross-validated: the level '%s'%s of '%s' occurs in one "
                            "fold only",
                            kept, kept == 1 ? " is" : "s are", column->texts[column->codes[first]],
                            kept == 1 ? "" : ", or another,", column->name));
    }
}

/* Cross-validates the group by folds, and adds its scores to GROUP. If too few folds can be fitted, the
 * scores are NaN and a note says why. */
static int cross_validate(struct fitting *fitting, struct model_group *group, struct failure *failure) {
    const struct fit_options *options = fitting->binding.options;
    size_t count = fitting->all.view.count, failed = 0;
    cleanup_free uint32_t *units = xcalloc(count + 1, sizeof *units);
    cleanup_free uint8_t *folds = xcalloc(count + 1, 1);
    struct scores scores = {.rmse = NAN,
                            .relative = NAN,
                            .median_relative = NAN,
                            .log_score = NAN,
                            .mse_error = NAN,
                            .log_score_error = NAN};
    scores.units = number_units(fitting, units);
    for (size_t i = 0; options->row_folds && i < count; i++)
        folds[i] = options->row_folds[fitting->all.view.numbers[i]];
    scores.folds = options->row_folds
                       ? options->folds
                       : folds_deal(units, scores.units, count, options->folds, options->seed, folds);
    struct plugin_message message = {""};
    keep_rare_levels(fitting, group, scores.folds, folds);
    int r = score_folds(fitting, folds, units, &scores, &failed, &message, failure);
    if (r < 0 && r != -EDOM)
        return r;
    if (r < 0)
        xappend(&group->notes, &group->note_count,
                xformat("not cross-validated: without the rows of a fold the model cannot be "
                        "fitted: %s",
                        message.text));
    else if (failed > 0)
        xappend(&group->notes, &group->note_count,
                xformat("%zu of %zu rows are not cross-validated: without the rows of their "
                        "fold the model cannot be fitted: %s",
                        failed, count, message.text));
    add_scores(group, &scores);
    return 0;
}

/* Copies the predictions of the group's rows, but outliers, into fit->mean and fit->scaled, if the caller
 * wants those. */
static void keep_predictions(const struct fitting *fitting, const struct predictions *predictions) {
    struct fit *fit = fitting->fit;
    const struct rows *rows = &fitting->all;
    for (size_t i = 0; fit->mean && i < rows->view.count; i++) {
        uint64_t row = rows->view.numbers[i];
        if (fitting->outliers && fitting->outliers[i])
            continue;
        double scaled = (rows->view.response[i] - predictions->mean[i]) / predictions->sigma[i];
        fit->mean[row] = predictions->mean[i];
        fit->scaled[row] = isfinite(scaled) ? scaled : NAN;
    }
}

/* Predicts the group's own rows, and adds to GROUP the F test of lack of fit, the number of rows with a
 * prediction of 0 or less, and a note on outliers. */
static int test_lack_of_fit(struct fitting *fitting, struct model_group *group, struct failure *failure) {
    struct fit *fit = fitting->fit;
    const struct rows *rows = &fitting->all;
    size_t count = rows->view.count, nonpositive = 0, parameters = 0;
    struct predictions predictions = predictions_new(count);
    struct lack_of_fit lack;
    int r = predict_rows(fitting, group, rows, predictions.mean, predictions.sigma, NULL, failure);
    if (r == 0) {
        for (size_t p = 0; p < group->part_count; p++)
            for (size_t t = 0; t < fit->model->term_count; t++)
                parameters += !group->parts[p].estimates[t].dropped && !group->parts[p].estimates[t].at_bound;
        size_t outliers = 0;
        lack_of_fit_test(&lack, count, rows->view.response, predictions.mean, rows->view.weights,
                         rows->view.settings, rows->view.setting_count, fitting->outliers, parameters);
        for (size_t i = 0; i < count; i++) {
            bool is_outlier = fitting->outliers && fitting->outliers[i];
            outliers += is_outlier;
            nonpositive += !is_outlier && predictions.mean[i] <= 0;
        }
        if (outliers > 0)
            xappend(&group->notes, &group->note_count,
                    xformat("%zu of %zu rows are outliers, and are left out of the scores", outliers, count));
        keep_predictions(fitting, &predictions);
        add_score(group, "settings", (double)lack.settings, "1");
        add_score(group, "pure_error", lack.pure_error, NULL);
        add_score(group, "lack_of_fit_f", lack.f, "1");
        add_score(group, "lack_of_fit_p", lack.p, "1");
        if (fitting->binding.is_positive)
            add_score(group, "nonpositive_rows", (double)nonpositive, "1");
    }
    predictions_clear(&predictions);
    return r;
}

/* Adds a note on rows whose measured response is 0 or less, where the response is a quantity that cannot
 * be. */
static void note_nonpositive_rows(const struct fitting *fitting, struct model_group *group) {
    const struct fit_rows *rows = &fitting->all.view;
    size_t count = 0;
    for (size_t i = 0; fitting->binding.is_positive && i < rows->count; i++)
        count += rows->response[i] <= 0;
    if (count > 0)
        xappend(&group->notes, &group->note_count,
                xformat("the measured response '%s' is 0 or less in %zu of %zu rows",
                        fitting->binding.options->response, count, rows->count));
}

/* For a method that cannot be cross-validated (needs_all_rows): keeps the predictions of its rows, without
 * scores. */
static int keep_unscored_predictions(struct fitting *fitting, struct model_group *group,
                                     struct failure *failure) {
    const struct rows *rows = &fitting->all;
    if (!fitting->fit->mean || !fitting->binding.library->fit->predict)
        return 0;
    struct predictions predictions = predictions_new(rows->view.count);
    int r = predict_rows(fitting, group, rows, predictions.mean, predictions.sigma, NULL, failure);
    if (r == 0)
        keep_predictions(fitting, &predictions);
    predictions_clear(&predictions);
    return r;
}

/* The labels of group G, one for each column of --by. The caller frees them. */
static char **labels_of(const struct fitting *fitting, size_t g) {
    const struct fit_binding *binding = &fitting->binding;
    size_t count = fitting->groups.label_count;
    char **labels = xcalloc(count + 1, sizeof *labels);
    for (size_t j = 0; j < count; j++)
        labels[j] =
            xstrdup(binding->table->categories[binding->by[j]].levels[fitting->groups.labels[g * count + j]]);
    return labels;
}

/* Adds group G to the model's skipped groups, with the reason. */
__attribute__((format(printf, 3, 4))) static void skip_group(struct fitting *fitting, size_t g,
                                                             const char *format, ...) {
    struct model *model = fitting->fit->model;
    char reason[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    model->skipped = xrealloc(model->skipped, (model->skipped_count + 1) * sizeof *model->skipped);
    model->skipped[model->skipped_count++] = (struct model_skipped){
        .labels = labels_of(fitting, g),
        .name = groups_name(&fitting->groups, fitting->binding.table, fitting->binding.by, g),
        .rows = fitting->all.view.count,
        .reason = xstrdup(reason),
    };
}

static void note_left_out(const struct fitting *fitting, struct model_group *group) {
    const struct rows *rows = &fitting->all;
    if (rows->missing > 0)
        add_score(group, "rows_left_out", (double)rows->missing, "1");
    if (rows->weightless > 0)
        add_score(group, "rows_weightless", (double)rows->weightless, "1");
}

static bool has_level(const struct model_term *term) {
    for (size_t f = 0; f < term->factor_count; f++)
        if (term->factors[f].level)
            return true;
    return false;
}

/* Sets the domain of PART: the range, over the group's rows, of each factor and column, and of each product
 * of factors without levels. */
static void set_domain(const struct fitting *fitting, struct model_part *part) {
    const struct rows *rows = &fitting->all;
    const struct rows_layout *layout = &fitting->binding.layout;
    size_t most = layout->factor_count + layout->column_count + layout->term_count;
    part->domain = xcalloc(most + 1, sizeof *part->domain);
    for (size_t i = 0; i < most; i++) {
        bool is_factor = i < layout->factor_count,
             is_column = !is_factor && i < layout->factor_count + layout->column_count;
        size_t c = i - layout->factor_count, t = i - layout->factor_count - layout->column_count;
        if (!is_factor && !is_column && (layout->terms[t].factor_count < 2 || has_level(&layout->terms[t])))
            continue;
        const char *name = is_factor   ? layout->table->numbers[layout->factors[i]].name
                           : is_column ? layout->table->numbers[layout->columns[c]].name
                                       : layout->terms[t].name;
        const double *values = is_factor   ? rows->factors[i].numbers
                               : is_column ? rows->columns[c]
                                           : rows->terms[t];
        struct model_range range = {.name = xstrdup(name)};
        range_find(values, rows->view.count, &range.minimum, &range.maximum);
        part->domain[part->domain_count++] = range;
    }
}

/* Adds the factors of the group's rows to the model's convex hull, which is of all groups. */
static void add_to_hull(struct fitting *fitting) {
    const struct rows_layout *layout = &fitting->binding.layout;
    struct model *model = fitting->fit->model;
    cleanup_free const char **names = xcalloc(layout->factor_count + 1, sizeof *names);
    cleanup_free const double **columns = xcalloc(layout->factor_count + 1, sizeof *columns);
    for (size_t i = 0; i < layout->factor_count; i++) {
        names[i] = layout->table->numbers[layout->factors[i]].name;
        columns[i] = fitting->all.factors[i].numbers;
    }
    if (!model->hull)
        model->hull = model_hull_new(names, layout->factor_count);
    if (model->hull)
        model_hull_add(model->hull, fitting->all.view.count, columns);
}

/* Fits group G and adds it to the model; a group with too few rows, or that the plugin cannot fit, goes to
 * model->skipped. 0, or negative with FAILURE. */
static int fit_group(struct fitting *fitting, size_t g, struct failure *failure) {
    struct fit_binding *binding = &fitting->binding;
    const struct groups *groups = &fitting->groups;
    struct model *model = fitting->fit->model;
    const struct fit_plugin *plugin = binding->library->fit;
    struct plugin_message message;
    int r = rows_gather(&fitting->all, &binding->layout, groups->rows + groups->first[g],
                        groups->first[g + 1] - groups->first[g], failure);
    if (r < 0)
        return r;
    size_t count = fitting->all.view.count;
    if (count < plugin->rows_min || count == 0) {
        skip_group(fitting, g, "%zu row%s; expected at least %zu", count, count == 1 ? "" : "s",
                   plugin->rows_min ? plugin->rows_min : 1);
        return 0;
    }
    cleanup_free char *name = groups_name(groups, binding->table, binding->by, g);
    struct result result;
    binding->view.group = name;
    r = call_fit(fitting, &fitting->all, false, fitting->fit->tables->root, &result, &message, failure);
    if (r < 0) {
        result_clear(&result);
        if (r == -EDOM)
            skip_group(fitting, g, "%s", message.text);
        return r == -EDOM ? 0 : r;
    }
    fitting->widths[model->group_count] = model->term_count;
    struct model_group *group = &model->groups[model->group_count++];
    *group = (struct model_group){.labels = labels_of(fitting, g), .name = take_pointer(name), .rows = count};
    free(fitting->outliers);
    fitting->outliers = take_pointer(result.outliers);
    result_finish(&result, model->term_count, group);
    note_left_out(fitting, group);
    note_nonpositive_rows(fitting, group);
    for (size_t p = 0; p < group->part_count; p++)
        set_domain(fitting, &group->parts[p]);
    add_to_hull(fitting);
    if (plugin->needs_all_rows)
        return keep_unscored_predictions(fitting, group, failure);
    r = test_lack_of_fit(fitting, group, failure);
    return r < 0 || binding->options->folds < 2 ? r : cross_validate(fitting, group, failure);
}

/* ---- The fit */

static void note_table(struct fit *fit, const struct table *table) {
    for (size_t i = 0; i < table->note_count; i++)
        xappend(&fit->notes, &fit->note_count, xstrdup(table->notes[i]));
}

static double *nans(size_t count) {
    double *values = xrealloc_large(NULL, 0, (count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = NAN;
    return values;
}

static void fitting_clear(struct fitting *fitting) {
    fit_binding_clear(&fitting->binding);
    groups_clear(&fitting->groups);
    formula_names_clear(&fitting->names);
    rows_clear(&fitting->all), rows_clear(&fitting->folded);
    rows_clear(&fitting->left_out), rows_clear(&fitting->others);
    free_evaluator(fitting);
    free(fitting->widths), free(fitting->outliers);
    fit_free(fitting->fit);
}

/* Fits a model to each group of the table with the plugin of LIBRARY. Sets *RET, which the caller frees with
 * fit_free(), only on success. */
int fit_run(const struct library *library, struct table *table, const struct fit_options *options,
            struct fit **ret, struct failure *failure) {
    cleanup(fitting_clear) struct fitting fitting = {.fit = xcalloc(1, sizeof *fitting.fit)};
    struct fit *fit = fitting.fit;
    fit->model = model_new("the fit");
    fit->tables = report_new();
    int r = fit_binding_make(&fitting.binding, library, table, options, failure);
    if (r < 0)
        return r;
    note_table(fit, table);
    fit->response_scale = fitting.binding.layout.response_scale;
    if (options->keep_predictions) {
        fit->mean = nans(table->rows);
        fit->scaled = nans(table->rows);
    }
    groups_make(&fitting.groups, table, fitting.binding.by, options->by_count);
    fit->model->groups = xcalloc(fitting.groups.count + 1, sizeof *fit->model->groups);
    fitting.widths = xcalloc(fitting.groups.count + 1, sizeof *fitting.widths);
    for (size_t g = 0; g < fitting.groups.count; g++) {
        r = fit_group(&fitting, g, failure);
        if (r < 0)
            return r;
        if (options->progress)
            options->progress(options->progress_context, "groups", g + 1, fitting.groups.count);
    }
    if (!fit->model->kind)
        set_kind(&fitting);
    for (size_t g = 0; g < fit->model->group_count; g++)
        result_widen(&fit->model->groups[g], fitting.widths[g], fit->model->term_count);
    description_fill(&fitting.binding, fit->model);
    *ret = take_pointer(fitting.fit);
    return 0;
}

void fit_free(struct fit *fit) {
    if (!fit)
        return;
    model_free(fit->model);
    report_free(fit->tables);
    for (size_t i = 0; i < fit->note_count; i++)
        free(fit->notes[i]);
    free(fit->notes), free(fit->mean), free(fit->scaled), free(fit);
}

void fit_cleanup(struct fit **fit) {
    fit_free(*fit);
}
