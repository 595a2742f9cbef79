/* The result of a prediction as a table: for files, for programs, for people. */
#include "engine/predict/prediction.h"

#include "engine/documents/csv.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 5 }; /* significant digits shown to people */

enum source { NAME, PARAMETER, VALUE, MEAN, LOW, HIGH, REMARKS };

struct shape_column {
    enum source source;
    size_t index;        /* of the parameter, or of the plugin's column */
    struct column about; /* name and help owned; without a unit it is of texts */
};

struct shape {
    struct shape_column *columns;
    size_t count;
};

struct cell {
    const char *text; /* NULL: the number */
    double number;
};

static void shape_clear(struct shape *shape) {
    for (size_t i = 0; i < shape->count; i++)
        column_clear(&shape->columns[i].about);
    free(shape->columns);
}

/* Adds a column to the shape; texts of ABOUT are copied. */
static void add_column(struct shape *shape, enum source source, size_t index, struct column about) {
    static const enum column_role roles[] = {
        [NAME] = COLUMN_ROLE_ID,       [PARAMETER] = COLUMN_ROLE_FACTOR, [VALUE] = COLUMN_ROLE_RESPONSE,
        [MEAN] = COLUMN_ROLE_RESPONSE, [LOW] = COLUMN_ROLE_RESPONSE,     [HIGH] = COLUMN_ROLE_RESPONSE,
        [REMARKS] = COLUMN_ROLE_NONE};
    about.role = roles[source];
    about.digits = source == PARAMETER ? 0 : DIGITS;
    shape->columns = xrealloc(shape->columns, (shape->count + 1) * sizeof *shape->columns);
    shape->columns[shape->count++] = (struct shape_column){source, index, column_copy(&about)};
}

/* Whether no scenario from FIRST on has a value for parameter INDEX. */
static bool is_unset(const struct prediction *prediction, size_t index, size_t first) {
    for (size_t i = first; i < prediction->scenarios.count; i++)
        if (prediction->scenarios.items[i].parameters.values[index].text)
            return false;
    return true;
}

/* The columns of the result of scenarios from BEGIN on: name, parameters, values with intervals, remarks. The
 * caller clears it. */
static struct shape shape_of(const struct prediction *prediction, size_t begin) {
    static const char *const intervals[][2] = {[MEAN] = {"mean", "mean of the draws"},
                                               [LOW] = {"low", "2.5 % of the draws are below"},
                                               [HIGH] = {"high", "2.5 % of the draws are above"}};
    struct shape shape = {0};
    const struct column *columns = prediction->plugin->columns;
    const size_t first = prediction->scenarios.option_count;
    bool is_main = true; /* the first column with an interval */
    add_column(&shape, NAME, 0,
               (struct column){.name = SCENARIOS_NAME,
                               .help = "name of the scenario",
                               .detail = !prediction->scenarios.items[0].name});
    for (size_t i = 0; i < prediction->scenarios.parameter_count; i++) {
        const struct plugin_parameter *parameter = &prediction->scenarios.table[first + i];
        const char *unit = parameter->unit ? parameter->unit : "1";
        add_column(&shape, PARAMETER, first + i,
                   (struct column){.name = parameter->name,
                                   .type = parameter->integer ? COLUMN_INTEGER : COLUMN_UNKNOWN,
                                   .unit = parameter->type == PLUGIN_NUMBER ? unit : NULL,
                                   .help = parameter->help,
                                   .detail = is_unset(prediction, first + i, begin)});
    }
    for (size_t i = 0; i < prediction->column_count; i++) {
        add_column(&shape, VALUE, i, columns[i]);
        if (prediction->draws == 0 || !columns[i].unit || columns[i].exact)
            continue;
        for (enum source source = MEAN; source <= HIGH; source++) {
            cleanup_free char *name = xformat("%s_%s", columns[i].name, intervals[source][0]);
            cleanup_free char *help = xformat("%s: %s", columns[i].name, intervals[source][1]);
            add_column(&shape, source, i,
                       (struct column){.name = name,
                                       .unit = columns[i].unit,
                                       .help = help,
                                       .detail = source == MEAN || !is_main});
        }
        is_main = false;
    }
    add_column(&shape, REMARKS, 0,
               (struct column){
                   .name = "remarks", .help = "notes and warnings, separated by semicolons", .detail = true});
    return shape;
}

/* Joins the remarks of a scenario and warnings of its models into TEXT; a text beyond its limit is cut. */
static void join_remarks(const struct prediction *prediction, const struct prediction_result *result,
                         struct text *text) {
    text_reset(text);
    for (size_t i = 0; i < result->remark_count; i++)
        (void)text_printf(text, "%s%s%s", i ? "; " : "", result->remarks[i].warning ? "warning: " : "",
                          result->remarks[i].sentence);
    for (size_t i = 0; i < prediction->models.count; i++) {
        const struct given_model *given = &prediction->models.items[i];
        if (given->remark && given->grade == REPORT_NOT_USABLE)
            (void)text_printf(text, "%swarning: %s", text->length ? "; " : "", given->remark);
    }
}

