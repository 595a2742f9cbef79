#include "engine/predict/picture.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/predict/bars.h"
#include "engine/predict/gantt.h"
#include "engine/report/chart.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MAX = 64 }; /* of a chart */

static enum picture_form form_of(const char *file) {
    static const char *const endings[] = {
        [PICTURE_CSV] = ".csv", [PICTURE_SVG] = ".svg", [PICTURE_HTML] = ".html", [PICTURE_TRACE] = ".json"};
    const char *ending = strrchr(file, '.');
    for (enum picture_form form = PICTURE_CSV; ending && form <= PICTURE_TRACE; form++)
        if (strcmp(ending, endings[form]) == 0)
            return form;
    return PICTURE_LINES;
}

/* Why trace events are not possible for this picture: they need a table of intervals. The caller frees. */
static char *explain_no_intervals(const struct prediction *prediction) {
    cleanup(text_clear) struct text names;
    text_init(&names, FAILURE_TEXT_SIZE / 2);
    for (size_t t = 0; t < prediction->table_count; t++)
        if (prediction->tables[t].table->shape == PREDICT_INTERVALS) /* what is too long is cut */
            (void)text_printf(&names, "%s%s", names.length ? ", " : "", prediction->tables[t].table->name);
    return names.length > 0 ? xformat("trace events need a table of time intervals (%s); ", names.bytes)
                            : xformat("trace events need a table of time intervals, which %s-%s does not "
                                      "have; ",
                                      prediction->prefix, prediction->library->plugin->name);
}

/* Reads --plot NAME or NAME=FILE: which table or column, and in which form. -EINVAL: no such table, or it
 * cannot have that form. */
int picture_read(const struct prediction *prediction, const char *word, struct picture *ret,
                 struct failure *failure) {
    const struct column *columns = prediction->plugin->columns;
    cleanup(picture_clear) struct picture picture = {.table = SIZE_MAX, .column = SIZE_MAX};
    picture.name = xstrndup(word, strcspn(word, "="));
    picture.file = strchr(word, '=') ? strchr(word, '=') + 1 : NULL;
    picture.form = picture.file ? form_of(picture.file) : PICTURE_LINES;
    for (size_t t = 0; t < prediction->table_count; t++)
        if (strcmp(prediction->tables[t].table->name, picture.name) == 0)
            picture.table = t;
    for (size_t c = 0; picture.table == SIZE_MAX && c < prediction->column_count; c++)
        if (columns[c].unit && strcmp(columns[c].name, picture.name) == 0)
            picture.column = c;
    if (picture.table == SIZE_MAX && picture.column == SIZE_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "%s-%s has no table and no column of numbers called '%.64s'; 'assay %s "
                             "%s --help' lists them",
                             prediction->prefix, prediction->library->plugin->name, picture.name,
                             prediction->prefix, prediction->library->plugin->name);
    static const char *const forms[] = {[PREDICT_ROWS] = ".csv",
                                        [PREDICT_CURVE] = ".csv .svg .html",
                                        [PREDICT_INTERVALS] = ".csv .svg .html .json",
                                        [PREDICT_BARS] = ".csv .svg .html"};
    const char *allowed =
        picture.table < SIZE_MAX ? forms[prediction->tables[picture.table].table->shape] : ".svg .html";
    const char *ending = picture.file ? strrchr(picture.file, '.') : NULL;
    if (picture.file && (picture.form == PICTURE_LINES || !strstr(allowed, ending))) {
        cleanup_free char *reason =
            picture.form == PICTURE_TRACE ? explain_no_intervals(prediction) : xstrdup("");
        return failure_input(failure, NULL, 0, 0,
                             "'%.64s' cannot be written into '%.200s'; %sexpected a file name that "
                             "ends in one of %s",
                             picture.name, picture.file, reason, allowed);
    }
    *ret = picture;
    picture.name = NULL;
    return 0;
}

void picture_clear(struct picture *picture) {
    free(picture->name);
}

/* ---- Curves */

/* Charts of as many series each, and their memory. */
struct drawing {
    const struct column *columns; /* one a chart */
    struct chart *charts;
    size_t count;
    size_t series_count; /* of each chart */
    char **series_names;
    struct chart_series *series;
    double *numbers;
    char **names;
};

