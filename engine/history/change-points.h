/*
 * Where a series changed: E-divisive (D. Matteson, N. James, J. Am. Stat. Assoc. 109, 2014) with a t-test in
 * place of permutations, as A. Fleming, A. Kołodziej and others have it ("Hunter: Using Change Point
 * Detection to Hunt for Performance Regressions", ICPE 2023) and the program Otava does. Windows that overlap
 * by half are split where the energy distance of the parts is greatest, as long as the parts differ at ten
 * times max_p; then the weakest points are dropped, one by one, until all that are left hold at max_p.
 */
#ifndef ASSAY_HISTORY_CHANGE_POINTS_H
#define ASSAY_HISTORY_CHANGE_POINTS_H

#include <stdbool.h>
#include <stddef.h>

enum { CHANGE_POINTS_WINDOW_MAX = 512 };

struct change_points_rule {
    size_t window;         /* rows of a window, from 2 to CHANGE_POINTS_WINDOW_MAX: 30 */
    double p_most;         /* above 0 and below 1: 0.001 */
    double relative_least; /* change of the mean, relative to either side, that counts: 0.05; 0: any */
    /* After a point was dropped, its right neighbour and the one behind that are compared again instead of
     * its two neighbours, as Otava 0.8 does. */
    bool as_otava;
};

struct change_point {
    size_t row;           /* the first after the change */
    double before, after; /* means of the parts on both sides, up to the next points */
    double p;             /* of the t-test of these parts */
};

/* RET has the points in order, an array for free(); values must be finite. -EINVAL: the rule is outside of
 * its limits. */
int change_points_find(const struct change_points_rule *rule, const double *values, size_t count,
                       struct change_point **ret, size_t *ret_count);

#endif
