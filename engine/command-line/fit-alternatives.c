/* assay fit alternatives: the named models side by side, and the simplest of them that suffices. */
#include "engine/command-line/fit-print.h"
#include "engine/command-line/fit-progress.h"
#include "engine/command-line/fit-request.h"
#include "engine/command-line/fit-verbs.h"
#include "engine/command-line/shown.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"
#include "engine/plugin/alternatives.h"
#include "engine/plugin/cross-validation.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 1 << 16, OUTPUT_MAX = 1 << 20 };

/* Above this share of the mean no model is said to predict well. */
static const double error_most = 0.5;

/* "host,core"; NULL when out of memory. */
static char *join(const char *const *names, size_t count) {
    cleanup(text_clear) struct text text;
    text_init(&text, NAMES_MAX);
    for (size_t i = 0; i < count; i++)
        if (text_printf(&text, "%s%s", i ? "," : "", names[i]) < 0)
            return NULL;
    return text_take(&text);
}

/* ---- The command that gives a model */

/* A word for a shell: as it is where nothing in it has a meaning, else in quotes. */
static int append_word(struct text *text, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%";
    if (word[0] && strspn(word, plain) == strlen(word))
        return text_printf(text, " %s", word);
    int r = text_append_string(text, " '");
    for (const char *at = word; r == 0 && *at; at++)
        r = *at == '\'' ? text_append_string(text, "'\\''") : text_append_character(text, *at);
    return r < 0 ? r : text_append_string(text, "'");
}

static int append_option(struct text *text, const char *option, const char *value) {
    int r = text_printf(text, " %s", option);
    return r < 0 ? r : append_word(text, value);
}

static int append_command(struct text *text, const struct fitting_request *request,
                          const struct fitting *fitting, const struct alternative *alternative) {
    const struct fitting_options *options = &request->options;
    cleanup_free char *sizes = join(options->sizes, options->size_count);
    cleanup_free char *by = join(options->by, alternative->by_count);
    if (!sizes || !by)
        return -ENOMEM;
    int r = text_append_string(text, "assay fit");
    for (size_t i = 0; r == 0 && i < request->input_count; i++)
        r = append_word(text, request->inputs[i]);
    r = r < 0 ? r : append_option(text, "--response", options->response);
    r = r < 0 ? r : append_option(text, "--terms", alternative->terms);
    if (r == 0 && options->size_count > 0)
        r = append_option(text, "--sizes", sizes);
    r = r < 0 ? r : append_option(text, "--by", alternative->by_count > 0 ? by : "none");
    if (r == 0 && options->weights)
        r = append_option(text, "--weights", options->weights);
    const struct fit_operations *operations = fitting_plugin(fitting)->operations;
    for (size_t i = 0; r == 0 && i < operations->parameter_count; i++)
        if (strcmp(operations->parameters[i].name, "noise") == 0)
            r = text_printf(text, " --set noise=%s", alternative->noise);
    for (size_t i = 0; r == 0 && i < options->setting_count; i++)
        r = append_option(text, "--set", options->settings[i]);
    return r;
}

/* ---- For people */

static void print_item(FILE *stream, const struct fitting_options *options, const char *groups, int width,
                       const struct alternative *item, const char *mark) {
    (void)options;
    char count[FIT_PRINT_COUNT_MAX];
    fprintf(stream, "%s %-5s  %-*s %7s  %-5s", mark, item->terms, width, groups,
            fit_print_count(item->groups, count), item->noise);
    fprintf(stream, "%11s", fit_print_count(item->parameters, count));
    if (item->reason[0]) {
        fprintf(stream, "  %s\n", shown(item->reason).text);
        return;
    }
    fit_print_number(stream, 12, 4, held_out_rmse(&item->errors));
    fit_print_number(stream, 11, 3, 100 * held_out_relative(&item->errors));
    fit_print_number(stream, 12, 5, held_out_score(&item->errors));
    fit_print_number(stream, 10, 2, item->seconds);
    fputc('\n', stream);
}

static void print_rule(FILE *stream, const struct alternatives *alternatives, const char *unit) {
    const struct alternative *item = &alternatives->items[alternatives->sufficient];
    const struct alternative *best = &alternatives->items[alternatives->least];
    fprintf(stream,
            "\n* the simplest that suffices: %s has the fewest parameters of all whose error is at most one "
            "standard\n  error above the least, %.4g + %.2g%s%s",
            item->terms, held_out_rmse(&best->errors), held_out_rmse_error(&best->errors), unit ? " " : "",
            unit ? shown(unit).text : "");
    if (item->errors.scored > 0)
        fprintf(stream, "; %s is the simplest noise whose log score is within one of the best", item->noise);
    fprintf(stream, "\n");
    if (alternatives->best != alternatives->sufficient)
        fprintf(stream, "+ has the least error, and of the kinds of noise there the best log score\n");
}

