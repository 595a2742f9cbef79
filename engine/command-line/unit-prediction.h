/* How long the units of a campaign will take, by a model that was fitted before (`walltime: {model: FILE}`).
 */
#ifndef ASSAY_COMMAND_LINE_UNIT_PREDICTION_H
#define ASSAY_COMMAND_LINE_UNIT_PREDICTION_H

#include "engine/foundation/failure.h"
#include "engine/run/campaign/plan.h"

/* For struct run_request: sets the seconds of a unit of each row, NAN where the model gives no positive time.
 * A model of several groups says the longest of what its groups say. The model must be of a kind that is
 * evaluated row by row, its response a time, and its columns those of the design; anything else is refused as
 * bad input. One warning on standard error says that rows are outside of what it was fitted to. */
int unit_prediction_make(void *context, const struct plan *plan, double *ret_seconds,
                         struct failure *failure);

#endif
