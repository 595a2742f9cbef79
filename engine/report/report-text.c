#include "engine/report/report.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/report-tree.h"
#include "engine/report/shown.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int width_of(const char *text) { /* characters of UTF-8 */
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_padded(FILE *stream, const char *text, int width, bool left) {
    int blanks = width - width_of(text);
    fprintf(stream, "%s%*s%s", left ? text : "", blanks > 0 ? blanks : 0, "", left ? "" : text);
}

static void print_title(const char *title, FILE *stream) {
    fputc('\n', stream);
    shown_print(stream, title, false);
    fputs(title[0] ? "\n" : "", stream);
}

/* ---- Tables */

static char *cell_text(const struct report_table *table, size_t row, size_t column) {
    const struct cell *cell = &table->cells[row * table->column_count + column];
    cleanup_free char *text = tree_cell_text(&table->columns[column], cell);
    return shown_copy(text);
}

static char *heading(const struct column *column) {
    cleanup_free char *text = column_heading(column);
    return shown_copy(text);
}

/* How a column is printed. */
struct column_form {
    int width;
    bool is_text, is_hidden;
};

/* Finds each column's width, whether it holds texts, and whether it is hidden: a detail, or all its texts are
 * empty. *RET_HAS_HEAD: some shown column has a heading. */
static void measure_columns(const struct report_table *table, size_t rows, bool detail,
                            struct column_form *forms, bool *ret_has_head) {
    *ret_has_head = false; /* a column of empty texts is not printed */
    for (size_t c = 0; c < table->column_count; c++) {
        cleanup_free char *head = heading(&table->columns[c]);
        forms[c].is_hidden = table->columns[c].detail && !detail;
        forms[c].width = width_of(head);
        bool is_empty = rows > 0;
        for (size_t row = 0; row < rows; row++) {
            cleanup_free char *text = cell_text(table, row, c);
            is_empty = is_empty && !text[0];
            forms[c].is_text |= table->cells[row * table->column_count + c].text != NULL;
            int width = width_of(text);
            forms[c].width = width > forms[c].width && width <= REPORT_WIDTH_MAX ? width : forms[c].width;
        }
        forms[c].is_hidden |= is_empty;
        *ret_has_head = *ret_has_head || (head[0] && !forms[c].is_hidden);
    }
}

/* LINE 0 is the head. */
static void print_line(const struct report_table *table, const struct column_form *forms, size_t line,
                       FILE *stream) {
    const char *gap = "";
    size_t last = table->column_count;
    while (last > 0 && forms[last - 1].is_hidden)
        last--;
    for (size_t c = 0; c < last; c++) {
        if (forms[c].is_hidden)
            continue;
        cleanup_free char *text = line ? cell_text(table, line - 1, c) : heading(&table->columns[c]);
        if (forms[c].is_text && c + 1 == last && !text[0])
            break; /* nothing behind the last number of the line */
        fputs(gap, stream);
        print_padded(stream, text, forms[c].is_text && c + 1 == last ? 0 : forms[c].width, forms[c].is_text);
        gap = "  ";
    }
    fputc('\n', stream);
}

static bool has_column_for_all(const struct report_table *table) {
    for (size_t c = 0; c < table->column_count; c++)
        if (!table->columns[c].detail)
            return true;
    return false;
}

/* Prints a table, at most REPORT_ROWS_SHOWN rows of it unless all are wanted. */
static void print_table(const struct report_table *table, FILE *stream, bool detail) {
    size_t rows = table->cell_count / table->column_count;
    size_t shown = !detail && !table->is_whole && rows > REPORT_ROWS_SHOWN ? REPORT_ROWS_SHOWN : rows;
    cleanup_free struct column_form *forms = xcalloc(table->column_count, sizeof *forms);
    bool has_head;
    if (!detail && !has_column_for_all(table))
        return;
    measure_columns(table, shown, detail, forms, &has_head);
    if (table->title)
        print_title(table->title, stream);
    for (size_t line = has_head ? 0 : 1; line <= shown; line++)
        print_line(table, forms, line, stream);
    if (shown < rows)
        fprintf(stream, "... and %zu more\n", rows - shown);
}

/* ---- Numbers and texts */

/* The labels of neighbouring pairs are as wide as the widest of them; what is not printed lies not between.
 */
static int label_width(const struct report_section *section, size_t i, bool detail) {
    int width = 0;
    while (i > 0 && (tree_is_pair(&section->items[i - 1]) || (section->items[i - 1].detail && !detail)))
        i--;
    for (; i < section->count; i++) {
        const struct item *item = &section->items[i];
        if (item->detail && !detail)
            continue;
        if (!tree_is_pair(item))
            break;
        width = width_of(item->label) > width ? width_of(item->label) : width;
    }
    return width;
}

static void print_pair(const struct item *item, FILE *stream, int width) {
    cleanup_free char *text = tree_pair_text(item), *value = shown_copy(text);
    cleanup_free char *label = shown_copy(item->label);
    if (label[0])
        print_padded(stream, label, width, true);
    fprintf(stream, "%s%s\n", label[0] ? "  " : "", value);
}

static void print_note(const struct item *item, FILE *stream) {
    static const char *const before[] = {[REPORT_NOTE] = "note: ", [REPORT_WARNING] = "warning: "};
    fputs(before[item->severity] ? before[item->severity] : "", stream);
    shown_print(stream, item->text, item->severity == REPORT_LINE);
    fputc('\n', stream);
}

static void print_chart(const struct chart *chart, FILE *stream) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    chart_append_text(chart, shown_is_unicode(), &text);
    fwrite(text.bytes, 1, text.length, stream);
}

/* Prints the items of a section; details only if DETAIL; lists are for programs and are left out. */
static void print_section(const struct report_section *section, FILE *stream, bool detail) {
    if (section->title)
        print_title(section->title, stream);
    for (size_t i = 0; i < section->count; i++) {
        const struct item *item = &section->items[i];
        if (item->detail && !detail)
            continue;
        if (tree_is_pair(item))
            print_pair(item, stream, label_width(section, i, detail));
        else if (item->kind == ITEM_NOTE)
            print_note(item, stream);
        else if (item->kind == ITEM_CHART)
            print_chart(item->chart, stream);
        else if (item->kind == ITEM_TABLE)
            print_table(item->table, stream, detail);
        else if (item->kind == ITEM_SECTION && !item->section->is_list)
            print_section(item->section, stream, detail);
    }
}

void report_print(const struct report *report, FILE *stream, bool detail) {
    print_section(report->root, stream, detail);
}

char *report_render(const struct report *report, bool detail) {
    char *bytes = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&bytes, &length);
    if (!stream)
        memory_exhausted();
    report_print(report, stream, detail);
    fclose(stream);
    return bytes;
}
