#include "engine/fit/model-check.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/check.h"
#include "engine/model/model.h"
#include "engine/model/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINDINGS_SHOWN = 100 /* of a file */ };

/* ---- Findings */

/* Adds a table of the findings in the file PATH, at most FINDINGS_SHOWN. UNPLACED is shown for findings
 * without a line. */
static void report_findings(struct report_section *section, const char *path, const char *unplaced,
                            const struct model_findings *findings) {
    static const struct column columns[] = {
        {.name = "place", .label = ""}, {.name = "weight", .label = ""}, {.name = "finding", .label = ""}};
    struct report_table *table = report_table(section, "findings", NULL, columns, 3);
    for (size_t i = 0; i < findings->count && i < FINDINGS_SHOWN; i++) {
        const struct model_finding *finding = &findings->items[i];
        cleanup_free char *place =
            finding->line ? xformat("%s:%zu:%zu:", path, finding->line, finding->column) : xstrdup(unplaced);
        report_cell_text(table, place);
        report_cell_text(table, finding->warning ? "warning:" : "error:");
        report_cell_text(table, finding->sentence);
    }
    if (findings->count > FINDINGS_SHOWN)
        report_note(section, REPORT_NOTE, "%s: %zu more findings are not shown", path,
                    findings->count - FINDINGS_SHOWN);
}

/* ---- Measurements */

static void report_score(struct report_table *table, const char *name, const struct score *score) {
    report_cell_text(table, name);
    report_cell(table, (double)score->rows);
    report_cell(table, score->rmse);
    report_cell(table, 100 * score->relative);
    report_cell(table, 100 * score->median_relative);
    report_cell(table, score->bias);
    report_cell(table, score->noise);
    report_cell(table, score->log_score);
    report_cell(table, 100 * score->coverage);
    report_cell(table, (double)score->extrapolated);
}

/* Adds a table of scores: of all rows, then of each group that has rows. */
static void report_scores(struct report_section *section, const struct model *model,
                          const struct measured *measured, const struct score_row *predicted,
                          const struct score *all) {
    const char *unit = model->response_unit;
    const struct column columns[] = {
        {.name = "group"},
        {.name = "rows"},
        {.name = "rmse", .label = "error", .unit = unit, .digits = 4},
        {.name = "relative", .label = "relative", .unit = "%", .digits = 3},
        {.name = "median_relative", .label = "median", .unit = "%", .digits = 3},
        {.name = "bias", .unit = unit, .digits = 3, .detail = true},
        {.name = "noise", .unit = unit, .digits = 4},
        {.name = "log_score", .label = "log score", .digits = 5},
        {.name = "coverage", .label = "within 95 % intervals", .unit = "%", .digits = 4},
        {.name = "outside", .label = "outside"},
    };
    struct report_table *table =
        report_table(section, "data", NULL, columns, sizeof columns / sizeof *columns);
    report_score(table, "all", all);
    cleanup_free uint32_t *rows = xcalloc(measured->rows.count + 1, sizeof *rows);
    for (size_t g = 0; model->group_count > 1 && g < model->group_count; g++) {
        size_t count = 0;
        for (size_t i = 0; i < measured->rows.count; i++)
            if (measured->rows.groups[i] == g)
                rows[count++] = (uint32_t)i;
        struct score score = score_sum(&measured->rows, predicted, rows, count);
        if (score.rows > 0)
            report_score(table, model->groups[g].name, &score);
    }
    if (all->rows_without_group > 0)
        report_note(section, REPORT_NOTE, "%llu rows belong to no group of the model, and are not compared",
                    (unsigned long long)all->rows_without_group);
    if (all->rows_missing > 0)
        report_note(section, REPORT_NOTE,
                    "%llu rows are left out: a value is missing, or the model has no value "
                    "for the row",
                    (unsigned long long)all->rows_missing);
}

/* Writes why the model fails the comparison into REASON; leaves it "" if its errors are at most MOST times
 * its noise. */
