/* Ranks of values, equal ones having the mean of theirs, and what is made of them: figures that a few values
 * far off hardly change. */
#ifndef ASSAY_NUMERICS_RANKS_H
#define ASSAY_NUMERICS_RANKS_H

#include <stddef.h>

/* From 1 to COUNT. VALUES are not NaN. */
void ranks(const double *values, size_t count, double *ret);
/* Normal scores: the quantile of rank / (COUNT + 1); of equal values the mean of theirs (B. van der Waerden,
 * 1952). */
void ranks_normal_scores(const double *values, size_t count, double *ret);
/* C. Spearman's correlation (1904): that of the ranks; NaN where one side is all equal. */
double ranks_correlation(const double *left, const double *right, size_t count);

#endif
