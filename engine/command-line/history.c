/* assay history: the results of many runs in one file, and whether a machine has changed. */
#include "engine/command-line/output.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/history/check.h"
#include "engine/history/store.h"
#include "engine/report/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64 }; /* archives that are added in one transaction */

#define DEFAULT_FILE "assay-history.sqlite"

static int open_store(const struct verb_arguments *arguments, bool create, struct history_store **ret,
                      struct failure *failure) {
    const char *given = verb_value(arguments, "--history"), *set = getenv("ASSAY_HISTORY");
    return history_store_open(given ? given : set && set[0] ? set : DEFAULT_FILE, create, ret, failure);
}

static void print_report(const struct verb_arguments *arguments, struct report *report) {
    output_report(report, verb_switch(arguments, "--json"), verb_switch(arguments, "--verbose"));
}

/* ---- Runs */

static void print_addition(const char *path, const struct history_addition *addition) {
    if (addition->was_there)
        printf("%s: is there already\n", shown(path).text);
    else if (addition->all_flagged)
        printf("%s: no values: every row was flagged; --with-flagged uses them\n", shown(path).text);
    else
        printf("%s: %" PRIu64 " values added, %" PRIu64 " flagged rows left out\n", shown(path).text,
               addition->values, addition->flagged);
}

struct adding {
    struct history_store *store;
    const char *const *paths;
    size_t count, refused;
    bool with_flagged;
};

/* Adds up to BATCH archives from FIRST on in one transaction, then prints the result of each. An archive that
 * cannot be added is counted in `refused`, with its failure in FAILURE. */
static int add_batch(struct adding *adding, size_t first, struct failure *failure) {
    size_t end = adding->count - first < BATCH ? adding->count : first + BATCH;
    struct history_addition additions[BATCH];
    bool is_added[BATCH];
    int r = history_store_begin(adding->store, failure);
    if (r < 0)
        return r;
    for (size_t i = first; i < end; i++) {
        struct failure own = {0};
        is_added[i - first] = history_store_add(adding->store, adding->paths[i], adding->with_flagged,
                                                &additions[i - first], &own) == 0;
        if (is_added[i - first])
            continue;
        adding->refused++;
        *failure = own;
        if (adding->count > 1)
            output_failure(&own);
    }
    struct failure why = {0};
    r = history_store_commit(adding->store, &why);
    if (r < 0)
        *failure = why;
    for (size_t i = first; r == 0 && i < end; i++)
        if (is_added[i - first])
            print_addition(adding->paths[i], &additions[i - first]);
    return r;
}

/* Adds all archives, even if some cannot be added. */
static int add_archives(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(history_store_cleanup) struct history_store *store = NULL;
    struct adding adding = {.paths = arguments->operands + 1,
                            .count = arguments->operand_count - 1,
                            .with_flagged = verb_switch(arguments, "--with-flagged")};
    int r = open_store(arguments, true, &store, failure);
    adding.store = store;
    for (size_t i = 0; r == 0 && i < adding.count; i += BATCH)
        r = add_batch(&adding, i, failure);
    if (r < 0 || adding.refused == 0)
        return r;
    if (adding.count == 1)
        return failure->code;
    return failure_set_kind(failure, failure->kind, failure->code, "%zu of %zu archives were not added",
                            adding.refused, adding.count);
}

/* ---- Tables */

/* Prints the tables of REPORTER: archives, log or one run. */
static int print_tables(const struct verb_arguments *arguments, history_store_reporter *reporter,
                        struct failure *failure) {
    cleanup(history_store_cleanup) struct history_store *store = NULL;
    cleanup(report_cleanup) struct report *report = report_new();
    int r = open_store(arguments, false, &store, failure);
    r = r < 0 ? r : reporter(store, arguments->operands[1], report->root, failure);
    if (r == 0)
        print_report(arguments, report);
    return r;
}

