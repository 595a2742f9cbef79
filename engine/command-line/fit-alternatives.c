/* assay fit alternatives: several models of one table side by side, and the simplest of them that suffices.
 */
#include "engine/fit/alternatives.h"

#include "engine/command-line/fit-arguments.h"
#include "engine/command-line/fit-verbs.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Above this share of the mean no model is said to predict well. */
static const double relative_most = 0.5;

/* ---- What was asked */

/* METHOD... INPUT...: how many of the words are methods. */
static size_t count_methods(const struct installation *installation, const char *const *words, size_t count) {
    size_t methods = 0;
    for (bool is_method = true; methods < count && is_method; methods += is_method) {
        cleanup_free char *plugin = xformat("fit-%s", words[methods]), *path = NULL;
        is_method = !strchr(words[methods], '/') &&
                    installation_find(installation, INSTALLATION_PLUGIN, plugin, &path, NULL) == 0;
    }
    return methods;
}

/* "1+n, M-2": commas within backquotes are of a name. TEXT is cut. Returns how many there are. */
static size_t split_terms(char *text, const char **ret) {
    size_t count = 0;
    bool is_quoted = false;
    for (char *at = text; at && *at; count++) {
        ret[count] = at += strspn(at, " ");
        while (*at && (*at != ',' || is_quoted))
            is_quoted = is_quoted != (*at++ == '`');
        at = *at ? (*at = '\0', at + 1) : NULL;
    }
    return count;
}

/* ---- The report */

static char *by_label(const struct fit_options *options, size_t count) {
    char *label = xstrdup(count > 0 ? options->by[0] : "");
    for (size_t j = 1; j < count; j++) {
        cleanup_free char *before = label;
        label = xformat("%s,%s", before, options->by[j]);
    }
    return label;
}

static void report_items(struct report_section *in, const struct alternatives *alternatives,
                         const struct fit_options *options, const char *unit) {
    const struct report_column columns[] = {
        {.name = "mark", .label = ""},
        {.name = "method"},
        {.name = "terms"},
        {.name = "by"},
        {.name = "groups"},
        {.name = "noise"},
        {.name = "parameters"},
        {.name = "rmse", .label = "error", .unit = unit, .digits = 4},
        {.name = "rmse_error", .label = "std error", .unit = unit, .digits = 2},
        {.name = "relative", .label = "of mean", .digits = 3},
        {.name = "above_least", .label = "above least", .unit = unit, .digits = 2},
        {.name = "above_least_error", .label = "std error", .unit = unit, .digits = 2},
        {.name = "log_score", .label = "log score", .digits = 5},
        {.name = "time", .label = "CPU", .unit = "s", .digits = 2, .detail = true},
    };
    const struct choice *choice = &alternatives->choice;
    struct report_table *table =
        report_table(in, "alternatives", NULL, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < alternatives->count; i++) {
        const struct alternative *item = &alternatives->items[i];
        const struct contender *contender = &alternatives->contenders[i];
        bool is_judged = contender->is_judged && choice->least != SIZE_MAX;
        double above_error = NAN,
               above = is_judged ? contender_above(contender, &alternatives->contenders[choice->least],
                                                   &above_error)
                                 : NAN;
        cleanup_free char *by = by_label(options, item->by_count);
        report_cell_text(table, i == choice->sufficient ? "*" : i == choice->least ? "+" : "");
        report_cell_text(table, item->library->plugin->name);
        report_cell_text(table, item->terms ? item->terms : "");
        report_cell_text(table, item->by_count > 0 ? by : "(pooled)");
        report_cell(table, (double)item->groups);
        report_cell_text(table, item->noise ? item->noise : "");
        report_cell(table, (double)(contender->of_mean + contender->of_noise));
        report_cell(table, is_judged ? contender->score.rmse : NAN);
        report_cell(table, is_judged ? contender->score.rmse_error : NAN);
        report_cell(table, is_judged ? contender->score.relative : NAN);
        report_cell(table, above);
        report_cell(table, above_error);
        report_cell(table, is_judged ? contender->score.log_score : NAN);
        report_cell(table, item->seconds);
    }
    for (size_t i = 0; i < alternatives->count; i++)
        if (!alternatives->contenders[i].is_judged || alternatives->items[i].reason) {
            const struct alternative *item = &alternatives->items[i];
            cleanup_free char *by = by_label(options, item->by_count);
            report_note(in, REPORT_NOTE, "%s%s%s by %s: %s%s", item->library->plugin->name,
                        item->terms ? " " : "", item->terms ? item->terms : "",
                        item->by_count > 0 ? by : "(pooled)",
                        alternatives->contenders[i].is_judged ? "" : "not judged: ",
                        item->reason ? item->reason : "some groups cannot be fitted without a fold");
        }
}

/* A word for a shell: in quotes unless nothing in it has a meaning there. */
static char *add_word(char *line, const char *option, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%";
    cleanup_free char *before = line, *quoted = xstrdup("");
    if (word[0] && strspn(word, plain) == strlen(word))
        return xformat("%s%s %s", line, option, word);
    for (const char *at = word; *at; at++) {
        cleanup_free char *longer = quoted;
        quoted = *at == '\'' ? xformat("%s'\\''", longer) : xformat("%s%c", longer, *at);
    }
    return xformat("%s%s '%s'", line, option, quoted);
}

