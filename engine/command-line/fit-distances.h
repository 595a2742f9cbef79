/* What a fit prints where there are distances in place of residuals (plugins/interface/fit.h). */
#ifndef ASSAY_COMMAND_LINE_FIT_DISTANCES_H
#define ASSAY_COMMAND_LINE_FIT_DISTANCES_H

#include "engine/plugin/fitting.h"

#include <stdio.h>

/* Of each kind how many are further than chi-squared says, the chart, and those that are furthest; who is of
 * a part that is called slow. */
void fit_distances_print(FILE *stream, const struct fitting *fitting);

#endif
