/* assay compare: models, on measurements that they have not seen; runs; a prediction and runs. */
#include "archive-format/reader.h"
#include "engine/analysis/difference.h"
#include "engine/analysis/divergence.h"
#include "engine/analysis/prediction-error.h"
#include "engine/analysis/setup.h"
#include "engine/command-line/output.h"
#include "engine/command-line/verb.h"
#include "engine/documents/unit.h"
#include "engine/fit/comparison.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <string.h>

/* The kind of each operand. */
enum kind { KIND_MODEL, KIND_RUN, KIND_PREDICTION };

/* A file that is not called .zip and cannot be opened as an archive is taken for a model, whose reader says
 * what is wrong. */
static int find_kind(const char *path, enum kind *ret, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open(path, &archive, failure);
    *ret = r < 0                                                 ? KIND_MODEL
           : archive_run(archive)->kind == ARCHIVE_OF_PREDICTION ? KIND_PREDICTION
                                                                 : KIND_RUN;
    return text_ends_in(path, ".zip") || file_is_folder(path) ? r : 0;
}

/* Compares model files; with --data, also their errors on measurements that they were not fitted to. */
static int compare_models(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(comparison_clear) struct comparison comparison = {0};
    cleanup(report_cleanup) struct report *report = report_new();
    const struct measured_options options = {.response = true,
                                             .where = verb_value(arguments, "--where"),
                                             .with_flagged = verb_switch(arguments, "--with-flagged")};
    size_t count = 0;
    cleanup_free const char **inputs = verb_values(arguments, "--data", &count);
    int r = comparison_make(arguments->operands, arguments->operand_count, inputs, count, &options,
                            &comparison, failure);
    if (r < 0)
        return r;
    comparison_report(report->root, &comparison);
    output_report(report, verb_switch(arguments, "--json"), verb_switch(arguments, "--verbose"));
    return 0;
}

/* ---- Runs */

/* --threshold, as a share of 1. */
static int read_threshold(const struct verb_arguments *arguments, double *ret, struct failure *failure) {
    const char *text = verb_value(arguments, "--threshold");
    *ret = 0;
    if (text && (!unit_parse(text, UNIT_RATIO, ret) || !(*ret > 0 && *ret < 1)))
        return failure_input(failure, NULL, 0, 0,
                             "--threshold '%.64s' is not a share between 0 %% and 100 %%, such as 1%%", text);
    return 0;
}

static int read_runs(const struct verb_arguments *arguments, const char *const *paths, size_t count,
                     struct measurements *ret, struct failure *failure) {
    const char *most = verb_value(arguments, "--most"), *least = verb_value(arguments, "--least");
    if (most && least)
        return failure_input(failure, NULL, 0, 0, "--most and --least exclude each other; give one of them");
    int r = measurements_read(paths, count, most ? most : least, most, ret, failure);
    if (r == 0 && verb_switch(arguments, "--with-flagged"))
        measurements_use_flagged(ret);
    return r;
}

/* Compares the results of the last run with those before it. */
static int compare_runs(const struct verb_arguments *arguments, struct report_section *in, bool *ret_is_worse,
                        struct failure *failure) {
    cleanup(measurements_clear) struct measurements measurements = {0};
    cleanup(difference_clear) struct difference difference = {0};
    size_t count = arguments->operand_count, new_run = 0;
    const char *path = arguments->operands[count - 1];
    double least;
    int r = read_threshold(arguments, &least, failure);
    r = r < 0 ? r
              : read_runs(arguments, (const char *const *)arguments->operands, count, &measurements, failure);
    if (r < 0)
        return r;
    const struct table *table = measurements.table;
    while (new_run < table->input_count && strcmp(table->inputs[new_run].path, path) != 0)
        new_run++;
    if (new_run == table->input_count || table->input_count < 2)
        return failure_input(failure, path, 0, 0,
                             "the last run is one of those before it; expected another run, to be compared");
    r = difference_find(&measurements, new_run, least, &difference, failure);
    if (r < 0)
        return r;
    difference_report(in, &difference);
    *ret_is_worse = difference.sign < 0 || difference.worse > 0;
    return 0;
}

/* Compares how two runs were made, then their results. Results that cannot be compared are a warning. */
static int compare_setups(const struct verb_arguments *arguments, struct report_section *in,
                          bool *ret_is_worse, struct failure *failure) {
    cleanup(setup_clear) struct setup setup = {0};
    struct failure why = {0};
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    if (arguments->operand_count != 2)
        return failure_input(failure, NULL, 0, 0,
                             "--setup compares two runs, and these are %zu; expected two",
                             arguments->operand_count);
    int r = setup_compare((const char *const *)arguments->operands, &setup, failure);
    if (r < 0)
        return r;
    setup_report(in, &setup);
    struct report_section *results = report_section(in, "results", "", false);
    r = compare_runs(arguments, results, ret_is_worse, &why);
    if (r < 0 && why.kind != FAILURE_INPUT) {
        *failure = why;
        return r;
    }
    if (r < 0)
        report_note(results, REPORT_WARNING, "the results are not compared: %s",
                    failure_describe(&why, sentence, sizeof sentence));
    return 0;
}