static int list(const struct verb_arguments *arguments, struct failure *failure) {
    return print_tables(arguments, history_store_report_archives, failure);
}

static int show(const struct verb_arguments *arguments, struct failure *failure) {
    return print_tables(arguments, history_store_report_run, failure);
}

static int log_(const struct verb_arguments *arguments, struct failure *failure) {
    return print_tables(arguments, history_store_report_log, failure);
}

/* ---- The log */

/* Adds a change or an outlier to the log. */
static int add_note(const struct verb_arguments *arguments, enum history_kind kind, struct failure *failure) {
    cleanup(history_store_cleanup) struct history_store *store = NULL;
    const struct passwd *user = getpwuid(getuid());
    const char *author = verb_value(arguments, "--author"), *word = arguments->operands[1];
    struct history_note note = {.kind = kind,
                                .time = kind == HISTORY_CHANGE ? word : NULL,
                                .run = kind == HISTORY_OUTLIER ? word : NULL,
                                .nodes = verb_value(arguments, "--nodes"),
                                .author = author ? author
                                          : user ? user->pw_name
                                                 : "unknown",
                                .reason = verb_value(arguments, "--reason")};
    if (!note.reason)
        return failure_input(failure, NULL, 0, 0,
                             "'assay history %s' needs --reason TEXT: what was changed, or is wrong",
                             arguments->operands[0]);
    int r = open_store(arguments, false, &store, failure);
    return r < 0 ? r : history_store_note(store, &note, failure);
}

static int note_change(const struct verb_arguments *arguments, struct failure *failure) {
    return add_note(arguments, HISTORY_CHANGE, failure);
}

static int note_outlier(const struct verb_arguments *arguments, struct failure *failure) {
    return add_note(arguments, HISTORY_OUTLIER, failure);
}

/* ---- Series */

static struct history_filter read_filter(const struct verb_arguments *arguments) {
    return (struct history_filter){.names = {[HISTORY_CAMPAIGN] = verb_value(arguments, "--campaign"),
                                             [HISTORY_RESPONSE] = verb_value(arguments, "--response"),
                                             [HISTORY_NODE] = verb_value(arguments, "--node")}};
}

/* Adds the runs of one series to the table. */
static int export_series(void *context, const struct history_series *series) {
    struct report_table *table = context;
    for (size_t i = 0; i < series->count; i++) {
        report_cell_text(table, series->campaign);
        report_cell_text(table, series->experiment);
        report_cell_text(table, series->node);
        report_cell_text(table, series->setting);
        report_cell_text(table, series->response);
        report_cell_text(table, series->unit);
        report_cell(table, (double)series->archives[i]);
        report_cell(table, series->times[i]);
        report_cell(table, series->values[i]);
        report_cell(table, series->is_cut[i]);
        report_cell(table, series->is_outlier[i]);
    }
    return 0;
}

/* Writes all series as CSV. */
static int export_history(const struct verb_arguments *arguments, struct failure *failure) {
    static const struct column columns[] = {
        {.name = "campaign", .type = COLUMN_STRING},
        {.name = "experiment", .type = COLUMN_STRING},
        {.name = "node", .type = COLUMN_STRING},
        {.name = "setting", .type = COLUMN_STRING},
        {.name = "response", .type = COLUMN_STRING},
        {.name = "unit", .type = COLUMN_STRING, .help = "of the value, by UCUM"},
        {.name = "archive", .digits = 17, .help = "its number, as 'assay history list' shows it"},
        {.name = "started", .unit = "s", .digits = 17, .help = "since 1970, UTC"},
        {.name = "value", .digits = 17, .help = "mean over the rows of the run"},
        {.name = "cut", .digits = 1, .help = "1: a change of the log came before this run"},
        {.name = "outlier", .digits = 1, .help = "1: the run is wrong, by the log"},
    };
    cleanup(history_store_cleanup) struct history_store *store = NULL;
    cleanup(report_cleanup) struct report *report = report_new();
    const struct history_filter filter = read_filter(arguments);
    struct report_table *table =
        report_table(report->root, "values", NULL, columns, sizeof columns / sizeof *columns);
    int r = open_store(arguments, false, &store, failure);
    r = r < 0 ? r : history_store_read(store, &filter, export_series, table, failure);
    return r < 0 ? r : output_table(table, verb_value(arguments, "--output"), failure);
}

