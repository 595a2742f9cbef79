/* What the sensors of a run's nodes saw, over the time of the run, as charts of a page. */
#ifndef ASSAY_ANALYSIS_SERIES_H
#define ASSAY_ANALYSIS_SERIES_H

#include "archive-format/reader.h"
#include "engine/report/report.h"

enum {
    SERIES_POINTS_MAX = 1700000,  /* of all columns of all nodes; with more samples, they are thinned */
    SERIES_OVERVIEW_MAX = 200000, /* of the charts of all nodes */
    SERIES_EVENTS_MAX = 2000,     /* units that a chart marks; of more, every second, third ... */
    SERIES_UNITS_MAX = 50000,     /* units after these are not marked */
};

/* Adds to IN a chart each of frequency, temperature, power, foreign load and the like with a line a node:
 * the mean over the node's CPUs, the hottest sensor, the sum of its zones (`quantities` in series.c); then a
 * folded section a node with all its columns. Phases are shaded, the starts of units are marked. Samples that
 * are too many are thinned by their least and greatest values (sample-fold.h), which is said. Where a probe's
 * columns changed during the run, columns that its first file does not have count in the line of the node
 * only. Nothing where the run has no samples. */
int series_report(struct report_section *in, struct archive_reader *archive, struct failure *failure);

#endif
