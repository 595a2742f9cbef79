/* Least squares with selection of terms, and its cross-validation, from sums alone. */
#ifndef ASSAY_FIT_LINEAR_SUM_FIT_H
#define ASSAY_FIT_LINEAR_SUM_FIT_H

#include "plugins/fit-linear/least-squares.h"
#include "plugins/fit-linear/selection.h"
#include "plugins/fit-linear/shifted.h"

/* What K-fold cross-validation gives. */
struct validation {
    uint32_t folds;        /* that have rows; 0: none was done */
    double rmse, relative; /* NaN: not defined, for this reason, or */
    double log_score;      /* mean log density of held-out rows, normal with one sigma; NaN likewise */
    char reason[LEAST_SQUARES_REASON_SIZE]; /* "" */
};

/* What fitting works with; large. */
struct sum_fit {
    struct selection selection;
    struct least_squares_workspace *workspace;
    struct least_squares *result; /* of fits on the way */
    struct judged judged;
    struct solution solution;
    struct sums *train;
    double *shifted_all, *shifted_part, *shifted_train; /* width * width */
    struct shift shift;
};

int sum_fit_init(struct sum_fit *fit, const struct selection *selection);
void sum_fit_clear(struct sum_fit *fit);

/* Fits SUMS with the terms that selection leaves: KEPT, by column, says which (filled). The workspace is then
 * that of this fit (least_squares_row). PATH may be NULL. 1; 0 with REASON when it cannot be fitted; or a
 * negative errno. */
int sum_fit_run(struct sum_fit *fit, const struct sums *sums, bool *kept, struct selection_path *path,
                struct least_squares *ret, char reason[static LEAST_SQUARES_REASON_SIZE]);

/* Cross-validates, selection included, over FOLDS, which add up to ALL. */
int sum_fit_validate(struct sum_fit *fit, const struct sums *all, struct sums *const *folds, uint32_t count,
                     struct validation *ret);

/* RESULT as selection sees it. */
void judge_result(const struct sums_layout *layout, const struct least_squares *result, struct judged *ret);

/* From the sum of squared errors of held-out rows (weighted, the response's unit squared). */
void validation_finish(struct validation *validation, const struct sums *all, double squares);

#endif