static void drawing_clear(struct drawing *drawing) {
    for (size_t i = 0; drawing->names && i <= drawing->count; i++)
        free(drawing->names[i]);
    for (size_t i = 0; drawing->series_names && i < drawing->series_count; i++)
        free(drawing->series_names[i]);
    free(drawing->series_names), free(drawing->charts), free(drawing->series), free(drawing->numbers),
        free(drawing->names);
}

static char *axis_name(const char *name, const char *unit) {
    const char *label = unit_label(unit);
    return label[0] ? xformat("%s, %s", name, label) : xstrdup(name);
}

/* Allocates COUNT charts with SERIES series each, and NUMBERS numbers. X_NAME is owned from now on; COLUMNS:
 * one for each chart. */
static void drawing_init(struct drawing *drawing, const char *title, char *x_name,
                         const struct column *columns, size_t count, size_t series, size_t numbers) {
    *drawing = (struct drawing){.columns = columns,
                                .charts = xcalloc(count + 1, sizeof *drawing->charts),
                                .count = count,
                                .series_count = series,
                                .series_names = xcalloc(series + 1, sizeof *drawing->series_names),
                                .series = xcalloc(count * series + 1, sizeof *drawing->series),
                                .numbers = xcalloc(numbers + 1, sizeof *drawing->numbers),
                                .names = xcalloc(count + 1, sizeof *drawing->names)};
    drawing->names[count] = x_name;
    for (size_t i = 0; i < count; i++) {
        drawing->names[i] = axis_name(columns[i].name, columns[i].unit);
        drawing->charts[i] = (struct chart){.title = title,
                                            .x_name = x_name,
                                            .y_name = drawing->names[i],
                                            .series = drawing->series + i * series,
                                            .series_count = series};
    }
}

/* Whether two scenarios have the same value of a parameter; unset values and texts count as equal numbers. */
static bool is_same(const struct plugin_value *one, const struct plugin_value *other) {
    if (isnan(one->number) && isnan(other->number))
        return strcmp(one->text ? one->text : "", other->text ? other->text : "") == 0;
    return one->number == other->number;
}

/* Appends BEFORE and "bandwidth = 10 GB/s", parameter P of a scenario. */
static void append_value(const struct scenario *of, size_t p, const char *before, struct text *text) {
    const char *value = of->parameters.values[p].text, *unit = of->parameters.table[p].unit;
    double number;
    bool is_bare = unit && value && number_parse_double(value, strlen(value), &number);
    const char *label = is_bare ? unit_label(unit) : "";
    (void)text_printf(text, "%s%s = %s%s%s", before, of->parameters.table[p].name, value ? value : "",
                      label[0] ? " " : "", label);
}

/* A name as "scenario 2: NB = 128, P = 4", with the parameters that differ from the first scenario's (for the
 * first, from the second's). The caller frees. */
static char *name_scenario(const struct prediction *prediction, size_t scenario) {
    const struct scenario *items = prediction->scenarios.items, *of = &items[scenario];
    size_t other = scenario > 0 ? 0 : prediction->scenarios.count > 1;
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    (void)text_printf(&text, "scenario %zu%s%s", of->number, of->name ? ", " : "", of->name ? of->name : "");
    const char *before = ": ";
    for (size_t p = prediction->scenarios.option_count; p < of->parameters.count; p++)
        if (!is_same(&of->parameters.values[p], &items[other].parameters.values[p])) {
            append_value(of, p, before, &text);
            before = ", ";
        }
    return text_take(&text);
}

/* Draws a chart for each y of table T, with a line for each scenario. */
static void draw_curves(const struct prediction *prediction, size_t t, struct drawing *drawing) {
    const struct prediction_table *table = &prediction->tables[t];
    size_t scenarios = prediction->scenarios.count, columns = table->column_count, numbers = 0;
    for (size_t i = 0; i < scenarios; i++)
        numbers += prediction->results[i].tables[t].count * columns;
    drawing_init(drawing, table->table->help, axis_name(table->columns[0].name, table->columns[0].unit),
                 table->columns + 1, columns - 1, scenarios, numbers);
    double *at = drawing->numbers;
    for (size_t i = 0; i < scenarios; i++) {
        const struct prediction_rows *rows = &prediction->results[i].tables[t];
        drawing->series_names[i] = name_scenario(prediction, i);
        for (size_t k = 0; k < rows->count * columns; k++)
            at[k % columns * rows->count + k / columns] = rows->items[k / columns].values[k % columns];
        for (size_t c = 1; c < columns; c++)
            drawing->series[(c - 1) * scenarios + i] =
                (struct chart_series){at, at + c * rows->count, rows->count, true, drawing->series_names[i]};
        at += rows->count * columns;
    }
}

