/*
 * What differs between runs of one experiment: BASE, one run or more, and NEW, one run. Settings that both
 * have are paired. Positive responses are compared by their logarithms, so that differences are ratios.
 *
 * What counts as a replicate, of a setting and of the whole:
 *
 *     RUNS      BASE has three runs or more: each run counts once, and NEW is tested as one more run
 *               by Student's t, with the variance s^2 (1 + 1 / runs) of one new value
 *     NODES     both have the same nodes, two or more: each node counts once, paired with itself
 *     BLOCKS    both have three blocks of repetitions or more: units count in a setting (Welch); in
 *               the whole each block of a node counts once
 *     UNITS     units count in a setting (Welch); in the whole the units of a node at one position of
 *               the order count once
 *     SETTINGS  nothing was measured twice: no setting is tested; in the whole each setting counts once
 *
 * The whole is the mean of the settings' differences. p of settings are adjusted for all that were tested
 * (S. Holm, Scandinavian Journal of Statistics 6, 1979); intervals are of 95 %, each by itself.
 */
#ifndef ASSAY_ANALYSIS_DIFFERENCE_H
#define ASSAY_ANALYSIS_DIFFERENCE_H

#include "engine/analysis/measurements.h"
#include "engine/report/report.h"

enum difference_method {
    DIFFERENCE_RUNS,
    DIFFERENCE_NODES,
    DIFFERENCE_BLOCKS,
    DIFFERENCE_UNITS,
    DIFFERENCE_SETTINGS,
};

/* A difference: of logarithms, or in the unit of the response. NaN: not known. */
struct difference_estimate {
    double size, low, high, p;
};

struct difference_setting {
    size_t setting;  /* of measurements->settings */
    double means[2]; /* of BASE and NEW, in the unit of the response */
    size_t replicates[2];
    struct difference_estimate difference; /* p adjusted */
    double standardised;                   /* size over the standard deviation of replicates (J. Cohen's d) */
    int sign;                              /* 1: NEW is better, -1: worse, 0: no difference shown */
};

struct difference {
    const struct measurements *measurements;
    enum difference_method method;
    bool is_logarithmic;
    size_t new_run, runs;             /* which of the inputs is NEW */
    struct difference_setting *items; /* settings that both have, in the order of the settings */
    size_t count, tested, better, worse;
    size_t only[2]; /* settings that only BASE, or only NEW, has */
    struct difference_estimate whole;
    int sign;
    double least; /* differences below this, a share of 1, do not count */
};

/* Compares the runs in MEASUREMENTS; input NEW_RUN is NEW, the others are BASE. LEAST, a share of 1: smaller
 * differences do not count. FAILURE_INPUT: no setting has values on both sides. RET is to be cleared after
 * failures, too. */
int difference_find(const struct measurements *measurements, size_t new_run, double least,
                    struct difference *ret, struct failure *failure);
void difference_clear(struct difference *difference);
/* In JSON:
 *
 *     verdict, grade ("not usable" where NEW is worse)
 *     response, best_is, method, difference, difference_low, difference_high, p (of the whole)
 *     settings    an object a setting: factors, base, new, base_replicates, new_replicates, difference, low,
 *                 high, p_adjusted, standardised, standing
 *     better, worse, tested, only_base, only_new   numbers of settings
 */
void difference_report(struct report_section *in, const struct difference *difference);

#endif
