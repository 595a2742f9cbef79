/* assay fit: tables in, a model out. */
#include "engine/command-line/fit-report.h"
#include "engine/command-line/fit-residuals.h"
#include "engine/command-line/output.h"
#include "engine/command-line/shown.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/cross-validation.h"
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

/* ---- What was asked */

/* "m,n,k" as names; the texts are the list's. */
struct name_list {
    char *text;
    const char **names;
    size_t count;
};

static void name_list_clear(struct name_list *list) {
    free(list->text);
    free(list->names);
    *list = (struct name_list){0};
}

static int name_list_parse(const char *option, const char *text, struct name_list *ret,
                           struct failure *failure) {
    size_t most = 1;
    for (const char *at = text; *at; at++)
        most += *at == ',';
    ret->text = strdup(text);
    ret->names = calloc(most, sizeof *ret->names);
    if (!ret->text || !ret->names)
        return failure_memory(failure);
    for (char *at = ret->text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        if (!*at)
            return failure_input(failure, NULL, 0, 0,
                                 "%s '%s' has an empty name; expected names with commas between", option,
                                 text);
        ret->names[ret->count++] = at;
    }
    return 0;
}

struct request {
    struct fitting_options options;
    struct name_list sizes, by;
    const char **settings; /* owned; the texts are the arguments' */
    const char *output, *plot;
    bool json, brief;
    uint32_t folds;
    const char *const *inputs;
    size_t input_count;
};

static void request_clear(struct request *request) {
    name_list_clear(&request->sizes);
    name_list_clear(&request->by);
    free(request->settings);
    request->settings = NULL;
}

/* The first operand is a method when it could be no file: it has no dot and no slash, and there is no such
 * file. */
static bool names_method(const char *operand) {
    return strcmp(operand, "-") != 0 && !strpbrk(operand, "./") && !file_exists(operand);
}

static int read_folds(const struct verb_arguments *arguments, struct request *ret, struct failure *failure) {
    const char *text = verb_value(arguments, "--folds");
    int64_t folds = CROSS_VALIDATION_FOLDS;
    if (text && (!number_parse_int64(text, strlen(text), &folds) || folds < 0 || folds == 1 ||
                 folds > REFIT_FOLDS_MOST))
        return failure_input(failure, NULL, 0, 0, "--folds '%s'; expected 0 or a number from 2 to %d", text,
                             (int)REFIT_FOLDS_MOST);
    ret->options.folds = text;
    ret->folds = (uint32_t)folds;
    return 0;
}

/* --set, --seed and --folds. */
static int read_settings(const struct verb_arguments *arguments, struct request *ret,
                         struct failure *failure) {
    int r = verb_check_settings(arguments, "--set", failure);
    if (r < 0)
        return r;
    ret->settings = calloc(arguments->option_count + 1, sizeof *ret->settings);
    if (!ret->settings)
        return failure_memory(failure);
    const char *setting;
    while ((setting = verb_value_at(arguments, "--set", ret->options.setting_count)))
        ret->settings[ret->options.setting_count++] = setting;
    ret->options.settings = ret->settings;
    const char *seed = verb_value(arguments, "--seed");
    int64_t value = 1;
    if (seed && (!number_parse_int64(seed, strlen(seed), &value) || value < 0))
        return failure_input(failure, NULL, 0, 0, "--seed '%s'; expected a whole number, 0 or more", seed);
    ret->options.seed = (uint64_t)value;
    return read_folds(arguments, ret, failure);
}

