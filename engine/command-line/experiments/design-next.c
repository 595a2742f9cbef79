/* assay design next: the rows that would make a model surer. */
#include "engine/command-line/experiments/design-next.h"

#include "archive-format/layout.h"
#include "archive-format/reader.h"
#include "engine/command-line/output.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/model/read.h"
#include "engine/next/next.h"
#include "engine/report/report.h"
#include "engine/run/campaign/experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double lack_share_usual = 0.2;

enum {
    ROWS_USUAL = 20,
    REPEATS_USUAL = 10,
    DESCRIPTION_BYTES_MAX = 4 << 20,
};

/* ---- The experiment whose factors the rows must have */

struct found_experiment {
    const struct installation *installation;
    struct document *document; /* that it was bound from */
    struct experiment *experiment;
    char *from; /* for people */
};

static void found_experiment_clear(struct found_experiment *found) {
    experiment_free(found->experiment);
    document_free(found->document);
    free(found->from);
}

/* From an experiment.yaml, or from a campaign that names one or has one in it. */
static int bind_document(struct found_experiment *found, const char *folder, struct failure *failure) {
    const struct document *document = found->document;
    const struct document_node *node = document_get(document->root, "experiment");
    if (node && node->kind == DOCUMENT_TEXT)
        return experiment_find(node->text, folder, found->installation, document->file, node->line,
                               node->column, &found->experiment, failure);
    return experiment_from_node(document, node ? node : document->root, folder, &found->experiment, failure);
}

/* Reads the experiment of a run's archive: from its description, or from the campaign if it is written there.
 */
static int read_archive(struct found_experiment *found, const char *path, struct archive_reader *archive,
                        struct failure *failure) {
    const char *member = archive_find(archive, ARCHIVE_EXPERIMENT "/" ARCHIVE_EXPERIMENT_FILE, NULL)
                             ? ARCHIVE_EXPERIMENT "/" ARCHIVE_EXPERIMENT_FILE
                             : ARCHIVE_CAMPAIGN;
    cleanup(text_clear) struct text text;
    text_init(&text, DESCRIPTION_BYTES_MAX);
    cleanup_free char *name = xformat("%s:%s", path, member);
    int r = archive_check_measured(archive, failure);
    r = r < 0 ? r : archive_read_member(archive, member, &text, failure);
    r = r < 0 ? r : document_parse_yaml(name, text.bytes, text.length, &found->document, failure);
    return r < 0 ? r : bind_document(found, ".", failure);
}

/* Reads the experiment NAME: an archive, a YAML file, or an installed experiment. */
static int read_named(struct found_experiment *found, const char *name, struct failure *failure) {
    found->from = xstrdup(name);
    if (text_ends_in(name, ".zip")) {
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        int r = archive_open(name, &archive, failure);
        return r < 0 ? r : read_archive(found, name, archive, failure);
    }
    if (text_ends_in(name, ".yaml") || text_ends_in(name, ".yml")) {
        cleanup_free char *folder = xstrndup(name, (size_t)(file_base_name(name) - name));
        int r = document_read_yaml(name, &found->document, failure);
        return r < 0 ? r : bind_document(found, folder[0] ? folder : ".", failure);
    }
    return experiment_find(name, ".", found->installation, "--experiment", 0, 0, &found->experiment, failure);
}

/* Finds the experiment that the model was fitted to: in the archive beside the model if that is of the same
 * run, or the installed experiment of that name. Without either FOUND stays empty. */
static void find_origin(struct found_experiment *found, const struct model *model) {
    cleanup_free char *folder = xstrndup(model->file, (size_t)(file_base_name(model->file) - model->file));
    for (size_t i = 0; !found->experiment && i < model->origin.input_count; i++) {
        const struct model_input *input = &model->origin.inputs[i];
        cleanup_free char *path = xformat("%s%s", folder, input->name);
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        struct failure why = {0};
        if (input->run_id && !strchr(input->name, '/') && file_exists(path) &&
            archive_open(path, &archive, &why) == 0) {
            const char *run_id = archive_run(archive)->run_id;
            if (run_id && strcmp(run_id, input->run_id) == 0 && read_archive(found, path, archive, &why) == 0)
                found->from = xstrdup(path);
        }
        if (found->experiment || !input->experiment || strchr(input->experiment, '/'))
            continue;
        document_free(take_pointer(found->document));
        if (experiment_find(input->experiment, ".", found->installation, NULL, 0, 0, &found->experiment,
                            &why) == 0)
            found->from = xstrdup(input->experiment);
    }
}

/* ---- What was asked */

