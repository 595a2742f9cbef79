#include "engine/command-line/fit-request.h"

#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/cross-validation.h"

#include <stdlib.h>
#include <string.h>

static void name_list_clear(struct name_list *list) {
    free(list->text);
    free(list->names);
    *list = (struct name_list){0};
}

static int name_list_parse(const char *option, const char *text, struct name_list *ret,
                           struct failure *failure) {
    size_t most = 1;
    for (const char *at = text; *at; at++)
        most += *at == ',';
    ret->text = xstrdup(text);
    ret->names = xcalloc(most, sizeof *ret->names);
    for (char *at = ret->text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        if (!*at)
            return failure_input(failure, NULL, 0, 0,
                                 "%s '%s' has an empty name; expected names with commas between", option,
                                 text);
        ret->names[ret->count++] = at;
    }
    return 0;
}

void fitting_request_clear(struct fitting_request *request) {
    name_list_clear(&request->sizes);
    name_list_clear(&request->by);
    name_list_clear(&request->folds_by);
    free(request->settings);
    request->settings = NULL;
    free(take_pointer(request->member));
    model_breaks_clear(&request->breaks);
}

/* The first operand is a method when it could be no file: it has no dot and no slash, and there is no such
 * file. */
static bool names_method(const char *operand) {
    return strcmp(operand, "-") != 0 && !strpbrk(operand, "./") && !file_exists(operand);
}

static int read_folds(const struct verb_arguments *arguments, struct fitting_request *ret,
                      struct failure *failure) {
    const char *text = verb_value(arguments, "--folds");
    int64_t folds = CROSS_VALIDATION_FOLDS;
    if (text &&
        (!number_parse_int64(text, strlen(text), &folds) || folds < 0 || folds == 1 || folds > FOLDS_MAX))
        return failure_input(failure, NULL, 0, 0, "--folds '%s'; expected 0 or a number from 2 to %d", text,
                             (int)FOLDS_MAX);
    ret->options.folds = text;
    ret->folds = (uint32_t)folds;
    return 0;
}

/* Columns, or one of two words, which go before columns of that name. */
static int read_folds_by(const struct verb_arguments *arguments, struct fitting_request *ret,
                         struct failure *failure) {
    const char *text = verb_value(arguments, "--folds-by");
    ret->options.folds_by = FOLDS_BY_SETTING;
    if (!text || strcmp(text, "setting") == 0)
        return 0;
    if (strcmp(text, "row") == 0) {
        ret->options.folds_by = FOLDS_BY_ROW;
        return 0;
    }
    int r = name_list_parse("--folds-by", text, &ret->folds_by, failure);
    ret->options.folds_by = FOLDS_BY_COLUMNS;
    ret->options.fold_columns = ret->folds_by.names;
    ret->options.fold_column_count = ret->folds_by.count;
    return r;
}

/* --set, --seed and --folds. */
static int read_settings(const struct verb_arguments *arguments, struct fitting_request *ret,
                         struct failure *failure) {
    int r = verb_check_settings(arguments, "--set", failure);
    if (r < 0)
        return r;
    ret->settings = xcalloc(arguments->option_count + 1, sizeof *ret->settings);
    const char *setting;
    while ((setting = verb_value_at(arguments, "--set", ret->options.setting_count)))
        ret->settings[ret->options.setting_count++] = setting;
    ret->options.settings = ret->settings;
    const char *seed = verb_value(arguments, "--seed");
    int64_t value = 1;
    if (seed && (!number_parse_int64(seed, strlen(seed), &value) || value < 0))
        return failure_input(failure, NULL, 0, 0, "--seed '%s'; expected a whole number, 0 or more", seed);
    ret->options.seed = (uint64_t)value;
    return read_folds(arguments, ret, failure);
}

/* --breaks and --breaks-group. */
static int read_breaks(const struct verb_arguments *arguments, struct fitting_request *ret,
                       struct failure *failure) {
    const char *path = verb_value(arguments, "--breaks"), *group = verb_value(arguments, "--breaks-group");
    if (!path && group)
        return failure_input(failure, NULL, 0, 0,
                             "--breaks-group says of which group, and --breaks is not given");
    if (!path)
        return 0;
    ret->options.breaks = &ret->breaks;
    return model_breaks_read(path, group, &ret->breaks, failure);
}

