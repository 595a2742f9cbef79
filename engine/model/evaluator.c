#include "engine/model/evaluator.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/model/extrapolation.h"
#include "engine/model/formula.h"
#include "engine/model/model.h"
#include "engine/model/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    enum evaluator_combine combine;
} kinds[] = {{"linear", EVALUATOR_SUM},      {"piecewise", EVALUATOR_SUM},     {"maximum", EVALUATOR_MAXIMUM},
             {"minimum", EVALUATOR_MINIMUM}, {"harmonic", EVALUATOR_HARMONIC}, {"smpi", EVALUATOR_SUM}};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

struct evaluator_factor {
    size_t input;
    int32_t power;
    bool is_level, is_logarithm;
    double level; /* the code */
};

static size_t find_kind(const char *kind) {
    size_t i = 0;
    while (i < KIND_COUNT && strcmp(kind, kinds[i].name) != 0)
        i++;
    return i;
}

bool evaluator_knows(const char *kind) {
    return find_kind(kind) < KIND_COUNT;
}

void evaluator_free(struct evaluator *evaluator) {
    if (!evaluator)
        return;
    for (size_t i = 0; i < evaluator->input_count; i++)
        free(evaluator->inputs[i].texts);
    free(evaluator->inputs), free(evaluator->factors), free(evaluator->hull);
    free(evaluator);
}

void evaluator_cleanup(struct evaluator **evaluator) {
    evaluator_free(*evaluator);
}

/* ---- Preparing */

/* The code of TEXT among the texts of INPUT; a new one if it has none. */
static double add_text(struct evaluator_input *input, const char *text) {
    size_t i = text_find(text, input->texts, input->text_count);
    if (i == input->text_count) {
        input->texts = xrealloc(input->texts, (i + 1) * sizeof *input->texts);
        input->texts[input->text_count++] = text;
    }
    return (double)i;
}

static size_t find_input(const struct evaluator *evaluator, const char *name, bool is_text) {
    size_t i = 0;
    while (i < evaluator->input_count &&
           (evaluator->inputs[i].is_text != is_text || strcmp(evaluator->inputs[i].name, name) != 0))
        i++;
    return i;
}

static size_t add_input(struct evaluator *evaluator, const char *name, bool is_text) {
    size_t i = find_input(evaluator, name, is_text);
    if (i < evaluator->input_count)
        return i;
    evaluator->inputs = xrealloc(evaluator->inputs, (i + 1) * sizeof *evaluator->inputs);
    struct evaluator_input *input = &evaluator->inputs[evaluator->input_count++];
    *input = (struct evaluator_input){.name = name, .is_text = is_text};
    return i;
}

/* Adds the input NAME, a text, with the levels that the fit saw; returns its index. */
static size_t add_category(struct evaluator *evaluator, const char *name) {
    size_t i = find_input(evaluator, name, true);
    if (i < evaluator->input_count)
        return i;
    const struct model_column *column = model_column_find(evaluator->model, name);
    i = add_input(evaluator, name, true);
    struct evaluator_input *input = &evaluator->inputs[i];
    for (size_t l = 0; column && l < column->level_count; l++)
        add_text(input, column->levels[l]);
    input->level_count = input->text_count;
    return i;
}

/* Points each factor of each term to its input, adding inputs as needed. */
static void bind_terms(struct evaluator *evaluator) {
    const struct model *model = evaluator->model;
    size_t count = 0;
    for (size_t t = 0; t < model->term_count; t++)
        count += model->terms[t].factor_count;
    struct evaluator_factor *bound = evaluator->factors = xcalloc(count + 1, sizeof *bound);
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++, bound++) {
            const struct model_factor *factor = &model->terms[t].factors[f];
            bound->input = factor->level ? add_category(evaluator, factor->column)
                                         : add_input(evaluator, factor->column, false);
            bound->power = factor->power;
            bound->is_level = factor->level != NULL;
            bound->is_logarithm = factor->function != NULL;
            bound->level = factor->level ? add_text(&evaluator->inputs[bound->input], factor->level) : 0;
        }
}

