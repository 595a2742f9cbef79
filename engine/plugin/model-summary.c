#include "engine/plugin/model-summary.h"

#include "engine/foundation/number.h"

#include <math.h>
#include <string.h>

static double number_of(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    double number;
    if (!value || value->kind != DOCUMENT_NUMBER || !value->text ||
        !number_parse_double(value->text, strlen(value->text), &number))
        return NAN;
    return number;
}

static const char *text_of(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->kind == DOCUMENT_TEXT ? value->text : NULL;
}

static uint64_t count_noise(const struct predict_model *view, const struct plugin_noise *noise) {
    if (!noise)
        return 0;
    if (noise->components)
        return 3 * noise->component_count - 1; /* the shares add up to 1 */
    uint64_t count = noise->constant != 0;
    for (size_t t = 0; noise->coefficients && t < view->term_count; t++)
        count += noise->coefficients[t] != 0;
    return count;
}

static uint64_t count_noises(const struct predict_model *view) {
    uint64_t count = 0;
    for (size_t g = 0; g < view->group_count; g++)
        for (size_t p = 0; p < view->groups[g].part_count; p++)
            count += count_noise(view, view->groups[g].parts[p].noise);
    return count;
}

uint64_t model_summary_parameters(const struct predict_model *view) {
    uint64_t count = count_noises(view);
    for (size_t g = 0; g < view->group_count; g++)
        for (size_t p = 0; p < view->groups[g].part_count; p++) {
            const struct predict_part *part = &view->groups[g].parts[p];
            for (size_t t = 0; t < view->term_count; t++)
                count += !part->dropped || !part->dropped[t];
            count += view->over && p > 0;
        }
    return count;
}

static void add_noise(const struct predict_part *part, struct model_summary *ret) {
    const char *noise = part->noise ? part->noise->kind : "N-0";
    if (!ret->noise)
        ret->noise = noise;
    else if (strcmp(ret->noise, noise) != 0)
        ret->noise = "several";
}

static void pool_groups(const struct model *model, struct model_summary *ret) {
    const struct predict_model *view = model_view(model);
    const struct document_node *groups = document_get(model_document(model)->root, "groups");
    double squares = 0, magnitudes = 0, scores = 0, bic = 0;
    ret->folds = NAN;
    for (size_t g = 0; g < view->group_count; g++) {
        const struct document_node *node = groups->items[g];
        double rows = (double)view->groups[g].rows, rmse = number_of(node, "cv_rmse");
        ret->rows += view->groups[g].rows;
        squares += rows * rmse * rmse;
        magnitudes += rows * rmse / number_of(node, "cv_relative");
        scores += rows * number_of(node, "cv_log_score");
        bic += number_of(node, "bic");
        ret->folds = g == 0 || number_of(node, "folds") == ret->folds ? number_of(node, "folds") : NAN;
        for (size_t p = 0; p < view->groups[g].part_count; p++)
            add_noise(&view->groups[g].parts[p], ret);
    }
    double rows = (double)ret->rows;
    ret->parameters = model_summary_parameters(view);
    ret->of_noise = count_noises(view);
    ret->bic = bic;
    ret->cv_rmse = sqrt(squares / rows);
    ret->cv_relative = ret->cv_rmse / (magnitudes / rows);
    ret->cv_log_score = scores / rows;
}

int model_summary_read(const struct model *model, struct model_summary *ret, struct failure *failure) {
    *ret = (struct model_summary){0};
    const struct document *document = model_document(model);
    const struct document_node *origin = document_get(document->root, "origin");
    const struct document_node *by = document_get(document->root, "by");
    ret->plugin = text_of(origin, "plugin");
    ret->version = text_of(origin, "version");
    for (size_t j = 0; by && by->kind == DOCUMENT_SEQUENCE && j < by->count; j++) {
        if (by->items[j]->kind != DOCUMENT_TEXT || ret->by_count == MODEL_SUMMARY_BY_MAX)
            return failure_input(failure, document->file, by->line, by->column,
                                 "'by' is not a list of at most %d names", (int)MODEL_SUMMARY_BY_MAX);
        ret->by[ret->by_count++] = by->items[j]->text;
    }
    pool_groups(model, ret);
    if (!ret->noise)
        ret->noise = "N-0";
    return 0;
}

