/* What people see of a model: `assay fit` after it was made, `assay model show` of a file. */
#ifndef ASSAY_COMMAND_LINE_MODEL_REPORT_H
#define ASSAY_COMMAND_LINE_MODEL_REPORT_H

#include "engine/report/report.h"

#include <assay/model.h>

/* One line: whether the model can be used for prediction, how well, over what, and HINT, what to do about it;
 * or NULL. */
void model_report_verdict(struct report_section *section, const struct model *model, const char *hint);
/* Of the time of a matrix product: how fast it is, from the coefficient of m*n*k. Otherwise nothing. */
void model_report_speed(struct report_section *section, const struct model *model);
/* A few groups in full; of many a table with a line each, and how they spread. Groups that were skipped. */
void model_report_groups(struct report_section *section, const struct model *model);
/* One group in full: coefficients, values, noise, domain, notes. */
void model_report_group(struct report_section *section, const struct model *model,
                        const struct model_group *group);

#endif
