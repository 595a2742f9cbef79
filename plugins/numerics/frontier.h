/*
 * How many segments: the least rss R(m) of every number m of breaks that matters, and the choice among them.
 *
 * A criterion is G(m) = n log R(m) + c m. Its least value lies on the lower convex hull of the points (m,
 * R(m)): the curve of one G is convex, so its tangent at the best point has every other point above it. So
 * the best m is also that of R + penalty x m for some penalty (at the best, c R / n), and the corners of the
 * hull are found one penalty after the other, as in K. Haynes, I. A. Eckley, P. Fearnhead, J. Comput. Graph.
 * Statist. 26 (2017), 134 (CROPS). Each such run also proves that R(m) is nowhere below a line; the search
 * ends when these lines prove that no m is better, not before.
 *
 * Exactly so many segments, where that is no corner: the lines give a bound for the cost of all that passes
 * through a given segment; only the segments whose bound is below the cost of a known way take part in a
 * dynamic programming over their number. Exact as well.
 *
 * Fixed breaks part the points into zones; nothing crosses their borders, which count as breaks.
 */
#ifndef ASSAY_NUMERICS_FRONTIER_H
#define ASSAY_NUMERICS_FRONTIER_H

#include "plugins/numerics/partition.h"

struct frontier;

/* POINTS: COUNT in ascending order, kept by the caller. BORDERS: where zones but the first begin. A segment
 * has at least MINIMUM points; a zone that has fewer is one segment. CUT: whether zones may be cut further. 0
 * or -ENOMEM. */
int frontier_new(const struct point *points, size_t count, const size_t *borders, size_t border_count,
                 size_t minimum, bool cut, struct frontier **ret);
void frontier_free(struct frontier *frontier);

/* The greatest number of breaks that is possible, borders included. */
size_t frontier_most(const struct frontier *frontier);

/* The number of breaks, at most MOST, for which N log R + COST x breaks is least, of equals the fewest; RET
 * is borrowed, valid until the next call. 0, -ENOMEM or as frontier_exactly. */
int frontier_choose(struct frontier *frontier, double n, double cost, size_t most,
                    const struct partition **ret);

/* The same where the search begins, after a few runs: likely the best, but that is not proven. */
int frontier_guess(struct frontier *frontier, double n, double cost, size_t most,
                   const struct partition **ret);

/* The least rss of exactly BREAKS breaks, borders included, at most frontier_most. -ENOMEM, or -E2BIG when
 * more than ZONES_ARCS_MAX segments (counted.h) would have to be looked at. */
int frontier_exactly(struct frontier *frontier, size_t breaks, const struct partition **ret);

/* The rss of breaks in the points' own units. */
double frontier_rss(const struct frontier *frontier, const struct partition *partition);

/* No partition with so many breaks, at most frontier_most, leaves less than this; in the points' own units.
 */
double frontier_bound(const struct frontier *frontier, size_t breaks);

/* The rss of one line over the points a <= i < b, in the points' own units. */
double frontier_segment(const struct frontier *frontier, size_t a, size_t b);

/* Whether two lines, over a <= i < AT and AT <= i < b, leave more than MOST; in the points' own units. */
bool frontier_leaves_more(const struct frontier *frontier, size_t a, size_t at, size_t b, double most);

#endif
