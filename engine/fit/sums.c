#include "engine/fit/sums.h"

#include <string.h>

/* The index in FORMULA of the term NAME; term_count if there is none. */
static size_t find_term(const struct formula *formula, const char *name) {
    size_t found = 0;
    while (found < formula->term_count && strcmp(formula->terms[found].name, name) != 0)
        found++;
    return found;
}

static bool is_sum(const struct model *model, const struct model_group *group,
                   const struct formula *formula) {
    bool is_one = strcmp(model->kind, "linear") == 0 && group->part_count == 1 &&
                  group->parts[0].noise.kind != MODEL_NOISE_MIXTURE;
    for (size_t t = 0; is_one && t < model->term_count; t++)
        is_one = find_term(formula, model->terms[t].name) < formula->term_count;
    return is_one;
}

static void add(size_t count, double factor, const double *values, double *sum) {
    for (size_t i = 0; factor != 0 && i < count; i++)
        sum[i] += factor * values[i];
}

/* Predicts rows from the terms' values that fit() got, without the evaluator, which gives the same result
 * more slowly. false: the model is not one sum of terms of FORMULA. */
bool sums_predict(const struct model *model, const struct model_group *group, const struct formula *formula,
                  const struct fit_rows *rows, double *mean, double *sigma) {
    const struct model_part *part = &group->parts[0];
    double least = part->noise.floor.sigma;
    if (!is_sum(model, group, formula))
        return false;
    for (size_t i = 0; i < rows->count; i++) {
        mean[i] = 0;
        sigma[i] = part->noise.kind == MODEL_NOISE_NONE ? NAN : part->noise.constant;
    }
    for (size_t t = 0; t < model->term_count; t++) {
        const double *values = rows->terms[find_term(formula, model->terms[t].name)];
        add(rows->count, part->estimates[t].estimate, values, mean); /* 0 where it was dropped */
        add(rows->count, part->noise.coefficients ? part->noise.coefficients[t] : 0, values, sigma);
    }
    for (size_t i = 0; i < rows->count; i++)
        sigma[i] = least > 0 ? fmax(sigma[i], least) : sigma[i] >= 0 ? sigma[i] : NAN; /* as noise_sigma() */
    return true;
}
