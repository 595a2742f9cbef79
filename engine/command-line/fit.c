/* assay fit: tables in, a model out. */
#include "engine/command-line/fit-distances.h"
#include "engine/command-line/fit-progress.h"
#include "engine/command-line/fit-report.h"
#include "engine/command-line/fit-request.h"
#include "engine/command-line/fit-residuals.h"
#include "engine/command-line/fit-rows.h"
#include "engine/command-line/fit-verbs.h"
#include "engine/command-line/output.h"
#include "engine/command-line/shown.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/cross-validation.h"
#include "engine/plugin/distance-plot.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/fitted-model.h"
#include "engine/plugin/fitting.h"
#include "engine/plugin/model-writer.h"
#include "engine/plugin/residual-plot.h"
#include "engine/plugin/table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Doing it */

static int refuse_empty(const struct fit_report *report, const struct fitting *fitting,
                        struct failure *failure) {
    const char *reason = fit_report_first_reason(report);
    uint32_t groups = fitting_group_count(fitting);
    if (groups == 1)
        return failure_input(failure, NULL, 0, 0, "the model could not be fitted: %s",
                             reason ? reason : "no reason");
    return failure_input(failure, NULL, 0, 0,
                         "none of the %u groups could be fitted; the first because of %s", groups,
                         reason ? reason : "no reason");
}

/* The listeners of one fit. */
struct results {
    struct fit_report *table;
    struct model_writer *file, *json;
    struct fitted_model *model;
    struct cross_validation *validation; /* before all of them */
};

static void results_clear(struct results *results) {
    fit_report_free(results->table);
    model_writer_free(results->file);
    model_writer_free(results->json);
    fitted_model_free(results->model);
    cross_validation_free(results->validation);
    *results = (struct results){0};
}

/* The table for people, the model file and standard output, as asked. */
static int open_results(const struct fitting *fitting, const struct fitting_request *request,
                        struct results *ret, struct failure *failure) {
    int r = fit_report_new(fitting, request->json ? NULL : stdout, &ret->table);
    if (r == 0 && request->output)
        r = model_writer_open(request->output, fitting, &ret->file, failure);
    if (r == 0 && request->json)
        r = model_writer_open_descriptor(STDOUT_FILENO, fitting, &ret->json, failure);
    if (r == 0 && (request->plot || (!request->json && !request->brief)))
        r = fitted_model_new(fitting_plugin(fitting)->name, request->options.response, &ret->model, failure);
    return r;
}

/* To people and into the plot, as asked. */
static int show_residuals(const struct fitting *fitting, const struct fitted_model *model,
                          const struct fitting_request *request, struct failure *failure) {
    cleanup(residuals_clear) struct residuals residuals = {0};
    const char *kind = fitted_model_view(model)->kind;
    bool told = !request->json && !request->brief;
    if (!evaluation_knows(kind)) {
        if (told)
            fit_distances_print(stdout, fitting);
        return request->plot ? distance_plot_write(request->plot, fitting, failure) : 0;
    }
    int r = residuals_init(&residuals, fitting, model, failure);
    if (r == 0 && told) {
        struct lack_of_fit lack;
        r = lack_of_fit_init(&lack, fitting, model, &residuals, failure);
        if (r == 0)
            fit_residuals_print(stdout, fitting, &residuals, &lack);
    }
    if (r == 0 && request->plot)
        r = residual_plot_write(request->plot, fitting, model, &residuals, failure);
    return r;
}

