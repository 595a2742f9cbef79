/* assay fit --methods, and assay fit METHOD --parameters: what fits there are, and what can be set. */
#include "engine/command-line/fit-verbs.h"

#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/plugin/library.h"

#include <stdlib.h>
#include <string.h>

static const char prefix[] = "fit-";

/* One that does not load is listed with the reason. */
int fit_methods(const struct verb_arguments *arguments, struct failure *failure) {
    static const struct report_column columns[] = {
        {.name = "method"}, {.name = "version"}, {.name = "summary"}, {.name = "failure", .label = ""}};
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(report_cleanup) struct report *report = report_new();
    struct installation_names names = {0};
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r : installation_list(&installation, INSTALLATION_PLUGIN, &names, failure);
    struct report_table *table = report_table(report->root, "methods", NULL, columns, 4);
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        cleanup(library_cleanup) struct library *library = NULL;
        struct failure own = {0};
        const char *method = names.items[i] + strlen(prefix);
        if (strncmp(names.items[i], prefix, strlen(prefix)) != 0)
            continue;
        bool is_loaded = library_open(&installation, "fit", method, &library, &own) == 0;
        report_cell_text(table, method);
        report_cell_text(table, is_loaded ? library->plugin->version : "");
        report_cell_text(table, is_loaded ? library->plugin->summary : "");
        report_cell_text(table, is_loaded ? "" : own.text);
    }
    installation_names_clear(&names);
    if (!verb_switch(arguments, "--json"))
        report_note(report->root, REPORT_LINE, "'assay fit METHOD --parameters' lists what can be set");
    return r < 0 ? r : output_report(report, verb_switch(arguments, "--json"), false, failure);
}

/* "none, elimination", "a whole number from 0 to 20", "a column". */
static char *describe_values(const struct plugin_parameter *parameter) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    switch (parameter->type) {
    case PLUGIN_WORD:
        for (size_t w = 0; parameter->words[w]; w++)
            text_printf(&text, "%s%s", w ? ", " : "", parameter->words[w]);
        return text_take(&text);
    case PLUGIN_NUMBER:
    case PLUGIN_NUMBERS:
        text_printf(&text, "%s%s%s", parameter->whole ? "whole " : "",
                    parameter->type == PLUGIN_NUMBER ? "number" : "numbers",
                    parameter->minimum < parameter->maximum ? " from " : "");
        if (parameter->minimum < parameter->maximum) {
            cleanup_free char *low = report_format(parameter->minimum, NULL, 0);
            cleanup_free char *high = report_format(parameter->maximum, NULL, 0);
            text_printf(&text, "%s to %s", low, high);
        }
        return text_take(&text);
    case PLUGIN_TEXT:
        return xstrdup("text");
    case PLUGIN_TEXTS:
        return xstrdup("texts");
    case PLUGIN_COLUMN:
    case PLUGIN_CATEGORY:
        return xstrdup("column");
    case PLUGIN_COLUMNS:
    case PLUGIN_CATEGORIES:
        return xstrdup("columns");
    }
    return xstrdup("");
}

int fit_parameters(const struct verb_arguments *arguments, struct failure *failure) {
    static const struct report_column columns[] = {
        {.name = "name"}, {.name = "values"}, {.name = "unit"}, {.name = "default"}, {.name = "help"}};
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(library_cleanup) struct library *library = NULL;
    cleanup(report_cleanup) struct report *report = report_new();
    if (arguments->operand_count != 1)
        return failure_input(failure, NULL, 0, 0,
                             "--parameters is of one method; expected 'assay fit METHOD --parameters'");
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r : library_open(&installation, "fit", arguments->operands[0], &library, failure);
    if (r < 0)
        return r;
    const struct plugin_parameter *parameter = library->fit->parameters;
    report_text(report->root, "method", NULL, library->plugin->name, false);
    report_text(report->root, "version", NULL, library->plugin->version, false);
    report_text(report->root, "summary", NULL, library->plugin->summary, false);
    if (library->fit->takes_terms && library->fit->terms)
        report_text(report->root, "terms", "terms, by default", library->fit->terms, false);
    struct report_table *table =
        report_table(report->root, "parameters", "set by --set NAME=VALUE", columns, 5);
    for (; parameter && parameter->name; parameter++) {
        cleanup_free char *values = describe_values(parameter);
        report_cell_text(table, parameter->name);
        report_cell_text(table, values);
        report_cell_text(table, parameter->unit && strcmp(parameter->unit, "1") != 0 ? parameter->unit : "");
        report_cell_text(table, parameter->required   ? "must be set"
                                : parameter->fallback ? parameter->fallback
                                                      : "");
        report_cell_text(table, parameter->help);
    }
    return output_report(report, verb_switch(arguments, "--json"), false, failure);
}