/* Whether all parameters but EXCEPT are the same in two scenarios. */
static bool is_same_but(const struct prediction *prediction, size_t one, size_t other, size_t except) {
    const struct parameters *a = &prediction->scenarios.items[one].parameters,
                            *b = &prediction->scenarios.items[other].parameters;
    for (size_t p = prediction->scenarios.option_count; p < a->count; p++)
        if (p != except && !is_same(&a->values[p], &b->values[p]))
            return false;
    return true;
}

/* The first parameter that varies over the scenarios and is a number, or SIZE_MAX. */
static size_t find_varying(const struct prediction *prediction) {
    const struct scenario *items = prediction->scenarios.items;
    for (size_t p = prediction->scenarios.option_count; p < items[0].parameters.count; p++)
        for (size_t i = 1;
             prediction->scenarios.table[p].type == PLUGIN_NUMBER && i < prediction->scenarios.count; i++)
            if (!is_same(&items[i].parameters.values[p], &items[0].parameters.values[p]))
                return p;
    return SIZE_MAX;
}

/* Groups scenarios that differ in PARAMETER only: FIRST is the first scenario of each group, GROUP_OF the
 * group of each scenario. Returns the number of groups; 0: more than MOST. */
static size_t find_groups(const struct prediction *prediction, size_t parameter, size_t most, size_t *first,
                          size_t *group_of) {
    size_t count = 0;
    for (size_t i = 0; i < prediction->scenarios.count; i++) {
        size_t g = 0;
        while (g < count && !is_same_but(prediction, first[g], i, parameter))
            g++;
        if (g == count && count++ < most)
            first[g] = i;
        if (count > most)
            return 0;
        group_of[i] = g;
    }
    return count;
}

/* A name as "NB = 128, P = 4": the parameters but EXCEPT that differ between the groups; "predicted" if none
 * does. The caller frees. */
static char *name_group(const struct prediction *prediction, const size_t *first, size_t count, size_t group,
                        size_t except) {
    const struct scenario *items = prediction->scenarios.items;
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    for (size_t p = prediction->scenarios.option_count; p < items[0].parameters.count; p++) {
        size_t g = 1;
        while (g < count &&
               is_same(&items[first[g]].parameters.values[p], &items[first[0]].parameters.values[p]))
            g++;
        if (p != except && g < count)
            append_value(&items[first[group]], p, text.length ? ", " : "", &text);
    }
    return text.length ? text_take(&text) : xstrdup("predicted");
}

/* Draws COLUMN over the first parameter that varies, with the ends of its intervals, a line for each value of
 * other parameters; points where lines would go back or be too many. -EINVAL: no number varies. */
static int draw_column(const struct prediction *prediction, size_t column, struct drawing *drawing,
                       struct failure *failure) {
    static const char *const ends[] = {"", ", 2.5 % of the draws are below",
                                       ", 2.5 % of the draws are above"};
    const struct column *of = &prediction->plugin->columns[column];
    size_t parameter = find_varying(prediction), rows = 0, scenarios = prediction->scenarios.count,
           lines = prediction->draws > 0 && !of->exact ? 3 : 1, first[SERIES_MAX] = {0};
    if (parameter == SIZE_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "cannot draw '%s': no number differs between the scenarios; give a "
                             "parameter several values, such as --set NAME=LOW..HIGH:STEP",
                             of->name);
    cleanup_free size_t *group_of = xcalloc(scenarios + 1, sizeof *group_of);
    size_t groups = find_groups(prediction, parameter, SERIES_MAX / lines, first, group_of);
    bool are_joined = groups > 0;
    if (!are_joined || groups == scenarios) { /* all that varies does so together: Q = 64/P */
        groups = 1;
        memset(group_of, 0, scenarios * sizeof *group_of);
    }
    for (size_t i = 0; i < scenarios; i++)
        rows += prediction->results[i].row_count;
    const struct plugin_parameter *over = &prediction->scenarios.table[parameter];
    drawing_init(drawing, of->help, axis_name(over->name, over->unit), of, 1, groups * lines,
                 rows * (lines + 1));
    double *x = drawing->numbers;
    for (size_t g = 0; g < groups; g++) {
        bool is_line = are_joined;
        size_t count = 0;
        for (size_t i = 0; i < scenarios; i++)
            for (size_t k = 0; group_of[i] == g && k < prediction->results[i].row_count; k++, count++) {
                const struct prediction_row *row = &prediction->results[i].rows[k];
                x[count] = prediction->scenarios.items[i].parameters.values[parameter].number;
                is_line = is_line && (count == 0 || x[count] > x[count - 1]);
                x[rows + count] = row->values[column];
                for (size_t l = 1; l < lines; l++)
                    x[(l + 1) * rows + count] = row->intervals[column][PREDICTION_MEAN + l];
            }
        cleanup_free char *name =
            are_joined ? name_group(prediction, first, groups, g, parameter) : xstrdup("predicted");
        for (size_t l = 0; l < lines; l++) {
            drawing->series_names[g * lines + l] = xformat("%s%s", name, ends[l]);
            drawing->series[g * lines + l] = (struct chart_series){x, x + (l + 1) * rows, count, is_line,
                                                                   drawing->series_names[g * lines + l]};
        }
        x += count;
    }
    return 0;
}