static int report(struct fitting *fitting, const struct fitting_request *request, struct failure *failure) {
    cleanup(results_clear) struct results results = {0};
    int r = open_results(fitting, request, &results, failure);
    if (r < 0)
        return r;
    const struct fitting_listener *listeners[4] = {fit_report_listener(results.table)};
    size_t count = 1;
    if (results.file)
        listeners[count++] = model_writer_listener(results.file);
    if (results.json)
        listeners[count++] = model_writer_listener(results.json);
    if (results.model)
        listeners[count++] = fitted_model_listener(results.model);
    const struct cross_validation_options folds = {request->folds, fitting_request_note, NULL};
    r = cross_validation_new(fitting, &folds, listeners, count, &results.validation);
    if (r < 0)
        return r;
    const struct fitting_listener *first = cross_validation_listener(results.validation);
    r = fitting_finish(fitting, &first, 1, failure);
    if (r < 0)
        return r;
    fit_report_spread(results.table);
    if (fit_report_fitted(results.table) == 0) {
        fit_report_end(results.table, NULL);
        return refuse_empty(results.table, fitting, failure);
    }
    if (results.model)
        r = show_residuals(fitting, results.model, request, failure);
    r = r < 0 || !results.file ? r : model_writer_commit(results.file, failure);
    r = r < 0 || !results.json ? r : model_writer_commit(results.json, failure);
    if (r == 0)
        fit_report_end(results.table, request->output);
    return r;
}

/* A group that has one fold cannot be fitted without it. */
static int check_folds(const struct fitting_request *request, struct failure *failure) {
    const struct fitting_options *options = &request->options;
    size_t within = 0;
    for (size_t i = 0; i < options->fold_column_count; i++)
        for (size_t j = 0; j < options->by_count; j++)
            within += strcmp(options->fold_columns[i], options->by[j]) == 0;
    if (request->folds == 0 || within == 0 || within < options->fold_column_count)
        return 0;
    return failure_input(failure, NULL, 0, 0,
                         "--folds-by %s: each group has one value of it, and without its rows there is "
                         "nothing to fit; expected other columns than those of the groups, setting or row",
                         options->fold_columns[0]);
}

static const char *const rows_only[] = {"--where", "--with-flagged"};

static int fit(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(fitting_request_clear) struct fitting_request request = {0};
    cleanup(table_stream_cleanup) struct table *table = NULL;
    cleanup(fitting_cleanup) struct fitting *fitting = NULL; /* goes before what it borrows */
    cleanup(fit_progress_end) struct fit_progress progress;
    fit_progress_begin(&progress);
    request.options.progress = fit_progress_hear;
    request.options.progress_context = &progress;
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r
              : fitting_request_read(arguments, arguments->operands, arguments->operand_count, &installation,
                                     &request, failure);
    r = r < 0 ? r : output_check(request.output, request.inputs, request.input_count, failure);
    r = r < 0 ? r : output_check(request.plot, request.inputs, request.input_count, failure);
    r = r < 0 ? r : output_check_apart(request.output, request.plot, failure);
    if (r == 0 && request.options.method && fit_rows_has(&installation, request.options.method))
        return fit_rows(arguments, &installation, request.options.method, request.inputs, request.input_count,
                        failure);
    for (size_t i = 0; r == 0 && i < sizeof rows_only / sizeof *rows_only; i++)
        if (verb_switch(arguments, rows_only[i]))
            return failure_input(failure, NULL, 0, 0,
                                 "'%s' is for methods that are functions on rows, which '%s' is not yet",
                                 rows_only[i], request.options.method ? request.options.method : "linear");
    r = r < 0 ? r
              : table_open_member(request.inputs, request.input_count, request.member,
                                  request.output || request.json, &table, failure);
    r = r < 0 ? r : fitting_request_complete(&request, arguments, table, failure);
    r = r < 0 ? r : check_folds(&request, failure);
    r = r < 0 ? r
              : fitting_run(&installation, table, &request.options, fitting_request_note, NULL, &fitting,
                            failure);
    return r < 0 ? r : report(fitting, &request, failure);
}

/* What can be done, and by which word or switch; a file of such a name is ./compare. */
enum { FIT = 1, ALTERNATIVES = 2, COMPARE = 4, METHODS = 8, PARAMETERS = 16 };

static const struct action {
    const char *name;
    unsigned bit;
    int (*run)(const struct verb_arguments *arguments, struct failure *failure);
} actions[] = {
    {"alternatives", ALTERNATIVES, fit_alternatives},
    {"compare", COMPARE, fit_compare},
    {"--methods", METHODS, fit_methods},
    {"--parameters", PARAMETERS, fit_parameters},
};

