/*
 * The plot of a model that has distances in place of residuals, as SVG: a panel for each kind, distances
 * against the quantiles that they would have if all were normal. What lies above the line is further out.
 */
#ifndef ASSAY_PLUGIN_DISTANCE_PLOT_H
#define ASSAY_PLUGIN_DISTANCE_PLOT_H

#include "engine/plugin/fitting.h"

enum { DISTANCE_PLOT_BYTES_MAX = 8 << 20 };

/* As the file PATH, which has the whole plot or what it had before. After fitting_finish; refused where there
 * are no distances. */
int distance_plot_write(const char *path, const struct fitting *fitting, struct failure *failure);

#endif
