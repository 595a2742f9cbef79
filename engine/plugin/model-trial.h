/* Several models on the same rows of a table, which none of them need have seen: their errors there. Rows
 * that one of them says nothing of (a value is missing, a group that it does not have) count for none. */
#ifndef ASSAY_PLUGIN_MODEL_TRIAL_H
#define ASSAY_PLUGIN_MODEL_TRIAL_H

#include "engine/plugin/held-out.h"
#include "engine/plugin/model-summary.h"
#include "engine/plugin/table.h"

enum { MODEL_TRIAL_MAX = 16 }; /* models */

struct model_trial {
    struct held_out errors[MODEL_TRIAL_MAX];
    uint64_t rows;     /* that count */
    uint64_t left_out; /* that do not */
    uint64_t outside;  /* of those that count, outside of what some model was fitted to */
};

/* Refused: models of different responses or units, or whose columns the table does not have; kinds that are
 * not evaluated row by row. */
int model_trial_run(const struct model *const *models, const struct model_summary *summaries, size_t count,
                    struct table *table, struct model_trial *ret, struct failure *failure);

#endif
