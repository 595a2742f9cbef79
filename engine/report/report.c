#include "engine/report/report.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/report-tree.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Building */

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
    section->title = xstrdup_or_null(title);
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
    item->name = xstrdup_or_null(name);
    item->label = xstrdup(label ? label : name);
    return item;
}

void report_number(struct report_section *in, const char *name, const char *label, double value,
                   const char *unit, int digits, bool detail) {
    struct item *item = add_pair(in, ITEM_NUMBER, name, label, detail);
    item->unit = xstrdup_or_null(unit);
    item->number = value;
    item->digits = digits;
}

void report_text(struct report_section *in, const char *name, const char *label, const char *value,
                 bool detail) {
    add_pair(in, ITEM_TEXT, name, label, detail)->text = xstrdup_or_null(value);
}

void report_boolean(struct report_section *in, const char *name, const char *label, bool value, bool detail) {
    add_pair(in, ITEM_BOOLEAN, name, label, detail)->number = value;
}

void report_verdict(struct report_section *in, const char *name, enum report_grade grade,
                    const char *sentence) {
    struct item *item = add_pair(in, ITEM_VERDICT, name, "", false);
    item->text = xstrdup(sentence);
    item->grade = grade;
}

const char *report_grade_word(enum report_grade grade) {
    static const char *const words[] = {
        [REPORT_UNKNOWN] = "unknown", [REPORT_USABLE] = "usable", [REPORT_NOT_USABLE] = "not usable"};
    return words[grade];
}

void report_note(struct report_section *in, enum report_severity severity, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    struct item *item = add(in, ITEM_NOTE, false);
    item->text = xstrdup(sentence);
    item->severity = severity;
}

void report_chart(struct report_section *in, const char *name, const struct chart *chart) {
    struct item *item = add(in, ITEM_CHART, false);
    item->name = xstrdup(name);
    item->chart = chart_copy(chart);
}

void report_picture(struct report_section *in, const char *title, const char *svg) {
    struct item *item = add(in, ITEM_PICTURE, true);
    item->label = xstrdup(title);
    item->text = xstrdup(svg);
}

void report_move(struct report_section *to, struct report_section *from) {
    for (size_t i = 0; i < from->count; i++)
        *add(to, from->items[i].kind, false) = from->items[i];
    from->count = 0;
}

struct report_table *report_table(struct report_section *in, const char *name, const char *title,
                                  const struct column *columns, size_t count) {
    struct report_table *table = xcalloc(1, sizeof *table);
    table->name = xstrdup_or_null(name);
    table->title = xstrdup_or_null(title);
    table->columns = xcalloc(count, sizeof *table->columns);
    table->column_count = count;
    for (size_t i = 0; i < count; i++)
        table->columns[i] = column_copy(&columns[i]);
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
    *next_cell(table) = (struct cell){.text = xstrdup_or_null(text), .number = NAN};
}

void report_cell_none(struct report_table *table) {
    *next_cell(table) = (struct cell){.number = NAN, .none = true};
}

void report_print_whole(struct report_table *table) {
    table->is_whole = true;
}

static void section_free(struct report_section *section);

static void table_free(struct report_table *table) {
    for (size_t i = 0; i < table->column_count; i++)
        column_clear(&table->columns[i]);
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
        chart_free(item->chart);
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

bool report_has_unit(const char *unit) {
    return unit && unit[0] && strcmp(unit, "1") != 0;
}

/* A number with DIGITS significant digits, 0: with all of them; "-" for what is not finite. The caller frees.
 */
static char *report_format_plain(double value, int digits) {
    char exact[NUMBER_TEXT_SIZE];
    if (!isfinite(value))
        return xstrdup("-");
    if (digits > 0) /* 14733 rather than 1.473e+04 */
        return fabs(value) < 1e7 && fabs(value) >= pow(10, digits) - 0.5 ? xformat("%.0f", value)
                                                                         : xformat("%.*g", digits, value);
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
    if (!isfinite(value))
        return report_format_plain(value, digits);
    cleanup_free char *number = report_format_plain(value / scale, digits);
    const char *label = scale == 1                  ? unit_label(unit)
                        : strcmp(unit, "By") == 0   ? "B"
                        : strcmp(unit, "By/s") == 0 ? "B/s"
                                                    : unit;
    return xformat("%s%s%s%s", number, prefix[0] || label[0] ? " " : "", prefix, label);
}

/* ---- For people */

bool tree_is_pair(const struct item *item) {
    return item->kind == ITEM_NUMBER || item->kind == ITEM_TEXT || item->kind == ITEM_BOOLEAN ||
           item->kind == ITEM_VERDICT;
}

char *tree_pair_text(const struct item *item) {
    if (item->kind == ITEM_NUMBER)
        return report_format(item->number, item->unit, item->digits);
    if (item->kind == ITEM_BOOLEAN)
        return xstrdup(item->number != 0 ? "yes" : "no");
    return xstrdup(item->text ? item->text : "-");
}

char *tree_cell_text(const struct column *column, const struct cell *cell) {
    return cell->text ? xstrdup(cell->text) : report_format_plain(cell->number, column->digits);
}