/* Which of them takes an option. */
static const struct {
    const char *name;
    unsigned actions;
} taken_by[] = {
    {"--response", FIT | ALTERNATIVES},
    {"--terms", FIT | ALTERNATIVES}, /* which tells why not */
    {"--sizes", FIT | ALTERNATIVES},
    {"--by", FIT | ALTERNATIVES},
    {"--weights", FIT | ALTERNATIVES},
    {"--set", FIT | ALTERNATIVES},
    {"--seed", FIT | ALTERNATIVES},
    {"--folds", FIT | ALTERNATIVES},
    {"--folds-by", FIT | ALTERNATIVES},
    {"--table", FIT},
    {"--where", FIT},
    {"--with-flagged", FIT},
    {"--output", FIT},
    {"--data", COMPARE},
    {"--plot", FIT},
    {"--breaks", FIT},
    {"--breaks-group", FIT},
    {"--brief", FIT},
    {"--methods", METHODS},
    {"--parameters", PARAMETERS},
};

static const struct action *find_action(const struct verb_arguments *arguments) {
    static const struct action fitting = {"INPUT", FIT, fit};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        const char *name = actions[i].name;
        bool is_switch = name[0] == '-';
        if (is_switch ? verb_switch(arguments, name)
                      : arguments->operand_count > 0 && strcmp(arguments->operands[0], name) == 0)
            return &actions[i];
    }
    return &fitting;
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    const struct action *action = find_action(arguments);
    for (size_t i = 0; i < sizeof taken_by / sizeof *taken_by; i++)
        if (verb_switch(arguments, taken_by[i].name) && !(taken_by[i].actions & action->bit))
            return failure_input(failure, NULL, 0, 0, "'assay fit %s' has no option '%s'", action->name,
                                 taken_by[i].name);
    if (action->bit != METHODS && arguments->operand_count == 0)
        return failure_input(failure, arguments->verb->name, 0, 0, "too few operands; usage: %s",
                             arguments->verb->synopsis);
    if (action->bit == METHODS && arguments->operand_count > 0)
        return failure_input(failure, arguments->verb->name, 0, 0,
                             "unexpected operand '%s'; usage: "
                             "assay fit --methods",
                             arguments->operands[0]);
    return action->run(arguments, failure);
}

static const struct verb_option options[] = {
    {"--response", 'y', "COLUMN", "The column to be explained.", false},
    {"--table", 0, "NAME",
     "Read results/tables/NAME.csv of archives, a further table of their experiment, in place of "
     "results/results.csv.",
     false},
    {"--terms", 't', "TERMS",
     "What explains it: M-0, M-1, M-2, or a sum of products such as 1+m*n*k+n*p^-1+log2(p); a column of "
     "texts of an archive counts as a category, category(COLUMN) makes any column one, as a CSV needs.",
     false},
    {"--sizes", 0, "COLUMNS", "The columns that M-1 and M-2 are over (m,n,k).", false},
    {"--by", 'b', "COLUMNS", "One fit for each combination of these columns' values; 'none' for one in all.",
     false},
    {"--where", 0, "EXPRESSION", "Only rows for which this is true, such as 'm > 100 and n != 64'.", false},
    {"--with-flagged", 0, NULL, "Also rows of archives that a gate flagged.", false},
    {"--weights", 'w', "COLUMN", "Weights of the rows in the sum of squares; 0 leaves a row out.", false},
    {"--set", 's', "NAME=VALUE", "A parameter of the method (see --parameters).", true},
    {"--seed", 0, "NUMBER", "Of what the method draws at random; recorded in the model (1).", false},
    {"--folds", 0, "NUMBER", "Folds of the cross-validation (5); 0 for none.", false},
    {"--breaks", 0, "MODEL", "smpi: segments begin where those of this model do (piecewise, or smpi).",
     false},
    {"--breaks-group", 0, "GROUP", "Of which group of that model; by default its only one, or PingPong's.",
     false},
    {"--folds-by", 0, "UNIT",
     "What is in one fold together: 'setting', rows with equal factors (the default); 'row', each row by "
     "itself; or columns such as host,day, rows that are equal in these.",
     false},
    {"--output", 'o', "FILE", "Write the model, for prediction and as a record.", false},
    {"--data", 0, "INPUT", "compare: rows to judge the models on; may be given several times.", true},
    {"--plot", 0, "FILE", "Draw the residuals, and the data of models over one column, as SVG.", false},
    {"--brief", 0, NULL, "No residuals: neither their chart nor the rows that are furthest off.", false},
    {"--methods", 0, NULL, "List the methods that are installed.", false},
    {"--parameters", 0, NULL, "List what can be set of a METHOD: values, ranges, defaults.", false},
    {"--json", 0, NULL, "Print the model, or what is listed, as JSON instead of a table.", false},
    {0},
};

