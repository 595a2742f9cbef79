/*
 * The settings of a run in the order of their mean response, with intervals, and which of them cannot be told
 * from the best.
 *
 * A replicate is what varies from setting to setting by chance: the mean of a setting's units on one node, if
 * at least half of the settings were measured on two nodes or more; else the mean of its units on one core,
 * by the same rule; else one unit. So repetitions on few nodes do not count as if they were nodes.
 *
 * With n replicates x_i of a setting, mean x and s^2 = sum (x_i - x)^2 / (n - 1), the 95 % interval of the
 * mean is x -+ t s / sqrt(n), t being the quantile of Student's distribution with n - 1 degrees of freedom
 * that is exceeded in size with a probability of 5 %. With n = 1 there is none.
 *
 * Each setting is compared with the best by a two-sided t-test: paired where all settings were measured on
 * the same nodes (or cores), since the nodes' own differences cancel; else by Welch (Biometrika 34, 1947)
 * with variances that may differ. The p-values are adjusted by Holm (Scandinavian Journal of Statistics 6,
 * 1979), for as many comparisons as were made. "No difference shown" is an adjusted p above 5 %: the setting
 * that is truly the best is among these settings and the first with a probability of 95 % or more (97 to 99.9
 * % in simulations of 2 to 40 settings with 2 to 10 replicates, also with different variances). The
 * correction does not count that the best was found in the same data, so among many equal settings more than
 * 5 % of runs tell some setting from the best (12 % with 12 settings and 10 replicates).
 */
#ifndef ASSAY_ANALYSIS_RANKING_H
#define ASSAY_ANALYSIS_RANKING_H

#include "engine/analysis/measurements.h"

enum ranking_replicate { RANKING_UNITS, RANKING_CORES, RANKING_NODES };

enum ranking_standing {
    RANKING_BEST,
    RANKING_NO_DIFFERENCE, /* to the best is shown */
    RANKING_WORSE,
    RANKING_NOT_COMPARED, /* it or the best has one replicate */
    RANKING_NO_VALUE,
};

struct ranked {
    const struct setting *setting; /* borrowed */
    size_t first, n;               /* its replicates */
    double mean;                   /* NaN: n is 0; this and below in the unit of the response */
    double deviation, low, high;   /* s; the interval; NaN: n is below 2 */
    double p;                      /* of the difference to the best, adjusted; NaN: not compared */
    enum ranking_standing standing;
};

struct replicate {
    uint32_t node, core; /* what it is the mean of; 0 where that does not matter */
    double value;
};

struct ranking {
    struct ranked *items; /* best first, those without a value last */
    size_t count, with_value, comparisons;
    enum ranking_replicate replicate;
    bool is_paired;
    struct replicate *replicates; /* of all, in order of node and core within each */
};

/* RET is the caller's to clear, before MEASUREMENTS is. */
void ranking_make(const struct measurements *measurements, struct ranking *ret);
void ranking_clear(struct ranking *ranking);

#endif
