#include "engine/model/write.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/model/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_BYTES = 1 << 16 };

struct writing {
    const struct model *model;
    struct text *text;
    struct file_output *output; /* gets the text when it is long; NULL: all stays in the text */
    struct failure *failure;
    const struct model_value **values; /* the first value of each name, in the order of the file */
    size_t value_count;
};

/* ---- JSON by hand: a line a group, whatever is in it */

__attribute__((format(printf, 2, 3))) static void put(struct writing *writing, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(writing->text, format, arguments);
    va_end(arguments);
}

static void put_text(struct writing *writing, const char *text) {
    if (text)
        json_append_string(writing->text, text, strlen(text));
    else
        put(writing, "null");
}

static void put_number(struct writing *writing, double value) {
    char digits[NUMBER_TEXT_SIZE] = "null";
    if (isfinite(value))
        number_format_double(value, digits);
    text_append_string(writing->text, digits);
}

static void put_key(struct writing *writing, const char *before, const char *key) {
    put(writing, "%s", before);
    put_text(writing, key);
    put(writing, ": ");
}

static void put_member(struct writing *writing, const char *before, const char *key, const char *value) {
    put_key(writing, before, key);
    put_text(writing, value);
}

/* Writes a text member, unless VALUE is NULL. */
static void put_some(struct writing *writing, const char *before, const char *key, const char *value) {
    if (value)
        put_member(writing, before, key, value);
}

static void put_texts(struct writing *writing, char *const *texts, size_t count) {
    put(writing, "[");
    for (size_t i = 0; i < count; i++) {
        put(writing, "%s", i ? ", " : "");
        put_text(writing, texts[i]);
    }
    put(writing, "]");
}

static void put_numbers(struct writing *writing, const double *numbers, size_t count) {
    put(writing, "[");
    for (size_t i = 0; i < count; i++) {
        put(writing, "%s", i ? ", " : "");
        put_number(writing, numbers[i]);
    }
    put(writing, "]");
}

static void put_rows(struct writing *writing, const double *numbers, size_t count, size_t width) {
    put(writing, "[");
    for (size_t i = 0; i < count; i++) {
        put(writing, "%s", i ? ", " : "");
        put_numbers(writing, numbers + i * width, width);
    }
    put(writing, "]");
}

/* ---- The head */

/* Writes the terms, with units and factors. */
static void put_terms(struct writing *writing) {
    const struct model *model = writing->model;
    put(writing, ",\n  \"terms\": [");
    for (size_t t = 0; t < model->term_count; t++) {
        const struct model_term *term = &model->terms[t];
        put_member(writing, t ? ",\n    {" : "\n    {", "name", term->name);
        put_member(writing, ", ", "unit", term->unit);
        put(writing, ", \"factors\": [");
        for (size_t f = 0; f < term->factor_count; f++) {
            put_member(writing, f ? ", {" : "{", "column", term->factors[f].column);
            put(writing, ", \"power\": %d", term->factors[f].power);
            put_some(writing, ", ", "level", term->factors[f].level);
            put_some(writing, ", ", "function", term->factors[f].function);
            put(writing, "}");
        }
        put(writing, "]}");
    }
    put(writing, "%s", model->term_count ? "\n  ]" : "]");
}

/* Writes the columns, with units, types and the levels of categories. */
static void put_columns(struct writing *writing) {
    const struct model *model = writing->model;
    put(writing, ",\n  \"columns\": [");
    for (size_t c = 0; c < model->column_count; c++) {
        const struct model_column *column = &model->columns[c];
        put_member(writing, c ? ",\n    {" : "\n    {", "name", column->about.name);
        put_member(writing, ", ", "unit", column->about.unit);
        put_member(writing, ", ", "type", column_type_name(column->about.type));
        if (column->level_count > 0) {
            put(writing, ", \"levels\": ");
            put_texts(writing, column->levels, column->level_count);
        }
        put(writing, "}");
    }
    put(writing, "%s", model->column_count ? "\n  ]" : "]");
}

