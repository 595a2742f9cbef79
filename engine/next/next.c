#include "engine/next/next.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text-set.h"
#include "engine/model/model.h"
#include "engine/model/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Heteroscedastic noise counts as at least this share of a group's sigma: where the fitted noise is almost 0,
 * a row would otherwise count more than all others together. */
static const double noise_least = 1e-3;

enum { CLASSES_MAX = 16 }; /* the search takes time in proportion to it */

/* Covariances over sigma^2 that differ by less, relative to their diagonal, are the same. */
static const double same_covariance = 1e-6;

/* Groups with the same covariance relative to sigma, as one group. */
struct class {
    size_t group;           /* the first of them */
    uint32_t kind;          /* of the candidates that are measured in them */
    double *covariance;     /* owned: the mean of theirs */
    double variance, count; /* the mean of their sigma^2; how many they are */
};

struct selection {
    struct next_rows *next;
    struct text_set keys; /* of kinds: the labels that candidates have columns of */
    struct class *classes;
    size_t class_count;
    uint32_t *kind_of, *kind_of_group; /* by candidate; by served group */
    double *responses;                 /* by candidate: the mean over the groups of its kind */
    double *noise;                     /* by candidate: the weight by the noise of the groups, their mean */
    bool varies;                       /* the noise is heteroscedastic in some group */
};

static void finding_clear(struct selection *selection) {
    for (size_t i = 0; i < selection->class_count; i++)
        free(selection->classes[i].covariance);
    text_set_clear(&selection->keys);
    free(selection->classes), free(selection->kind_of), free(selection->kind_of_group);
    free(selection->responses), free(selection->noise);
}

static const struct model_group *group_at(const struct next_rows *next, size_t i) {
    return &next->request->model->groups[next->groups[i]];
}

/* The standard deviation of a unit of weight 1. */
static double sigma_of(const struct model_group *group) {
    const struct model_noise *noise = &group->parts[0].noise;
    double sigma = model_group_value(group, "sigma");
    return isnan(sigma) && noise->kind == MODEL_NOISE_HOMOSCEDASTIC ? noise->constant : sigma;
}

/* ---- The model */

/* -EINVAL unless the model is linear with numerical terms. */
static int check_model(struct next_rows *next, struct failure *failure) {
    const struct model *model = next->request->model;
    if (strcmp(model->kind, "linear") != 0)
        return failure_input(failure, model->file, 0, 0,
                             "the model has the kind '%.64s'; expected a model of the kind "
                             "'linear', whose covariance gives the uncertainty of predictions",
                             model->kind);
    int r = evaluator_new(model, &next->evaluator, failure);
    for (size_t i = 0; r == 0 && i < next->evaluator->input_count; i++)
        if (next->evaluator->inputs[i].is_text)
            r = failure_input(failure, model->file, 0, 0,
                              "the terms of the model use the category '%.64s'; rows can be chosen "
                              "only for models with numerical terms",
                              next->evaluator->inputs[i].name);
    return r;
}

/* Lists the groups with a covariance that more measurements could reduce. -EINVAL: there is none; the message
 * says why. */
static int choose_groups(struct next_rows *next, struct failure *failure) {
    const struct model *model = next->request->model;
    size_t only = SIZE_MAX, undefined = 0, exact = 0, unscaled = 0;
    int r = next->request->group ? model_group_find(model, next->request->group, &only, failure) : 0;
    next->groups = xcalloc(model->group_count + 1, sizeof *next->groups);
    for (size_t g = 0; r == 0 && g < model->group_count; g++) {
        if (only != SIZE_MAX && only != g)
            continue;
        bool is_known = model->groups[g].parts[0].covariance && sigma_of(&model->groups[g]) > 0;
        if (is_known)
            next->groups[next->group_count++] = g;
        undefined += !is_known;
        unscaled += model->groups[g].parts[0].covariance && isnan(sigma_of(&model->groups[g]));
        exact += model->groups[g].parts[0].covariance && sigma_of(&model->groups[g]) == 0;
    }
    if (r < 0 || next->group_count > 0) {
        if (undefined > 0)
            xappend(&next->notes, &next->note_count,
                    xformat("%zu of %zu groups have no standard errors, and are left out", undefined,
                            undefined + next->group_count));
        return r;
    }
    return failure_input(failure, model->file, 0, 0,
                         exact      ? "the model has no uncertainty that more measurements could reduce: its "
                                      "terms explain every row exactly"
                         : unscaled ? "the model has no residual standard error of its response, because the "
                                      "fit minimised errors of the logarithm or reciprocal; fit the response "
                                      "itself"
                                    : "the model has no covariance of its coefficients, so that its "
                                      "uncertainty is not known; fit it to more rows than it has terms");
}

