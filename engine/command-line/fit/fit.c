/* assay fit: tables in, a model out. */
#include "engine/command-line/fit/arguments.h"
#include "engine/command-line/fit/verbs.h"
#include "engine/command-line/output.h"
#include "engine/fit/report.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/write.h"
#include "engine/plugin/library.h"
#include "engine/report/shown.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- How far it is: a line on a terminal, once the command has taken 2 s */

static const int64_t quiet_ns = 2000000000, period_ns = 100000000;

struct progress_line {
    int64_t began_ns, shown_ns;
    bool is_drawn;
};

static void progress_hear(void *context, const char *of, uint64_t done, uint64_t total) {
    struct progress_line *line = context;
    int64_t now_ns = clock_monotonic_ns();
    if (!isatty(STDERR_FILENO) || now_ns - line->began_ns < quiet_ns || now_ns - line->shown_ns < period_ns)
        return;
    if (total > 0)
        fprintf(stderr, "\r\033[K  %llu of %llu %s", (unsigned long long)done, (unsigned long long)total, of);
    else
        fprintf(stderr, "\r\033[K  %llu %s", (unsigned long long)done, of);
    line->is_drawn = true;
    line->shown_ns = now_ns;
}

static void progress_end(struct progress_line *line) {
    if (line->is_drawn)
        fputs("\r\033[K", stderr);
    line->is_drawn = false;
}

/* ---- The result */

static void stamp(struct model *model) {
    char now[32];
    time_t seconds = time(NULL);
    struct tm parts;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts));
    model->origin.engine = xstrdup(ASSAY_VERSION);
    model->origin.created = xstrdup(now);
}

static bool is_constant(const struct table *table, const struct table_numbers *numbers) {
    for (size_t row = 1; row < table->rows; row++)
        if (numbers->values[row] != numbers->values[0])
            return false;
    return table->rows > 1;
}

/* What can be done instead, "; ...": which sizes would have to vary, and of a run the ranking of its
 * settings. */
static char *suggest_instead(const struct table *table, const struct fit_arguments *arguments) {
    cleanup(text_clear) struct text text;
    text_init(&text, FAILURE_TEXT_SIZE / 2);
    for (size_t s = 0; s < arguments->options.size_count; s++)
        for (size_t i = 0; i < table->number_count; i++)
            if (strcmp(table->numbers[i].name, arguments->options.sizes[s]) == 0 &&
                is_constant(table, &table->numbers[i]))
                (void)text_printf(&text, "; '%s' is %.10g in all rows and would have to vary",
                                  table->numbers[i].name, table->numbers[i].values[0]);
    if (table->inputs[0].archive)
        (void)text_printf(&text, "; 'assay report %s' says which setting is best", table->inputs[0].path);
    return xstrdup(text.bytes);
}

static int refuse_empty(const struct fit *fit, const struct table *table,
                        const struct fit_arguments *arguments, struct failure *failure) {
    const struct model *model = fit->model;
    const char *reason = model->skipped_count > 0 ? model->skipped[0].reason : "no rows";
    cleanup_free char *instead = suggest_instead(table, arguments);
    if (table->rows == 0 && table->rows_elsewhere > 0)
        return failure_input(failure, NULL, 0, 0, "none of %llu rows meets --where",
                             (unsigned long long)table->rows_elsewhere);
    if (model->skipped_count <= 1)
        return failure_input(failure, NULL, 0, 0, "the model could not be fitted: %s%s", reason, instead);
    return failure_input(failure, NULL, 0, 0,
                         "none of the %zu groups could be fitted; the first (%s) because of %s%s",
                         model->skipped_count, model->skipped[0].name, reason, instead);
}

static int print_model(const struct model *model, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    int r = model_file_append(model, &text, failure);
    if (r == 0)
        fwrite(text.bytes, 1, text.length, stdout); /* main reports why it failed */
    return r;
}