/* Writes the hull of the measured rows, if the model has one. */
static void put_hull(struct writing *writing) {
    const struct model_hull *hull = writing->model->hull;
    if (!hull)
        return;
    put(writing, ",\n  \"hull\": {\"columns\": ");
    put_texts(writing, hull->columns, hull->column_count);
    put(writing, ", \"scale\": ");
    put_numbers(writing, hull->scale, hull->column_count);
    put(writing, ", \"directions\": ");
    put_rows(writing, hull->directions, hull->direction_count, hull->column_count);
    put(writing, ", \"minimum\": ");
    put_numbers(writing, hull->minimum, hull->direction_count);
    put(writing, ", \"maximum\": ");
    put_numbers(writing, hull->maximum, hull->direction_count);
    put(writing, "}");
}

/* Writes how the model was made. */
static void put_origin(struct writing *writing) {
    const struct model_origin *origin = &writing->model->origin;
    put_member(writing, ",\n  \"origin\": {\n    ", "plugin", origin->plugin);
    put_member(writing, ", ", "version", origin->version);
    put_member(writing, ", ", "engine", origin->engine);
    put_member(writing, ", ", "created", origin->created);
    put(writing, ",\n    \"rows\": %llu, \"seed\": %llu", (unsigned long long)origin->rows,
        (unsigned long long)origin->seed);
    put_some(writing, ",\n    ", "where", origin->where);
    put_some(writing, ",\n    ", "folds_by", origin->folds_by);
    put(writing, ",\n    \"folds_columns\": ");
    put_texts(writing, origin->folds_columns, origin->folds_column_count);
    put(writing, ",\n    \"settings\": {");
    for (size_t i = 0; i < origin->setting_count; i++)
        put_member(writing, i ? ", " : "", origin->settings[i], origin->setting_values[i]);
    put(writing, "},\n    \"inputs\": [");
    for (size_t i = 0; i < origin->input_count; i++) {
        const struct model_input *input = &origin->inputs[i];
        put_member(writing, i ? ",\n      {" : "\n      {", "name", input->name);
        put_member(writing, ", ", "sha256", input->sha256[0] ? input->sha256 : NULL);
        put_member(writing, ", ", "run_id", input->run_id);
        put_member(writing, ", ", "experiment", input->experiment);
        put(writing, ", \"rows\": %llu}", (unsigned long long)input->rows);
    }
    put(writing, "%s]\n  }", origin->input_count ? "\n    " : "");
}

/* ---- Values and their units */

/* Adds VALUES to the list of values by name. -EINVAL: a value has another unit than an earlier one of its
 * name, for the file has one unit per name. */
static int add_units(struct writing *writing, const struct model_value *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct model_value *first =
            model_values_add(&writing->values, &writing->value_count, &values[i]);
        if (!text_is_same(first->unit, values[i].unit))
            return failure_set(writing->failure, -EINVAL,
                               "the value '%.64s' has the unit %.32s in one part of the model and "
                               "%.32s in another; expected the same unit",
                               values[i].name, first->unit ? first->unit : "none",
                               values[i].unit ? values[i].unit : "none");
    }
    return 0;
}

/* Lists the units of all named values of the model. -EINVAL as add_units(). */
static int collect_units(struct writing *writing) {
    const struct model *model = writing->model;
    int r = 0;
    for (size_t g = 0; r == 0 && g < model->group_count; g++) {
        const struct model_group *group = &model->groups[g];
        r = add_units(writing, group->values, group->value_count);
        for (size_t p = 0; r == 0 && p < group->part_count; p++)
            r = add_units(writing, group->parts[p].values, group->parts[p].value_count);
    }
    return r;
}

static void put_values(struct writing *writing, const struct model_value *values, size_t count) {
    put(writing, ", \"values\": {");
    for (size_t i = 0; i < count; i++) {
        put_key(writing, i ? ", " : "", values[i].name);
        put_number(writing, values[i].value);
    }
    put(writing, "}");
}

/* ---- Groups */