/* Adds the names of all parts as texts of the input that selects a part. A part without a name is for rows
 * without a text. */
static void bind_names(struct evaluator *evaluator) {
    const struct model *model = evaluator->model;
    for (size_t g = 0; g < model->group_count; g++)
        for (size_t p = 0; p < model->groups[g].part_count; p++) {
            const struct model_part *part = &model->groups[g].parts[p];
            if (part->name && strcmp(part->kind, "protocol") != 0)
                add_text(&evaluator->inputs[evaluator->named_by], part->name);
        }
}

/* Points the hull's columns to inputs. A hull over a column that is no input is not used. */
static void bind_hull(struct evaluator *evaluator) {
    const struct model_hull *hull = evaluator->model->hull;
    cleanup_free size_t *inputs = xcalloc(hull ? hull->column_count + 1 : 1, sizeof *inputs);
    for (size_t c = 0; hull && c < hull->column_count; c++)
        if ((inputs[c] = find_input(evaluator, hull->columns[c], false)) == evaluator->input_count)
            return;
    if (hull)
        evaluator->hull = take_pointer(inputs);
}

/* Prepares the evaluation of MODEL by rows (evaluator.h). -EINVAL: only its plugin can evaluate models of its
 * kind. */
int evaluator_new(const struct model *model, struct evaluator **ret, struct failure *failure) {
    if (!evaluator_knows(model->kind))
        return failure_input(failure, model->file, 0, 0,
                             "the model has the kind '%.64s', which gives no value for a row; "
                             "expected 'linear', 'piecewise', 'maximum', 'minimum', 'harmonic' or "
                             "'smpi'",
                             model->kind);
    struct evaluator *evaluator = xcalloc(1, sizeof *evaluator);
    evaluator->model = model;
    evaluator->combine = kinds[find_kind(model->kind)].combine;
    evaluator->over = model->over ? add_input(evaluator, model->over, false) : SIZE_MAX;
    evaluator->named_by = model->named_by ? add_input(evaluator, model->named_by, true) : SIZE_MAX;
    if (model->named_by)
        bind_names(evaluator);
    bind_terms(evaluator);
    bind_hull(evaluator);
    *ret = evaluator;
    return 0;
}

/* The number by which TEXT is given to input INPUT: NaN for a missing text, -1 for a text that the model does
 * not know. */
