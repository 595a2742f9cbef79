/* assay predict: models and scenarios in, numbers with intervals out. */
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/command-line/predict/prediction-command.h"
#include "engine/foundation/cleanup.h"

#include <stdint.h>
#include <unistd.h>

/* With its units beside it, where the output is a file. */
static int write_table(const struct prediction *prediction, const char *path, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    return output_table(prediction_report_table(prediction, report->root), path, failure);
}

int command_predict(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *output = verb_value(arguments, "--output");
    if (verb_switch(arguments, "--parameters"))
        return plugin_describe(arguments->installation, arguments->verb->name, arguments->operands[0],
                               verb_switch(arguments, "--json"), failure);
    int r = prediction_command_make(arguments, &prediction, failure);
    r = r < 0 || !output ? r : write_table(prediction, output, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = report_new();
    bool json = verb_switch(arguments, "--json");
    if (json || !isatty(STDOUT_FILENO)) /* else the report on the terminal has the warnings */
        prediction_command_warn(prediction);
    (json ? prediction_describe : prediction_report)(prediction, report->root);
    output_report(report, json, false);
    return 0;
}