/* ---- Classes of groups */

/* The labels of candidate ROW, or of GROUP if it is not NULL, in the columns of groups that candidates have,
 * as one text; numbers are spelled alike. The caller frees. */
static char *key_of(const struct next_rows *next, size_t row, const struct model_group *group) {
    const struct model *model = next->request->model;
    char *key = xstrdup("");
    for (size_t j = 0; j < model->by_count; j++) {
        size_t column = design_find(next->candidates, model->by[j]);
        char written[NUMBER_TEXT_SIZE], plain[NUMBER_TEXT_SIZE];
        double value;
        if (column == SIZE_MAX)
            continue;
        const char *label = group ? group->labels[j] : design_value(next->candidates, row, column, written);
        if (number_parse_double(label, strlen(label), &value)) {
            number_format_double(value, plain);
            label = plain;
        }
        cleanup_free char *before = key;
        key = xformat("%s%s\n", before, label);
    }
    return key;
}

/* Whether group I has the covariance of CLASS, relative to sigma. */
static bool has_same_covariance(const struct next_rows *next, const struct class *class, size_t i) {
    const struct model_group *one = group_at(next, i), *two = group_at(next, class->group);
    const double *a = one->parts[0].covariance, *b = two->parts[0].covariance;
    double by_a = pow(sigma_of(one), 2), by_b = pow(sigma_of(two), 2);
    size_t n = next->request->model->term_count;
    for (size_t k = 0; k < n * n; k++) {
        double scale = sqrt(b[k / n * (n + 1)]) * sqrt(b[k % n * (n + 1)]) / by_b;
        if (!(fabs(a[k] / by_a - b[k] / by_b) <= same_covariance * scale))
            return false;
    }
    return true;
}

/* Adds group I to its class, or to a new one. Beyond CLASSES_MAX, the last class of its kind gets it. */
static void add_to_class(struct selection *selection, size_t i) {
    const struct next_rows *next = selection->next;
    size_t n = next->request->model->term_count, last = SIZE_MAX, found = SIZE_MAX;
    double sigma = sigma_of(group_at(next, i));
    for (size_t c = 0; c < selection->class_count && found == SIZE_MAX; c++) {
        last = selection->classes[c].kind == selection->kind_of_group[i] ? c : last;
        found = last == c && has_same_covariance(next, &selection->classes[c], i) ? c : SIZE_MAX;
    }
    if (found == SIZE_MAX && last != SIZE_MAX && selection->class_count >= CLASSES_MAX)
        found = last;
    struct class *class = &selection->classes[found == SIZE_MAX ? selection->class_count++ : found];
    if (found == SIZE_MAX)
        *class = (struct class){.group = i,
                                .kind = selection->kind_of_group[i],
                                .covariance = xcalloc(n * n, sizeof *class->covariance)};
    class->count++;
    class->variance += (sigma * sigma - class->variance) / class->count;
    for (size_t k = 0; k < n * n; k++)
        class->covariance[k] +=
            (group_at(next, i)->parts[0].covariance[k] - class->covariance[k]) / class->count;
}

/* Finds the groups that each candidate is measured in. Rows of the grid that are in no group are barred; rows
 * of the user's table are refused. */
static int find_kinds(struct selection *selection, struct failure *failure) {
    struct next_rows *next = selection->next;
    size_t rows = next->candidates->row_count;
    selection->kind_of = xcalloc(rows + 1, sizeof *selection->kind_of);
    selection->kind_of_group = xcalloc(next->group_count + 1, sizeof *selection->kind_of_group);
    selection->classes = xcalloc(next->group_count + 1, sizeof *selection->classes);
    for (size_t i = 0; i < next->group_count; i++) {
        cleanup_free char *key = key_of(next, 0, group_at(next, i));
        selection->kind_of_group[i] = text_set_add(&selection->keys, key, strlen(key));
        add_to_class(selection, i);
    }
    for (size_t row = 0; row < rows; row++) {
        cleanup_free char *key = key_of(next, row, NULL);
        if (text_set_find(&selection->keys, key, strlen(key), &selection->kind_of[row]))
            continue;
        if (next->request->candidates && !next->barred[row])
            return design_failure(next->candidates, row, failure,
                                  "the model has no group with this row's values of the columns that "
                                  "form groups");
        next->candidate_count -= !next->barred[row];
        next->barred[row] = true;
        next->shares[row] = 0;
    }
    return 0;
}