static void print_left_out(const struct small_groups *left_out) {
    char groups[FIT_PRINT_COUNT_MAX], rows[FIT_PRINT_COUNT_MAX];
    if (left_out->count > 0)
        printf("%s group%s with %s row%s left out of the judgement, too small for some candidate: %s\n",
               fit_print_count(left_out->count, groups), left_out->count == 1 ? "" : "s",
               fit_print_count(left_out->rows, rows), left_out->rows == 1 ? "" : "s",
               shown(left_out->names).text);
}

/* Whether the one that suffices is of use: a mean that is wrong by half of what it tells is none. */
static bool predicts_well(const struct alternatives *alternatives) {
    const struct held_out *errors = &alternatives->items[alternatives->sufficient].errors;
    return !(held_out_relative(errors) > error_most);
}

static int print_people(const struct alternatives *alternatives, const struct fitting *fitting,
                        const struct fitting_request *request, struct failure *failure) {
    const struct fitting_options *options = &request->options;
    const struct kept_rows *kept = fitting_kept_rows(fitting);
    const char *unit = fitting_unit(fitting, options->response);
    char count[FIT_PRINT_COUNT_MAX];
    printf("%s of %s", shown(options->response).text, fit_print_rows(kept->count, count));
    if (kept->stride > 1)
        printf(" (1 in %" PRIu64 ")", kept->stride);
    printf(", judged on ");
    fit_print_fold_units(stdout, fitting);
    printf(" left out of the fit (%u folds)\n", alternatives->folds);
    print_left_out(&alternatives->left_out);
    printf("\n");
    cleanup_free char *longest = join(options->by, options->by_count);
    int width = longest && strlen(longest) > 8 ? (int)strlen(shown(longest).text) : 8;
    printf("  %-5s  %-*s %7s  %-5s %10s %11s %10s %11s %9s\n", "terms", width, "by", "groups", "noise",
           "parameters", "error", "% of mean", "log score", "CPU s");
    for (size_t i = 0; i < alternatives->count; i++) {
        const struct alternative *item = &alternatives->items[i];
        cleanup_free char *by = item->by_count > 0 ? join(options->by, item->by_count) : strdup("(pooled)");
        if (!by)
            return failure_memory(failure);
        print_item(stdout, options, shown(by).text, width, item,
                   i == alternatives->sufficient ? "*"
                   : i == alternatives->best     ? "+"
                                                 : " ");
    }
    if (alternatives->sufficient == SIZE_MAX) {
        printf("\nnone of them could be judged\n");
        return 0;
    }
    print_rule(stdout, alternatives, unit);
    if (!predicts_well(alternatives))
        printf(
            "\nwarning: none of the candidates predicts well: the error of this one is %.3g %% of the mean\n",
            100 * held_out_relative(&alternatives->items[alternatives->sufficient].errors));
    cleanup(text_clear) struct text command;
    text_init(&command, OUTPUT_MAX);
    if (append_command(&command, request, fitting, &alternatives->items[alternatives->sufficient]) < 0)
        return failure_memory(failure);
    printf("\n    %s -o model.json\n", shown(command.bytes).text);
    return 0;
}

/* ---- As JSON */

static bool add_item(cJSON *list, const struct alternatives *alternatives, size_t i,
                     const struct fitting_options *options) {
    const struct alternative *item = &alternatives->items[i];
    cJSON *object = json_add_object(list, NULL);
    cJSON *by = object ? json_add_array(object, "by") : NULL;
    bool good = by != NULL;
    for (size_t j = 0; good && j < item->by_count; j++)
        good = json_add_string(by, NULL, options->by[j]);
    return good && json_add_string(object, "terms", item->terms) &&
           json_add_string(object, "noise", item->noise) && json_add_uint64(object, "groups", item->groups) &&
           json_add_uint64(object, "parameters", item->parameters) &&
           json_add_double(object, "rmse", held_out_rmse(&item->errors)) &&
           json_add_double(object, "rmse_standard_error", held_out_rmse_error(&item->errors)) &&
           json_add_double(object, "relative", held_out_relative(&item->errors)) &&
           json_add_double(object, "log_score", held_out_score(&item->errors)) &&
           json_add_double(object, "log_score_standard_error", held_out_score_error(&item->errors)) &&
           json_add_double(object, "cpu_seconds", item->seconds) &&
           json_add_string(object, "reason", item->reason[0] ? item->reason : NULL) &&
           json_add_boolean(object, "sufficient", i == alternatives->sufficient) &&
           json_add_boolean(object, "best", i == alternatives->best);
}

