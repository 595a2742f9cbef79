/* The mean of a model over its segments, as a small chart of characters. */
#ifndef ASSAY_COMMAND_LINE_MODEL_CURVE_H
#define ASSAY_COMMAND_LINE_MODEL_CURVE_H

#include "engine/foundation/failure.h"
#include "plugins/interface/predict.h"

#include <stdio.h>

/* Nothing where the model is over no column, or where its terms have other columns too. */
int model_curve_print(const struct predict_model *model, size_t group, FILE *stream, struct failure *failure);

#endif
