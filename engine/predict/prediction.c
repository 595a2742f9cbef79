#include "engine/predict/prediction.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/model/model.h"
#include "engine/model/write.h"
#include "engine/numerics/quantile.h"
#include "engine/predict/picture.h"
#include "engine/predict/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 256 }; /* scenarios between two writes */

/* Where the plugin's answer to one scenario goes. Remarks and text go to the prediction, unless it is a draw.
 */
struct collector {
    struct prediction *prediction;
    struct prediction_result *result;
    size_t number;                  /* of the scenario */
    struct prediction_rows rows;    /* of this run */
    struct prediction_rows *tables; /* one a table of the plugin; of a draw NULL */
    bool is_draw;
};

/* ---- Functions that the plugin calls with its results
 * ------------------------------------------------------------------------------------- */

/* Adds a remark to the result of a scenario; repeated ones, and those beyond PREDICTION_REMARKS_MAX, are left
 * out. */
static void add_remark(struct prediction_result *result, bool warning, const char *sentence) {
    size_t count = result->remark_count;
    if (count >= PREDICTION_REMARKS_MAX)
        return;
    for (size_t i = 0; i < count; i++)
        if (strcmp(result->remarks[i].sentence, sentence) == 0)
            return;
    result->remarks = xrealloc(result->remarks, (count + 1) * sizeof *result->remarks);
    result->remarks[result->remark_count++] = (struct prediction_remark){warning, xstrdup(sentence)};
}

static void on_remark(void *context, bool warning, const char *sentence) {
    struct collector *collector = context;
    if (!collector->is_draw)
        add_remark(collector->result, warning, sentence);
}

static int on_text(void *context, const char *bytes, size_t length) {
    struct collector *collector = context;
    return collector->is_draw ? 0 : text_append(&collector->prediction->text, bytes, length);
}

/* How a model that a plugin wrote was made: by the parameters of the first scenario and the given models. The
 * caller clears it. */
static struct model_origin origin_of(const struct prediction *prediction) {
    const struct scenarios *scenarios = &prediction->scenarios;
    const struct parameters *parameters = &scenarios->items[0].parameters;
    struct model_origin origin = {
        .plugin = xformat("%s-%s", prediction->prefix, prediction->library->plugin->name),
        .version = xstrdup(prediction->library->plugin->version),
        .engine = xstrdup(ASSAY_VERSION),
        .created = xcalloc(1, CLOCK_TEXT_SIZE),
        .seed = prediction->models.seed,
        .inputs = xcalloc(prediction->models.count + 1, sizeof *origin.inputs),
        .input_count = prediction->models.count,
    };
    clock_format(clock_wall_ns(), origin.created);
    parameters_describe(&scenarios->options, 0, scenarios->option_count, &origin);
    parameters_describe(parameters, scenarios->option_count, parameters->count, &origin);
    for (size_t i = 0; i < origin.input_count; i++) {
        const struct predict_source *source = &prediction->models.items[i].source;
        origin.inputs[i].name = xstrdup(source->file);
        snprintf(origin.inputs[i].sha256, sizeof origin.inputs[i].sha256, "%s", source->sha256);
    }
    return origin;
}

/* Appends a model that the plugin made to the text of the prediction, with its origin. Negative errno: it
 * cannot be written. */
static int on_model(void *context, const struct model *model) {
    struct collector *collector = context;
    struct model whole = *model;
    struct failure own = {0};
    if (collector->is_draw)
        return 0;
    whole.origin = origin_of(collector->prediction);
    int r = model_file_append(&whole, &collector->prediction->text, &own);
    model_origin_clear(&whole.origin);
    return r;
}

/* Adds a row of COUNT columns to ROWS; VALUES or TEXTS may be NULL. -EFBIG: too many rows. */
static int add_row(struct prediction_rows *rows, size_t count, const double *values,
                   const char *const *texts) {
    if (rows->count >= PREDICTION_ROWS_MAX)
        return -EFBIG;
    if ((rows->count & (rows->count - 1)) == 0) /* 0, or a power of two: it is full */
        rows->items = xrealloc(rows->items, (rows->count ? 2 * rows->count : 1) * sizeof *rows->items);
    struct prediction_row *row = &rows->items[rows->count++];
    *row = (struct prediction_row){.values = xcalloc(count + 1, sizeof *row->values)};
    for (size_t c = 0; c < count; c++)
        row->values[c] = values ? values[c] : NAN;
    row->texts = texts ? xcalloc(count + 1, sizeof *row->texts) : NULL;
    for (size_t c = 0; texts && c < count; c++)
        row->texts[c] = texts[c] ? xstrdup(texts[c]) : NULL;
    return 0;
}