const struct verb verb_fit = {
    .name = "fit",
    .summary = "fit a model to archives or CSV files",
    .synopsis = "assay fit [METHOD|alternatives] INPUT... [OPTIONS] | assay fit compare MODEL MODEL...",
    .description =
        "Reads archives and CSV files, one after the other, and fits a model to every group of rows. An "
        "archive "
        "suggests its model: 'assay fit dgemm.zip' needs nothing else. What is given as an option goes "
        "before what "
        "the archive suggests. Of archives of one run the latest part is used, and of a file that is given "
        "twice "
        "one; what is left out is named. Numbers in other units than those of the first input are converted "
        "to them, "
        "or refused "
        "when they cannot be. A number that is missing may be empty, blank, NA, nan or inf: its row is left "
        "out "
        "and counted.\n"
        "\n"
        "METHOD is the name of a fit plugin without 'fit-'; 'linear', least squares on polynomial terms, is "
        "the "
        "default. Terms are products of columns: 1+m*n*k+m^2, where 1 is the intercept and mnk is short for "
        "m*n*k "
        "if no column has that name. Over the sizes m, n, k the named models are M-0: 1; M-1: 1+m*n*k; "
        "M-2: 1+m*n*k+m*n+m*k+n*k, the default.\n"
        "\n"
        "Groups that cannot be fitted are named with the reason and do not stop the others; the command "
        "fails, with "
        "exit code 2, when no group could be fitted.\n"
        "\n"
        "Beside the estimates it prints what a statistician asks first: the error on rows that were left out "
        "of the fit (K-fold cross-validation, seeded, settings left out as a whole unless --folds-by says "
        "otherwise; not done, and said so, where the table has more than "
        "262,144 rows or 16,384 groups), the residuals as a chart, in standard "
        "deviations "
        "of the model's noise, and the rows that are furthest off, with the line of their file. Where rows "
        "repeat, those with equal factors tell by F whether the model lacks fit (Draper and Smith); a model "
        "that predicts times of 0 or less for its own rows is told to. --plot "
        "writes the same as SVG, with quantiles, and with data and curve of a model over one column. Of a "
        "population distances of machines and runs stand in place of residuals: from their mean, against "
        "chi-squared, and the furthest of them by name. On a "
        "terminal, what takes more than 2 s says how far it is and when it will be done.\n"
        "\n"
        "'alternatives' fits M-0, M-1 and M-2 with every kind of noise, pooled and by each first part of "
        "--by, "
        "and judges all on rows left out of their fits. The simplest that suffices is marked: of those whose "
        "error is at most one standard error above the least the one with the fewest parameters, with the "
        "simplest noise whose log score is within one standard error of the best. Rows of groups too small "
        "for some of them are left out for all, and named, while they are at most half of the groups and a "
        "tenth of the rows. 'compare' does the same with model files, on rows given with --data, and shows "
        "how far their estimates are apart; without --data it judges only models of the same rows. A file "
        "with such a name is given as ./compare.\n"
        "\n"
        "    assay fit dgemm.zip -o dgemm-model.json\n"
        "    assay fit calls.csv --response duration --terms M-2 --by host,core\n"
        "    assay fit linear a.csv b.csv --terms '1 + size + size^2' --weights w --json\n"
        "    assay fit alternatives dgemm.zip --by node,core\n"
        "    assay fit compare monday.json tuesday.json --data wednesday.zip\n",
    .options = options,
    .operands_least = 0,
    .operands_most = SIZE_MAX,
    .run = run,
};
