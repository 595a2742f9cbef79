/* Whether a model can be used for prediction, in the sentence that every report of a model begins with. */
#ifndef ASSAY_MODEL_VERDICT_H
#define ASSAY_MODEL_VERDICT_H

#include "engine/report/report.h"

#include <assay/model.h>

/* NOT_USABLE: in some group the cross-validated error is above 10 % of the mean response or 5 % in the
 * median, or a time of 0 or less is predicted for a row of its own. UNKNOWN: no group was cross-validated, as
 * in a model that was written by hand or generated, or the model is a mixture, whose mean's error says
 * nothing. */
enum report_grade model_grade(const struct model *model);
/* The grade and why, from the model alone: "not usable for prediction: cross-validated error 69 % ...",
 * "usable: ...", "fitted to 9 rows; how well it predicts is not known". It ends with the groups that SimGrid
 * cannot use, those whose value refused_by_simgrid is above 0. The caller frees. */
char *model_verdict(const struct model *model);
/* "'NAME' is not usable for prediction: ...", for whatever uses the model to say once; NULL for another
 * grade. The caller frees. */
char *model_verdict_warning(const struct model *model, const char *name);
/* The verdict in one line, with HINT, what to do about it, or NULL; the grade, and the figures behind them.
 */
void model_verdict_report(struct report_section *section, const struct model *model, const char *hint);
/* Of the time of a matrix product: how fast it is, from the coefficient of m*n*k. Otherwise nothing. */
void model_verdict_speed(struct report_section *section, const struct model *model);
/* The speed of one group in flop/s: 2mnk operations in the time that m*n*k adds; NaN: not known. */
double model_verdict_speed_of(const struct model *model, const struct model_group *group);

#endif
