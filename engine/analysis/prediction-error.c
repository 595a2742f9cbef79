#include "engine/analysis/prediction-error.h"

#include "archive-format/layout.h"
#include "engine/analysis/answer.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/numerics/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_BYTES_MAX = FAILURE_TEXT_SIZE / 2, SPEARMAN_LEAST = 3 };

/* The scenarios of a prediction, by the factors that runs have too. */
struct scenarios_of {
    const struct measurements *measurements;
    struct table *table;
    size_t *factors; /* of the measurements, that both have */
    size_t factor_count;
    double multiply, divide; /* to the unit of the response */
    /* For each factor a column of `stride` codes of the measurements' levels, one a scenario (UINT32_MAX: no
     * such level); the last is of what is looked for. */
    uint32_t *levels;
    size_t stride;
    size_t *order; /* scenarios in order of their levels */
    bool *is_used;
};

static void scenarios_clear(struct scenarios_of *scenarios) {
    table_free(scenarios->table);
    free(scenarios->factors), free(scenarios->levels), free(scenarios->order), free(scenarios->is_used);
}

/* ---- Reading */

/* Whether the dimensions of two units are the same; *RET_... convert from FROM to TO. */
static bool can_convert(const char *from, const char *to, double *ret_multiply, double *ret_divide) {
    *ret_multiply = *ret_divide = 1;
    return strcmp(from ? from : "1", to ? to : "1") == 0 ||
           unit_conversion(from, to, ret_multiply, ret_divide);
}

static bool is_interval(const char *name) {
    return text_ends_in(name, "_mean") || text_ends_in(name, "_low") || text_ends_in(name, "_high");
}

/* Chooses the result of the prediction to compare: the column with the response's name, else the first whose
 * unit has the same dimension. Sets the factors of conversion. */
static int choose_result_column(struct scenarios_of *scenarios, const char *path, const struct column **ret,
                                struct failure *failure) {
    const struct measurements *m = scenarios->measurements;
    const struct table *table = scenarios->table;
    cleanup(text_clear) struct text names;
    text_init(&names, NAMES_BYTES_MAX);
    *ret = table_find(table, m->response);
    for (size_t i = 0; i < table->column_count && !*ret; i++) {
        const struct column *column = &table->columns[i];
        if (column->role != COLUMN_ROLE_RESPONSE || column->type == COLUMN_STRING ||
            is_interval(column->name))
            continue;
        (void)text_printf(&names, "%s%s", names.length ? ", " : "", column->name);
        if (m->unit && column->unit && strcmp(m->unit, "1") != 0 &&
            can_convert(column->unit, m->unit, &scenarios->multiply, &scenarios->divide))
            *ret = column;
    }
    if (*ret && can_convert((*ret)->unit, m->unit, &scenarios->multiply, &scenarios->divide))
        return 0;
    return *ret ? failure_input(failure, path, 0, 0,
                                "the result '%s' has the unit '%s'; expected a unit that converts to "
                                "'%s', the unit in the runs",
                                (*ret)->name, unit_label((*ret)->unit), unit_label(m->unit))
                : failure_input(failure, path, 0, 0,
                                "the prediction has no result '%s', and no result in the unit '%s'; "
                                "its results: %s; choose a response that both have: '--most RESPONSE' "
                                "or '--least RESPONSE'",
                                m->response, unit_label(m->unit), names.bytes);
}

/* Finds the factors of the runs that are also parameters of the prediction. Refused: another unit, and none
 * in common. */
static int find_factors(struct scenarios_of *scenarios, const char *path, struct failure *failure) {
    const struct measurements *m = scenarios->measurements;
    scenarios->factors = xcalloc(m->factor_count + 1, sizeof *scenarios->factors);
    for (size_t f = 0; f < m->factor_count; f++) {
        const struct column *own = m->factors[f].column;
        for (size_t i = 0; i < scenarios->table->column_count; i++) {
            const struct column *column = &scenarios->table->columns[i];
            if (column->role != COLUMN_ROLE_FACTOR || strcmp(column->name, own->name) != 0)
                continue;
            if (strcmp(column->unit ? column->unit : "1", own->unit ? own->unit : "1") != 0)
                return failure_input(failure, path, 0, 0,
                                     "the factor '%s' has the unit '%s' in the prediction; expected "
                                     "'%s', the unit in the runs",
                                     own->name, unit_label(column->unit), unit_label(own->unit));
            scenarios->factors[scenarios->factor_count++] = f;
        }
    }
    return scenarios->factor_count > 0
               ? 0
               : failure_input(failure, path, 0, 0,
                               "no parameter of the prediction is a factor of the experiment '%s'; "
                               "expected at least one, by which scenarios and settings are matched",
                               m->table->inputs[0].experiment);
}

