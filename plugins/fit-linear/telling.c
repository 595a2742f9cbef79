#include "plugins/fit-linear/telling.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Belsley, Kuh and Welsch (1980) call condition numbers from 30 on the sign of moderate to strong
 * collinearity. */
static const double collinear = 30;

void telling_value(struct telling *telling, const char *name, double value, int32_t response_power) {
    if (telling->value_count < TELLING_VALUES_MOST)
        telling->values[telling->value_count++] = (struct fit_value){name, value, response_power};
}

void telling_note(struct telling *telling, const char *format, ...) {
    if (telling->note_count == TELLING_NOTES_MOST)
        return;
    char *text = telling->notes[telling->note_count];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, TELLING_NOTE_SIZE, format, arguments);
    va_end(arguments);
    telling->note_pointers[telling->note_count++] = text;
}

/* ---- Of the least squares */

static void tell_values(const struct settled *settled, struct telling *telling) {
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
}

static void tell_notes(const struct fit *fit, const struct settled *settled, struct telling *telling) {
    const struct least_squares *result = &settled->result;
    if (settled->incomplete > 0)
        telling_note(telling, "%" PRIu64 " row%s left out: a value is empty or not finite",
                     settled->incomplete, settled->incomplete == 1 ? "" : "s");
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
            result->condition, fit->formula.terms[result->inflated_term].name, result->variance_inflation);
}

/* Factors first, then the terms that are more than one factor. Returns how many. */
static size_t make_domain(const struct fit *fit, uint32_t group, struct plugin_range *domain) {
    size_t count = 0;
    for (size_t i = 0; i < fit->formula.column_count; i++, count++) {
        domain[count].name = fit->formula.columns[i];
        moments_column_range(fit->moments, group, i, &domain[count].minimum, &domain[count].maximum);
    }
    size_t z = 1;
    for (size_t t = 0; t < fit->formula.term_count; t++) {
        const struct formula_term *term = &fit->formula.terms[t];
        if (term->factor_count == 0)
            continue;
        if (term->degree > 1) {
            domain[count].name = term->name;
            moments_range(fit->moments, group, z, &domain[count].minimum, &domain[count].maximum);
            count++;
        }
        z++;
    }
    return count;
}

/* ---- Writing */

static int write_fitted(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                        const struct settled *settled, const struct telling *telling) {
    const struct least_squares *result = &settled->result;
    struct plugin_range domain[FORMULA_FACTORS_MOST + FORMULA_TERMS_MOST];
    const struct fit_part part = {
        .size = sizeof part,
        .kind = "whole",
        .estimates = result->estimates,
        .covariance = result->has_covariance ? result->covariance : NULL,
        .values = telling->values,
        .value_count = telling->value_count,
        .domain = domain,
        .domain_count = make_domain(fit, group, domain),
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

static int write_skipped(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                         const struct settled *settled) {
    char text[LEAST_SQUARES_REASON_SIZE + 96];
    if (settled->incomplete > 0)
        snprintf(text, sizeof text, "%s (%" PRIu64 " row%s left out: a value is empty or not finite)",
                 settled->reason, settled->incomplete, settled->incomplete == 1 ? "" : "s");
    else
        snprintf(text, sizeof text, "%s", settled->reason);
    return writer->skipped(writer->context, group, moments_rows(fit->moments, group), text);
}

int telling_group(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                  const struct settled *settled, struct telling *telling) {
    if (!settled->fitted)
        return write_skipped(fit, writer, group, settled);
    telling->value_count = telling->note_count = 0;
    telling->noise = NULL;
    tell_values(settled, telling);
    tell_notes(fit, settled, telling);
    return write_fitted(fit, writer, group, settled, telling);
}

int telling_formula(const struct fit *fit, const struct fit_writer *writer) {
    const struct formula *formula = &fit->formula;
    struct plugin_term terms[FORMULA_TERMS_MOST];
    struct plugin_factor factors[FORMULA_TERMS_MOST][FORMULA_DEGREE_MOST];
    for (size_t t = 0; t < formula->term_count; t++) {
        const struct formula_term *term = &formula->terms[t];
        for (size_t f = 0; f < term->factor_count; f++)
            factors[t][f] = (struct plugin_factor){.name = formula->columns[term->factors[f].column],
                                                   .power = term->factors[f].power};
        terms[t] = (struct plugin_term){term->name, factors[t], term->factor_count};
    }
    const struct fit_formula written = {sizeof written, "linear", terms, formula->term_count, NULL};
    return writer->formula(writer->context, &written);
}
