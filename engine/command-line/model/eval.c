/* assay model eval: what a model says, of one row or of a table of them. */
#include "engine/command-line/model/command.h"

#include "engine/command-line/output.h"
#include "engine/documents/unit.h"
#include "engine/fit/measured.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/model/extrapolation.h"
#include "engine/model/interval.h"
#include "engine/model/model.h"
#include "engine/model/read.h"
#include "engine/model/verdict.h"
#include "engine/report/shown.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_NAMED = 3 };

struct eval {
    const struct verb_arguments *arguments;
    struct model *model;
    struct evaluator *evaluator;
    const char **given; /* the text of each input, then of each label; NULL: not given */
    struct report *report;
    struct report_table *table;
    struct extrapolation_tally tally;
    size_t rows, without_mean, without_measurement; /* without an interval of it */
};

static void eval_clear(struct eval *eval) {
    evaluator_free(eval->evaluator);
    report_free(eval->report);
    model_free(eval->model);
    free(eval->given);
}

static size_t name_count(const struct eval *eval) {
    return eval->evaluator->input_count + eval->model->by_count;
}

static const char *name_at(const struct eval *eval, size_t i) {
    size_t inputs = eval->evaluator->input_count;
    return i < inputs ? eval->evaluator->inputs[i].name : eval->model->by[i - inputs];
}

/* ---- The result */

/* Begins the table: a row's inputs and labels, then what the model predicts. */
static void start_table(struct eval *eval) {
    const struct model *model = eval->model;
    const char *unit = model->response_unit;
    const struct column results[] = {
        {.name = "group"},
        {.name = "predicted", .label = model->response, .unit = unit, .digits = 8},
        {.name = "standard_error", .label = "std error", .unit = unit, .digits = 4},
        {.name = "sigma", .label = "sigma of one measurement", .unit = unit, .digits = 4},
        {.name = "mean_low", .label = "95 % of the mean", .unit = unit, .digits = 6},
        {.name = "mean_high", .label = "to", .unit = unit, .digits = 6},
        {.name = "measurement_low", .label = "95 % of measurements", .unit = unit, .digits = 6},
        {.name = "measurement_high", .label = "to", .unit = unit, .digits = 6},
        {.name = "outside", .unit = "1", .digits = 3, .detail = true},
        {.name = "outside_hull", .unit = "1", .digits = 3, .detail = true},
        {.name = "outside_by", .detail = true},
    };
    size_t names = name_count(eval), own = sizeof results / sizeof *results;
    struct column *columns = xcalloc(names + own, sizeof *columns);
    for (size_t i = 0; i < names; i++) {
        bool is_text = i >= eval->evaluator->input_count || eval->evaluator->inputs[i].is_text;
        const char *name = name_at(eval, i);
        columns[i] = (struct column){
            .name = name, .unit = is_text ? NULL : model_column_unit(model, name), .detail = is_text};
    }
    memcpy(columns + names, results, sizeof results);
    eval->table = report_table(eval->report->root, "rows", NULL, columns, names + own);
    free(columns);
}

/* Fails because no part of the group has the name that the row gives. */
static int refuse_part(const struct eval *eval, const struct model_group *group, const char *text,
                       const char *file, size_t line, struct failure *failure) {
    cleanup_free const char **names = xcalloc(group->part_count + 1, sizeof *names);
    for (size_t p = 0; p < group->part_count; p++)
        names[p] = group->parts[p].name ? group->parts[p].name : "";
    char instead[TEXT_INSTEAD_SIZE];
    return failure_input(failure, file, line, 0, "the model has no part for the %.64s '%.64s'; %s",
                         eval->model->named_by, text, text_instead(text, names, group->part_count, instead));
}

/* Adds the ends of both intervals. An interval that is not defined is NAN, and is counted. */
static void add_intervals(struct eval *eval, const struct model_group *group, const double *inputs,
                          const struct evaluator_value *value) {
    struct uncertainty uncertainty = uncertainty_find(eval->evaluator, group, inputs, value, 1);
    double mean[2], measurement[2];
    interval_of_mean(&uncertainty, mean);
    interval_of_measurement(&uncertainty, measurement);
    eval->rows++;
    eval->without_mean += isnan(mean[0]);
    eval->without_measurement += isnan(measurement[0]);
    for (int i = 0; i < 2; i++)
        report_cell(eval->table, value->mean + mean[i]);
    for (int i = 0; i < 2; i++)
        report_cell(eval->table, value->mean + measurement[i]);
}