static int on_row(void *context, const double *values, const char *const *texts) {
    struct collector *collector = context;
    return add_row(&collector->rows, collector->prediction->column_count, values, texts);
}

static bool wants_table(void *context, size_t table) {
    const struct collector *collector = context;
    const struct prediction *prediction = collector->prediction;
    return collector->tables && table < prediction->table_count && prediction->tables[table].is_wanted;
}

static int on_table_row(void *context, size_t table, const double *values, const char *const *texts) {
    struct collector *collector = context;
    if (!wants_table(context, table))
        return 0;
    return add_row(&collector->tables[table], collector->prediction->tables[table].column_count, values,
                   texts);
}

/* Reports progress to the caller. Negative: the caller wants to end. */
static int on_progress(void *context, double share) {
    const struct collector *collector = context;
    const struct prediction *prediction = collector->prediction;
    const struct prediction_request *request = prediction->request;
    if (!request || !request->progress || prediction->is_interrupted)
        return 0;
    if (request->search == 0)
        return request->progress(request->context, collector->number, share);
    bool is_over = prediction->search_budget == 0; /* the best are run once more */
    share = is_over ? 1 : ((double)prediction->searched + share) / (double)prediction->search_budget;
    return request->progress(request->context, prediction->searched + !is_over, share);
}

static void free_rows(struct prediction_row *rows, size_t count, size_t columns) {
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; rows[i].texts && c < columns; c++)
            free(rows[i].texts[c]);
        free(rows[i].values), free(rows[i].texts), free(rows[i].intervals);
    }
    free(rows);
}

/* -EINVAL if the scenario sets a parameter that a given model replaces. */
static int check_given_once(const struct prediction *prediction, const struct scenario *scenario,
                            struct failure *failure) {
    const struct predict_role *roles = prediction->plugin->roles;
    const size_t *counts = prediction->models.view.model_counts;
    for (size_t p = 0; p < scenario->parameters.count; p++) {
        const struct plugin_parameter *parameter = &scenario->parameters.table[p];
        for (size_t role = 0; parameter->instead_of && scenario->parameters.values[p].is_set &&
                              role < prediction->models.role_count;
             role++)
            if (counts[role] > 0 && strcmp(roles[role].name, parameter->instead_of) == 0)
                return failure_input(failure, NULL, 0, 0,
                                     "%s is set, but the model for '%s' gives it, too; remove one",
                                     parameter->name, roles[role].name);
    }
    return 0;
}

/* Runs the plugin on scenario INDEX, with rows into COLLECTOR, which the caller frees. A scenario without an
 * answer gets one row of NaN and a warning with the reason. Negative with FAILURE otherwise. */
static int run_scenario(struct prediction *prediction, size_t index, struct collector *collector,
                        struct failure *failure) {
    const struct scenario *scenario = &prediction->scenarios.items[index];
    struct predict_output output = {.size = sizeof output,
                                    .context = collector,
                                    .remark = on_remark,
                                    .text = on_text,
                                    .row = on_row,
                                    .wants = wants_table,
                                    .table_row = on_table_row,
                                    .progress = on_progress,
                                    .model = on_model};
    struct plugin_message message = {""};
    cleanup_free double *values = xcalloc(prediction->column_count + 1, sizeof *values);
    for (size_t c = 0; c < prediction->column_count; c++)
        values[c] = NAN;
    models_begin(&prediction->models);
    collector->number = scenario->number;
    if (check_given_once(prediction, scenario, failure) < 0)
        return scenario->line ? failure_prefix(failure, "scenario in line %zu", scenario->line) : -EINVAL;
    int r = on_progress(collector, 0);
    if (r == 0)
        r = prediction->plugin->run(prediction->state, &prediction->models.view,
                                    scenario->parameters.values + prediction->scenarios.option_count, values,
                                    &output, &message);
    if (r == -ECANCELED)
        return failure_set_kind(failure, FAILURE_INTERRUPTED, r,
                                "interrupted in scenario %zu; no file was written", scenario->number);
    if (r < 0 && (r != -EDOM || !prediction->plugin->columns)) {
        library_failure(prediction->library, r, &message, failure);
        return scenario->line ? failure_prefix(failure, "scenario in line %zu", scenario->line) : r;
    }
    if (prediction->text.error < 0) /* the plugin need not look at what each of its texts returned */
        return failure_set(failure, prediction->text.error,
                           "the text that %s writes is longer than %d bytes, the most accepted",
                           prediction->library->plugin->name, (int)PREDICTION_TEXT_MAX);
    if (r < 0)
        predict_remark(&output, true, "no answer: %s", message.text);
    if (r < 0 && prediction->search_budget > 0 && !prediction->no_answer)
        prediction->no_answer = xstrdup(message.text);
    models_warn(&prediction->models, &output);
    return collector->rows.count == 0 ? on_row(collector, r < 0 ? NULL : values, NULL) : 0;
}

