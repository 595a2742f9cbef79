#include "engine/analysis/measurements.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS_COLUMN "state.flags"

enum { FLAGS_BYTES_MAX = 4096 };

/* ---- The response */

/* A rate is better when it is more, anything else when it is less. */
static bool is_rate(const char *unit) {
    return unit && (text_ends_in(unit, "/s") || text_ends_in(unit, "Hz"));
}

/* Ranks by the only response that is a number, of an experiment that declares no answer. FAILURE_INPUT if it
 * has none or several, or says that its settings are not to be ranked. */
static int assume_response(struct measurements *measurements, struct failure *failure) {
    const struct table *table = measurements->table;
    const char *experiment = table->inputs[0].experiment, *path = table->inputs[0].path;
    const struct column *only = NULL;
    if (table->ranks_nothing)
        return failure_input(failure, path, 0, 0,
                             "the experiment '%s' declares no response by which settings are "
                             "ranked; choose a response: 'assay report %s --most RESPONSE' or "
                             "'--least RESPONSE', or fit a model to the measurements: 'assay fit %s'",
                             experiment, path, path);
    cleanup(text_clear) struct text names;
    text_init(&names, FAILURE_TEXT_SIZE / 2);
    size_t count = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].role != COLUMN_ROLE_RESPONSE || table->columns[i].type == COLUMN_STRING)
            continue;
        only = &table->columns[i];
        (void)text_printf(&names, "%s%s", count++ ? ", " : "", only->name); /* too long a list is cut */
    }
    if (count == 0)
        return failure_input(failure, path, 0, 0,
                             "the experiment '%s' has no response that is a number, by which its settings "
                             "could be ranked",
                             experiment);
    if (count > 1)
        return failure_input(failure, path, 0, 0,
                             "the experiment '%s' does not say by which of its responses (%s) "
                             "settings are ranked; choose a response: 'assay report %s --most "
                             "RESPONSE' or '--least RESPONSE', or for later runs add a line to "
                             "experiment.yaml, such as 'answer: {response: %s, best: least}'",
                             experiment, names.bytes, path, only->name);
    measurements->response = only->name;
    measurements->unit = only->unit;
    measurements->most = is_rate(only->unit);
    measurements->is_assumed = true;
    return 0;
}

/* Chooses the response: RESPONSE and MOST of the caller, else the experiment's answer, else the only numeric
 * response. */
static int choose_response(struct measurements *measurements, const char *response, bool most,
                           struct failure *failure) {
    const struct table *table = measurements->table;
    const struct archive_answer *answer = table->answer;
    measurements->lines = answer ? answer->lines : NULL;
    if (!response && !answer)
        return assume_response(measurements, failure);
    measurements->response = response ? response : answer->response;
    measurements->most = response ? most : answer->best == ARCHIVE_BEST_MOST;
    const struct column *column = table_find(table, measurements->response);
    measurements->unit = column ? column->unit : response ? NULL : answer->unit;
    return 0;
}

/* ---- Rows */

/* Refuses inputs that are not runs of one experiment. */
static int check_inputs(const struct table *table, struct failure *failure) {
    const struct table_input *first = &table->inputs[0];
    for (size_t i = 0; i < table->input_count; i++) {
        const struct table_input *input = &table->inputs[i];
        if (!input->archive || !input->experiment)
            return failure_input(failure, input->path, 0, 0,
                                 "this is not a run; expected the archive of a run, or its folder");
        if (strcmp(input->experiment, first->experiment) != 0)
            return failure_input(failure, input->path, 0, 0,
                                 "this is a run of the experiment '%s', but '%s' is a run of '%s'; "
                                 "expected runs of the same experiment",
                                 input->experiment, first->path, first->experiment);
    }
    return 0;
}

static bool is_size(const struct table *table, const char *name) {
    bool has_own = table->answer && table->answer->sizes.count > 0;
    return has_own ? bind_texts_have(&table->answer->sizes, name)
                   : table->suggestion && bind_texts_have(&table->suggestion->sizes, name);
}

/* Finds the factors. Sizes of the problem come first. */
static void find_factors(struct measurements *measurements) {
    const struct table *table = measurements->table;
    size_t count = table->column_count;
    measurements->factors = xcalloc(count + 1, sizeof *measurements->factors);
    for (size_t i = 0; i < 2 * count; i++) {
        const struct column *column = &table->columns[i % count];
        if (column->role != COLUMN_ROLE_FACTOR || is_size(table, column->name) != (i < count))
            continue;
        measurements->factors[measurements->factor_count++] = (struct measured_factor){.column = column};
        measurements->size_count += i < count;
    }
}

/* Loads the columns: the response, order and attempt (which name a unit's output with node and core), the
 * optional columns that exist; as categories the factors, node, core and flags. */
