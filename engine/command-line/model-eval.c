/* assay model eval: what a model says, of one row or of a table of them. */
#include "engine/command-line/model-command.h"

#include "archive-format/datapackage.h"
#include "engine/command-line/output.h"
#include "engine/command-line/shown.h"
#include "engine/documents/csv.h"
#include "engine/documents/json.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/group-names.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUE_MAX = 4096, /* bytes of a value */
    NAME_LENGTH_MAX = 4096,
    FLUSH_BYTES = 1 << 16,
    PENDING_BYTES_MAX = 1 << 30,
    GROUPS_NAMED = 3,
};

/* What a row says of one of the names that are to be known. */
struct input {
    const char *name; /* a column of the evaluation, or one that makes groups */
    bool given;
    char text[VALUE_MAX];
};

struct eval {
    const struct verb_arguments *arguments;
    struct model *model;
    const struct predict_model *view;
    struct evaluation *evaluation;
    struct group_names *names;
    const char **columns, **by; /* owned */
    size_t column_count, by_count;
    struct input *inputs; /* the columns, then the labels */
    size_t input_count;
    double *values;
    const char **texts;

    /* Of a table of rows. */
    struct csv_reader *csv;
    size_t *input_columns; /* by input: the column of the table, or SIZE_MAX */

    struct file_output output;
    struct text pending; /* CSV, or lines of JSON */
    bool to_file, json;
    struct evaluation_tally tally;
};

static void eval_clear(struct eval *eval) {
    csv_close(eval->csv);
    evaluation_free(eval->evaluation);
    group_names_free(eval->names);
    free(eval->columns);
    free(eval->by);
    free(eval->inputs);
    free(eval->values);
    free(eval->texts);
    free(eval->input_columns);
    text_clear(&eval->pending);
    file_output_clear(&eval->output);
    model_free(eval->model);
}

/* ---- Values */

/* A plain number is in the model's unit; one with a unit of the same dimension is converted. */
static bool parse_number(const char *text, const char *code, double *ret) {
    const struct unit *unit = code ? unit_find(code) : NULL;
    double value;
    if (number_parse_double(text, strlen(text), ret))
        return true;
    if (!unit || !unit_parse(text, unit->dimension, &value))
        return false;
    *ret = value / unit->scale;
    return true;
}

/* The inputs as the evaluation wants them. LINE and COLUMN are 0 on the command line. */
static int take_values(struct eval *eval, const char *file, size_t line, struct failure *failure) {
    for (size_t c = 0; c < eval->column_count; c++) {
        const struct input *input = &eval->inputs[c];
        const char *unit = model_unit(eval->model, input->name);
        eval->values[c] = NAN;
        eval->texts[c] = NULL;
        if (!input->given)
            return failure_input(failure, file, line, 0,
                                 "there is no value of '%.128s', which the model needs", input->name);
        if (evaluation_uses_text(eval->evaluation, c))
            eval->texts[c] = input->text;
        if (evaluation_uses_number(eval->evaluation, c) && !parse_number(input->text, unit, &eval->values[c]))
            return failure_input(failure, file, line, 0, "'%.128s' is '%.64s'; expected a number%s%.64s%s",
                                 input->name, input->text, unit ? " of " : "", unit ? unit : "",
                                 !unit             ? "; the model tells no unit of it"
                                 : unit_find(unit) ? ", or one with its unit"
                                                   : "");
    }
    return 0;
}

static struct input *find_input(const struct eval *eval, const char *name) {
    for (size_t i = 0; i < eval->input_count; i++)
        if (strcmp(eval->inputs[i].name, name) == 0)
            return &eval->inputs[i];
    return NULL;
}

static int refuse_name(const struct eval *eval, const char *name, struct failure *failure) {
    cleanup_free const char **names = xcalloc(eval->input_count + 1, sizeof *names);
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < eval->input_count; i++) {
        names[i] = eval->inputs[i].name;
        if (list.length < FAILURE_TEXT_SIZE / 4)
            text_printf(&list, "%s%.128s", i ? ", " : "", names[i]);
    }
    const char *nearest = text_nearest(name, names, eval->input_count);
    return failure_input(failure, NULL, 0, 0, "the model uses no '%.128s'; %s%s%s", name,
                         nearest ? "did you mean '" : "it uses ", nearest ? nearest : list.bytes,
                         nearest ? "'?" : "");
}