int prediction_run_again(struct prediction *prediction, size_t column, double *ret, struct failure *failure) {
    struct collector collector = {.prediction = prediction, .is_draw = true};
    int r = run_scenario(prediction, 0, &collector, failure);
    *ret = r < 0 ? NAN : collector.rows.items[0].values[column];
    free_rows(collector.rows.items, collector.rows.count, prediction->column_count);
    return r;
}

size_t prediction_main_column(const struct prediction *prediction) {
    return prediction->main_column;
}

/* Finds the main column of the result: the column GOAL, else the first with a goal, else the last of numbers.
 * -EINVAL: GOAL is no column with a goal. */
static int find_main_column(struct prediction *prediction, const char *goal, struct failure *failure) {
    const struct column *columns = prediction->plugin->columns;
    size_t count = prediction->column_count, c = 0;
    while (c < count && (columns[c].goal == COLUMN_NO_GOAL || (goal && strcmp(columns[c].name, goal) != 0)))
        c++;
    if (goal && c == count)
        return failure_input(failure, NULL, 0, 0,
                             "%s-%s has no column '%.64s' with a goal; 'assay plugins show %s' lists them",
                             prediction->prefix, prediction->library->plugin->name, goal,
                             prediction->library->plugin->name);
    for (size_t i = 0; c == count && i < count; i++)
        c = columns[i].unit ? i : c;
    prediction->main_column = c;
    return 0;
}

/* ---- Draws
 * ---------------------------------------------------------------------------------------------------- */

static bool is_drawn(const struct prediction *prediction, size_t column) {
    const struct column *of = &prediction->plugin->columns[column];
    return of->unit && !of->exact;
}

/* Runs all draws of the scenarios from FIRST on. Row R and column C of draw D are in values[scenario -
 * first][(R x columns + C) x draws + D]; NaN where a draw has another number of rows. */
static int run_draws(struct prediction *prediction, size_t first, double **values, struct failure *failure) {
    size_t columns = prediction->column_count, draws = prediction->draws;
    int r = 0;
    for (size_t d = 0; r == 0 && d < draws; d++) {
        models_draw(&prediction->models, d + 1);
        for (size_t i = first; r == 0 && i < prediction->scenarios.count; i++) {
            struct collector collector = {.prediction = prediction, .is_draw = true};
            r = run_scenario(prediction, i, &collector, failure);
            bool is_alike = collector.rows.count == prediction->results[i].row_count;
            for (size_t k = 0; k < prediction->results[i].row_count * columns; k++)
                values[i - first][k * draws + d] =
                    is_alike ? collector.rows.items[k / columns].values[k % columns] : NAN;
            free_rows(collector.rows.items, collector.rows.count, columns);
        }
    }
    models_draw(&prediction->models, 0);
    return r;
}

/* Mean and 95 % interval of the draws with an answer, which are sorted in place; RET is unchanged where half
 * or more have none. Returns how many have none. */
static size_t summarise(double *draws, size_t count, double ret[PREDICTION_INTERVAL]) {
    size_t kept = 0;
    double mean = 0;
    for (size_t d = 0; d < count; d++)
        if (isfinite(draws[d]))
            draws[kept++] = draws[d];
    if (2 * kept <= count)
        return count - kept;
    quantile_sort(draws, kept);
    for (size_t d = 0; d < kept; d++)
        mean += (draws[d] - mean) / (double)(d + 1);
    ret[PREDICTION_MEAN] = mean;
    ret[PREDICTION_LOW] = quantile(draws, kept, 0.025);
    ret[PREDICTION_HIGH] = quantile(draws, kept, 0.975);
    return count - kept;
}

