#include "engine/plugin/fitting.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/natural-order.h"
#include "engine/foundation/text.h"
#include "engine/plugin/category-levels.h"
#include "engine/plugin/grouping.h"
#include "engine/plugin/parameter.h"
#include "engine/plugin/plugin-library.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct fitting {
    struct fitting_options options;
    struct table *table; /* borrowed */
    struct plugin_library *library;
    const struct fit_operations *operations;
    struct fit *instance;
    struct fit_needs needs;
    struct grouping *grouping;
    uint64_t rows;
    struct hull hull;
    size_t *hull_needs;                 /* which of the needs its columns are */
    size_t response_need, weights_need; /* SIZE_MAX where the plugin needs no such column */
    bool hull_done;                     /* after the first pass */
    struct kept_rows kept;              /* of the first pass; none where they were not asked for */
    uint64_t negative;                  /* rows of the first pass with a response below 0 */

    /* What the plugin sees until it is closed. */
    struct plugin_host host;
    struct fit_request request;
    struct fit_column *columns;
    double *parameters;
    const char **labels; /* columns read as codes: those of the groups, the categories, others for folds */
    size_t label_count;
    size_t *fold_numbers, fold_number_count; /* which needs tell the folds' units apart */
    size_t *fold_labels, fold_label_count;   /* and which labels */
    const double **fold_values;              /* room for a block's */
    struct folds *folds;                     /* where the plugin cross-validates by itself */
    uint8_t *block_folds;                    /* of a block */
    size_t block_capacity;
    struct plugin_levels *levels; /* one for each category */
    fitting_note note;
    void *note_context;
    bool notes_passed; /* those of the table */

    /* While it finishes. */
    const struct fitting_listener *const *listeners;
    size_t listener_count;
    struct failure *failure;
    uint32_t groups_heard;
};

void fitting_free(struct fitting *fitting) {
    if (!fitting)
        return;
    if (fitting->operations)
        fitting->operations->close(fitting->instance);
    grouping_free(fitting->grouping);
    free(fitting->hull_needs);
    kept_rows_clear(&fitting->kept);
    free(fitting->columns);
    free(fitting->parameters);
    free(fitting->labels);
    free(fitting->fold_numbers);
    free(fitting->fold_labels);
    free((void *)fitting->fold_values);
    folds_free(fitting->folds);
    free(fitting->block_folds);
    for (size_t i = 0; fitting->levels && i < fitting->needs.category_count; i++)
        category_levels_clear(&fitting->levels[i]);
    free(fitting->levels);
    plugin_library_close(fitting->library);
    free(fitting);
}

void fitting_cleanup(struct fitting **fitting) {
    fitting_free(*fitting);
}

/* ---- Beginning */

static void pass_note(void *context, const char *sentence) {
    struct fitting *fitting = context;
    fitting_tell(fitting, NULL);
    if (fitting->note)
        fitting->note(fitting->note_context, sentence);
}

/* What the plugin may ask of the categories' texts while it works. */
static int pass_levels(void *context, size_t category, struct plugin_levels *ret) {
    struct fitting *fitting = context;
    if (category >= fitting->needs.category_count)
        return -EINVAL;
    struct plugin_levels *levels = &fitting->levels[category];
    int r = category_levels_fill(levels, fitting->table, fitting->options.by_count + category);
    *ret = *levels;
    return r;
}

static const char *pass_place(void *context, uint64_t row, char *buffer, size_t size) {
    const struct fitting *fitting = context;
    const struct table_input *input;
    uint64_t line;
    if (table_stream_place(fitting->table, row, &input, &line))
        snprintf(buffer, size, "%s line %" PRIu64, input->name, line);
    else
        snprintf(buffer, size, "data row %" PRIu64, row + 1);
    return buffer;
}

/* Each is a column, and given once. */
static int check_columns(const struct fitting *fitting, const char *what, const char *const *names,
                         size_t count, struct failure *failure) {
    size_t column;
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = table_stream_find(fitting->table, what, names[i], &column, failure);
        for (size_t j = 0; r == 0 && j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                r = failure_input(failure, NULL, 0, 0, "the %s column '%s' is given twice", what, names[i]);
    }
    return r;
}