/* NAME=VALUE of the command line. */
static int read_assignments(struct eval *eval, struct failure *failure) {
    for (size_t i = 1; i < eval->arguments->operand_count; i++) {
        const char *word = eval->arguments->operands[i], *equals = strchr(word, '=');
        if (!equals)
            return failure_input(failure, NULL, 0, 0, "'%.128s' gives no value; expected NAME=VALUE", word);
        cleanup_free char *name = xstrndup(word, (size_t)(equals - word));
        struct input *input = find_input(eval, name);
        if (!input)
            return refuse_name(eval, name, failure);
        if (input->given)
            return failure_input(failure, NULL, 0, 0, "'%.128s' is given twice", name);
        if (strlen(equals + 1) >= VALUE_MAX)
            return failure_input(failure, NULL, 0, 0, "the value of '%.128s' is too long", name);
        memcpy(input->text, equals + 1, strlen(equals + 1) + 1);
        input->given = true;
    }
    return 0;
}

/* ---- Output */

static int flush(struct eval *eval, bool all, struct failure *failure) {
    if (!all && eval->pending.length < FLUSH_BYTES)
        return 0;
    int r = 0;
    if (eval->to_file)
        r = file_output_write(&eval->output, eval->pending.bytes, eval->pending.length, failure);
    else
        fwrite(eval->pending.bytes, 1, eval->pending.length, stdout); /* main tells why it failed */
    text_reset(&eval->pending);
    return r;
}

static const char *const result_names[] = {"group",      "predicted", "standard_error", "sigma", "outside",
                                           "outside_by", NULL};

static int append_fields(struct eval *eval, const char *group, const struct evaluation_value *value,
                         double error) {
    struct text *text = &eval->pending;
    const char *left_by = value->left_by ? value->left_by : value->beyond_hull > 0 ? "hull" : "";
    int r = csv_append_field(text, eval->input_count == 0, group, strlen(group));
    r = r < 0 ? r : csv_append_double(text, false, value->mean);
    r = r < 0 ? r : csv_append_double(text, false, error);
    r = r < 0 ? r : csv_append_double(text, false, value->sigma);
    r = r < 0 ? r : csv_append_double(text, false, value->left);
    return r < 0 ? r : csv_append_field(text, false, left_by, strlen(left_by));
}

/* The inputs as they were given, then what the model says. */
static int append_csv(struct eval *eval, const char *group, const struct evaluation_value *value,
                      double error) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < eval->input_count; i++)
        r = csv_append_field(&eval->pending, i == 0, eval->inputs[i].text,
                             eval->inputs[i].given ? strlen(eval->inputs[i].text) : 0);
    r = r < 0 ? r : append_fields(eval, group, value, error);
    return r < 0 ? r : text_append_character(&eval->pending, '\n');
}

static int append_json(struct eval *eval, const char *group, const struct evaluation_value *value,
                       double error) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    bool good = object != NULL;
    cJSON *inputs = good ? json_add_object(object, "inputs") : NULL;
    good = inputs != NULL;
    for (size_t i = 0; good && i < eval->input_count; i++)
        if (eval->inputs[i].given && i < eval->column_count && !eval->texts[i])
            good = json_add_double(inputs, eval->inputs[i].name, eval->values[i]);
        else if (eval->inputs[i].given)
            good = json_add_string(inputs, eval->inputs[i].name, eval->inputs[i].text);
    good = good && json_add_string(object, "group", group) &&
           json_add_double(object, "predicted", value->mean) &&
           json_add_double(object, "standard_error", error) &&
           json_add_double(object, "sigma", value->sigma) &&
           json_add_double(object, "outside", value->left) &&
           json_add_string(object, "outside_by", value->left_by) &&
           json_add_double(object, "beyond_hull", value->beyond_hull);
    int r = good ? text_append_string(&eval->pending, eval->tally.rows > 1 ? ",\n    " : "\n    ") : -ENOMEM;
    return r < 0 ? r : json_print(object, false, &eval->pending);
}

static void print_line(const struct eval *eval, const char *group, const struct evaluation_value *value,
                       double error) {
    char unit[64];
    model_unit_text(eval->view->response_unit, unit);
    printf("%s: %s = ", shown(group).text, shown(eval->view->response).text);
    model_print_number(stdout, 0, 8, value->mean);
    printf("%s", unit);
    if (!isnan(error))
        printf(", standard error %.4g%s", error, unit);
    if (!isnan(value->sigma))
        printf(", of one measurement %.4g%s", value->sigma, unit);
    printf("\n");
}

/* ---- Rows */

