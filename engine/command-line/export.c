/* assay export: models in, files for other programs out. */
#include "engine/command-line/prediction-command.h"

#include <stdint.h>

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    return prediction_command_write(arguments, "export", failure);
}

static void help(const char *operand) {
    prediction_command_help("export", operand);
}

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
    .options = prediction_command_options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
    .help = help,
};