/* Adds notes on the intervals that are not defined, and why. */
static void note_intervals(const struct eval *eval) {
    if (eval->without_mean > 0)
        report_note(
            eval->report->root, REPORT_NOTE,
            "no interval of the mean for %zu of %zu rows: the model has no covariance of its coefficients",
            eval->without_mean, eval->rows);
    if (eval->without_measurement > 0)
        report_note(eval->report->root, REPORT_NOTE,
                    "no interval of one measurement for %zu of %zu rows: the model has no noise for them",
                    eval->without_measurement, eval->rows);
}

/* Adds the prediction for INPUTS in GROUP. TEXTS: the inputs that are texts, and the labels; a label may be
 * NULL. FILE and LINE say where the row is from, for failures. */
static int add_row(struct eval *eval, const struct model_group *group, const double *inputs,
                   const char *const *texts, const char *file, size_t line, struct failure *failure) {
    const struct evaluator *evaluator = eval->evaluator;
    struct evaluator_value value;
    if (!evaluator_part(evaluator, group, inputs))
        return refuse_part(eval, group, texts[evaluator->named_by], file, line, failure);
    evaluator_predict(evaluator, group, inputs, &value); /* where it is not defined all is NaN */
    extrapolation_count(&eval->tally, &value);
    for (size_t i = 0; i < name_count(eval); i++)
        if (i < evaluator->input_count && !evaluator->inputs[i].is_text)
            report_cell(eval->table, inputs[i]);
        else
            report_cell_text(eval->table, i < evaluator->input_count || texts[i]
                                              ? texts[i]
                                              : group->labels[i - evaluator->input_count]);
    report_cell_text(eval->table, group->name);
    report_cell(eval->table, value.mean);
    report_cell(eval->table, value.standard_error);
    report_cell(eval->table, value.sigma);
    add_intervals(eval, group, inputs, &value);
    report_cell(eval->table, value.extrapolated_by);
    report_cell(eval->table, value.outside_hull);
    report_cell_text(eval->table, value.extrapolation      ? value.extrapolation
                                  : value.outside_hull > 0 ? "hull"
                                                           : "");
    return 0;
}

/* ---- One row, from the command line */

static int refuse_name(const struct eval *eval, const char *name, struct failure *failure) {
    cleanup_free const char **names = xcalloc(name_count(eval) + 1, sizeof *names);
    char instead[TEXT_INSTEAD_SIZE];
    for (size_t i = 0; i < name_count(eval); i++)
        names[i] = name_at(eval, i);
    return failure_input(failure, NULL, 0, 0, "the model uses no '%.128s'; %s", name,
                         text_instead(name, names, name_count(eval), instead));
}

/* Reads the operands NAME=VALUE. A column that is both a number and a category is two inputs. */
static int read_assignments(struct eval *eval, struct failure *failure) {
    eval->given = xcalloc(name_count(eval) + 1, sizeof *eval->given);
    for (size_t k = 2; k < eval->arguments->operand_count; k++) {
        const char *word = eval->arguments->operands[k], *equals = strchr(word, '=');
        if (!equals)
            return failure_input(failure, NULL, 0, 0, "'%.128s' gives no value; expected NAME=VALUE", word);
        cleanup_free char *name = xstrndup(word, (size_t)(equals - word));
        bool found = false;
        for (size_t i = 0; i < name_count(eval); i++) {
            if (strcmp(name_at(eval, i), name) != 0)
                continue;
            if (eval->given[i])
                return failure_input(failure, NULL, 0, 0, "'%.128s' is given twice", name);
            eval->given[i] = equals + 1;
            found = true;
        }
        if (!found)
            return refuse_name(eval, name, failure);
    }
    return 0;
}

/* Parses a number in the model's unit, or one with a unit of the same dimension, which is converted. False:
 * it is neither. */
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