/* ---- Predictions, weights and costs of candidates */

/* The column of the candidates for each factor of the model. -EINVAL: one is missing or has texts. */
static int bind_columns(const struct next_rows *next, size_t *ret, struct failure *failure) {
    const struct design *design = next->candidates;
    for (size_t i = 0; i < next->evaluator->input_count; i++) {
        const char *name = next->evaluator->inputs[i].name;
        ret[i] = design_find(design, name);
        if (ret[i] == SIZE_MAX || design->columns[ret[i]].about.type == COLUMN_STRING)
            return failure_input(failure, design->file, design->lines ? 1 : 0, 0,
                                 ret[i] == SIZE_MAX
                                     ? "the candidates have no column '%s', which the terms of the model use"
                                     : "the column '%s' has texts, but the terms of the model use it as a "
                                       "number",
                                 name);
    }
    return 0;
}

/* Predicts candidate ROW by each group that it is measured in: response, noise, and the longest time. */
static int predict_row(struct selection *selection, size_t row, const double *inputs,
                       struct failure *failure) {
    struct next_rows *next = selection->next;
    const struct model *model = next->request->model;
    double groups = 0;
    for (size_t i = 0; i < next->group_count; i++) {
        const struct model_group *group = group_at(next, i);
        double mean, sigma, own = sigma_of(group);
        if (selection->kind_of_group[i] != selection->kind_of[row])
            continue;
        if (evaluator_row(next->evaluator, group, inputs, &mean, &sigma) < 0)
            return design_failure(next->candidates, row, failure,
                                  "the predicted '%s' of this row exceeds the range of a double",
                                  model->response);
        bool varies = group->parts[0].noise.kind == MODEL_NOISE_HETEROSCEDASTIC;
        selection->varies = selection->varies || varies;
        sigma = varies && sigma > own * noise_least ? sigma : varies ? own * noise_least : own;
        if (groups++ == 0 || mean > next->times[row]) {
            next->times[row] = mean;
            next->costs[row] = fmax(mean, sigma);
        }
        selection->noise[row] += (own * own / sigma / sigma - selection->noise[row]) / groups;
        selection->responses[row] += (mean - selection->responses[row]) / groups;
    }
    return 0;
}

/* Computes terms, places and predictions of all candidates that are not barred. */
static int predict_candidates(struct selection *selection, struct failure *failure) {
    struct next_rows *next = selection->next;
    size_t rows = next->candidates->row_count, count = next->request->model->term_count;
    cleanup_free size_t *columns = xcalloc(next->evaluator->input_count + 1, sizeof *columns);
    cleanup_free double *inputs = xcalloc(next->evaluator->input_count + 1, sizeof *inputs);
    double shares = 0;
    int r = bind_columns(next, columns, failure);
    next->terms = xcalloc(rows * count + 1, sizeof *next->terms);
    next->places = xcalloc(rows * next->evaluator->input_count + 1, sizeof *next->places);
    selection->responses = xcalloc(rows + 1, sizeof(double)),
    selection->noise = xcalloc(rows + 1, sizeof(double));
    next->times = xcalloc(rows + 1, sizeof(double)), next->costs = xcalloc(rows + 1, sizeof(double));
    for (size_t row = 0; r == 0 && row < rows; row++) {
        if (next->barred[row])
            continue;
        for (size_t i = 0; i < next->evaluator->input_count; i++)
            inputs[i] = design_number(next->candidates, row, columns[i]);
        evaluator_terms(next->evaluator, inputs, next->terms + row * count);
        for (size_t i = 0; i < next->evaluator->input_count; i++)
            next->places[row * next->evaluator->input_count + i] =
                candidate_range_place(&next->ranges[i], inputs[i]);
        r = predict_row(selection, row, inputs, failure);
        shares += next->shares[row];
        next->response += next->shares[row] * fabs(selection->responses[row]);
    }
    next->response /= shares;
    return r;
}

/* Evaluates the expression TEXT over columns and predicted response for each candidate, into *RET. -EINVAL:
 * it is not above 0 everywhere. OPTION names it in messages. */
