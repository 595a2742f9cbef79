/*
 * Several populations in one: a mixture of multivariate normals over the machines' means, found by EM from
 * many places. A cluster has nodes that are slow for a reason of their own (a fan, a paste, a BIOS), and one
 * normal would smear them over all.
 */
#ifndef ASSAY_FIT_POPULATION_COMPONENTS_H
#define ASSAY_FIT_POPULATION_COMPONENTS_H

#include "plugins/fit-population/moments.h"

#include <stdint.h>

enum { POPULATIONS_MAX = 4 };

enum components_shape {
    SHAPE_BEST,   /* the one of the lower BIC */
    SHAPE_SHARED, /* one covariance for all components, which differ in their means */
    SHAPE_OWN,    /* each has its own */
};

struct component {
    double weight, mu[COEFFICIENTS_MAX], sigma[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
};

struct components {
    size_t count;
    bool shared;
    struct component of[POPULATIONS_MAX]; /* in order of the first coefficient's mean */
    double log_likelihood, parameters;    /* of the machines' means; how many were estimated */
};

struct components_settings {
    size_t count; /* 0: by BIC */
    enum components_shape shape;
    size_t starts; /* drawn ones, for each number and shape */
    uint64_t seed;
};

double components_bic(const struct components *components, size_t machines);

/* Covariances have the divisor that makes them unbiased where there is one component: the weight of the
 * machines less 1. 0; -EDOM where COUNT components were asked for and no mixture was found in which each has
 * machines enough; -ENOMEM. */
int components_find(const struct moments *moments, const struct components_settings *settings,
                    struct components *ret);

#endif
