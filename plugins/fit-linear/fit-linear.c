/* The plugin fit-linear: see README.md for what it computes. */
#include "plugins/fit-linear/formula.h"
#include "plugins/fit-linear/least-squares.h"
#include "plugins/fit-linear/moments.h"
#include "plugins/interface/fit.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEEDS_MOST = FORMULA_FACTORS_MOST + 2,
    NOTES_MOST = 5,
    NOTE_SIZE = 512,
};

/* Belsley, Kuh and Welsch (1980) call condition numbers from 30 on the sign of moderate to strong
 * collinearity. */
static const double collinear = 30;

struct fit {
    const struct fit_request *request;
    struct formula formula;
    struct moments *moments;
    const char *needs[NEEDS_MOST];
    size_t need_count;
    size_t input_need[NEEDS_MOST]; /* which need each input of the moments is: the same column may be two of
                                      them */
    size_t input_count;
    uint64_t rows;
};

/* ---- Beginning */

static void add_input(struct fit *fit, const char *column) {
    size_t need = 0;
    while (need < fit->need_count && strcmp(fit->needs[need], column) != 0)
        need++;
    if (need == fit->need_count)
        fit->needs[fit->need_count++] = column;
    fit->input_need[fit->input_count++] = need;
}

static int linear_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                       struct fit_needs *ret_needs, struct plugin_message *message) {
    /* GSL's default is to abort; what is asked of it here cannot fail but for memory, which is checked. */
    gsl_set_error_handler_off();
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->request = request;
    int r = formula_read(host, request, &fit->formula, message);
    r = r < 0 ? r : moments_new(&fit->formula, request->weights != NULL, MOMENTS_BEST, &fit->moments);
    if (r < 0) {
        formula_clear(&fit->formula);
        free(fit);
        return r;
    }
    for (size_t i = 0; i < fit->formula.column_count; i++)
        add_input(fit, fit->formula.columns[i]);
    add_input(fit, request->response);
    if (request->weights)
        add_input(fit, request->weights);
    *ret = fit;
    *ret_needs =
        (struct fit_needs){.size = sizeof *ret_needs, .columns = fit->needs, .column_count = fit->need_count};
    return 0;
}

static void linear_close(struct fit *fit) {
    if (!fit)
        return;
    formula_clear(&fit->formula);
    moments_free(fit->moments);
    free(fit);
}

/* ---- Rows */

static int linear_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    const double *columns[NEEDS_MOST];
    for (size_t i = 0; i < fit->input_count; i++)
        columns[i] = block->columns[fit->input_need[i]];
    size_t row;
    int r = moments_add(fit->moments, block->rows, columns, block->groups, block->group_count, &row);
    if (r == -ERANGE) {
        snprintf(message->text, sizeof message->text,
                 "the weight '%s' of data row %" PRIu64 " is %g; expected 0 or more", fit->request->weights,
                 block->first_row + row + 1, columns[fit->input_count - 1][row]);
        return -EINVAL;
    }
    fit->rows += block->rows;
    return r;
}

static int linear_end_of_pass(struct fit *fit, struct plugin_message *message) {
    if (fit->rows > 0)
        return FIT_DONE;
    snprintf(message->text, sizeof message->text, "there are no rows to fit");
    return -EINVAL;
}

/* ---- Results */

struct notes {
    char texts[NOTES_MOST][NOTE_SIZE];
    const char *pointers[NOTES_MOST];
    size_t count;
};

static char *add_note(struct notes *notes) {
    char *text = notes->texts[notes->count];
    notes->pointers[notes->count++] = text;
    return text;
}

