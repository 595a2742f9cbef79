/* Sums of logarithms, as of likelihoods. */
#ifndef ASSAY_NUMERICS_LOGARITHM_H
#define ASSAY_NUMERICS_LOGARITHM_H

#include <stddef.h>

/* sum log v over those of VALUES that are above 0: one logarithm for each 256 of them, of the product of
 * their mantissas. */
double logarithm_sum(const double *values, size_t count);

#endif
