#include "engine/report/report.h"

#include "engine/documents/json.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/shown.h"
#include "engine/report/tree.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Building */

static char *copy(const char *text) {
    return text ? xstrdup(text) : NULL;
}

static struct item *add(struct report_section *in, enum item_kind kind, bool detail) {
    in->items = xrealloc(in->items, (in->count + 1) * sizeof *in->items);
    struct item *item = &in->items[in->count++];
    *item = (struct item){.kind = kind, .detail = detail};
    return item;
}

struct report *report_new(void) {
    struct report *report = xcalloc(1, sizeof *report);
    report->root = xcalloc(1, sizeof *report->root);
    return report;
}

struct report_section *report_section(struct report_section *in, const char *name, const char *title,
                                      bool detail) {
    struct report_section *section = xcalloc(1, sizeof *section);
    section->name = xstrdup(name);
    section->title = copy(title);
    add(in, ITEM_SECTION, detail)->section = section;
    return section;
}

struct report_section *report_list(struct report_section *in, const char *name) {
    struct report_section *list = report_section(in, name, NULL, true);
    list->is_list = true;
    return list;
}

static struct item *add_pair(struct report_section *in, enum item_kind kind, const char *name,
                             const char *label, bool detail) {
    struct item *item = add(in, kind, detail);
    item->name = copy(name);
    item->label = xstrdup(label ? label : name);
    return item;
}

void report_number(struct report_section *in, const char *name, const char *label, double value,
                   const char *unit, int digits, bool detail) {
    struct item *item = add_pair(in, ITEM_NUMBER, name, label, detail);
    item->unit = copy(unit);
    item->number = value;
    item->digits = digits;
}

void report_text(struct report_section *in, const char *name, const char *label, const char *value,
                 bool detail) {
    add_pair(in, ITEM_TEXT, name, label, detail)->text = copy(value);
}

void report_truth(struct report_section *in, const char *name, const char *label, bool value, bool detail) {
    add_pair(in, ITEM_TRUTH, name, label, detail)->number = value;
}

void report_note(struct report_section *in, enum report_weight weight, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    struct item *item = add(in, ITEM_NOTE, false);
    item->text = xstrdup(sentence);
    item->weight = weight;
}

void report_chart(struct report_section *in, const char *lines) {
    add(in, ITEM_CHART, false)->text = xstrdup(lines);
}

struct report_table *report_table(struct report_section *in, const char *name, const char *title,
                                  const struct report_column *columns, size_t count) {
    struct report_table *table = xcalloc(1, sizeof *table);
    table->name = copy(name);
    table->title = copy(title);
    table->columns = xcalloc(count, sizeof *table->columns);
    table->column_count = count;
    for (size_t i = 0; i < count; i++) {
        table->columns[i] = columns[i];
        table->columns[i].name = copy(columns[i].name);
        table->columns[i].label = xstrdup(columns[i].label ? columns[i].label : columns[i].name);
        table->columns[i].unit = copy(columns[i].unit);
    }
    add(in, ITEM_TABLE, false)->table = table;
    return table;
}

static struct cell *next_cell(struct report_table *table) {
    if (table->cell_count == table->capacity) {
        table->capacity = table->capacity ? 2 * table->capacity : 64;
        table->cells = xrealloc(table->cells, table->capacity * sizeof *table->cells);
    }
    return &table->cells[table->cell_count++];
}

void report_cell(struct report_table *table, double value) {
    *next_cell(table) = (struct cell){.number = value};
}

void report_cell_text(struct report_table *table, const char *text) {
    *next_cell(table) = (struct cell){.text = copy(text), .number = NAN};
}

void report_cell_none(struct report_table *table) {
    *next_cell(table) = (struct cell){.number = NAN, .none = true};
}

void report_print_whole(struct report_table *table) {
    table->is_whole = true;
}

static void section_free(struct report_section *section);

static void table_free(struct report_table *table) {
    for (size_t i = 0; i < table->column_count; i++) {
        free((char *)table->columns[i].name);
        free((char *)table->columns[i].label);
        free((char *)table->columns[i].unit);
    }
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->name), free(table->title), free(table->columns), free(table->cells), free(table);
}