/* The cell of COLUMN for one row of a scenario. */
static struct cell cell_of(const struct prediction *prediction, const struct shape_column *column,
                           size_t scenario, const struct prediction_row *row, const char *remarks) {
    const struct scenario *of = &prediction->scenarios.items[scenario];
    const char *text = NULL;
    double number = NAN;
    if (column->source == NAME)
        text = of->name;
    else if (column->source == REMARKS)
        text = remarks;
    else if (column->source == PARAMETER) {
        text = of->parameters.values[column->index].text;
        number = of->parameters.values[column->index].number;
    } else if (column->source == VALUE) {
        text = row->texts ? row->texts[column->index] : NULL;
        number = row->values[column->index];
    } else if (row->intervals) {
        number = row->intervals[column->index][column->source - MEAN];
    }
    return (struct cell){.text = column->about.unit ? NULL : text ? text : "", .number = number};
}

/* ---- Reports
 * -------------------------------------------------------------------------------------------------- */

/* Adds a table of the scenarios from FIRST on: parameters and results. Returns it. */
struct report_table *prediction_report_table(const struct prediction *prediction, size_t first,
                                             struct report_section *in) {
    cleanup(shape_clear) struct shape shape = shape_of(prediction, first);
    cleanup_free struct column *columns = xcalloc(shape.count + 1, sizeof *columns);
    for (size_t c = 0; c < shape.count; c++)
        columns[c] = shape.columns[c].about;
    struct report_table *table = report_table(in, "scenarios", NULL, columns, shape.count);
    cleanup(text_clear) struct text remarks;
    text_init(&remarks, CSV_FIELD_MAX - 1);
    for (size_t i = first; i < prediction->scenarios.count; i++) {
        const struct prediction_result *result = &prediction->results[i];
        join_remarks(prediction, result, &remarks);
        for (size_t k = 0; k < result->row_count * shape.count; k++) {
            const struct shape_column *column = &shape.columns[k % shape.count];
            struct cell cell = cell_of(prediction, column, i, &result->rows[k / shape.count], remarks.bytes);
            if (cell.text)
                report_cell_text(table, cell.text);
            else
                report_cell(table, cell.number);
        }
    }
    return table;
}

/* Adds the rows of the plugin's table number TABLE over all scenarios. Returns it. */
struct report_table *prediction_report_rows(const struct prediction *prediction, size_t table,
                                            struct report_section *in) {
    const struct prediction_table *of = &prediction->tables[table];
    cleanup_free struct column *columns = xcalloc(of->column_count + 1, sizeof *columns);
    columns[0] = (struct column){
        .name = "scenario", .help = "its number", .type = COLUMN_INTEGER, .role = COLUMN_ROLE_ID};
    for (size_t c = 0; c < of->column_count; c++)
        columns[c + 1] = of->columns[c], columns[c + 1].role = COLUMN_ROLE_RESPONSE;
    struct report_table *into = report_table(in, of->table->name, NULL, columns, of->column_count + 1);
    for (size_t i = 0; i < prediction->scenarios.count; i++) {
        const struct prediction_rows *rows = &prediction->results[i].tables[table];
        for (size_t k = 0; k < rows->count * (of->column_count + 1); k++) {
            const struct prediction_row *row = &rows->items[k / (of->column_count + 1)];
            size_t c = k % (of->column_count + 1);
            if (c == 0)
                report_cell(into, (double)prediction->scenarios.items[i].number);
            else if (of->columns[c - 1].unit)
                report_cell(into, row->values[c - 1]);
            else
                report_cell_text(into, row->texts ? row->texts[c - 1] : "");
        }
    }
    return into;
}

/* Adds notes on a search, and on scenarios that were left out or are not shown. */
static void report_rest(const struct prediction *prediction, struct report_section *in) {
    if (prediction->searched > 0) {
        const struct column *column = &prediction->plugin->columns[prediction_main_column(prediction)];
        size_t left_out = prediction->scenarios.left_out;
        report_note(in, REPORT_NOTE,
                    "the best of %zu evaluated scenarios (of %s%zu combinations) are "
                    "shown, by the %s %s; best first",
                    prediction->searched, left_out > 0 && !prediction->has_tried_all ? "at most " : "",
                    scenarios_combinations(&prediction->scenarios) -
                        (prediction->has_tried_all ? left_out : 0),
                    column->goal == COLUMN_LESS ? "least" : "greatest", column->name);
    }
    if (prediction->without_answer > 0)
        report_note(in, REPORT_NOTE, "scenarios for which the method has no answer: %zu; the first: %s",
                    prediction->without_answer, prediction->no_answer);
    if (prediction->scenarios.left_out > 0) {
        cleanup_free char *count = xformat("%zu", prediction->scenarios.left_out);
        report_note(in, REPORT_NOTE,
                    "combinations left out, because a value is not possible: %s; the "
                    "first: %s",
                    prediction->searched > 0 && !prediction->has_tried_all ? "some" : count,
                    prediction->scenarios.left_out_reason);
    }
    if (prediction->scenario_count > prediction->scenarios.count)
        report_note(in, REPORT_NOTE,
                    "the first %zu of %zu scenarios are shown; the output file has all of them",
                    prediction->scenarios.count, prediction->scenario_count);
}

