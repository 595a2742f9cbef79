#include "engine/model/score.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/extrapolation.h"
#include "engine/model/interval.h"
#include "engine/model/noise.h"
#include "engine/numerics/quantile.h"

#include <math.h>
#include <stdlib.h>

/* The probability outside a 95 % interval, on each side. */
static const double tail = 0.025;

/* ---- Predicting */

/* Predicts ROW into RET; leaves RET as it is if the model or the row gives no value. */
static void predict_row(const struct evaluator *evaluator, const struct model_group *group,
                        const struct score_rows *rows, size_t row, const double *inputs,
                        struct score_row *ret) {
    double weight = rows->weights ? rows->weights[row] : 1, offset;
    struct evaluator_value value;
    const struct model_part *part = evaluator_part(evaluator, group, inputs);
    if (!part || !evaluator_is_measured(evaluator, part) || !isfinite(rows->response[row]) || !(weight > 0) ||
        evaluator_predict(evaluator, group, inputs, &value) < 0)
        return;
    offset = rows->response[row] - value.mean;
    ret->mean = value.mean;
    ret->sigma = value.sigma / sqrt(weight);
    ret->log_density = noise_density(&part->noise, ret->sigma, offset);
    struct uncertainty uncertainty = uncertainty_find(evaluator, group, inputs, &value, weight);
    ret->share = interval_share(&uncertainty, offset);
    ret->extrapolated = extrapolation_is_outside(&value);
}

/* Predicts COUNT rows (ROWS_OF, or all) into RET by row; NaN where there is no prediction. */
void score_predict(const struct evaluator *evaluator, const struct model_group *groups,
                   const struct score_rows *rows, const uint32_t *rows_of, size_t count,
                   struct score_row *ret) {
    cleanup_free double *inputs = xcalloc(evaluator->input_count + 1, sizeof *inputs);
    for (size_t i = 0; i < count; i++) {
        size_t row = rows_of ? rows_of[i] : i;
        uint32_t group = rows->groups ? rows->groups[row] : 0;
        ret[row] = (struct score_row){.mean = NAN,
                                      .sigma = NAN,
                                      .log_density = NAN,
                                      .share = NAN,
                                      .without_group = group == UINT32_MAX};
        if (group == UINT32_MAX)
            continue;
        evaluator_gather(evaluator, rows->columns, row, inputs);
        predict_row(evaluator, &groups[group], rows, row, inputs, &ret[row]);
    }
}

/* ---- Sums over settings */

/* Sums over rows: denominators, then numerators. */
enum { WEIGHT, ONE, MEASURED, SQUARE, SCORE, SUM_COUNT };

/* A row, or all rows of a setting. */
struct item {
    uint32_t setting;
    double sums[SUM_COUNT];
};

static int compare_items(const void *a, const void *b) {
    const struct item *left = a, *right = b;
    return left->setting < right->setting ? -1 : left->setting > right->setting;
}

/* Sorts ITEMS and adds up the items of one setting. Returns the number of settings. */
static size_t join_settings(struct item *items, size_t count) {
    size_t settings = 0;
    qsort(items, count, sizeof *items, compare_items);
    for (size_t i = 0; i < count; i++) {
        struct item *last = settings ? &items[settings - 1] : NULL;
        if (!last || last->setting != items[i].setting) {
            items[settings++] = items[i];
            continue;
        }
        for (size_t k = 0; k < SUM_COUNT; k++)
            last->sums[k] += items[i].sums[k];
    }
    return settings;
}

/* One sum over another, NUMERATOR over DENOMINATOR, and its standard error over settings (Cochran, Sampling
 * Techniques, 6.4); NaN with fewer than two settings. */
