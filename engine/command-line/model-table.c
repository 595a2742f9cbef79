/* assay model table: the coefficients of models as CSV, a row a group, or a part of one. */
#include "engine/command-line/model-command.h"

#include "archive-format/datapackage.h"
#include "engine/command-line/output.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_BYTES_MAX = 1 << 30, OTHER_COLUMNS = 6 /* beside labels and terms */ };

/* What a column takes from a part. */
enum source {
    SOURCE_MODEL,
    SOURCE_LABEL,
    SOURCE_ROWS,
    SOURCE_NAME,
    SOURCE_FROM,
    SOURCE_TO,
    SOURCE_TERM,
    SOURCE_SIGMA,
    SOURCE_SIGMA_TERM,
    SOURCE_VALUE
};

/* Numbers without a unit that are what a model of this kind is for, beside its estimates. */
static const struct {
    const char *kind, *name;
} kind_values[] = {{"smpi", "charged"},   {"smpi", "lat_factor"},      {"smpi", "lat_factor_error"},
                   {"smpi", "bw_factor"}, {"smpi", "bw_factor_error"}, {"population", "weight"}};
enum { VALUE_COUNT = sizeof kind_values / sizeof *kind_values };

struct column {
    enum source source;
    size_t index; /* of the label or the term */
    char *name;   /* owned */
    const char *unit;
};

struct table_of_models {
    struct model **models;
    size_t model_count;
    const char **by;
    size_t by_count;
    struct column *columns;
    size_t column_count;
    struct text text;
};

static void table_clear(struct table_of_models *table) {
    for (size_t i = 0; i < table->model_count; i++)
        model_free(table->models[i]);
    free(table->models);
    free(table->by);
    for (size_t c = 0; c < table->column_count; c++)
        free(table->columns[c].name);
    free(table->columns);
    text_clear(&table->text);
}

/* ---- Models */

