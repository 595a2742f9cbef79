/*
 * The settings of a run in the order of their mean response, with intervals, and which of them cannot be told
 * from the best. Settings of different sizes of the problem (measurements.h) are not compared: each size has
 * a best setting of its own.
 *
 * A replicate is what varies from setting to setting by chance: the mean of a setting's units on one node, if
 * at least half of the settings were measured on two nodes or more; else one unit. So repetitions on few
 * nodes do not count as if they were nodes. The cores of one node are all measured, and no sample of cores:
 * their units count each.
 *
 * With n replicates x_i of a setting, mean x and s^2 = sum (x_i - x)^2 / (n - 1), the 95 % interval of the
 * mean is x -+ t s / sqrt(n), t being the quantile of Student's distribution with n - 1 degrees of freedom
 * that is exceeded in size with a probability of 5 %. With n = 1 there is none.
 *
 * Each setting is compared with the best of its size by a two-sided t-test: paired where replicates are nodes
 * and both settings were measured on the same ones, since the nodes' own differences cancel; else by Welch
 * (Biometrika 34, 1947) with variances that may differ. The p-values are adjusted by Holm (Scandinavian
 * Journal of Statistics 6, 1979), for as many comparisons as were made within the size. "No difference shown"
 * is an adjusted p above 5 %: the setting that is truly the best is among these settings and the first with a
 * probability of 95 % or more (97 to 99.9 % in simulations of 2 to 40 settings with 2 to 10 replicates, also
 * with different variances). The correction does not count that the best was found in the same data, so among
 * many equal settings more than 5 % of runs tell some setting from the best (12 % with 12 settings and 10
 * replicates).
 */
#ifndef ASSAY_ANALYSIS_RANKING_H
#define ASSAY_ANALYSIS_RANKING_H

#include "engine/analysis/measurements.h"

enum ranking_standing {
    RANKING_NO_VALUE,
    RANKING_ALONE,         /* no other setting of its size has a value */
    RANKING_BEST,          /* of its size */
    RANKING_NO_DIFFERENCE, /* to the best is shown */
    RANKING_WORSE,
    RANKING_NOT_COMPARED, /* it or the best has one replicate */
};

struct ranked {
    size_t setting;              /* of measurements->settings */
    size_t first, n;             /* its replicates */
    double mean;                 /* NaN: n is 0; this and below in the unit of the response */
    double deviation, low, high; /* s; the interval; NaN: n is below 2 */
    double p;                    /* of the difference to the best, adjusted; NaN: not compared */
    enum ranking_standing standing;
};

struct replicate {
    uint32_t node;
    double value;
};

struct ranking {
    struct ranked *items; /* the largest size first; of each size best first, those without a value last */
    size_t count;
    size_t choices; /* sizes of which two settings or more have a value */
    size_t comparisons;
    const struct ranked *best;    /* of the largest size that has a value; NULL: none has */
    bool by_node;                 /* replicates are nodes */
    struct replicate *replicates; /* of all, in order of node within each */
};

/* RET is the caller's to clear. */
void ranking_make(const struct measurements *measurements, struct ranking *ret);
void ranking_clear(struct ranking *ranking);

#endif