int fitting_request_read(const struct verb_arguments *arguments, const char *const *operands, size_t count,
                         const struct installation *installation, struct fitting_request *ret,
                         struct failure *failure) {
    ret->inputs = operands;
    ret->input_count = count;
    ret->output = verb_value(arguments, "--output");
    ret->plot = verb_value(arguments, "--plot");
    ret->json = verb_switch(arguments, "--json");
    ret->brief = verb_switch(arguments, "--brief");
    ret->options.kept_rows = KEPT_ROWS_MAX;
    const char *further = verb_value(arguments, "--table");
    if (further && !(ret->member = text_format("results/tables/%s.csv", further)))
        return failure_memory(failure);
    if (names_method(operands[0])) {
        cleanup_free char *plugin = xformat("fit-%s", operands[0]);
        cleanup_free char *path = NULL;
        bool exists = installation_find(installation, INSTALLATION_PLUGIN, plugin, &path, NULL) == 0;
        if (count == 1 && exists)
            return failure_input(failure, NULL, 0, 0,
                                 "the method '%s' is given no input; expected archives or CSV files",
                                 operands[0]);
        if (count > 1) {
            ret->options.method = operands[0];
            ret->inputs++;
            ret->input_count--;
        }
    }
    ret->options.response = verb_value(arguments, "--response");
    ret->options.terms = verb_value(arguments, "--terms");
    ret->options.weights = verb_value(arguments, "--weights");
    const char *sizes = verb_value(arguments, "--sizes"), *by = verb_value(arguments, "--by");
    int r = sizes ? name_list_parse("--sizes", sizes, &ret->sizes, failure) : 0;
    if (r == 0 && by && strcmp(by, "none") != 0)
        r = name_list_parse("--by", by, &ret->by, failure);
    ret->options.sizes = ret->sizes.names;
    ret->options.size_count = ret->sizes.count;
    ret->options.by = ret->by.names;
    ret->options.by_count = ret->by.count;
    r = r < 0 ? r : read_folds_by(arguments, ret, failure);
    r = r < 0 ? r : read_settings(arguments, ret, failure);
    return r < 0 ? r : read_breaks(arguments, ret, failure);
}

/* The one column of numbers whose role is response; otherwise `duration`. */
static int default_response(const struct table *table, const char **ret, struct failure *failure) {
    const char *role = NULL, *duration = NULL;
    size_t roles = 0;
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < table_column_count(table); i++) {
        const struct table_column *column = table_column(table, i);
        bool text = column->type && strcmp(column->type, "string") == 0;
        if (column->response && !text && roles++ == 0)
            role = column->name;
        if (strcmp(column->name, "duration") == 0)
            duration = column->name;
        if (list.length < FAILURE_TEXT_SIZE / 4 &&
            text_printf(&list, "%s%s", i ? ", " : "", column->name) < 0)
            return failure_memory(failure);
    }
    *ret = roles == 1 ? role : duration;
    if (*ret)
        return 0;
    return failure_input(
        failure, table_input(table, 0)->path, 0, 0,
        "which column is to be explained? there is no 'duration'; say it with --response; there are: %s",
        list.bytes);
}

/* Parameters that the archive suggests and the user has not set. */
static int complete_settings(struct fitting_request *request, const struct table_suggestion *suggestion,
                             struct failure *failure) {
    struct fitting_options *options = &request->options;
    size_t given = options->setting_count;
    const char **settings =
        realloc(request->settings, (given + suggestion->set_count + 1) * sizeof *settings);
    if (!settings)
        return failure_memory(failure);
    options->settings = request->settings = settings;
    for (size_t i = 0; i < suggestion->set_count; i++) {
        size_t length = strcspn(suggestion->set[i], "=") + 1, j = 0;
        while (j < given && strncmp(settings[j], suggestion->set[i], length) != 0)
            j++;
        if (j == given)
            settings[options->setting_count++] = suggestion->set[i];
    }
    return 0;
}

int fitting_request_complete(struct fitting_request *request, const struct verb_arguments *arguments,
                             const struct table *table, struct failure *failure) {
    struct fitting_options *options = &request->options;
    static const struct table_suggestion nothing;
    const struct table_suggestion *suggestion = table_suggestion(table);
    if (!suggestion)
        suggestion = &nothing;
    const char *suggested = suggestion->method ? suggestion->method : "linear";
    if (!options->method)
        options->method = suggested;
    options->suggested = !options->terms;
    if (!options->terms &&
        strcmp(options->method, suggested) == 0) /* another method speaks another language */
        options->terms = suggestion->terms;
    if (suggestion->terms && strcmp(options->method, suggested) != 0) {
        options->other_method = suggested;
        options->other_terms = suggestion->terms;
    }
    if (!options->sizes) {
        options->sizes = suggestion->sizes;
        options->size_count = suggestion->size_count;
    }
    if (!verb_value(arguments, "--by")) {
        options->by = suggestion->by;
        options->by_count = suggestion->by_count;
    }
    if (!options->response)
        options->response = suggestion->response;
    int r = strcmp(options->method, suggested) == 0 ? complete_settings(request, suggestion, failure) : 0;
    return r < 0 || options->response ? r : default_response(table, &options->response, failure);
}

void fitting_request_note(void *context, const char *sentence) {
    (void)context;
    fprintf(stderr, "assay: note: %s\n", shown(sentence).text);
}

void fitting_request_notes(const struct table *table) {
    for (const char *note = NULL; (note = table_note_after(table, note));)
        fitting_request_note(NULL, note);
}
