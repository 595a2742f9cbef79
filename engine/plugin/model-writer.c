#include "engine/plugin/model-writer.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model-unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FLUSH_BYTES = 1 << 16,
    PENDING_BYTES_MAX = 1 << 28, /* one group's line; all skipped groups */
    LEVELS_MAX = 1 << 16,
};

struct model_writer {
    const struct fitting *fitting;
    struct fitting_listener listener;
    struct file_output output; /* none when writing to a descriptor of the caller's */
    int descriptor;            /* to write to */
    struct text pending;       /* not yet written */
    struct text skipped;       /* lines for the end of the file */
    char **names, **units;     /* of the terms */
    size_t term_count;
    bool segments; /* the formula is over a column */
    uint64_t group_count, skipped_count;
    int error; /* the first append that failed; looked at in flush() */
};

/* ---- JSON by hand: a tree of a million groups would not fit */

__attribute__((format(printf, 3, 4))) static void put(struct model_writer *writer, struct text *text,
                                                      const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int r = text_vprintf(text, format, arguments);
    va_end(arguments);
    if (r < 0 && !writer->error)
        writer->error = r;
}

static void put_string(struct model_writer *writer, struct text *text, const char *string) {
    int r = string ? json_append_string(text, string, strlen(string)) : text_append_string(text, "null");
    if (r < 0 && !writer->error)
        writer->error = r;
}

/* What a fit computed has no short form: its 17 digits at once, which read back as the same double, rather
 * than a search for fewer of them that would cost more than the fit. Whole numbers and what was read from a
 * table are short. */
static void put_number(struct model_writer *writer, struct text *text, double value) {
    char digits[NUMBER_TEXT_SIZE] = "null";
    if (isfinite(value) && value == rint(value))
        number_format_double(value, digits);
    else if (isfinite(value))
        snprintf(digits, sizeof digits, "%.17g", value);
    int r = text_append_string(text, digits);
    if (r < 0 && !writer->error)
        writer->error = r;
}

static void put_measured(struct model_writer *writer, struct text *text, double value) {
    char digits[NUMBER_TEXT_SIZE] = "null";
    if (isfinite(value))
        number_format_double(value, digits);
    int r = text_append_string(text, digits);
    if (r < 0 && !writer->error)
        writer->error = r;
}

static int write_bytes(const struct model_writer *writer, const struct text *text, struct failure *failure) {
    int r = file_write_all(writer->descriptor, text->bytes, text->length);
    if (r < 0 && writer->output.path)
        return failure_set(failure, r, "cannot write '%s': %s", writer->output.path, strerror(-r));
    return r < 0 ? failure_set(failure, r, "cannot write the model: %s", strerror(-r)) : 0;
}

/* Writes out what is pending once there is enough of it, or ALL. */
static int flush(struct model_writer *writer, bool all, struct failure *failure) {
    if (writer->error == -EFBIG)
        return failure_set(failure, -EFBIG, "one part of the model is larger than %d bytes",
                           (int)PENDING_BYTES_MAX);
    if (writer->error)
        return failure_memory(failure);
    if (!all && writer->pending.length < FLUSH_BYTES)
        return 0;
    int r = write_bytes(writer, &writer->pending, failure);
    if (r == 0)
        text_reset(&writer->pending);
    return r;
}

/* ---- The head */

static void put_strings(struct model_writer *writer, const char *const *strings, size_t count) {
    struct text *text = &writer->pending;
    put(writer, text, "[");
    for (size_t i = 0; i < count; i++) {
        put(writer, text, "%s", i ? ", " : "");
        put_string(writer, text, strings[i]);
    }
    put(writer, text, "]");
}

/* A member that is there only where it says something. */
static void put_member(struct model_writer *writer, struct text *text, const char *key, const char *value) {
    if (!value)
        return;
    put(writer, text, ", \"%s\": ", key);
    put_string(writer, text, value);
}

