/*
 * The runs of a series as a chart for a page (report.h): each run, the mean of the last five, and the
 * interval in which the tests of HISTORY_CHEW (non-regression.h) expect that mean; with the changes and the
 * run since which the series is changed as marks.
 */
#ifndef ASSAY_HISTORY_PLOTS_H
#define ASSAY_HISTORY_PLOTS_H

#include "engine/history/check.h"

enum {
    HISTORY_CHARTS_MAX = 2000,
    HISTORY_CHARTS_DRAWN = 100, /* of these without scripts */
};

/* Adds the chart of SERIES, number CHARTS of the page, to IN. SINCE: from 1, the run since which the series
 * is changed; 0: it is not. P_MOST: of a mean outside of its interval, where nothing has changed. */
int history_plot(struct report_section *in, const struct history_series *series, size_t since, double p_most,
                 size_t charts);

#endif