/* The code of TEXT among LEVELS; UINT32_MAX: none. */
static uint32_t find_level(const struct table_category *levels, const char *text) {
    for (size_t i = 0; i < levels->level_count; i++)
        if (strcmp(levels->levels[i], text) == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

/* By the levels of the common factors. */
static int compare_scenarios(const void *a, const void *b, void *context) {
    const struct scenarios_of *scenarios = context;
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    for (size_t k = 0; k < scenarios->factor_count; k++) {
        const uint32_t *levels = scenarios->levels + k * scenarios->stride;
        if (levels[left] != levels[right])
            return levels[left] < levels[right] ? -1 : 1;
    }
    return 0;
}

/* Numbers the scenarios' levels as the runs do. A factor that is empty in all scenarios is dropped: the
 * method does not use it. */
static void number_scenarios(struct scenarios_of *scenarios) {
    const struct table *table = scenarios->table;
    size_t used = 0;
    for (size_t k = 0; k < scenarios->factor_count; k++) {
        const struct table_category *given = &table->categories[k];
        const struct table_category *own = &scenarios->measurements->table->categories[scenarios->factors[k]];
        if (given->level_count == 1 && given->levels[0][0] == '\0')
            continue;
        cleanup_free uint32_t *codes = xcalloc(given->level_count + 1, sizeof *codes);
        for (size_t i = 0; i < given->level_count; i++)
            codes[i] = find_level(own, given->levels[i]);
        for (size_t row = 0; row < table->rows; row++)
            scenarios->levels[used * scenarios->stride + row] = codes[given->codes[row]];
        scenarios->factors[used++] = scenarios->factors[k];
    }
    scenarios->factor_count = used;
}

/* Reads the prediction and sorts its scenarios by their levels. Refused: two scenarios with the same levels.
 */
static int read_scenarios(struct scenarios_of *scenarios, const char *path, struct failure *failure) {
    static const struct table_options options = {.member = ARCHIVE_RESULTS, .predictions = true};
    const struct measurements *m = scenarios->measurements;
    const struct column *result = NULL;
    int r = table_open(&path, 1, &options, &scenarios->table, failure);
    r = r < 0 ? r : choose_result_column(scenarios, path, &result, failure);
    r = r < 0 ? r : find_factors(scenarios, path, failure);
    if (r < 0)
        return r;
    cleanup_free const char **names = xcalloc(scenarios->factor_count, sizeof *names);
    for (size_t k = 0; k < scenarios->factor_count; k++)
        names[k] = m->factors[scenarios->factors[k]].column->name;
    const struct table_selection selection = {.numbers = &result->name,
                                              .number_count = 1,
                                              .categories = names,
                                              .category_count = scenarios->factor_count,
                                              .with_flagged = true};
    r = table_load(scenarios->table, &selection, failure);
    if (r < 0)
        return r;
    size_t rows = scenarios->table->rows;
    scenarios->stride = rows + 1;
    scenarios->levels = xcalloc(scenarios->factor_count * scenarios->stride, sizeof *scenarios->levels);
    scenarios->order = xcalloc(rows + 1, sizeof *scenarios->order);
    scenarios->is_used = xcalloc(rows + 1, sizeof *scenarios->is_used);
    number_scenarios(scenarios);
    for (size_t i = 0; i < rows; i++)
        scenarios->order[i] = i;
    qsort_r(scenarios->order, rows, sizeof *scenarios->order, compare_scenarios, scenarios);
    for (size_t i = 1; i < rows; i++)
        if (compare_scenarios(&scenarios->order[i - 1], &scenarios->order[i], scenarios) == 0)
            return failure_input(failure, path, 0, 0,
                                 "scenarios %zu and %zu match the same setting of the runs, because "
                                 "they differ only in parameters that are no factors of the runs; "
                                 "predict each setting once",
                                 scenarios->order[i - 1] + 1, scenarios->order[i] + 1);
    return 0;
}

/* ---- Errors */

/* The scenario with the levels of SETTING; -1: there is none. */
static int64_t find_scenario(struct scenarios_of *scenarios, size_t setting) {
    const struct groups *settings = &scenarios->measurements->settings;
    const size_t target = scenarios->stride - 1;
    for (size_t k = 0; k < scenarios->factor_count; k++)
        scenarios->levels[k * scenarios->stride + target] =
            settings->labels[setting * settings->label_count + scenarios->factors[k]];
    size_t low = 0, high = target;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare_scenarios(&scenarios->order[middle], &target, scenarios);
        if (order == 0)
            return (int64_t)scenarios->order[middle];
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return -1;
}

/* Makes a row for each ranked setting that has a scenario, and counts settings and scenarios without a
 * partner. */
static void match_settings(struct scenarios_of *scenarios, const struct ranking *ranking,
                           struct prediction_error *ret) {
    const double *values = scenarios->table->numbers[0].values;
    ret->rows = xcalloc(ranking->count + 1, sizeof *ret->rows);
    for (size_t i = 0; i < ranking->count; i++) {
        const struct ranked *item = &ranking->items[i];
        if (item->n == 0)
            continue;
        int64_t scenario = find_scenario(scenarios, item->setting);
        if (scenario < 0 || !isfinite(values[scenario])) {
            ret->not_predicted++;
            continue;
        }
        double predicted = values[scenario] * scenarios->multiply / scenarios->divide;
        scenarios->is_used[scenario] = true;
        ret->rows[ret->count++] = (struct prediction_error_row){item, (size_t)scenario, predicted,
                                                                (predicted - item->mean) / fabs(item->mean)};
    }
    for (size_t i = 0; i + 1 < scenarios->stride; i++)
        ret->not_measured += !scenarios->is_used[i];
}

/* Computes the mean and worst errors, the scatter of repetitions, and Spearman's rank correlation. */
static void summarize_errors(struct prediction_error *error) {
    cleanup_free double *values = xcalloc(2 * error->count + 1, sizeof *values);
    double squares = 0, repeated = 0, n = (double)error->count;
    for (size_t i = 0; i < error->count; i++) {
        const struct prediction_error_row *row = &error->rows[i];
        error->mean += row->error / n;
        error->mean_absolute += fabs(row->error) / n;
        error->worst = !error->worst || fabs(row->error) > fabs(error->worst->error) ? row : error->worst;
        values[i] = row->predicted;
        values[error->count + i] = row->measured->mean;
        if (row->measured->n < 2)
            continue;
        squares += pow(row->measured->deviation / row->measured->mean, 2);
        repeated++;
    }
    error->scatter = sqrt(squares / repeated);
    error->spearman =
        error->count < SPEARMAN_LEAST ? NAN : ranks_correlation(values, values + error->count, error->count);
}

/* Computes the regret of the setting that the prediction calls best, for each size. Rows are best first
 * within a size, and the largest size is first. */
static void find_regret(const struct measurements *m, struct prediction_error *error) {
    const struct groups *settings = &m->settings;
    error->regret = error->regret_worst = NAN;
    for (size_t first = 0, end; first < error->count; first = end) {
        const struct prediction_error_row *best = &error->rows[first], *chosen = best;
        const uint32_t *size = settings->labels + best->measured->setting * settings->label_count;
        for (end = first; end < error->count; end++) {
            const struct prediction_error_row *row = &error->rows[end];
            if (memcmp(size, settings->labels + row->measured->setting * settings->label_count,
                       m->size_count * sizeof *size) != 0)
                break;
            if (m->most ? row->predicted > chosen->predicted : row->predicted < chosen->predicted)
                chosen = row;
        }
        if (end - first < 2)
            continue;
        double regret = fabs(chosen->measured->mean - best->measured->mean) / fabs(best->measured->mean);
        error->regret_worst = fmax(regret, isnan(error->regret_worst) ? 0 : error->regret_worst);
        if (error->sizes++ > 0)
            continue;
        error->regret = regret;
        error->chosen = chosen;
    }
}

int prediction_error_find(const char *path, const struct measurements *measurements,
                          const struct ranking *ranking, struct prediction_error *ret,
                          struct failure *failure) {
    cleanup(scenarios_clear) struct scenarios_of scenarios = {
        .measurements = measurements, .multiply = 1, .divide = 1};
    *ret = (struct prediction_error){0};
    int r = read_scenarios(&scenarios, path, failure);
    if (r < 0)
        return r;
    match_settings(&scenarios, ranking, ret);
    if (ret->count == 0)
        return failure_input(failure, path, 0, 0,
                             "none of the predicted scenarios was measured: the %zu settings of the "
                             "runs and the %zu scenarios have different levels of their common "
                             "factors; predict the settings that were measured",
                             ret->not_predicted, ret->not_measured);
    summarize_errors(ret);
    find_regret(measurements, ret);
    return 0;
}

void prediction_error_clear(struct prediction_error *error) {
    free(error->rows);
    *error = (struct prediction_error){0};
}

/* ---- The report */

/* "NB=128 P=2": the factors that vary. The caller frees. */
static char *name_setting(const struct measurements *m, const struct prediction_error_row *row) {
    cleanup(text_clear) struct text name;
    text_init(&name, NAMES_BYTES_MAX);
    for (size_t f = 0; f < m->factor_count; f++)
        if (m->factors[f].varies)
            (void)text_printf(&name, "%s%s=%s", name.length ? " " : "", m->factors[f].column->name,
                              measurements_level(m, row->measured->setting, f));
    return xstrdup(name.length ? name.bytes : "the only setting");
}

/* Adds the table of settings: predicted, measured, error. */
static void report_rows(struct report_section *in, const struct measurements *m,
                        const struct prediction_error *error) {
    const struct column figures[] = {
        {.name = "predicted", .unit = m->unit, .digits = 5},
        {.name = "measured", .unit = m->unit, .digits = 5},
        {.name = "error", .unit = "%", .digits = 3},
        {.name = "deviation", .label = "standard deviation", .unit = "%", .digits = 2},
    };
    enum { FIGURES = sizeof figures / sizeof *figures };
    struct report_table *table = answer_settings_table(in, m, figures, FIGURES);
    for (size_t i = 0; i < error->count; i++) {
        const struct prediction_error_row *row = &error->rows[i];
        answer_setting_cells(table, m, row->measured->setting);
        report_cell(table, row->predicted), report_cell(table, row->measured->mean);
        report_cell(table, 100 * row->error);
        report_cell(table, 100 * row->measured->deviation / fabs(row->measured->mean));
    }
}

void prediction_error_report(struct report_section *in, const struct measurements *m,
                             const struct prediction_error *error, double most) {
    cleanup_free char *worst = name_setting(m, error->worst);
    cleanup_free char *sentence =
        xformat("the prediction of %s has a mean error of %+.3g %% (mean absolute "
                "error %.3g %%) over %zu setting%s; the largest error is %+.3g %% (%s)",
                m->response, 100 * error->mean, 100 * error->mean_absolute, error->count,
                error->count == 1 ? "" : "s", 100 * error->worst->error, worst);
    report_verdict(in, "verdict",
                   most == 0                      ? REPORT_UNKNOWN
                   : error->mean_absolute <= most ? REPORT_USABLE
                                                  : REPORT_NOT_USABLE,
                   sentence);
    report_number(in, "mean_error", NULL, 100 * error->mean, "%", 4, true);
    report_number(in, "mean_absolute_error", NULL, 100 * error->mean_absolute, "%", 4, true);
    report_number(in, "worst_error", NULL, 100 * error->worst->error, "%", 4, true);
    report_number(in, "spearman", "Spearman's correlation", error->spearman, "1", 3, isnan(error->spearman));
    if (error->chosen) {
        cleanup_free char *chosen = name_setting(m, error->chosen);
        report_number(in, "regret", "regret of the setting with the best prediction", 100 * error->regret,
                      "%", 3, false);
        report_text(in, "chosen", "setting with the best prediction", chosen, false);
    }
    report_number(in, "regret_worst", "largest regret over the sizes", 100 * error->regret_worst, "%", 3,
                  error->sizes < 2);
    report_number(in, "scatter", "standard deviation of the repetitions", 100 * error->scatter, "%", 3,
                  false);
    report_number(in, "not_predicted", "settings without a scenario", (double)error->not_predicted, "1", 0,
                  error->not_predicted == 0);
    report_number(in, "not_measured", "scenarios without a setting", (double)error->not_measured, "1", 0,
                  error->not_measured == 0);
    report_rows(in, m, error);
}
