#include "engine/analysis/measurements.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS_COLUMN "state.flags"
#define MISSING_MEMBER "results/missing.csv"
#define DESIGN_MEMBER "design.csv"

enum { KEY_BYTES_MAX = 1 << 20, FLAGS_BYTES_MAX = 4096 };

/* ---- The response */

/* A rate is better when it is more, anything else when it is less. */
static bool is_rate(const char *unit) {
    return unit && (text_ends_in(unit, "/s") || text_ends_in(unit, "Hz"));
}

/* What an experiment without an answer has: its one response that is a number. */
static int assume_response(struct measurements *measurements, struct failure *failure) {
    const struct table *table = measurements->table;
    const char *experiment = table->inputs[0].experiment;
    const struct table_column *only = NULL;
    cleanup(text_clear) struct text names;
    text_init(&names, FAILURE_TEXT_SIZE / 2);
    size_t count = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        if (column->role != ARCHIVE_ROLE_RESPONSE || (column->type && strcmp(column->type, "string") == 0))
            continue;
        (void)text_printf(&names, "%s%s", count++ ? ", " : "", column->name); /* too long a list is cut */
        only = column;
    }
    if (count == 0)
        return failure_input(failure, table->inputs[0].path, 0, 0,
                             "the experiment '%s' has no response that is a number, by which its settings "
                             "could be ranked",
                             experiment ? experiment : "");
    if (count > 1)
        return failure_input(
            failure, table->inputs[0].path, 0, 0,
            "the experiment '%s' does not say which of its %zu responses (%s) is its answer; "
            "add a line such as 'answer: {response: %s, best: least}' to it for later runs; "
            "'assay report %s --most RESPONSE' or '--least RESPONSE' ranks this one",
            experiment ? experiment : "", count, names.bytes, only->name, table->inputs[0].path);
    measurements->response = only->name;
    measurements->unit = only->unit;
    measurements->most = is_rate(only->unit);
    measurements->is_assumed = true;
    return 0;
}

static int choose_response(struct measurements *measurements, const char *response, bool most,
                           struct failure *failure) {
    const struct table *table = measurements->table;
    const struct table_answer *answer = table->answer;
    measurements->lines = answer ? answer->lines : NULL;
    if (!response && !answer)
        return assume_response(measurements, failure);
    measurements->response = response ? response : answer->response;
    measurements->most = response ? most : answer->most;
    const struct table_column *column = table_find(table, measurements->response);
    measurements->unit = column ? column->unit : response ? NULL : answer->unit;
    return 0;
}

/* ---- Rows */

static int check_inputs(const struct table *table, struct failure *failure) {
    const struct table_input *first = &table->inputs[0];
    for (size_t i = 0; i < table->input_count; i++) {
        const struct table_input *input = &table->inputs[i];
        if (!input->archive)
            return failure_input(failure, input->path, 0, 0,
                                 "this is not a run; expected the archive of a run, or its folder");
        if (!input->experiment || !first->experiment || strcmp(input->experiment, first->experiment) != 0)
            return failure_input(
                failure, input->path, 0, 0,
                "this is a run of the experiment '%s', and '%s' one of '%s'; expected runs of "
                "one experiment",
                input->experiment ? input->experiment : "", first->path,
                first->experiment ? first->experiment : "");
    }
    return 0;
}

const struct table_category *measurements_category(const struct table *table, const char *name) {
    for (size_t i = 0; i < table->category_count; i++)
        if (strcmp(table->categories[i].name, name) == 0)
            return &table->categories[i];
    return NULL;
}

/* The numbers are the response and, for the lines of its output, what names the best unit; the categories the
 * factors, node, core, and flags where there are any. */
static int load_rows(struct measurements *measurements, struct failure *failure) {
    struct table *table = measurements->table;
    cleanup_free const char **categories = xcalloc(table->column_count + 3, sizeof *categories);
    const char *const numbers[] = {measurements->response, "order", "attempt"};
    size_t count = measurements->factor_count;
    for (size_t f = 0; f < count; f++)
        categories[f] = measurements->factors[f];
    categories[count++] = "node";
    categories[count++] = "core";
    if (table_find(table, FLAGS_COLUMN)) /* since 1.2 */
        categories[count++] = FLAGS_COLUMN;
    const struct table_selection selection = {.numbers = numbers,
                                              .number_count = measurements->lines ? 3 : 1,
                                              .categories = categories,
                                              .category_count = count,
                                              .with_flagged = true};
    int r = table_load(table, &selection, failure);
    if (r < 0)
        return r;
    measurements->row_count = table->rows;
    measurements->values = table->numbers[0].values;
    measurements->nodes = measurements_category(table, "node")->codes;
    measurements->cores = measurements_category(table, "core")->codes;
    return 0;
}