/* Adds all of the prediction for programs: plugin, models with their inputs, options, results. */
void prediction_describe(const struct prediction *prediction, struct report_section *in) {
    static const struct column columns[] = {
        {.name = "role"}, {.name = "file"}, {.name = "sha256"}, {.name = "grade"}, {.name = "verdict"}};
    const struct scenarios *scenarios = &prediction->scenarios;
    report_text(in, "plugin", NULL, prediction->library->plugin->name, false);
    report_text(in, "version", NULL, prediction->library->plugin->version, false);
    report_text(in, "engine", NULL, prediction->models.view.engine, false);
    cleanup_free char *seed = xformat("%llu", (unsigned long long)prediction->models.seed);
    report_text(in, "seed", NULL, seed, false); /* a text: JSON's numbers are exact up to 2^53 only */
    report_number(in, "draws", NULL, (double)prediction->draws, NULL, 0, false);
    struct report_table *models = report_table(in, "models", NULL, columns, 5);
    for (size_t i = 0; i < prediction->models.count; i++) {
        const struct given_model *given = &prediction->models.items[i];
        report_cell_text(models, prediction->plugin->roles[given->role].name);
        report_cell_text(models, given->source.file);
        report_cell_text(models, given->source.sha256);
        report_cell_text(models, report_grade_word(given->grade));
        report_cell_text(models, given->verdict);
    }
    static const struct column input_columns[] = {
        {.name = "role"}, {.name = "input"}, {.name = "experiment"}, {.name = "sha256"}};
    struct report_table *inputs = report_table(in, "inputs", NULL, input_columns, 4);
    for (size_t i = 0; i < prediction->models.count; i++) {
        const struct given_model *given = &prediction->models.items[i];
        for (size_t k = 0; k < given->model->origin.input_count; k++) {
            report_cell_text(inputs, prediction->plugin->roles[given->role].name);
            report_cell_text(inputs, given->model->origin.inputs[k].name);
            report_cell_text(inputs, given->model->origin.inputs[k].experiment);
            report_cell_text(inputs, given->model->origin.inputs[k].sha256);
        }
    }
    struct report_section *options = report_section(in, "options", NULL, false);
    for (size_t i = 0; i < scenarios->option_count; i++)
        if (scenarios->options.values[i].text)
            report_text(options, scenarios->table[i].name, NULL, scenarios->options.values[i].text, false);
    prediction_report_table(prediction, 0, in);
    report_rest(prediction, in);
}

/* "16.9 s to 17.2 s", or "" without an interval. The caller frees. */
static char *interval_for_people(const struct prediction *prediction, const struct shape_column *column) {
    const struct prediction_row *row = &prediction->results[0].rows[0];
    if (column->source != VALUE || !row->intervals || isnan(row->intervals[column->index][PREDICTION_LOW]))
        return xstrdup("");
    const double *interval = row->intervals[column->index];
    cleanup_free char *low = report_format(interval[PREDICTION_LOW], column->about.unit, DIGITS);
    cleanup_free char *high = report_format(interval[PREDICTION_HIGH], column->about.unit, DIGITS);
    return xformat("%s to %s", low, high);
}

/* Adds the single row of the result as a list, a line per column with its interval. */
static void add_list(const struct prediction *prediction, struct report_section *in) {
    static const struct column columns[] = {
        {.name = "name"}, {.name = "value"}, {.name = "95 % of draws"}, {.name = "help"}};
    cleanup(shape_clear) struct shape shape = shape_of(prediction, 0);
    struct report_table *table = NULL;
    for (size_t c = 0; c < shape.count; c++) {
        const struct shape_column *column = &shape.columns[c];
        if (column->source != VALUE && (column->source != PARAMETER || column->about.detail))
            continue;
        struct cell cell = cell_of(prediction, column, 0, &prediction->results[0].rows[0], "");
        cleanup_free char *number =
            cell.text ? NULL : report_format(cell.number, column->about.unit, column->about.digits);
        cleanup_free char *interval = interval_for_people(prediction, column);
        if (!table || (column->source == VALUE && column->index == 0))
            table = report_table(in, "list", table ? "" : NULL, columns, 4);
        report_cell_text(table, column->about.name);
        report_cell_text(table, number ? number : cell.text);
        report_cell_text(table, interval);
        report_cell_text(table, column->about.help);
    }
}

