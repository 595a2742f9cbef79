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

/* How many values the levels take out: as many as there are levels, less one for each group of levels that
 * are connected by rows, in case of two sets. */
size_t strata_rank(const struct strata *strata);
/* Takes the levels' effects out of VALUES: means of one set and the other, in turn, until nothing changes. */
void strata_center(const struct strata *strata, double *values);

struct association {
    size_t rows;
    double correlation; /* of normal scores of what is left of both */
    double freedom, p;  /* two-sided, by Student's t; p NaN: too few rows, or one of both does not vary */
    double slope;       /* of y on x, y moved to within 3 standard deviations (by the median) */
    double spread;      /* of x, from its 5 % quantile to its 95 % quantile */
};

/* Of Y and X, rows where X is NaN left out, when the levels are taken out of both. */
struct association strata_associate(const struct strata *strata, const double *y, const double *x);

struct strata_effect {
    double share;             /* of the sum of squares that the first set left */
    double above, freedom, p; /* of Fisher's F; p NaN: not tested */
};

/* Whether the levels of the second set have different values, when those of the first are taken out. */
struct strata_effect strata_test_second(const struct strata *strata, const double *y);

#endif
