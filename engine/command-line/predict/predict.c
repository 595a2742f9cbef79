/* assay predict: models and scenarios in, numbers with intervals out. */
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/command-line/predict/prediction-command.h"
#include "engine/foundation/cleanup.h"

#include <stdint.h>
#include <unistd.h>

/* What is done goes to the file. */
static int add_to_file(void *context, const struct prediction *prediction, size_t first,
                       struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    return report_file_add(context, prediction_report_table(prediction, first, report->root), failure);
}

/* With its units beside it. */
static int finish_file(struct report_file *file, const struct prediction *prediction,
                       struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    size_t last = prediction->scenarios.count - 1;
    return report_file_finish(file, prediction_report_table(prediction, last, report->root), failure);
}

int command_predict(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    cleanup(report_file_clear) struct report_file file = {.output = FILE_OUTPUT_NONE};
    const char *output = verb_value(arguments, "--output");
    struct prediction_request request = {.sink = output ? add_to_file : NULL, .context = &file};
    if (verb_switch(arguments, "--parameters"))
        return plugin_describe(arguments->installation, arguments->verb->name, arguments->operands[0],
                               verb_switch(arguments, "--json"), failure);
    int r = prediction_command_check(arguments, failure);
    r = r < 0 || !output ? r : report_file_open(&file, output, failure);
    r = r < 0 ? r : prediction_command_make(arguments, &request, &prediction, failure);
    r = r < 0 || !output ? r : finish_file(&file, prediction, failure);
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
