#include "plugins/fit-linear/telling.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Belsley, Kuh and Welsch (1980) call condition numbers from 30 on the sign of moderate to strong
 * collinearity. */
static const double collinear = 30;

void telling_value(struct telling *telling, const char *name, double value, int32_t response_power) {
    if (telling->value_count < TELLING_VALUES_MAX)
        telling->values[telling->value_count++] = (struct fit_value){name, value, response_power};
}

void telling_note(struct telling *telling, const char *format, ...) {
    if (telling->note_count == TELLING_NOTES_MAX)
        return;
    char *text = telling->notes[telling->note_count];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, TELLING_NOTE_SIZE, format, arguments);
    va_end(arguments);
    telling->note_pointers[telling->note_count++] = text;
}

/* ---- Of the least squares */

static void tell_values(const struct fit *fit, const struct settled *settled, struct telling *telling) {
    const struct least_squares *result = &settled->result;
    telling_value(telling, "sigma", result->sigma, 1);
    telling_value(telling, "rss", result->rss, 2);
    telling_value(telling, "degrees_of_freedom", result->degrees, 0);
    telling_value(telling, "r2", result->r2, 0);
    telling_value(telling, "adjusted_r2", result->adjusted_r2, 0);
    telling_value(telling, "log_likelihood", result->log_likelihood, 0);
    telling_value(telling, "aic", result->aic, 0);
    telling_value(telling, "bic", result->bic, 0);
    telling_value(telling, "condition", result->condition, 0);
    telling_value(telling, "variance_inflation", result->variance_inflation, 0);
    telling_value(telling, "rows_left_out", (double)settled->incomplete, 0);
    if (linear_parameter(fit, PARAMETER_OUTLIERS) > 0)
        telling_value(telling, "outliers_deleted", (double)settled->outcome.deleted, 0);
    if (linear_parameter(fit, PARAMETER_ROBUST) != ROBUST_NONE) {
        telling_value(telling, "robust_iterations", settled->outcome.iterations, 0);
        telling_value(telling, "rows_weighted_down", (double)settled->outcome.weighted_down, 0);
    }
    if (settled->validation.folds > 0) {
        telling_value(telling, "folds", settled->validation.folds, 0);
        telling_value(telling, "cv_rmse", settled->validation.rmse, 1);
        telling_value(telling, "cv_relative", settled->validation.relative, 0);
    }
}

/* One note a round: what was dropped in it. Those after the most are counted. */
static void tell_path(const struct fit *fit, const struct settled *settled, struct telling *telling) {
    enum { ROUNDS_MAX = 8 };
    const struct selection_path *path = &settled->path;
    const char *measure = linear_parameter(fit, PARAMETER_SELECT) == SELECT_BIC ? "BIC" : "p";
    for (size_t i = 0; i < path->count;) {
        uint32_t round = path->steps[i].round;
        if (round == ROUNDS_MAX) {
            telling_note(telling, "selection: %u more rounds",
                         path->steps[path->count - 1].round + 1 - round);
            return;
        }
        char text[TELLING_NOTE_SIZE] = "";
        size_t length = 0;
        for (; i < path->count && path->steps[i].round == round; i++) {
            const struct selection_step *step = &path->steps[i];
            if (!step->dropped || length >= sizeof text)
                continue;
            int written = snprintf(text + length, sizeof text - length, "%s%s (%s %.3g)", length ? ", " : "",
                                   fit->formula.terms[step->worst].name, measure, step->p);
            length += written > 0 ? (size_t)written : 0;
        }
        if (settled->outcome.rounds > 1)
            telling_note(telling, "selection, round %u, %" PRIu64 " rows: %s%s", round + 1,
                         path->steps[i - 1].rows, length ? "dropped " : "nothing is dropped", text);
        else if (length)
            telling_note(telling, "selection dropped %s", text);
    }
}

