#include "engine/fit/result.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *copy(const char *text) {
    return text ? xstrdup(text) : NULL;
}

/* ---- Names of terms */

size_t formula_names_add(struct formula_names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], name) == 0)
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

/* ---- What the plugin says */

static struct result_part *add_part(struct result *result, const char *kind, const char *name, double from,
                                    double to) {
    result->parts = xrealloc(result->parts, (result->part_count + 1) * sizeof *result->parts);
    struct result_part *part = &result->parts[result->part_count++];
    *part = (struct result_part){.kind = xstrdup(kind), .name = copy(name), .from = from, .to = to};
    return part;
}

/* The part in hand; the whole where none was begun. */
static struct result_part *in_hand(struct result *result) {
    return result->part_count > 0 ? &result->parts[result->part_count - 1]
                                  : add_part(result, "whole", NULL, -INFINITY, INFINITY);
}

static void take_kind(void *context, const char *kind, const char *over, const char *named_by) {
    struct result *result = context;
    struct formula_names *names = result->names;
    if (!names->kind_is_set) {
        names->kind = xstrdup(kind);
        names->over = copy(over);
        names->named_by = copy(named_by);
        names->kind_is_set = true;
    } else if (strcmp(names->kind, kind) != 0) {
        result->problem = "it gives groups of different kinds";
    }
}

static void take_part(void *context, const char *kind, const char *name, double from, double to) {
    add_part(context, kind, name, from, to);
}

static void take_term(void *context, const char *name, const struct model_estimate *estimate) {
    struct result *result = context;
    struct result_part *part = in_hand(result);
    if (part->covariance || part->noise.coefficients)
        result->problem = "it gives a term behind the covariance or the noise of its part";
    if (!estimate->dropped && !isfinite(estimate->estimate))
        result->undefined = "an estimate is not a number, or beyond the range of a double";
    size_t index = formula_names_add(result->names, name);
    for (size_t i = 0; i < part->count; i++)
        if (part->terms[i] == index)
            result->problem = "it gives a term of a part twice";
    part->terms = xrealloc(part->terms, (part->count + 1) * sizeof *part->terms);
    part->estimates = xrealloc(part->estimates, (part->count + 1) * sizeof *part->estimates);
    part->terms[part->count] = index;
    part->estimates[part->count++] = *estimate;
}

static void take_covariance(void *context, const double *covariance) {
    struct result *result = context;
    struct result_part *part = in_hand(result);
    size_t count = part->count * part->count;
    free(part->covariance);
    part->covariance = covariance && count > 0 ? xmalloc(count * sizeof *covariance) : NULL;
    for (size_t i = 0; part->covariance && i < count; i++) {
        part->covariance[i] = covariance[i];
        if (!isfinite(covariance[i]) || (i % (part->count + 1) == 0 && covariance[i] < 0))
            result->undefined = "the estimates' covariance is not one, or beyond the range of a double";
    }
}

static void noise_clear(struct model_noise *noise) {
    free(noise->method), free(noise->coefficients), free(noise->components);
    *noise = (struct model_noise){0};
}

static void take_noise(void *context, const struct model_noise *noise) {
    struct result *result = context;
    struct result_part *part = in_hand(result);
    if ((unsigned)noise->kind > MODEL_NOISE_MIXTURE ||
        (noise->kind == MODEL_NOISE_MIXTURE && noise->component_count == 0))
        result->problem = "it gives a noise of no kind that there is";
    if (noise->coefficients && part->count == 0)
        result->problem = "it gives the noise of a part before its terms";
    noise_clear(&part->noise);
    part->noise = *noise;
    part->noise.method = copy(noise->method);
    part->noise.coefficients = NULL;
    part->noise.components = NULL;
    if (noise->coefficients && part->count > 0) {
        part->noise.coefficients = xcalloc(part->count, sizeof(double));
        memcpy(part->noise.coefficients, noise->coefficients, part->count * sizeof(double));
    }
    if (noise->component_count > 0) {
        part->noise.components = xcalloc(noise->component_count, sizeof *noise->components);
        memcpy(part->noise.components, noise->components, noise->component_count * sizeof *noise->components);
    }
}

static void take_value(void *context, bool of_group, const char *name, double value, const char *unit) {
    struct result *result = context;
    struct result_part *part = of_group ? NULL : in_hand(result);
    struct model_value **values = of_group ? &result->values : &part->values;
    size_t *count = of_group ? &result->value_count : &part->value_count;
    *values = xrealloc(*values, (*count + 1) * sizeof **values);
    (*values)[(*count)++] = (struct model_value){xstrdup(name), value, copy(unit)};
}

static void take_rows(void *context, uint64_t rows) {
    ((struct result *)context)->rows = rows;
}

static void take_note(void *context, const char *sentence) {
    struct result *result = context;
    xappend(&result->notes, &result->note_count, xstrdup(sentence));
}

static void take_table(void *context, const char *title, const char *const *columns, const char *const *units,
                       size_t column_count) {
    struct result *result = context;
    if (!result->tables)
        return;
    struct report_column *all = xcalloc(column_count + 1, sizeof *all);
    all[0] = (struct report_column){.name = "label", .label = ""};
    for (size_t i = 0; i < column_count; i++)
        all[i + 1] = (struct report_column){.name = columns[i], .unit = units ? units[i] : NULL, .digits = 6};
    result->table = report_table(result->tables, title, title, all, column_count + 1);
    result->table_columns = column_count;
    free(all);
}

