/* assay predict: models and scenarios in, numbers with intervals out. */
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/command-line/predict/prediction-command.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/predict/explain.h"
#include "engine/predict/picture.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct work {
    struct report_file file;
    struct output_line line;
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

static int hear_progress(void *context, size_t scenario, double share) {
    struct work *work = context;
    output_line_draw(&work->line, "scenario %zu, %.0f %%", scenario, 100 * share);
    return is_stopped ? -ECANCELED : 0;
}

/* What is done goes to the file. */
static int add_to_file(void *context, const struct prediction *prediction, size_t first,
                       struct failure *failure) {
    struct work *work = context;
    cleanup(report_cleanup) struct report *report = report_new();
    return report_file_add(&work->file, prediction_report_table(prediction, first, report->root), failure);
}

/* With its units beside it. */
static int finish_file(struct report_file *file, const struct prediction *prediction,
                       struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    size_t last = prediction->scenarios.count - 1;
    return report_file_finish(file, prediction_report_table(prediction, last, report->root), failure);
}

/* Refuses files that are inputs, and one file for two outputs. */
static int check_files(const struct verb_arguments *arguments, const struct prediction_request *request,
                       struct failure *failure) {
    cleanup_free const char **paths = xcalloc(request->picture_count + 1, sizeof *paths);
    paths[request->picture_count] = verb_value(arguments, "--output");
    int r = 0;
    for (size_t i = 0; r == 0 && i <= request->picture_count; i++) {
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
    output_line_end(&work->line);
}

int command_predict(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    cleanup(work_clear) struct work work = {{.output = FILE_OUTPUT_NONE}, {.began_ns = clock_monotonic_ns()}};
    const char *output = verb_value(arguments, "--output");
    struct prediction_request request = {
        .sink = output ? add_to_file : NULL, .progress = hear_progress, .context = &work};
    if (verb_switch(arguments, "--parameters"))
        return plugin_describe(arguments->installation, arguments->verb->name, arguments->operands[0],
                               verb_switch(arguments, "--json"), failure);
    cleanup_free const char **pictures = verb_values(arguments, "--plot", &request.picture_count);
    request.pictures = pictures;
    int r = check_files(arguments, &request, failure);
    r = r < 0 || !output ? r : report_file_open(&work.file, output, failure);
    catch_signals();
    r = r < 0 ? r : prediction_command_make(arguments, &request, &prediction, failure);
    output_line_end(&work.line);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = report_new();
    bool json = verb_switch(arguments, "--json");
    if (json || !isatty(STDOUT_FILENO)) /* else the report on the terminal has the warnings */
        prediction_command_warn(prediction);
    (json ? prediction_describe : prediction_report)(prediction, report->root);
    if (verb_switch(arguments, "--explain"))
        r = prediction_explain(prediction, report->root, failure);
    for (size_t i = 0; r == 0 && i < request.picture_count; i++)
        r = picture_draw(prediction, pictures[i], report->root, failure);
    r = r < 0 || !output ? r : finish_file(&work.file, prediction, failure);
    if (r < 0)
        return r;
    output_report(report, json, false);
    return 0;
}