static int evaluate_expression(const struct selection *selection, const char *option, const char *text,
                               double **ret, struct failure *failure) {
    const struct design *design = selection->next->candidates;
    const char *response = selection->next->request->model->response;
    size_t count = design->column_count;
    cleanup(expression_cleanup) struct expression *expression = NULL;
    cleanup_free const char **names = xcalloc(count + 1, sizeof *names);
    cleanup_free double *values = xcalloc(count + 1, sizeof *values);
    for (size_t i = 0; i < count; i++)
        names[i] = design->columns[i].about.name;
    names[count] = response;
    int r = expression_parse(text, names, count + (design_find(design, response) == SIZE_MAX), option, 0, 0,
                             &expression, failure);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (design->columns[i].about.type == COLUMN_STRING && expression_uses(expression, i))
            r = expression_failure(expression, failure, "%s uses '%s', which is a text", option, names[i]);
    *ret = xcalloc(design->row_count + 1, sizeof **ret);
    for (size_t row = 0; r == 0 && row < design->row_count; row++) {
        design_numbers(design, row, values);
        values[count] = selection->responses[row];
        double value = selection->next->barred[row] ? 1 : expression_value(expression, values);
        (*ret)[row] = value;
        if (!isfinite(value) || value <= 0)
            r = design_failure(design, row, failure,
                               "%s %.200s is %g for this row, where %s is predicted to be %g; "
                               "expected a number above 0",
                               option, text, value, response, selection->responses[row]);
    }
    return r;
}

/* Sets the weights of candidates: those of --weights or of the column that the model was fitted with, scaled
 * to the model's noise; else by its noise. -EINVAL: they cannot be found. */
static int set_weights(struct selection *selection, struct failure *failure) {
    struct next_rows *next = selection->next;
    const struct model *model = next->request->model;
    const char *weights = next->request->weights, *fitted = model->weights;
    if (!weights && fitted && design_find(next->candidates, fitted) != SIZE_MAX)
        weights = fitted;
    if (!weights && fitted)
        return failure_input(failure, model->file, 0, 0,
                             "the model was fitted with the weights '%s'; give the weights of new "
                             "rows with --weights EXPRESSION, or as a column of the candidates",
                             fitted);
    if (!weights) {
        next->weights = selection->varies ? take_pointer(selection->noise) : NULL;
        for (size_t row = 0; next->weights && row < next->candidates->row_count; row++)
            next->weights[row] = next->barred[row] ? 1 : next->weights[row];
        return 0;
    }
    double variance = 0, shares = 0;
    int r = evaluate_expression(selection, "--weights", weights, &next->weights, failure);
    for (size_t row = 0; r == 0 && row < next->candidates->row_count; row++) {
        variance += next->shares[row] / next->weights[row];
        shares += next->shares[row];
    }
    for (size_t row = 0; r == 0 && !fitted && row < next->candidates->row_count; row++)
        next->weights[row] *= variance / shares;
    return r;
}

/* Converts times to seconds. Candidates with a predicted time of 0 or less are barred, since the model is
 * wrong there. -EINVAL: no other is left. */
static int estimate_times(struct next_rows *next, double seconds, struct failure *failure) {
    size_t rows = next->candidates->row_count, nonpositive = 0;
    for (size_t row = 0; row < rows; row++) {
        bool is_impossible = !next->barred[row] && !(next->times[row] > 0);
        next->times[row] *= seconds;
        next->costs[row] *= seconds;
        next->barred[row] = next->barred[row] || is_impossible;
        nonpositive += is_impossible;
    }
    if (nonpositive == next->candidate_count)
        return failure_input(failure, next->request->model->file, 0, 0,
                             "the model predicts a time of 0 s or less for each of the %zu "
                             "candidates; give the cost of a row with --cost EXPRESSION, or fit "
                             "another model",
                             nonpositive);
    if (nonpositive > 0)
        xappend(&next->notes, &next->note_count,
                xformat("%zu of %zu candidates are left out, because the model predicts a time "
                        "of 0 s or less for them",
                        nonpositive, next->candidate_count));
    next->candidate_count -= nonpositive;
    return 0;
}

/* Sets the cost of each candidate: --cost, else the predicted time if the response is one. -EINVAL: there is
 * a budget, but no cost. */