static void section_free(struct report_section *section) {
    for (size_t i = 0; i < section->count; i++) {
        struct item *item = &section->items[i];
        free(item->name), free(item->label), free(item->text), free(item->unit);
        if (item->section)
            section_free(item->section);
        if (item->table)
            table_free(item->table);
    }
    free(section->name), free(section->title), free(section->items), free(section);
}

void report_free(struct report *report) {
    if (!report)
        return;
    section_free(report->root);
    free(report);
}

void report_cleanup(struct report **report) {
    report_free(*report);
}

/* ---- Numbers */

static bool is_unit(const char *unit) {
    return unit && unit[0] && strcmp(unit, "1") != 0;
}

static const char *unit_label(const char *unit) {
    const struct unit *known = is_unit(unit) ? unit_find(unit) : NULL;
    return known ? known->label : is_unit(unit) ? unit : "";
}

static char *format_plain(double value, int digits) {
    char exact[NUMBER_TEXT_SIZE];
    if (!isfinite(value))
        return xstrdup("-");
    if (digits > 0)
        return xformat("%.*g", digits, value);
    number_format_double(value, exact);
    return xstrdup(exact);
}

/* The greatest prefix that leaves at least 1, of the units that take one. */
static double choose_prefix(double value, const char *unit, const char **ret) {
    static const struct {
        double scale;
        const char *prefix;
    } prefixes[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"},  {1e6, "M"},
                    {1e3, "k"},  {1, ""},     {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
    static const char *const takers[] = {"By", "By/s", "s", "Hz", "flop/s", "flop", "W", "J"};
    size_t taker = 0, count = sizeof takers / sizeof *takers;
    *ret = "";
    while (taker < count && !(unit && strcmp(unit, takers[taker]) == 0))
        taker++;
    if (taker == count || value == 0 || !isfinite(value))
        return 1;
    bool is_time = strcmp(unit, "s") == 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        bool allowed = is_time ? prefixes[i].scale <= 1 : prefixes[i].scale >= 1;
        if (allowed && fabs(value) >= prefixes[i].scale) {
            *ret = prefixes[i].prefix;
            return prefixes[i].scale;
        }
    }
    return 1;
}

char *report_format(double value, const char *unit, int digits) {
    const char *prefix;
    double scale = choose_prefix(value, unit, &prefix);
    cleanup_free char *number = format_plain(value / scale, digits);
    const char *label = scale == 1                  ? unit_label(unit)
                        : strcmp(unit, "By") == 0   ? "B"
                        : strcmp(unit, "By/s") == 0 ? "B/s"
                                                    : unit;
    return xformat("%s%s%s%s", number, prefix[0] || label[0] ? " " : "", prefix, label);
}

/* ---- As text */

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

bool tree_is_pair(const struct item *item) {
    return item->kind == ITEM_NUMBER || item->kind == ITEM_TEXT || item->kind == ITEM_TRUTH;
}

char *tree_pair_text(const struct item *item) {
    if (item->kind == ITEM_NUMBER)
        return report_format(item->number, item->unit, item->digits);
    if (item->kind == ITEM_TRUTH)
        return xstrdup(item->number != 0 ? "yes" : "no");
    return xstrdup(item->text ? item->text : "-");
}

char *tree_cell_text(const struct report_column *column, const struct cell *cell) {
    return cell->text ? xstrdup(cell->text) : format_plain(cell->number, column->digits);
}

static char *cell_text(const struct report_table *table, size_t row, size_t column) {
    const struct cell *cell = &table->cells[row * table->column_count + column];
    cleanup_free char *text = tree_cell_text(&table->columns[column], cell);
    return shown_copy(text);
}

static bool is_text_column(const struct report_table *table, size_t rows, size_t column) {
    for (size_t row = 0; row < rows; row++)
        if (table->cells[row * table->column_count + column].text)
            return true;
    return false;
}

/* "duration (s)" */
static char *heading(const struct report_column *column) {
    const char *unit = unit_label(column->unit);
    return xformat("%s%s%s%s", column->label, unit[0] ? " (" : "", unit, unit[0] ? ")" : "");
}

static bool has_column_for_all(const struct report_table *table) {
    for (size_t c = 0; c < table->column_count; c++)
        if (!table->columns[c].detail)
            return true;
    return false;
}

static void print_table(const struct report_table *table, FILE *stream, bool detail) {
    size_t rows = table->cell_count / table->column_count;
    size_t shown = !detail && !table->is_whole && rows > REPORT_ROWS_SHOWN ? REPORT_ROWS_SHOWN : rows;
    cleanup_free int *widths = xcalloc(table->column_count, sizeof *widths);
    if (!detail && !has_column_for_all(table))
        return;
    if (table->title)
        fprintf(stream, "%s\n", table->title);
    for (size_t c = 0; c < table->column_count; c++) {
        cleanup_free char *head = heading(&table->columns[c]);
        widths[c] = width_of(head);
        for (size_t row = 0; row < shown; row++) {
            cleanup_free char *text = cell_text(table, row, c);
            int width = width_of(text);
            widths[c] = width > widths[c] && width <= REPORT_WIDTH_MAX ? width : widths[c];
        }
    }
    for (size_t line = 0; line <= shown; line++) {
        const char *gap = "";
        for (size_t c = 0; c < table->column_count; c++) {
            if (table->columns[c].detail && !detail)
                continue;
            cleanup_free char *text = line ? cell_text(table, line - 1, c) : heading(&table->columns[c]);
            bool is_left = is_text_column(table, shown, c);
            fputs(gap, stream);
            print_padded(stream, text, is_left && c + 1 == table->column_count ? 0 : widths[c], is_left);
            gap = "  ";
        }
        fputc('\n', stream);
    }
    if (shown < rows)
        fprintf(stream, "... and %zu more\n", rows - shown);
}

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
    print_padded(stream, item->label, width, true);
    fprintf(stream, "  %s\n", value);
}

