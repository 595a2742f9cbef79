/* assay generate: what no testbed has, drawn from models. */
#include "engine/command-line/prediction-command.h"

#include <stdint.h>

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    return prediction_command_write(arguments, "generate", failure);
}

static void help(const char *operand) {
    prediction_command_help("generate", operand);
}

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
    .options = prediction_command_options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
    .help = help,
};
