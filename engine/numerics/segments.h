/*
 * The best segmented lines: where to break n points (x ascending) so that one weighted least squares line a
 * segment leaves the least sum of squares R, exactly, for the number of breaks that a criterion chooses or
 * for a given one.
 *
 *     struct segments_problem problem = {.points = n, .x = x, .y = y, .minimum = 3, .measurements =
 * (double)n, .penalty = 4 * log((double)n)}; segments_best(&problem, &ret); ... segments_clear(&ret);
 *
 * Relative errors are weights 1 / y^2. With m breaks the criterion is  N log(R + scatter) + penalty m.  For a
 * price b of a break, the least R + b m is found by dynamic programming over the last break (R. Killick, P.
 * Fearnhead, I. A. Eckley, J. Amer. Statist. Assoc. 107 (2012), 1590: PELT). The criterion is concave in (m,
 * R), so its least value is at a corner of the lower hull of the points (m, R(m)); corners are found by runs
 * with other prices (K. Haynes, I. A. Eckley, P. Fearnhead, J. Comput. Graph. Statist. 26 (2017), 134:
 * CROPS), except where two runs prove that no corner between them can be better. Equal costs: the segment
 * that begins earlier; equal criteria: fewer breaks.
 *
 * Beyond SEGMENTS_EXACT_MAX points breaks are searched between SEGMENTS_RUNS runs of neighbours, with the
 * exact sums of all points; then each break, its neighbours held, moves to its best place among all points.
 * That is near-linear, and no longer sure to be the optimum: a segment shorter than a run may be overlooked.
 *
 * Functions return 0, -ENOMEM or -EINVAL (points that do not ascend, values that are not finite, weights not
 * above 0, no room for the segments, an R beyond the range of a double).
 */
#ifndef ASSAY_NUMERICS_SEGMENTS_H
#define ASSAY_NUMERICS_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

enum { SEGMENTS_POINTS_MAX = 1 << 24, SEGMENTS_EXACT_MAX = 100000, SEGMENTS_RUNS = 8192 };

struct segments_problem {
    size_t points;
    const double *x, *y;
    const double *weights; /* NULL: all are 1 */
    size_t minimum;        /* points of a segment at least; one between two given breaks may have fewer */
    const size_t *given;   /* ascending: points at which a segment begins in any case; not 0 */
    size_t given_count;
    double measurements; /* N */
    double penalty;      /* of a break, above 0; INFINITY: only the given ones */
    double scatter;      /* what no line can explain, as rows of one x: added to R in the criterion */
};

struct segment {
    size_t begin, end; /* points begin to end - 1 */
    double intercept, slope;
    double rss; /* sum w (y - intercept - slope x)^2 */
    /* sum w; the mean of x; sum w (x - mean)^2: for a variance s^2 of weight 1 the variance of the slope is
     * s^2 / spread, that of the intercept s^2 (1 / weight + mean^2 / spread), their covariance
     * -s^2 mean / spread. */
    double weight, mean, spread;
};

struct segments {
    size_t count;
    struct segment *segments;
    double rss;  /* R: the sum of theirs */
    size_t runs; /* of the dynamic programme */
    size_t
        places; /* runs of neighbours between which breaks were searched; 0: any place, the exact optimum */
};

/* The least value of the criterion. */
int segments_best(const struct segments_problem *problem, struct segments *ret);

/* The least R with COUNT segments; no break may be given. Takes time that is quadratic in the points where
 * that number is no corner of the hull, and 8 (COUNT + 1) bytes a point. */
int segments_exactly(const struct segments_problem *problem, size_t count, struct segments *ret);

/* How many segments there can be. */
size_t segments_most(const struct segments_problem *problem);

void segments_clear(struct segments *segments);

/* The line of points BEGIN to END - 1, at least one of them; a single point has slope 0. The points may be in
 * any order. Sums are long doubles: about 15 digits. */
void segments_line(const struct segments_problem *problem, size_t begin, size_t end, struct segment *ret);

/* What one line leaves of the first i + 1 of points BEGIN to END - 1, in RET[i], for all i; where BACKWARDS,
 * of the last i + 1 of them. */
void segments_scan(const struct segments_problem *problem, size_t begin, size_t end, bool backwards,
                   double *ret);

#endif