/* No part of the group has the name that the row gives. */
static int refuse_part(const struct eval *eval, size_t group, const char *file, size_t line,
                       struct failure *failure) {
    const struct predict_group *of = &eval->view->groups[group];
    cleanup_free const char **names = xcalloc(of->part_count + 1, sizeof *names);
    for (size_t p = 0; p < of->part_count; p++)
        names[p] = of->parts[p].name ? of->parts[p].name : "";
    const char *named_by = eval->view->named_by, *text = find_input(eval, named_by)->text,
               *nearest = text_nearest(text, names, of->part_count);
    return failure_input(failure, file, line, 0, "the model has no part for the %.64s '%.64s'; %s'%.64s'",
                         named_by, text, nearest ? "did you mean " : "the first that it has is ",
                         nearest ? nearest : names[0]);
}

static int evaluate(struct eval *eval, size_t group, const char *file, size_t line, struct failure *failure) {
    struct evaluation_value value;
    const char *name = eval->view->groups[group].name;
    if (!evaluation_part(eval->evaluation, group, eval->values, eval->texts))
        return refuse_part(eval, group, file, line, failure);
    int r = evaluation_row(eval->evaluation, group, eval->values, eval->texts, &value);
    double error =
        r < 0 ? NAN : evaluation_standard_error(eval->evaluation, group, eval->values, eval->texts);
    evaluation_tally_add(&eval->tally, &value);
    if (eval->json)
        r = append_json(eval, name, &value, error);
    else if (eval->csv || eval->to_file)
        r = append_csv(eval, name, &value, error);
    else
        r = (print_line(eval, name, &value, error), 0);
    return r < 0 ? failure_memory(failure) : flush(eval, false, failure);
}

/* Whether the group has the labels that were given. */
static bool has_labels(const struct eval *eval, size_t group) {
    for (size_t j = 0; j < eval->by_count; j++) {
        const struct input *input = &eval->inputs[eval->column_count + j];
        if (input->given && strcmp(model_label(eval->model, group, input->name), input->text) != 0)
            return false;
    }
    return true;
}

static int refuse_groups(const struct eval *eval, struct failure *failure) {
    char list[FAILURE_TEXT_SIZE / 2];
    size_t length = 0;
    for (size_t g = 0; g < eval->view->group_count && g < GROUPS_NAMED; g++) {
        int written = snprintf(list + length, sizeof list - length, "%s%.128s", g ? ", " : "",
                               eval->view->groups[g].name);
        length += written < 0 ? 0 : (size_t)written;
    }
    return failure_input(failure, eval->view->name, 0, 0,
                         "the model has %zu groups (%s%s); expected --group, --all, or values of what makes "
                         "the groups",
                         eval->view->group_count, list,
                         eval->view->group_count > GROUPS_NAMED ? ", ..." : "");
}

/* The groups that a row is asked of: those that are named, or that have the labels that the row has. */
static int evaluate_groups(struct eval *eval, const char *file, size_t line, struct failure *failure) {
    const char *name = verb_value(eval->arguments, "--group");
    bool all = verb_switch(eval->arguments, "--all");
    char joined[NAME_LENGTH_MAX];
    const char *labels[64];
    size_t given = 0, found = SIZE_MAX;
    for (size_t j = 0; j < eval->by_count && j < 64; j++) {
        labels[j] = eval->inputs[eval->column_count + j].text;
        given += eval->inputs[eval->column_count + j].given;
    }
    if (name) {
        int r = model_find_group(eval->model, name, &found, failure);
        return r < 0 ? r : evaluate(eval, found, file, line, failure);
    }
    if (given > 0 && given == eval->by_count && group_names_join(labels, given, joined, sizeof joined))
        found = group_names_find(eval->names, joined);
    else if (eval->view->group_count == 1 && given == 0)
        found = 0;
    if (found != SIZE_MAX)
        return evaluate(eval, found, file, line, failure);
    if (given == 0 && !all)
        return refuse_groups(eval, failure);
    uint64_t before = eval->tally.rows;
    int r = 0;
    for (size_t g = 0; r == 0 && g < eval->view->group_count; g++)
        if (has_labels(eval, g))
            r = evaluate(eval, g, file, line, failure);
    if (r == 0 && eval->tally.rows == before)
        return failure_input(failure, file, line, 0,
                             "no group of the model has these labels; the first is '%.128s'",
                             eval->view->groups[0].name);
    return r;
}

