#include "engine/fit/result.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/model.h"
#include "engine/numerics/distribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names of terms */

static size_t formula_names_add(struct formula_names *names, const char *name) {
    size_t i = text_find(name, (const char *const *)names->names, names->count);
    if (i < names->count)
        return i;
    names->names = xrealloc(names->names, (names->count + 1) * sizeof *names->names);
    names->names[names->count] = xstrdup(name);
    return names->count++;
}

void formula_names_clear(struct formula_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names), free(names->kind), free(names->over), free(names->named_by);
    *names = (struct formula_names){0};
}

/* ---- Functions that the plugin calls with its results */

static struct result_part *add_part(struct result *result, const char *kind, const char *name, double from,
                                    double to) {
    result->parts = xrealloc(result->parts, (result->part_count + 1) * sizeof *result->parts);
    struct result_part *part = &result->parts[result->part_count++];
    *part = (struct result_part){
        .part = {.kind = xstrdup(kind), .name = xstrdup_or_null(name), .from = from, .to = to}};
    return part;
}

/* The part that the plugin gives results of; the whole domain if it began none. */
static struct result_part *current_part(struct result *result) {
    return result->part_count > 0 ? &result->parts[result->part_count - 1]
                                  : add_part(result, "whole", NULL, -INFINITY, INFINITY);
}

/* Records the kind of model; a second group with another kind is a problem of the plugin. */
static void record_kind(void *context, const char *kind, const char *over, const char *named_by) {
    struct result *result = context;
    struct formula_names *names = result->names;
    if (!names->kind_is_set) {
        names->kind = xstrdup(kind);
        names->over = xstrdup_or_null(over);
        names->named_by = xstrdup_or_null(named_by);
        names->kind_is_set = true;
    } else if (strcmp(names->kind, kind) != 0) {
        result->problem = "the plugin gave groups of different kinds; expected one kind";
    }
}

static void record_part(void *context, const char *kind, const char *name, double from, double to) {
    add_part(context, kind, name, from, to);
}

/* Records an estimate of the term NAME for the current part. Sets `problem` for a plugin that breaks the
 * order of calls, `undefined` for an estimate that is not finite. */
static void record_term(void *context, const char *name, const struct model_estimate *estimate) {
    struct result *result = context;
    struct result_part *part = current_part(result);
    if (part->part.covariance || part->part.noise.coefficients)
        result->problem = "the plugin gave a term after the covariance or the noise of its part; "
                          "expected terms first";
    if (!estimate->dropped && !isfinite(estimate->estimate))
        result->undefined = "an estimate is not a number, or beyond the range of a double";
    size_t index = formula_names_add(result->names, name);
    for (size_t i = 0; i < part->count; i++)
        if (part->terms[i] == index)
            result->problem = "the plugin gave the same term of a part twice";
    part->terms = xrealloc(part->terms, (part->count + 1) * sizeof *part->terms);
    part->part.estimates = xrealloc(part->part.estimates, (part->count + 1) * sizeof *part->part.estimates);
    part->terms[part->count] = index;
    part->part.estimates[part->count++] = *estimate;
}

/* Copies the covariance of the part's estimates. Sets `undefined` if it is not finite or has a negative
 * variance. */
static void record_covariance(void *context, const double *covariance) {
    struct result *result = context;
    struct result_part *part = current_part(result);
    size_t count = part->count * part->count;
    free(part->part.covariance);
    part->part.covariance = covariance && count > 0 ? xmalloc(count * sizeof *covariance) : NULL;
    for (size_t i = 0; part->part.covariance && i < count; i++) {
        part->part.covariance[i] = covariance[i];
        if (!isfinite(covariance[i]) || (i % (part->count + 1) == 0 && covariance[i] < 0))
            result->undefined = "the covariance of the estimates is not positive semidefinite, or beyond the "
                                "range of a double";
    }
}

static void record_freedom(void *context, double freedom) {
    current_part(context)->part.freedom = freedom;
}

static double *copy_square(const double *square, size_t count) {
    double *ret = square && count > 0 ? xmalloc(count * count * sizeof *ret) : NULL;
    if (ret)
        memcpy(ret, square, count * count * sizeof *ret);
    return ret;
}