static void find_reject_reason(const struct score *score, double most,
                               char reason[static FAILURE_TEXT_SIZE]) {
    double times = score->rmse / score->noise;
    if (score->rows == 0)
        snprintf(reason, FAILURE_TEXT_SIZE, "no row of the data could be compared");
    else if (!(score->noise > 0))
        snprintf(reason, FAILURE_TEXT_SIZE,
                 "the model states no noise, with which its errors could be compared");
    else if (!(times <= most))
        snprintf(reason, FAILURE_TEXT_SIZE,
                 "the errors are %.3g times the standard deviation that the model "
                 "states; at most %.3g times is accepted (--most)",
                 times, most);
}

/* Compares the model's predictions with the measurements of the check, and reports the scores. REASON tells
 * why the model fails, "" if it passes. Negative with FAILURE: the measurements cannot be read. */
static int compare_with_data(const struct model_check *check, const struct model *model,
                             struct report_section *section, char reason[static FAILURE_TEXT_SIZE],
                             struct failure *failure) {
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup(measured_cleanup) struct measured *measured = NULL;
    int r = table_open(check->inputs, check->input_count, NULL, &table, failure);
    r = r < 0 ? r : measured_read(model, table, &check->how, &measured, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < table->note_count; i++)
        report_note(section, REPORT_NOTE, "%s", table->notes[i]);
    cleanup_free struct score_row *predicted = xcalloc(measured->rows.count + 1, sizeof *predicted);
    score_predict(measured->evaluator, model->groups, &measured->rows, NULL, measured->rows.count, predicted);
    struct score score = score_sum(&measured->rows, predicted, NULL, measured->rows.count);
    report_scores(section, model, measured, predicted, &score);
    find_reject_reason(&score, check->most, reason);
    return 0;
}

/* ---- A file */

/* Reads the model file PATH with all its findings. A file that is no model at all is a finding as well, and 0
 * is returned, so that the check goes on with other files; *PLACE, which the caller frees, is where it was
 * found. */
static int read_file(const char *path, struct model_findings *findings, struct model **ret, char **place,
                     struct failure *failure) {
    struct failure refusal = {0};
    int r = model_file_check(path, findings, ret, &refusal);
    if (r < 0 && refusal.kind != FAILURE_INPUT && refusal.kind != FAILURE_SYSTEM) {
        *failure = refusal;
        return r;
    }
    *place = xformat("%s:", refusal.place[0] ? refusal.place : path);
    if (r < 0)
        model_findings_add(findings, NULL, false, "%s", refusal.text);
    return 0;
}

/* Checks one model file, and compares it with measurements if there are any (model-check.h). REASON is "" if
 * the model is accepted. */
int model_check_file(const struct model_check *check, const char *path, struct report_section *in,
                     struct model **ret, char reason[static FAILURE_TEXT_SIZE], struct failure *failure) {
    cleanup(model_findings_clear) struct model_findings findings = {0};
    struct report_section *section = report_section(in, path, NULL, false);
    cleanup_free char *place = NULL;
    reason[0] = '\0';
    int r = read_file(path, &findings, ret, &place, failure);
    if (findings.count > 0)
        report_findings(section, path, place, &findings);
    if (findings.error_count > 0)
        snprintf(reason, FAILURE_TEXT_SIZE, "%zu finding%s", findings.error_count,
                 findings.error_count == 1 ? "" : "s");
    else if (r == 0 && check->input_count > 0)
        r = compare_with_data(check, *ret, section, reason, failure);
    if (r < 0)
        return r;
    bool refused = reason[0] != '\0';
    cleanup_free char *verdict = refused ? xformat("%s: refused: %s", path, reason)
                                         : xformat("%s: good: %s model of %zu group%s", path, (*ret)->kind,
                                                   (*ret)->group_count, (*ret)->group_count == 1 ? "" : "s");
    report_verdict(section, "verdict", refused ? REPORT_NOT_USABLE : model_grade(*ret), verdict);
    return 0;
}
