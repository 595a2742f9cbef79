/*
 * Lines that meet at the breaks: a broken line through knots, of which the first and the last stand at the
 * first and the last size and the others at sizes that were measured.
 *
 *     joined_search   the knots of the least rss, for 1, 2, ... segments
 *     joined_fit      the best broken line through given knots
 *
 * The search is exact over all places of knots. The least cost of the points up to a knot, as a function of
 * the line's height there, is the least of parabolas, one for each way to get there; only those that are
 * least at some height are kept (P. Fearnhead, R. Maidstone, A. Letchford, J. Comput. Graph. Statist. 28
 * (2019), 265: CPOP; here for every number of segments). In doubles, on what one line leaves of the response.
 */
#ifndef ASSAY_FIT_PIECEWISE_JOINED_H
#define ASSAY_FIT_PIECEWISE_JOINED_H

#include "plugins/fit-piecewise/line.h"

enum { JOINED_POINTS_MAX = 1024, JOINED_SEGMENTS_MAX = 64 };

struct joined_search;

/* COUNT points, 2 to JOINED_POINTS_MAX; segments have MINIMUM at least, a knot's own point counting to its
 * left. 0 or -ENOMEM. */
int joined_new(const struct point *points, size_t count, size_t minimum, struct joined_search **ret);
void joined_free(struct joined_search *search);

/* One segment more than at the last call (1 at the first). RET_RSS: of the best broken line, INFINITY where
 * there is no room; RET_KNOTS: the points at which segments but the first begin. 0 or -ENOMEM. */
int joined_next(struct joined_search *search, double *ret_rss, size_t *ret_knots);

/* The best broken line with its inner knots at KNOTS (ascending, within the points), KNOT_COUNT of them, and
 * what it leaves. LINES: KNOT_COUNT + 1 of them; sigma, degrees of freedom and covariances are those of the
 * whole broken line. ROWS: how many rows count. 1, 0 when there are too few points about a knot, or -ENOMEM.
 */
int joined_fit(const struct point *points, size_t count, const double *knots, size_t knot_count, double rows,
               struct line *lines, double *ret_rss);

#endif