static double ratio_of_sums(const struct item *items, size_t count, int numerator, int denominator,
                            double *ret_error) {
    double above = 0, below = 0, squares = 0, settings = (double)count;
    for (size_t i = 0; i < count; i++) {
        above += items[i].sums[numerator];
        below += items[i].sums[denominator];
    }
    double mean = above / below;
    for (size_t i = 0; i < count; i++) {
        double off = items[i].sums[numerator] - mean * items[i].sums[denominator];
        squares += off * off;
    }
    *ret_error = count > 1 ? sqrt(squares * settings / (settings - 1)) / fabs(below) : NAN;
    return isfinite(mean) ? mean : NAN;
}

/* Scores of the predictions of COUNT rows: errors, bias, log score, coverage, with standard errors over
 * settings. Rows without a prediction are counted and left out. */
struct score score_sum(const struct score_rows *rows, const struct score_row *predicted,
                       const uint32_t *rows_of, size_t count) {
    cleanup_free struct item *items = xcalloc(count + 1, sizeof *items);
    cleanup_free double *errors = xcalloc(count + 1, sizeof *errors);
    struct score score = {0};
    double weights = 0, bias = 0, noise = 0, inside = 0;
    size_t n = 0, error_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t row = rows_of ? rows_of[i] : i;
        const struct score_row *at = &predicted[row];
        double weight = rows->weights ? rows->weights[row] : 1, y = rows->response[row], e = y - at->mean;
        score.rows_without_group += at->without_group;
        score.rows_missing += isnan(at->mean) && !at->without_group;
        if (isnan(at->mean))
            continue;
        items[n++] = (struct item){rows->settings ? rows->settings[row] : (uint32_t)row,
                                   {weight, 1, weight * fabs(y), weight * e * e, at->log_density}};
        score.extrapolated += at->extrapolated;
        score.nonpositive += at->mean <= 0;
        weights += weight;
        bias += weight * e;
        noise += at->sigma * at->sigma;
        inside += isnan(at->share) ? NAN : at->share >= tail && at->share <= 1 - tail;
        if (y != 0)
            errors[error_count++] = fabs(e / y);
    }
    score.rows = n;
    score.settings = join_settings(items, n);
    double square_error, measured_error;
    score.rmse = sqrt(ratio_of_sums(items, score.settings, SQUARE, WEIGHT, &square_error));
    double measured = ratio_of_sums(items, score.settings, MEASURED, WEIGHT, &measured_error);
    /* By the delta method: d sqrt(x) = dx / (2 sqrt(x)). */
    score.rmse_error = score.rmse == 0 ? 0 : square_error / (2 * score.rmse);
    score.relative = measured > 0 ? score.rmse / measured : NAN;
    score.relative_error = measured > 0 ? score.rmse_error / measured : NAN;
    score.log_score = ratio_of_sums(items, score.settings, SCORE, ONE, &score.log_score_error);
    score.log_score_error = isnan(score.log_score) ? NAN : score.log_score_error;
    score.median_relative = quantile_median(errors, error_count);
    score.bias = bias / weights;
    score.noise = n ? sqrt(noise / (double)n) : NAN;
    score.coverage = n ? inside / (double)n : NAN;
    return score;
}

/* The mean difference in log score of predictions B less A, over the rows that have both, with its standard
 * error over settings. */
struct score_difference score_compare(const struct score_rows *rows, const struct score_row *a,
                                      const struct score_row *b, const uint32_t *rows_of, size_t count) {
    cleanup_free struct item *items = xcalloc(count + 1, sizeof *items);
    struct score_difference ret = {0};
    for (size_t i = 0; i < count; i++) {
        size_t row = rows_of ? rows_of[i] : i;
        if (!isnan(a[row].mean) && !isnan(b[row].mean))
            items[ret.rows++] = (struct item){rows->settings ? rows->settings[row] : (uint32_t)row,
                                              {[ONE] = 1, [SCORE] = b[row].log_density - a[row].log_density}};
    }
    ret.settings = join_settings(items, ret.rows);
    ret.log_score = ratio_of_sums(items, ret.settings, SCORE, ONE, &ret.log_score_error);
    return ret;
}
