#include "engine/command-line/fit-print.h"

#include "engine/command-line/part-print.h"
#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/plugin/model-unit.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void fit_print_clear(struct fit_print *print) {
    for (size_t t = 0; t < print->term_count; t++) {
        free(print->names[t]);
        free(print->units[t]);
        free(print->products[t]);
    }
    free(print->names);
    free(print->units);
    free(print->products);
    free(print->response_unit);
    free(print->over);
    free(print->kind);
    *print = (struct fit_print){0};
}

int fit_print_init(struct fit_print *print, const struct fitting *fitting, const struct fit_formula *formula,
                   struct failure *failure) {
    *print = (struct fit_print){.fitting = fitting, .width = 4};
    print->names = xcalloc(formula->term_count + 1, sizeof *print->names);
    print->units = xcalloc(formula->term_count + 1, sizeof *print->units);
    print->products = xcalloc(formula->term_count + 1, sizeof *print->products);
    for (size_t t = 0; t < formula->term_count; t++) {
        print->term_count = t + 1;
        print->names[t] = strdup(formula->terms[t].name);
        if (!print->names[t] ||
            model_unit_of_estimate(fitting, formula->kind, &formula->terms[t], &print->units[t]) < 0 ||
            model_unit_of_product(fitting, &formula->terms[t], &print->products[t]) < 0)
            return failure_memory(failure);
        int width = (int)strlen(shown(print->names[t]).text);
        if (width > print->width)
            print->width = width;
    }
    if (model_unit_of_power(fitting, 1, &print->response_unit) < 0 ||
        (formula->over && !(print->over = strdup(formula->over))) || !(print->kind = strdup(formula->kind)))
        return failure_memory(failure);
    return 0;
}

/* ---- Pieces */

const char *fit_print_name(const struct fitting *fitting, uint32_t group,
                           char name[static FIT_PRINT_NAME_MAX]) {
    const struct fitting_options *options = fitting_options(fitting);
    size_t length = 0;
    snprintf(name, FIT_PRINT_NAME_MAX, "all rows");
    for (size_t j = 0; j < options->by_count && length < FIT_PRINT_NAME_MAX - 1; j++) {
        int written = snprintf(name + length, FIT_PRINT_NAME_MAX - length, "%s%s %s", j ? ", " : "",
                               options->by[j], fitting_label(fitting, group, j));
        length += written < 0 ? 0 : (size_t)written;
    }
    struct shown clean = shown(name);
    snprintf(name, FIT_PRINT_NAME_MAX, "%.*s", (int)(FIT_PRINT_NAME_MAX - 1), clean.text);
    return name;
}

const char *fit_print_count(uint64_t value, char buffer[static FIT_PRINT_COUNT_MAX]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
    char *at = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return buffer;
}

const char *fit_print_rows(uint64_t rows, char buffer[static FIT_PRINT_COUNT_MAX]) {
    fit_print_count(rows, buffer);
    size_t length = strlen(buffer); /* 26 at most */
    memcpy(buffer + length, rows == 1 ? " row" : " rows", rows == 1 ? 5 : 6);
    return buffer;
}

void fit_print_number(FILE *stream, int width, int digits, double value) {
    if (isnan(value))
        fprintf(stream, "%*s", width, "-");
    else
        fprintf(stream, "%*.*g", width, digits, value);
}

void fit_print_p(FILE *stream, double p) {
    if (p == 0)
        fprintf(stream, "%11s", "<1e-300");
    else
        fit_print_number(stream, 11, 3, p);
}

void fit_print_unit(FILE *stream, const char *unit) {
    fprintf(stream, "  %s\n", unit ? shown(unit).text : "-");
}

static bool find_value(const struct fit_value *values, size_t count, const char *name, double *ret) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(values[i].name, name) == 0) {
            *ret = values[i].value;
            return true;
        }
    return false;
}

static bool has_value(const struct fit_group *group, const char *name, double *ret) {
    return find_value(group->values, group->value_count, name, ret) ||
           (group->part_count == 1 &&
            find_value(group->parts[0].values, group->parts[0].value_count, name, ret));
}

