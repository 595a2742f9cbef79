/*
 * Where to break: exact optima over all ways to cut a run of points into segments of at least `minimum`
 * points, each with its own best line.
 *
 *     the least  rss + penalty x breaks .
 *
 * By dynamic programming over the place of the last break (B. Jackson et al., IEEE Signal Processing Letters
 * 12 (2005), 105). What cannot be best is left out by inequalities that always hold, so that the optimum is
 * exact; partition.c has them. frontier.h finds the penalty, or an exact number of segments.
 *
 * Of two ways to the same point that are equally good to 32 digits, the one whose last segment begins earlier
 * is taken.
 */
#ifndef ASSAY_NUMERICS_PARTITION_H
#define ASSAY_NUMERICS_PARTITION_H

#include "plugins/numerics/sums.h"

/* A run of points that is cut on its own. */
struct partition_run {
    const struct sums *sums;
    size_t first, end; /* points first <= i < end */
    size_t minimum;    /* points a segment, at least 1; the run has at least as many */
};

struct partition {
    size_t *breaks; /* where segments but the first begin, ascending; owned */
    size_t count;   /* of breaks */
    struct dd rss;  /* scaled, as sums_rss */
};

/* The least scaled rss + penalty x breaks. VALUES: NULL, or end - first + 1 places for the least cost of the
 * points before each (less one penalty; INFINITY where there are too few). 0 or -ENOMEM. */
int partition_penalised(const struct partition_run *run, double penalty, double *values,
                        struct partition *ret);

void partition_clear(struct partition *partition);

#endif