static void print_report(struct fit *fit, const struct table *table, const struct library *library,
                         const struct fit_arguments *arguments) {
    cleanup(report_cleanup) struct report *report = report_new();
    fit_report(report->root, fit, library, table, &arguments->options, !arguments->brief);
    if (arguments->is_shadowed)
        report_note(report->root, REPORT_NOTE, "'%s' is the method; the file of that name is given as ./%s",
                    arguments->method, arguments->method);
    if (arguments->output)
        report_note(report->root, REPORT_LINE, "written to %s", arguments->output);
    report_print(report, stdout, arguments->verbose);
}

static int finish(struct fit *fit, const struct table *table, const struct library *library,
                  const struct fit_arguments *arguments, struct failure *failure) {
    int r = arguments->output ? model_file_write(fit->model, arguments->output, failure) : 0;
    r = r < 0 || !arguments->plot ? r : fit_plot(fit, library, table, arguments->plot, failure);
    if (r == 0 && arguments->json) {
        for (size_t i = 0; i < fit->note_count; i++)
            fprintf(stderr, "assay: note: %s\n", shown(fit->notes[i]).text);
        return print_model(fit->model, failure);
    }
    if (r == 0)
        print_report(fit, table, library, arguments);
    return r;
}

/* ---- The fit */

static int fit(const struct verb_arguments *words, struct failure *failure) {
    cleanup(library_cleanup) struct library *library = NULL;
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup(fit_arguments_clear) struct fit_arguments arguments = {0};
    cleanup(fit_cleanup) struct fit *result = NULL;
    cleanup(progress_end) struct progress_line progress = {.began_ns = clock_monotonic_ns()};
    int r = fit_arguments_read(words, words->operands, words->operand_count, &arguments, failure);
    r = r < 0 ? r : table_open(arguments.inputs, arguments.input_count, &arguments.table, &table, failure);
    r = r < 0 ? r : fit_arguments_complete(&arguments, table, failure);
    r = r < 0 ? r : library_open(words->installation, "fit", arguments.method, &library, failure);
    if (r < 0)
        return r;
    arguments.options.keep_predictions = !arguments.json || arguments.plot;
    arguments.options.progress = progress_hear;
    arguments.options.progress_context = &progress;
    r = fit_run(library, table, &arguments.options, &result, failure);
    progress_end(&progress);
    if (r < 0)
        return r;
    if (result->model->group_count == 0)
        return refuse_empty(result, table, &arguments, failure);
    stamp(result->model);
    return finish(result, table, library, &arguments, failure);
}

/* ---- The actions */

#define DATA_OPTIONS "--where --with-flagged "
#define FIT_OPTIONS                                                                                          \
    DATA_OPTIONS "--response --terms --sizes --by --weights --set --seed --folds --folds-by --table "        \
                 "--separator --columns --verbose "

static const struct verb_action actions[] = {
    {"alternatives", 0, SIZE_MAX, NULL, FIT_OPTIONS, fit_alternatives},
    {"compare", 0, SIZE_MAX, NULL, DATA_OPTIONS "--data --verbose", fit_compare},
    {"--methods", 0, SIZE_MAX, NULL, "--methods", fit_methods},
    {"--parameters", 0, SIZE_MAX, NULL, "--parameters", fit_parameters},
    {"INPUT", 0, SIZE_MAX, NULL, FIT_OPTIONS "--output --plot --brief", fit},
    {0},
};

/* What is done is chosen by the first word or a switch; a file of such a name is ./compare. */
int command_fit(const struct verb_arguments *arguments, struct failure *failure) {
    const struct verb_action *action = actions;
    bool is_empty = arguments->operand_count == 0;
    const char *first = is_empty ? "" : arguments->operands[0];
    while (action->run != fit && !(action->name[0] == '-' ? verb_switch(arguments, action->name)
                                                          : strcmp(first, action->name) == 0))
        action++;
    if (is_empty && action->run != fit_methods)
        return failure_input(failure, arguments->verb->name, 0, 0, "too few operands; usage: %s",
                             arguments->verb->synopsis);
    if (!is_empty && action->run == fit_methods)
        return failure_input(failure, arguments->verb->name, 0, 0,
                             "unexpected operand '%s'; usage: assay fit --methods", first);
    return verb_act(arguments, actions, action->name, failure);
}