/* ---- Any picture */

/* Adds charts to SECTION, or, for a file, appends an element <svg> or trace events to RET. -EINVAL: too many
 * scenarios. */
static int append_picture(const struct prediction *prediction, const struct picture *picture,
                          struct report_section *section, struct text *ret, struct failure *failure) {
    cleanup(drawing_clear) struct drawing drawing = {0};
    const struct prediction_table *table =
        picture->table < SIZE_MAX ? &prediction->tables[picture->table] : NULL;
    bool is_curve = !table || table->table->shape == PREDICT_CURVE;
    size_t scenarios = prediction->scenarios.count, most = is_curve ? SERIES_MAX : 1;
    if (picture->form == PICTURE_TRACE) {
        gantt_append_trace(prediction, picture->table, ret);
        return 0;
    }
    if (table && scenarios > most)
        return failure_input(failure, NULL, 0, 0,
                             "cannot draw '%s' for %zu scenarios; expected at most %zu scenarios, "
                             "or a file for all: %s=FILE%s",
                             picture->name, scenarios, most, picture->name,
                             table->table->shape == PREDICT_INTERVALS ? ".json" : ".csv");
    if (!is_curve) {
        const struct prediction_rows *rows = &prediction->results[0].tables[picture->table];
        if (table->table->shape == PREDICT_BARS) {
            if (picture->form == PICTURE_LINES)
                bars_report(rows, table->columns, section);
            else
                bars_append_svg(rows, table->columns, table->table->help, ret);
            return 0;
        }
        if (picture->form != PICTURE_LINES)
            return gantt_append_svg(rows, table->table->help, ret, failure);
        gantt_report(rows, section);
        return 0;
    }
    if (table)
        draw_curves(prediction, picture->table, &drawing);
    int r = table ? 0 : draw_column(prediction, picture->column, &drawing, failure);
    for (size_t i = 0; r == 0 && picture->form == PICTURE_LINES && i < drawing.count; i++)
        report_chart(section, drawing.columns[i].name, &drawing.charts[i]);
    if (r == 0 && picture->form != PICTURE_LINES)
        chart_append_svg(drawing.charts, drawing.count, ret);
    return r;
}

/* Draws the picture that WORD asks for, to SECTION or into its file. */
int picture_draw(const struct prediction *prediction, const char *word, struct report_section *section,
                 struct failure *failure) {
    cleanup(picture_clear) struct picture picture = {0};
    cleanup(report_cleanup) struct report *report = report_new(); /* of what is not shown */
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, SIZE_MAX / 4);
    int r = picture_read(prediction, word, &picture, failure);
    bool is_list =
        r == 0 && picture.table < SIZE_MAX && prediction->tables[picture.table].table->shape == PREDICT_ROWS;
    if (r == 0 && (picture.form == PICTURE_CSV || is_list)) {
        struct report_table *table =
            prediction_report_rows(prediction, picture.table, picture.file ? report->root : section);
        return picture.file ? report_table_write(table, picture.file, failure) : 0;
    }
    struct report_section *in =
        r == 0 && picture.form == PICTURE_LINES ? report_section(section, picture.name, "", false) : NULL;
    if (picture.form == PICTURE_HTML)
        text_append_string(&bytes,
                           "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>assay predict</title>\n");
    r = r < 0 ? r : append_picture(prediction, &picture, in, &bytes, failure);
    return r < 0 || !picture.file ? r : file_write_output(picture.file, bytes.bytes, bytes.length, failure);
}
