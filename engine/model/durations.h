/*
 * How long the units of a campaign take, by a model that was fitted before (`walltime: {model: FILE}`).
 */
#ifndef ASSAY_MODEL_DURATIONS_H
#define ASSAY_MODEL_DURATIONS_H

#include "engine/design/design.h"
#include "engine/model/extrapolation.h"

/* Sets RET_SECONDS of each row of DESIGN: the longest of what the groups of the model in FILE say, NaN where
 * none gives a positive time. FAILURE_INPUT where the model is not evaluated row by row, its response is no
 * time, or a column of it is none of the design. RET_WARNING: rows that are extrapolated, and that the
 * model is not usable for prediction, as clauses; "" where there is nothing to say. */
int durations_predict(const char *file, const struct design *design, double *ret_seconds,
                      char ret_warning[static EXTRAPOLATION_SENTENCE_SIZE], struct failure *failure);

#endif