/* Adds the intervals of all numbers to the rows of a scenario, and a warning if draws failed. */
static void summarise_scenario(struct prediction *prediction, struct prediction_result *result,
                               double *values) {
    size_t columns = prediction->column_count, draws = prediction->draws, lost = 0;
    for (size_t i = 0; i < result->row_count; i++) {
        struct prediction_row *row = &result->rows[i];
        row->intervals = xcalloc(columns + 1, sizeof *row->intervals);
        for (size_t c = 0; c < columns; c++) {
            row->intervals[c][PREDICTION_MEAN] = row->intervals[c][PREDICTION_LOW] =
                row->intervals[c][PREDICTION_HIGH] = NAN;
            size_t without = is_drawn(prediction, c) && isfinite(row->values[c])
                                 ? summarise(&values[(i * columns + c) * draws], draws, row->intervals[c])
                                 : 0;
            lost = without > lost ? without : lost;
        }
    }
    cleanup_free char *sentence = xformat("%zu of %zu draws failed and are ignored", lost, draws);
    if (lost > 0)
        add_remark(result, true, sentence);
}

/* Finds the intervals of the scenarios from FIRST on, by draws. -EINVAL: too many numbers for memory. */
static int find_intervals(struct prediction *prediction, size_t first, struct failure *failure) {
    size_t end = prediction->scenarios.count, draws = prediction->draws, numbers = 0;
    for (size_t i = first; i < end; i++)
        numbers += prediction->results[i].row_count * prediction->column_count;
    if (numbers > PREDICTION_NUMBERS_MAX / draws)
        return failure_input(failure, NULL, 0, 0,
                             "%zu draws of %zu numbers exceed %d numbers, the most that are kept in "
                             "memory; use fewer draws or scenarios",
                             draws, numbers, (int)PREDICTION_NUMBERS_MAX);
    cleanup_free double *memory = xcalloc(numbers * draws + 1, sizeof *memory);
    cleanup_free double **values = xcalloc(end - first + 1, sizeof *values);
    for (size_t i = first, at = 0; i < end; i++) {
        values[i - first] = memory + at;
        at += prediction->results[i].row_count * prediction->column_count * draws;
    }
    int r = run_draws(prediction, first, values, failure);
    for (size_t i = first; r == 0 && i < end; i++)
        summarise_scenario(prediction, &prediction->results[i], values[i - first]);
    return r;
}

/* ---- The prediction
 * ------------------------------------------------------------------------------------------------ */

/* Warns of numbers outside their plausible range, which are most likely in another unit than the user
 * thinks. */
static void warn_of_values(const struct parameters *parameters, size_t first, size_t end,
                           struct prediction_result *result) {
    for (size_t i = first; i < end; i++) {
        const struct plugin_parameter *parameter = &parameters->table[i];
        double value = parameters->values[i].number, minimum = parameter->plausible_minimum,
               maximum = parameter->plausible_maximum;
        bool is_number = parameter->type == PLUGIN_NUMBER && isfinite(value);
        if (!is_number || (minimum == 0 && maximum == 0) || (value >= minimum && value <= maximum))
            continue;
        cleanup_free char *found = report_format(value, parameter->unit, 0),
                          *low = report_format(minimum, parameter->unit, 0),
                          *high = report_format(maximum, parameter->unit, 0),
                          *sentence = xformat("%s is %s, but plausible values are %s to %s; check its unit",
                                              parameter->name, found, low, high);
        add_remark(result, true, sentence);
    }
}

/* -EINVAL if the request has too many draws, or draws of a method that writes a text. */
static int check_request(const struct prediction *prediction, const struct prediction_request *request,
                         struct failure *failure) {
    bool is_text = !prediction->plugin->columns;
    if (request->draws > PREDICTION_DRAWS_MAX)
        return failure_input(failure, NULL, 0, 0, "%zu draws; expected at most %d", request->draws,
                             (int)PREDICTION_DRAWS_MAX);
    if (is_text && request->draws > 0)
        return failure_input(failure, NULL, 0, 0,
                             "%s writes a text, for which there are no intervals; remove --draws",
                             prediction->library->plugin->name);
    return 0;
}