static int print_json(const struct alternatives *alternatives, const struct fitting *fitting,
                      const struct fitting_request *request, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cJSON *list = NULL;
    const struct kept_rows *kept = fitting_kept_rows(fitting);
    cleanup(text_clear) struct text text, command;
    text_init(&text, OUTPUT_MAX);
    text_init(&command, OUTPUT_MAX);
    bool good = object && json_add_string(object, "response", request->options.response) &&
                json_add_string(object, "unit", fitting_unit(fitting, request->options.response)) &&
                json_add_uint64(object, "rows", kept->count) &&
                json_add_uint64(object, "stride", kept->stride) &&
                json_add_uint64(object, "groups_left_out", alternatives->left_out.count) &&
                json_add_uint64(object, "rows_left_out", alternatives->left_out.rows) &&
                json_add_string(object, "left_out", alternatives->left_out.names) &&
                json_add_uint64(object, "folds", alternatives->folds) &&
                json_add_string(object, "folds_by", folds_unit_word(fitting_folds_by(fitting))) &&
                json_add_uint64_text(object, "seed", request->options.seed) &&
                (list = json_add_array(object, "alternatives"));
    for (size_t i = 0; good && i < alternatives->count; i++)
        good = add_item(list, alternatives, i, &request->options);
    if (good && alternatives->sufficient != SIZE_MAX)
        good =
            json_add_boolean(object, "predicts_well", predicts_well(alternatives)) &&
            append_command(&command, request, fitting, &alternatives->items[alternatives->sufficient]) == 0 &&
            json_add_string(object, "command", command.bytes);
    if (!good || json_print(object, true, &text) < 0)
        return failure_memory(failure);
    printf("%s\n", text.bytes);
    return 0;
}

/* ---- Doing it */

static int check_request(const struct fitting_request *request, struct failure *failure) {
    if (request->options.method && strcmp(request->options.method, "linear") != 0)
        return failure_input(failure, NULL, 0, 0,
                             "the alternatives are models of the method 'linear'; found '%s'",
                             request->options.method);
    if (request->options.terms)
        return failure_input(failure, NULL, 0, 0,
                             "the alternatives are M-0, M-1 and M-2; expected no --terms, but --sizes");
    if (request->folds == 0)
        return failure_input(failure, NULL, 0, 0,
                             "--folds 0; the alternatives are judged by folds: expected 2 or more");
    return 0;
}

int fit_alternatives(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(fitting_request_clear) struct fitting_request request = {0};
    cleanup(table_stream_cleanup) struct table *table = NULL;
    cleanup(fitting_cleanup) struct fitting *fitting = NULL; /* goes before what it borrows */
    cleanup(alternatives_clear) struct alternatives alternatives = {0};
    cleanup(fit_progress_end) struct fit_progress progress;
    fit_progress_begin(&progress);
    request.options.progress = fit_progress_hear;
    request.options.progress_context = &progress;
    if (arguments->operand_count < 2)
        return failure_input(failure, NULL, 0, 0,
                             "'alternatives' is given no input; expected archives or "
                             "CSV files");
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r
              : fitting_request_read(arguments, arguments->operands + 1, arguments->operand_count - 1,
                                     &installation, &request, failure);
    r = r < 0 ? r : check_request(&request, failure);
    r = r < 0 ? r : table_stream_open(request.inputs, request.input_count, false, &table, failure);
    if (r < 0)
        return r;
    request.options.method = "linear";
    request.options.terms = "M-2";
    r = fitting_request_complete(&request, arguments, table, failure);
    r = r < 0 ? r
              : fitting_run(&installation, table, &request.options, fitting_request_note, NULL, &fitting,
                            failure);
    r = r < 0 ? r : alternatives_init(&alternatives, fitting, request.folds, failure);
    fit_progress_end(&progress);
    if (r < 0)
        return r;
    return request.json ? print_json(&alternatives, fitting, &request, failure)
                        : print_people(&alternatives, fitting, &request, failure);
}
