/* The report of a fit: whether the model can be used, its estimates, and its residuals: outliers, a chart,
 * and the rows with the largest errors. */
#ifndef ASSAY_FIT_REPORT_H
#define ASSAY_FIT_REPORT_H

#include "engine/fit/fit.h"

/* Reports FIT of TABLE by LIBRARY with OPTIONS; moves fit->tables into the report. */
void fit_report(struct report_section *in, struct fit *fit, const struct library *library,
                const struct table *table, const struct fit_options *options, bool has_charts);
/* Adds data and curves of a model over one column, of the first groups. */
void fit_report_curves(struct report_section *in, const struct fit *fit, const struct table *table);
/* Writes PATH as SVG: the residuals, and data and curves of a model over one column. FAILURE_INPUT: FIT has
 * no predictions that could be compared. */
int fit_plot(const struct fit *fit, const struct library *library, const struct table *table,
             const char *path, struct failure *failure);

#endif