/* Compares one prediction with the runs. */
static int compare_prediction(const struct verb_arguments *arguments, const enum kind *kinds,
                              struct report_section *in, bool *ret_is_worse, struct failure *failure) {
    cleanup(measurements_clear) struct measurements measurements = {0};
    cleanup(ranking_clear) struct ranking ranking = {0};
    cleanup(prediction_error_clear) struct prediction_error error = {0};
    cleanup_free const char **runs = xcalloc(arguments->operand_count, sizeof *runs);
    const char *prediction = NULL;
    size_t count = 0;
    double most;
    for (size_t i = 0; i < arguments->operand_count; i++) {
        const char *path = arguments->operands[i];
        if (kinds[i] == KIND_PREDICTION && prediction)
            return failure_input(failure, path, 0, 0,
                                 "this is a prediction, as '%s'; expected one prediction, and runs",
                                 prediction);
        if (kinds[i] == KIND_PREDICTION)
            prediction = path;
        else
            runs[count++] = path;
    }
    int r = read_threshold(arguments, &most, failure);
    r = r < 0 ? r : read_runs(arguments, runs, count, &measurements, failure);
    if (r < 0)
        return r;
    ranking_make(&measurements, &ranking);
    r = prediction_error_find(prediction, &measurements, &ranking, &error, failure);
    if (r < 0)
        return r;
    prediction_error_report(in, &measurements, &error, most);
    r = divergence_report(prediction, runs, count, &measurements, &error, verb_switch(arguments, "--explain"),
                          in, failure);
    if (r < 0)
        return r;
    *ret_is_worse = most > 0 && error.mean_absolute > most;
    return 0;
}

/* ---- Any of them */

/* Refuses options that are not for what is compared: models, or runs. */
static int check_options(const struct verb_arguments *arguments, bool are_models, struct failure *failure) {
    static const struct {
        const char *name;
        bool of_models;
    } options[] = {{"--data", true},       {"--where", true},      {"--most", false},  {"--least", false},
                   {"--threshold", false}, {"--exit-code", false}, {"--setup", false}, {"--explain", false}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].of_models != are_models &&
            (verb_value_at(arguments, options[i].name, 0) || verb_switch(arguments, options[i].name)))
            return failure_input(failure, NULL, 0, 0, "%s is an option for comparing %s; the inputs are %s",
                                 options[i].name, options[i].of_models ? "models" : "runs",
                                 are_models ? "models" : "runs");
    return 0;
}

int command_compare(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    cleanup_free enum kind *kinds = xcalloc(arguments->operand_count, sizeof *kinds);
    size_t counts[KIND_PREDICTION + 1] = {0};
    bool is_worse = false;
    int r = 0;
    for (size_t i = 0; r == 0 && i < arguments->operand_count; i++) {
        r = find_kind(arguments->operands[i], &kinds[i], failure);
        counts[kinds[i]]++;
    }
    bool are_models = counts[KIND_MODEL] == arguments->operand_count;
    r = r < 0 ? r : check_options(arguments, are_models, failure);
    if (r < 0 || are_models)
        return r < 0 ? r : compare_models(arguments, failure);
    for (size_t i = 0; i < arguments->operand_count; i++)
        if (kinds[i] == KIND_MODEL || counts[KIND_RUN] == 0)
            return failure_input(
                failure, arguments->operands[i], 0, 0,
                kinds[i] == KIND_MODEL
                    ? "this is no archive, and others are; expected models, or archives of runs "
                      "(one may be that of a prediction)"
                    : "these are predictions; expected the archive of a run as well, or models");
    bool of_setups = verb_switch(arguments, "--setup"), of_prediction = counts[KIND_PREDICTION] > 0;
    if (of_setups && of_prediction)
        return failure_input(failure, NULL, 0, 0,
                             "--setup compares how two runs were made, and one of these is a prediction; "
                             "expected two archives or folders of runs");
    if (verb_switch(arguments, "--explain") && !of_prediction)
        return failure_input(
            failure, NULL, 0, 0,
            "--explain says why a run is not as its prediction, and none of these is a prediction; "
            "expected an archive of 'assay predict --archive' and archives of runs");
    r = of_setups       ? compare_setups(arguments, report->root, &is_worse, failure)
        : of_prediction ? compare_prediction(arguments, kinds, report->root, &is_worse, failure)
                        : compare_runs(arguments, report->root, &is_worse, failure);
    if (r < 0)
        return r;
    output_report(report, verb_switch(arguments, "--json"), verb_switch(arguments, "--verbose"));
    if (is_worse && verb_switch(arguments, "--exit-code"))
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ERANGE, "%s",
                                counts[KIND_PREDICTION] > 0 ? "the prediction is off by more than --threshold"
                                                            : "the new run is worse");
    return 0;
}
