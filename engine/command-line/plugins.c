/* assay plugins: which fits, predictors and exporters there are, and what one takes and gives. */
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/plugin/library.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"fit", "predict", "export"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The name of a plugin, such as "hpl" of the FILE "predict-hpl"; NULL: it is not of this KIND. */
static const char *name_of(const char *file, const char *kind) {
    size_t length = strlen(kind);
    return strncmp(file, kind, length) == 0 && file[length] == '-' ? file + length + 1 : NULL;
}

/* Lists all plugins. One that does not load is listed with the reason. */
static int list(const struct verb_arguments *arguments, struct failure *failure) {
    static const struct column columns[] = {{.name = "kind"},
                                            {.name = "name"},
                                            {.name = "version"},
                                            {.name = "summary"},
                                            {.name = "failure", .label = ""}};
    cleanup(report_cleanup) struct report *report = report_new();
    cleanup(installation_names_clear) struct installation_names names = {0};
    int r = installation_list(arguments->installation, INSTALLATION_PLUGIN, &names, failure);
    if (r < 0)
        return r;
    struct report_table *table = report_table(report->root, "plugins", NULL, columns, 5);
    for (size_t i = 0; i < KINDS * names.count; i++) {
        cleanup(library_cleanup) struct library *library = NULL;
        struct failure own = {0};
        const char *kind = kinds[i / names.count], *name = name_of(names.items[i % names.count], kind);
        if (!name)
            continue;
        bool is_loaded = library_open(arguments->installation, kind, name, &library, &own) == 0;
        report_cell_text(table, kind);
        report_cell_text(table, name);
        report_cell_text(table, is_loaded ? library->plugin->version : "");
        report_cell_text(table, is_loaded ? library->plugin->summary : "");
        report_cell_text(table, is_loaded ? "" : own.text);
    }
    report_print_whole(table);
    if (!verb_switch(arguments, "--json"))
        report_note(report->root, REPORT_LINE,
                    "'assay plugins show NAME' lists a plugin's inputs, parameters and tables");
    output_report(report, verb_switch(arguments, "--json"), false);
    return 0;
}

/* The file called KIND-NAME, or the plugins of all kinds that are called NAME. */
static int show(const struct verb_arguments *arguments, struct failure *failure) {
    const char *wanted = arguments->operands[1];
    cleanup(report_cleanup) struct report *report = report_new();
    cleanup(installation_names_clear) struct installation_names names = {0};
    const char *found[KINDS][2]; /* kind and name */
    size_t count = 0;
    int r = installation_list(arguments->installation, INSTALLATION_PLUGIN, &names, failure);
    for (size_t i = 0; r == 0 && i < KINDS * names.count; i++) {
        const char *file = names.items[i % names.count], *kind = kinds[i / names.count],
                   *name = name_of(file, kind);
        if (name && count < KINDS && (strcmp(name, wanted) == 0 || strcmp(file, wanted) == 0)) {
            found[count][0] = kind;
            found[count++][1] = name;
        }
    }
    if (r == 0 && count == 0)
        return failure_input(failure, NULL, 0, 0, "there is no plugin '%.64s'; 'assay plugins' lists all",
                             wanted);
    for (size_t i = 0; r == 0 && i < count; i++) {
        cleanup_free char *file = xformat("%s-%s", found[i][0], found[i][1]);
        struct report_section *in =
            count == 1 ? report->root : report_section(report->root, file, file, false);
        r = plugin_describe_in(in, arguments->installation, found[i][0], found[i][1], failure);
    }
    if (r == 0)
        output_report(report, verb_switch(arguments, "--json"), false);
    return r;
}

int command_plugins(const struct verb_arguments *arguments, struct failure *failure) {
    static const struct verb_action actions[] = {
        {"list", 0, 0, "no operands", "--json", list},
        {"show", 1, 1, "the name of a plugin, such as hpl or predict-hpl", "--json", show},
        {0},
    };
    return arguments->operand_count == 0
               ? list(arguments, failure)
               : verb_run_action(arguments, actions, arguments->operands[0], failure);
}
