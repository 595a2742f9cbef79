/*
 * Least squares in plain double precision, where that is safe: for what is done many times over and only to
 * decide something (which term to drop) or to estimate an error (cross-validation).
 *
 * Sums are taken about the mean of all rows (when there is an intercept) and scaled to a unit diagonal, both
 * in double-double, and then rounded: what is lost afterwards is what the condition of the centred, scaled
 * columns makes of 2^-53. Where a column's pivot falls below SHIFTED_PIVOT of its own square the answer is
 * no.
 */
#ifndef ASSAY_FIT_LINEAR_SHIFTED_H
#define ASSAY_FIT_LINEAR_SHIFTED_H

#include "plugins/fit-linear/sums.h"

/* Below it fewer than 8 digits might be left. */
#define SHIFTED_PIVOT 1e-8

/* Where columns are shifted to and how they are scaled: of all rows of a group. */
struct shift {
    double origin[SUMS_COLUMNS_MAX], scale[SUMS_COLUMNS_MAX];
    bool usable; /* no column is but rounding about its mean */
};

struct solution {
    size_t width;
    bool kept[SUMS_COLUMNS_MAX]; /* columns that it is of; the constant's is whether there is an intercept */
    double estimates[SUMS_COLUMNS_MAX]; /* by column, of the shifted and scaled columns; 0 of others */
    double rss;                         /* of the scaled response */
    double *inverse;                    /* of the sums of what is kept: width * width */
    double *lower;                      /* Cholesky's factor */
};

int solution_init(struct solution *solution, size_t width);
void solution_clear(struct solution *solution);

void shift_init(struct shift *shift, const struct sums *all);
/* SUMS shifted and scaled into RET: width * width. */
void shift_sums(const struct shift *shift, const struct sums *sums, double *ret);

/* Solves for the columns KEPT (NULL: all) of the shifted sums; *RET's inverse only when it is INVERTED. False
 * where double precision does not do. */
bool shifted_solve(const struct sums_layout *layout, const double *sums, const bool *kept, bool inverted,
                   struct solution *ret);
/* Sum of squared errors of the solution on the rows of the shifted sums, of the scaled response; negative
 * where double precision does not do. */
double shifted_error(const struct solution *solution, const double *sums);

#endif
