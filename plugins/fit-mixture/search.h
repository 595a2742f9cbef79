/*
 * The likelihood of a mixture has many maxima; the search for the highest one starts from many places:
 *
 *     quantiles            parts of equal weight
 *     k-means++            drawn centres, improved by Lloyd's method (D. Arthur, S. Vassilvitskii, SODA 2007)
 *     splits               of each component of the best mixture with one component less, in four ways
 *     insertions           of a small component into it, at 16 quantiles, narrow and wide
 *     merge and split      of the best found, two components into one and another into two, until no such
 * move gains (N. Ueda et al., Neural Computation 12 (2000), 2109) merges               of the best mixture
 * with one component more, at the end
 *
 * Each runs a few steps on the coarse points; the best go on, and the best of those are polished on all
 * points (where there are more than FINE_MAX, on so many that stand for them). The same sample, settings and
 * seed give the same mixtures.
 */
#ifndef ASSAY_FIT_MIXTURE_SEARCH_H
#define ASSAY_FIT_MIXTURE_SEARCH_H

#include "plugins/fit-mixture/em.h"

#include <stdint.h>

struct search_settings {
    size_t most;   /* components, from 1 to COMPONENTS_MAX */
    bool only;     /* those with MOST are what is wanted */
    size_t starts; /* from k-means++, for each number of components */
    struct floor floor;
    double least; /* weight of the points that a component must have */
    uint64_t seed;
};

struct search_result {
    struct mixture
        mixtures[COMPONENTS_MAX];  /* with 1, 2 ... components; components in order of their means */
    size_t starts[COMPONENTS_MAX]; /* places that the search began at */
};

void search_run(const struct sample *sample, const struct search_settings *settings,
                struct search_result *ret);

/* Brings one of the mixtures found to its maximum on all values: where they are very many, only the one that
 * was chosen is worth it. */
void search_finish(const struct sample *sample, const struct search_settings *settings,
                   struct mixture *mixture);

#endif