static int read_arguments(const struct verb_arguments *arguments, const struct installation *installation,
                          struct request *ret, struct failure *failure) {
    ret->inputs = arguments->operands;
    ret->input_count = arguments->operand_count;
    ret->output = verb_value(arguments, "--output");
    ret->plot = verb_value(arguments, "--plot");
    ret->json = verb_switch(arguments, "--json");
    ret->brief = verb_switch(arguments, "--brief");
    ret->options.kept_rows = KEPT_ROWS_MOST;
    if (names_method(arguments->operands[0])) {
        cleanup_free char *plugin = text_format("fit-%s", arguments->operands[0]);
        cleanup_free char *path = NULL;
        if (!plugin)
            return failure_memory(failure);
        bool exists = installation_find(installation, INSTALLATION_PLUGIN, plugin, &path, NULL) == 0;
        if (arguments->operand_count == 1 && exists)
            return failure_input(failure, NULL, 0, 0,
                                 "the method '%s' is given no input; expected archives or CSV files",
                                 arguments->operands[0]);
        if (arguments->operand_count > 1) {
            ret->options.method = arguments->operands[0];
            ret->inputs++;
            ret->input_count--;
        }
    }
    ret->options.response = verb_value(arguments, "--response");
    ret->options.terms = verb_value(arguments, "--terms");
    ret->options.weights = verb_value(arguments, "--weights");
    const char *sizes = verb_value(arguments, "--sizes"), *by = verb_value(arguments, "--by");
    int r = sizes ? name_list_parse("--sizes", sizes, &ret->sizes, failure) : 0;
    if (r == 0 && by && strcmp(by, "none") != 0)
        r = name_list_parse("--by", by, &ret->by, failure);
    ret->options.sizes = ret->sizes.names;
    ret->options.size_count = ret->sizes.count;
    ret->options.by = ret->by.names;
    ret->options.by_count = ret->by.count;
    return r < 0 ? r : read_settings(arguments, ret, failure);
}

/* The one column whose role is response; otherwise `duration`. */
static int default_response(const struct table *table, const char **ret, struct failure *failure) {
    const char *role = NULL, *duration = NULL;
    size_t roles = 0;
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < table_column_count(table); i++) {
        const struct table_column *column = table_column(table, i);
        if (column->response && roles++ == 0)
            role = column->name;
        if (strcmp(column->name, "duration") == 0)
            duration = column->name;
        if (list.length < FAILURE_TEXT_SIZE / 4 &&
            text_printf(&list, "%s%s", i ? ", " : "", column->name) < 0)
            return failure_memory(failure);
    }
    *ret = roles == 1 ? role : duration;
    if (*ret)
        return 0;
    return failure_input(
        failure, table_input(table, 0)->path, 0, 0,
        "which column is to be explained? there is no 'duration'; say it with --response; there are: %s",
        list.bytes);
}

/* Fills in what was not said: from the archive's suggestion, then by default. */
static int complete(const struct verb_arguments *arguments, const struct table *table,
                    struct request *request, struct failure *failure) {
    struct fitting_options *options = &request->options;
    static const struct table_suggestion nothing;
    const struct table_suggestion *suggestion = table_suggestion(table);
    if (!suggestion)
        suggestion = &nothing;
    const char *suggested = suggestion->method ? suggestion->method : "linear";
    if (!options->method)
        options->method = suggested;
    options->suggested = !options->terms;
    if (!options->terms &&
        strcmp(options->method, suggested) == 0) /* another method speaks another language */
        options->terms = suggestion->terms;
    if (!options->sizes) {
        options->sizes = suggestion->sizes;
        options->size_count = suggestion->size_count;
    }
    if (!verb_value(arguments, "--by")) {
        options->by = suggestion->by;
        options->by_count = suggestion->by_count;
    }
    if (!options->response)
        options->response = suggestion->response;
    return options->response ? 0 : default_response(table, &options->response, failure);
}

/* ---- Doing it */