static int check_options(const struct fitting *fitting, struct failure *failure) {
    const struct fitting_options *options = &fitting->options;
    size_t column;
    int r = table_stream_find(fitting->table, "response", options->response, &column, failure);
    if (r == 0 && options->weights)
        r = table_stream_find(fitting->table, "weights", options->weights, &column, failure);
    r = r < 0 ? r : check_columns(fitting, "group", options->by, options->by_count, failure);
    return r < 0 ? r
                 : check_columns(fitting, "fold", options->fold_columns, options->fold_column_count, failure);
}

/* What was asked of every method that knows of it. */
static int read_folds(struct fitting *fitting, struct failure *failure) {
    const struct fit_operations *operations = fitting->operations;
    for (size_t i = 0; fitting->options.folds && i < operations->parameter_count; i++)
        if (strcmp(operations->parameters[i].name, "folds") == 0)
            return parameter_parse(&operations->parameters[i], fitting->options.folds, NULL, 0, 0,
                                   &fitting->parameters[i], failure);
    return 0;
}

/* Every parameter: as it was set, or by default. */
static int read_settings(struct fitting *fitting, struct failure *failure) {
    const struct fit_operations *operations = fitting->operations;
    const struct fitting_options *options = &fitting->options;
    for (size_t i = 0; i < operations->parameter_count; i++)
        fitting->parameters[i] = operations->parameters[i].fallback;
    int r = read_folds(fitting, failure);
    for (size_t s = 0; r == 0 && s < options->setting_count; s++) {
        const char *setting = options->settings[s], *equals = strchr(setting, '=');
        if (!equals)
            return failure_input(failure, NULL, 0, 0, "'%s' sets nothing; expected NAME=VALUE", setting);
        size_t i;
        r = parameter_find(operations->parameters, operations->parameter_count, setting,
                           (size_t)(equals - setting), NULL, 0, 0, &i, failure);
        r = r < 0 ? r
                  : parameter_parse(&operations->parameters[i], equals + 1, NULL, 0, 0,
                                    &fitting->parameters[i], failure);
    }
    return r;
}

/* Those of another model; not every plugin knows what to do with them. */
static int pass_breaks(struct fitting *fitting, struct failure *failure) {
    const struct model_breaks *breaks = fitting->options.breaks;
    const struct fit_operations *operations = fitting->operations;
    if (!breaks)
        return 0;
    if (!PLUGIN_HAS(operations, takes) || !(operations->takes & FIT_TAKES_BREAKS))
        return failure_input(failure, NULL, 0, 0,
                             "the method '%s' takes no breaks of another model; expected smpi",
                             fitting->options.method);
    fitting->request.breaks = breaks->at;
    fitting->request.break_count = breaks->count;
    fitting->request.breaks_from = breaks->from;
    return 0;
}

static int fill_request(struct fitting *fitting, struct failure *failure) {
    const struct fitting_options *options = &fitting->options;
    const struct fit_operations *operations = fitting->operations;
    size_t count = table_column_count(fitting->table);
    fitting->columns = xcalloc(count, sizeof *fitting->columns);
    fitting->parameters = xcalloc(operations->parameter_count + 1, sizeof *fitting->parameters);
    for (size_t i = 0; i < count; i++) {
        const struct table_column *column = table_column(fitting->table, i);
        fitting->columns[i] = (struct fit_column){column->name, column->unit, column->type};
    }
    int r = read_settings(fitting, failure);
    if (r < 0)
        return r;
    fitting->host =
        (struct plugin_host){sizeof fitting->host, fitting, pass_note, text_nearest, pass_levels, pass_place};
    fitting->request = (struct fit_request){
        .size = sizeof fitting->request,
        .response = options->response,
        .terms = options->terms,
        .sizes = options->sizes,
        .size_count = options->size_count,
        .weights = options->weights,
        .by = options->by,
        .by_count = options->by_count,
        .parameters = fitting->parameters,
        .columns = fitting->columns,
        .column_count = count,
        .seed = options->seed,
        .suggested = options->suggested,
        .other_method = options->other_method,
        .other_terms = options->other_terms,
    };
    return pass_breaks(fitting, failure);
}