static void put_term(struct model_writer *writer, const struct plugin_term *term, const char *unit) {
    struct text *text = &writer->pending;
    put(writer, text, "{\"name\": ");
    put_string(writer, text, term->name);
    put(writer, text, ", \"unit\": ");
    put_string(writer, text, unit);
    put(writer, text, ", \"factors\": [");
    for (size_t i = 0; i < term->factor_count; i++) {
        put(writer, text, "%s{\"factor\": ", i ? ", " : "");
        put_string(writer, text, term->factors[i].name);
        put(writer, text, ", \"power\": %d", term->factors[i].power);
        put_member(writer, text, "level", term->factors[i].level);
        put_member(writer, text, "function", term->factors[i].function);
        put(writer, text, "}");
    }
    put(writer, text, "]}");
}

/* The texts that a category has, where there are few enough for terms of their own. */
static void put_levels(struct model_writer *writer, const char *name) {
    struct text *text = &writer->pending;
    struct plugin_levels levels;
    if (!fitting_levels(writer->fitting, name, &levels) || levels.count > LEVELS_MAX)
        return;
    put(writer, text, ", \"levels\": [");
    for (uint32_t i = 0; i < levels.count; i++) {
        put(writer, text, "%s", i ? ", " : "");
        put_string(writer, text, levels.texts[levels.order[i]]);
    }
    put(writer, text, "]");
}

static bool is_used(const struct fit_formula *formula, const char *name) {
    bool used = (formula->over && strcmp(formula->over, name) == 0) ||
                (formula->named_by && strcmp(formula->named_by, name) == 0);
    for (size_t t = 0; !used && t < formula->term_count; t++)
        for (size_t f = 0; !used && f < formula->terms[t].factor_count; f++)
            used = strcmp(formula->terms[t].factors[f].name, name) == 0;
    return used;
}

/* Every column that a term uses, with its unit. */
static void put_factors(struct model_writer *writer, const struct fit_formula *formula) {
    struct text *text = &writer->pending;
    bool first = true;
    for (size_t i = 0; i < table_column_count(fitting_table(writer->fitting)); i++) {
        const struct table_column *column = table_column(fitting_table(writer->fitting), i);
        if (!is_used(formula, column->name))
            continue;
        put(writer, text, "%s{\"name\": ", first ? "" : ", ");
        put_string(writer, text, column->name);
        put(writer, text, ", \"unit\": ");
        put_string(writer, text, column->unit);
        put(writer, text, ", \"type\": ");
        put_string(writer, text, column->type);
        put_levels(writer, column->name);
        put(writer, text, "}");
        first = false;
    }
}

/* Every parameter of the plugin, also those that were not set: a default may change. */
static void put_settings(struct model_writer *writer) {
    struct text *text = &writer->pending;
    const struct fit_operations *operations = fitting_plugin(writer->fitting)->operations;
    for (size_t i = 0; i < operations->parameter_count; i++) {
        const struct plugin_parameter *parameter = &operations->parameters[i];
        double value = fitting_parameter(writer->fitting, i);
        put(writer, text, "%s\"%s\": ", i ? ", " : "", parameter->name);
        if (parameter->words)
            put_string(writer, text, parameter->words[(size_t)value]);
        else
            put_measured(writer, text, value);
    }
}

/* Whether a direction is along nothing but the columns that are used. */
static bool is_along(const struct hull *hull, const bool *used, size_t d) {
    bool along = true;
    for (size_t i = 0; i < hull->column_count; i++)
        along = along && (used[i] || hull->directions[d][i] == 0);
    return along;
}

static void put_supports(struct model_writer *writer, const struct hull *hull, const bool *used,
                         const char *key, const double *values) {
    struct text *text = &writer->pending;
    put(writer, text, ", \"%s\": [", key);
    for (size_t d = 0, count = 0; d < hull->direction_count; d++) {
        if (!is_along(hull, used, d))
            continue;
        put(writer, text, "%s", count++ ? ", " : "");
        put_measured(writer, text, values[d]);
    }
    put(writer, text, "]");
}

