#include "engine/command-line/fit/arguments.h"

#include "archive-format/layout.h"
#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/table/folds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void names_clear(struct name_list *list) {
    free(list->text);
    free(list->names);
}

void fit_arguments_clear(struct fit_arguments *arguments) {
    names_clear(&arguments->sizes), names_clear(&arguments->by);
    names_clear(&arguments->folds_by), names_clear(&arguments->columns);
    free(arguments->settings), free(arguments->member);
}

/* ---- Options */

/* Splits TEXT at commas into RET. TEXT NULL: RET stays empty. Refused: no name, or one twice. */
static int split_names(const char *option, const char *text, struct name_list *ret, struct failure *failure) {
    if (!text)
        return 0;
    char *save = NULL;
    ret->text = xstrdup(text);
    ret->names = xcalloc(strlen(text) + 1, sizeof *ret->names);
    for (char *name = strtok_r(ret->text, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        name += strspn(name, " ");
        for (size_t end = strlen(name); end > 0 && name[end - 1] == ' ';)
            name[--end] = '\0';
        if (!name[0])
            continue;
        if (text_find(name, ret->names, ret->count) < ret->count)
            return failure_input(failure, NULL, 0, 0, "%s '%s' has '%s' twice", option, text, name);
        ret->names[ret->count++] = name;
    }
    return ret->count > 0
               ? 0
               : failure_input(failure, NULL, 0, 0, "%s '%s' has no name; expected names with commas between",
                               option, text);
}

/* Reads the options that are lists of names: --sizes, --by, --folds-by, --columns. */
static int read_lists(struct fit_arguments *ret, struct failure *failure) {
    struct fit_options *options = &ret->options;
    const char *by = verb_value(ret->given, "--by"), *folds_by = verb_value(ret->given, "--folds-by");
    bool is_row = folds_by && strcmp(folds_by, "row") == 0;
    bool has_columns = folds_by && !is_row && strcmp(folds_by, "setting") != 0;
    int r = split_names("--sizes", verb_value(ret->given, "--sizes"), &ret->sizes, failure);
    r = r < 0 ? r : split_names("--by", by && strcmp(by, "none") == 0 ? NULL : by, &ret->by, failure);
    r = r < 0 ? r : split_names("--folds-by", has_columns ? folds_by : NULL, &ret->folds_by, failure);
    r = r < 0 ? r : split_names("--columns", verb_value(ret->given, "--columns"), &ret->columns, failure);
    options->sizes = ret->sizes.names, options->size_count = ret->sizes.count;
    options->by = ret->by.names, options->by_count = ret->by.count;
    options->fold_columns = ret->folds_by.names, options->fold_column_count = ret->folds_by.count;
    options->folds_by = has_columns ? FIT_FOLDS_BY_COLUMNS : is_row ? FIT_FOLDS_BY_ROW : FIT_FOLDS_BY_SETTING;
    ret->table.columns = ret->columns.names, ret->table.column_count = ret->columns.count;
    return r;
}

static int read_folds(struct fit_arguments *ret, struct failure *failure) {
    uint64_t folds = 5;
    int r = verb_count(ret->given, "--folds", 0, UINT64_MAX, &folds, failure);
    ret->options.folds = (size_t)folds;
    return r < 0 || (folds != 1 && folds <= FOLDS_MAX)
               ? r
               : failure_input(failure, NULL, 0, 0, "--folds '%s'; expected 0 or a number from 2 to %d",
                               verb_value(ret->given, "--folds"), (int)FOLDS_MAX);
}

static int read_separator(struct fit_arguments *ret, struct failure *failure) {
    const char *text = verb_value(ret->given, "--separator");
    if (!text)
        return 0;
    ret->table.separator = strcmp(text, "tab") == 0 ? '\t' : text[0];
    bool is_one = strcmp(text, "tab") == 0 || (strlen(text) == 1 && !strchr("\"\r\n", text[0]));
    return is_one ? 0
                  : failure_input(failure, NULL, 0, 0,
                                  "--separator '%s'; expected one character such as ';', or tab", text);
}

/* Reads all options but those that depend on the table. */
static int read_options(struct fit_arguments *ret, struct failure *failure) {
    const struct verb_arguments *given = ret->given;
    struct fit_options *options = &ret->options;
    const char *member = verb_value(given, "--table");
    ret->output = verb_value(given, "--output");
    ret->plot = verb_value(given, "--plot");
    ret->json = verb_switch(given, "--json");
    ret->verbose = verb_switch(given, "--verbose");
    ret->brief = verb_switch(given, "--brief");
    ret->member = member ? archive_table_path(member) : NULL;
    ret->table.member = ret->member;
    ret->table.hash = ret->output || ret->json;
    options->seed = 1;
    options->response = verb_value(given, "--response");
    options->terms = verb_value(given, "--terms");
    options->weights = verb_value(given, "--weights");
    options->where = verb_value(given, "--where");
    options->with_flagged = verb_switch(given, "--with-flagged");
    ret->settings = verb_values(given, "--set", &options->setting_count);
    options->settings = ret->settings;
    int r = verb_check_settings(given, "--set", failure);
    r = r < 0 ? r : read_lists(ret, failure);
    r = r < 0 ? r : read_separator(ret, failure);
    r = r < 0 ? r : verb_count(given, "--seed", 0, UINT64_MAX, &options->seed, failure);
    return r < 0 ? r : read_folds(ret, failure);
}

/* ---- Operands */

bool fit_arguments_is_method(const struct installation *installation, const char *word) {
    cleanup_free char *plugin = xformat("fit-%s", word);
    cleanup_free char *path = NULL;
    return !strchr(word, '/') &&
           installation_find(installation, INSTALLATION_PLUGIN, plugin, &path, NULL) == 0;
}

/* Fails because WORD is neither a method nor a file; the failure has the nearest method. */
static int refuse_word(const struct installation *installation, const char *word, struct failure *failure) {
    cleanup_free char *plugin = xformat("fit-%s", word);
    cleanup_free char *path = NULL;
    cleanup_free char *words = xformat("fit %s", word);
    const char *command = verb_new_name(words);
    struct failure own = {0};
    if (command)
        return failure_input(failure, NULL, 0, 0, "'assay fit' has no method '%s'; did you mean 'assay %s'?",
                             word, command);
    installation_find(installation, INSTALLATION_PLUGIN, plugin, &path, &own);
    return failure_input(failure, NULL, 0, 0, "'%s' is neither a file nor a method: %s", word, own.text);
}

/* Reads the method, if the first operand is one, and the inputs. A method hides a file of the same name,
 * which is noted later. */
static int read_operands(const struct installation *installation, struct fit_arguments *ret,
                         struct failure *failure) {
    const char *first = ret->input_count > 0 ? ret->inputs[0] : NULL;
    bool is_file = first && access(first, F_OK) == 0;
    if (first && fit_arguments_is_method(installation, first)) {
        ret->method = first;
        ret->is_shadowed = is_file;
        ret->inputs++;
        ret->input_count--;
    } else if (first && !is_file && !strpbrk(first, "./-")) {
        return refuse_word(installation, first, failure);
    }
    if (ret->input_count > 0)
        return 0;
    return failure_input(
        failure, NULL, 0, 0, "the method '%s' is given no input; expected archives or CSV files%s",
        first ? first : "linear", is_file ? "; the file of that name is given as ./NAME" : "");
}

static int check_outputs(const struct fit_arguments *arguments, struct failure *failure) {
    int r = output_check(arguments->output, arguments->inputs, arguments->input_count, failure);
    r = r < 0 ? r : output_check(arguments->plot, arguments->inputs, arguments->input_count, failure);
    return r < 0 ? r : output_check_apart(arguments->output, arguments->plot, failure);
}

int fit_arguments_read(const struct verb_arguments *arguments, const char *const *operands, size_t count,
                       struct fit_arguments *ret, struct failure *failure) {
    *ret = (struct fit_arguments){.given = arguments, .inputs = operands, .input_count = count};
    int r = read_operands(arguments->installation, ret, failure);
    r = r < 0 ? r : read_options(ret, failure);
    return r < 0 ? r : check_outputs(ret, failure);
}

/* ---- What the inputs suggest */

/* The only numeric column with the role of a response, or else `duration`; NULL: neither. */
static const char *default_response(const struct table *table) {
    const char *role = NULL;
    size_t roles = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        if (column->role == COLUMN_ROLE_RESPONSE && column->type != COLUMN_STRING && roles++ == 0)
            role = column->name;
    }
    return roles == 1 ? role : table_find(table, "duration") ? "duration" : NULL;
}

