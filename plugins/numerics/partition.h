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

#include <stdint.h>

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

/* What is best for the points before each place: end - first + 1 of them. */
struct partition_places {
    struct dd *values; /* the least cost, less one penalty; INFINITY where there are too few points. Owned */
    uint32_t *from;    /* where the last segment begins; UINT32_MAX where there are too few points */
    uint32_t *breaks;  /* how many; UINT32_MAX where there are too few points */
};

/* 0 or -ENOMEM; to be cleared in any case. */
int partition_places_init(struct partition_places *places, size_t count);
void partition_places_clear(struct partition_places *places);
/* The same from place FIRST on; borrowed. */
struct partition_places partition_places_from(const struct partition_places *places, size_t first);

/* The least scaled rss + penalty x breaks. BELOW and ABOVE: what was found for a lower and for a higher
 * penalty, or NULL: the least cost is concave in the penalty and its slope is the number of breaks, so what
 * is best for both with the same number is best between them. PLACES: filled in. 0 or -ENOMEM. */
int partition_penalised(const struct partition_run *run, double penalty, const struct partition_places *below,
                        const struct partition_places *above, struct partition_places *places,
                        struct partition *ret);

/* No way to cut the run, into however many segments, leaves less than this; 0 where that is not cheap to
 * tell.
 */
double partition_floor(const struct partition_run *run);

void partition_clear(struct partition *partition);

#endif
