/* assay model show: what is in a model file. */
#include "engine/command-line/model/command.h"

#include "engine/command-line/model/report.h"
#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/evaluator.h"
#include "engine/model/read.h"
#include "engine/model/verdict.h"

#include <stdint.h>
#include <string.h>

enum { TERMS_WRITTEN = 12 /* of a formula; the others are in the table of coefficients */ };

/* Of a kind that is not evaluated row by row: "intercept, mnk". */
static void report_coefficients(struct report_section *section, const struct model *model) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    for (size_t t = 0; t < model->term_count; t++)
        text_printf(&text, "%s%s", t ? ", " : "", model->terms[t].name);
    for (size_t j = 0; j < model->by_count; j++)
        text_printf(&text, "%s%s", j ? ", " : "; by ", model->by[j]);
    report_text(section, "coefficients", NULL, text.bytes, false);
}

/* "duration (s) = c1 + c2 m*n*k" */
static void report_formula(struct report_section *section, const struct model *model) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    text_printf(&text, "%s%s%s%s =", model->response, model->response_unit ? " (" : "",
                model->response_unit ? model->response_unit : "", model->response_unit ? ")" : "");
    for (size_t t = 0; t < model->term_count && t < TERMS_WRITTEN; t++) {
        const char *name = model->terms[t].name;
        text_printf(&text, "%s c%zu%s%s", t ? " +" : "", t + 1, strcmp(name, "1") == 0 ? "" : " ",
                    strcmp(name, "1") == 0 ? "" : name);
    }
    if (model->term_count > TERMS_WRITTEN)
        text_printf(&text, " + ... (%zu terms)", model->term_count);
    for (size_t j = 0; j < model->by_count; j++)
        text_printf(&text, "%s%s", j ? ", " : "; by ", model->by[j]);
    report_text(section, "formula", NULL, text.bytes, false);
}

static void report_pair(struct report_section *section, const char *name, const char *text, bool detail) {
    if (text)
        report_text(section, name, NULL, text, detail);
}

static void report_inputs(struct report_section *section, const struct model_origin *origin) {
    static const struct report_column columns[] = {{.name = "name", .label = "input"},
                                                   {.name = "rows"},
                                                   {.name = "experiment"},
                                                   {.name = "run_id", .label = "run"},
                                                   {.name = "sha256"}};
    if (origin->input_count == 0)
        return;
    struct report_table *table = report_table(section, "inputs", NULL, columns, 5);
    for (size_t i = 0; i < origin->input_count; i++) {
        const struct model_input *input = &origin->inputs[i];
        report_cell_text(table, input->name);
        report_cell(table, (double)input->rows);
        report_cell_text(table, input->experiment ? input->experiment : "");
        report_cell_text(table, input->run_id ? input->run_id : "");
        report_cell_text(table, input->sha256);
    }
}

static void report_origin(struct report_section *in, const struct model *model) {
    const struct model_origin *origin = &model->origin;
    struct report_section *section = report_section(in, "origin", NULL, false);
    cleanup_free char *made = xformat(
        "%s %s, assay %s, %s", origin->plugin ? origin->plugin : "-", origin->version ? origin->version : "-",
        origin->engine ? origin->engine : "-", origin->created ? origin->created : "-");
    report_text(section, "made", "made by", made, false);
    cleanup(text_clear) struct text settings;
    text_init(&settings, SIZE_MAX / 4);
    for (size_t i = 0; i < origin->setting_count; i++)
        text_printf(&settings, "%s%s=%s", i ? " " : "", origin->settings[i], origin->setting_values[i]);
    if (origin->setting_count > 0)
        report_text(section, "settings", NULL, settings.bytes, false);
    report_pair(section, "where", origin->where, false);
    report_pair(section, "weights", model->weights, false);
    report_pair(section, "folds_by", origin->folds_by, true);
    report_number(section, "rows", NULL, (double)origin->rows, NULL, 0, false);
    report_number(section, "seed", NULL, (double)origin->seed, NULL, 0, true);
    report_inputs(section, origin);
}

int model_command_show(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(model_file_cleanup) struct model *model = NULL;
    cleanup(report_cleanup) struct report *report = report_new();
    const char *name = verb_value(arguments, "--group");
    size_t group = 0;
    int r = model_file_read(arguments->operands[1], &model, failure);
    r = r < 0 || !name ? r : model_group_find(model, name, &group, failure);
    if (r < 0)
        return r;
    cleanup_free char *head =
        xformat("%s: %s model of %s, %zu group%s", arguments->operands[1], model->kind, model->response,
                model->group_count, model->group_count == 1 ? "" : "s");
    report_text(report->root, "model", "", head, false);
    if (!name)
        model_verdict_report(report->root, model, NULL);
    report_pair(report->root, "kind", model->kind, true);
    report_pair(report->root, "over", model->over, model->over == NULL);
    report_pair(report->root, "named_by", model->named_by, false);
    report_number(report->root, "group_count", "groups", (double)model->group_count, NULL, 0, true);
    if (!name)
        model_verdict_speed(report->root, model);
    if (evaluator_knows(model->kind))
        report_formula(report->root, model);
    else
        report_coefficients(report->root, model);
    report_origin(report->root, model);
    if (name)
        model_report_group(report_section(report->root, "groups", NULL, false), model, &model->groups[group],
                           true);
    else
        model_report_groups(report->root, model, true);
    output_report(report, verb_switch(arguments, "--json"), verb_switch(arguments, "--verbose"));
    return 0;
}
