#include "engine/numerics/dip.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <math.h>
#include <stdlib.h>

/* The corners of the greatest convex minorant and of the least concave majorant of the distribution function
 * between two points of the sample. Distances are counts of values. */
struct hulls {
    const double *x;
    size_t *below, *above;       /* by point: the corner before it, and the corner after it */
    size_t *minorant, *majorant; /* corners from the high end down, and from the low end up */
    size_t minorant_count, majorant_count;
    size_t minorant_at, majorant_at; /* where the two are farthest apart */
};

/* Finds, for each point, the corner before it on the minorant and after it on the majorant. */
static void find_corners(const double *x, size_t count, struct hulls *hulls) {
    size_t *below = hulls->below, *above = hulls->above, last = count - 1;
    below[0] = 0;
    for (size_t i = 1; i < count; i++)
        for (below[i] = i - 1;;) {
            size_t a = below[i], b = below[a];
            if (a == 0 || (x[i] - x[a]) * (double)(a - b) < (x[a] - x[b]) * (double)(i - a))
                break;
            below[i] = b;
        }
    above[last] = last;
    for (size_t i = last; i-- > 0;)
        for (above[i] = i + 1;;) {
            size_t a = above[i], b = above[a];
            if (a == last || (x[a] - x[i]) * (double)(b - a) < (x[b] - x[a]) * (double)(a - i))
                break;
            above[i] = b;
        }
}

/* The greatest distance of majorant and minorant between LOW and HIGH, and the corners where it is. */
static double find_distance(struct hulls *hulls, size_t low, size_t high) {
    size_t *g = hulls->minorant, *l = hulls->majorant, gs = 1, ls = 1;
    const double *x = hulls->x;
    for (g[0] = high; g[gs - 1] > low; gs++)
        g[gs] = hulls->below[g[gs - 1]];
    for (l[0] = low; l[ls - 1] < high; ls++)
        l[ls] = hulls->above[l[ls - 1]];
    hulls->minorant_count = gs, hulls->majorant_count = ls;
    hulls->minorant_at = gs - 1, hulls->majorant_at = ls - 1;
    if (gs == 2 && ls == 2)
        return 1;
    double most = 0;
    size_t gi = gs - 2, li = 1;
    do {
        double distance;
        size_t at_g = gi, at_l = li;
        if (g[gi] > l[li]) {
            size_t from = g[gi + 1];
            distance = (double)(l[li] - from + 1) -
                       (x[l[li]] - x[from]) * (double)(g[gi] - from) / (x[g[gi]] - x[from]);
            at_g = gi + 1;
            li++;
        } else {
            size_t from = l[li - 1];
            distance = (x[g[gi]] - x[from]) * (double)(l[li] - from) / (x[l[li]] - x[from]) -
                       ((double)g[gi] - (double)from - 1);
            gi = gi > 0 ? gi - 1 : 0;
        }
        if (distance >= most) {
            most = distance;
            hulls->minorant_at = at_g;
            hulls->majorant_at = at_l;
        }
        li = li < ls ? li : ls - 1;
    } while (g[gi] != l[li]);
    return most;
}

/* How far the distribution function is above (SIGN 1) or below (-1) the line from point A to B, at most. */
static double distance_to_line(const double *x, size_t a, size_t b, double sign) {
    double most = 1, slope = b > a + 1 && x[b] != x[a] ? (double)(b - a) / (x[b] - x[a]) : 0;
    for (size_t i = a; slope > 0 && i <= b; i++)
        most = fmax(most, 1 + sign * ((double)(i - a) - (x[i] - x[a]) * slope));
    return most;
}

/* Hartigan's dip of a sorted sample: the distance of its distribution function from the nearest unimodal one
 * (J. Hartigan, P. Hartigan 1985). */
double dip(const double *sorted, size_t count) {
    if (count < 4 || sorted[0] == sorted[count - 1])
        return count ? 0.5 / (double)count : 0;
    cleanup_free size_t *space = xcalloc(4 * (count + 1), sizeof *space);
    struct hulls hulls = {.x = sorted,
                          .below = space,
                          .above = space + count + 1,
                          .minorant = space + 2 * (count + 1),
                          .majorant = space + 3 * (count + 1)};
    size_t low = 0, high = count - 1;
    double most = 1;
    find_corners(sorted, count, &hulls);
    while (find_distance(&hulls, low, high) >= most) {
        const size_t *g = hulls.minorant, *l = hulls.majorant;
        for (size_t i = hulls.minorant_at; i + 1 < hulls.minorant_count; i++)
            most = fmax(most, distance_to_line(sorted, g[i + 1], g[i], 1));
        for (size_t i = hulls.majorant_at; i + 1 < hulls.majorant_count; i++)
            most = fmax(most, distance_to_line(sorted, l[i], l[i + 1], -1));
        if (low == g[hulls.minorant_at] && high == l[hulls.majorant_at])
            break;
        low = g[hulls.minorant_at];
        high = l[hulls.majorant_at];
    }
    return most / (2 * (double)count);
}

double dip_upper(double dip, size_t count) {
    double n = sqrt((double)count), x = n * dip / (1 - 0.62 / n);
    return fmin(1, 6.5 * exp(-16.3 * x * x));
}