static void find_factors(struct measurements *measurements) {
    const struct table *table = measurements->table;
    measurements->factors = xcalloc(table->column_count + 1, sizeof *measurements->factors);
    measurements->units = xcalloc(table->column_count + 1, sizeof *measurements->units);
    measurements->varies = xcalloc(table->column_count + 1, sizeof *measurements->varies);
    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].role != ARCHIVE_ROLE_FACTOR)
            continue;
        measurements->units[measurements->factor_count] = table->columns[i].unit;
        measurements->factors[measurements->factor_count++] = table->columns[i].name;
    }
}

/* ---- Flags */

/* "load;drift" adds "load" and "drift". */
static void add_flags(struct text_set *set, const char *flags) {
    while (*flags) {
        size_t length = strcspn(flags, ";");
        if (length > 0)
            text_set_add(set, flags, length);
        flags += length + (flags[length] == ';');
    }
}

static void find_flags(struct measurements *measurements) {
    const struct table *table = measurements->table;
    const struct table_category *category = measurements_category(table, FLAGS_COLUMN);
    cleanup(text_clear) struct text list;
    cleanup(text_set_clear) struct text_set set = {0};
    text_init(&list, FLAGS_BYTES_MAX);
    measurements->left_out = xcalloc(measurements->row_count + 1, sizeof *measurements->left_out);
    for (size_t i = 0; category && i < category->level_count; i++)
        add_flags(&set, category->levels[i]);
    for (size_t i = 0; i < set.count; i++)
        (void)text_printf(&list, "%s%s", i ? ", " : "", set.texts[i]);
    measurements->flags = xstrdup(list.bytes);
    for (size_t g = 0; category && g < measurements->setting_count; g++) {
        struct setting *setting = &measurements->settings[g];
        for (size_t i = 0; i < setting->row_count; i++)
            setting->flagged += category->levels[category->codes[setting->rows[i]]][0] != '\0';
        measurements->flagged += setting->flagged;
    }
    measurements->all_flagged = measurements->flagged > 0 && measurements->flagged == measurements->row_count;
    for (size_t row = 0; row < measurements->row_count; row++)
        measurements->left_out[row] =
            !isfinite(measurements->values[row]) ||
            (category && !measurements->all_flagged && category->levels[category->codes[row]][0] != '\0');
}

/* ---- Settings */

static struct setting *add_setting(struct measurements *measurements) {
    size_t count = measurements->setting_count++;
    if ((count & (count - 1)) == 0) /* a power of two is full */
        measurements->settings =
            xrealloc(measurements->settings, (count ? 2 * count : 1) * sizeof *measurements->settings);
    measurements->settings[count] =
        (struct setting){.levels = xcalloc(measurements->factor_count + 1, sizeof(const char *))};
    return &measurements->settings[count];
}

static void add_measured_settings(struct measurements *measurements) {
    const struct table *table = measurements->table;
    struct groups *groups = &measurements->groups;
    cleanup_free size_t *by = xcalloc(measurements->factor_count + 1, sizeof *by);
    for (size_t f = 0; f < measurements->factor_count; f++)
        by[f] = f;
    groups_make(groups, table, by, measurements->factor_count);
    for (size_t g = 0; table->rows > 0 && g < groups->count; g++) {
        struct setting *setting = add_setting(measurements);
        setting->rows = groups->rows + groups->first[g];
        setting->row_count = groups->first[g + 1] - groups->first[g];
        for (size_t f = 0; f < measurements->factor_count; f++)
            setting->levels[f] = table->categories[f].levels[groups->labels[g * groups->label_count + f]];
    }
}

static void find_varying(struct measurements *measurements) {
    for (size_t g = 1; g < measurements->setting_count; g++)
        for (size_t f = 0; f < measurements->factor_count; f++)
            measurements->varies[f] |=
                strcmp(measurements->settings[g].levels[f], measurements->settings[0].levels[f]) != 0;
}

/* ---- Units without a row */

/* All levels, with what no level has between them. */
static uint32_t number_setting(const struct measurements *measurements, const char *const *levels,
                               struct text_set *keys) {
    cleanup(text_clear) struct text key;
    text_init(&key, KEY_BYTES_MAX);
    for (size_t f = 0; f < measurements->factor_count; f++)
        (void)text_printf(&key, "%s\n", levels[f]);
    return text_set_add(keys, key.bytes, key.length);
}