static int append_head(struct eval *eval, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < eval->input_count; i++)
        r = csv_append_field(&eval->pending, i == 0, eval->inputs[i].name, strlen(eval->inputs[i].name));
    for (size_t i = 0; r == 0 && result_names[i]; i++)
        r = csv_append_field(&eval->pending, i == 0 && eval->input_count == 0, result_names[i],
                             strlen(result_names[i]));
    r = r < 0 ? r : text_append_character(&eval->pending, '\n');
    return r < 0 ? failure_memory(failure) : 0;
}

static int bind_rows(struct eval *eval, struct failure *failure) {
    eval->input_columns = xcalloc(eval->input_count + 1, sizeof *eval->input_columns);
    for (size_t i = 0; i < eval->input_count; i++) {
        eval->input_columns[i] = SIZE_MAX;
        for (size_t c = 0; c < csv_column_count(eval->csv); c++)
            if (strcmp(csv_column_name(eval->csv, c), eval->inputs[i].name) == 0)
                eval->input_columns[i] = c;
        size_t column;
        if (eval->input_columns[i] == SIZE_MAX && !eval->inputs[i].given && i < eval->column_count) {
            int r = csv_find_column(eval->csv, eval->inputs[i].name, &column, failure);
            if (r < 0)
                return r;
        }
        if (eval->input_columns[i] != SIZE_MAX && eval->inputs[i].given)
            return failure_input(failure, csv_file(eval->csv), 1, 0,
                                 "'%.128s' is a column here and given on the command line; expected one of "
                                 "both",
                                 eval->inputs[i].name);
    }
    return 0;
}

static int take_row(struct eval *eval, const struct csv_field *fields, struct failure *failure) {
    for (size_t i = 0; i < eval->input_count; i++) {
        size_t c = eval->input_columns[i];
        if (c == SIZE_MAX)
            continue;
        if (fields[c].length >= VALUE_MAX)
            return csv_failure(eval->csv, c, failure, "the value of '%.128s' is too long",
                               eval->inputs[i].name);
        memcpy(eval->inputs[i].text, fields[c].bytes, fields[c].length);
        eval->inputs[i].text[fields[c].length] = '\0';
        eval->inputs[i].given = fields[c].length > 0;
    }
    return take_values(eval, csv_file(eval->csv), csv_line(eval->csv), failure);
}

static int evaluate_rows(struct eval *eval, const char *path, struct failure *failure) {
    const struct csv_field *fields;
    int r = csv_open(path, &eval->csv, failure);
    r = r < 0 ? r : bind_rows(eval, failure);
    if (r == 0 && !eval->json)
        r = append_head(eval, failure);
    while (r >= 0 && (r = csv_next(eval->csv, &fields, failure)) > 0) {
        r = take_row(eval, fields, failure);
        r = r < 0 ? r : evaluate_groups(eval, csv_file(eval->csv), csv_line(eval->csv), failure);
    }
    return r;
}

static int evaluate_one(struct eval *eval, struct failure *failure) {
    int r = take_values(eval, NULL, 0, failure);
    if (r == 0 && eval->to_file && !eval->json)
        r = append_head(eval, failure);
    return r < 0 ? r : evaluate_groups(eval, NULL, 0, failure);
}

/* ---- The action */

/* Types and units of the columns, beside the table. */
static int write_package(const struct eval *eval, const char *path, struct failure *failure) {
    size_t count = 0;
    cleanup_free struct archive_column *columns =
        calloc(eval->input_count + sizeof result_names / sizeof *result_names, sizeof *columns);
    cleanup_free char *beside = text_format("%s.datapackage.json", path);
    if (!columns || !beside)
        return failure_memory(failure);
    for (size_t i = 0; i < eval->input_count; i++) {
        bool number = i < eval->column_count && evaluation_uses_number(eval->evaluation, i);
        const char *unit = model_unit(eval->model, eval->inputs[i].name);
        columns[count++] = (struct archive_column){.name = eval->inputs[i].name,
                                                   .type = number ? ARCHIVE_NUMBER : ARCHIVE_STRING,
                                                   .unit = number && unit ? unit : "",
                                                   .role = ARCHIVE_ROLE_FACTOR};
    }
    for (size_t i = 0; result_names[i]; i++) {
        bool text = i == 0 || !result_names[i + 1], plain = text || strcmp(result_names[i], "outside") == 0;
        const char *unit = eval->view->response_unit;
        columns[count++] = (struct archive_column){.name = result_names[i],
                                                   .type = text ? ARCHIVE_STRING : ARCHIVE_NUMBER,
                                                   .unit = plain  ? text ? "" : "1"
                                                           : unit ? unit
                                                                  : "",
                                                   .role = ARCHIVE_ROLE_NONE};
    }
    const struct archive_table table = {
        .path = file_base_name(path), .columns = columns, .column_count = count};
    return archive_write_datapackage(beside, "evaluation", &table, 1, failure);
}