/* Parses the value of each input. FAILURE_INPUT: one is missing, or is not a number. */
static int parse_values(struct eval *eval, double *ret_inputs, struct failure *failure) {
    const struct evaluator *evaluator = eval->evaluator;
    for (size_t i = 0; i < evaluator->input_count; i++) {
        const char *name = evaluator->inputs[i].name, *text = eval->given[i];
        const char *unit = model_column_unit(eval->model, name);
        if (!text)
            return failure_input(failure, NULL, 0, 0,
                                 "the model needs a value of '%.128s'; give it as %.128s=VALUE", name, name);
        if (evaluator->inputs[i].is_text)
            ret_inputs[i] = evaluator_code(evaluator, i, text);
        else if (!parse_number(text, unit, &ret_inputs[i]))
            return failure_input(failure, NULL, 0, 0, "'%.128s' is '%.64s'; expected a number%s%.64s%s", name,
                                 text, unit ? " of " : "", unit ? unit : "",
                                 !unit             ? "; the model has no unit of it"
                                 : unit_find(unit) ? ", or one with its unit"
                                                   : "");
    }
    return 0;
}

/* Fails because the model has several groups and none was chosen; the failure lists them. */
static int refuse_groups(const struct eval *eval, struct failure *failure) {
    const struct model *model = eval->model;
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t g = 0; g < model->group_count && g < GROUPS_NAMED; g++)
        (void)text_printf(&list, "%s%.128s", g ? ", " : "", model->groups[g].name);
    return failure_input(
        failure, model->file, 0, 0,
        "the model has %zu groups (%s%s); expected --group, --all, or values of what makes the groups",
        model->group_count, list.bytes ? list.bytes : "", model->group_count > GROUPS_NAMED ? ", ..." : "");
}

/* Whether the group has the labels that were given. */
static bool has_labels(const struct eval *eval, const struct model_group *group) {
    const char *const *given = eval->given + eval->evaluator->input_count;
    for (size_t j = 0; j < eval->model->by_count; j++)
        if (given[j] && !number_texts_equal(group->labels[j], given[j]))
            return false;
    return true;
}

/* Adds a row for each group that is asked for: that of --group, those with the given labels, or all. */
static int evaluate_one(struct eval *eval, struct failure *failure) {
    const struct model *model = eval->model;
    const char *name = verb_value(eval->arguments, "--group");
    cleanup_free double *inputs = xcalloc(eval->evaluator->input_count + 1, sizeof *inputs);
    size_t named = SIZE_MAX, given = 0, found = 0;
    int r = parse_values(eval, inputs, failure);
    r = r < 0 || !name ? r : model_group_find(model, name, &named, failure);
    for (size_t j = 0; j < model->by_count; j++)
        given += eval->given[eval->evaluator->input_count + j] != NULL;
    if (r == 0 && !name && given == 0 && model->group_count > 1 && !verb_switch(eval->arguments, "--all"))
        return refuse_groups(eval, failure);
    for (size_t g = 0; r == 0 && g < model->group_count; g++)
        if (name ? g == named : has_labels(eval, &model->groups[g])) {
            r = add_row(eval, &model->groups[g], inputs, eval->given, NULL, 0, failure);
            found++;
        }
    if (r == 0 && found == 0)
        return failure_input(failure, NULL, 0, 0,
                             "no group of the model has these labels; the first is '%.128s'",
                             model->group_count ? model->groups[0].name : "none");
    return r;
}

/* ---- Rows of a table */

/* Sets TEXTS to the texts of a row, for inputs that are texts and for labels; NULL for others. */
static void find_texts(const struct eval *eval, const struct table *table, size_t row, const char **texts) {
    size_t category = 0;
    for (size_t i = 0; i < name_count(eval); i++) {
        texts[i] = NULL;
        if (i < eval->evaluator->input_count && !eval->evaluator->inputs[i].is_text)
            continue;
        const struct table_category *from = &table->categories[category++];
        texts[i] = from->levels[from->codes[row]];
    }
}

