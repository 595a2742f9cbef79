/* assay model: what is in a model file, whether it holds, and what it says. */
#include "engine/command-line/model-command.h"

#include <stdint.h>

static const struct verb_action actions[] = {
    {"show", 1, 1, "a model", "--group --verbose", model_command_show},
    {"check", 1, SIZE_MAX, "models", "--data --where --with-flagged --most", model_command_check},
    {"eval", 1, SIZE_MAX, "a model, and values as NAME=VALUE unless there is --rows",
     "--group --all --rows --output", model_command_eval},
    {"table", 1, SIZE_MAX, "models", "--output", model_command_table},
    {0},
};

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    return verb_act(arguments, actions, arguments->operands[0], failure);
}

static const struct verb_option options[] = {
    {"--group", 'g', "NAME", "show, eval: this group of the model, such as dahu-3/0.", false},
    {"--verbose", 'v', NULL, "show: all values, t and p, the ranges that were measured, every group.", false},
    {"--all", 'a', NULL, "eval: every group of the model.", false},
    {"--rows", 'r', "FILE", "eval: the rows of this CSV table or archive; '-' for standard input.", false},
    {"--data", 'd', "INPUT", "check: compare with these archives or CSV files (repeatable).", true},
    {"--where", 0, "EXPRESSION", "check --data: only rows for which this is true.", false},
    {"--with-flagged", 0, NULL, "check --data: also rows of archives that a gate flagged.", false},
    {"--most", 0, "FACTOR",
     "check --data: refuse a model whose errors are more than so many times what its noise says (2).", false},
    {"--output", 'o', "FILE", "eval, table: write CSV, and its columns' units into FILE.datapackage.json.",
     false},
    {"--json", 0, NULL, "Print JSON.", false},
    {0},
};

const struct verb verb_model = {
    .name = "model",
    .summary = "show, check, evaluate and tabulate models",
    .synopsis = "assay model show|check|eval|table MODEL... [OPTIONS]",
    .description =
        "A model is a file that 'assay fit' wrote; plugins/interface/assay/MODEL.md describes it.\n\n"
        "show says first whether the model can be used for prediction, then prints formula, origin, "
        "estimates with their standard errors (a line a group and how they spread, when there are many "
        "groups) and noise:\n\n"
        "    assay model show dgemm-model.json\n"
        "    assay model show dgemm-model.json --group dahu-3/0\n\n"
        "check reads whole files and reports everything in them that does not hold together, a line each "
        "with its place; the exit code is 2 when there is any. With --data it compares the model with new "
        "measurements, by groups: root of the mean squared error, relative to the mean response, median "
        "relative error, mean log density under the model's noise, and the share of measurements within "
        "their 95 % intervals. The model is refused when its errors are more than twice (--most) what its "
        "noise says:\n\n"
        "    assay model check *.json\n"
        "    assay model check dgemm-model.json --data new.zip\n\n"
        "eval prints what the model predicts: the mean, its standard error by the covariance of the "
        "estimates, and the standard deviation of one measurement. Values may have units, and are converted "
        "to the model's, where it has them (one of plain CSV has none). The group is named with --group or "
        "by values of the columns that make the groups, in a table by its columns. A table of rows comes "
        "back as CSV. One warning says when what is asked is outside of what the model was fitted to, and "
        "by which factor:\n\n"
        "    assay model eval calls.json size=64KiB --all\n"
        "    assay model eval dgemm-model.json m=1000 n=2000 k=500 node=dahu-3 core=0\n"
        "    assay model eval dgemm-model.json --rows sizes.csv -o times.csv\n\n"
        "table writes the coefficients as CSV: a row a group (or segment), a column a term, sigma, then "
        "what else the parts have. 'assay fit population' reads such tables:\n\n"
        "    assay model table monday.json tuesday.json -o coefficients.csv\n",
    .options = options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
};
