/* assay export: models in, files for other programs out, or what no testbed has, drawn from models. */
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/command-line/predict/prediction-command.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/report/shown.h"

#include <stdint.h>
#include <stdio.h>

int command_export(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *output = verb_value(arguments, "--output");
    if (verb_switch(arguments, "--parameters"))
        return plugin_describe(arguments->installation, arguments->verb->name, arguments->operands[0],
                               verb_switch(arguments, "--json"), failure);
    struct prediction_request request = {0};
    int r = prediction_command_check(arguments, output, failure);
    r = r < 0 ? r : prediction_command_make(arguments, &request, &prediction, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = report_new();
    if (prediction->plugin->columns)
        r = output_table(prediction_report_table(prediction, 0, report->root), output, failure);
    else if (output)
        r = file_write_output(output, prediction->text.bytes, prediction->text.length, failure);
    else
        output_bytes(prediction->text.bytes, prediction->text.length);
    if (r < 0)
        return r;
    prediction_command_warn(prediction);
    for (size_t i = 0; i < prediction->results[0].remark_count; i++)
        fprintf(stderr, "assay: %s: %s\n", prediction->results[0].remarks[i].warning ? "warning" : "note",
                shown(prediction->results[0].remarks[i].sentence).text);
    return 0;
}