/* Adds the prediction for one row of the table, in the group of --group or of its labels. */
static int evaluate_row(struct eval *eval, const struct measured *measured, const struct table *table,
                        size_t row, double *inputs, const char **texts, struct failure *failure) {
    const struct model *model = eval->model;
    const char *name = verb_value(eval->arguments, "--group");
    const struct table_input *input = &table->inputs[0];
    uint64_t line = 0;
    size_t g = measured->rows.groups[row];
    table_place(table, row, &input, &line);
    evaluator_gather(measured->evaluator, measured->columns, row, inputs);
    find_texts(eval, table, row, texts);
    for (size_t i = 0; i < measured->evaluator->input_count; i++)
        if (isnan(inputs[i]))
            return failure_input(failure, input->path, (size_t)line, 0,
                                 "the model needs a value of '%.128s'; this row has none",
                                 measured->evaluator->inputs[i].name);
    int r = name ? model_group_find(model, name, &g, failure) : 0;
    if (r == 0 && g >= model->group_count)
        return failure_input(failure, input->path, (size_t)line, 0,
                             "no group of the model has these labels; the first is '%.128s'",
                             model->group_count ? model->groups[0].name : "none");
    return r < 0 ? r : add_row(eval, &model->groups[g], inputs, texts, input->path, (size_t)line, failure);
}

/* Adds the predictions for all rows of the file PATH. */
static int evaluate_rows(struct eval *eval, const char *path, struct failure *failure) {
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup(measured_cleanup) struct measured *measured = NULL;
    const struct measured_options how = {.with_flagged = true};
    int r = table_open(&path, 1, NULL, &table, failure);
    r = r < 0 ? r : measured_read(eval->model, table, &how, &measured, failure);
    if (r < 0)
        return r;
    cleanup_free double *inputs = xcalloc(eval->evaluator->input_count + 1, sizeof *inputs);
    cleanup_free const char **texts = xcalloc(name_count(eval) + 1, sizeof *texts);
    for (size_t row = 0; r == 0 && row < table->rows; row++)
        r = evaluate_row(eval, measured, table, row, inputs, texts, failure);
    return r;
}

/* ---- The action */

static int check_options(const struct verb_arguments *arguments, struct failure *failure) {
    const char *rows = verb_value(arguments, "--rows"), *output = verb_value(arguments, "--output");
    if (verb_switch(arguments, "--all") && (rows || verb_switch(arguments, "--group")))
        return failure_input(failure, NULL, 0, 0, "--all goes with neither --group nor --rows");
    if (output && verb_switch(arguments, "--json"))
        return failure_input(failure, NULL, 0, 0, "--output and --json are both given; expected one of them");
    if (rows && arguments->operand_count > 2)
        return failure_input(failure, NULL, 0, 0, "'%.128s' and --rows are both given; expected one of them",
                             arguments->operands[2]);
    const char *inputs[] = {arguments->operands[1], rows};
    return output_check(output, inputs, 2, failure);
}

int model_command_eval(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(eval_clear) struct eval eval = {.arguments = arguments, .report = report_new()};
    const char *rows = verb_value(arguments, "--rows"), *output = verb_value(arguments, "--output");
    bool json = verb_switch(arguments, "--json");
    int r = check_options(arguments, failure);
    r = r < 0 ? r : model_file_read(arguments->operands[1], &eval.model, failure);
    r = r < 0 ? r : evaluator_new(eval.model, &eval.evaluator, failure);
    r = r < 0 ? r : read_assignments(&eval, failure);
    if (r < 0)
        return r;
    eval.tally.is_time = model_response_is_time(eval.model);
    report_text(eval.report->root, "grade", NULL, report_grade_word(model_grade(eval.model)), true);
    start_table(&eval);
    r = rows ? evaluate_rows(&eval, rows, failure) : evaluate_one(&eval, failure);
    note_intervals(&eval);
    if (r == 0 && (output || (rows && !json)))
        r = output_table(eval.table, output, failure);
    else if (r == 0)
        output_report(eval.report, json, false);
    if (r == 0)
        model_command_warn(eval.model);
    char sentence[EXTRAPOLATION_SENTENCE_SIZE];
    if (r == 0 && extrapolation_summarise(&eval.tally, sentence))
        fprintf(stderr, "assay: warning: %s\n", shown(sentence).text);
    return r;
}