double fit_print_value(const struct fit_group *group, const char *name) {
    double value = NAN;
    return has_value(group, name, &value) ? value : NAN;
}

size_t fit_print_parts(const struct fit_group *group) {
    size_t count = 0;
    for (size_t i = 0; i < group->part_count; i++)
        count += strcmp(group->parts[i].kind, group->parts[0].kind) == 0;
    return count;
}

/* A number of the response's unit, with it. */
static void print_measured(FILE *stream, const struct fit_print *print, int digits, double value) {
    fit_print_number(stream, 0, digits, value);
    fprintf(stream, "%s%s", print->response_unit ? " " : "",
            print->response_unit ? shown(print->response_unit).text : "");
}

/* ---- The head */

void fit_print_head(FILE *stream, const struct fit_print *print) {
    const struct fitting *fitting = print->fitting;
    const struct fitting_options *options = fitting_options(fitting);
    char count[FIT_PRINT_COUNT_MAX];
    fprintf(stream, "%s: %s =", fitting_plugin(fitting)->name, shown(options->response).text);
    for (size_t t = 0; t < print->term_count; t++)
        fprintf(stream, "%s%s", t ? " + " : " ", shown(print->names[t]).text);
    if (print->over)
        fprintf(stream, "; over %s", shown(print->over).text);
    for (size_t j = 0; j < options->by_count; j++)
        fprintf(stream, "%s%s", j ? ", " : "; by ", shown(options->by[j]).text);
    if (options->weights)
        fprintf(stream, "; weights %s", shown(options->weights).text);
    fprintf(stream, "\n%s from", fit_print_rows(fitting_rows(fitting), count));
    size_t inputs = table_input_count(fitting_table(fitting));
    for (size_t i = 0; i < inputs && i < 3; i++)
        fprintf(stream, "%s %s", i ? "," : "", shown(table_input(fitting_table(fitting), i)->path).text);
    if (inputs > 3)
        fprintf(stream, " and %zu more", inputs - 3);
    fprintf(stream, "; %s group%s\n", fit_print_count(fitting_group_count(fitting), count),
            fitting_group_count(fitting) == 1 ? "" : "s");
}

/* ---- Parts */

/* The unit of a factor or a term, "" for plain numbers and where it is not known. */
static const char *domain_unit(const struct fit_print *print, const char *name) {
    const char *unit = fitting_unit(print->fitting, name);
    for (size_t t = 0; !unit && t < print->term_count; t++)
        if (strcmp(print->names[t], name) == 0)
            unit = print->products[t];
    return unit && strcmp(unit, "1") != 0 ? unit : "";
}

static void print_domain(FILE *stream, const struct fit_print *print, const struct fit_part *part) {
    for (size_t i = 0; i < part->domain_count; i++) {
        const char *unit = domain_unit(print, part->domain[i].name);
        fprintf(stream, "%s%s %.6g to %.6g%s%s", i ? ", " : "  valid for ", shown(part->domain[i].name).text,
                part->domain[i].minimum, part->domain[i].maximum, unit[0] ? " " : "", shown(unit).text);
    }
    fprintf(stream, "%s", part->domain_count ? "\n" : "");
}

/* "  noise N-2, normal, by maximum-likelihood: sigma = 2.1e-06 + 3.2e-12 m*n*k" */
static void print_noise(FILE *stream, const struct fit_print *print, const struct plugin_noise *noise) {
    if (!noise)
        return;
    fprintf(stream, "  noise %s, %s", shown(noise->kind).text,
            noise->distribution ? shown(noise->distribution).text : "normal");
    if (noise->method)
        fprintf(stream, ", by %s", shown(noise->method).text);
    fprintf(stream, noise->components ? ": " : ": sigma = ");
    for (size_t i = 0; i < noise->component_count; i++)
        fprintf(stream, "%s%.3g %% at %+.4g with sigma %.4g", i ? ", " : "",
                100 * noise->components[i].weight, noise->components[i].mean, noise->components[i].sigma);
    if (!noise->components)
        fprintf(stream, "%.4g", noise->constant);
    for (size_t t = 0; noise->coefficients && t < print->term_count; t++)
        if (noise->coefficients[t] != 0)
            fprintf(stream, " %c %.4g %s", noise->coefficients[t] < 0 ? '-' : '+',
                    fabs(noise->coefficients[t]), shown(print->names[t]).text);
    if (print->response_unit && (noise->components || !noise->coefficients))
        fprintf(stream, " %s", shown(print->response_unit).text);
    fputc('\n', stream);
}