static void take_table_row(void *context, const char *label, const double *numbers) {
    struct result *result = context;
    if (!result->table)
        return;
    report_cell_text(result->table, label);
    for (size_t i = 0; i < result->table_columns; i++)
        report_cell(result->table, numbers[i]);
}

void result_init(struct result *result, struct formula_names *names, struct report_section *tables,
                 struct fit_result *ret) {
    *result = (struct result){.names = names, .tables = tables};
    *ret = (struct fit_result){
        .size = sizeof *ret,
        .context = result,
        .kind = take_kind,
        .part = take_part,
        .term = take_term,
        .covariance = take_covariance,
        .noise = take_noise,
        .value = take_value,
        .rows = take_rows,
        .note = take_note,
        .table = take_table,
        .table_row = take_table_row,
    };
}

static void values_clear(struct model_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(values[i].name), free(values[i].unit);
    free(values);
}

void result_clear(struct result *result) {
    for (size_t i = 0; i < result->part_count; i++) {
        struct result_part *part = &result->parts[i];
        free(part->kind), free(part->name), free(part->terms), free(part->estimates), free(part->covariance);
        noise_clear(&part->noise);
        values_clear(part->values, part->value_count);
    }
    for (size_t i = 0; i < result->note_count; i++)
        free(result->notes[i]);
    values_clear(result->values, result->value_count);
    free(result->parts), free(result->notes);
    *result = (struct result){0};
}

/* ---- A group of the model */

static double degrees_of_freedom(const struct result_part *part, uint64_t rows) {
    size_t estimated = 0;
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, "degrees_of_freedom") == 0)
            return part->values[i].value;
    for (size_t i = 0; i < part->count; i++)
        estimated += !part->estimates[i].dropped && !part->estimates[i].at_bound;
    return (double)rows - (double)estimated;
}

static void test_estimate(struct model_estimate *estimate, double freedom) {
    if (isnan(estimate->t) && estimate->standard_error > 0 && freedom > 0)
        estimate->t = estimate->estimate / estimate->standard_error;
    if (isnan(estimate->p) && isfinite(estimate->t) && freedom > 0)
        estimate->p = distribution_student_two_sided(estimate->t, freedom);
}

static void finish_part(struct result_part *from, size_t term_count, uint64_t rows, struct model_part *to) {
    *to = (struct model_part){
        .kind = take_pointer(from->kind),
        .name = take_pointer(from->name),
        .from = from->from,
        .to = from->to,
        .estimates = xcalloc(term_count + 1, sizeof *to->estimates),
        .noise = from->noise,
        .values = take_pointer(from->values),
        .value_count = from->value_count,
    };
    double freedom = degrees_of_freedom(&(struct result_part){.values = to->values,
                                                              .value_count = to->value_count,
                                                              .estimates = from->estimates,
                                                              .count = from->count},
                                        rows);
    for (size_t t = 0; t < term_count; t++)
        to->estimates[t] =
            (struct model_estimate){.standard_error = NAN, .t = NAN, .p = NAN, .dropped = true};
    if (from->covariance)
        to->covariance = xcalloc(term_count * term_count, sizeof *to->covariance);
    double *coefficients = from->noise.coefficients ? xcalloc(term_count, sizeof *coefficients) : NULL;
    for (size_t i = 0; i < from->count; i++) {
        to->estimates[from->terms[i]] = from->estimates[i];
        test_estimate(&to->estimates[from->terms[i]], freedom);
        if (coefficients)
            coefficients[from->terms[i]] = from->noise.coefficients[i];
        for (size_t j = 0; from->covariance && j < from->count; j++)
            to->covariance[from->terms[i] * term_count + from->terms[j]] =
                from->covariance[i * from->count + j];
    }
    free(from->noise.coefficients);
    to->noise.coefficients = coefficients;
    from->noise = (struct model_noise){0};
    from->value_count = 0;
}

void result_finish(struct result *result, size_t term_count, struct model_group *group) {
    if (result->rows > 0)
        group->rows = result->rows;
    (void)in_hand(result);
    group->parts = xcalloc(result->part_count, sizeof *group->parts);
    group->part_count = result->part_count;
    for (size_t i = 0; i < result->part_count; i++)
        finish_part(&result->parts[i], term_count, group->rows, &group->parts[i]);
    group->values = take_pointer(result->values);
    group->value_count = result->value_count;
    group->notes = take_pointer(result->notes);
    group->note_count = result->note_count;
    result->value_count = result->note_count = 0;
    result_clear(result);
}

void result_widen(struct model_group *group, size_t from, size_t to) {
    for (size_t p = 0; from < to && p < group->part_count; p++) {
        struct model_part *part = &group->parts[p];
        part->estimates = xrealloc(part->estimates, to * sizeof *part->estimates);
        for (size_t t = from; t < to; t++)
            part->estimates[t] =
                (struct model_estimate){.standard_error = NAN, .t = NAN, .p = NAN, .dropped = true};
        if (part->noise.coefficients) {
            part->noise.coefficients = xrealloc(part->noise.coefficients, to * sizeof(double));
            memset(part->noise.coefficients + from, 0, (to - from) * sizeof(double));
        }
        double *wider = part->covariance ? xcalloc(to * to, sizeof *wider) : NULL;
        for (size_t i = 0; wider && i < from; i++)
            memcpy(wider + i * to, part->covariance + i * from, from * sizeof *wider);
        free(part->covariance);
        part->covariance = wider;
    }
}
