/*
 * Quantiles of a sample, by linear interpolation between order statistics: type 7 of R. Hyndman, Y. Fan,
 * Sample quantiles in statistical packages, Amer. Statist. 50 (1996), 361.
 */
#ifndef ASSAY_NUMERICS_QUANTILE_H
#define ASSAY_NUMERICS_QUANTILE_H

#include <stddef.h>

/* The values are in ascending order; none is NaN. */
void quantile_sort(double *values, size_t count);
/* The share SHARE, from 0 to 1, of the COUNT values of SORTED lies below the result; NaN of none. */
double quantile(const double *sorted, size_t count, double share);
/* The middle one of VALUES, of an even number the mean of the two; reorders them. NaN of none. */
double quantile_median(double *values, size_t count);

#endif