/* Copies the noise of the current part. Sets `problem` for an unknown kind, or coefficients before terms. */
static void record_noise(void *context, const struct model_noise *noise) {
    struct result *result = context;
    struct result_part *part = current_part(result);
    if ((unsigned)noise->kind > MODEL_NOISE_MIXTURE ||
        (noise->kind == MODEL_NOISE_MIXTURE && noise->component_count == 0))
        result->problem = "the plugin gave a noise of an unknown kind, or a mixture without "
                          "components";
    if (noise->coefficients && part->count == 0)
        result->problem = "the plugin gave the noise of a part before the terms of the part";
    model_noise_clear(&part->part.noise);
    part->part.noise = *noise;
    part->part.noise.method = xstrdup_or_null(noise->method);
    part->part.noise.coefficients = NULL;
    part->part.noise.components = NULL;
    part->part.noise.floor.covariance = copy_square(noise->floor.covariance, part->count);
    if (noise->coefficients && part->count > 0) {
        part->part.noise.coefficients = xcalloc(part->count, sizeof(double));
        memcpy(part->part.noise.coefficients, noise->coefficients, part->count * sizeof(double));
    }
    if (noise->component_count > 0) {
        part->part.noise.components = xcalloc(noise->component_count, sizeof *noise->components);
        memcpy(part->part.noise.components, noise->components,
               noise->component_count * sizeof *noise->components);
    }
}

/* Records a named value of the current part, or of the group. */
static void record_value(void *context, bool of_group, const char *name, double value, const char *unit) {
    struct result *result = context;
    struct result_part *part = of_group ? NULL : current_part(result);
    struct model_value **values = of_group ? &result->values : &part->part.values;
    size_t *count = of_group ? &result->value_count : &part->part.value_count;
    *values = xrealloc(*values, (*count + 1) * sizeof **values);
    (*values)[(*count)++] = (struct model_value){xstrdup(name), value, xstrdup_or_null(unit)};
}

static void record_rows(void *context, uint64_t rows) {
    ((struct result *)context)->rows = rows;
}

static void record_outliers(void *context, const bool *is_outlier) {
    struct result *result = context;
    free(result->outliers);
    result->outliers = xcalloc(result->given_rows + 1, sizeof *result->outliers);
    memcpy(result->outliers, is_outlier, result->given_rows * sizeof *is_outlier);
}

static void record_note_of_fit(void *context, const char *sentence) {
    struct result *result = context;
    xappend(&result->notes, &result->note_count, xstrdup(sentence));
}

/* Begins a table of the plugin in the report; nothing if the caller wants no tables (a fold). */
static void record_table(void *context, const char *title, const char *const *columns,
                         const char *const *units, size_t column_count) {
    struct result *result = context;
    if (!result->tables)
        return;
    struct column *all = xcalloc(column_count + 1, sizeof *all);
    all[0] = (struct column){.name = "label", .label = ""};
    for (size_t i = 0; i < column_count; i++)
        all[i + 1] = (struct column){.name = columns[i], .unit = units ? units[i] : NULL, .digits = 6};
    result->table = report_table(result->tables, title, title, all, column_count + 1);
    result->table_columns = column_count;
    free(all);
}

static void record_table_row(void *context, const char *label, const double *numbers) {
    struct result *result = context;
    if (!result->table)
        return;
    report_cell_text(result->table, label);
    for (size_t i = 0; i < result->table_columns; i++)
        report_cell(result->table, numbers[i]);
}

/* Prepares RESULT for one call of fit(), and RET, whose functions the plugin calls, to fill it. */
void result_init(struct result *result, size_t rows, struct formula_names *names,
                 struct report_section *tables, struct fit_result *ret) {
    *result = (struct result){.given_rows = rows, .names = names, .tables = tables};
    *ret = (struct fit_result){
        .size = sizeof *ret,
        .context = result,
        .kind = record_kind,
        .part = record_part,
        .term = record_term,
        .covariance = record_covariance,
        .noise = record_noise,
        .value = record_value,
        .rows = record_rows,
        .note = record_note_of_fit,
        .table = record_table,
        .table_row = record_table_row,
        .freedom = record_freedom,
        .outliers = record_outliers,
    };
}

static void values_clear(struct model_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(values[i].name), free(values[i].unit);
    free(values);
}

