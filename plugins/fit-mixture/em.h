/*
 * Mixtures of normals in one dimension, and their likelihood on points: the step of expectation and
 * maximisation (A. Dempster, N. Laird, D. Rubin, J. R. Stat. Soc. B 39 (1977), 1), accelerated (R. Varadhan,
 * C. Roland, Scand. J. Stat. 35 (2008), 335: SQUAREM, step length 3), and Newton's method for the last
 * digits, which a slowly converging EM does not reach.
 */
#ifndef ASSAY_FIT_MIXTURE_EM_H
#define ASSAY_FIT_MIXTURE_EM_H

#include "plugins/fit-mixture/sample.h"

#include <stdbool.h>
#include <stddef.h>

enum { COMPONENTS_MAX = 8 };

/* In the sample's deviations. */
struct mixture {
    size_t count;
    double weight[COMPONENTS_MAX], mean[COMPONENTS_MAX], sigma[COMPONENTS_MAX];
    double log_likelihood; /* of the points it was last held against; -INFINITY: not yet */
};

/* What a mixture must keep to: a likelihood without it has no maximum, as a component may shrink to one
 * point. */
struct floor {
    double sigma; /* the least standard deviation, in deviations */
};

double em_log_likelihood(const struct mixture *mixture, const struct points *points);

/* One plain step; the log-likelihood returned is that before it. */
double em_step(struct mixture *mixture, const struct points *points, const struct floor *floor);

/* At most STEPS cycles of SQUAREM, until two in a row gain less than TOLERANCE. The log-likelihood does not
 * fall; what the mixture then has is that of some steps before. */
void em_climb(struct mixture *mixture, const struct points *points, const struct floor *floor, int steps,
              double tolerance);

/* On to the maximum nearby by Newton's method on log weights, means and log deviations: each step gains, or
 * EM goes on. Points without spread. */
void em_polish(struct mixture *mixture, const struct points *points, const struct floor *floor);

#endif
