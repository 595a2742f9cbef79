#include "engine/command-line/fit-rows.h"

#include "engine/command-line/model-report.h"
#include "engine/fit/fit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/model/write.h"
#include "engine/plugin/library.h"
#include "engine/table/folds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool fit_rows_has(const struct installation *installation, const char *method) {
    cleanup(library_cleanup) struct library *library = NULL;
    return library_open(installation, "fit", method, &library, NULL) == 0;
}

char *fit_rows_describe(const struct installation *installation, const char *method, char **ret_version) {
    cleanup(library_cleanup) struct library *library = NULL;
    if (library_open(installation, "fit", method, &library, NULL) < 0)
        return NULL;
    *ret_version = xstrdup(library->plugin->version);
    return xstrdup(library->plugin->summary);
}

int fit_rows_parameters(const struct installation *installation, const char *method, bool json,
                        struct failure *failure) {
    static const struct report_column columns[] = {
        {.name = "name"}, {.name = "default"}, {.name = "unit"}, {.name = "help"}};
    cleanup(library_cleanup) struct library *library = NULL;
    cleanup(report_cleanup) struct report *report = report_new();
    int r = library_open(installation, "fit", method, &library, failure);
    if (r < 0)
        return r;
    const struct plugin_parameter *parameter = library->fit->parameters;
    report_text(report->root, "method", NULL, method, false);
    report_text(report->root, "summary", NULL, library->plugin->summary, false);
    struct report_table *table = report_table(report->root, "parameters", NULL, columns, 4);
    for (; parameter && parameter->name; parameter++) {
        report_cell_text(table, parameter->name);
        report_cell_text(table, parameter->fallback ? parameter->fallback : "");
        report_cell_text(table, parameter->unit ? parameter->unit : "");
        report_cell_text(table, parameter->help);
    }
    if (!json) {
        report_print(report, stdout, false);
        return 0;
    }
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    r = report_print_json(report, &text, failure);
    fputs(r < 0 ? "" : text.bytes, stdout);
    return r;
}

/* The one column of numbers whose role is response; otherwise `duration`. */
static const char *default_response(const struct table *table) {
    const char *role = NULL;
    size_t roles = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        if (column->response && !(column->type && strcmp(column->type, "string") == 0) && roles++ == 0)
            role = column->name;
    }
    return roles == 1 ? role : table_find(table, "duration") ? "duration" : NULL;
}

/* What was not said: from what the archive suggests for this method, then by default. */
static int complete(struct fit_options *options, const char *method, const struct table *table,
                    struct failure *failure) {
    static const struct table_suggestion nothing;
    const struct table_suggestion *suggestion = table->suggestion ? table->suggestion : &nothing;
    bool is_suggested = suggestion->method && strcmp(suggestion->method, method) == 0;
    if (!options->response)
        options->response = suggestion->response ? suggestion->response : default_response(table);
    if (!options->response)
        return table_no_column(table, "response", "duration", failure);
    options->suggested = !options->terms && is_suggested;
    if (!options->terms && is_suggested)
        options->terms = suggestion->terms;
    if (options->size_count == 0 && is_suggested) {
        options->sizes = (const char *const *)suggestion->sizes;
        options->size_count = suggestion->size_count;
    }
    return 0;
}

static int print(const struct fit *fit, bool json, struct failure *failure) {
    if (json) {
        cleanup(text_clear) struct text text;
        text_init(&text, SIZE_MAX / 4);
        int r = model_file_append(fit->model, &text, failure);
        if (r == 0)
            fwrite(text.bytes, 1, text.length, stdout);
        return r;
    }
    cleanup(report_cleanup) struct report *report = report_new();
    for (size_t i = 0; i < fit->note_count; i++)
        report_note(report->root, REPORT_NOTE, "%s", fit->notes[i]);
    model_report_verdict(report->root, fit->model, NULL);
    model_report_groups(report->root, fit->model);
    report_print(report, stdout, false);
    report_print(fit->tables, stdout, false);
    return 0;
}

static int refuse_empty(const struct model *model, uint64_t flagged, struct failure *failure) {
    if (flagged > 0)
        return failure_input(
            failure, NULL, 0, 0,
            "%llu rows were flagged by gates and are left out, and the others cannot be fitted; "
            "--with-flagged uses them",
            (unsigned long long)flagged);
    return failure_input(failure, NULL, 0, 0, "no group could be fitted; the first (%s) because of %s",
                         model->skipped_count > 0 ? model->skipped[0].name : "all",
                         model->skipped_count > 0 ? model->skipped[0].reason : "no rows");
}

static void stamp(struct model *model) {
    char now[32];
    time_t seconds = time(NULL);
    struct tm parts;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts));
    model->origin.engine = xstrdup(ASSAY_VERSION);
    model->origin.created = xstrdup(now);
}

/* ---- Options
 * ---------------------------------------------------------------------------------------------------- */

/* "m, n, k" as names. */
struct names {
    char *text;
    const char **names;
    size_t count;
};

static void names_clear(struct names *names) {
    free(names->text);
    free(names->names);
}