static bool has_remark(const struct prediction_result *result, const char *sentence) {
    for (size_t k = 0; k < result->remark_count; k++)
        if (strcmp(result->remarks[k].sentence, sentence) == 0)
            return true;
    return false;
}

/* Adds the remarks of all scenarios; one that neighbouring scenarios share is printed once. */
static void report_remarks(const struct prediction *prediction, bool has_many, struct report_section *in) {
    const struct prediction_result *results = prediction->results;
    for (size_t i = 0; i < prediction->scenarios.count; i++)
        for (size_t k = 0; k < results[i].remark_count; k++) {
            const struct prediction_remark *remark = &results[i].remarks[k];
            const char *name = prediction->scenarios.items[i].name;
            size_t end = i + 1;
            if (i > 0 && has_remark(&results[i - 1], remark->sentence))
                continue;
            while (end < prediction->scenarios.count && has_remark(&results[end], remark->sentence))
                end++;
            cleanup_free char *number = end > i + 1       ? xformat("scenarios %zu to %zu", i + 1, end)
                                        : name && name[0] ? xstrdup(name)
                                                          : xformat("scenario %zu", i + 1);
            report_note(in, remark->warning ? REPORT_WARNING : REPORT_NOTE, "%s%s%s", has_many ? number : "",
                        has_many ? ": " : "", remark->sentence);
        }
}

/* Adds the prediction for people: a list for a single row, otherwise a table; notes and warnings. */
void prediction_report(const struct prediction *prediction, struct report_section *in) {
    bool is_list = prediction->scenarios.count == 1 && prediction->results[0].row_count == 1;
    if (is_list)
        add_list(prediction, in);
    else
        prediction_report_table(prediction, 0, in);
    report_rest(prediction, in);
    report_remarks(prediction, !is_list, in);
    for (size_t i = 0; i < prediction->models.count; i++) {
        const struct given_model *given = &prediction->models.items[i];
        if (given->remark)
            report_note(in, given->grade == REPORT_NOT_USABLE ? REPORT_WARNING : REPORT_NOTE, "%s",
                        given->remark);
    }
}

static void add_columns(struct report_table *list, const char *table, const struct column *column) {
    static const char *const goals[] = {
        [COLUMN_NO_GOAL] = "", [COLUMN_LESS] = "less", [COLUMN_MORE] = "more"};
    for (; column && column->name; column++) {
        report_cell_text(list, table);
        report_cell_text(list, column->name);
        report_cell_text(list, unit_label(column->unit));
        report_cell_text(list, goals[column->goal]);
        report_cell_text(list, column->help);
    }
}

/* Adds the columns of the result and of all tables of the plugin. */
static void report_columns(const struct predict_plugin *plugin, struct report_section *in) {
    static const struct column heads[] = {
        {.name = "table"}, {.name = "column"}, {.name = "unit"}, {.name = "better"}, {.name = "help"}};
    static const char *const shapes[] = {[PREDICT_ROWS] = "rows",
                                         [PREDICT_CURVE] = "curve",
                                         [PREDICT_INTERVALS] = "intervals",
                                         [PREDICT_BARS] = "bars"};
    const struct predict_table *table = PLUGIN_HAS(plugin, tables) ? plugin->tables : NULL;
    struct report_table *list = report_table(in, "columns", "", heads, 5);
    add_columns(list, "result", plugin->columns);
    for (; table && table->name; table++) {
        const struct column whole[] = {{.name = shapes[table->shape], .help = table->help}, {0}};
        add_columns(list, table->name, whole);
        add_columns(list, table->name, table->columns);
    }
    report_print_whole(list);
}

/* Adds the roles, options, parameters and columns of the plugin. */
void prediction_report_parameters(const struct predict_plugin *plugin, struct report_section *in) {
    static const struct column role_columns[] = {{.name = "role"}, {.name = "kinds"}, {.name = "help"}};
    struct report_table *roles = report_table(in, "roles", NULL, role_columns, 3);
    for (const struct predict_role *role = plugin->roles; role->name; role++) {
        cleanup(text_clear) struct text kinds;
        text_init(&kinds, 1 << 16);
        text_append_words(&kinds, role->kinds);
        report_cell_text(roles, role->name);
        report_cell_text(roles, role->is_file ? "a file" : role->kinds ? kinds.bytes : "any");
        report_cell_text(roles, role->help);
    }
    parameters_report(in, "", (const struct plugin_parameter *const[]){plugin->options, plugin->parameters},
                      2);
    report_columns(plugin, in);
}
