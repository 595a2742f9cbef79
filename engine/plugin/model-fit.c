#include "engine/plugin/model-fit.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->kind == DOCUMENT_TEXT ? value->text : NULL;
}

/* A number, or NaN where there is none. */
static double number_of(const struct document_node *node) {
    double value;
    if (!node || node->kind != DOCUMENT_NUMBER ||
        !number_parse_double(node->text, strlen(node->text), &value))
        return NAN;
    return value;
}

static const struct document_node *list_of(const struct document_node *node, const char *key) {
    const struct document_node *list = document_get(node, key);
    return list && list->kind == DOCUMENT_SEQUENCE ? list : NULL;
}

/* ---- Groups */

static int read_group(const struct model_fit *fit, const struct document_node *node,
                      struct model_fit_group *ret, struct failure *failure) {
    ret->sigma = number_of(document_get(node, "sigma"));
    ret->labels = xcalloc(fit->by_count + 1, sizeof *ret->labels);
    const struct document_node *labels = document_get(node, "labels");
    for (size_t j = 0; j < fit->by_count; j++) {
        const struct document_node *label = document_get(labels, fit->by[j]);
        if (!label || !label->text)
            return failure_input(failure, model_document(fit->model)->file, labels->line, labels->column,
                                 "the group has no label '%s', and the model has groups by it", fit->by[j]);
        ret->labels[j] = label->text;
    }
    return 0;
}

static int read_groups(struct model_fit *fit, const struct document_node *root, struct failure *failure) {
    const struct document_node *by = list_of(root, "by"), *groups = list_of(root, "groups");
    fit->by = xcalloc(by ? by->count + 1 : 1, sizeof *fit->by);
    fit->groups = xcalloc(fit->view->group_count, sizeof *fit->groups);
    for (size_t j = 0; by && j < by->count; j++)
        if (by->items[j]->text)
            fit->by[fit->by_count++] = by->items[j]->text;
    int r = 0;
    for (size_t g = 0; r == 0 && g < fit->view->group_count; g++) {
        fit->groups[g].covariance = fit->view->groups[g].parts[0].covariance;
        r = read_group(fit, groups->items[g], &fit->groups[g], failure);
    }
    return r;
}

/* ---- Factors and inputs */

/* Files of before `type` was written, and those from plain CSV: whole ends may be those of whole numbers. */
static bool seems_whole(const struct model_fit *fit, const char *name) {
    bool whole = false;
    for (size_t g = 0; g < fit->view->group_count; g++) {
        double low, high;
        if (!model_fit_domain(fit, &g, 1, name, &low, &high))
            return false;
        whole = low == floor(low) && high == floor(high) && fabs(low) <= (double)DESIGN_INTEGER_MAX &&
                fabs(high) <= (double)DESIGN_INTEGER_MAX;
        if (!whole)
            return false;
    }
    return whole;
}

static const char *type_of(const struct document_node *root, const char *name) {
    const struct document_node *factors = list_of(root, "factors");
    for (size_t i = 0; factors && i < factors->count; i++) {
        const char *found = text_of(factors->items[i], "name");
        if (found && strcmp(found, name) == 0)
            return text_of(factors->items[i], "type");
    }
    return NULL;
}

static size_t find_factor(const struct model_fit *fit, const char *name) {
    size_t i = 0;
    while (i < fit->factor_count && strcmp(fit->factors[i].name, name) != 0)
        i++;
    return i;
}

/* Those that the terms use, in the order in which they first do. */
static int collect_factors(struct model_fit *fit, const struct document_node *root) {
    size_t most = 1;
    for (size_t t = 0; t < fit->view->term_count; t++)
        most += fit->view->terms[t].factor_count;
    fit->factors = xcalloc(most, sizeof *fit->factors);
    for (size_t t = 0; t < fit->view->term_count; t++) {
        const struct plugin_term *term = &fit->view->terms[t];
        for (size_t f = 0; f < term->factor_count; f++) {
            const char *name = term->factors[f].name, *type = type_of(root, name);
            if (find_factor(fit, name) < fit->factor_count)
                continue;
            fit->factors[fit->factor_count++] = (struct model_fit_factor){
                .name = name,
                .whole = type ? strcmp(type, "integer") == 0 : seems_whole(fit, name),
            };
        }
    }
    return 0;
}

/* A category has no range to choose from. */
static int bind_factors(struct model_fit *fit, struct failure *failure) {
    for (size_t t = 0; t < fit->view->term_count; t++)
        for (size_t f = 0; f < fit->view->terms[t].factor_count; f++)
            if (fit->view->terms[t].factors[f].level)
                return failure_input(failure, model_document(fit->model)->file, 0, 0,
                                     "the term '%.64s' is of the category '%.64s'; expected terms of numbers "
                                     "alone, which rows can be chosen for",
                                     fit->view->terms[t].name, fit->view->terms[t].factors[f].name);
    cleanup_free const char **names = xcalloc(fit->factor_count + 1, sizeof *names);
    for (size_t i = 0; i < fit->factor_count; i++)
        names[i] = fit->factors[i].name;
    return evaluation_new(fit->view, names, fit->factor_count, &fit->evaluation, failure);
}

static int collect_inputs(struct model_fit *fit, const struct document_node *root) {
    const struct document_node *inputs = list_of(document_get(root, "origin"), "inputs");
    fit->inputs = xcalloc(inputs ? inputs->count + 1 : 1, sizeof *fit->inputs);
    for (size_t i = 0; inputs && i < inputs->count; i++)
        fit->inputs[fit->input_count++] = (struct model_fit_input){
            .file = text_of(inputs->items[i], "file"),
            .run_id = text_of(inputs->items[i], "run_id"),
            .experiment = text_of(inputs->items[i], "experiment"),
        };
    return 0;
}

