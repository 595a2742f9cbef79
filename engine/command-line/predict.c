/* assay predict: models and scenarios in, numbers with intervals out. */
#include "engine/command-line/output.h"
#include "engine/command-line/prediction-command.h"
#include "engine/foundation/cleanup.h"

#include <stdint.h>

/* With its units beside it, where the output is a file. */
static int write_table(const struct prediction *prediction, const char *path, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    return output_table(prediction_report_table(prediction, report->root), path, failure);
}

static int print(const struct prediction *prediction, bool json, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    (json ? prediction_describe : prediction_report)(prediction, report->root);
    return output_report(report, json, false, failure);
}

int command_predict(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *output = verb_value(arguments, "--output");
    if (verb_switch(arguments, "--parameters"))
        return prediction_command_parameters(arguments->installation, arguments->verb->name,
                                             arguments->operands[0], failure);
    int r = prediction_command_make(arguments, &prediction, failure);
    r = r < 0 || !output ? r : write_table(prediction, output, failure);
    return r < 0 ? r : print(prediction, verb_switch(arguments, "--json"), failure);
}
