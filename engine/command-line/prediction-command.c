#include "engine/command-line/prediction-command.h"

#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct verb_option prediction_command_options[] = {
    {"--set", 0, "NAME=VALUE", "An option of the plugin, with its unit.", true},
    {"--output", 'o', "FILE", "Write the result to FILE instead of standard output.", false},
    {"--seed", 0, "SEED", "Of what is drawn: the same seed gives the same result on every machine (1).",
     false},
    {"--parameters", 0, NULL, "Print which models and options the plugin takes.", false},
    {0},
};

/* No input may be overwritten. */
static int check_output(const struct verb_arguments *arguments, const struct prediction_request *request,
                        struct failure *failure) {
    cleanup_free const char **paths = xcalloc(request->model_count + 1, sizeof *paths);
    for (size_t i = 0; i < request->model_count; i++)
        paths[i] = models_path(request->models[i]);
    paths[request->model_count] = request->scenarios;
    return output_check(verb_value(arguments, "--output"), paths, request->model_count + 1, failure);
}

int prediction_command_make(const struct verb_arguments *arguments, const char *prefix,
                            struct prediction **ret, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    struct prediction_request request = {.models = arguments->operands + 1,
                                         .model_count = arguments->operand_count - 1,
                                         .seed = 1,
                                         .scenarios = verb_value(arguments, "--scenario")};
    cleanup_free const char **settings = verb_values(arguments, "--set", &request.setting_count);
    uint64_t draws = 0;
    request.settings = settings;
    int r = verb_check_settings(arguments, "--set", failure);
    r = r < 0 ? r : verb_count(arguments, "--seed", 0, UINT64_MAX, &request.seed, failure);
    r = r < 0 ? r : verb_count(arguments, "--draws", 0, UINT64_MAX, &draws, failure);
    r = r < 0 ? r : check_output(arguments, &request, failure);
    r = r < 0 ? r : installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    if (r < 0)
        return r;
    request.draws = (size_t)draws;
    return prediction_make(&installation, prefix, arguments->operands[0], &request, ret, failure);
}

int prediction_command_parameters(const char *prefix, const char *name, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(library_cleanup) struct library *library = NULL;
    cleanup(report_cleanup) struct report *report = report_new();
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r : library_open(&installation, prefix, name, &library, failure);
    if (r < 0)
        return r;
    const char *suffix = library->predict->suffix;
    report_note(report->root, REPORT_LINE, "%s-%s %s: %s%s%s%s", prefix, name, library->plugin->version,
                library->plugin->summary, suffix ? " (" : "", suffix ? suffix : "", suffix ? ")" : "");
    prediction_report_parameters(library->predict, report->root);
    report_print(report, stdout, false);
    return 0;
}

void prediction_command_help(const char *prefix, const char *name) {
    printf("\n");
    (void)prediction_command_parameters(prefix, name, NULL); /* no such plugin: the command's help is all */
}

int prediction_command_write(const struct verb_arguments *arguments, const char *prefix,
                             struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *output = verb_value(arguments, "--output");
    if (verb_switch(arguments, "--parameters"))
        return prediction_command_parameters(prefix, arguments->operands[0], failure);
    int r = prediction_command_make(arguments, prefix, &prediction, failure);
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