static size_t label_of(struct fitting *fitting, const char *name) {
    size_t i = 0;
    while (i < fitting->label_count && strcmp(fitting->labels[i], name) != 0)
        i++;
    if (i == fitting->label_count)
        fitting->labels[fitting->label_count++] = name;
    return i;
}

/* What tells the folds' units apart. */
static int list_fold_columns(struct fitting *fitting, struct failure *failure) {
    const struct fitting_options *options = &fitting->options;
    const struct fit_needs *needs = &fitting->needs;
    fitting->fold_numbers = calloc(needs->column_count + 1, sizeof *fitting->fold_numbers);
    fitting->fold_labels =
        calloc(needs->category_count + options->fold_column_count + 1, sizeof *fitting->fold_labels);
    fitting->fold_values = calloc(needs->column_count + 1, sizeof *fitting->fold_values);
    if (!fitting->fold_numbers || !fitting->fold_labels || !fitting->fold_values)
        return failure_memory(failure);
    for (size_t i = 0; options->folds_by == FOLDS_BY_COLUMNS && i < options->fold_column_count; i++)
        fitting->fold_labels[fitting->fold_label_count++] = label_of(fitting, options->fold_columns[i]);
    if (options->folds_by != FOLDS_BY_SETTING)
        return 0;
    for (size_t i = 0; i < needs->column_count; i++)
        if (strcmp(needs->columns[i], options->response) != 0 &&
            !(options->weights && strcmp(needs->columns[i], options->weights) == 0))
            fitting->fold_numbers[fitting->fold_number_count++] = i;
    for (size_t i = 0; i < needs->category_count; i++)
        fitting->fold_labels[fitting->fold_label_count++] = options->by_count + i;
    return 0;
}

/* The columns that are read as codes. */
static int list_labels(struct fitting *fitting, struct failure *failure) {
    const struct fitting_options *options = &fitting->options;
    size_t categories = fitting->needs.category_count;
    fitting->labels =
        calloc(options->by_count + categories + options->fold_column_count + 1, sizeof *fitting->labels);
    fitting->levels = calloc(categories + 1, sizeof *fitting->levels);
    if (!fitting->labels || !fitting->levels)
        return failure_memory(failure);
    for (size_t i = 0; i < options->by_count; i++)
        fitting->labels[fitting->label_count++] = options->by[i];
    for (size_t i = 0; i < categories; i++) {
        size_t column;
        int r = table_stream_find(fitting->table, "category", fitting->needs.categories[i], &column, failure);
        if (r < 0)
            return r;
        fitting->labels[fitting->label_count++] = fitting->needs.categories[i];
    }
    int r = list_fold_columns(fitting, failure);
    if (r == 0 && fitting->label_count > TABLE_LABELS_MAX)
        r = failure_input(failure, NULL, 0, 0,
                          "%zu columns form groups or folds or are categories; expected at most %d",
                          fitting->label_count, (int)TABLE_LABELS_MAX);
    return r;
}

/* Every need must be a column, so that a plugin's slip is told as its own. */
static int check_needs(struct fitting *fitting, struct failure *failure) {
    for (size_t i = 0; i < fitting->needs.column_count; i++) {
        size_t column;
        int r = table_stream_find(fitting->table, "needed", fitting->needs.columns[i], &column, failure);
        if (r < 0)
            return failure_prefix(failure, "%s", plugin_library_plugin(fitting->library)->name);
    }
    return list_labels(fitting, failure);
}