static int load_rows(struct measurements *measurements, struct failure *failure) {
    const char *share = measurements->table->answer ? measurements->table->answer->share : NULL;
    const struct {
        const char *name;
        const double **values;
    } optional[] = {{share ? share : "", &measurements->share},
                    {"block", &measurements->block},
                    {"state.frequency", &measurements->frequency},
                    {"state.temperature", &measurements->temperature}};
    enum { REQUIRED = 3, OPTIONAL = sizeof optional / sizeof *optional };
    struct table *table = measurements->table;
    size_t count = measurements->factor_count, number_count = REQUIRED;
    cleanup_free const char **categories = xcalloc(count + 3, sizeof *categories);
    const char *numbers[REQUIRED + OPTIONAL] = {measurements->response, "order", "attempt"};
    for (size_t i = 0; i < OPTIONAL; i++)
        if (table_find(table, optional[i].name))
            numbers[number_count++] = optional[i].name;
    for (size_t f = 0; f < count; f++)
        categories[f] = measurements->factors[f].column->name;
    categories[count++] = "node";
    categories[count++] = "core";
    if (table_find(table, FLAGS_COLUMN)) /* since 1.2 */
        categories[count++] = FLAGS_COLUMN;
    const struct table_selection selection = {.numbers = numbers,
                                              .number_count = number_count,
                                              .categories = categories,
                                              .category_count = count,
                                              .with_flagged = true};
    int r = table_load(table, &selection, failure);
    if (r < 0)
        return r;
    const struct table_category *nodes = &table->categories[measurements->factor_count];
    measurements->row_count = table->rows;
    measurements->values = table->numbers[0].values;
    measurements->order = table->numbers[1].values;
    measurements->attempt = table->numbers[2].values;
    for (size_t i = 0, k = REQUIRED; i < OPTIONAL; i++)
        if (k < number_count && strcmp(numbers[k], optional[i].name) == 0)
            *optional[i].values = table->numbers[k++].values;
    measurements->nodes = nodes[0].codes;
    measurements->cores = &nodes[1];
    return 0;
}

static void number_runs(struct measurements *measurements) {
    const struct table *table = measurements->table;
    size_t row = 0;
    measurements->runs = xcalloc(table->rows + 1, sizeof *measurements->runs);
    for (size_t input = 0; input < table->input_count; input++)
        for (uint64_t i = 0; i < table->inputs[input].rows && row < table->rows; i++)
            measurements->runs[row++] = (uint32_t)input;
}

/* Finds the flagged rows, which are left out unless every row is flagged. Rows without a finite value are
 * always left out. */
static void find_flags(struct measurements *measurements) {
    const struct table *table = measurements->table;
    const struct table_category *category = &table->categories[table->category_count - 1];
    bool has_flags = strcmp(category->name, FLAGS_COLUMN) == 0;
    cleanup(text_clear) struct text list;
    text_init(&list, FLAGS_BYTES_MAX);
    for (size_t i = 0; has_flags && i < category->level_count; i++)
        if (category->levels[i][0])
            (void)text_printf(&list, "%s%s", list.length ? ", " : "", category->levels[i]);
    measurements->flags = xstrdup(list.bytes);
    measurements->left_out = xcalloc(table->rows + 1, sizeof *measurements->left_out);
    for (size_t row = 0; has_flags && row < table->rows; row++) {
        measurements->left_out[row] = category->levels[category->codes[row]][0] != '\0';
        measurements->flagged += measurements->left_out[row];
    }
    measurements->all_flagged = measurements->flagged > 0 && measurements->flagged == table->rows;
    for (size_t row = 0; row < table->rows; row++)
        measurements->left_out[row] = !isfinite(measurements->values[row]) ||
                                      (measurements->left_out[row] && !measurements->all_flagged);
}

/* Groups the rows by their levels, and finds the factors that vary. */
static void find_settings(struct measurements *measurements) {
    struct groups *settings = &measurements->settings;
    cleanup_free size_t *by = xcalloc(measurements->factor_count + 1, sizeof *by);
    for (size_t f = 0; f < measurements->factor_count; f++)
        by[f] = f;
    groups_make(settings, measurements->table, by, measurements->factor_count);
    if (measurements->row_count == 0)
        settings->count = 0;
    for (size_t i = 0; i < settings->count * settings->label_count; i++)
        if (settings->labels[i] != settings->labels[i % settings->label_count])
            measurements->factors[i % settings->label_count].varies = true;
}

/* ---- The whole */

/* Reads the runs into one table, chooses the response, and groups the rows by setting. */
int measurements_read(const char *const *paths, size_t count, const char *response, bool most,
                      struct measurements *ret, struct failure *failure) {
    const struct table_options options = {.member = ARCHIVE_RESULTS};
    cleanup(measurements_clear) struct measurements measurements = {0};
    int r = table_open(paths, count, &options, &measurements.table, failure);
    r = r < 0 ? r : check_inputs(measurements.table, failure);
    r = r < 0 ? r : choose_response(&measurements, response, most, failure);
    if (r < 0)
        return r;
    find_factors(&measurements);
    r = load_rows(&measurements, failure);
    if (r < 0)
        return r;
    number_runs(&measurements);
    find_flags(&measurements);
    find_settings(&measurements);
    *ret = measurements;
    measurements = (struct measurements){0};
    return 0;
}

void measurements_use_flagged(struct measurements *measurements) {
    for (size_t row = 0; row < measurements->row_count; row++)
        measurements->left_out[row] = !isfinite(measurements->values[row]);
}

const char *measurements_level(const struct measurements *measurements, size_t setting, size_t f) {
    const struct groups *settings = &measurements->settings;
    return measurements->table->categories[f].levels[settings->labels[setting * settings->label_count + f]];
}

void measurements_clear(struct measurements *measurements) {
    free(measurements->factors), free(measurements->left_out), free(measurements->flags),
        free(measurements->runs);
    groups_clear(&measurements->settings);
    table_free(measurements->table);
    *measurements = (struct measurements){0};
}