/* Calls the plugin's open() with the models and options. */
static int open_plugin(struct prediction *prediction, struct failure *failure) {
    struct plugin_message message = {""};
    if (prediction->request->threads > 0)
        prediction->models.view.threads = prediction->request->threads;
    prediction->models.view.options = prediction->scenarios.options.values;
    if (!prediction->plugin->open)
        return 0;
    int r = prediction->plugin->open(&prediction->models.view, &prediction->state, &message);
    return r < 0 ? library_failure(prediction->library, r, &message, failure) : 0;
}

/* Runs the scenarios from FIRST on, with their draws; results are kept in the prediction. */
static int run_from(struct prediction *prediction, size_t first, struct failure *failure) {
    size_t count = prediction->scenarios.count;
    int r = 0;
    prediction->results = xrealloc(prediction->results, (count + 1) * sizeof *prediction->results);
    memset(prediction->results + first, 0, (count - first + 1) * sizeof *prediction->results);
    prediction->result_count = count;
    for (size_t i = first; r == 0 && i < count; i++) {
        struct prediction_result *result = &prediction->results[i];
        const struct parameters *parameters = &prediction->scenarios.items[i].parameters;
        result->tables = xcalloc(prediction->table_count + 1, sizeof *result->tables);
        struct collector collector = {.prediction = prediction, .result = result, .tables = result->tables};
        warn_of_values(&prediction->scenarios.options, 0, prediction->scenarios.option_count, result);
        warn_of_values(parameters, prediction->scenarios.option_count, parameters->count, result);
        for (size_t k = 0; k < prediction->models.note_count; k++)
            add_remark(result, false, prediction->models.notes[k]);
        r = run_scenario(prediction, i, &collector, failure);
        result->rows = collector.rows.items;
        result->row_count = collector.rows.count;
    }
    return r < 0 || prediction->draws == 0 ? r : find_intervals(prediction, first, failure);
}

/* Frees the results and scenarios from FIRST on. */
static void drop_results(struct prediction *prediction, size_t first) {
    for (size_t i = first; i < prediction->result_count; i++) {
        struct prediction_result *result = &prediction->results[i];
        free_rows(result->rows, result->row_count, prediction->column_count);
        for (size_t k = 0; k < result->remark_count; k++)
            free(result->remarks[k].sentence);
        free(result->remarks);
        for (size_t t = 0; result->tables && t < prediction->table_count; t++)
            free_rows(result->tables[t].items, result->tables[t].count, prediction->tables[t].column_count);
        free(result->tables);
    }
    prediction->result_count = first < prediction->result_count ? first : prediction->result_count;
    scenarios_drop(&prediction->scenarios, first);
}

/* How many scenarios are in memory at once, so that their draws fit. */
static size_t batch_size(const struct prediction *prediction) {
    size_t numbers = (prediction->draws + 1) * (prediction->column_count + 1);
    size_t fitting = PREDICTION_NUMBERS_MAX / 4 / numbers;
    return fitting < 1 ? 1 : fitting < BATCH_MAX ? fitting : BATCH_MAX;
}

/* Runs all scenarios, batch by batch. Without a sink all results are kept; with a sink it gets each batch,
 * and only the first ones are kept. -EINVAL: too many for memory. */
static int run_all(struct prediction *prediction, const struct prediction_request *request,
                   struct failure *failure) {
    struct scenarios *scenarios = &prediction->scenarios;
    bool is_text = !prediction->plugin->columns, is_kept = !request->sink || prediction->has_pictures;
    for (;;) {
        size_t first = scenarios->count;
        int r = scenarios_more(scenarios, request->sink ? batch_size(prediction) : PREDICTION_KEPT_MAX + 1,
                               failure);
        if (r <= 0)
            return r;
        if (is_text && scenarios->count > 1)
            return failure_input(
                failure, NULL, 0, 0,
                "%s writes one text for one scenario; found %zu scenarios, set one value for each parameter",
                prediction->library->plugin->name, scenarios->count);
        if (scenarios->count > PREDICTION_KEPT_MAX && is_kept)
            return failure_input(
                failure, NULL, 0, 0,
                "more than %d scenarios, the most that are kept in memory; write the predictions "
                "of any number of scenarios to a file: --output FILE%s",
                (int)PREDICTION_KEPT_MAX, prediction->has_pictures ? ", without --plot" : "");
        r = run_from(prediction, first, failure);
        r = r < 0 || !request->sink ? r : request->sink(request->context, prediction, first, failure);
        if (r < 0)
            return r;
        prediction->scenario_count += scenarios->count - first;
        if (!is_kept && first > 0 && scenarios->count > PREDICTION_SHOWN_MAX)
            drop_results(prediction, first);
    }
}

