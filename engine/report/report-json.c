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

static void add_table(cJSON *object, const struct report_table *table) {
    cJSON *list = json_add_array(object, table->name);
    for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count) {
        cJSON *row = json_add_object(list, NULL);
        for (size_t c = 0; c < table->column_count; c++) {
            const struct cell *cell = &table->cells[i + c];
            if (cell->text)
                json_add_string(row, table->columns[c].name, cell->text);
            else
                json_add_double(row, table->columns[c].name, cell->number);
        }
    }
    for (size_t c = 0; c < table->column_count; c++) {
        cleanup_free char *name = xformat("%s.%s", table->name, table->columns[c].name);
        add_unit(object, name, table->columns[c].unit);
    }
}

static void add_section(cJSON *object, const struct report_section *section) {
    for (size_t i = 0; i < section->count; i++) {
        const struct item *item = &section->items[i];
        if (item->kind == ITEM_NUMBER) {
            json_add_double(object, item->name, item->number);
            add_unit(object, item->name, item->unit);
        } else if (item->kind == ITEM_TEXT) {
            json_add_string(object, item->name, item->text);
        } else if (item->kind == ITEM_NOTE) {
            add_sentence(object, item->weight == REPORT_WARNING ? "warnings" : "notes", item->text);
        } else if (item->kind == ITEM_TABLE) {
            add_table(object, item->table);
        } else if (item->kind == ITEM_SECTION) {
            add_section(json_add_object(object, item->section->name), item->section);
        }
    }
}

int report_print_json(const struct report *report, struct text *ret, struct failure *failure) {
    cleanup(json_cleanup) cJSON *root = cJSON_CreateObject();
    add_section(root, report->root);
    int r = json_print(root, true, ret);
    r = r < 0 ? r : text_append_character(ret, '\n');
    return r < 0 ? failure_set(failure, r, "cannot print the report: %s", strerror(-r)) : 0;
}