/* A term that was left out has no numbers. */
static void print_estimates(FILE *stream, const struct fit_print *print, const struct fit_part *part) {
    fprintf(stream, "  %-*s %14s %14s %10s %10s  unit\n", print->width, "term", "estimate", "standard error",
            "t", "p");
    for (size_t t = 0; t < print->term_count; t++) {
        const struct fit_estimate *estimate = &part->estimates[t];
        fprintf(stream, "  %-*s", print->width, shown(print->names[t]).text);
        fit_print_number(stream, 15, 7, estimate->dropped ? NAN : estimate->estimate);
        fit_print_number(stream, 15, 4, estimate->standard_error);
        fit_print_number(stream, 11, 4, estimate->t);
        fit_print_p(stream, estimate->p);
        fit_print_unit(stream, print->units[t]);
    }
}

/* What the parts of a group are made of while they are shown. */
struct told_parts {
    struct told_part *parts;
    struct predict_value *values; /* of all parts */
    double *numbers;              /* estimates and standard errors of all parts */
    bool *dropped;
};

static void told_parts_clear(struct told_parts *told) {
    free(told->parts);
    free(told->values);
    free(told->numbers);
    free(told->dropped);
}

/* Part I, of which the values begin at VALUES. */
static void tell_part(const struct fit_print *print, const struct fit_part *part, size_t i,
                      struct predict_value *values, struct told_parts *ret) {
    size_t terms = print->term_count;
    double *estimates = ret->numbers + 2 * i * terms, *errors = estimates + terms;
    bool *dropped = ret->dropped + i * terms;
    for (size_t t = 0; t < terms; t++) {
        estimates[t] = part->estimates[t].estimate;
        errors[t] = part->estimates[t].standard_error;
        dropped[t] = part->estimates[t].dropped;
    }
    for (size_t v = 0; v < part->value_count; v++)
        values[v] = (struct predict_value){part->values[v].name, part->values[v].value};
    ret->parts[i] = (struct told_part){{.kind = part->kind,
                                        .name = part->name,
                                        .from = part->from,
                                        .to = part->to,
                                        .estimates = estimates,
                                        .noise = part->noise,
                                        .values = values,
                                        .value_count = part->value_count,
                                        .domain = part->domain,
                                        .domain_count = part->domain_count,
                                        .dropped = dropped,
                                        .covariance = part->covariance},
                                       errors};
}

/* 0 or -ENOMEM. */
static int tell_parts(const struct fit_print *print, const struct fit_group *group, struct told_parts *ret) {
    size_t count = group->part_count, values = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        values += group->parts[i].value_count;
    *ret = (struct told_parts){
        .parts = calloc(count, sizeof *ret->parts),
        .values = calloc(values + 1, sizeof *ret->values),
        .numbers = calloc(2 * count * print->term_count + 1, sizeof *ret->numbers),
        .dropped = calloc(count * print->term_count + 1, sizeof *ret->dropped),
    };
    if (!ret->parts || !ret->values || !ret->numbers || !ret->dropped)
        return -ENOMEM;
    for (size_t i = 0; i < count; at += group->parts[i++].value_count)
        tell_part(print, &group->parts[i], i, ret->values + at, ret);
    return 0;
}

static void print_parts(FILE *stream, const struct fit_print *print, const struct fit_group *group) {
    cleanup(told_parts_clear) struct told_parts told = {0};
    const struct part_heads heads = {
        .plugin = fitting_plugin(print->fitting)->name,
        .names = (const char *const *)print->names,
        .units = (const char *const *)print->units,
        .term_count = print->term_count,
        .response_unit = print->response_unit,
        .over = print->over,
        .over_unit = print->over ? fitting_unit(print->fitting, print->over) : NULL,
        .width = print->width,
    };
    if (tell_parts(print, group, &told) < 0)
        fprintf(stream, "  out of memory: not shown\n");
    else if (group->part_count == 1)
        part_print_own(stream, &heads, &told.parts[0].part);
    else if (strcmp(print->kind, "population") == 0)
        part_print_population(stream, &heads, told.parts, group->part_count);
    else
        part_print_tables(stream, &heads, told.parts, group->part_count);
}

