/* What `assay fit` prints of the residuals: how they lie, what rows that repeat say of the model, whether it
 * predicts times that cannot be, and the rows that are furthest off. */
#ifndef ASSAY_COMMAND_LINE_FIT_RESIDUALS_H
#define ASSAY_COMMAND_LINE_FIT_RESIDUALS_H

#include "engine/plugin/lack-of-fit.h"
#include "engine/plugin/residuals.h"

#include <stdio.h>

void fit_residuals_print(FILE *stream, const struct fitting *fitting, const struct residuals *residuals,
                         const struct lack_of_fit *lack);

/* Where the ROW-th row of the table stands: "calls.csv line 17". */
void fit_residuals_print_place(FILE *stream, const struct fitting *fitting, uint64_t row);

#endif
