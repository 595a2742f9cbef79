/* assay fit --methods, and assay fit METHOD --parameters: what fits there are, and what can be set. */
#include "engine/command-line/fit/verbs.h"

#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/installation.h"
#include "engine/plugin/library.h"

#include <stdlib.h>
#include <string.h>

static const char prefix[] = "fit-";

/* One that does not load is listed with the reason. */
int fit_methods(const struct verb_arguments *arguments, struct failure *failure) {
    static const struct column columns[] = {
        {.name = "method"}, {.name = "version"}, {.name = "summary"}, {.name = "failure", .label = ""}};
    cleanup(report_cleanup) struct report *report = report_new();
    struct installation_names names = {0};
    int r = installation_list(arguments->installation, INSTALLATION_PLUGIN, &names, failure);
    struct report_table *table = report_table(report->root, "methods", NULL, columns, 4);
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        cleanup(library_cleanup) struct library *library = NULL;
        struct failure own = {0};
        const char *method = names.items[i] + strlen(prefix);
        if (strncmp(names.items[i], prefix, strlen(prefix)) != 0)
            continue;
        bool is_loaded = library_open(arguments->installation, "fit", method, &library, &own) == 0;
        report_cell_text(table, method);
        report_cell_text(table, is_loaded ? library->plugin->version : "");
        report_cell_text(table, is_loaded ? library->plugin->summary : "");
        report_cell_text(table, is_loaded ? "" : own.text);
    }
    installation_names_clear(&names);
    if (!verb_switch(arguments, "--json"))
        report_note(report->root, REPORT_LINE, "'assay fit METHOD --parameters' lists what can be set");
    if (r == 0)
        output_report(report, verb_switch(arguments, "--json"), false);
    return r;
}

int fit_parameters(const struct verb_arguments *arguments, struct failure *failure) {
    if (arguments->operand_count != 1)
        return failure_input(failure, NULL, 0, 0,
                             "--parameters is of one method; expected 'assay fit METHOD --parameters'");
    return plugin_describe(arguments->installation, "fit", arguments->operands[0],
                           verb_switch(arguments, "--json"), failure);
}
