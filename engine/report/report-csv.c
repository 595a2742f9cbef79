#include "engine/report/report.h"

#include "archive-format/datapackage.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/report-tree.h"

#include <errno.h>
#include <string.h>

static void append_cell(const struct cell *cell, bool first, struct text *text) {
    if (cell->text)
        csv_append_field(text, first, cell->text, strlen(cell->text));
    else
        csv_append_double(text, first, cell->number);
}

static int append_csv(const struct report_table *table, bool has_head, struct text *text,
                      struct failure *failure) {
    for (size_t c = 0; has_head && c < table->column_count; c++)
        csv_append_field(text, c == 0, table->columns[c].name, strlen(table->columns[c].name));
    int r = has_head ? text_append_character(text, '\n') : 0;
    for (size_t i = 0; r == 0 && i + table->column_count <= table->cell_count; i += table->column_count) {
        for (size_t c = 0; c < table->column_count; c++)
            append_cell(&table->cells[i + c], c == 0, text);
        r = text_append_character(text, '\n');
    }
    return r < 0 ? failure_set(failure, r, "cannot write the table: %s", strerror(-r)) : 0;
}

int report_table_append_csv(const struct report_table *table, struct text *text, struct failure *failure) {
    return append_csv(table, true, text, failure);
}

struct column *report_table_columns(const struct report_table *table, size_t *ret_count) {
    struct column *columns = xcalloc(table->column_count + 1, sizeof *columns);
    for (size_t c = 0; c < table->column_count; c++) {
        columns[c] = table->columns[c];
        bool is_text = c < table->cell_count && table->cells[c].text;
        if (is_text || columns[c].type == COLUMN_UNKNOWN)
            columns[c].type = is_text ? COLUMN_STRING : COLUMN_NUMBER;
        if (is_text && !columns[c].help)
            columns[c].role = COLUMN_ROLE_ID;
    }
    *ret_count = table->column_count;
    return columns;
}

/* Writes the units and types of the columns into PATH.datapackage.json. */
static int write_package(const struct report_table *table, const char *path, struct failure *failure) {
    size_t count;
    cleanup_free struct column *columns = report_table_columns(table, &count);
    cleanup_free char *beside = xformat("%s.datapackage.json", path);
    const struct archive_table described = {
        .path = file_base_name(path), .columns = columns, .column_count = count};
    return archive_write_datapackage(beside, table->name, &described, 1, failure);
}

int report_file_open(struct report_file *file, const char *path, struct failure *failure) {
    *file = (struct report_file){.path = path, .output = FILE_OUTPUT_NONE};
    return file_output_open(path, 0666, &file->output, failure);
}

int report_file_add(struct report_file *file, const struct report_table *table, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    int r = append_csv(table, !file->has_head, &text, failure);
    file->has_head = true;
    return r < 0 ? r : file_output_write(&file->output, text.bytes, text.length, failure);
}

int report_file_commit(struct report_file *file, struct failure *failure) {
    return file_output_commit(&file->output, failure);
}

int report_file_finish(struct report_file *file, const struct report_table *table, struct failure *failure) {
    bool is_file = file_output_is_file(&file->output);
    int r = file_output_commit(&file->output, failure);
    return r < 0 || !is_file ? r : write_package(table, file->path, failure);
}

void report_file_clear(struct report_file *file) {
    file_output_clear(&file->output);
}

int report_table_write(const struct report_table *table, const char *path, struct failure *failure) {
    cleanup(report_file_clear) struct report_file file;
    int r = report_file_open(&file, path, failure);
    r = r < 0 ? r : report_file_add(&file, table, failure);
    return r < 0 ? r : report_file_finish(&file, table, failure);
}