static int prepare(struct eval *eval, struct failure *failure) {
    int r = model_read(eval->arguments->operands[0], &eval->model, failure);
    if (r < 0)
        return r;
    eval->view = model_view(eval->model);
    eval->tally.is_time = model_seconds(eval->model) > 0;
    r = evaluation_columns(eval->view, &eval->columns, &eval->column_count);
    r = r < 0 ? r : evaluation_new(eval->view, eval->columns, eval->column_count, &eval->evaluation, failure);
    r = r < 0 ? r : model_labels(eval->model, &eval->by, &eval->by_count);
    r = r < 0 ? r : group_names_new(eval->view, &eval->names, failure);
    if (r < 0)
        return r;
    eval->inputs = xcalloc(eval->column_count + eval->by_count + 1, sizeof *eval->inputs);
    eval->values = xcalloc(eval->column_count + 1, sizeof *eval->values);
    eval->texts = xcalloc(eval->column_count + 1, sizeof *eval->texts);
    for (size_t c = 0; c < eval->column_count; c++)
        eval->inputs[eval->input_count++].name = eval->columns[c];
    for (size_t j = 0; j < eval->by_count; j++)
        eval->inputs[eval->input_count++].name = eval->by[j];
    return read_assignments(eval, failure);
}

static void warn(const struct eval *eval) {
    char sentence[EVALUATION_SENTENCE_SIZE];
    if (evaluation_tally_describe(&eval->tally, sentence))
        fprintf(stderr, "assay: warning: %s\n", shown(sentence).text);
}

static int begin_json(struct eval *eval, struct failure *failure) {
    cleanup(json_cleanup) cJSON *root = cJSON_CreateObject();
    bool good = root && json_add_string(root, "file", eval->view->name) &&
                json_add_string(root, "response", eval->view->response) &&
                json_add_string(root, "unit", eval->view->response_unit);
    int r = good ? json_print(root, true, &eval->pending) : -ENOMEM;
    if (r < 0)
        return failure_memory(failure);
    eval->pending.length -= 2; /* the newline and the brace that close it */
    eval->pending.bytes[eval->pending.length] = '\0';
    return text_append_string(&eval->pending, ",\n  \"rows\": [") < 0 ? failure_memory(failure) : 0;
}

static int check_options(const struct verb_arguments *arguments, struct failure *failure) {
    const char *rows = verb_value(arguments, "--rows"), *output = verb_value(arguments, "--output");
    if (verb_switch(arguments, "--group") && verb_switch(arguments, "--all"))
        return failure_input(failure, NULL, 0, 0, "--group and --all are both given; expected one of them");
    if (output && verb_switch(arguments, "--json"))
        return failure_input(failure, NULL, 0, 0, "--output and --json are both given; expected one of them");
    const char *inputs[] = {arguments->operands[0], rows};
    return output_check(output, inputs, 2, failure);
}

int model_command_eval(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(eval_clear) struct eval eval = {.arguments = arguments, .output = FILE_OUTPUT_NONE};
    const char *rows = verb_value(arguments, "--rows"), *output = verb_value(arguments, "--output");
    text_init(&eval.pending, PENDING_BYTES_MAX);
    eval.json = verb_switch(arguments, "--json");
    int r = check_options(arguments, failure);
    r = r < 0 ? r : prepare(&eval, failure);
    if (r == 0 && output)
        r = file_output_open(output, 0666, &eval.output, failure);
    eval.to_file = r == 0 && output;
    if (r == 0 && eval.json)
        r = begin_json(&eval, failure);
    r = r < 0 ? r : rows ? evaluate_rows(&eval, rows, failure) : evaluate_one(&eval, failure);
    if (r == 0 && eval.json && text_append_string(&eval.pending, "\n  ]\n}\n") < 0)
        r = failure_memory(failure);
    r = r < 0 ? r : flush(&eval, true, failure);
    if (r < 0)
        return r;
    warn(&eval);
    if (!output)
        return 0;
    bool file = file_output_is_file(&eval.output);
    r = file_output_commit(&eval.output, failure);
    return r < 0 || !file ? r : write_package(&eval, output, failure);
}
