/*
 * Fits that look at every row: least squares with outliers deleted, and robust fits (M-estimates).
 *
 * Outliers: when terms are selected, rows whose externally studentised residual is beyond the limit are
 * deleted, all at once, and it starts again with all terms, until there is none.
 *
 * Robust: iterated weighted least squares from the plain fit on, as MASS::rlm of R (W. N. Venables, B. D.
 * Ripley, Modern Applied Statistics with S, 4th ed., 2002, 6.5) does it, but to the end: the scale is the
 * median of the residuals' magnitudes / 0.6745, the weight of a residual r is psi(u)/u, u = r/scale, and it
 * has converged when residuals change by less than 1e-12 of their own length. Weights are searched for in
 * double precision (reweighting.h), and the fit by them is made in twice that. Prior weights are inverse
 * variances.
 */
#ifndef ASSAY_FIT_LINEAR_ROW_FIT_H
#define ASSAY_FIT_LINEAR_ROW_FIT_H

#include "plugins/fit-linear/linear.h"
#include "plugins/fit-linear/sum-fit.h"

enum {
    ROW_FIT_ROUNDS_MAX = 100, /* of deleting */
    ROW_FIT_PLACES_MAX = 5,
};

/* What is told beside the fit. */
struct row_outcome {
    uint64_t deleted;
    uint32_t rounds;                     /* of deleting, the last one, which found none, included */
    uint64_t places[ROW_FIT_PLACES_MAX]; /* the first deleted rows' numbers */
    uint32_t iterations;                 /* of weighting */
    uint64_t weighted_down;              /* rows with less than half of their weight */
    bool settled;                        /* no more to delete; weights converged */
};

struct row_fit;

/* FIT has sorted rows; the workspace of SUM_FIT is used. NULL when out of memory. */
struct row_fit *row_fit_new(const struct fit *fit, const struct sums_layout *layout, struct sum_fit *sum_fit);
void row_fit_free(struct row_fit *row_fit);

/* Fits the group, of which CELLS has the cells in the moments, and ALL the sums. As sum_fit_run. */
int row_fit_run(struct row_fit *row_fit, uint32_t group, const struct sums_cell *cells, size_t cell_count,
                struct selection_path *path, struct least_squares *ret, struct row_outcome *ret_outcome,
                char reason[static LEAST_SQUARES_REASON_SIZE]);
/* Cross-validates the same group, with everything done anew for every fold. */
int row_fit_validate(struct row_fit *row_fit, const struct sums *all, uint32_t folds, struct validation *ret);

#endif
