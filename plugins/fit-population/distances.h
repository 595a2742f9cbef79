/*
 * How far machines are from their population and runs from their machine: squares of Mahalanobis' distance,
 * which are chi-squared with as many degrees of freedom as there are coefficients where all are normal. See
 * README.md.
 */
#ifndef ASSAY_FIT_POPULATION_DISTANCES_H
#define ASSAY_FIT_POPULATION_DISTANCES_H

#include "plugins/fit-population/components.h"
#include "plugins/interface/fit.h"

enum distances_set { DISTANCES_MACHINES, DISTANCES_RUNS, DISTANCES_SETS };

struct distances {
    struct fit_distance *items[DISTANCES_SETS]; /* owned */
    size_t counts[DISTANCES_SETS], capacities[DISTANCES_SETS];
    uint64_t left_out[DISTANCES_SETS];
    bool too_many[DISTANCES_SETS];
};

/* Rows of one group as moments_init takes them. */
struct distances_rows {
    const double *const *columns;
    const uint64_t *numbers;
    const size_t *starts;
    const uint32_t *codes;    /* of the machines */
    const char *const *names; /* by code; kept by the caller */
};

void distances_clear(struct distances *distances);

/* Adds the machines and runs of a group. COMPONENTS are those of the machines' means, PARTS their names (kept
 * by the caller). Where a covariance is singular, or a machine was seen once, there are no distances: they
 * are counted. 0 or -ENOMEM. */
int distances_add(struct distances *distances, const struct moments *moments,
                  const struct components *components, const char *const *parts,
                  const struct distances_rows *rows);

/* Those of SET; with FREEDOM coefficients. */
void distances_tell(const struct distances *distances, enum distances_set set, size_t freedom,
                    struct fit_distances *ret);

#endif