static const struct predict_model *view_of(const struct table_of_models *table, size_t i) {
    return model_view(table->models[i]);
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

/* All must have the same terms, labels and units. */
static int check_alike(const struct table_of_models *table, size_t i, struct failure *failure) {
    const struct predict_model *first = view_of(table, 0), *view = view_of(table, i);
    cleanup_free const char **by = NULL;
    size_t count;
    int r = model_labels(table->models[i], &by, &count);
    if (r < 0)
        return r;
    bool labels = count == table->by_count, terms = first->term_count == view->term_count;
    for (size_t j = 0; labels && j < count; j++)
        labels = strcmp(by[j], table->by[j]) == 0;
    for (size_t t = 0; terms && t < view->term_count; t++)
        terms = strcmp(first->terms[t].name, view->terms[t].name) == 0;
    const char *what = !terms                                ? "other terms"
                       : !labels                             ? "groups by other columns"
                       : !same_text(first->over, view->over) ? "segments over another column"
                                                             : NULL;
    if (what)
        return failure_input(failure, view->name, 0, 0,
                             "the model has %s than '%s'; expected models of one formula", what, first->name);
    if (!same_text(first->response_unit, view->response_unit))
        return failure_input(failure, view->name, 0, 0,
                             "the model's response is in '%s', and that of '%s' in '%s'; expected one unit",
                             view->response_unit ? view->response_unit : "?", first->name,
                             first->response_unit ? first->response_unit : "?");
    for (size_t t = 0; t < view->term_count; t++)
        for (size_t f = 0; f < view->terms[t].factor_count; f++) {
            const char *name = view->terms[t].factors[f].name;
            if (!same_text(model_unit(table->models[0], name), model_unit(table->models[i], name)))
                return failure_input(failure, view->name, 0, 0,
                                     "'%.128s' is in another unit than in '%s'; expected one unit", name,
                                     first->name);
        }
    return 0;
}

static int read_models(struct table_of_models *table, const struct verb_arguments *arguments,
                       struct failure *failure) {
    table->models = xcalloc(arguments->operand_count, sizeof *table->models);
    int r = 0;
    for (size_t i = 0; r == 0 && i < arguments->operand_count; i++) {
        r = model_read(arguments->operands[i], &table->models[i], failure);
        if (r < 0)
            return r;
        table->model_count++;
        r = i == 0 ? model_labels(table->models[0], &table->by, &table->by_count)
                   : check_alike(table, i, failure);
    }
    return r;
}

/* ---- Columns */

static int add_column(struct table_of_models *table, enum source source, size_t index, const char *unit,
                      const char *prefix, const char *name, struct failure *failure) {
    cleanup_free char *full = xformat("%s%s", prefix, name);
    bool taken = false; /* by a term or a label that is called as one of ours */
    for (size_t c = 0; c < table->column_count; c++)
        taken = taken || strcmp(table->columns[c].name, full) == 0;
    struct column *column = &table->columns[table->column_count];
    const char *apart = !taken ? "" : source == SOURCE_TERM ? "term." : "model.";
    *column = (struct column){source, index, text_format("%s%s", apart, full), unit};
    if (!column->name)
        return failure_memory(failure);
    table->column_count++;
    return 0;
}

static const char *term_unit(const struct table_of_models *table, size_t t) {
    const struct document_node *formula = document_get(model_document(table->models[0])->root, "formula");
    const struct document_node *unit = document_get(formula->items[t], "unit");
    return unit && unit->kind == DOCUMENT_TEXT ? unit->text : NULL;
}

static bool any_parts(const struct table_of_models *table) {
    for (size_t i = 0; i < table->model_count; i++)
        for (size_t g = 0; g < view_of(table, i)->group_count; g++)
            if (view_of(table, i)->groups[g].part_count > 1 || view_of(table, i)->over)
                return true;
    return false;
}

static bool any_noise(const struct table_of_models *table, size_t t) {
    for (size_t i = 0; i < table->model_count; i++)
        for (size_t g = 0; g < view_of(table, i)->group_count; g++)
            for (size_t p = 0; p < view_of(table, i)->groups[g].part_count; p++) {
                const struct plugin_noise *noise = view_of(table, i)->groups[g].parts[p].noise;
                if (noise && noise->coefficients && noise->coefficients[t] != 0)
                    return true;
            }
    return false;
}

static int add_columns(struct table_of_models *table, struct failure *failure) {
    const struct predict_model *view = view_of(table, 0);
    const char *over = view->over ? model_unit(table->models[0], view->over) : NULL;
    table->columns =
        calloc(OTHER_COLUMNS + VALUE_COUNT + table->by_count + 2 * view->term_count, sizeof *table->columns);
    if (!table->columns)
        return failure_memory(failure);
    int r = table->model_count > 1 ? add_column(table, SOURCE_MODEL, 0, "", "", "model", failure) : 0;
    for (size_t j = 0; r == 0 && j < table->by_count; j++)
        r = add_column(table, SOURCE_LABEL, j, "", "", table->by[j], failure);
    r = r < 0 ? r : add_column(table, SOURCE_ROWS, 0, "1", "", "rows", failure);
    if (r == 0 && any_parts(table)) {
        r = add_column(table, SOURCE_NAME, 0, "", "", "part", failure);
        r = r < 0 ? r : add_column(table, SOURCE_FROM, 0, over, "", "from", failure);
        r = r < 0 ? r : add_column(table, SOURCE_TO, 0, over, "", "to", failure);
    }
    for (size_t t = 0; r == 0 && t < view->term_count; t++)
        r = add_column(table, SOURCE_TERM, t, term_unit(table, t), "", view->terms[t].name, failure);
    r = r < 0 ? r : add_column(table, SOURCE_SIGMA, 0, view->response_unit, "", "sigma", failure);
    for (size_t t = 0; r == 0 && t < view->term_count; t++)
        if (any_noise(table, t))
            r = add_column(table, SOURCE_SIGMA_TERM, t, term_unit(table, t), "sigma.", view->terms[t].name,
                           failure);
    for (size_t i = 0; r == 0 && i < VALUE_COUNT; i++)
        if (strcmp(kind_values[i].kind, view->kind) == 0)
            r = add_column(table, SOURCE_VALUE, i, "1", "", kind_values[i].name, failure);
    return r;
}

/* ---- Rows */

/* The constant of the noise where it is told, otherwise the number that the fit has by that name. */
static double sigma_of(const struct predict_part *part) {
    if (part->noise && !part->noise->components)
        return part->noise->constant;
    return model_part_value(part, "sigma");
}

static double number_of(const struct column *column, const struct predict_group *group,
                        const struct predict_part *part) {
    switch (column->source) {
    case SOURCE_ROWS:
        return (double)group->rows;
    case SOURCE_FROM:
        return part->from;
    case SOURCE_TO:
        return part->to;
    case SOURCE_TERM: /* those of a protocol are none */
        return strcmp(part->kind, "protocol") == 0 ? NAN : part->estimates[column->index];
    case SOURCE_VALUE:
        return model_part_value(part, kind_values[column->index].name);
    case SOURCE_SIGMA:
        return sigma_of(part);
    default:
        return part->noise && part->noise->coefficients ? part->noise->coefficients[column->index] : NAN;
    }
}

static const char *text_of(const struct table_of_models *table, size_t i, size_t g,
                           const struct column *column, const struct predict_part *part) {
    if (column->source == SOURCE_MODEL)
        return view_of(table, i)->name;
    if (column->source == SOURCE_LABEL)
        return model_label(table->models[i], g, table->by[column->index]);
    return part->name ? part->name : part->kind;
}

static int append_part(struct table_of_models *table, size_t i, size_t g, const struct predict_part *part) {
    int r = 0;
    for (size_t c = 0; r == 0 && c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        if (column->source == SOURCE_MODEL || column->source == SOURCE_LABEL ||
            column->source == SOURCE_NAME) {
            const char *text = text_of(table, i, g, column, part);
            r = csv_append_field(&table->text, c == 0, text, strlen(text));
        } else {
            r = csv_append_double(&table->text, c == 0,
                                  number_of(column, &view_of(table, i)->groups[g], part));
        }
    }
    return r < 0 ? r : text_append_character(&table->text, '\n');
}

static int append_all(struct table_of_models *table, struct failure *failure) {
    int r = 0;
    for (size_t c = 0; r == 0 && c < table->column_count; c++)
        r = csv_append_field(&table->text, c == 0, table->columns[c].name, strlen(table->columns[c].name));
    r = r < 0 ? r : text_append_character(&table->text, '\n');
    for (size_t i = 0; r == 0 && i < table->model_count; i++)
        for (size_t g = 0; r == 0 && g < view_of(table, i)->group_count; g++)
            for (size_t p = 0; r == 0 && p < view_of(table, i)->groups[g].part_count; p++)
                r = append_part(table, i, g, &view_of(table, i)->groups[g].parts[p]);
    if (r == -EFBIG)
        return failure_set(failure, r, "the table is larger than %d bytes", (int)OUTPUT_BYTES_MAX);
    return r < 0 ? failure_memory(failure) : 0;
}

/* Units of the columns, beside the table. */
static int write_package(const struct table_of_models *table, const char *path, struct failure *failure) {
    cleanup_free struct archive_column *columns = xcalloc(table->column_count, sizeof *columns);
    cleanup_free char *beside = xformat("%s.datapackage.json", path);
    for (size_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        bool text =
            column->source == SOURCE_MODEL || column->source == SOURCE_LABEL || column->source == SOURCE_NAME;
        columns[c] = (struct archive_column){.name = column->name,
                                             .type = text                            ? ARCHIVE_STRING
                                                     : column->source == SOURCE_ROWS ? ARCHIVE_INTEGER
                                                                                     : ARCHIVE_NUMBER,
                                             .unit = column->unit ? column->unit : "",
                                             .role = text ? ARCHIVE_ROLE_ID : ARCHIVE_ROLE_NONE};
    }
    const struct archive_table described = {
        .path = file_base_name(path), .columns = columns, .column_count = table->column_count};
    return archive_write_datapackage(beside, "coefficients", &described, 1, failure);
}

int model_command_table(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(table_clear) struct table_of_models table = {0};
    const char *output = verb_value(arguments, "--output");
    text_init(&table.text, OUTPUT_BYTES_MAX);
    int r = output_check(output, arguments->operands, arguments->operand_count, failure);
    r = r < 0 ? r : read_models(&table, arguments, failure);
    r = r < 0 ? r : add_columns(&table, failure);
    r = r < 0 ? r : append_all(&table, failure);
    if (r < 0)
        return r;
    if (!output) {
        fwrite(table.text.bytes, 1, table.text.length, stdout); /* main tells why it failed */
        return 0;
    }
    cleanup(file_output_clear) struct file_output file = FILE_OUTPUT_NONE;
    r = file_output_open(output, 0666, &file, failure);
    r = r < 0 ? r : file_output_write(&file, table.text.bytes, table.text.length, failure);
    bool is_file = file_output_is_file(&file);
    r = r < 0 ? r : file_output_commit(&file, failure);
    return r < 0 || !is_file ? r : write_package(&table, output, failure);
}
