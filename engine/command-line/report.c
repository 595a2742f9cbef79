/* assay report: the settings of runs, best first. */
#include "engine/command-line/report.h"

#include "engine/analysis/answer.h"
#include "engine/analysis/influence.h"
#include "engine/analysis/run-page.h"
#include "engine/analysis/trust.h"
#include "engine/command-line/output.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/predict/prediction-archive.h"
#include "engine/report/shown.h"
#include "engine/run/record/status.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SETTINGS_AFTER_RUN = 10, SETTINGS_MEANWHILE = 3, BEST_BYTES_MAX = 64 << 20 };

/* Reads the measurements of the runs, and counts the units that failed or are missing. */
static int read_runs(const char *const *paths, size_t count, const char *response, bool most,
                     struct measurements *ret, struct failure *failure) {
    int r = measurements_read(paths, count, response, most, ret, failure);
    for (size_t i = 0; r == 0 && i < ret->table->input_count; i++) {
        cleanup(run_status_cleanup) struct run_status *status = NULL;
        const char *path = ret->table->inputs[i].path;
        r = file_is_folder(path) ? run_status_read(path, &status, failure)
                                 : run_status_read_archive(path, &status, failure);
        if (r < 0)
            return r;
        ret->failed += status->failed;
        ret->missing += status->left;
    }
    return r;
}

/* Prints the best setting in the form that the experiment declares. */
static int print_best(const struct measurements *measurements, const struct ranking *ranking,
                      struct failure *failure) {
    cleanup(text_clear) struct text best;
    text_init(&best, BEST_BYTES_MAX);
    int r = answer_best(measurements, ranking, &best, failure);
    if (r < 0)
        return r;
    if (measurements->all_flagged)
        fprintf(stderr, "assay: warning: do not trust: every unit was flagged (%s)\n",
                shown(measurements->flags).text);
    output_bytes(best.bytes, best.length);
    return 0;
}

/* The archive PATH, or a folder that it was extracted to, if it is that of a prediction; else NULL, also
 * where it cannot be read, which is said by whatever reads it next. */
static struct archive_reader *open_prediction(const char *path) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    if (archive_open(path, &archive, NULL) < 0)
        return NULL;
    return archive_run(archive)->kind == ARCHIVE_OF_PREDICTION ? take_pointer(archive) : NULL;
}

static int write_prediction_page(const char *path, struct archive_reader *archive, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    struct report_section *prediction = report_section(report->root, "prediction", "Prediction", false);
    int r = prediction_archive_report(archive, true, prediction, failure);
    r = r < 0 ? r : prediction_archive_charts(archive, report->root, failure);
    return r < 0 ? r : report_write_page(report, file_base_name(archive_path(archive)), path, failure);
}

/* Reports on the archive of a prediction. Options that rank measurements are refused. */
static int report_prediction(const struct verb_arguments *arguments, struct archive_reader *archive,
                             struct failure *failure) {
    static const char *const rankings[] = {"--best", "--most", "--least"};
    bool json = verb_switch(arguments, "--json");
    for (size_t i = 0; i < sizeof rankings / sizeof *rankings; i++)
        if (verb_switch(arguments, rankings[i]) || verb_value(arguments, rankings[i]))
            return failure_input(failure, archive_path(archive), 0, 0,
                                 "%s ranks what was measured, and this is the archive of a prediction",
                                 rankings[i]);
    if (arguments->operand_count > 1)
        return failure_input(failure, archive_path(archive), 0, 0,
                             "this is the archive of a prediction; give it alone");
    if (verb_value(arguments, "--output"))
        return write_prediction_page(verb_value(arguments, "--output"), archive, failure);
    cleanup(report_cleanup) struct report *report = report_new();
    int r = prediction_archive_report(archive, !json, report->root, failure);
    if (r == 0)
        output_report(report, json, verb_switch(arguments, "--verbose"));
    return r;
}

/* Refuses --output with options that print, with an input's name, or without the ending .html. */
static int check_output(const struct verb_arguments *arguments, struct failure *failure) {
    static const char *const others[] = {"--json", "--best", "--verbose"};
    const char *output = verb_value(arguments, "--output");
    for (size_t i = 0; output && i < sizeof others / sizeof *others; i++)
        if (verb_switch(arguments, others[i]))
            return failure_input(failure, NULL, 0, 0,
                                 "%s prints, and --output writes a page; give one of them", others[i]);
    if (output && !text_ends_in(output, ".html"))
        return failure_input(failure, NULL, 0, 0,
                             "the page '%s' has no name of a page; expected one that ends in .html", output);
    return output_check(output, arguments->operands, arguments->operand_count, failure);
}