static int estimate_costs(struct selection *selection, struct failure *failure) {
    struct next_rows *next = selection->next;
    const struct model *model = next->request->model;
    double seconds = model->response_seconds;
    next->cost_is_time = !next->request->cost && !isnan(seconds);
    if (!next->cost_is_time) {
        free(take_pointer(next->times));
        free(take_pointer(next->costs));
    }
    if (next->request->cost)
        return evaluate_expression(selection, "--cost", next->request->cost, &next->costs, failure);
    if (isnan(seconds) && isfinite(next->request->budget))
        return failure_input(failure, model->file, 0, 0,
                             "the model predicts '%s' in %s, which is no time; give the cost of a "
                             "row in seconds with --cost EXPRESSION",
                             model->response, model->response_unit);
    if (isnan(seconds))
        return 0;
    if (seconds == 0)
        xappend(&next->notes, &next->note_count,
                xformat("the model does not state the unit of '%s'; seconds are assumed", model->response));
    return estimate_times(next, seconds == 0 ? 1 : seconds, failure);
}

/* ---- The result */

/* The average of x'Cx over the candidates of a kind. */
static double mean_variance(const struct selection *selection, const double *covariance, uint32_t kind) {
    const struct next_rows *next = selection->next;
    size_t n = next->request->model->term_count;
    double sum = 0, shares = 0;
    for (size_t row = 0; row < next->candidates->row_count; row++) {
        const double *x = next->terms + row * n;
        double variance = 0;
        if (selection->kind_of[row] != kind || next->shares[row] == 0)
            continue;
        for (size_t i = 0; i < n * n; i++)
            variance += x[i / n] * covariance[i] * x[i % n];
        shares += next->shares[row];
        sum += next->shares[row] * fmax(variance, 0);
    }
    return shares > 0 ? sum / shares : 0;
}

/* Computes the standard error of predictions before and after the chosen rows are measured, for each group by
 * itself. */
static void compute_errors(const struct selection *selection) {
    struct next_rows *next = selection->next;
    size_t n = next->request->model->term_count;
    cleanup_free double *covariance = xcalloc(n * n + 2 * n, sizeof *covariance);
    double before = 0, after = 0, *z = covariance + n * n;
    for (size_t g = 0; g < next->group_count; g++) {
        uint32_t kind = selection->kind_of_group[g];
        double sigma = sigma_of(group_at(next, g));
        memcpy(covariance, group_at(next, g)->parts[0].covariance, n * n * sizeof *covariance);
        before += mean_variance(selection, covariance, kind);
        for (size_t i = 0; i < next->rows.count; i++) {
            size_t row = next->rows.items[i];
            for (size_t t = 0; t < n; t++)
                z[t] = next->terms[row * n + t] * sqrt(next->weights ? next->weights[row] : 1) / sigma;
            if (selection->kind_of[row] == kind)
                optimal_rows_add(covariance, z, n, z + n);
        }
        after += mean_variance(selection, covariance, kind);
    }
    next->error_before = sqrt(before / (double)next->group_count);
    next->error_after = sqrt(after / (double)next->group_count);
    for (size_t i = 0; i < next->rows.count; i++)
        next->cost += next_cost(next, i);
}

double next_cost(const struct next_rows *next, size_t i) {
    const double *costs = next->times ? next->times : next->costs;
    return costs ? costs[next->rows.items[i]] : 1;
}

/* Fails because no row was chosen: the budget is too small, or no row helps. */
static int refuse_budget(const struct next_rows *next, struct failure *failure) {
    double least = INFINITY, budget = next->request->budget;
    for (size_t row = 0; row < next->candidates->row_count; row++)
        if (!next->barred[row])
            least = fmin(least, next->costs ? next->costs[row] : 1);
    if (!(least > budget))
        return failure_input(failure, NULL, 0, 0, "no row of the domain reduces the prediction variance");
    char given[NUMBER_TEXT_SIZE], needed[NUMBER_TEXT_SIZE];
    return failure_input(failure, NULL, 0, 0,
                         "the budget of %s is too small for a single row: the %s row takes %s; "
                         "give at least as much",
                         number_describe_duration(budget, given), next->cost_is_time ? "fastest" : "cheapest",
                         number_describe_duration(least, needed));
}