/* The command that fits the alternative ITEM. */
static char *command_of(const struct fit_arguments *arguments, const struct alternative *item) {
    const struct fit_options *options = &arguments->options;
    cleanup_free char *by = by_label(options, item->by_count);
    char *line = add_word(xstrdup("assay fit"), "", item->library->plugin->name);
    for (size_t i = 0; i < arguments->input_count; i++)
        line = add_word(line, "", arguments->inputs[i]);
    line = add_word(line, " --response", options->response);
    line = item->terms ? add_word(line, " --terms", item->terms) : line;
    line = add_word(line, " --by", item->by_count > 0 ? by : "none");
    if (options->size_count > 0) {
        const struct fit_options sizes = {.by = options->sizes};
        cleanup_free char *list = by_label(&sizes, options->size_count);
        line = add_word(line, " --sizes", list);
    }
    line = options->weights ? add_word(line, " --weights", options->weights) : line;
    line = options->where ? add_word(line, " --where", options->where) : line;
    for (size_t i = 0; i < options->setting_count; i++)
        line = add_word(line, " --set", options->settings[i]);
    cleanup_free char *before = line, *noise = item->noise ? xformat(" --set noise=%s", item->noise) : NULL;
    return xformat("%s%s -o model.json", before, noise ? noise : "");
}

static void report_choice(struct report_section *in, const struct alternatives *alternatives,
                          const struct fit_arguments *arguments) {
    const struct choice *choice = &alternatives->choice;
    if (choice->sufficient == SIZE_MAX) {
        report_note(in, REPORT_WARNING, "none of them could be judged");
        return;
    }
    const struct alternative *item = &alternatives->items[choice->sufficient];
    const struct contender *contender = &alternatives->contenders[choice->sufficient];
    cleanup_free char *command = command_of(arguments, item);
    report_note(
        in, REPORT_LINE,
        "* suffices: of those whose error is at most one standard error above the least (+), it has the "
        "fewest parameters of the mean, and the simplest noise within one of the best log score");
    if (contender->score.relative > relative_most)
        report_note(in, REPORT_WARNING,
                    "none of the alternatives predicts well: the error of this one is %.3g %% of the mean",
                    100 * contender->score.relative);
    report_text(in, "command", NULL, command, false);
}

static struct report *make_report(const struct alternatives *alternatives, const struct table *table,
                                  const struct fit_arguments *arguments) {
    static const char *const units[] = {
        [FIT_FOLDS_BY_SETTING] = "settings", [FIT_FOLDS_BY_ROW] = "rows", [FIT_FOLDS_BY_COLUMNS] = "columns"};
    const struct fit_options *options = &arguments->options;
    const struct table_column *response = table_find(table, options->response);
    struct report *report = report_new();
    struct report_section *root = report->root;
    for (size_t i = 0; i < table->note_count; i++)
        report_note(root, REPORT_NOTE, "%s", table->notes[i]);
    report_text(root, "response", NULL, options->response, false);
    report_number(root, "rows", "rows judged", (double)alternatives->choice.rows, NULL, 0, false);
    report_number(root, "rows_beyond", "rows that some cannot predict",
                  (double)alternatives->choice.rows_beyond, NULL, 0, alternatives->choice.rows_beyond == 0);
    report_number(root, "folds", NULL, (double)alternatives->folds, NULL, 0, false);
    report_text(root, "folds_by", "left out together", units[options->folds_by], false);
    report_number(root, "settings", NULL, (double)alternatives->settings, NULL, 0, false);
    report_items(root, alternatives, options, response ? response->unit : NULL);
    report_choice(root, alternatives, arguments);
    return report;
}

int fit_alternatives(const struct verb_arguments *given, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(fit_arguments_clear) struct fit_arguments arguments = {0};
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup(alternatives_clear) struct alternatives alternatives = {0};
    const char *const *words = given->operands + 1;
    size_t count = given->operand_count - 1, methods;
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    if (r < 0)
        return r;
    methods = count_methods(&installation, words, count);
    if (count == methods)
        return failure_input(failure, NULL, 0, 0,
                             "'alternatives' is given no input; expected archives or CSV files");
    size_t extra = methods > 0 ? methods - 1 : 0;
    r = fit_arguments_read(given, words + extra, count - extra, &installation, &arguments, failure);
    r = r < 0 ? r : table_open(arguments.inputs, arguments.input_count, &arguments.table, &table, failure);
    /* A column of both groups and folds is fine here: pooled models predict groups that they have not seen.
     */
    size_t fold_columns = arguments.options.fold_column_count;
    arguments.options.fold_column_count = 0;
    r = r < 0 ? r : fit_arguments_complete(&arguments, table, failure);
    arguments.options.fold_column_count = fold_columns;
    if (r < 0)
        return r;
    if (arguments.options.folds < 2)
        return failure_input(failure, NULL, 0, 0,
                             "--folds 0; alternatives are judged by cross-validation: expected 2 or more");
    const char *terms = verb_value(given, "--terms");
    cleanup_free char *text = xstrdup(terms ? terms : "");
    cleanup_free const char **list = xcalloc(strlen(text) + 1, sizeof *list);
    arguments.options.suggested = false;
    r = alternatives_make(&installation, table,
                          &(struct alternatives_request){.options = &arguments.options,
                                                         .methods = methods ? words : &arguments.method,
                                                         .method_count = methods ? methods : 1,
                                                         .terms = list,
                                                         .term_count = split_terms(text, list)},
                          &alternatives, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = make_report(&alternatives, table, &arguments);
    return fit_print(report, arguments.json, failure);
}
