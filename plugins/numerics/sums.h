/*
 * What the best line over any run of points leaves unexplained, at once: running sums of w, wx, wy, wxx, wxy,
 * wyy (about the first point) in 32 digits, so that the difference of two of them has all of its digits even
 * where the run is a thousandth of a billionth of the whole.
 *
 *     rss(a, b) = Syy - Sxy^2 / Sxx over the points a <= i < b   (0 for one point; with within-size scatter)
 *
 * Three ways to say it: in 32 digits (sums_rss), and as bounds in 16 with a proven error, some ten times as
 * fast, which is enough to leave out what cannot be best.
 *
 * The property that all pruning rests on: more points never leave less, and two lines never more than one:
 *     rss(a, c) >= rss(a, b) + rss(b, c)    for a <= b <= c.
 */
#ifndef ASSAY_NUMERICS_SUMS_H
#define ASSAY_NUMERICS_SUMS_H

#include "plugins/numerics/double-double.h"
#include "plugins/numerics/points.h"

struct sums_moment {
    double w, x, y, xx, xy, yy;
};

/* The sums over the points before this one, or less those from this one on, which has the same differences.
 */
struct sums_row {
    struct sums_moment high, low;
};

enum { SUMS_MOMENTS = 12, SUMS_LANES = 4 };

struct sums {
    struct sums_row *rows;         /* count + 1 of them; owned */
    double *columns[SUMS_MOMENTS]; /* the same, moment by moment, and SUMS_LANES more; one piece of memory,
                                      owned */
    struct dd *within;             /* running sums of what scatters within sizes; NULL: nothing does; owned */
    size_t count;                  /* points */
    int response_exponent; /* rss is in the response's unit squared x 2^(-2 response_exponent), x weights x
                              2^-weight_exponent */
    int weight_exponent;
    bool fused;       /* the processor has a fused multiply-add, and four lanes */
    double tolerance; /* bounds look at 32 digits where 16 leave more than this open */
};

/* 0 or -ENOMEM. */
int sums_init(struct sums *sums, const struct point *points, size_t count);
void sums_clear(struct sums *sums);
/* Makes the columns of the rows. 0 or -ENOMEM. */
int sums_finish(struct sums *sums);

/* SCALED, an rss of these sums, in the units of the points. */
double sums_unscale(const struct sums *sums, double scaled);

struct dd sums_rss(const struct sums *sums, size_t a, size_t b);

struct sums_bounds {
    double lower, upper;
};

struct sums_bounds sums_bounds_exactly(const struct sums *sums, size_t a, size_t b);

/* The unit roundoff times what the rounding errors of the next function add up to, see there. */
#define SUMS_ERROR (40 * 0x1p-53)

/*
 * Bounds of rss(a, b). Each difference of two running sums is wrong by at most 2.5 u of itself (u = 2^-53):
 * that of the high parts is rounded once, and so are the addition of the low parts and their difference. With
 * A = w xx - x x, B = w xy - x y, D = w yy - y y and Cauchy-Schwarz, |xy| <= sqrt(xx yy), the errors of A, B,
 * D are below 11 u times w xx, w sqrt(xx yy), w yy; hence that of (D - B B / A) / w is below
 * 11 u (sqrt(yy) + sqrt(g))^2 <= 22 u (yy + g), g = xx D / A, while 11 u w xx / A is small.
 */
static inline struct sums_bounds sums_bounds(const struct sums *sums, size_t a, size_t b) {
    const struct sums_row *from = &sums->rows[a], *to = &sums->rows[b];
    double w = (to->high.w - from->high.w) + (to->low.w - from->low.w);
    double x = (to->high.x - from->high.x) + (to->low.x - from->low.x);
    double y = (to->high.y - from->high.y) + (to->low.y - from->low.y);
    double xx = (to->high.xx - from->high.xx) + (to->low.xx - from->low.xx);
    double xy = (to->high.xy - from->high.xy) + (to->low.xy - from->low.xy);
    double yy = (to->high.yy - from->high.yy) + (to->low.yy - from->low.yy);
    double sxx = w * xx - x * x, sxy = w * xy - x * y, syy = w * yy - y * y;
    double both = 1 / (sxx * w), inverse = both * w;
    double rss = (syy - sxy * sxy * inverse) * (both * sxx);
    double error = SUMS_ERROR * (yy + xx * syy * inverse);
    /* Written so that a NaN goes the exact way, too. */
    if (!(error <= sums->tolerance && sxx > 0x1p-30 * w * xx))
        return sums_bounds_exactly(sums, a, b);
    return (struct sums_bounds){rss - error, rss + error};
}

/* The same for many at once: of COUNT places from FIRST on, the bounds of what lies between each and FIXED,
 * which is below all of them or above. Arrays have room for SUMS_LANES - 1 more. */
void sums_bounds_many(const struct sums *sums, size_t fixed, size_t first, size_t count, double *lower,
                      double *upper);

/* The same, and whether PLUS + lower bound may be at or below MOST anywhere; where it is not, bounds need not
 * be looked at. PLUS, too, has room for SUMS_LANES - 1 more. */
bool sums_bounds_below(const struct sums *sums, size_t fixed, size_t first, size_t count, const double *plus,
                       double most, double *lower, double *upper);

#endif