static void put_directions(struct model_writer *writer, const struct hull *hull, const bool *used) {
    struct text *text = &writer->pending;
    put(writer, text, ", \"directions\": [");
    for (size_t d = 0, count = 0; d < hull->direction_count; d++) {
        if (!is_along(hull, used, d))
            continue;
        put(writer, text, "%s", count++ ? ", " : "");
        for (size_t i = 0, entries = 0; i < hull->column_count; i++)
            if (used[i])
                put(writer, text, "%s%d", entries++ ? ", " : "[", hull->directions[d][i]);
        put(writer, text, "]");
    }
    put(writer, text, "]");
}

/* Of one factor its range says as much. */
static void put_hull(struct model_writer *writer, const struct fit_formula *formula) {
    const struct hull *hull = fitting_hull(writer->fitting);
    struct text *text = &writer->pending;
    bool used[HULL_COLUMNS_MAX] = {false};
    size_t count = 0;
    for (size_t i = 0; i < hull->column_count; i++)
        count += used[i] = is_used(formula, fitting_hull_column(writer->fitting, i));
    if (count < 2 || !hull_is_told(hull))
        return;
    const char *before = "  \"hull\": {\"factors\": [";
    for (size_t i = 0; i < hull->column_count; i++) {
        if (!used[i])
            continue;
        put(writer, text, "%s", before);
        put_string(writer, text, fitting_hull_column(writer->fitting, i));
        before = ", ";
    }
    before = "], \"scale\": [";
    for (size_t i = 0; i < hull->column_count; i++) {
        if (!used[i])
            continue;
        put(writer, text, "%s", before);
        put_measured(writer, text, hull->scale[i]);
        before = ", ";
    }
    put(writer, text, "]");
    put_directions(writer, hull, used);
    put_supports(writer, hull, used, "minimum", hull->minimum);
    put_supports(writer, hull, used, "maximum", hull->maximum);
    put(writer, text, "},\n");
}

/* By what rows were parted, where they were. */
static void put_folds(struct model_writer *writer) {
    const struct fitting *fitting = writer->fitting;
    struct text *text = &writer->pending;
    put(writer, text, "    \"folds_by\": \"%s\",\n    \"folds_columns\": [",
        folds_unit_word(fitting_folds_by(fitting)));
    for (size_t i = 0; i < fitting_fold_column_count(fitting); i++) {
        put(writer, text, "%s", i ? ", " : "");
        put_string(writer, text, fitting_fold_column(fitting, i));
    }
    put(writer, text, "],\n");
}

static void put_origin(struct model_writer *writer) {
    struct text *text = &writer->pending;
    const struct table *table = fitting_table(writer->fitting);
    char created[CLOCK_TEXT_SIZE];
    put(writer, text, "  \"origin\": {\n    \"plugin\": ");
    put_string(writer, text, fitting_plugin(writer->fitting)->name);
    put(writer, text, ",\n    \"version\": ");
    put_string(writer, text, fitting_plugin(writer->fitting)->version);
    put(writer, text, ",\n    \"engine\": ");
    put_string(writer, text, ASSAY_VERSION);
    put(writer, text, ",\n    \"created\": ");
    put_string(writer, text, clock_format(clock_wall_ns(), created));
    put(writer, text, ",\n    \"rows\": %llu,\n    \"inputs\": [",
        (unsigned long long)fitting_rows(writer->fitting));
    for (size_t i = 0; i < table_input_count(table); i++) {
        const struct table_input *input = table_input(table, i);
        put(writer, text, "%s\n      {\"file\": ", i ? "," : "");
        put_string(writer, text, input->name);
        put(writer, text, ", \"sha256\": ");
        put_string(writer, text, input->sha256[0] ? input->sha256 : NULL);
        put(writer, text, ", \"run_id\": ");
        put_string(writer, text, input->run_id);
        put(writer, text, ", \"experiment\": ");
        put_string(writer, text, input->experiment);
        put(writer, text, ", \"rows\": %llu}", (unsigned long long)input->rows);
    }
    put(writer, text, "\n    ],\n    \"seed\": %llu,\n",
        (unsigned long long)fitting_options(writer->fitting)->seed);
    put_folds(writer);
    put(writer, text, "    \"settings\": {");
    put_settings(writer);
    put(writer, text, "}\n  },\n");
}