/* ---- Groups */

static void print_quality(FILE *stream, const struct fit_print *print, const struct fit_group *group) {
    static const struct {
        const char *name, *label;
        int digits;
        bool measured;
    } values[] = {{"r2", "R2", 6, false},
                  {"sigma", "sigma", 4, true},
                  {"components", "components", 6, false},
                  {"log_likelihood", "log-likelihood", 8, false},
                  {"aic", "AIC", 6, false},
                  {"bic", "BIC", 6, false}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double value;
        if (!has_value(group, values[i].name, &value))
            continue;
        /* Of a mixture, where nothing else says how well it fits. */
        if (strcmp(values[i].name, "log_likelihood") == 0 && isnan(fit_print_value(group, "components")))
            continue;
        fprintf(stream, ", %s ", values[i].label);
        if (values[i].measured)
            print_measured(stream, print, values[i].digits, value);
        else
            fit_print_number(stream, 0, values[i].digits, value);
    }
    size_t parts = fit_print_parts(group);
    if (group->part_count > 1)
        fprintf(stream, ", %zu %s%s", parts,
                strcmp(print->kind, "population") == 0 ? "population" : shown(group->parts[0].kind).text,
                parts == 1 ? "" : "s");
    fputc('\n', stream);
}

void fit_print_fold_units(FILE *stream, const struct fitting *fitting) {
    enum folds_unit by = fitting_folds_by(fitting);
    if (by != FOLDS_BY_COLUMNS)
        fprintf(stream, "%s", by == FOLDS_BY_SETTING ? "settings" : "rows");
    for (size_t i = 0; by == FOLDS_BY_COLUMNS && i < fitting_fold_column_count(fitting); i++)
        fprintf(stream, "%s%s", i ? ", " : "values of ", shown(fitting_fold_column(fitting, i)).text);
}

static void print_cross_validated(FILE *stream, const struct fit_print *print,
                                  const struct fit_group *group) {
    double rmse = fit_print_value(group, "cv_rmse"), score = fit_print_value(group, "cv_log_score");
    double folds = fit_print_value(group, "folds");
    if (!isfinite(rmse)) {
        if (!isnan(folds) && fitting_folds_by(print->fitting) == FOLDS_BY_SETTING)
            fprintf(stream, "  on settings left out: not defined; --folds-by row tells of single rows\n");
        return;
    }
    fprintf(stream, "  on ");
    fit_print_fold_units(stream, print->fitting);
    fprintf(stream, " left out");
    if (!isnan(folds))
        fprintf(stream, " (%g folds)", folds);
    fprintf(stream, ": error ");
    print_measured(stream, print, 4, rmse);
    double relative = fit_print_value(group, "cv_relative");
    if (isfinite(relative))
        fprintf(stream, ", %.3g %% of the mean", 100 * relative);
    if (isfinite(score))
        fprintf(stream, ", log score %.6g", score);
    fputc('\n', stream);
}

void fit_print_group(FILE *stream, const struct fit_print *print, const struct fit_group *group) {
    char name[FIT_PRINT_NAME_MAX], count[FIT_PRINT_COUNT_MAX];
    fprintf(stream, "\n%s: %s", fit_print_name(print->fitting, group->code, name),
            fit_print_rows(group->rows, count));
    print_quality(stream, print, group);
    print_cross_validated(stream, print, group);
    if (group->part_count == 1) {
        print_estimates(stream, print, &group->parts[0]);
        print_parts(stream, print, group);
        print_noise(stream, print, group->parts[0].noise);
        print_domain(stream, print, &group->parts[0]);
    } else if (group->part_count > 1) {
        print_parts(stream, print, group);
    }
    for (size_t i = 0; i < group->note_count; i++)
        fprintf(stream, "  note: %s\n", shown(group->notes[i]).text);
}
