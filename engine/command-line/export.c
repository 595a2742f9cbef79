/* assay export: models in, files for other programs out; and assay generate: what no testbed has, drawn from
 * models. */
#include "engine/command-line/output.h"
#include "engine/command-line/prediction-command.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/report/shown.h"

#include <stdint.h>
#include <stdio.h>

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *output = verb_value(arguments, "--output");
    if (verb_switch(arguments, "--parameters"))
        return prediction_command_parameters(arguments->verb->name, arguments->operands[0], failure);
    int r = prediction_command_make(arguments, &prediction, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = report_new();
    if (prediction->plugin->columns)
        r = output_table(prediction_report_table(prediction, report->root), output, failure);
    else if (output)
        r = file_write_output(output, prediction->text.bytes, prediction->text.length, failure);
    else
        output_bytes(prediction->text.bytes, prediction->text.length);
    if (r < 0)
        return r;
    for (size_t i = 0; i < prediction->results[0].remark_count; i++)
        fprintf(stderr, "assay: %s: %s\n", prediction->results[0].remarks[i].warning ? "warning" : "note",
                shown(prediction->results[0].remarks[i].sentence).text);
    return 0;
}

static const struct verb_option options[] = {
    {"--set", 0, "NAME=VALUE", "An option of the plugin, with its unit.", true},
    {"--output", 'o', "FILE", "Write the result to FILE instead of standard output.", false},
    {"--seed", 0, "SEED", "Of what is drawn: the same seed gives the same result on every machine (1).",
     false},
    {"--parameters", 0, NULL, "Print which models and options the plugin takes.", false},
    {0},
};

const struct verb verb_export = {
    .name = "export",
    .summary = "write models as files of other programs: SimGrid, C",
    .synopsis = "assay export FORMAT [ROLE=]MODEL... [OPTIONS]",
    .description =
        "Writes models in the form that another program reads. FORMAT is the name of an export plugin "
        "without 'export-'; 'assay export FORMAT --help' lists the models and options that it takes, with "
        "units, defaults and ranges. Where a role takes several models, any name may stand in the place of "
        "ROLE.\n\n"
        "'simgrid' writes a platform for SimGrid, and 'kernels' a C header with the times of kernels, or "
        "the model of dgemm for HPL on SMPI (form=hpl-smpi).\n\n"
        "    assay export simgrid smpi.json --set hosts=32 --set cores=16 -o platform.xml\n"
        "    assay export kernels dgemm.json dtrsm=calls/dtrsm-2024.json -o kernels.h\n",
    .options = options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
    .help = prediction_command_help,
};

const struct verb verb_generate = {
    .name = "generate",
    .summary = "draw what no testbed has, such as a synthetic cluster, from models",
    .synopsis = "assay generate THING [ROLE=]MODEL... [OPTIONS]",
    .description =
        "Draws something from models and writes it. THING is the name of a generate plugin without "
        "'generate-'; 'assay generate THING --help' lists the models and options that it takes, with units, "
        "defaults and ranges.\n\n"
        "'cluster' draws machines from a model of the kind 'population', which 'assay fit population' "
        "writes.\n\n"
        "    assay generate cluster machines.json --set nodes=1024 --seed 7 -o new.csv\n",
    .options = options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
    .help = prediction_command_help,
};