static int keep_terms(struct model_writer *writer, const struct fit_formula *formula) {
    writer->names = calloc(formula->term_count + 1, sizeof *writer->names);
    writer->units = calloc(formula->term_count + 1, sizeof *writer->units);
    if (!writer->names || !writer->units)
        return -ENOMEM;
    for (size_t t = 0; t < formula->term_count; t++) {
        writer->term_count = t + 1;
        writer->names[t] = strdup(formula->terms[t].name);
        if (!writer->names[t] ||
            model_unit_of_estimate(writer->fitting, formula->kind, &formula->terms[t], &writer->units[t]) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    struct model_writer *writer = context;
    const struct fitting_options *options = fitting_options(writer->fitting);
    if (keep_terms(writer, formula) < 0)
        return failure_memory(failure);
    struct text *text = &writer->pending;
    put(writer, text, "{\n  \"assay_model\": %d,\n  \"kind\": ", MODEL_FORMAT);
    put_string(writer, text, formula->kind);
    writer->segments = formula->over != NULL;
    if (formula->over) {
        put(writer, text, ",\n  \"over\": ");
        put_string(writer, text, formula->over);
    }
    if (formula->named_by) {
        put(writer, text, ",\n  \"named_by\": ");
        put_string(writer, text, formula->named_by);
    }
    put(writer, text, ",\n  \"response\": {\"name\": ");
    put_string(writer, text, options->response);
    put(writer, text, ", \"unit\": ");
    put_string(writer, text, fitting_unit(writer->fitting, options->response));
    put(writer, text, "},\n  \"formula\": [");
    for (size_t t = 0; t < formula->term_count; t++) {
        put(writer, text, "%s\n    ", t ? "," : "");
        put_term(writer, &formula->terms[t], writer->units[t]);
    }
    put(writer, text, "\n  ],\n  \"factors\": [");
    put_factors(writer, formula);
    put(writer, text, "],\n  \"weights\": ");
    put_string(writer, text, options->weights);
    put(writer, text, ",\n  \"by\": ");
    put_strings(writer, options->by, options->by_count);
    put(writer, text, ",\n");
    put_hull(writer, formula);
    put_origin(writer);
    put(writer, text, "  \"groups\": [");
    return flush(writer, false, failure);
}

/* ---- Groups */

static void put_labels(struct model_writer *writer, struct text *text, uint32_t group) {
    const struct fitting_options *options = fitting_options(writer->fitting);
    put(writer, text, "{\"labels\": {");
    for (size_t j = 0; j < options->by_count; j++) {
        put(writer, text, "%s", j ? ", " : "");
        put_string(writer, text, options->by[j]);
        put(writer, text, ": ");
        put_string(writer, text, fitting_label(writer->fitting, group, j));
    }
    put(writer, text, "}");
}

static void put_estimates(struct model_writer *writer, const struct fit_part *part) {
    struct text *text = &writer->pending;
    put(writer, text, ", \"terms\": [");
    for (size_t t = 0; t < writer->term_count; t++) {
        const struct fit_estimate *estimate = &part->estimates[t];
        put(writer, text, "%s{\"name\": ", t ? ", " : "");
        put_string(writer, text, writer->names[t]);
        put(writer, text, ", \"unit\": ");
        put_string(writer, text, writer->units[t]);
        const struct {
            const char *name;
            double value;
        } members[] = {{"estimate", estimate->estimate},
                       {"standard_error", estimate->standard_error},
                       {"t", estimate->t},
                       {"p", estimate->p}};
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
            put(writer, text, ", \"%s\": ", members[i].name);
            put_number(writer, text, members[i].value);
        }
        put(writer, text, "%s}", estimate->dropped ? ", \"dropped\": true" : "");
    }
    put(writer, text, "]");
}

/* The bounds of a segment; one that is not there is not written. */
static void put_bounds(struct model_writer *writer, const struct fit_part *part) {
    struct text *text = &writer->pending;
    const double bounds[] = {part->from, part->to};
    for (size_t i = 0; writer->segments && i < 2; i++) {
        if (!isfinite(bounds[i]))
            continue;
        put(writer, text, ", \"%s\": ", i ? "to" : "from");
        put_measured(writer, text, bounds[i]);
    }
}

static void put_sigma(struct model_writer *writer, const struct plugin_noise *noise) {
    struct text *text = &writer->pending;
    put(writer, text, ", \"sigma\": [{\"name\": \"1\", \"unit\": ");
    put_string(writer, text, fitting_unit(writer->fitting, fitting_options(writer->fitting)->response));
    put(writer, text, ", \"estimate\": ");
    put_number(writer, text, noise->constant);
    put(writer, text, "}");
    for (size_t t = 0; noise->coefficients && t < writer->term_count; t++) {
        if (noise->coefficients[t] == 0)
            continue;
        put(writer, text, ", {\"name\": ");
        put_string(writer, text, writer->names[t]);
        put(writer, text, ", \"unit\": ");
        put_string(writer, text, writer->units[t]);
        put(writer, text, ", \"estimate\": ");
        put_number(writer, text, noise->coefficients[t]);
        put(writer, text, "}");
    }
    put(writer, text, "]");
}

static void put_components(struct model_writer *writer, const struct plugin_noise *noise) {
    struct text *text = &writer->pending;
    put(writer, text, ", \"components\": [");
    for (size_t i = 0; i < noise->component_count; i++) {
        const struct plugin_component *component = &noise->components[i];
        put(writer, text, "%s{\"weight\": ", i ? ", " : "");
        put_number(writer, text, component->weight);
        put(writer, text, ", \"mean\": ");
        put_number(writer, text, component->mean);
        put(writer, text, ", \"sigma\": ");
        put_number(writer, text, component->sigma);
        put(writer, text, "}");
    }
    put(writer, text, "]");
}

static void put_noise(struct model_writer *writer, const struct plugin_noise *noise) {
    struct text *text = &writer->pending;
    if (!noise)
        return;
    put(writer, text, ", \"noise\": {\"kind\": ");
    put_string(writer, text, noise->kind);
    put_member(writer, text, "distribution", noise->distribution);
    put_member(writer, text, "method", noise->method);
    if (noise->components)
        put_components(writer, noise);
    else
        put_sigma(writer, noise);
    put(writer, text, "}");
}

static void put_covariance(struct model_writer *writer, const struct fit_part *part) {
    struct text *text = &writer->pending;
    put(writer, text, ", \"covariance\": ");
    if (!part->covariance) {
        put(writer, text, "null");
        return;
    }
    for (size_t i = 0; i < writer->term_count; i++) {
        put(writer, text, i ? ", [" : "[[");
        for (size_t j = 0; j < writer->term_count; j++) {
            put(writer, text, "%s", j ? ", " : "");
            put_number(writer, text, part->covariance[i * writer->term_count + j]);
        }
        put(writer, text, "]");
    }
    put(writer, text, "]");
}

static void put_values(struct model_writer *writer, const struct fit_value *values, size_t count) {
    struct text *text = &writer->pending;
    for (size_t i = 0; i < count; i++) {
        put(writer, text, ", ");
        put_string(writer, text, values[i].name);
        put(writer, text, ": ");
        put_number(writer, text, values[i].value);
    }
}

static void put_part(struct model_writer *writer, const struct fit_part *part) {
    struct text *text = &writer->pending;
    put_estimates(writer, part);
    put_values(writer, part->values, part->value_count);
    put(writer, text, ", \"domain\": [");
    for (size_t i = 0; i < part->domain_count; i++) {
        put(writer, text, "%s{\"name\": ", i ? ", " : "");
        put_string(writer, text, part->domain[i].name);
        put(writer, text, ", \"minimum\": ");
        put_measured(writer, text, part->domain[i].minimum);
        put(writer, text, ", \"maximum\": ");
        put_measured(writer, text, part->domain[i].maximum);
        put(writer, text, "}");
    }
    put(writer, text, "]");
    put_noise(writer, part->noise);
    put_covariance(writer, part);
}

/* The members of the one part of a group are the group's own; several stand in "parts". */
static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    struct model_writer *writer = context;
    struct text *text = &writer->pending;
    put(writer, text, "%s\n    ", writer->group_count++ ? "," : "");
    put_labels(writer, text, group->code);
    put(writer, text, ", \"n\": %llu", (unsigned long long)group->rows);
    put_values(writer, group->values, group->value_count);
    if (group->part_count == 1)
        put_part(writer, &group->parts[0]);
    for (size_t i = 0; group->part_count != 1 && i < group->part_count; i++) {
        put(writer, text, "%s{\"kind\": ", i ? ", " : ", \"parts\": [");
        put_string(writer, text, group->parts[i].kind);
        put_member(writer, text, "name", group->parts[i].name);
        put_bounds(writer, &group->parts[i]);
        put_part(writer, &group->parts[i]);
        put(writer, text, i + 1 < group->part_count ? "}" : "}]");
    }
    put(writer, text, ", \"notes\": ");
    put_strings(writer, group->notes, group->note_count);
    put(writer, text, "}");
    return flush(writer, false, failure);
}

