/* assay plugins: which fits, predictors and exporters there are, and what one takes and gives. */
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"
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

/* A plugin that does not load is listed with the reason. */
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
        report_note(report->root, REPORT_LINE, "'assay plugins show NAME' has inputs, parameters and tables");
    output_report(report, verb_switch(arguments, "--json"), false);
    return 0;
}

/* The file called KIND-NAME, or, where only one kind has it, NAME. */
static int show(const struct verb_arguments *arguments, struct failure *failure) {
    const char *wanted = arguments->operands[1], *found = "fit", *name = wanted;
    cleanup(installation_names_clear) struct installation_names names = {0};
    cleanup(text_clear) struct text list;
    size_t count = 0;
    int r = installation_list(arguments->installation, INSTALLATION_PLUGIN, &names, failure);
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; r == 0 && i < KINDS * names.count; i++) {
        const char *file = names.items[i % names.count], *of = name_of(file, kinds[i / names.count]);
        if (!of || (strcmp(of, wanted) != 0 && strcmp(file, wanted) != 0))
            continue;
        (void)text_printf(&list, "%s%s", count++ ? ", " : "", file);
        found = kinds[i / names.count];
        name = of;
    }
    if (r == 0 && count != 1)
        return failure_input(failure, NULL, 0, 0,
                             count ? "'%.64s' may be one of %s; give that name"
                                   : "there is no plugin '%.64s'%s; 'assay plugins' lists all",
                             wanted, list.bytes);
    return r < 0 ? r
                 : plugin_describe(arguments->installation, found, name, verb_switch(arguments, "--json"),
                                   failure);
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
