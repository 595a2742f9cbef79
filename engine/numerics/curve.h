/*
 * The time of transfers over their size, T(s) = t0 + b s, that makes one of three sums of squares least:
 * always the global minimum. The sums of bandwidths and of logarithms may have several minima; they are least
 * over t0 >= 0 and b >= 0 by variable projection (G. Golub, V. Pereyra, SIAM J. Numer. Anal. 10 (1973), 413):
 * with T(s) = k (c + d s) the best factor k of a direction (c, d) has a closed form, and what remains is a
 * function of the half size c/d alone, whose minima are bracketed on a grid and refined by Brent's method.
 */
#ifndef ASSAY_NUMERICS_CURVE_H
#define ASSAY_NUMERICS_CURVE_H

#include <stddef.h>

enum curve_criterion {
    CURVE_TIME,      /* sum w (t - T)^2, over all t0 and b: a straight line */
    CURVE_BANDWIDTH, /* sum w (s/t - s/T)^2; sizes and durations are above 0 */
    CURVE_LOG        /* sum w (log t - log T)^2; durations are above 0, sizes at least 0 */
};

struct curve_problem {
    enum curve_criterion criterion;
    size_t rows;
    const double *size, *duration, *weight; /* s, t, w; at least two different sizes */
};

struct curve {
    double latency, inverse; /* t0 and b; 0 where the minimum is on the boundary */
    double rss;              /* the least sum */
};

/* 0 or -ENOMEM. Numbers of RET that are not finite: sums are beyond the range of a double. */
int curve_find(const struct curve_problem *problem, struct curve *ret);

#endif
