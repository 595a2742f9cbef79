/* What `assay fit alternatives` and `assay fit compare` print of models that are judged on the same rows. */
#ifndef ASSAY_COMMAND_LINE_FIT_CHOICE_H
#define ASSAY_COMMAND_LINE_FIT_CHOICE_H

#include "engine/fit/choice.h"
#include "engine/report/report.h"

/* A line for each of COUNT contenders, which begins with LABEL_COUNT texts of LABELS (a line without them is
 * left out), and the verdict; where nothing was judged, only what the models are. UNIT is the response's. */
void fit_choice_report(struct report_section *in, const struct report_column *columns,
                       const char *const *labels, size_t label_count, const struct contender *contenders,
                       size_t count, const struct choice *choice, const char *unit);

#endif
