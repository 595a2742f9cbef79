/* Whether a model can be used for prediction, in the sentence that every report of a model begins with. */
#ifndef ASSAY_MODEL_VERDICT_H
#define ASSAY_MODEL_VERDICT_H

#include "engine/report/report.h"

#include <assay/model.h>

/* One line: whether the model can be used for prediction, how well, over what, and HINT, what to do about it;
 * or NULL. */
void model_verdict_report(struct report_section *section, const struct model *model, const char *hint);
/* Of the time of a matrix product: how fast it is, from the coefficient of m*n*k. Otherwise nothing. */
void model_verdict_speed(struct report_section *section, const struct model *model);
/* The speed of one group in flop/s: 2mnk operations in the time that m*n*k adds; NaN: not known. */
double model_verdict_speed_of(const struct model *model, const struct model_group *group);

#endif
