/*
 * The one way to score a model on rows: those that it was fitted to, rows left out of a fit, or measurements
 * of another day. First each row is predicted, by whatever model holds there; then the predictions are summed
 * up, of all rows or of some.
 *
 *     score_predict(evaluator, groups, rows, ...) as often as there are models or folds ; score_sum ...
 *
 * Standard errors take settings (rows with equal factors) for independent, not rows: what a model lacks at
 * one setting is missing in all of its repetitions. They are those of a ratio of sums over settings (W.
 * Cochran, Sampling Techniques, 3rd ed. 1977, 6.3).
 */
#ifndef ASSAY_MODEL_SCORE_H
#define ASSAY_MODEL_SCORE_H

#include "engine/model/evaluator.h"

struct score_rows {
    size_t count;
    const double *response;   /* in the model's unit; not finite: missing */
    const double *weights;    /* rows of weight 0 are missing; NULL: all are 1 */
    const uint32_t *settings; /* which setting each row is of; NULL: each row is one */
    const uint32_t
        *groups; /* the group of each row in the model; UINT32_MAX: none; NULL: the first for all */
    const struct evaluator_column *columns; /* one for each input of the evaluator */
};

/* A model's prediction of one row. Zeroed, or not predicted: mean is NaN. */
struct score_row {
    double mean, sigma; /* sigma of a measurement of the row's weight */
    double log_density; /* of the measurement, under the noise; NaN: no noise is known there */
    double share;       /* of measurements that would be at or below it, the mean's own error included */
    bool without_group, extrapolated;
};

/* Fills RET[row] of those COUNT rows that ROWS_OF lists, or of all (NULL). */
void score_predict(const struct evaluator *evaluator, const struct model_group *groups,
                   const struct score_rows *rows, const uint32_t *rows_of, size_t count,
                   struct score_row *ret);

/* Scores over some rows. NaN: not defined; without rows all of them, log score and coverage if a row has
 * no noise. */
struct score {
    uint64_t rows, settings;     /* that were scored */
    uint64_t rows_without_group; /* not scored: they are in no group of the model */
    uint64_t rows_missing;       /* not scored: a value is missing, or the model is not defined there */
    uint64_t extrapolated, nonpositive; /* of the rows that were scored; nonpositive: the mean is 0 or less */
    double rmse;                        /* sqrt(sum w e^2 / sum w), e = measured - mean */
    double relative;                    /* rmse / (sum w |measured| / sum w) */
    double median_relative;             /* the median of |e / measured| */
    double bias;                        /* sum w e / sum w */
    double noise;                       /* sqrt(mean sigma^2): what rmse would be if the model were true */
    double log_score;                   /* mean log density; the greater the better */
    double coverage;                    /* share of rows within their 95 % intervals */
    double rmse_error, relative_error, log_score_error; /* standard errors */
};

/* Of those COUNT rows that ROWS_OF lists, or of all (NULL). */
struct score score_sum(const struct score_rows *rows, const struct score_row *predicted,
                       const uint32_t *rows_of, size_t count);

/* How much worse A predicts than B, compared setting by setting; rows that one of them cannot predict are
 * left out. */
struct score_difference {
    uint64_t rows, settings;
    double log_score, log_score_error; /* of mean log densities, B's - A's */
};
struct score_difference score_compare(const struct score_rows *rows, const struct score_row *a,
                                      const struct score_row *b, const uint32_t *rows_of, size_t count);

#endif