/* Reads the limits of the next rows from the options: budget, rows, repeats, criterion, lack of fit. */
static int read_limits(const struct verb_arguments *arguments, struct next_request *ret,
                       struct failure *failure) {
    const char *budget = verb_value(arguments, "--budget"), *criterion = verb_value(arguments, "--criterion");
    const char *lack = verb_value(arguments, "--lack-of-fit");
    uint64_t count = budget ? OPTIMAL_ROWS_MAX : ROWS_USUAL, repeats = REPEATS_USUAL;
    ret->lack_share = lack_share_usual;
    ret->budget = INFINITY;
    if (budget && (!unit_parse(budget, UNIT_TIME, &ret->budget) || !(ret->budget > 0) || isinf(ret->budget)))
        return failure_input(failure, NULL, 0, 0, "--budget '%.64s', expected %s above 0", budget,
                             unit_expectation(UNIT_TIME));
    if (criterion && strcmp(criterion, "d") != 0 && strcmp(criterion, "i") != 0)
        return failure_input(
            failure, NULL, 0, 0,
            "--criterion '%.64s', expected i (the average variance of the prediction) or d (the "
            "coefficients)",
            criterion);
    if (lack &&
        (!unit_parse(lack, UNIT_RATIO, &ret->lack_share) || !(ret->lack_share >= 0) || ret->lack_share > 0.9))
        return failure_input(failure, NULL, 0, 0,
                             "--lack-of-fit '%.64s'; expected a share of the budget from 0%% to 90%%", lack);
    int r = verb_count(arguments, "--rows", 1, OPTIMAL_ROWS_MAX, &count, failure);
    r = r < 0 ? r : verb_count(arguments, "--repeats", 1, OPTIMAL_ROWS_MAX, &repeats, failure);
    ret->rows_most = count;
    ret->criterion = criterion && criterion[0] == 'd' ? OPTIMAL_D : OPTIMAL_I;
    ret->repeats_most = verb_switch(arguments, "--distinct") ? 1 : (uint32_t)repeats;
    ret->cost = verb_value(arguments, "--cost");
    ret->weights = verb_value(arguments, "--weights");
    ret->group = verb_value(arguments, "--group");
    ret->candidates = verb_value(arguments, "--candidates");
    return r;
}

/* ---- The report */

/* Adds the ranges from which candidates are taken. */
static void report_domain(struct report_section *in, const struct next_rows *next) {
    static const struct column columns[] = {{.name = "factor"},
                                            {.name = "minimum", .digits = 6},
                                            {.name = "maximum", .digits = 6},
                                            {.name = "unit"},
                                            {.name = "spacing"}};
    struct report_table *table = report_table(in, "domain", NULL, columns, 5);
    for (size_t i = 0; i < next->evaluator->input_count; i++) {
        const struct candidate_range *range = &next->ranges[i];
        const char *unit = model_column_unit(next->request->model, range->name);
        report_cell_text(table, range->name);
        report_cell(table, range->low);
        report_cell(table, range->high);
        report_cell_text(table, unit ? unit : "");
        report_cell_text(table, candidate_range_is_logarithmic(range) ? "logarithmic" : "even");
    }
}

/* Adds a line for each candidate that was chosen, in the order of first choice, with how often it was. */
static void report_rows(struct report_section *in, const struct next_rows *next) {
    const struct design *design = next->candidates;
    const struct model *model = next->request->model;
    size_t count = design->column_count;
    cleanup_free struct column *columns = xcalloc(count + 4, sizeof *columns);
    double all = 0;
    for (size_t i = 0; i < next->rows.count; i++)
        all += next->rows.gains[i];
    for (size_t j = 0; j < count; j++) {
        const char *name = design->columns[j].about.name;
        columns[j] = (struct column){
            .name = name, .unit = model_column_unit(model, name), .digits = 6, .detail = true};
        for (size_t i = 0; i < next->evaluator->input_count; i++)
            columns[j].detail = columns[j].detail && strcmp(next->evaluator->inputs[i].name, name) != 0;
        for (size_t i = 0; i < model->by_count; i++)
            columns[j].detail = columns[j].detail && strcmp(model->by[i], name) != 0;
    }
    columns[count] = (struct column){.name = "times"};
    columns[count + 1] = (struct column){
        .name = next->cost_is_time ? "time" : "cost", .unit = next->cost_is_time ? "s" : NULL, .digits = 4};
    columns[count + 2] = (struct column){.name = "gain", .label = "share of gain", .digits = 3};
    columns[count + 3] = (struct column){.name = "for"};
    struct report_table *table = report_table(in, "rows", NULL, columns, count + 4);
    for (size_t i = 0; i < next->rows.count; i++) {
        size_t row = next->rows.items[i], times = 0, first = i;
        double gain = 0;
        for (size_t k = 0; k < next->rows.count; k++)
            if (next->rows.items[k] == row) {
                first = k < first ? k : first;
                gain += next->rows.gains[k];
                times++;
            }
        for (size_t j = 0; first == i && j < count; j++) {
            char buffer[NUMBER_TEXT_SIZE];
            if (design->columns[j].about.type == COLUMN_STRING)
                report_cell_text(table, design_value(design, row, j, buffer));
            else
                report_cell(table, design_number(design, row, j));
        }
        if (first < i)
            continue;
        report_cell(table, (double)times);
        report_cell(table, next_cost(next, i));
        report_cell(table, gain / all);
        report_cell_text(table, i + next->rows.lack_count < next->rows.count ? "precision" : "lack of fit");
    }
}

