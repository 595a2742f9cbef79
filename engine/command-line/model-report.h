/* What people see of a model: `assay fit` after it was made, `assay model show` of a file. */
#ifndef ASSAY_COMMAND_LINE_MODEL_REPORT_H
#define ASSAY_COMMAND_LINE_MODEL_REPORT_H

#include "engine/report/report.h"

#include <assay/model.h>

/* Whether the model can be used for prediction, in one sentence, and what hints at what is wrong. */
void model_report_verdict(struct report_section *section, const struct model *model);
/* Groups, coefficients, derived quantities, notes, groups that were skipped. */
void model_report_groups(struct report_section *section, const struct model *model);

#endif
