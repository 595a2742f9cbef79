/* What a sum of terms says of rows that have the values of the terms already: as evaluator_rows(), column by
 * column. Used by this room alone. */
#ifndef ASSAY_FIT_SUMS_H
#define ASSAY_FIT_SUMS_H

#include "engine/model/formula.h"

#include <assay/fit.h>

/* The mean and sigma of each of ROWS, whose terms are those of FORMULA, by GROUP of MODEL. False, and nothing
 * is done: the model is no such sum, or the group has several parts, or another term. */
bool sums_predict(const struct model *model, const struct model_group *group, const struct formula *formula,
                  const struct fit_rows *rows, double *mean, double *sigma);

#endif