static int hear_skipped(void *context, uint32_t group, uint64_t rows, const char *reason,
                        struct failure *failure) {
    struct model_writer *writer = context;
    struct text *text = &writer->skipped;
    put(writer, text, "%s\n    ", writer->skipped_count++ ? "," : "");
    put_labels(writer, text, group);
    put(writer, text, ", \"n\": %llu, \"reason\": ", (unsigned long long)rows);
    put_string(writer, text, reason);
    put(writer, text, "}");
    return flush(writer, false, failure);
}

/* ---- Files */

static struct model_writer *new_writer(const struct fitting *fitting) {
    struct model_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->fitting = fitting;
    writer->output = FILE_OUTPUT_NONE;
    writer->descriptor = -1;
    writer->listener = (struct fitting_listener){writer, hear_formula, hear_group, hear_skipped};
    text_init(&writer->pending, PENDING_BYTES_MAX);
    text_init(&writer->skipped, PENDING_BYTES_MAX);
    return writer;
}

int model_writer_open_descriptor(int descriptor, const struct fitting *fitting, struct model_writer **ret,
                                 struct failure *failure) {
    struct model_writer *writer = new_writer(fitting);
    if (!writer)
        return failure_memory(failure);
    writer->descriptor = descriptor;
    *ret = writer;
    return 0;
}