/* Makes the report on the chosen rows; the caller frees. */
static struct report *make_report(const struct next_rows *next, const struct found_experiment *found) {
    const struct model *model = next->request->model;
    struct report *report = report_new();
    struct report_section *root = report->root;
    bool is_d = next->request->criterion == OPTIMAL_D;
    report_text(root, "model", NULL, model->file, false);
    report_text(root, "experiment", NULL, found->from ? found->from : "none known", false);
    report_text(root, "criterion", NULL,
                is_d ? "d: the ellipsoid around the coefficients"
                     : "i: the average variance of the prediction",
                false);
    report_number(root, "groups", NULL, (double)next->group_count, NULL, 0, false);
    report_number(root, "candidates", NULL, (double)next->candidate_count, NULL, 0, false);
    report_domain(root, next);
    report_number(root, "row_count", "rows", (double)next->rows.count, NULL, 0, false);
    report_number(root, "lack_of_fit_rows", "rows for lack of fit", (double)next->rows.lack_count, NULL, 0,
                  false);
    report_number(root, "lack_of_fit_share",
                  next->request->budget < INFINITY ? "share of the budget for lack of fit, at most"
                                                   : "share of the rows for lack of fit, at most",
                  next->request->lack_share, NULL, 3, false);
    report_number(root, "repeats_most", "repetitions of one row, at most", next->request->repeats_most, NULL,
                  0, false);
    report_number(root, "least_gain", "gain of a row for precision over that of the best, at least",
                  NEXT_LEAST_GAIN, NULL, 2, false);
    report_number(root, next->cost_is_time ? "time" : "cost",
                  next->cost_is_time ? "predicted time, all groups at once" : NULL, next->cost,
                  next->cost_is_time ? "s" : NULL, 4, false);
    if (isfinite(next->request->budget))
        report_number(root, "budget", NULL, next->request->budget, next->cost_is_time ? "s" : NULL, 4, false);
    report_number(root, "error_before", "standard error of the prediction, before", next->error_before,
                  model->response_unit, 3, false);
    report_number(root, "error_after", "standard error of the prediction, after", next->error_after,
                  model->response_unit, 3, false);
    report_number(root, "relative_before", "of the mean prediction, before",
                  next->error_before / next->response, NULL, 3, false);
    report_number(root, "relative_after", "of the mean prediction, after", next->error_after / next->response,
                  NULL, 3, false);
    report_rows(root, next);
    for (size_t i = 0; i < next->note_count; i++)
        report_note(root, REPORT_NOTE, "%s", next->notes[i]);
    return report;
}

/* The table goes to -o FILE, or to standard output unless that has the JSON; the report to standard error. */
static int write_results(const struct verb_arguments *arguments, const struct next_rows *next,
                         const struct found_experiment *found, struct failure *failure) {
    const char *output = verb_value(arguments, "--output");
    bool json = verb_switch(arguments, "--json"), to_file = output && strcmp(output, "-") != 0;
    cleanup(report_cleanup) struct report *report = make_report(next, found);
    cleanup_free uint32_t *units = xcalloc(next->rows.count + 1, sizeof *units);
    struct design_order order = {
        .row_count = next->candidates->row_count, .count = next->rows.count, .units = units};
    for (size_t i = 0; i < next->rows.count; i++)
        units[i] = (uint32_t)next->rows.items[i];
    if (!json && !to_file)
        report_print(report, stderr, false);
    int r = json && !to_file ? 0 : design_output(next->candidates, &order, output, failure);
    if (r == 0 && json)
        output_report(report, true, false);
    else if (r == 0 && to_file)
        report_print(report, stderr, false);
    return r;
}

int design_next(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(model_cleanup) struct model *model = NULL;
    cleanup(found_experiment_clear) struct found_experiment found = {.installation = arguments->installation};
    cleanup(next_clear) struct next_rows next = {0};
    struct next_request request = {0};
    struct design_factors factors;
    const char *path = arguments->operands[1], *name = verb_value(arguments, "--experiment");
    const char *inputs[] = {path, verb_value(arguments, "--candidates"), name};
    cleanup_free const char **within = verb_values(arguments, "--within", &request.within_count);
    cleanup_free const char **settings = verb_values(arguments, "--set", &request.setting_count);
    int r = output_check(verb_value(arguments, "--output"), inputs, 3, failure);
    r = r < 0 ? r : verb_check_settings(arguments, "--within", failure);
    r = r < 0 ? r : verb_check_settings(arguments, "--set", failure);
    r = r < 0 ? r : read_limits(arguments, &request, failure);
    r = r < 0 ? r : model_file_read(path, &model, failure);
    if (r == 0 && !name)
        find_origin(&found, model);
    else if (r == 0 && strcmp(name, "none") != 0)
        r = read_named(&found, name, failure);
    if (r < 0)
        return r;
    const struct experiment *experiment = found.experiment;
    if (experiment) {
        factors = (struct design_factors){
            .items = experiment->factors, .count = experiment->factor_count, .file = experiment->file};
        request.factors = &factors;
        request.conditions = experiment->conditions;
        request.condition_count = experiment->condition_count;
    }
    request.model = model;
    request.within = within;
    request.settings = settings;
    r = next_find(&request, &next, failure);
    return r < 0 ? r : write_results(arguments, &next, &found, failure);
}