static void make_notes(const struct fit *fit, const struct least_squares *result, uint64_t incomplete,
                       struct notes *notes) {
    notes->count = 0;
    if (incomplete > 0)
        snprintf(add_note(notes), NOTE_SIZE, "%" PRIu64 " row%s left out: a value is empty or not finite",
                 incomplete, incomplete == 1 ? "" : "s");
    if (result->constant_response)
        snprintf(add_note(notes), NOTE_SIZE, "the response is constant: R2 is not defined");
    if (result->saturated)
        snprintf(add_note(notes), NOTE_SIZE, "as many rows as terms: no residuals, so no standard errors");
    else if (result->perfect)
        snprintf(add_note(notes), NOTE_SIZE,
                 "the terms explain the response to its last digit: standard errors are zero, t and p not "
                 "defined");
    if (result->condition >= collinear)
        snprintf(add_note(notes), NOTE_SIZE,
                 "collinear terms: condition number %.3g; %s, the worst, has a variance inflated by %.3g",
                 result->condition, fit->formula.terms[result->inflated_term].name,
                 result->variance_inflation);
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

static int write_group(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                       const struct least_squares *result) {
    uint64_t incomplete = moments_incomplete(fit->moments, group);
    const struct fit_value values[] = {
        {"sigma", result->sigma, 1},
        {"rss", result->rss, 2},
        {"degrees_of_freedom", result->degrees, 0},
        {"r2", result->r2, 0},
        {"adjusted_r2", result->adjusted_r2, 0},
        {"log_likelihood", result->log_likelihood, 0},
        {"aic", result->aic, 0},
        {"bic", result->bic, 0},
        {"condition", result->condition, 0},
        {"variance_inflation", result->variance_inflation, 0},
        {"rows_left_out", (double)incomplete, 0},
    };
    struct plugin_range domain[FORMULA_FACTORS_MOST + FORMULA_TERMS_MOST];
    struct notes notes;
    make_notes(fit, result, incomplete, &notes);
    const struct fit_part part = {
        .size = sizeof part,
        .kind = "whole",
        .estimates = result->estimates,
        .covariance = result->has_covariance ? result->covariance : NULL,
        .values = values,
        .value_count = sizeof values / sizeof *values,
        .domain = domain,
        .domain_count = make_domain(fit, group, domain),
    };
    const struct fit_group written = {
        .size = sizeof written,
        .code = group,
        .rows = result->rows,
        .parts = &part,
        .part_count = 1,
        .notes = notes.pointers,
        .note_count = notes.count,
    };
    return writer->group(writer->context, &written);
}

static int write_skipped(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                         const char *reason) {
    uint64_t incomplete = moments_incomplete(fit->moments, group);
    char text[LEAST_SQUARES_REASON_SIZE + 96];
    if (incomplete > 0)
        snprintf(text, sizeof text, "%s (%" PRIu64 " row%s left out: a value is empty or not finite)", reason,
                 incomplete, incomplete == 1 ? "" : "s");
    else
        snprintf(text, sizeof text, "%s", reason);
    return writer->skipped(writer->context, group, moments_rows(fit->moments, group), text);
}

static int write_formula(const struct fit *fit, const struct fit_writer *writer) {
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

static int linear_finish(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    struct least_squares_workspace *workspace = least_squares_workspace_new(fit->formula.term_count);
    struct least_squares *result = malloc(sizeof *result);
    int r = workspace && result ? write_formula(fit, writer) : -ENOMEM;
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++) {
        uint32_t group = writer->order[i];
        char reason[LEAST_SQUARES_REASON_SIZE];
        if (least_squares_fit(&fit->formula, fit->moments, group, fit->request->weights != NULL, workspace,
                              result, reason) == LEAST_SQUARES_FITTED)
            r = write_group(fit, writer, group, result);
        else
            r = write_skipped(fit, writer, group, reason);
    }
    least_squares_workspace_free(workspace);
    free(result);
    return r;
}

static const struct fit_operations operations = {
    .size = sizeof operations,
    .open = linear_open,
    .block = linear_block,
    .end_of_pass = linear_end_of_pass,
    .finish = linear_finish,
    .close = linear_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-linear",
    .version = ASSAY_VERSION,
    .summary = "least squares on polynomial terms, group by group",
    .operations = &operations,
};