static void print_note(const struct item *item, FILE *stream) {
    static const char *const heads[] = {[REPORT_NOTE] = "note: ", [REPORT_WARNING] = "warning: "};
    fputs(heads[item->weight] ? heads[item->weight] : "", stream);
    shown_print(stream, item->text, true);
    fputc('\n', stream);
}

static void print_section(const struct report_section *section, FILE *stream, bool detail) {
    if (section->title)
        fprintf(stream, "\n%s\n", section->title);
    for (size_t i = 0; i < section->count; i++) {
        const struct item *item = &section->items[i];
        if (item->detail && !detail)
            continue;
        if (tree_is_pair(item))
            print_pair(item, stream, label_width(section, i, detail));
        else if (item->kind == ITEM_NOTE)
            print_note(item, stream);
        else if (item->kind == ITEM_CHART)
            fputs(item->text, stream);
        else if (item->kind == ITEM_TABLE)
            print_table(item->table, stream, detail);
        else
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

/* ---- As JSON */

static void add_unit(cJSON *object, const char *name, const char *unit) {
    cJSON *units = cJSON_GetObjectItemCaseSensitive(object, "units");
    if (is_unit(unit))
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

static void add_cell(cJSON *row, const struct report_column *column, const struct cell *cell) {
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

static void add_section(cJSON *object, const struct report_section *section) {
    for (size_t i = 0; i < section->count; i++) {
        const struct item *item = &section->items[i];
        if (tree_is_pair(item) && !item->name) {
            continue;
        } else if (item->kind == ITEM_TRUTH) {
            json_add_boolean(object, item->name, item->number != 0);
        } else if (item->kind == ITEM_NUMBER) {
            json_add_double(object, item->name, item->number);
            add_unit(object, item->name, item->unit);
        } else if (item->kind == ITEM_TEXT) {
            json_add_string(object, item->name, item->text);
        } else if (item->kind == ITEM_NOTE) {
            add_sentence(object, item->weight == REPORT_WARNING ? "warnings" : "notes", item->text);
        } else if (item->kind == ITEM_TABLE) {
            add_table(object, item->table);
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

int report_print_json(const struct report *report, struct text *ret, struct failure *failure) {
    cleanup(json_cleanup) cJSON *root = report_json(report);
    int r = json_print(root, true, ret);
    r = r < 0 ? r : text_append_character(ret, '\n');
    return r < 0 ? failure_set(failure, r, "cannot print the report: %s", strerror(-r)) : 0;
}