double evaluator_code(const struct evaluator *evaluator, size_t input, const char *text) {
    static const char prefix[] = "MPI_";
    const struct evaluator_input *of = &evaluator->inputs[input];
    if (!text || text[0] == '\0')
        return NAN;
    size_t i = text_find(text, of->texts, of->text_count);
    if (i == of->text_count) /* "1e+05" is the level "100000" */
        for (i = 0; i < of->text_count && !number_texts_equal(of->texts[i], text);)
            i++;
    if (input == evaluator->named_by) { /* "MPI_Isend" and "isend" are Isend */
        text += strncasecmp(text, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
        for (i = 0; i < of->text_count && strcasecmp(of->texts[i], text) != 0;)
            i++;
    }
    return i < of->text_count ? (double)i : -1;
}

/* ---- Parts */

/* The parts of GROUP for a row: those with the name that the row's text selects, from *RET_FIRST to *RET_END
 * - 1. false: there are none. */
bool evaluator_parts_named(const struct evaluator *evaluator, const struct model_group *group,
                           const double *inputs, size_t *ret_first, size_t *ret_end) {
    *ret_first = 0;
    *ret_end = group->part_count;
    if (evaluator->named_by == SIZE_MAX)
        return group->part_count > 0;
    double code = inputs[evaluator->named_by];
    const char *name = code >= 0 ? evaluator->inputs[evaluator->named_by].texts[(size_t)code] : NULL;
    while (*ret_first < group->part_count &&
           !(name && group->parts[*ret_first].name && strcmp(group->parts[*ret_first].name, name) == 0))
        ++*ret_first;
    *ret_end = *ret_first;
    while (*ret_end < group->part_count && group->parts[*ret_end].name &&
           strcmp(group->parts[*ret_end].name, name) == 0)
        ++*ret_end;
    return *ret_end > *ret_first;
}

/* The part, of FIRST to END - 1, in which X lies; in a gap the nearer one. By bisection. */
size_t evaluator_segment(const struct model_group *group, size_t first, size_t end, double x) {
    size_t low = first, high = end; /* parts below low begin at or below x, from high on above it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group->parts[middle].from <= x)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == first)
        return low;
    if (low == end || x < group->parts[low - 1].to)
        return low - 1;
    return x - group->parts[low - 1].to <= group->parts[low].from - x ? low - 1 : low;
}

const struct model_part *evaluator_part(const struct evaluator *evaluator, const struct model_group *group,
                                        const double *inputs) {
    size_t first, end;
    if (!evaluator_parts_named(evaluator, group, inputs, &first, &end))
        return NULL;
    if (evaluator->over == SIZE_MAX || end - first == 1)
        return &group->parts[first];
    return &group->parts[evaluator_segment(group, first, end, inputs[evaluator->over])];
}

bool evaluator_is_measured(const struct evaluator *evaluator, const struct model_part *part) {
    return evaluator->named_by == SIZE_MAX || strcmp(part->kind, "segment") == 0;
}

/* ---- Values */

/* The value of each term, without its estimate, for the inputs of a row. */
void evaluator_terms(const struct evaluator *evaluator, const double *inputs, double *ret_terms) {
    const struct evaluator_factor *factor = evaluator->factors;
    for (size_t t = 0; t < evaluator->model->term_count; t++) {
        double product = 1;
        for (size_t f = 0; f < evaluator->model->terms[t].factor_count; f++, factor++) {
            double value = inputs[factor->input];
            if (factor->is_level)
                value = isnan(value) ? NAN : value == factor->level;
            else if (factor->is_logarithm)
                value = log2(value);
            product *= factor->power == 1 ? value : formula_power(value, factor->power);
        }
        ret_terms[t] = product;
    }
}

/* The term whose product with its estimate is the greatest (the least, for a minimum), dropped terms left
 * out. *RET is the product; NaN if any is NaN. */
static size_t extreme_term(const struct evaluator *evaluator, const struct model_part *part,
                           const double *terms, double *ret) {
    double sign = evaluator->combine == EVALUATOR_MINIMUM ? -1 : 1;
    size_t extreme = 0;
    *ret = NAN;
    for (size_t t = 0; t < evaluator->model->term_count; t++) {
        double value = part->estimates[t].estimate * terms[t];
        if (part->estimates[t].dropped)
            continue;
        if (!isnan(*ret) && !isnan(value) && sign * value <= sign * *ret)
            continue;
        *ret = value;
        extreme = t;
        if (isnan(value))
            break;
    }
    return extreme;
}

static bool is_extreme(const struct evaluator *evaluator) {
    return evaluator->combine == EVALUATOR_MAXIMUM || evaluator->combine == EVALUATOR_MINIMUM;
}

/* The mean of a row from the values of its terms; dropped terms are ignored, whatever their value. */
static double mean_of(const struct evaluator *evaluator, const struct model_part *part, const double *terms) {
    double sum = 0;
    bool harmonic = evaluator->combine == EVALUATOR_HARMONIC;
    if (is_extreme(evaluator)) {
        extreme_term(evaluator, part, terms, &sum);
        return sum;
    }
    for (size_t t = 0; t < evaluator->model->term_count; t++) {
        double product = part->estimates[t].estimate * terms[t];
        if (!part->estimates[t].dropped)
            sum += harmonic ? 1 / product : product;
    }
    return harmonic ? 1 / sum : sum;
}

/* Mean and sigma of a row. -EDOM, and both NaN: the model is not defined there. */
int evaluator_row(const struct evaluator *evaluator, const struct model_group *group, const double *inputs,
                  double *ret_mean, double *ret_sigma) {
    double terms[MODEL_TERMS_MAX];
    const struct model_part *part = evaluator_part(evaluator, group, inputs);
    *ret_mean = *ret_sigma = NAN;
    if (!part || (evaluator->over != SIZE_MAX && isnan(inputs[evaluator->over])))
        return -EDOM;
    evaluator_terms(evaluator, inputs, terms);
    double mean = mean_of(evaluator, part, terms);
    if (!isfinite(mean))
        return -EDOM;
    *ret_mean = mean;
    *ret_sigma = noise_sigma(&part->noise, terms, evaluator->model->term_count);
    return 0;
}

void evaluator_gather(const struct evaluator *evaluator, const struct evaluator_column *columns, size_t row,
                      double *ret_inputs) {
    for (size_t i = 0; i < evaluator->input_count; i++)
        ret_inputs[i] =
            columns[i].numbers ? columns[i].numbers[row] : columns[i].values[columns[i].codes[row]];
}

/* Mean and sigma of COUNT rows; NaN where the model is not defined or the row has no group (UINT32_MAX).
 * GROUPS NULL: all rows are of the group OF. RET_SIGMA may be NULL. */
void evaluator_rows(const struct evaluator *evaluator, const struct model_group *of, const uint32_t *groups,
                    size_t count, const struct evaluator_column *columns, double *ret_mean,
                    double *ret_sigma) {
    cleanup_free double *inputs = xcalloc(evaluator->input_count + 1, sizeof *inputs);
    for (size_t row = 0; row < count; row++) {
        uint32_t group = groups ? groups[row] : 0;
        double sigma = NAN;
        ret_mean[row] = NAN;
        evaluator_gather(evaluator, columns, row, inputs);
        if (group != UINT32_MAX)
            evaluator_row(evaluator, &of[group], inputs, &ret_mean[row], &sigma);
        if (ret_sigma)
            ret_sigma[row] = sigma;
    }
}

/* The standard error of the mean of a row, by the delta method; NaN if the part has no covariance. */
double evaluator_standard_error(const struct evaluator *evaluator, const struct model_group *group,
                                const double *inputs) {
    double terms[MODEL_TERMS_MAX], mean, variance = 0;
    size_t count = evaluator->model->term_count;
    const struct model_part *part = evaluator_part(evaluator, group, inputs);
    if (!part || !part->covariance)
        return NAN;
    evaluator_terms(evaluator, inputs, terms);
    if (is_extreme(evaluator)) {
        size_t t = extreme_term(evaluator, part, terms, &mean);
        return isfinite(mean) ? fabs(terms[t]) * sqrt(part->covariance[t * (count + 1)]) : NAN;
    }
    mean = mean_of(evaluator, part, terms);
    for (size_t t = 0; t < count; t++) {
        double share = mean / (part->estimates[t].estimate * terms[t]);
        if (part->estimates[t].dropped)
            terms[t] = 0;
        else if (evaluator->combine == EVALUATOR_HARMONIC) /* d mean = (mean / (b z))^2 z db */
            terms[t] *= share * share;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; terms[i] != 0 && j < count; j++)
            variance += terms[j] == 0 ? 0 : terms[i] * part->covariance[i * count + j] * terms[j];
    return variance < 0 ? 0 : sqrt(variance); /* below zero only by rounding */
}

/* Mean, sigma, standard error and extrapolation of a row. -EDOM: the model is not defined there. */
int evaluator_predict(const struct evaluator *evaluator, const struct model_group *group,
                      const double *inputs, struct evaluator_value *ret) {
    *ret = (struct evaluator_value){.standard_error = NAN, .extrapolated_by = 1};
    int r = evaluator_row(evaluator, group, inputs, &ret->mean, &ret->sigma);
    if (r < 0)
        return r;
    ret->standard_error = evaluator_standard_error(evaluator, group, inputs);
    extrapolation_find(evaluator, group, inputs, ret);
    return 0;
}
