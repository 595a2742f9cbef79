/*
 * The plot of a fit, for reports, as one SVG: residuals against predicted values, their quantiles against
 * those of a normal, and of a model over one column the data with the fitted curve and its breaks.
 */
#ifndef ASSAY_PLUGIN_RESIDUAL_PLOT_H
#define ASSAY_PLUGIN_RESIDUAL_PLOT_H

#include "engine/foundation/text.h"
#include "engine/plugin/residuals.h"

enum { RESIDUAL_PLOT_BYTES_MAX = 8 << 20 };

/* Appends the element <svg>, which stands by itself. */
int residual_plot_append(struct text *text, const struct fitting *fitting, const struct fitted_model *model,
                         const struct residuals *residuals, struct failure *failure);
/* As the file PATH, which has the whole plot or what it had before. */
int residual_plot_write(const char *path, const struct fitting *fitting, const struct fitted_model *model,
                        const struct residuals *residuals, struct failure *failure);

#endif