static int open_plugin(struct fitting *fitting, const struct installation *installation,
                       struct failure *failure) {
    int r = plugin_library_open(installation, ASSAY_PLUGIN_FIT, fitting->options.method, &fitting->library,
                                failure);
    if (r < 0)
        return r;
    fitting->operations = plugin_library_fit(fitting->library);
    r = fill_request(fitting, failure);
    if (r < 0)
        return r;
    struct plugin_message message = {0};
    struct fit_needs needs = {0};
    r = fitting->operations->open(&fitting->host, &fitting->request, &fitting->instance, &needs, &message);
    if (r < 0)
        return plugin_library_failure(fitting->library, r, &message, failure);
    fitting->needs.size = needs.size;
    fitting->needs.columns = needs.columns;
    fitting->needs.column_count = needs.column_count;
    fitting->needs.categories = needs.category_count ? needs.categories : NULL;
    fitting->needs.category_count = needs.category_count;
    fitting->needs.text_advice = PLUGIN_HAS(&needs, text_advice) ? needs.text_advice : NULL;
    return check_needs(fitting, failure);
}

/* ---- Rows */

/* The hull is over what the plugin needs as numbers, but for what it explains and how it weighs it. */
static int prepare_hull(struct fitting *fitting) {
    const struct fit_needs *needs = &fitting->needs;
    const struct fitting_options *options = &fitting->options;
    size_t count = 0;
    fitting->response_need = fitting->weights_need = SIZE_MAX;
    fitting->hull_needs = xcalloc(needs->column_count + 1, sizeof *fitting->hull_needs);
    for (size_t i = 0; i < needs->column_count; i++) {
        if (strcmp(needs->columns[i], options->response) == 0)
            fitting->response_need = i;
        else if (options->weights && strcmp(needs->columns[i], options->weights) == 0)
            fitting->weights_need = i;
        else
            fitting->hull_needs[count++] = i;
    }
    hull_init(&fitting->hull, count);
    return 0;
}

static void add_to_hull(struct fitting *fitting, const struct table_block *rows) {
    const double *columns[HULL_COLUMNS_MAX] = {NULL};
    for (size_t i = 0; i < fitting->hull.column_count; i++)
        columns[i] = rows->numbers[fitting->hull_needs[i]];
    hull_add(&fitting->hull, rows->rows, columns,
             fitting->response_need == SIZE_MAX ? NULL : rows->numbers[fitting->response_need],
             fitting->weights_need == SIZE_MAX ? NULL : rows->numbers[fitting->weights_need]);
}

/* What the table says of its units, once. */
static void pass_table_notes(struct fitting *fitting) {
    const char *note = NULL;
    while (!fitting->notes_passed && (note = table_note_after(fitting->table, note)))
        pass_note(fitting, note);
    fitting->notes_passed = true;
}

/* Whether FAILURE is about what stands in the column NAME. */
static bool is_about(const struct failure *failure, const char *name) {
    static const char start[] = "column '";
    size_t length = name ? strlen(name) : 0;
    const char *told = failure->text + strlen(start);
    return name && strncmp(failure->text, start, strlen(start)) == 0 && strncmp(told, name, length) == 0 &&
           strncmp(told + length, "' is ", 5) == 0;
}

/* Where a text stands in a column wanted as numbers, the plugin may know what to write instead. What is
 * explained and what it is weighed with can be nothing but numbers. */
static int add_advice(const struct fitting *fitting, int code, struct failure *failure) {
    size_t length = failure ? strlen(failure->text) : 0;
    if (failure && failure->kind == FAILURE_INPUT && fitting->needs.text_advice &&
        strstr(failure->text, "expected a number") && !is_about(failure, fitting->options.response) &&
        !is_about(failure, fitting->options.weights))
        snprintf(failure->text + length, sizeof failure->text - length, "; %s", fitting->needs.text_advice);
    return code;
}

/* Whether the response is how long something took, which is never below 0. By its unit, else by its name; of
 * what is left of times the name tells. */
static bool is_duration(const struct fitting *fitting) {
    static const char *const differences[] = {"resid",  "error", "diff",      "delta",
                                              "offset", "drift", "deviation", "skew"};
    const char *name = fitting->options.response, *code = fitting_unit(fitting, name);
    const struct unit *unit = code ? unit_find(code) : NULL;
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        if (strcasestr(name, differences[i]))
            return false;
    return unit ? unit->dimension == UNIT_TIME
                : strcasecmp(name, "duration") == 0 || strcasecmp(name, "time") == 0;
}