static int write_run_page(const char *path, const struct measurements *measurements,
                          const struct ranking *ranking, struct failure *failure) {
    cleanup(report_cleanup) struct report *report = report_new();
    cleanup_free char *title = run_page_title(measurements);
    int r = run_page_report(report->root, measurements, ranking, failure);
    return r < 0 ? r : report_write_page(report, title, path, failure);
}

int command_report(const struct verb_arguments *arguments, struct failure *failure) {
    int r = check_output(arguments, failure);
    if (r < 0)
        return r;
    cleanup(archive_cleanup) struct archive_reader *prediction = open_prediction(arguments->operands[0]);
    if (prediction)
        return report_prediction(arguments, prediction, failure);
    cleanup(measurements_clear) struct measurements measurements = {0};
    cleanup(ranking_clear) struct ranking ranking = {0};
    const char *most = verb_value(arguments, "--most"), *least = verb_value(arguments, "--least");
    bool json = verb_switch(arguments, "--json");
    if (most && least)
        return failure_input(failure, NULL, 0, 0, "--most and --least exclude each other; give one of them");
    if (json && verb_switch(arguments, "--best"))
        return failure_input(failure, NULL, 0, 0,
                             "--best prints no JSON; the first of 'settings' of --json is the best");
    r = read_runs(arguments->operands, arguments->operand_count, most ? most : least, most, &measurements,
                  failure);
    if (r < 0)
        return r;
    ranking_make(&measurements, &ranking);
    if (verb_switch(arguments, "--best"))
        return print_best(&measurements, &ranking, failure);
    if (verb_value(arguments, "--output"))
        return write_run_page(verb_value(arguments, "--output"), &measurements, &ranking, failure);
    cleanup(report_cleanup) struct report *report = report_new();
    answer_report(report->root, &measurements, &ranking, SIZE_MAX);
    influence_report(report->root, &measurements);
    trust_report(report->root, &measurements, true);
    output_report(report, json, verb_switch(arguments, "--verbose"));
    return 0;
}

/* ---- At the end of a run */

/* Prints the best settings and the checks after a run, to standard error. */
static void print_answer(const char *archive, const struct measurements *measurements) {
    cleanup(ranking_clear) struct ranking ranking = {0};
    cleanup(report_cleanup) struct report *report = report_new();
    ranking_make(measurements, &ranking);
    size_t rows = ranking.choices == 0 && ranking.count > 1 ? 0 : SETTINGS_AFTER_RUN;
    answer_report(report->root, measurements, &ranking, rows);
    trust_report(report->root, measurements, false);
    if (ranking.best && ranking.count > rows)
        report_note(report->root, REPORT_LINE, "all %zu settings: assay report %s", ranking.count, archive);
    if (ranking.choices > 0 || (ranking.best && measurements->lines))
        report_note(report->root, REPORT_LINE, "the best setting, to be used: assay report %s --best",
                    archive);
    fputc('\n', stderr);
    report_print(report, stderr, false);
}

void report_after_run(const char *folder, const char *archive) {
    cleanup(measurements_clear) struct measurements measurements = {0};
    struct failure why = {0};
    if (read_runs(&folder, 1, NULL, false, &measurements, &why) < 0)
        fprintf(stderr, "the settings are not ranked: %s\n", shown(why.text).text);
    else
        print_answer(archive, &measurements);
}

char *report_best_settings(const char *folder) {
    cleanup(measurements_clear) struct measurements measurements = {0};
    cleanup(ranking_clear) struct ranking ranking = {0};
    cleanup(report_cleanup) struct report *report = report_new();
    struct failure why = {0};
    if (read_runs(&folder, 1, NULL, false, &measurements, &why) < 0)
        return NULL;
    ranking_make(&measurements, &ranking);
    if (!ranking.best)
        return NULL;
    answer_report(report->root, &measurements, &ranking, SETTINGS_MEANWHILE);
    return report_render(report, false);
}
