/* What people see of a model: `assay fit` after it was made, `assay model show` of a file. */
#ifndef ASSAY_MODEL_REPORT_H
#define ASSAY_MODEL_REPORT_H

#include "engine/report/report.h"

#include <assay/model.h>

/* All that is in a model file; with GROUP, of one of its groups. */
void model_report(struct report_section *section, const struct model *model, const struct model_group *group);
/* A few groups in full; of many a table with a line each, and how they spread. Groups that were skipped. */
void model_report_groups(struct report_section *section, const struct model *model, bool has_charts);
/* One group in full: coefficients, values, noise, domain, notes; with HAS_CHART the curve of its segments. */
void model_report_group(struct report_section *section, const struct model *model,
                        const struct model_group *group, bool has_chart);

#endif
