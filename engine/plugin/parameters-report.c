#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/plugin/parameters.h"
#include "engine/report/report.h"

#include <stdint.h>

static void append_range(struct text *text, const char *before, double low, double high, const char *unit) {
    cleanup_free char *from = report_format(low, unit, 0), *to = report_format(high, unit, 0);
    if (low != 0 || high != 0)
        text_printf(text, "%s%s to %s", before, from, to);
}

/* The values that a parameter accepts, in words: "none, elimination", "whole number from 0 to 20; plausible 4
 * to 8", "column". The caller frees. */
static char *describe_values(const struct plugin_parameter *parameter) {
    static const char *const types[] = {
        [PLUGIN_NUMBER] = "number",   [PLUGIN_NUMBERS] = "numbers", [PLUGIN_WORD] = "",
        [PLUGIN_TEXT] = "text",       [PLUGIN_TEXTS] = "texts",     [PLUGIN_COLUMN] = "column",
        [PLUGIN_COLUMNS] = "columns", [PLUGIN_CATEGORY] = "column", [PLUGIN_CATEGORIES] = "columns"};
    struct text text;
    text_init(&text, SIZE_MAX / 4);
    text_printf(&text, "%s%s", parameter->integer ? "whole " : "", types[parameter->type]);
    if (parameter->type == PLUGIN_WORD)
        text_append_words(&text, parameter->choices);
    append_range(&text, " from ", parameter->minimum, parameter->maximum, parameter->unit);
    append_range(&text, "; plausible ", parameter->plausible_minimum, parameter->plausible_maximum,
                 parameter->unit);
    return text_take(&text);
}

/* The default of a parameter, or the names by which its column is found. The caller frees. */
static char *describe_default(const struct plugin_parameter *parameter) {
    if (parameter->default_text || parameter->type == PLUGIN_WORD || !parameter->choices)
        return xstrdup(parameter->default_text ? parameter->default_text
                       : parameter->required   ? "must be set"
                                               : "");
    struct text text;
    text_init(&text, SIZE_MAX / 4);
    text_append_words(&text, parameter->choices);
    return text_take(&text);
}

/* Adds a table of the parameters in COUNT tables, with units, values, defaults and help. */
void parameters_report(struct report_section *in, const char *title,
                       const struct plugin_parameter *const *tables, size_t count) {
    static const struct column columns[] = {
        {.name = "name"}, {.name = "unit"}, {.name = "values"}, {.name = "default"}, {.name = "help"}};
    struct report_table *table = report_table(in, "parameters", title, columns, 5);
    for (size_t t = 0; t < count; t++)
        for (const struct plugin_parameter *at = tables[t]; at && at->name; at++) {
            cleanup_free char *values = describe_values(at), *default_text = describe_default(at);
            report_cell_text(table, at->name);
            report_cell_text(table, unit_label(at->unit));
            report_cell_text(table, values);
            report_cell_text(table, default_text);
            report_cell_text(table, at->help);
        }
}