static void count_negative(struct fitting *fitting, const struct table_block *rows) {
    const double *response = rows->numbers[fitting->response_need];
    uint64_t negative = 0;
    for (size_t row = 0; row < rows->rows; row++)
        negative += response[row] < 0;
    fitting->negative += negative;
}

static void note_negative(struct fitting *fitting) {
    if (fitting->negative == 0 || !is_duration(fitting))
        return;
    char note[FAILURE_TEXT_SIZE];
    snprintf(note, sizeof note, "'%s' is below 0 in %" PRIu64 " of %" PRIu64 " rows, which no time is",
             fitting->options.response, fitting->negative, fitting->rows);
    pass_note(fitting, note);
}

/* ---- Folds */

/* How many the plugin is asked for; 0: it makes none by itself. */
static uint32_t own_folds(const struct fitting *fitting) {
    for (size_t i = 0; i < fitting->operations->parameter_count; i++)
        if (strcmp(fitting->operations->parameters[i].name, "folds") == 0)
            return fitting->parameters[i] >= 2 && fitting->parameters[i] <= FOLDS_MAX
                       ? (uint32_t)fitting->parameters[i]
                       : 0;
    return 0;
}

static void assign_folds(const struct fitting *fitting, struct folds *folds, uint64_t first, uint64_t stride,
                         size_t rows, const double *const *numbers, const uint32_t *const *labels,
                         uint8_t *ret) {
    const uint32_t *codes[TABLE_LABELS_MAX];
    for (size_t i = 0; i < fitting->fold_number_count; i++)
        fitting->fold_values[i] = numbers[fitting->fold_numbers[i]];
    for (size_t i = 0; i < fitting->fold_label_count; i++)
        codes[i] = labels[fitting->fold_labels[i]];
    const struct folds_columns columns = {fitting->fold_values, fitting->fold_number_count, codes,
                                          fitting->fold_label_count};
    folds_assign(folds, first, stride, rows, &columns, ret);
}

int fitting_kept_folds(const struct fitting *fitting, uint32_t count, uint8_t **ret) {
    const struct kept_rows *kept = &fitting->kept;
    cleanup(folds_cleanup) struct folds *folds = folds_new(count, fitting->options.seed);
    cleanup_free uint8_t *assigned = malloc(kept->count + 1);
    if (!folds || !assigned)
        return -ENOMEM;
    assign_folds(fitting, folds, 0, kept->stride, kept->count, (const double *const *)kept->columns,
                 (const uint32_t *const *)kept->labels, assigned);
    for (size_t i = 0; kept->stride == 1 && i < kept->count; i++) {
        struct fit_comparison comparison; /* rows that are one observation are in the fold of the first */
        fitting_compare(fitting, i, &comparison);
        assigned[i] = assigned[comparison.first];
    }
    *ret = take_pointer(assigned);
    return 0;
}

/* The folds of the block's rows, where the plugin wants them. */
static int make_block_folds(struct fitting *fitting, const struct table_block *rows, const uint8_t **ret) {
    *ret = NULL;
    if (!fitting->folds)
        return 0;
    if (rows->rows > fitting->block_capacity) {
        free(fitting->block_folds);
        fitting->block_folds = malloc(rows->rows);
        fitting->block_capacity = fitting->block_folds ? rows->rows : 0;
        if (!fitting->block_folds)
            return -ENOMEM;
    }
    assign_folds(fitting, fitting->folds, fitting->rows, 1, rows->rows, rows->numbers, rows->labels,
                 fitting->block_folds);
    *ret = fitting->block_folds;
    return 0;
}

static int prepare_folds(struct fitting *fitting, struct failure *failure) {
    uint32_t count = own_folds(fitting);
    if (count > 0 && !(fitting->folds = folds_new(count, fitting->options.seed)))
        return failure_memory(failure);
    return 0;
}

/* ---- Passes */