static int names_split(const char *option, const char *text, struct names *ret, struct failure *failure) {
    if (!text)
        return 0;
    char *save = NULL;
    ret->text = xstrdup(text);
    ret->names = xcalloc(strlen(text) + 1, sizeof *ret->names);
    for (char *name = strtok_r(ret->text, ", ", &save); name; name = strtok_r(NULL, ", ", &save))
        ret->names[ret->count++] = name;
    return ret->count > 0
               ? 0
               : failure_input(failure, NULL, 0, 0, "%s '%s' has no name; expected names with commas between",
                               option, text);
}

static int read_number(const struct verb_arguments *arguments, const char *option, uint64_t fallback,
                       uint64_t *ret, struct failure *failure) {
    const char *text = verb_value(arguments, option);
    *ret = fallback;
    return !text || number_parse_uint64(text, strlen(text), ret)
               ? 0
               : failure_input(failure, NULL, 0, 0, "%s '%s'; expected a whole number", option, text);
}

struct given {
    struct names sizes, by, folds_by, settings;
    struct fit_options options;
};

static void given_clear(struct given *given) {
    names_clear(&given->sizes), names_clear(&given->by), names_clear(&given->folds_by);
    names_clear(&given->settings);
}

static int read_lists(const struct verb_arguments *arguments, struct given *ret, struct failure *failure) {
    struct fit_options *options = &ret->options;
    const char *by = verb_value(arguments, "--by"), *folds_by = verb_value(arguments, "--folds-by");
    bool has_columns = folds_by && strcmp(folds_by, "setting") != 0 && strcmp(folds_by, "row") != 0;
    int r = names_split("--sizes", verb_value(arguments, "--sizes"), &ret->sizes, failure);
    r = r < 0 ? r : names_split("--by", by && strcmp(by, "none") == 0 ? NULL : by, &ret->by, failure);
    r = r < 0 ? r : names_split("--folds-by", has_columns ? folds_by : NULL, &ret->folds_by, failure);
    options->sizes = ret->sizes.names, options->size_count = ret->sizes.count;
    options->by = ret->by.names, options->by_count = ret->by.count;
    options->fold_columns = ret->folds_by.names, options->fold_column_count = ret->folds_by.count;
    options->folds_by = has_columns                                ? FIT_FOLDS_BY_COLUMNS
                        : folds_by && strcmp(folds_by, "row") == 0 ? FIT_FOLDS_BY_ROW
                                                                   : FIT_FOLDS_BY_SETTING;
    ret->settings.names = xcalloc(arguments->option_count + 1, sizeof *ret->settings.names);
    const char *setting;
    while ((setting = verb_value_at(arguments, "--set", ret->settings.count)))
        ret->settings.names[ret->settings.count++] = setting;
    options->settings = ret->settings.names, options->setting_count = ret->settings.count;
    return r;
}

static int read_options(const struct verb_arguments *arguments, struct given *ret, struct failure *failure) {
    struct fit_options *options = &ret->options;
    uint64_t folds = 0;
    options->response = verb_value(arguments, "--response");
    options->terms = verb_value(arguments, "--terms");
    options->weights = verb_value(arguments, "--weights");
    options->where = verb_value(arguments, "--where");
    options->with_flagged = verb_switch(arguments, "--with-flagged");
    int r = read_lists(arguments, ret, failure);
    r = r < 0 ? r : read_number(arguments, "--seed", 1, &options->seed, failure);
    r = r < 0 ? r : read_number(arguments, "--folds", 5, &folds, failure);
    options->folds = (size_t)folds;
    return r < 0 || (folds != 1 && folds <= FOLDS_MAX)
               ? r
               : failure_input(failure, NULL, 0, 0, "--folds %llu; expected 0 or a number from 2 to %d",
                               (unsigned long long)folds, (int)FOLDS_MAX);
}

int fit_rows(const struct verb_arguments *arguments, const struct installation *installation,
             const char *method, const char *const *inputs, size_t count, struct failure *failure) {
    cleanup(library_cleanup) struct library *library = NULL;
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup(fit_cleanup) struct fit *fit = NULL;
    cleanup(given_clear) struct given given = {0};
    const char *output = verb_value(arguments, "--output"), *member = verb_value(arguments, "--table");
    cleanup_free char *path = member ? xformat("results/tables/%s.csv", member) : NULL;
    bool json = verb_switch(arguments, "--json");
    struct table_options how = {.member = path, .hash = output || json};
    int r = read_options(arguments, &given, failure);
    r = r < 0 ? r : library_open(installation, "fit", method, &library, failure);
    r = r < 0 ? r : table_open(inputs, count, &how, &table, failure);
    r = r < 0 ? r : complete(&given.options, method, table, failure);
    r = r < 0 ? r : fit_run(library, table, &given.options, &fit, failure);
    if (r < 0)
        return r;
    if (fit->model->group_count == 0)
        return refuse_empty(fit->model, table->rows_flagged, failure);
    stamp(fit->model);
    r = output ? model_file_write(fit->model, output, failure) : 0;
    return r < 0 ? r : print(fit, json, failure);
}
