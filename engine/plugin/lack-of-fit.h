/*
 * Whether a model is true, as far as rows that repeat can tell (N. R. Draper and H. Smith, "Applied
 * Regression Analysis", 3rd edition, 1998, section 2.1). Rows of one group with equal factors are one
 * setting; how they scatter about their own mean is pure error, whatever the model. What the residuals have
 * besides is lack of fit: how far the settings' means are from what the model predicts there. Where the model
 * is true and single rows scatter alike and independently, the ratio of the two mean squares has the F
 * distribution. Pooled over the groups.
 */
#ifndef ASSAY_PLUGIN_LACK_OF_FIT_H
#define ASSAY_PLUGIN_LACK_OF_FIT_H

#include "engine/plugin/residuals.h"

struct lack_of_fit {
    size_t rows, settings; /* settings 0: nothing can be told, see below */
    double pure_squares, squares;
    double pure_freedom; /* rows - settings; 0: no row repeats */
    double freedom;      /* settings - estimates and breaks of the groups; 0 or less: no room for a test */
    double pure_error;   /* standard deviation, in the response's unit; NaN where no row repeats */
    double ratio;        /* F; NaN where there is no test */
    double log_p;        /* natural logarithm of its p; NaN likewise */
};

/* Of RESIDUALS of all rows of the table, also of those that the fit deleted as outliers. Nothing is told of
 * models that are neither linear nor piecewise, of fits with weights, and of tables that were not kept whole.
 */
int lack_of_fit_init(struct lack_of_fit *ret, const struct fitting *fitting, const struct fitted_model *model,
                     const struct residuals *residuals, struct failure *failure);

#endif