/* Chooses the rows by the optimal design (optimal-rows.h). */
static int choose_rows(const struct selection *selection, struct failure *failure) {
    struct next_rows *next = selection->next;
    const struct next_request *request = next->request;
    size_t count = selection->class_count;
    cleanup_free struct optimal_group *groups = xcalloc(count + 1, sizeof *groups);
    for (size_t i = 0; i < count; i++)
        groups[i] =
            (struct optimal_group){selection->classes[i].covariance, sqrt(selection->classes[i].variance),
                                   selection->classes[i].count, selection->classes[i].kind};
    int r = optimal_rows_find(&(struct optimal_problem){.candidate_count = next->candidates->row_count,
                                                        .term_count = request->model->term_count,
                                                        .group_count = count,
                                                        .terms = next->terms,
                                                        .weights = next->weights,
                                                        .shares = next->shares,
                                                        .costs = next->costs,
                                                        .kinds = selection->kind_of,
                                                        .barred = next->barred,
                                                        .groups = groups,
                                                        .criterion = request->criterion,
                                                        .budget = request->budget,
                                                        .rows_most = request->rows_most,
                                                        .repeats_most = request->repeats_most,
                                                        .repeats_share = next->candidate_count > 1 ? 0.5 : 0,
                                                        .least_gain = NEXT_LEAST_GAIN,
                                                        .places = next->places,
                                                        .place_count = next->evaluator->input_count,
                                                        .lack_share = request->lack_share},
                              &next->rows, failure);
    return r == 0 && next->rows.count == 0 ? refuse_budget(next, failure) : r;
}

/* Adds notes on a design that leaves budget unused, is at its limit, or cannot show lack of fit. */
static void note_choice(struct next_rows *next) {
    size_t same = 1;
    while (same < next->rows.count && next->rows.items[same] == next->rows.items[0])
        same++;
    double times = floor(next->request->budget / next->cost);
    if (next->rows.count == OPTIMAL_ROWS_MAX && isfinite(times) && times > 1)
        xappend(&next->notes, &next->note_count,
                xformat("%d rows are chosen, the most accepted; the budget has room "
                        "for %.0f repetitions of these rows",
                        OPTIMAL_ROWS_MAX, times));
    if (next->rows.count > 1 && same == next->rows.count)
        xappend(&next->notes, &next->note_count,
                xformat("all %zu rows have the same settings, so that lack of fit cannot be "
                        "tested",
                        same));
    const struct next_request *request = next->request;
    bool has_budget = isfinite(request->budget);
    double used = has_budget ? next->rows.cost / request->budget
                             : (double)next->rows.count / (double)request->rows_most;
    if (next->rows.count < OPTIMAL_ROWS_MAX && used < (has_budget ? 0.95 : 1))
        xappend(&next->notes, &next->note_count,
                xformat("%.3g %% of the %s is not used: another row would gain less than %g %% "
                        "of the gain of the best row, or exceed a limit (%zu rows in all, %g "
                        "%% of the rows for lack of fit, %u repetitions of a row, half of the "
                        "budget for repetitions of one row)",
                        100 - 100 * used, has_budget ? "budget" : "number of rows", 100 * NEXT_LEAST_GAIN,
                        request->rows_most, 100 * request->lack_share, (unsigned)request->repeats_most));
}

/* Chooses the rows to measure next (next.h). NEXT is to be cleared after failures too. */
int next_find(const struct next_request *request, struct next_rows *next, struct failure *failure) {
    cleanup(finding_clear) struct selection selection = {.next = next};
    *next = (struct next_rows){.request = request};
    char *warning = model_verdict_warning(request->model, request->model->file);
    if (warning)
        xappend(&next->notes, &next->note_count, warning);
    int r = check_model(next, failure);
    r = r < 0 ? r : choose_groups(next, failure);
    r = r < 0 ? r : next_make_candidates(next, failure);
    r = r < 0 ? r : find_kinds(&selection, failure);
    r = r < 0 ? r : predict_candidates(&selection, failure);
    r = r < 0 ? r : set_weights(&selection, failure);
    r = r < 0 ? r : estimate_costs(&selection, failure);
    r = r < 0 ? r : choose_rows(&selection, failure);
    if (r < 0)
        return r;
    compute_errors(&selection);
    note_choice(next);
    return 0;
}

void next_clear(struct next_rows *next) {
    evaluator_free(next->evaluator);
    free(next->groups), free(next->ranges), free(next->domain);
    design_free(next->candidates);
    free(next->shares), free(next->barred), free(next->terms), free(next->weights), free(next->costs);
    free(next->times), free(next->places);
    optimal_rows_clear(&next->rows);
    for (size_t i = 0; i < next->note_count; i++)
        free(next->notes[i]);
    free(next->notes);
    *next = (struct next_rows){0};
}