void result_clear(struct result *result) {
    for (size_t i = 0; i < result->part_count; i++) {
        model_part_clear(&result->parts[i].part);
        free(result->parts[i].terms);
    }
    for (size_t i = 0; i < result->note_count; i++)
        free(result->notes[i]);
    values_clear(result->values, result->value_count);
    free(result->parts), free(result->notes), free(result->outliers);
    *result = (struct result){0};
}

/* ---- A group of the model */

/* Degrees of freedom of a part: those that the plugin gave, or rows less estimated terms. */
static double degrees_of_freedom(const struct result_part *part, uint64_t rows) {
    const struct model_value *known =
        model_value_find(part->part.values, part->part.value_count, "degrees_of_freedom");
    size_t estimated = 0;
    for (size_t i = 0; i < part->count; i++)
        estimated += !part->part.estimates[i].dropped && !part->part.estimates[i].at_bound;
    return part->part.freedom > 0 ? part->part.freedom
           : known                ? known->value
                                  : (double)rows - (double)estimated;
}

static void test_estimate(struct model_estimate *estimate, double freedom) {
    if (isnan(estimate->t) && estimate->standard_error > 0 && freedom > 0)
        estimate->t = estimate->estimate / estimate->standard_error;
    if (isnan(estimate->p) && isfinite(estimate->t) && freedom > 0)
        estimate->p = distribution_student_two_sided(estimate->t, freedom);
}

/* Widens the estimates and matrices of PART from its COUNT terms to all TERM_COUNT terms; other terms are
 * marked as dropped. TERMS[i] is the term of estimate i; NULL: term i. */
static void widen_part(struct model_part *part, const size_t *terms, size_t count, size_t term_count) {
    struct model_estimate *estimates = xcalloc(term_count + 1, sizeof *estimates);
    double *covariance = part->covariance ? xcalloc(term_count * term_count, sizeof *covariance) : NULL;
    double *coefficients = part->noise.coefficients ? xcalloc(term_count, sizeof *coefficients) : NULL;
    double *floor = part->noise.floor.covariance ? xcalloc(term_count * term_count, sizeof *floor) : NULL;
    for (size_t t = 0; t < term_count; t++)
        estimates[t] = (struct model_estimate){.standard_error = NAN, .t = NAN, .p = NAN, .dropped = true};
    for (size_t i = 0; i < count; i++) {
        size_t at = terms ? terms[i] : i;
        estimates[at] = part->estimates[i];
        if (coefficients)
            coefficients[at] = part->noise.coefficients[i];
        for (size_t j = 0; covariance && j < count; j++)
            covariance[at * term_count + (terms ? terms[j] : j)] = part->covariance[i * count + j];
        for (size_t j = 0; floor && j < count; j++)
            floor[at * term_count + (terms ? terms[j] : j)] = part->noise.floor.covariance[i * count + j];
    }
    free(part->estimates), free(part->covariance), free(part->noise.coefficients);
    free(part->noise.floor.covariance);
    part->estimates = estimates;
    part->covariance = covariance;
    part->noise.coefficients = coefficients;
    part->noise.floor.covariance = floor;
}

/* Moves the results into GROUP, with t tests and degrees of freedom, over all TERM_COUNT terms of the model;
 * RESULT is empty afterwards. */
void result_finish(struct result *result, size_t term_count, struct model_group *group) {
    if (result->rows > 0)
        group->rows = result->rows;
    (void)current_part(result);
    group->parts = xcalloc(result->part_count, sizeof *group->parts);
    group->part_count = result->part_count;
    for (size_t i = 0; i < result->part_count; i++) {
        struct result_part *part = &result->parts[i];
        double freedom = degrees_of_freedom(part, group->rows);
        for (size_t k = 0; k < part->count; k++)
            test_estimate(&part->part.estimates[k], freedom);
        part->part.freedom = freedom > 0 && isfinite(freedom) ? freedom : 0;
        widen_part(&part->part, part->terms, part->count, term_count);
        group->parts[i] = part->part;
        part->part = (struct model_part){0};
    }
    group->values = take_pointer(result->values);
    group->value_count = result->value_count;
    group->notes = take_pointer(result->notes);
    group->note_count = result->note_count;
    result->value_count = result->note_count = 0;
    result_clear(result);
}

void result_widen(struct model_group *group, size_t from, size_t to) {
    for (size_t p = 0; from < to && p < group->part_count; p++)
        widen_part(&group->parts[p], NULL, from, to);
}
