/* assay fit: tables in, a model out. */
#include "engine/command-line/fit/arguments.h"
#include "engine/command-line/fit/verbs.h"
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
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

static void on_progress(void *context, const char *of, uint64_t done, uint64_t total) {
    if (total > 0)
        output_line_draw(context, "%llu of %llu %s", (unsigned long long)done, (unsigned long long)total, of);
    else
        output_line_draw(context, "%llu %s", (unsigned long long)done, of);
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

/* What can be done instead, "; ...": which sizes would have to vary, and how to rank the settings of a run.
 * The caller frees. */
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

/* Fails because no group could be fitted, with the reason of the first. */
static int refuse_empty(const struct fit *fit, const struct table *table,
                        const struct fit_arguments *arguments, struct failure *failure) {
    const struct model *model = fit->model;
    const char *reason = model->skipped_count > 0 ? model->skipped[0].reason : "no rows";
    cleanup_free char *instead = suggest_instead(table, arguments);
    if (table->rows == 0 && table->rows_not_matching > 0)
        return failure_input(failure, NULL, 0, 0, "none of %llu rows meets --where",
                             (unsigned long long)table->rows_not_matching);
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

static bool is_page(const char *plot) {
    return plot && text_ends_in(plot, ".html");
}

/* Prints the report, and writes it as a page if --plot names one. With --json only the page. */
static int show_report(struct fit *fit, const struct table *table, const struct library *library,
                       const struct fit_arguments *arguments, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    fit_report(report->root, fit, library, table, &arguments->options, !arguments->brief);
    if (arguments->is_shadowed)
        report_note(report->root, REPORT_NOTE, "'%s' is the method; the file of that name is given as ./%s",
                    arguments->method, arguments->method);
    if (arguments->output)
        report_note(report->root, REPORT_LINE, "written to %s", arguments->output);
    if (!arguments->json)
        report_print(report, stdout, arguments->verbose);
    if (!is_page(arguments->plot))
        return 0;
    cleanup_free char *title = xformat("%s by %s", fit->model->response, library->plugin->name);
    fit_report_curves(report_section(report->root, "curves", "Data and curves", false), fit, table);
    return report_write_page(report, title, arguments->plot, failure);
}

/* Writes the model file, the plot and the report, as the options say. */
static int write_results(struct fit *fit, const struct table *table, const struct library *library,
                         const struct fit_arguments *arguments, struct failure *failure) {
    int r = arguments->output ? model_file_write(fit->model, arguments->output, failure) : 0;
    if (r == 0 && arguments->plot && !is_page(arguments->plot))
        r = fit_plot(fit, library, table, arguments->plot, failure);
    if (r == 0 && (!arguments->json || is_page(arguments->plot)))
        r = show_report(fit, table, library, arguments, failure);
    if (r == 0 && arguments->json) {
        for (size_t i = 0; i < fit->note_count; i++)
            fprintf(stderr, "assay: note: %s\n", shown(fit->notes[i]).text);
        return print_model(fit->model, failure);
    }
    return r;
}

/* ---- The fit */

/* A fit, and what it was made from and with. */
struct work {
    struct fit_arguments arguments;
    struct table *table;
    struct library *library;
    struct fit *fit;
};

static void work_clear(struct work *work) {
    fit_free(work->fit);
    library_close(work->library);
    table_free(work->table);
    fit_arguments_clear(&work->arguments);
}

/* Reads the table and fits the model, by the arguments that were read before. */
static int run_fit(struct work *work, struct failure *failure) {
    struct fit_arguments *arguments = &work->arguments;
    cleanup(output_line_end) struct output_line progress = {.began_ns = clock_monotonic_ns()};
    int r = table_open(arguments->inputs, arguments->input_count, &arguments->table, &work->table, failure);
    r = r < 0 ? r : fit_arguments_complete(arguments, work->table, failure);
    r = r < 0
            ? r
            : library_open(arguments->given->installation, "fit", arguments->method, &work->library, failure);
    arguments->options.progress = on_progress;
    arguments->options.progress_context = &progress;
    r = r < 0 ? r : fit_run(work->library, work->table, &arguments->options, &work->fit, failure);
    if (r < 0)
        return r;
    if (work->fit->model->group_count == 0)
        return refuse_empty(work->fit, work->table, arguments, failure);
    stamp(work->fit->model);
    return 0;
}

static int fit(const struct verb_arguments *words, struct failure *failure) {
    cleanup(work_clear) struct work work = {0};
    int r = fit_arguments_read(words, words->operands, words->operand_count, &work.arguments, failure);
    work.arguments.options.keep_predictions = !work.arguments.json || work.arguments.plot;
    r = r < 0 ? r : run_fit(&work, failure);
    return r < 0 ? r : write_results(work.fit, work.table, work.library, &work.arguments, failure);
}

int fit_archive(const struct installation *installation, const char *path, struct text *ret_model,
                char **ret_experiment, struct failure *failure) {
    cleanup(work_clear) struct work work = {0};
    const struct verb_arguments words = {.installation = installation};
    int r = fit_arguments_read(&words, &path, 1, &work.arguments, failure);
    work.arguments.table.hash = true;
    r = r < 0 ? r : run_fit(&work, failure);
    r = r < 0 ? r : model_file_append(work.fit->model, ret_model, failure);
    const char *experiment = r < 0 ? NULL : work.fit->model->origin.inputs[0].experiment;
    *ret_experiment = experiment ? xstrdup(experiment) : NULL;
    return r;
}

static int fit_parameters(const struct verb_arguments *arguments, struct failure *failure) {
    if (arguments->operand_count != 1)
        return failure_input(failure, NULL, 0, 0,
                             "--parameters is of one method; expected 'assay fit METHOD --parameters'");
    return plugin_describe(arguments->installation, "fit", arguments->operands[0],
                           verb_switch(arguments, "--json"), failure);
}

/* ---- The actions */

#define DATA_OPTIONS "--where --with-flagged "
#define FIT_OPTIONS                                                                                          \
    DATA_OPTIONS "--response --terms --sizes --by --weights --set --seed --folds --folds-by --table "        \
                 "--separator --columns --verbose "

static const struct verb_action actions[] = {
    {"alternatives", 0, SIZE_MAX, NULL, FIT_OPTIONS, fit_alternatives},
    {"--parameters", 0, SIZE_MAX, NULL, "--parameters", fit_parameters},
    {"INPUT", 0, SIZE_MAX, NULL, FIT_OPTIONS "--output --plot --brief", fit},
    {0},
};

/* The first word or a switch chooses an action; a file with the name of an action is given as ./alternatives.
 */
int command_fit(const struct verb_arguments *arguments, struct failure *failure) {
    const struct verb_action *action = actions;
    while (action->run != fit &&
           !(action->name[0] == '-' ? verb_switch(arguments, action->name)
                                    : strcmp(arguments->operands[0], action->name) == 0))
        action++;
    return verb_run_action(arguments, actions, action->name, failure);
}
