/* The measurements of runs as charts and tables of a page. */
#ifndef ASSAY_ANALYSIS_PLOTS_H
#define ASSAY_ANALYSIS_PLOTS_H

#include "archive-format/run.h"
#include "engine/analysis/measurements.h"
#include "engine/report/report.h"

enum { PLOTS_POINTS_MAX = 20000 /* of a chart; with more measurements, their extremes are drawn */ };

/* Adds to IN the sections
 *
 *     Response by factor      each factor that varies: the measurements, and their mean a level
 *     Design coverage         which levels were measured how often, and pairs of factors that are numbers
 *     Order of measurement    the response as it was measured, one after the other (seed 002, chapter 8); and
 *                             relative to the mean of its setting, where settings were measured repeatedly
 *     Nodes                   the same node by node, the worst first
 *
 * A measurement relative to its setting is 100 % (value / mean of the setting - 1). Where less is better its
 * sign is turned, so that what is worse is below 0. RUNS: of the inputs, which name slow nodes. */
void plots_report(struct report_section *in, const struct measurements *measurements,
                  const struct archive_run *const *runs, size_t run_count);

#endif