static void tell_outcome(const struct fit *fit, const struct settled *settled, struct telling *telling) {
    const struct row_outcome *outcome = &settled->outcome;
    const char *what =
        linear_parameter(fit, PARAMETER_OUTLIERS) > 0 ? "deleting outliers" : "robust weighting";
    if (outcome->deleted > 0) {
        char text[TELLING_NOTE_SIZE] = "";
        size_t length = 0;
        for (uint64_t i = 0; i < outcome->deleted && i < ROW_FIT_PLACES_MAX && length < sizeof text; i++) {
            char place[128];
            int written =
                snprintf(text + length, sizeof text - length, "%s%s", i ? ", " : "",
                         fit->host->place(fit->host->context, outcome->places[i], place, sizeof place));
            length += written > 0 ? (size_t)written : 0;
        }
        telling_note(telling, "%" PRIu64 " outlier%s deleted: %s%s", outcome->deleted,
                     outcome->deleted == 1 ? "" : "s", text,
                     outcome->deleted > ROW_FIT_PLACES_MAX ? " and others" : "");
    }
    if (linear_parameter(fit, PARAMETER_ROBUST) != ROBUST_NONE)
        telling_note(telling, "robust: %" PRIu64 " row%s with less than half of the weight of the others",
                     outcome->weighted_down, outcome->weighted_down == 1 ? "" : "s");
    if (!outcome->settled)
        telling_note(telling, "%s did not come to an end: %s", what,
                     linear_parameter(fit, PARAMETER_OUTLIERS) > 0 ? "there are more after 100 rounds"
                                                                   : "not converged in 200 iterations");
}

static void tell_notes(const struct fit *fit, const struct settled *settled, struct telling *telling) {
    const struct least_squares *result = &settled->result;
    if (settled->incomplete > 0)
        telling_note(telling, "%" PRIu64 " row%s left out: a value is empty or not finite",
                     settled->incomplete, settled->incomplete == 1 ? "" : "s");
    tell_path(fit, settled, telling);
    tell_outcome(fit, settled, telling);
    if (settled->validation.reason[0] != '\0')
        telling_note(telling, "no cross-validated error: what one fold leaves cannot be fitted: %.400s",
                     settled->validation.reason);
    if (result->constant_response)
        telling_note(telling, "the response is constant: R2 is not defined");
    if (result->saturated)
        telling_note(telling, "as many rows as terms: no residuals, so no standard errors");
    else if (result->perfect)
        telling_note(telling, "the terms explain the response to its last digit: standard errors are zero, t "
                              "and p not defined");
    if (result->condition >= collinear)
        telling_note(
            telling, "collinear terms: condition number %.3g; %s, the worst, has a variance inflated by %.3g",
            result->condition, fit->expansion->terms[result->inflated_term].name, result->variance_inflation);
}

/* Factors first, then the products of more than one of them. Returns how many. */
static size_t make_domain(const struct fit *fit, const struct settled *settled, struct plugin_range *domain) {
    const struct formula *formula = &fit->formula;
    const struct sums_layout *layout = settled->layout;
    size_t count = 0;
    for (size_t i = 0; i < formula->column_count; i++) {
        size_t input = formula->column_inputs[i];
        domain[count++] = (struct plugin_range){formula->columns[i], settled->input_minimum[input],
                                                settled->input_maximum[input]};
    }
    for (size_t t = 0; t < fit->expansion->count; t++) {
        const struct expanded_term *term = &fit->expansion->terms[t];
        if (formula->terms[term->term].category_count > 0 || formula->products[term->product].degree < 2)
            continue;
        size_t a = 1;
        while (layout->term_of[a] != t)
            a++;
        domain[count++] = (struct plugin_range){term->name, settled->minimum[a], settled->maximum[a]};
    }
    return count;
}

/* ---- Writing */

