/*
 * A model against measurements that it was not fitted to: archives and CSV files that have its columns, in
 * its units or in such as can be converted.
 */
#ifndef ASSAY_PLUGIN_MODEL_COMPARISON_H
#define ASSAY_PLUGIN_MODEL_COMPARISON_H

#include "engine/foundation/failure.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/model.h"
#include "engine/plugin/table.h"

#include <stdint.h>

/* Of the rows of one group, or of all. Means are over ROWS; where there are none, NaN. */
struct comparison {
    uint64_t rows;
    double error;                  /* root of the mean squared error, in the response's unit */
    double relative;               /* that over the mean of the absolute response */
    double bias;                   /* mean of measured - predicted */
    double noise;                  /* root of the mean variance that the model tells of; NaN: it tells none */
    double log_score;              /* mean log density under the noise; NaN as above */
    double coverage;               /* share of rows within their 95% interval; NaN as above */
    struct evaluation_tally tally; /* of rows beyond what was measured for the fit */
};

struct model_comparison {
    struct comparison *groups; /* owned; those of the model, in its order */
    struct comparison all;
    uint64_t incomplete; /* rows left out: a value is missing, or the weight is 0 */
    uint64_t strangers;  /* rows left out: they are in no group of the model */
};

/* A model of a kind that is not evaluated row by row is refused by name, and inputs that lack a column. */
int model_compare(const struct model *model, struct table *table, struct model_comparison *ret,
                  struct failure *failure);
void model_comparison_clear(struct model_comparison *comparison); /* fine on zeroed memory */

#endif
