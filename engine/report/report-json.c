#include "engine/report/report.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/report-tree.h"

#include <string.h>

static void add_unit(cJSON *object, const char *name, const char *unit) {
    cJSON *units = cJSON_GetObjectItemCaseSensitive(object, "units");
    if (report_has_unit(unit))
        json_add_string(units ? units : json_add_object(object, "units"), name, unit);
}

static void add_sentence(cJSON *object, const char *key, const char *sentence) {
    cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key);
    json_add_string(list ? list : json_add_array(object, key), NULL, sentence);
}

static void add_words(cJSON *array, const char *text) {
    for (const char *at = text; at && *(at += strspn(at, " ")); at += strcspn(at, " "))
        json_add_bytes(array, NULL, at, strcspn(at, " "));
}

static void add_cell(cJSON *row, const struct column *column, const struct cell *cell) {
    if (!column->name || cell->none)
        return;
    if (column->words)
        add_words(json_add_array(row, column->name), cell->text);
    else if (cell->text)
        json_add_string(row, column->name, cell->text);
    else
        json_add_double(row, column->name, cell->number);
}

static void add_table(cJSON *object, const struct report_table *table) {
    if (!table->name)
        return;
    cJSON *list = json_add_array(object, table->name);
    for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count) {
        cJSON *row = json_add_object(list, NULL);
        for (size_t c = 0; c < table->column_count; c++)
            add_cell(row, &table->columns[c], &table->cells[i + c]);
    }
    for (size_t c = 0; c < table->column_count; c++) {
        cleanup_free char *name = xformat("%s.%s", table->name, table->columns[c].name);
        add_unit(object, name, table->columns[c].unit);
    }
}

static void add_numbers(cJSON *object, const char *name, const double *numbers, size_t count) {
    cJSON *list = json_add_array(object, name);
    for (size_t i = 0; i < count; i++)
        json_add_double(list, NULL, numbers[i]);
}

static void add_chart(cJSON *object, const struct chart *chart) {
    json_add_string(object, "title", chart->title);
    json_add_string(object, "x", chart->x_name);
    json_add_string(object, "y", chart->y_name);
    add_numbers(object, "x_marks", chart->x_marks, chart->x_mark_count);
    add_numbers(object, "y_marks", chart->y_marks, chart->y_mark_count);
    cJSON *list = json_add_array(object, "series");
    for (size_t i = 0; i < chart->series_count; i++) {
        const struct chart_series *series = &chart->series[i];
        cJSON *one = json_add_object(list, NULL);
        json_add_boolean(one, "is_line", series->is_line);
        add_numbers(one, "x", series->x, series->count);
        add_numbers(one, "y", series->y, series->count);
    }
}

static void add_section(cJSON *object, const struct report_section *section);

/* A section, or a list of them. */
static void add_member(cJSON *object, const struct report_section *section) {
    if (!section->is_list) {
        add_section(json_add_object(object, section->name), section);
        return;
    }
    cJSON *array = json_add_array(object, section->name);
    for (size_t i = 0; i < section->count; i++)
        add_section(json_add_object(array, NULL), section->items[i].section);
}

/* Adds the items of a section to OBJECT. Items without a name are for people only. */
static void add_section(cJSON *object, const struct report_section *section) {
    for (size_t i = 0; i < section->count; i++) {
        const struct item *item = &section->items[i];
        if (tree_is_pair(item) && !item->name) {
            continue;
        } else if (item->kind == ITEM_BOOLEAN) {
            json_add_boolean(object, item->name, item->number != 0);
        } else if (item->kind == ITEM_NUMBER) {
            json_add_double(object, item->name, item->number);
            add_unit(object, item->name, item->unit);
        } else if (item->kind == ITEM_TEXT) {
            json_add_string(object, item->name, item->text);
        } else if (item->kind == ITEM_VERDICT) {
            json_add_string(object, item->name, item->text);
            json_add_string(object, "grade", report_grade_word(item->grade));
        } else if (item->kind == ITEM_NOTE) {
            add_sentence(object, item->severity == REPORT_WARNING ? "warnings" : "notes", item->text);
        } else if (item->kind == ITEM_TABLE) {
            add_table(object, item->table);
        } else if (item->kind == ITEM_CHART) {
            add_chart(json_add_object(object, item->name), item->chart);
        } else if (item->kind == ITEM_SECTION) {
            add_member(object, item->section);
        }
    }
}

cJSON *report_json(const struct report *report) {
    cJSON *root = cJSON_CreateObject();
    add_section(root, report->root);
    return root;
}
