/*
 * Rows in strata: what is left of their values when up to two sets of categories are taken out (settings and
 * cores, say), as a linear model with a term for each level would leave it; and tests on what is left. The
 * tests work on normal scores of ranks, so that values far off and noise of any shape do no harm.
 */
#ifndef ASSAY_ANALYSIS_STRATA_H
#define ASSAY_ANALYSIS_STRATA_H

#include <stddef.h>
#include <stdint.h>

enum { STRATA_FREEDOM_LEAST = 8 /* of the residuals, for a test */ };

struct strata {
    size_t rows;
    const uint32_t *codes[2]; /* of each row, below level_counts; NULL: no such set */
    size_t level_counts[2];
};

/* The rank of the model with a term for each level: the number of levels, less one, with two sets, for each
 * group of levels that rows connect. */
size_t strata_rank(const struct strata *strata);
/* Replaces VALUES by their residuals: subtracts the means of the levels of both sets, in turn, until nothing
 * changes. */
void strata_center(const struct strata *strata, double *values);

struct association {
    size_t rows;
    double correlation; /* of normal scores of the residuals of both */
    double freedom, p;  /* two-sided, by Student's t; p NaN: too few rows, or one of both does not vary */
    double slope;       /* of y on x, y moved to within 3 standard deviations (by the median) */
    double spread;      /* of x, from its 5 % quantile to its 95 % quantile */
};

/* The association of Y and X after the levels' effects are removed from both. Rows where X is NaN are left
 * out. */
struct association strata_associate(const struct strata *strata, const double *y, const double *x);

struct strata_effect {
    double share;             /* of the sum of squares that the first set left */
    double above, freedom, p; /* of Fisher's F; p NaN: not tested */
};

/* Tests whether the levels of the second set differ in Y after the effects of the first are removed. */
struct strata_effect strata_test_second(const struct strata *strata, const double *y);

#endif