/* Writes the estimate of each term in PART, with standard error, t and p. */
static void put_estimates(struct writing *writing, const struct model_part *part) {
    static const char *const keys[] = {"estimate", "standard_error", "t", "p"};
    put(writing, ", \"estimates\": [");
    for (size_t t = 0; t < writing->model->term_count; t++) {
        const struct model_estimate *estimate = &part->estimates[t];
        const double numbers[] = {estimate->estimate, estimate->standard_error, estimate->t, estimate->p};
        put_member(writing, t ? ", {" : "{", "term", writing->model->terms[t].name);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            put(writing, ", \"%s\": ", keys[i]);
            put_number(writing, numbers[i]);
        }
        put(writing, "%s%s}", estimate->dropped ? ", \"dropped\": true" : "",
            estimate->at_bound ? ", \"at_bound\": true" : "");
    }
    put(writing, "]");
}

/* Writes the noise of a part; nothing if it has none. */
static void put_noise(struct writing *writing, const struct model_noise *noise) {
    static const char *const kinds[] = {"", "N-1", "N-2", "mixture"};
    if (noise->kind == MODEL_NOISE_NONE)
        return;
    put(writing, ", \"noise\": {\"kind\": \"%s\", \"distribution\": \"%s\"", kinds[noise->kind],
        noise->half_normal ? "half-normal" : "normal");
    put_some(writing, ", ", "method", noise->method);
    if (noise->kind != MODEL_NOISE_MIXTURE) {
        put(writing, ", \"constant\": ");
        put_number(writing, noise->constant);
    }
    if (noise->kind == MODEL_NOISE_HETEROSCEDASTIC && noise->coefficients) {
        put(writing, ", \"coefficients\": ");
        put_numbers(writing, noise->coefficients, writing->model->term_count);
    }
    if (noise->floor.covariance) {
        put(writing, ", \"floor\": {\"sigma\": ");
        put_number(writing, noise->floor.sigma);
        put(writing, ", \"freedom\": ");
        put_number(writing, noise->floor.freedom);
        put(writing, ", \"covariance\": ");
        put_rows(writing, noise->floor.covariance, writing->model->term_count, writing->model->term_count);
        put(writing, "}");
    }
    for (size_t i = 0; noise->kind == MODEL_NOISE_MIXTURE && i < noise->component_count; i++) {
        put(writing, "%s{\"weight\": ", i ? ", " : ", \"components\": [");
        put_number(writing, noise->components[i].weight);
        put(writing, ", \"mean\": ");
        put_number(writing, noise->components[i].mean);
        put(writing, ", \"sigma\": ");
        put_number(writing, noise->components[i].sigma);
        put(writing, "}%s", i + 1 < noise->component_count ? "" : "]");
    }
    put(writing, "}");
}

/* Writes a part: bounds, estimates, covariance, noise, values, domain. */
static void put_part(struct writing *writing, const struct model_part *part) {
    size_t count = writing->model->term_count;
    put_member(writing, "{", "kind", part->kind);
    put_some(writing, ", ", "name", part->name);
    if (isfinite(part->from)) {
        put(writing, ", \"from\": ");
        put_number(writing, part->from);
    }
    if (isfinite(part->to)) {
        put(writing, ", \"to\": ");
        put_number(writing, part->to);
    }
    put_estimates(writing, part);
    put(writing, ", \"covariance\": ");
    if (part->covariance)
        put_rows(writing, part->covariance, count, count);
    else
        put(writing, "null");
    if (part->freedom > 0) {
        put(writing, ", \"freedom\": ");
        put_number(writing, part->freedom);
    }
    put_noise(writing, &part->noise);
    put_values(writing, part->values, part->value_count);
    put(writing, ", \"domain\": {");
    for (size_t i = 0; i < part->domain_count; i++) {
        const double ends[] = {part->domain[i].minimum, part->domain[i].maximum};
        put_key(writing, i ? ", " : "", part->domain[i].name);
        put_numbers(writing, ends, 2);
    }
    put(writing, "}}");
}

static void put_labels(struct writing *writing, const char *before, char *const *labels, uint64_t rows) {
    const struct model *model = writing->model;
    put(writing, "%s\n    {\"labels\": {", before);
    for (size_t j = 0; j < model->by_count; j++)
        put_member(writing, j ? ", " : "", model->by[j], labels[j]);
    put(writing, "}, \"rows\": %llu", (unsigned long long)rows);
}

