/* What a fit leaves unexplained: the rows that spoil it, residuals as a chart, and the rows furthest off. */
#ifndef ASSAY_COMMAND_LINE_FIT_RESIDUALS_H
#define ASSAY_COMMAND_LINE_FIT_RESIDUALS_H

#include "engine/fit/fit.h"
#include "engine/table/table.h"

enum { FIT_RESIDUALS_WORST = 5 };

struct fit_residuals {
    const struct fit *fit; /* with its predictions; borrowed, as the table */
    const struct table *table;
    size_t count;                      /* of rows whose residual is known */
    size_t worst[FIT_RESIDUALS_WORST]; /* rows, the furthest off first */
    size_t worst_count;
};

void fit_residuals_init(struct fit_residuals *residuals, const struct fit *fit, const struct table *table);

/* "12 of 3264 rows make 83 % of the squared error: --set outliers=3 leaves such rows out", where a few rows
 * do and the method HAS_OUTLIERS, a parameter of that name, not set; otherwise NULL. The caller frees. */
char *fit_residuals_hint(const struct fit_residuals *residuals, bool has_outliers);
/* The chart; with WORST also the rows that are furthest off. */
void fit_residuals_report(const struct fit_residuals *residuals, struct report_section *section, bool worst);
/* The same chart as SVG, with data and curves of a model over one column. */
int fit_residuals_plot(const struct fit_residuals *residuals, const char *path, struct failure *failure);

#endif
