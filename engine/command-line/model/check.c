/* assay model check: whether model files hold together, and whether they hold for new measurements. */
#include "engine/command-line/model/command.h"

#include "engine/command-line/output.h"
#include "engine/fit/measured.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/model/check.h"
#include "engine/model/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FINDINGS_SHOWN = 100 /* of a file */ };

static const double most_usual = 2;

struct check {
    const char **inputs; /* owned: measurements to compare with */
    size_t input_count;
    struct measured_options how;
    double most; /* errors over what the noise says */
    size_t refused;
    char verdict[FAILURE_TEXT_SIZE]; /* on the file in hand; "": it is good */
};

static void check_clear(struct check *check) {
    free(check->inputs);
}

/* ---- Findings */

static void report_findings(struct report_section *section, const char *path, const char *unplaced,
                            const struct model_findings *findings) {
    static const struct report_column columns[] = {
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
        report_note(section, REPORT_NOTE, "%s: and %zu more", path, findings->count - FINDINGS_SHOWN);
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

/* All rows, then those of each group that has some. */
static void report_scores(struct report_section *section, const struct model *model,
                          const struct measured *measured, const struct score_row *predicted,
                          const struct score *all) {
    const char *unit = model->response_unit;
    const struct report_column columns[] = {
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
        report_note(section, REPORT_NOTE, "%llu rows are in no group of the model",
                    (unsigned long long)all->rows_without_group);
    if (all->rows_missing > 0)
        report_note(section, REPORT_NOTE,
                    "%llu rows are left out: a value is missing, or the model is not defined there",
                    (unsigned long long)all->rows_missing);
}

static void judge(struct check *check, const struct score *score) {
    double times = score->rmse / score->noise;
    size_t size = sizeof check->verdict;
    if (score->rows == 0)
        snprintf(check->verdict, size, "no row of the data could be compared");
    else if (!(score->noise > 0))
        snprintf(check->verdict, size, "it has no noise, which errors could be compared with");
    else if (!(times <= check->most))
        snprintf(check->verdict, size,
                 "the errors are %.3g times what the noise says; expected at most %.3g times (--most)", times,
                 check->most);
}

static int compare(struct check *check, const struct model *model, struct report_section *section,
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
    judge(check, &score);
    return 0;
}

/* ---- A file */

/* What is no model at all is a finding too, so that the other files are still looked at; PLACE is then its
 * place. */
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

static int check_file(struct check *check, const char *path, struct report_section *in,
                      struct failure *failure) {
    cleanup(model_file_cleanup) struct model *model = NULL;
    cleanup(model_findings_clear) struct model_findings findings = {0};
    struct report_section *section = report_section(in, path, NULL, false);
    check->verdict[0] = '\0';
    cleanup_free char *place = NULL;
    int r = read_file(path, &findings, &model, &place, failure);
    if (model)
        model_command_warn(model);
    if (findings.count > 0)
        report_findings(section, path, place, &findings);
    if (findings.error_count > 0)
        snprintf(check->verdict, sizeof check->verdict, "%zu finding%s", findings.error_count,
                 findings.error_count == 1 ? "" : "s");
    else if (r == 0 && check->input_count > 0)
        r = compare(check, model, section, failure);
    if (r < 0)
        return r;
    bool refused = check->verdict[0] != '\0';
    cleanup_free char *verdict = refused ? xformat("%s: refused: %s", path, check->verdict)
                                         : xformat("%s: good: %s model of %zu group%s", path, model->kind,
                                                   model->group_count, model->group_count == 1 ? "" : "s");
    report_verdict(section, "verdict", refused ? REPORT_NOT_USABLE : model_grade(model), verdict);
    check->refused += refused;
    return 0;
}

/* ---- The action */

static int read_options(const struct verb_arguments *arguments, struct check *ret, struct failure *failure) {
    const char *most = verb_value(arguments, "--most");
    ret->most = most_usual;
    ret->how = (struct measured_options){.response = true,
                                         .where = verb_value(arguments, "--where"),
                                         .with_flagged = verb_switch(arguments, "--with-flagged")};
    ret->inputs = verb_values(arguments, "--data", &ret->input_count);
    if (most && (!number_parse_double(most, strlen(most), &ret->most) || !(ret->most > 0)))
        return failure_input(failure, NULL, 0, 0, "--most '%.64s'; expected a number above 0", most);
    if (ret->input_count == 0 && (most || ret->how.where || ret->how.with_flagged))
        return failure_input(
            failure, NULL, 0, 0,
            "--most, --where and --with-flagged are about data, and there are none; expected "
            "--data");
    return 0;
}

int model_command_check(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(check_clear) struct check check = {0};
    cleanup(report_cleanup) struct report *report = report_new();
    int r = read_options(arguments, &check, failure);
    for (size_t i = 1; r == 0 && i < arguments->operand_count; i++)
        r = check_file(&check, arguments->operands[i], report->root, failure);
    if (r == 0)
        output_report(report, verb_switch(arguments, "--json"), false);
    if (r < 0 || check.refused == 0)
        return r;
    if (arguments->operand_count == 2)
        return failure_input(failure, NULL, 0, 0, "the model does not hold: %s", check.verdict);
    return failure_input(failure, NULL, 0, 0, "%zu of %zu models do not hold", check.refused,
                         arguments->operand_count - 1);
}