/* The table MEMBER of the input PATH, its columns as categories; *RET NULL: the input does not have it. */
static int load_further(const char *path, const char *member, const char *const *columns, size_t count,
                        struct table **ret, struct failure *failure) {
    const struct table_options options = {.member = member, .is_further_table = true};
    const struct table_selection selection = {.categories = columns, .category_count = count};
    int r = table_open(&path, 1, &options, ret, failure);
    if (r < 0)
        return failure->kind == FAILURE_INPUT ? 0 : r;
    return table_load(*ret, &selection, failure);
}

/* The setting of ROW of DESIGN, which is added if it is new. */
static struct setting *find_setting(struct measurements *measurements, const struct table *design, size_t row,
                                    struct text_set *keys) {
    cleanup_free const char **levels = xcalloc(measurements->factor_count + 1, sizeof *levels);
    for (size_t f = 0; f < measurements->factor_count; f++)
        levels[f] = design->categories[f].levels[design->categories[f].codes[row]];
    uint32_t number = number_setting(measurements, levels, keys);
    if (number < measurements->setting_count)
        return &measurements->settings[number];
    struct setting *setting = add_setting(measurements);
    struct text_set *texts = &measurements->further_levels;
    for (size_t f = 0; f < measurements->factor_count; f++) {
        uint32_t text = text_set_add(texts, levels[f], strlen(levels[f]));
        setting->levels[f] = texts->texts[text];
    }
    return setting;
}

/* Counts the units of the run at PATH that have no row. KEYS numbers the settings. */
static int count_missing(struct measurements *measurements, const char *path, struct text_set *keys,
                         struct failure *failure) {
    static const char *const columns[] = {"why", "row"};
    cleanup(table_cleanup) struct table *missing = NULL, *design = NULL;
    int r = load_further(path, MISSING_MEMBER, columns, 2, &missing, failure);
    if (r < 0 || !missing || missing->rows == 0)
        return r;
    r = load_further(path, DESIGN_MEMBER, measurements->factors, measurements->factor_count, &design,
                     failure);
    for (size_t g = keys->count; r == 0 && g < measurements->setting_count; g++)
        number_setting(measurements, measurements->settings[g].levels, keys);
    const struct table_category *why = &missing->categories[0], *rows = &missing->categories[1];
    for (size_t i = 0; r == 0 && i < missing->rows; i++) {
        bool is_failed = strcmp(why->levels[why->codes[i]], "failed") == 0;
        size_t row = strtoull(rows->levels[rows->codes[i]], NULL, 10); /* from 1 */
        *(is_failed ? &measurements->failed : &measurements->missing) += 1;
        if (!design || row == 0 || row > design->rows)
            continue; /* a design without factors has no table, and one setting */
        struct setting *setting = find_setting(measurements, design, row - 1, keys);
        *(is_failed ? &setting->failed : &setting->missing) += 1;
    }
    return r;
}

/* ---- The whole */

static int read(struct measurements *measurements, const char *const *paths, size_t count,
                const char *response, bool most, struct failure *failure) {
    const struct table_options options = {.member = TABLE_ARCHIVE_MEMBER};
    cleanup(text_set_clear) struct text_set keys = {0};
    int r = table_open(paths, count, &options, &measurements->table, failure);
    r = r < 0 ? r : check_inputs(measurements->table, failure);
    r = r < 0 ? r : choose_response(measurements, response, most, failure);
    if (r < 0)
        return r;
    find_factors(measurements);
    r = load_rows(measurements, failure);
    if (r < 0)
        return r;
    add_measured_settings(measurements);
    find_flags(measurements);
    for (size_t i = 0; r == 0 && i < measurements->table->input_count; i++)
        r = count_missing(measurements, measurements->table->inputs[i].path, &keys, failure);
    find_varying(measurements);
    return r;
}

int measurements_read(const char *const *paths, size_t count, const char *response, bool most,
                      struct measurements *ret, struct failure *failure) {
    struct measurements measurements = {0};
    int r = read(&measurements, paths, count, response, most, failure);
    if (r < 0)
        measurements_clear(&measurements);
    else
        *ret = measurements;
    return r;
}

void measurements_clear(struct measurements *measurements) {
    for (size_t g = 0; g < measurements->setting_count; g++)
        free(measurements->settings[g].levels);
    free(measurements->settings);
    free(measurements->factors), free(measurements->units), free(measurements->varies);
    free(measurements->left_out), free(measurements->flags);
    text_set_clear(&measurements->further_levels);
    groups_clear(&measurements->groups);
    table_free(measurements->table);
    *measurements = (struct measurements){0};
}
