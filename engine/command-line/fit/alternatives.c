/* assay fit alternatives: several models of one table side by side, and the simplest of them that suffices.
 */
#include "engine/fit/alternatives.h"

#include "engine/command-line/fit/arguments.h"
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

/* ---- The action */

/* Fits all given methods and terms, scores them by cross-validation, and prints them best first. */
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
    cleanup(report_cleanup) struct report *report = report_new();
    alternatives_report(report->root, &alternatives, table, &arguments.options);
    output_report(report, arguments.json, arguments.verbose);
    return 0;
}
