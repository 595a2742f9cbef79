/* What a model says of the rows that a fitting kept: a fitted_model bound to their columns. */
#ifndef ASSAY_PLUGIN_ROW_EVALUATION_H
#define ASSAY_PLUGIN_ROW_EVALUATION_H

#include "engine/plugin/fitted-model.h"
#include "engine/plugin/fitting.h"

struct row_evaluation;

struct row_value {
    double observed, weight; /* 1 without weights */
    double mean;
    double sigma;                     /* of one measurement of this weight; NaN: no noise is told */
    const struct plugin_noise *noise; /* or NULL */
    const struct predict_part *part;  /* of the model, that holds there */
};

/* GROUPS: the group of each kept row as MODEL was fitted by; NULL: those of the fitting. FITTING, MODEL and
 * GROUPS are borrowed. A failure where the model's kind is not evaluated row by row. */
int row_evaluation_new(const struct fitting *fitting, const struct fitted_model *model,
                       const uint32_t *groups, struct row_evaluation **ret, struct failure *failure);
void row_evaluation_free(struct row_evaluation *evaluation);
void row_evaluation_cleanup(struct row_evaluation **evaluation); /* for cleanup() */

/* Of the I-th kept row; false where there is nothing to compare: a value is missing, the weight is 0, or its
 * group was not fitted. */
bool row_evaluation_at(const struct row_evaluation *evaluation, size_t i, struct row_value *ret);

#endif
