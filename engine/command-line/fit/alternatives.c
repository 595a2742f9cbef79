/* assay fit alternatives: several models of one table side by side, and the simplest of them that suffices.
 */
#include "engine/fit/alternatives.h"

#include "engine/command-line/fit/arguments.h"
#include "engine/command-line/fit/choice.h"
#include "engine/command-line/fit/verbs.h"
#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fits to nine tenths of the rows tell models apart that fits to four fifths do not. */
enum { FOLDS_USUAL = 10 };

/* ---- What was asked */

/* METHOD... INPUT...: how many of the words are methods. */
static size_t count_methods(const struct installation *installation, const char *const *words, size_t count) {
    size_t methods = 0;
    while (methods < count && fit_arguments_is_method(installation, words[methods]))
        methods++;
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

static struct report *make_report(const struct alternatives *alternatives, const struct table *table,
                                  const struct fit_arguments *arguments) {
    static const char *const units[] = {
        [FIT_FOLDS_BY_SETTING] = "settings", [FIT_FOLDS_BY_ROW] = "rows", [FIT_FOLDS_BY_COLUMNS] = "columns"};
    static const struct report_column columns[] = {{.name = "method"}, {.name = "terms"}, {.name = "by"}};
    enum { LABELS = sizeof columns / sizeof *columns };
    const struct fit_options *options = &arguments->options;
    size_t count = alternatives->count;
    cleanup_free char **by = xcalloc(count + 1, sizeof *by);
    cleanup_free const char **labels = xcalloc(count * LABELS + 1, sizeof *labels);
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
    for (size_t i = 0; i < count; i++) {
        const struct alternative *item = &alternatives->items[i];
        by[i] = item->by_count > 0 ? by_label(options, item->by_count) : xstrdup("(pooled)");
        labels[i * LABELS] = item->is_repeated ? NULL : item->library->plugin->name;
        labels[i * LABELS + 1] = item->terms ? item->terms : "";
        labels[i * LABELS + 2] = by[i];
    }
    fit_choice_report(root, columns, labels, LABELS, alternatives->contenders, count, &alternatives->choice,
                      response ? response->unit : NULL);
    size_t sufficient = alternatives->choice.sufficient;
    if (sufficient != SIZE_MAX && alternatives->contenders[sufficient].grade == REPORT_NOT_USABLE)
        report_note(root, REPORT_WARNING, "* is %s", alternatives->contenders[sufficient].verdict);
    for (size_t i = 0; i < count; i++) {
        const struct alternative *item = &alternatives->items[i];
        bool is_judged = alternatives->contenders[i].is_judged;
        if (!item->is_repeated && (item->reason || !is_judged))
            report_note(root, REPORT_NOTE, "%s %s by %s: %s%s", labels[i * LABELS], labels[i * LABELS + 1],
                        by[i], is_judged ? "" : "not judged: ",
                        item->reason ? item->reason : "some groups cannot be fitted without a fold");
        free(by[i]);
    }
    return report;
}

int fit_alternatives(const struct verb_arguments *given, struct failure *failure) {
    cleanup(fit_arguments_clear) struct fit_arguments arguments = {0};
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup(alternatives_clear) struct alternatives alternatives = {0};
    const char *const *words = given->operands + 1;
    size_t count = given->operand_count - 1;
    size_t methods = count_methods(given->installation, words, count);
    if (count == methods)
        return failure_input(failure, NULL, 0, 0,
                             "'alternatives' is given no input; expected archives or CSV files");
    size_t extra = methods > 0 ? methods - 1 : 0;
    int r = fit_arguments_read(given, words + extra, count - extra, &arguments, failure);
    r = r < 0 ? r : table_open(arguments.inputs, arguments.input_count, &arguments.table, &table, failure);
    /* A column of both groups and folds is fine here: pooled models predict groups that they have not seen.
     * And what the archive sets is of one method, and may be the noise, which is to be chosen. */
    size_t fold_columns = arguments.options.fold_column_count, set = arguments.options.setting_count;
    arguments.options.fold_column_count = 0;
    r = r < 0 ? r : fit_arguments_complete(&arguments, table, failure);
    arguments.options.fold_column_count = fold_columns;
    arguments.options.setting_count = set;
    if (r < 0)
        return r;
    if (!verb_value(given, "--folds"))
        arguments.options.folds = FOLDS_USUAL;
    if (arguments.options.folds < 2)
        return failure_input(failure, NULL, 0, 0,
                             "--folds 0; alternatives are judged by cross-validation: expected 2 or more");
    const char *terms = verb_value(given, "--terms");
    cleanup_free char *text = xstrdup(terms ? terms : "");
    cleanup_free const char **list = xcalloc(strlen(text) + 1, sizeof *list);
    arguments.options.suggested = false;
    r = alternatives_make(given->installation, table,
                          &(struct alternatives_request){.options = &arguments.options,
                                                         .methods = methods ? words : &arguments.method,
                                                         .method_count = methods ? methods : 1,
                                                         .terms = list,
                                                         .term_count = split_terms(text, list)},
                          &alternatives, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = make_report(&alternatives, table, &arguments);
    output_report(report, arguments.json, arguments.verbose);
    return 0;
}