int model_writer_open(const char *path, const struct fitting *fitting, struct model_writer **ret,
                      struct failure *failure) {
    cleanup(model_writer_cleanup) struct model_writer *writer = new_writer(fitting);
    if (!writer)
        return failure_memory(failure);
    int r = file_output_open(path, 0666, &writer->output, failure);
    if (r < 0)
        return r;
    writer->descriptor = writer->output.descriptor;
    *ret = take_pointer(writer);
    return 0;
}

const struct fitting_listener *model_writer_listener(const struct model_writer *writer) {
    return &writer->listener;
}

int model_writer_commit(struct model_writer *writer, struct failure *failure) {
    struct text *text = &writer->pending;
    put(writer, text, "%s],\n  \"skipped\": [", writer->group_count ? "\n  " : "");
    int r = flush(writer, true, failure);
    if (r < 0)
        return r;
    r = write_bytes(writer, &writer->skipped, failure);
    if (r < 0)
        return r;
    put(writer, text, "%s]\n}\n", writer->skipped_count ? "\n  " : "");
    r = flush(writer, true, failure);
    return r == 0 && writer->output.path ? file_output_commit(&writer->output, failure) : r;
}

void model_writer_free(struct model_writer *writer) {
    if (!writer)
        return;
    file_output_clear(&writer->output);
    text_clear(&writer->pending);
    text_clear(&writer->skipped);
    for (size_t t = 0; t < writer->term_count; t++) {
        free(writer->names[t]);
        free(writer->units[t]);
    }
    free(writer->names);
    free(writer->units);
    free(writer);
}

void model_writer_cleanup(struct model_writer **writer) {
    model_writer_free(*writer);
}