static int stream_rows(struct fitting *fitting, uint32_t pass, struct failure *failure) {
    bool first = pass == 1;
    struct fitting_stage stage = {"rows", 0, first ? 0 : fitting->rows, pass};
    int r = table_begin(fitting->table, fitting->needs.columns, fitting->needs.column_count, fitting->labels,
                        fitting->label_count, failure);
    if (r == 0)
        pass_table_notes(fitting);
    struct table_block rows;
    fitting->rows = 0;
    while (r >= 0 && (r = table_next(fitting->table, &rows, failure)) > 0) {
        struct fit_block block = {
            .size = sizeof block, .rows = rows.rows, .columns = rows.numbers, .first_row = fitting->rows};
        r = grouping_assign(fitting->grouping, rows.rows, rows.labels, &block.groups, failure);
        if (r < 0)
            return r;
        if (make_block_folds(fitting, &rows, &block.folds) < 0)
            return failure_memory(failure);
        block.group_count = grouping_count(fitting->grouping);
        block.categories = fitting->needs.category_count ? rows.labels + fitting->options.by_count : NULL;
        if (first && fitting->options.kept_rows > 0)
            kept_rows_add(&fitting->kept, rows.rows, rows.numbers, rows.labels, block.groups);
        struct plugin_message message = {0};
        r = fitting->operations->block(fitting->instance, &block, &message);
        if (r < 0)
            return plugin_library_failure(fitting->library, r, &message, failure);
        if (first && fitting->response_need != SIZE_MAX)
            count_negative(fitting, &rows);
        if (!fitting->hull_done)
            add_to_hull(fitting, &rows);
        stage.done = fitting->rows += rows.rows;
        fitting_tell(fitting, &stage);
    }
    fitting->hull_done = true;
    return r < 0 ? add_advice(fitting, r, failure) : r;
}

static int stream_passes(struct fitting *fitting, struct failure *failure) {
    if (fitting->options.kept_rows > 0 &&
        kept_rows_init(&fitting->kept, fitting->needs.column_count, fitting->label_count,
                       fitting->options.kept_rows) < 0)
        return failure_memory(failure);
    for (uint32_t pass = 1; pass <= FITTING_PASSES_MAX; pass++) {
        int r = stream_rows(fitting, pass, failure);
        if (r < 0)
            return r;
        if (pass == 1)
            note_negative(fitting);
        struct plugin_message message = {0};
        r = fitting->operations->end_of_pass(fitting->instance, &message);
        if (r < 0)
            return plugin_library_failure(fitting->library, r, &message, failure);
        if (r != FIT_AGAIN)
            return 0;
    }
    return failure_set(failure, -ELOOP, "%s asked for the rows more than %d times",
                       plugin_library_plugin(fitting->library)->name, (int)FITTING_PASSES_MAX);
}

int fitting_run(const struct installation *installation, struct table *table,
                const struct fitting_options *options, fitting_note note, void *note_context,
                struct fitting **ret, struct failure *failure) {
    cleanup(fitting_cleanup) struct fitting *fitting = calloc(1, sizeof *fitting);
    if (!fitting)
        return failure_memory(failure);
    fitting->options = *options;
    fitting->table = table;
    fitting->note = note;
    fitting->note_context = note_context;
    int r = check_options(fitting, failure);
    r = r < 0 ? r : open_plugin(fitting, installation, failure);
    r = r < 0 ? r : prepare_hull(fitting);
    r = r < 0 ? r : prepare_folds(fitting, failure);
    r = r < 0 ? r : grouping_new(options->by_count, &fitting->grouping, failure);
    r = r < 0 ? r : stream_passes(fitting, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(fitting);
    return 0;
}

/* ---- Results */

/* What the listeners do with a group may be to print it. */
static void tell_groups(struct fitting *fitting) {
    fitting_tell(fitting, &(struct fitting_stage){"groups", ++fitting->groups_heard,
                                                  grouping_count(fitting->grouping), 0});
}

static int hear_formula(void *context, const struct fit_formula *formula) {
    struct fitting *fitting = context;
    struct fit_formula whole = {0}; /* what an older plugin does not know is zero */
    memcpy(&whole, formula, formula->size < sizeof whole ? formula->size : sizeof whole);
    whole.size = sizeof whole;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < fitting->listener_count; i++)
        r = fitting->listeners[i]->formula(fitting->listeners[i]->context, &whole, fitting->failure);
    return r;
}