/* Whether a name is a number: then what is taken for the header is the first row, it seems. */
static bool has_number(const struct table *table) {
    double value;
    for (size_t i = 0; i < table->column_count; i++)
        if (number_parse_double(table->columns[i].name, strlen(table->columns[i].name), &value))
            return true;
    return false;
}

static int refuse_response(const struct table *table, struct failure *failure) {
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < table->column_count; i++)
        (void)text_printf(&list, "%s%s", i ? ", " : "", table->columns[i].name); /* too long a list is cut */
    return failure_input(failure, table->inputs[0].path, 0, 0,
                         "no response column; choose one with --response; there are: %s%s", list.bytes,
                         has_number(table) ? "; a file without a header needs --columns" : "");
}

/* Adds the suggested parameters that the user has not set. */
static void complete_settings(struct fit_arguments *arguments, const struct archive_model *suggestion) {
    struct fit_options *options = &arguments->options;
    size_t given = options->setting_count;
    arguments->settings =
        xrealloc(arguments->settings, (given + suggestion->set.count + 1) * sizeof *arguments->settings);
    for (size_t i = 0; i < suggestion->set.count; i++) {
        size_t length = strcspn(suggestion->set.items[i], "=") + 1, j = 0;
        while (j < given && strncmp(arguments->settings[j], suggestion->set.items[i], length) != 0)
            j++;
        if (j == given)
            arguments->settings[options->setting_count++] = suggestion->set.items[i];
    }
    options->settings = arguments->settings;
}

