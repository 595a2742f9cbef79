#include "engine/command-line/plugin-describe.h"

#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/plugin/library.h"
#include "engine/plugin/parameters.h"
#include "engine/predict/prediction.h"

static void describe_fit(struct report_section *to, const struct fit_plugin *fit) {
    const struct plugin_parameter *parameters = fit->parameters;
    if (fit->takes_terms && fit->terms)
        report_text(to, "terms", "terms, by default", fit->terms, false);
    parameters_report(to, "set by --set NAME=VALUE", &parameters, 1);
    if (!parameters || !parameters->name)
        report_note(to, REPORT_LINE, "it has no parameters");
}

int plugin_describe_in(struct report_section *to, const struct installation *installation, const char *kind,
                       const char *name, struct failure *failure) {
    cleanup(library_cleanup) struct library *library = NULL;
    int r = library_open(installation, kind, name, &library, failure);
    if (r < 0)
        return r;
    report_text(to, "method", NULL, library->plugin->name, false);
    report_text(to, "version", NULL, library->plugin->version, false);
    report_text(to, "summary", NULL, library->plugin->summary, false);
    report_text(to, "file", NULL, library->path, false);
    if (library->fit)
        describe_fit(to, library->fit);
    else
        prediction_report_parameters(library->predict, to);
    return 0;
}

int plugin_describe(const struct installation *installation, const char *kind, const char *name, bool json,
                    struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    int r = plugin_describe_in(report->root, installation, kind, name, failure);
    if (r == 0)
        output_report(report, json, false);
    return r;
}
