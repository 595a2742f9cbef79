/*
 * Latency and bandwidth of a transfer, T(s) = t0 + s b with b = 1/B0, of one group: from passes over its
 * rows, in memory that does not grow with them.
 *
 *     transfer_begin ; transfer_add every row ; transfer_step -> TRANSFER_AGAIN: all rows once more ...
 *     transfer_finish
 *
 * The first pass has the sums of a linear problem: all that is to be known for TRANSFER_TIME, and the start
 * for the others, where rows are weighted as if residuals were small. Every further pass sums the criterion,
 * its gradient and its second derivatives at the estimates in hand, in double-double where there is
 * cancellation; a Newton step follows, shortened where the criterion did not fall or a duration would not be
 * positive. Near the optimum the error is squared with every step.
 */
#ifndef ASSAY_FIT_TRANSFER_TRANSFER_H
#define ASSAY_FIT_TRANSFER_TRANSFER_H

#include "plugins/fit-transfer/scout.h"
#include "plugins/numerics/normal-equations.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRANSFER_STEPS_MAX = 60, TRANSFER_REASON_SIZE = 160 };

/* What is made least. */
enum transfer_criterion {
    TRANSFER_TIME,      /* sum w (T - t0 - s b)^2 */
    TRANSFER_BANDWIDTH, /* sum w (s/T - s/(t0 + s b))^2, as in eq. (5) of Shimokawabe et al. */
    TRANSFER_LOG,       /* sum w (log T - log(t0 + s b))^2 */
};

enum transfer_state {
    TRANSFER_LOOKING,  /* the first pass */
    TRANSFER_STEPPING, /* each pass is at other estimates */
    TRANSFER_JUDGING,  /* the last pass, at the final ones */
    TRANSFER_DONE,
    TRANSFER_FAILED, /* there is no fit: transfer_finish says why */
};

struct transfer {
    enum transfer_state state;
    uint64_t rows;  /* used */
    uint64_t empty; /* left out: a value is not finite */
    uint64_t
        outside; /* left out: no transfer: the size is below 0, or what the criterion needs above 0 is not */
    uint64_t negative; /* used, with a negative duration (TRANSFER_TIME) */
    double size_minimum, size_maximum;
    struct normal_sums start;             /* columns 1 and s, response T */
    struct dd weight, sum, squares;       /* of the criterion's own response u: sum w, w u, w u^2 */
    struct dd log_weights, log_densities; /* sum log w; sum log |du/dT|, which makes likelihoods comparable */

    double latency, inverse; /* t0 and b, at which this pass is */
    double reached[2];       /* the best so far, with its criterion */
    double reached_rss;
    uint32_t steps;
    struct scout *scout; /* of the caller's; NULL: none, or no more */
    double center;       /* sizes are told from here, so that those that differ little can be told apart */
    /* Of this pass: the criterion, half its gradient, half its second derivatives, and those without what
     * residuals add (J'J), all by the mean duration at the centre and b: of 0 0, 0 b, b b. */
    struct dd rss, gradient[2];
    double curvature[3], jacobian[3];
};

/* Values that are not defined are NaN. */
struct transfer_fit {
    double latency, inverse;         /* s, s/By */
    double covariance[3];            /* of t0 t0, t0 b, b b */
    double rss, sigma, r2;           /* in the criterion's own space; sigma = sqrt(rss / (n - 2)) */
    double log_likelihood, aic, bic; /* of the durations, so that criteria can be compared */
    bool saturated, perfect;
    bool constant; /* the criterion's own response never changes */
};

void transfer_begin(struct transfer *transfer);
/* Sizes in By, durations in s; W >= 0. Whether the row is used. */
bool transfer_add(struct transfer *transfer, enum transfer_criterion criterion, double size, double duration,
                  double w);
/* Whether its rows are of use in this pass. */
bool transfer_wants(const struct transfer *transfer);
/* Between the first pass and the second: looks for a better start in the second. SCOUT must be there until
 * the step after it. */
void transfer_send(struct transfer *transfer, struct scout *scout);
/* After a pass. Whether the rows are wanted again. */
bool transfer_step(struct transfer *transfer, enum transfer_criterion criterion);
/* False when there is no fit, and REASON says why. SIZE is the size column's name. */
bool transfer_finish(const struct transfer *transfer, enum transfer_criterion criterion, const char *size,
                     struct transfer_fit *ret, char reason[static TRANSFER_REASON_SIZE]);

#endif
