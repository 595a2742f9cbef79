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

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *output = verb_value(arguments, "--output");
    if (verb_switch(arguments, "--parameters"))
        return prediction_command_parameters(arguments->verb->name, arguments->operands[0], failure);
    int r = prediction_command_make(arguments, &prediction, failure);
    r = r < 0 || !output ? r : write_table(prediction, output, failure);
    return r < 0 ? r : print(prediction, verb_switch(arguments, "--json"), failure);
}

static const struct verb_option options[] = {
    {"--scenario", 's', "FILE",
     "A CSV table of scenarios: a column a parameter, a row a scenario; '-' for standard input.", false},
    {"--set", 0, "NAME=VALUE",
     "A parameter with its unit, for all scenarios: --set latency=1.5us. Several values separated by commas "
     "are all predicted: --set NB=128,256.",
     true},
    {"--draws", 'd', "N",
     "Give an interval for each number: draw the coefficients of the models N times from their covariance, "
     "and their noise.",
     false},
    {"--seed", 0, "SEED", "Of the draws: the same seed gives the same intervals on every machine (1).",
     false},
    {"--output", 'o', "FILE",
     "Write the prediction as CSV, and its columns' units into FILE.datapackage.json.", false},
    {"--json", 0, NULL, "Print the prediction as JSON instead of a table.", false},
    {"--parameters", 0, NULL, "Print which models and parameters the method takes.", false},
    {0},
};

const struct verb verb_predict = {
    .name = "predict",
    .summary = "predict how long a program takes, from models",
    .synopsis = "assay predict METHOD [ROLE=]MODEL... [OPTIONS]",
    .description =
        "Says how long a program takes, from models that 'assay fit' wrote, for one scenario given with "
        "--set, for all combinations of several values, or for every row of a table. METHOD is the name of "
        "a predict plugin without 'predict-'; 'assay predict METHOD --help' lists the models and parameters "
        "that it takes, with units, defaults and ranges. ROLE says what a model is for; it may be left out "
        "where only one role takes a model of that kind.\n\n"
        "In a table a column is called as a parameter; its unit may follow, as in 'latency [us]', or stand "
        "in each field. The column 'name' names the scenarios. A warning says where a model is "
        "extrapolated, and where a value is of no plausible order.\n\n"
        "With --draws each number X that comes of the models also has X_mean, the mean of the draws, and "
        "X_low and X_high, between which 95 % of them lie. The interval says how well the coefficients are "
        "known and how much single measurements scatter, not how good the method's formulas are.\n\n"
        "    assay predict hpl dgemm.json --set N=20000 --set NB=128,256 \\\n"
        "        --set P=4 --set Q=4 --set latency=1us --set bandwidth=10GB/s\n"
        "    assay predict hpl dgemm.json --scenario runs.csv --draws 200 -o out.csv\n",
    .options = options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
    .help = prediction_command_help,
};