static int hear_group(void *context, const struct fit_group *group) {
    struct fitting *fitting = context;
    struct fit_group whole = {0}; /* what an older plugin does not know is zero */
    memcpy(&whole, group, group->size < sizeof whole ? group->size : sizeof whole);
    whole.size = sizeof whole;
    fitting_tell(fitting, NULL);
    int r = 0;
    for (size_t i = 0; r >= 0 && i < fitting->listener_count; i++)
        r = fitting->listeners[i]->group(fitting->listeners[i]->context, &whole, fitting->failure);
    tell_groups(fitting);
    return r;
}

static int hear_skipped(void *context, uint32_t code, uint64_t rows, const char *reason) {
    struct fitting *fitting = context;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < fitting->listener_count; i++)
        r = fitting->listeners[i]->skipped(fitting->listeners[i]->context, code, rows, reason,
                                           fitting->failure);
    tell_groups(fitting);
    return r;
}

/* The place of every label in the natural order of its column: groups are then compared by whole numbers. */
static int rank_labels(const struct fitting *fitting, size_t j, uint32_t **ret) {
    size_t count = table_label_count(fitting->table, j);
    cleanup_free const char **labels = calloc(count + 1, sizeof *labels);
    if (!labels)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        labels[i] = table_label(fitting->table, j, (uint32_t)i);
    return natural_order_ranks(labels, count, ret);
}

struct ranked_group {
    const struct fitting *fitting;
    uint32_t *const *ranks;
    uint32_t group;
};

static int compare_groups(const void *a, const void *b) {
    const struct ranked_group *left = a, *right = b;
    const struct fitting *fitting = left->fitting;
    for (size_t j = 0; j < fitting->options.by_count; j++) {
        uint32_t x = left->ranks[j][grouping_label(fitting->grouping, left->group, j)];
        uint32_t y = left->ranks[j][grouping_label(fitting->grouping, right->group, j)];
        if (x != y)
            return x < y ? -1 : 1;
    }
    return left->group < right->group ? -1 : left->group > right->group;
}

static int order_groups(const struct fitting *fitting, uint32_t **ret) {
    uint32_t count = grouping_count(fitting->grouping);
    uint32_t *ranks[TABLE_LABELS_MAX] = {NULL};
    int r = 0;
    for (size_t j = 0; r == 0 && j < fitting->options.by_count; j++)
        r = rank_labels(fitting, j, &ranks[j]);
    cleanup_free struct ranked_group *groups = calloc((size_t)count + 1, sizeof *groups);
    uint32_t *order = calloc((size_t)count + 1, sizeof *order);
    if (r == 0 && (!groups || !order))
        r = -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < count; i++)
        groups[i] = (struct ranked_group){fitting, ranks, i};
    if (r == 0 && fitting->options.by_count > 0)
        qsort(groups, count, sizeof *groups, compare_groups);
    for (uint32_t i = 0; r == 0 && i < count; i++)
        order[i] = groups[i].group;
    for (size_t j = 0; j < TABLE_LABELS_MAX; j++)
        free(ranks[j]);
    if (r < 0)
        free(order);
    else
        *ret = order;
    return r;
}

int fitting_finish(struct fitting *fitting, const struct fitting_listener *const *listeners, size_t count,
                   struct failure *failure) {
    cleanup_free uint32_t *order = NULL;
    if (order_groups(fitting, &order) < 0)
        return failure_memory(failure);
    struct failure heard = {0};
    fitting->listeners = listeners;
    fitting->listener_count = count;
    fitting->failure = &heard;
    const struct fit_writer writer = {
        .size = sizeof writer,
        .context = fitting,
        .order = order,
        .group_count = grouping_count(fitting->grouping),
        .formula = hear_formula,
        .group = hear_group,
        .skipped = hear_skipped,
    };
    struct plugin_message message = {0};
    int r = fitting->operations->finish(fitting->instance, &writer, &message);
    fitting->failure = NULL;
    fitting_tell(fitting, NULL);
    if (r >= 0)
        return 0;
    if (heard.kind == FAILURE_NONE) /* it was the plugin's own */
        return plugin_library_failure(fitting->library, r, &message, failure);
    if (failure)
        *failure = heard;
    return heard.code;
}

