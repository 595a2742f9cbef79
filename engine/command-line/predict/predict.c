/* assay predict: models and scenarios in, numbers with intervals out. */
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/command-line/predict/prediction-command.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/predict/explain.h"
#include "engine/predict/picture.h"
#include "engine/predict/prediction-archive.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct work {
    struct report_file file;           /* of --output */
    struct prediction_archive archive; /* of --archive */
    char *scenarios;                   /* their copy in it */
    struct output_line line;
    const char *counted; /* by the line of progress */
};

static volatile sig_atomic_t is_stopped;

static void stop(int signal_number) {
    (void)signal_number;
    is_stopped = true;
}

/* The first signal ends the prediction in good order, if the plugin asks; a second one kills. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int on_progress(void *context, size_t scenario, double share) {
    struct work *work = context;
    output_line_draw(&work->line, "%s %zu, %.0f %%", work->counted, scenario, 100 * share);
    return is_stopped ? -ECANCELED : 0;
}

/* Adds the scenarios that are done to the file and the archive. */
static int add_to_files(void *context, const struct prediction *prediction, size_t first,
                        struct failure *failure) {
    struct work *work = context;
    cleanup(report_cleanup) struct report *report = report_new();
    int r = work->archive.folder ? prediction_archive_add(&work->archive, prediction, first, failure) : 0;
    if (r == 0 && work->file.path)
        r = report_file_add(&work->file, prediction_report_table(prediction, first, report->root), failure);
    return r;
}

/* With its units beside it. */
static int finish_file(struct report_file *file, const struct prediction *prediction,
                       struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    size_t last = prediction->scenarios.count - 1;
    return report_file_finish(file, prediction_report_table(prediction, last, report->root), failure);
}

/* Refuses outputs that are inputs, and one file for two outputs. */
static int check_files(const struct verb_arguments *arguments, const struct prediction_request *request,
                       struct failure *failure) {
    size_t count = request->picture_count;
    cleanup_free const char **paths = xcalloc(count + 2, sizeof *paths);
    paths[count++] = verb_value(arguments, "--output");
    paths[count++] = verb_value(arguments, "--archive");
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        const char *sign = i < request->picture_count ? strchr(request->pictures[i], '=') : NULL;
        paths[i] = sign ? sign + 1 : paths[i];
        r = prediction_command_check(arguments, paths[i], failure);
        for (size_t k = 0; r == 0 && k < i; k++)
            r = output_check_apart(paths[i], paths[k], failure);
    }
    return r;
}

static void work_clear(struct work *work) {
    report_file_clear(&work->file);
    prediction_archive_clear(&work->archive);
    free(work->scenarios);
    output_line_end(&work->line);
}

/* With the table of scenarios, of which the prediction then reads the copy. */
static int open_archive(struct work *work, const char *target, struct prediction_request *request,
                        struct failure *failure) {
    int r = prediction_archive_open(&work->archive, target, failure);
    if (r < 0 || !request->scenarios)
        return r;
    r = prediction_archive_take_scenarios(&work->archive, request->scenarios, &work->scenarios, failure);
    request->scenarios = work->scenarios;
    return r;
}

/* A FAILURE in the copy of the scenarios is one in the file that was given. */
static void name_scenarios(const struct work *work, const char *given, struct failure *failure) {
    size_t length = work->scenarios ? strlen(work->scenarios) : 0;
    if (length == 0 || strncmp(failure->place, work->scenarios, length) != 0)
        return;
    cleanup_free char *place =
        xformat("%s%s", strcmp(given, "-") == 0 ? "standard input" : given, failure->place + length);
    snprintf(failure->place, sizeof failure->place, "%s", place);
}

/* Seals the prediction into its archive, and adds that to REPORT. */
static int seal(struct work *work, const struct prediction *prediction, const struct explanation *explanation,
                const struct verb_arguments *arguments, struct report *report, struct failure *failure) {
    char sha256[HASH_HEX_SIZE];
    size_t count;
    cleanup_free const char **settings = verb_values(arguments, "--set", &count);
    int r = prediction_archive_seal(&work->archive, prediction, explanation, settings, count,
                                    arguments->command, sha256, failure);
    if (r < 0)
        return r;
    report_text(report->root, "archive", "sealed in", work->archive.target, false);
    report_text(report->root, "archive_sha256", "sha256", sha256, false);
    return 0;
}

int command_predict(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    cleanup(work_clear) struct work work = {.file = {.output = FILE_OUTPUT_NONE},
                                            .archive = {.results = {.output = FILE_OUTPUT_NONE}},
                                            .line = {.began_ns = clock_monotonic_ns()}};
    const char *output = verb_value(arguments, "--output"), *archive = verb_value(arguments, "--archive"),
               *scenarios = verb_value(arguments, "--scenario");
    struct prediction_request request = {.scenarios = scenarios,
                                         .sink = output || archive ? add_to_files : NULL,
                                         .progress = on_progress,
                                         .context = &work};
    if (verb_switch(arguments, "--parameters"))
        return plugin_describe(arguments->installation, arguments->verb->name, arguments->operands[0],
                               verb_switch(arguments, "--json"), failure);
    cleanup_free const char **pictures = verb_values(arguments, "--plot", &request.picture_count);
    request.pictures = pictures;
    int r = check_files(arguments, &request, failure);
    r = r < 0 || !output ? r : report_file_open(&work.file, output, failure);
    work.counted = verb_value(arguments, "--search") ? "search: run" : "scenario";
    catch_signals();
    r = r < 0 || !archive ? r : open_archive(&work, archive, &request, failure);
    r = r < 0 ? r : prediction_command_make(arguments, &request, &prediction, failure);
    output_line_end(&work.line);
    if (r < 0) {
        name_scenarios(&work, scenarios, failure);
        return r;
    }
    cleanup(report_cleanup) struct report *report = report_new();
    struct explanation explanation = {0};
    bool json = verb_switch(arguments, "--json");
    if (json || !isatty(STDOUT_FILENO)) /* else the report on the terminal has the warnings */
        prediction_command_warn(prediction);
    (json ? prediction_describe : prediction_report)(prediction, report->root);
    if (verb_switch(arguments, "--explain"))
        r = prediction_explain(prediction, report->root, &explanation, failure);
    for (size_t i = 0; r == 0 && i < request.picture_count; i++)
        r = picture_draw(prediction, pictures[i], report->root, failure);
    r = r < 0 || !output ? r : finish_file(&work.file, prediction, failure);
    r = r < 0 || !archive ? r : seal(&work, prediction, &explanation, arguments, report, failure);
    if (r < 0)
        return r;
    output_report(report, json, false);
    return !prediction->is_interrupted
               ? 0
               : failure_set_kind(failure, FAILURE_INTERRUPTED, -ECANCELED,
                                  "interrupted after %zu runs; the result is the best of them",
                                  prediction->searched);
}
