/*
 * Can measurements be trusted? Tests of what makes them less than independent repetitions of one thing. Each
 * test takes the effects of the settings, and of the nodes and cores, out first. What units of one node at
 * one position of the order have in common is taken as one moment, so that many cores do not count as many
 * measurements where they share their disturbances.
 *
 *     TREND            response and order of measurement
 *     AUTOCORRELATION  a moment and the one before it, the trend taken out; only likeness counts
 *     CARRY_OVER       response and the mean response of the setting that the node measured before
 *     ORDER            order and settings, within blocks: not random where settings explain it
 *     MODES            more than one mode of what is left (numerics/dip.h)
 *     NODES, CORES     different means of nodes; of the cores of one node, beyond what they have in common
 *     NEIGHBOURS       units that ran on two cores of a node at one time; only likeness counts
 *     FREQUENCY, TEMPERATURE   response and what was sampled during the unit
 *
 * p-values are two-sided, except where strata.h says "only likeness counts". They are adjusted for all tests
 * that could be made (S. Holm, Scandinavian Journal of Statistics 6, 1979). A finding has an adjusted p below
 * 1 % and is large enough to matter: 1 % of the response, or 5 % of the variance that is left; an
 * autocorrelation or likeness of neighbours of 0.2; settings that explain half of the order.
 */
#ifndef ASSAY_ANALYSIS_CHECKS_H
#define ASSAY_ANALYSIS_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum check {
    CHECK_TREND,
    CHECK_AUTOCORRELATION,
    CHECK_CARRY_OVER,
    CHECK_ORDER,
    CHECK_MODES,
    CHECK_NODES,
    CHECK_CORES,
    CHECK_NEIGHBOURS,
    CHECK_FREQUENCY,
    CHECK_TEMPERATURE,
    CHECK_COUNT,
};

/* A column of categories: one code a row, from 0 to levels - 1. The caller owns `codes`. */
struct check_codes {
    const uint32_t *codes;
    size_t levels;
};

struct check_rows {
    size_t count;
    const double *y; /* the response; or its logarithm, and `is_logarithmic` */
    bool is_logarithmic;
    struct check_codes settings, nodes, cores, blocks; /* nodes of one run; cores of one node, or "all" */
    const double *order;
    const double *frequency, *temperature; /* NaN: not known; or NULL */
};

struct check_result {
    size_t rows;        /* that were tested: moments, or units */
    double size;        /* change of the response in %; correlation; share of the order in %: as above */
    double share;       /* of the variance that is left */
    double p, adjusted; /* NaN: not tested */
    uint32_t level;     /* NODES and CORES: that which is farthest from the median of the others */
    bool is_finding;
};

struct checks {
    struct check_result results[CHECK_COUNT];
    size_t tested, findings;
};

/* Makes all checks for which there are enough rows; the results of others have p NaN. */
void checks_find(const struct check_rows *rows, struct checks *ret);

#endif