static void print_note(void *context, const char *sentence) {
    (void)context;
    fprintf(stderr, "assay: note: %s\n", shown(sentence).text);
}

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
static int open_results(const struct fitting *fitting, const struct request *request, struct results *ret,
                        struct failure *failure) {
    int r = fit_report_new(fitting, request->json ? NULL : stdout, &ret->table, failure);
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
                          const struct request *request, struct failure *failure) {
    cleanup(residuals_clear) struct residuals residuals = {0};
    const char *kind = fitted_model_view(model)->kind;
    if (!evaluation_knows(kind) && request->plot)
        return failure_input(failure, request->plot, 0, 0,
                             "models of the kind '%.64s' are not evaluated row by row: there are no "
                             "residuals to plot",
                             kind);
    if (!evaluation_knows(kind))
        return 0;
    int r = residuals_init(&residuals, fitting, model, failure);
    if (r == 0 && !request->json && !request->brief)
        fit_residuals_print(stdout, fitting, &residuals);
    if (r == 0 && request->plot)
        r = residual_plot_write(request->plot, fitting, model, &residuals, failure);
    return r;
}

static int report(struct fitting *fitting, const struct request *request, struct failure *failure) {
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
    const struct cross_validation_options folds = {request->folds, request->options.folds != NULL, print_note,
                                                   NULL};
    r = cross_validation_new(fitting, &folds, listeners, count, &results.validation, failure);
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

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(request_clear) struct request request = {0};
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup(fitting_cleanup) struct fitting *fitting = NULL; /* goes before what it borrows */
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r : read_arguments(arguments, &installation, &request, failure);
    r = r < 0 ? r : output_check(request.output, request.inputs, request.input_count, failure);
    r = r < 0 ? r : output_check(request.plot, request.inputs, request.input_count, failure);
    r = r < 0 ? r
              : table_open(request.inputs, request.input_count, request.output || request.json, &table,
                           failure);
    r = r < 0 ? r : complete(arguments, table, &request, failure);
    r = r < 0 ? r : fitting_run(&installation, table, &request.options, print_note, NULL, &fitting, failure);
    return r < 0 ? r : report(fitting, &request, failure);
}

static const struct verb_option options[] = {
    {"--response", 'y', "COLUMN", "The column to be explained.", false},
    {"--terms", 't', "TERMS", "What explains it: M-0, M-1, M-2, or a sum of products such as 1+m*n*k+m^2.",
     false},
    {"--sizes", 0, "COLUMNS", "The columns that M-1 and M-2 are over (m,n,k).", false},
    {"--by", 'b', "COLUMNS", "One fit for each combination of these columns' values; 'none' for one in all.",
     false},
    {"--weights", 'w', "COLUMN", "Weights of the rows in the sum of squares; 0 leaves a row out.", false},
    {"--set", 's', "NAME=VALUE", "A parameter of the method (see below).", true},
    {"--seed", 0, "NUMBER", "Of what the method draws at random; recorded in the model (1).", false},
    {"--folds", 0, "NUMBER", "Folds of the cross-validation (5); 0 for none.", false},
    {"--output", 'o', "FILE", "Write the model, for prediction and as a record.", false},
    {"--plot", 0, "FILE", "Draw the residuals, and the data of models over one column, as SVG.", false},
    {"--brief", 0, NULL, "No residuals: neither their chart nor the rows that are furthest off.", false},
    {"--json", 0, NULL, "Print the model as JSON instead of a table.", false},
    {0},
};

const struct verb verb_fit = {
    .name = "fit",
    .summary = "fit a model to archives or CSV files",
    .synopsis = "assay fit [METHOD] INPUT... [OPTIONS]",
    .description =
        "Reads archives and CSV files, one after the other, and fits a model to every group of rows. An "
        "archive "
        "suggests its model: 'assay fit dgemm.zip' needs nothing else. What is given as an option goes "
        "before what "
        "the archive suggests.\n"
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
        "    assay fit dgemm.zip -o dgemm-model.json\n"
        "    assay fit calls.csv --response duration --terms M-2 --by host,core\n"
        "    assay fit linear a.csv b.csv --terms '1 + size + size^2' --weights w --json\n",
    .options = options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
};