/* ---- Tables */

static size_t count_columns(const struct column *columns) {
    size_t count = 0;
    while (columns && columns[count].name)
        count++;
    return count;
}

/* Lists the plugin's tables, and marks those that pictures need. -EINVAL: a picture is not possible. */
static int open_tables(struct prediction *prediction, const struct prediction_request *request,
                       struct failure *failure) {
    static const struct column intervals[] = {{.name = "lane", .help = "where it was"},
                                              {.name = "from", .unit = "s", .help = "when it began"},
                                              {.name = "to", .unit = "s", .help = "when it ended"},
                                              {.name = "word", .help = "what it was"},
                                              {.name = NULL}};
    const struct predict_plugin *plugin = prediction->plugin;
    const struct predict_table *tables = PLUGIN_HAS(plugin, tables) ? plugin->tables : NULL;
    int r = 0;
    while (tables && tables[prediction->table_count].name)
        prediction->table_count++;
    prediction->tables = xcalloc(prediction->table_count + 1, sizeof *prediction->tables);
    for (size_t t = 0; t < prediction->table_count; t++) {
        const struct column *columns = tables[t].shape == PREDICT_INTERVALS ? intervals : tables[t].columns;
        prediction->tables[t] = (struct prediction_table){
            .table = &tables[t], .columns = columns, .column_count = count_columns(columns)};
    }
    for (size_t i = 0; r == 0 && i < request->picture_count; i++) {
        cleanup(picture_clear) struct picture picture = {0};
        r = picture_read(prediction, request->pictures[i], &picture, failure);
        prediction->has_pictures = true;
        if (r == 0 && picture.table < SIZE_MAX)
            prediction->tables[picture.table].is_wanted = true;
    }
    return r;
}

/* Runs a predictor, an exporter or a generator on all scenarios (prediction.h). */
int prediction_make(const struct installation *installation, const char *prefix, const char *name,
                    const struct prediction_request *request, struct prediction **ret,
                    struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = xcalloc(1, sizeof *prediction);
    text_init(&prediction->text, PREDICTION_TEXT_MAX);
    prediction->draws = request->draws;
    prediction->request = request;
    prediction->prefix = prefix;
    int r = library_open(installation, prefix, name, &prediction->library, failure);
    if (r < 0)
        return r;
    prediction->plugin = prediction->library->predict;
    prediction->column_count = count_columns(prediction->plugin->columns);
    r = find_main_column(prediction, request->goal, failure);
    r = r < 0 ? r : open_tables(prediction, request, failure);
    r = r < 0 ? r
              : scenarios_open(&prediction->scenarios, prediction->plugin, request->settings,
                               request->setting_count, request->scenarios, failure);
    r = r < 0 ? r : check_request(prediction, request, failure);
    r = r < 0 ? r
              : models_open(&prediction->models, prediction->library, request->models, request->texts,
                            request->model_count, request->seed, failure);
    r = r < 0 ? r : open_plugin(prediction, failure);
    if (r == 0 && request->search > 0) {
        r = search_best(prediction, request->search, request->search_ns, failure);
        r = r < 0 ? r : run_from(prediction, 0, failure);
        r = r < 0 || !request->sink ? r : request->sink(request->context, prediction, 0, failure);
        prediction->scenario_count = prediction->scenarios.count;
    } else if (r == 0)
        r = run_all(prediction, request, failure);
    if (r < 0)
        return r;
    prediction->request = NULL;
    *ret = take_pointer(prediction);
    return 0;
}

/* Frees the prediction; NULL is allowed. */
void prediction_free(struct prediction *prediction) {
    if (!prediction)
        return;
    if (prediction->plugin && prediction->plugin->close)
        prediction->plugin->close(prediction->state);
    drop_results(prediction, 0);
    free(prediction->results), free(prediction->tables), free(prediction->no_answer);
    models_clear(&prediction->models);
    scenarios_clear(&prediction->scenarios);
    text_clear(&prediction->text);
    library_close(prediction->library);
    free(prediction);
}

void prediction_cleanup(struct prediction **prediction) {
    prediction_free(*prediction);
}