/* ---- The rows */

static const struct document_node *inputs_of(const struct model *model) {
    const struct document_node *inputs =
        document_get(document_get(model_document(model)->root, "origin"), "inputs");
    return inputs && inputs->kind == DOCUMENT_SEQUENCE && inputs->count > 0 ? inputs : NULL;
}

/* The same files in the same order, which their folds depend on. */
static const char *input_difference(const struct model *a, const struct model *b) {
    const struct document_node *one = inputs_of(a), *other = inputs_of(b);
    if (!one || !other)
        return "a file does not say what data it is of";
    for (size_t i = 0; i < one->count && i < other->count; i++) {
        const char *hash = text_of(one->items[i], "sha256"), *second = text_of(other->items[i], "sha256");
        if (!hash || !second)
            return "a file does not say what data it is of";
        if (strcmp(hash, second) != 0)
            return "they are of different data";
    }
    return one->count != other->count ? "they are of different data" : NULL;
}

static uint64_t rows_of(const struct predict_model *view) {
    uint64_t rows = 0;
    for (size_t g = 0; g < view->group_count; g++)
        rows += view->groups[g].rows;
    return rows;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static const struct document_node *fold_columns_of(const struct model *model) {
    return document_get(document_get(model_document(model)->root, "origin"), "folds_columns");
}

static bool has_text(const struct document_node *list, const char *text) {
    for (size_t i = 0; i < list->count; i++)
        if (same_text(list->items[i]->text, text))
            return true;
    return false;
}

/* One mean of all rows is as far from a row whichever of the others were left out with it. */
static bool is_constant(const struct predict_model *view) {
    size_t factors = view->over ? 1 : 0;
    for (size_t t = 0; t < view->term_count; t++)
        factors += view->terms[t].factor_count;
    return factors == 0;
}

/* Equal columns, in any order; none where each row is by itself. */
static bool same_folds(const struct model *a, const struct model *b) {
    if (is_constant(model_view(a)) || is_constant(model_view(b)))
        return true;
    const struct document_node *one = fold_columns_of(a), *other = fold_columns_of(b);
    size_t count = one && one->kind == DOCUMENT_SEQUENCE ? one->count : 0;
    if (count != (other && other->kind == DOCUMENT_SEQUENCE ? other->count : 0))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!has_text(other, one->items[i]->text))
            return false;
    return true;
}

const char *model_summary_difference(const struct model *a, const struct model *b) {
    const struct predict_model *one = model_view(a), *other = model_view(b);
    if (strcmp(one->response, other->response) != 0 || !same_text(one->response_unit, other->response_unit))
        return "they explain different responses";
    const char *inputs = input_difference(a, b);
    if (inputs)
        return inputs;
    if (rows_of(one) != rows_of(other))
        return "they are of different rows of the data";
    if (!same_text(model_weights(a), model_weights(b)))
        return "they weigh the rows differently";
    return same_folds(a, b)
               ? NULL
               : "rows were left out of them by different columns, which --folds-by makes the same";
}

double model_summary_standard_error(const struct predict_model *view, const struct predict_part *part,
                                    size_t term) {
    if (!part->covariance || (part->dropped && part->dropped[term]))
        return NAN;
    return sqrt(part->covariance[term * view->term_count + term]);
}

bool model_summary_domain(const struct predict_model *view, const char *name, double *ret_minimum,
                          double *ret_maximum) {
    double minimum = INFINITY, maximum = -INFINITY;
    for (size_t g = 0; g < view->group_count; g++)
        for (size_t p = 0; p < view->groups[g].part_count; p++) {
            const struct predict_part *part = &view->groups[g].parts[p];
            for (size_t i = 0; i < part->domain_count; i++)
                if (strcmp(part->domain[i].name, name) == 0) {
                    minimum = fmin(minimum, part->domain[i].minimum);
                    maximum = fmax(maximum, part->domain[i].maximum);
                }
        }
    *ret_minimum = minimum;
    *ret_maximum = maximum;
    return minimum <= maximum;
}
