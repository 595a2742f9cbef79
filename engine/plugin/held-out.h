/*
 * What a model's errors on rows that it has not seen add up to: the root of their mean square, the same
 * relative to the response, and the mean logarithm of the density that its noise gives them (its log score;
 * the greater the better).
 */
#ifndef ASSAY_PLUGIN_HELD_OUT_H
#define ASSAY_PLUGIN_HELD_OUT_H

#include "engine/plugin/row-evaluation.h"

struct held_out {
    uint64_t rows;
    uint64_t missing;                    /* rows that the model says nothing of: their group was not fitted */
    uint64_t scored;                     /* rows with a density; 0 or all of them */
    double weights, squares, magnitudes; /* of the response */
    double fourths, scores, scores_squared; /* for the standard errors */
    uint32_t folds, last_fold; /* of a cross-validation: how many had rows, and 1 + the last of these */
};

void held_out_add(struct held_out *held_out, const struct row_value *value);
void held_out_join(struct held_out *held_out, const struct held_out *other);

/* Each NaN where it is not defined: without rows, with rows missing, without noise, not finite. Errors are in
 * the response's unit. */
double held_out_rmse(const struct held_out *held_out);
double held_out_relative(const struct held_out *held_out); /* rmse / mean |response| */
double held_out_score(const struct held_out *held_out);
/* Their standard errors, rows taken to be independent (Breiman and others 1984, chapter 3). */
double held_out_rmse_error(const struct held_out *held_out);
double held_out_score_error(const struct held_out *held_out);

#endif