/* Moves the text to the output if it has at least LEAST bytes. Negative with FAILURE: it cannot be
 * written. */
static int flush_text(struct writing *writing, size_t least) {
    if (writing->text->error)
        return failure_set(writing->failure, writing->text->error, "the model is too large to be written");
    if (!writing->output || writing->text->length < least)
        return 0;
    int r = file_output_write(writing->output, writing->text->bytes, writing->text->length, writing->failure);
    text_reset(writing->text);
    return r;
}

/* Writes a group as one line. */
static int put_group(struct writing *writing, const struct model_group *group, const char *before) {
    put_labels(writing, before, group->labels, group->rows);
    put_values(writing, group->values, group->value_count);
    put(writing, ", \"parts\": [");
    for (size_t p = 0; p < group->part_count; p++) {
        put(writing, "%s", p ? ", " : "");
        put_part(writing, &group->parts[p]);
    }
    put(writing, "], \"notes\": ");
    put_texts(writing, group->notes, group->note_count);
    put(writing, "}");
    return flush_text(writing, FLUSH_BYTES);
}

/* ---- The whole */

/* Writes the model as JSON, a line a group. */
static int write_all(struct writing *writing) {
    const struct model *model = writing->model;
    put(writing, "{\n  \"assay_model\": %d", MODEL_FORMAT);
    put_member(writing, ",\n  ", "kind", model->kind);
    put_some(writing, ",\n  ", "over", model->over);
    put_some(writing, ",\n  ", "named_by", model->named_by);
    put_member(writing, ",\n  \"response\": {", "name", model->response);
    put_member(writing, ", ", "unit", model->response_unit);
    put_member(writing, "},\n  ", "grade", report_grade_word(model_grade(model)));
    put_member(writing, ",\n  ", "weights", model->weights);
    put(writing, ",\n  \"by\": ");
    put_texts(writing, model->by, model->by_count);
    put_terms(writing);
    put_columns(writing);
    put_hull(writing);
    put_origin(writing);
    put(writing, ",\n  \"units\": {");
    for (size_t i = 0; i < writing->value_count; i++)
        put_member(writing, i ? ", " : "", writing->values[i]->name, writing->values[i]->unit);
    put(writing, "}");
    if (model->main_value_count > 0) {
        put(writing, ",\n  \"main_values\": ");
        put_texts(writing, model->main_values, model->main_value_count);
    }
    put(writing, ",\n  \"groups\": [");
    for (size_t g = 0; g < model->group_count; g++) {
        int r = put_group(writing, &model->groups[g], g ? "," : "");
        if (r < 0)
            return r;
    }
    put(writing, "\n  ],\n  \"skipped\": [");
    for (size_t s = 0; s < model->skipped_count; s++) {
        put_labels(writing, s ? "," : "", model->skipped[s].labels, model->skipped[s].rows);
        put_member(writing, ", ", "reason", model->skipped[s].reason);
        put(writing, "}");
    }
    put(writing, "%s]\n}\n", model->skipped_count ? "\n  " : "");
    return flush_text(writing, 0);
}

static int write_model(const struct model *model, struct text *text, struct file_output *output,
                       struct failure *failure) {
    struct writing writing = {.model = model, .text = text, .output = output, .failure = failure};
    int r = collect_units(&writing);
    r = r < 0 ? r : write_all(&writing);
    free(writing.values);
    return r;
}

int model_file_append(const struct model *model, struct text *text, struct failure *failure) {
    struct text_mark mark = text_mark(text);
    int r = write_model(model, text, NULL, failure), kept = text_keep(text, mark);
    return r < 0 ? r : kept;
}

int model_file_write(const struct model *model, const char *path, struct failure *failure) {
    cleanup(file_output_clear) struct file_output output = FILE_OUTPUT_NONE;
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX);
    int r = file_output_open(path, 0666, &output, failure);
    r = r < 0 ? r : write_model(model, &text, &output, failure);
    return r < 0 ? r : file_output_commit(&output, failure);
}
