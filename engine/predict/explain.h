/* Which parts and terms make a predicted number, by running the plugin again with each a little greater. */
#ifndef ASSAY_PREDICT_EXPLAIN_H
#define ASSAY_PREDICT_EXPLAIN_H

#include "engine/predict/prediction.h"

/* Tables of the section: the shares of the parts, the effects of terms and parameters. */
struct explanation {
    struct report_table *parts, *effects;
};

/*
 * Adds to SECTION, for the only scenario of PREDICTION and its main column (the first with a goal, or else
 * the first number): the share of each column that is a part of it; and by how many per cent it changes when
 * a term of a model (in all groups), or a parameter that is no whole number, is 1 % greater: the logarithmic
 * derivative, by central differences. If the prediction is a sum of such terms, these are their shares.
 * FAILURE_INPUT: there are several scenarios, or the result is no number.
 */
int prediction_explain(struct prediction *prediction, struct report_section *section, struct explanation *ret,
                       struct failure *failure);

#endif