/* Refuses folds by a column that makes the groups: a group that is one fold cannot be fitted without it. */
static int check_folds(const struct fit_options *options, struct failure *failure) {
    size_t within = 0;
    for (size_t i = 0; i < options->fold_column_count; i++)
        for (size_t j = 0; j < options->by_count; j++)
            within += strcmp(options->fold_columns[i], options->by[j]) == 0;
    if (options->folds == 0 || within == 0 || within < options->fold_column_count)
        return 0;
    return failure_input(failure, NULL, 0, 0,
                         "--folds-by %s: each group has one value of it, and without its rows there is "
                         "nothing to fit; expected other columns than those of the groups, setting or row",
                         options->fold_columns[0]);
}

/* Fills what the user has not given from the experiment's suggestion. Its terms and parameters only count if
 * its method is the one that fits. */
int fit_arguments_complete(struct fit_arguments *ret, const struct table *table, struct failure *failure) {
    static const struct archive_model nothing;
    const struct archive_model *suggestion = table->suggestion ? table->suggestion : &nothing;
    const char *suggested = suggestion->method ? suggestion->method : "linear";
    struct fit_options *options = &ret->options;
    if (!ret->method)
        ret->method = suggested;
    bool is_suggested = strcmp(ret->method, suggested) == 0;
    options->suggested = !options->terms;
    if (!options->terms && is_suggested) /* terms of one method mean nothing to another */
        options->terms = suggestion->terms;
    if (is_suggested)
        complete_settings(ret, suggestion);
    if (!options->sizes) {
        options->sizes = (const char *const *)suggestion->sizes.items;
        options->size_count = suggestion->sizes.count;
    }
    if (!verb_value(ret->given, "--by")) {
        options->by = (const char *const *)suggestion->by.items;
        options->by_count = suggestion->by.count;
    }
    if (!options->response)
        options->response = suggestion->response;
    if (!options->response && !(options->response = default_response(table)))
        return refuse_response(table, failure);
    options->response = table_column_name(table, options->response);
    options->weights = options->weights ? table_column_name(table, options->weights) : NULL;
    struct name_list *lists[] = {&ret->sizes, &ret->by, &ret->folds_by};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            lists[k]->names[i] = table_column_name(table, lists[k]->names[i]);
    return check_folds(options, failure);
}