/* ---- The whole */

static int check_kind(const struct predict_model *view, const struct document *document,
                      struct failure *failure) {
    static const char *const kinds[] = {"linear"};
    if (strcmp(view->kind, kinds[0]) == 0)
        return 0;
    const struct document_node *at = document_get(document->root, "kind");
    const char *nearest = text_nearest(view->kind, kinds, 1);
    return failure_input(
        failure, document->file, at->line, at->column,
        "the model is of the kind '%.64s', of which no uncertainty is known%s; expected '%s', "
        "as 'assay fit linear' writes",
        view->kind, nearest ? " (a misspelling?)" : "", kinds[0]);
}

int model_fit_read(const struct model *model, struct model_fit **ret, struct failure *failure) {
    cleanup(model_fit_cleanup) struct model_fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return failure_memory(failure);
    const struct document *document = model_document(model);
    fit->model = model;
    fit->view = model_view(model);
    fit->weights = text_of(document->root, "weights");
    int r = check_kind(fit->view, document, failure);
    r = r < 0 ? r : read_groups(fit, document->root, failure);
    r = r < 0 ? r : collect_factors(fit, document->root);
    r = r < 0 ? r : bind_factors(fit, failure);
    r = r < 0 ? r : collect_inputs(fit, document->root);
    if (r == 0)
        *ret = take_pointer(fit);
    return r;
}

void model_fit_free(struct model_fit *fit) {
    if (!fit)
        return;
    for (size_t g = 0; fit->groups && g < fit->view->group_count; g++)
        free((void *)fit->groups[g].labels);
    free(fit->groups);
    free((void *)fit->by);
    evaluation_free(fit->evaluation);
    free(fit->factors);
    free(fit->inputs);
    free(fit);
}

void model_fit_cleanup(struct model_fit **fit) {
    model_fit_free(*fit);
}

bool model_fit_domain(const struct model_fit *fit, const size_t *groups, size_t count, const char *name,
                      double *ret_minimum, double *ret_maximum) {
    double minimum = -INFINITY, maximum = INFINITY;
    for (size_t g = 0; g < count; g++) {
        const struct predict_part *part = fit->view->groups[groups[g]].parts;
        size_t i = 0;
        while (i < part->domain_count && strcmp(part->domain[i].name, name) != 0)
            i++;
        if (i == part->domain_count)
            return false;
        minimum = fmax(minimum, part->domain[i].minimum);
        maximum = fmin(maximum, part->domain[i].maximum);
    }
    *ret_minimum = minimum;
    *ret_maximum = maximum;
    return true;
}

/* ---- Evaluating */

void model_fit_row(const struct model_fit *fit, const double *values, double *ret_terms) {
    evaluation_terms(fit->evaluation, values, NULL, ret_terms);
}

static int find_columns(const struct model_fit *fit, const struct design *design, size_t *ret,
                        struct failure *failure) {
    for (size_t i = 0; i < fit->factor_count; i++) {
        ret[i] = design_find(design, fit->factors[i].name);
        if (ret[i] == SIZE_MAX)
            return failure_input(failure, design->file, design->lines ? 1 : 0, 0,
                                 "no column '%s', which the model's terms use", fit->factors[i].name);
        if (design->columns[ret[i]].type == DESIGN_TEXT)
            return failure_input(failure, design->file, design->lines ? 1 : 0, 0,
                                 "the column '%s' has texts, and the model's terms use it as a number",
                                 fit->factors[i].name);
    }
    return 0;
}

int model_fit_terms(const struct model_fit *fit, const struct design *design, double **ret,
                    struct failure *failure) {
    size_t count = fit->view->term_count;
    cleanup_free size_t *columns = xcalloc(fit->factor_count + 1, sizeof *columns);
    cleanup_free double *values = xcalloc(fit->factor_count + 1, sizeof *values);
    cleanup_free double *terms = xcalloc(design->row_count * count + 1, sizeof *terms);
    int r = find_columns(fit, design, columns, failure);
    for (size_t row = 0; r == 0 && row < design->row_count; row++) {
        for (size_t i = 0; i < fit->factor_count; i++)
            values[i] = design_number(design, row, columns[i]);
        model_fit_row(fit, values, terms + row * count);
        for (size_t t = 0; r == 0 && t < count; t++) {
            if (!isfinite(terms[row * count + t]))
                r = design_failure(design, row, failure, "the term %.64s is beyond the range of a double",
                                   fit->view->terms[t].name);
        }
    }
    if (r == 0)
        *ret = take_pointer(terms);
    return r;
}

double model_fit_sigma(const struct model_fit *fit, size_t group, const double *terms, bool *ret_varies) {
    const struct predict_part *part = fit->view->groups[group].parts;
    const struct plugin_noise *noise = part->noise;
    bool varies = false;
    for (size_t t = 0; noise && noise->coefficients && t < fit->view->term_count; t++)
        varies = varies || noise->coefficients[t] != 0;
    *ret_varies = varies;
    return varies ? evaluation_sigma(fit->view, part, terms) : fit->groups[group].sigma;
}

double model_fit_response(const struct model_fit *fit, size_t group, const double *terms) {
    double sum = 0;
    for (size_t t = 0; t < fit->view->term_count; t++)
        sum += fit->view->groups[group].parts[0].estimates[t] * terms[t];
    return sum;
}
