/*
 * Partitions of points that are parted into zones, which nothing crosses; and the best of exactly so many
 * segments.
 */
#ifndef ASSAY_NUMERICS_COUNTED_H
#define ASSAY_NUMERICS_COUNTED_H

#include "plugins/numerics/partition.h"

enum { ZONES_ARCS_MAX = 1 << 24 };

struct zones {
    size_t *borders; /* count + 1: zone z is the points borders[z] <= i < borders[z + 1] */
    size_t count;
    size_t minimum; /* points a segment */
    bool cut;       /* false: every zone is one segment */
};

/* Points that a segment of zone Z has at least: all, when there are fewer than the minimum or it is not cut.
 */
size_t zones_minimum(const struct zones *zones, size_t z);

/* What is found for the places of all zones, one zone after the other: so many. */
size_t zones_places(const struct zones *zones);

/* The least rss + PENALTY x breaks over all zones; their borders are among the breaks. BELOW, ABOVE and
 * PLACES as partition_penalised has them, of all zones. 0 or -ENOMEM. */
int zones_penalised(const struct sums *sums, const struct zones *zones, double penalty,
                    const struct partition_places *below, const struct partition_places *above,
                    struct partition_places *places, struct partition *ret);

/* No partition leaves less than this. */
double zones_floor(const struct sums *sums, const struct zones *zones);

/*
 * The least rss of exactly BREAKS breaks. FEWER and MORE are partitions with fewer and more breaks, both of
 * which have the least rss + PENALTY x breaks, for which PLACES were found; MORE is NULL, and the penalty 0,
 * where there is none with more.
 *
 * Let F(t) and B(t) be the least cost of the points before t and from t on. What has a segment from t to s
 * among its segments costs F(t) + P + C(t, s) + P + B(s) or more. A known partition of BREAKS breaks costs so
 * and so much: the segments whose bound is above that are in no better one. The rest is few, and dynamic
 * programming over their number finds the best exactly. 0, -ENOMEM, or -E2BIG when more than ZONES_ARCS_MAX
 * segments are left, or the rss of none of them is a number.
 */
int zones_counted(const struct sums *sums, const struct zones *zones, double penalty,
                  const struct partition_places *places, const struct partition *fewer,
                  const struct partition *more, size_t breaks, struct partition *ret);

#endif