void fitting_tell(const struct fitting *fitting, const struct fitting_stage *stage) {
    if (fitting->options.progress)
        fitting->options.progress(fitting->options.progress_context, stage);
}

const struct assay_plugin *fitting_plugin(const struct fitting *fitting) {
    return plugin_library_plugin(fitting->library);
}

const struct fitting_options *fitting_options(const struct fitting *fitting) {
    return &fitting->options;
}

const struct table *fitting_table(const struct fitting *fitting) {
    return fitting->table;
}

uint64_t fitting_rows(const struct fitting *fitting) {
    return fitting->rows;
}

uint32_t fitting_group_count(const struct fitting *fitting) {
    return grouping_count(fitting->grouping);
}

const char *fitting_label(const struct fitting *fitting, uint32_t group, size_t j) {
    return table_label(fitting->table, j, grouping_label(fitting->grouping, group, j));
}

const struct hull *fitting_hull(const struct fitting *fitting) {
    return &fitting->hull;
}

const char *fitting_hull_column(const struct fitting *fitting, size_t i) {
    return fitting->needs.columns[fitting->hull_needs[i]];
}

bool fitting_levels(const struct fitting *fitting, const char *name, struct plugin_levels *ret) {
    for (size_t i = 0; i < fitting->needs.category_count; i++)
        if (strcmp(fitting->needs.categories[i], name) == 0)
            return pass_levels((void *)fitting, i, ret) == 0;
    return false;
}

const struct kept_rows *fitting_kept_rows(const struct fitting *fitting) {
    return fitting->kept.limit > 0 ? &fitting->kept : NULL;
}

void fitting_compare(const struct fitting *fitting, size_t i, struct fit_comparison *ret) {
    const struct fit_operations *operations = fitting->operations;
    uint64_t row = i * fitting->kept.stride;
    *ret = (struct fit_comparison){.size = sizeof *ret, .divisor = 1, .first = row};
    if (PLUGIN_HAS(operations, compare) && operations->compare)
        operations->compare(fitting->instance, row, ret);
}

bool fitting_distances(const struct fitting *fitting, size_t set, struct fit_distances *ret) {
    const struct fit_operations *operations = fitting->operations;
    return PLUGIN_HAS(operations, distances) && operations->distances &&
           operations->distances(fitting->instance, set, ret);
}

const struct fit_needs *fitting_needs(const struct fitting *fitting) {
    return &fitting->needs;
}

const struct fit_request *fitting_request(const struct fitting *fitting) {
    return &fitting->request;
}

const char *fitting_label_column(const struct fitting *fitting, size_t j) {
    return fitting->labels[j];
}

enum folds_unit fitting_folds_by(const struct fitting *fitting) {
    return fitting_fold_column_count(fitting) > 0 ? fitting->options.folds_by : FOLDS_BY_ROW;
}

size_t fitting_fold_column_count(const struct fitting *fitting) {
    return fitting->fold_number_count + fitting->fold_label_count;
}

const char *fitting_fold_column(const struct fitting *fitting, size_t i) {
    return i < fitting->fold_number_count
               ? fitting->needs.columns[fitting->fold_numbers[i]]
               : fitting->labels[fitting->fold_labels[i - fitting->fold_number_count]];
}

double fitting_parameter(const struct fitting *fitting, size_t i) {
    return fitting->parameters[i];
}

const char *fitting_unit(const struct fitting *fitting, const char *name) {
    for (size_t i = 0; i < table_column_count(fitting->table); i++) {
        const struct table_column *column = table_column(fitting->table, i);
        if (strcmp(column->name, name) == 0)
            return column->unit;
    }
    return NULL;
}
