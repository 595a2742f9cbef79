/* How single durations scatter about T(s) = t0 + b s, and how t0 and b scatter because of that. README.md has
 * the formulas. */
#ifndef ASSAY_FIT_TRANSFER_SCATTER_H
#define ASSAY_FIT_TRANSFER_SCATTER_H

#include "engine/numerics/curve.h"

struct scatter {
    double constant, share; /* the deviation of one duration of size s, weight 1, is constant + share s */
    double freedom;         /* degrees of freedom of that deviation where it is known least */
    double covariance[3];   /* of t0 t0, t0 b, b b */
};

/* The scatter of the estimates CURVE of PROBLEM. 0; -EDOM where it cannot be told: 2 rows, or all rows on the
 * curve; -ENOMEM. */
int scatter_find(const struct curve_problem *problem, const struct curve *curve, struct scatter *ret);

#endif