static int write_fitted(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                        const struct settled *settled, const struct telling *telling) {
    const struct least_squares *result = &settled->result;
    struct plugin_range domain[FORMULA_COLUMNS_MAX + EXPANSION_TERMS_MAX];
    const struct fit_part part = {
        .size = sizeof part,
        .kind = "whole",
        .estimates = result->estimates,
        .covariance = result->has_covariance ? result->covariance : NULL,
        .values = telling->values,
        .value_count = telling->value_count,
        .domain = domain,
        .domain_count = make_domain(fit, settled, domain),
        .from = -INFINITY,
        .to = INFINITY,
        .noise = telling->noise,
    };
    const struct fit_group written = {
        .size = sizeof written,
        .code = group,
        .rows = result->rows,
        .parts = &part,
        .part_count = 1,
        .notes = telling->note_pointers,
        .note_count = telling->note_count,
    };
    return writer->group(writer->context, &written);
}

static int write_skipped(const struct fit_writer *writer, uint32_t group, const struct settled *settled) {
    char text[LEAST_SQUARES_REASON_SIZE + 96];
    if (settled->incomplete > 0)
        snprintf(text, sizeof text, "%s (%" PRIu64 " row%s left out: a value is empty or not finite)",
                 settled->reason, settled->incomplete, settled->incomplete == 1 ? "" : "s");
    else
        snprintf(text, sizeof text, "%s", settled->reason);
    return writer->skipped(writer->context, group, settled->rows, text);
}

int telling_group(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                  const struct settled *settled, const struct noise_told *noise, struct telling *telling) {
    if (!settled->fitted)
        return write_skipped(writer, group, settled);
    telling->value_count = telling->note_count = 0;
    telling->noise = noise->present ? &noise->noise : NULL;
    tell_values(fit, settled, telling);
    if (settled->validation.folds > 0 && noise->present)
        telling_value(telling, "cv_log_score", noise->log_score, 0);
    tell_notes(fit, settled, telling);
    if (noise->note[0])
        telling_note(telling, "%s", noise->note);
    return write_fitted(fit, writer, group, settled, telling);
}

/* Its factors into FACTORS. */
static void make_term(const struct fit *fit, const struct expanded_term *expanded,
                      struct plugin_factor *factors, struct plugin_term *ret) {
    const struct formula *formula = &fit->formula;
    const struct formula_term *term = &formula->terms[expanded->term];
    const struct formula_product *product = &formula->products[expanded->product];
    size_t count = 0;
    for (size_t c = 0; c < term->category_count; c++)
        factors[count++] = (struct plugin_factor){.name = formula->categories[term->categories[c]],
                                                  .power = 1,
                                                  .level = expansion_level(fit->expansion, expanded, c)};
    for (size_t f = 0; f < product->factor_count; f++) {
        const struct formula_input *input = &formula->inputs[product->factors[f].input];
        int power = product->factors[f].power;
        factors[count++] = (struct plugin_factor){.name = formula->columns[input->column],
                                                  .power = input->inverse ? -power : power,
                                                  .function = input->logarithm ? "log2" : NULL};
    }
    *ret = (struct plugin_term){expanded->name, factors, count};
}

int telling_formula(const struct fit *fit, const struct fit_writer *writer) {
    enum { FACTORS_MAX = FORMULA_DEGREE_MAX + FORMULA_CATEGORIES_MAX };
    struct plugin_term terms[EXPANSION_TERMS_MAX];
    struct plugin_factor *factors = calloc(EXPANSION_TERMS_MAX * FACTORS_MAX, sizeof *factors);
    if (!factors)
        return -ENOMEM;
    for (size_t t = 0; t < fit->expansion->count; t++)
        make_term(fit, &fit->expansion->terms[t], factors + t * FACTORS_MAX, &terms[t]);
    const struct fit_formula written = {sizeof written, "linear", terms, fit->expansion->count, NULL, NULL};
    int r = writer->formula(writer->context, &written);
    free(factors);
    return r;
}