/* Reads the method of the test and the limit of p. */
static int read_rule(const struct verb_arguments *arguments, struct history_rule *ret,
                     struct failure *failure) {
    enum { METHODS = 3 };
    static const char *const methods[METHODS] = {"shift", "chew", "e-divisive"};
    const char *method = verb_value(arguments, "--method"), *p = verb_value(arguments, "--p");
    *ret = (struct history_rule){HISTORY_SHIFT, 0.0005, verb_value(arguments, "--output") != NULL};
    size_t i = method ? text_find(method, methods, METHODS) : HISTORY_SHIFT;
    ret->method = (enum history_method)i;
    if (i == METHODS)
        return failure_input(failure, NULL, 0, 0,
                             "there is no method '%.64s'; expected shift, chew or e-divisive", method);
    char *end = NULL;
    if (p && (!((ret->p_most = strtod(p, &end)) > 0 && ret->p_most < 0.5) || *end))
        return failure_input(failure, NULL, 0, 0, "--p '%.64s' is not a probability between 0 and 0.5", p);
    return 0;
}

static int check_page(const struct verb_arguments *arguments, struct failure *failure) {
    const char *page = verb_value(arguments, "--output");
    if (page && !text_ends_in(page, ".html"))
        return failure_input(failure, NULL, 0, 0,
                             "check writes a page; expected --output NAME.html, not '%.64s'", page);
    return page ? output_check(page, arguments->operands + 1, arguments->operand_count - 1, failure) : 0;
}

/* Tests which series have changed, and prints the result or writes it as a page. */
static int check_history(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(history_store_cleanup) struct history_store *store = NULL;
    cleanup(report_cleanup) struct report *report = report_new();
    const struct history_filter filter = read_filter(arguments);
    struct history_rule rule;
    struct history_result result;
    int r = check_page(arguments, failure);
    r = r < 0 ? r : read_rule(arguments, &rule, failure);
    struct history_source source = {.paths = arguments->operands + 1,
                                    .path_count = arguments->operand_count - 1};
    if (r == 0 && source.path_count == 0)
        r = open_store(arguments, false, &store, failure);
    source.store = store;
    r = r < 0 ? r : history_check(&source, &filter, &rule, report->root, &result, failure);
    if (r < 0)
        return r;
    const char *page = verb_value(arguments, "--output");
    r = page ? report_write_page(report, "history check", page, failure) : 0;
    if (r < 0)
        return r;
    if (!page)
        print_report(arguments, report);
    if (verb_switch(arguments, "--exit-code") && result.changed > 0)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ERANGE, "%zu of %zu series changed",
                                result.changed, result.series);
    return 0;
}

static const struct verb_action actions[] = {
    {"add", 1, SIZE_MAX, "archives", "--with-flagged", add_archives},
    {"list", 0, 0, "nothing more", "--json --verbose", list},
    {"show", 1, 1, "a run", "--json --verbose", show},
    {"change", 1, 1, "a time", "--nodes --author --reason", note_change},
    {"outlier", 1, 1, "a run", "--nodes --author --reason", note_outlier},
    {"log", 0, 0, "nothing more", "--json --verbose", log_},
    {"export", 0, 0, "nothing more", "--campaign --node --response --output", export_history},
    {"check", 0, SIZE_MAX, "CSV files, or nothing more",
     "--campaign --node --response --method --p --exit-code --output --json --verbose", check_history},
    {0},
};

int command_history(const struct verb_arguments *arguments, struct failure *failure) {
    return verb_run_action(arguments, actions, arguments->operands[0], failure);
}
