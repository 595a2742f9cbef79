/* What `assay fit` prints of the residuals: how they lie, and the rows that are furthest off. */
#ifndef ASSAY_COMMAND_LINE_FIT_RESIDUALS_H
#define ASSAY_COMMAND_LINE_FIT_RESIDUALS_H

#include "engine/plugin/residuals.h"

#include <stdio.h>

void fit_residuals_print(FILE *stream, const struct fitting *fitting, const struct residuals *residuals);

#endif
