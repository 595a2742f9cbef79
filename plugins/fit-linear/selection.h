/*
 * Which terms stay: backward, one at a time, never the intercept.
 *
 * elimination: the term with the largest p is dropped while that is above the threshold. bic: the term is
 * dropped whose loss lowers the BIC most, while one does. The dummies of a category are dropped together, by
 * the F test of all of them; and not while a term of more categories needs them (host beside host*mode).
 */
#ifndef ASSAY_FIT_LINEAR_SELECTION_H
#define ASSAY_FIT_LINEAR_SELECTION_H

#include "plugins/fit-linear/linear.h"
#include "plugins/fit-linear/sums.h"

enum { SELECTION_STEPS_MAX = 256 };

/* A fit of some columns, as selection sees it: only t and F matter, so columns may be scaled. */
struct judged {
    uint64_t rows;
    double degrees, rss;
    bool blank;                         /* nothing can be judged: no residuals */
    double estimates[SUMS_COLUMNS_MAX]; /* by column */
    double *covariance;                 /* width * width */
};

/* Fits the columns KEPT. 1, or 0 when they cannot be fitted, or a negative errno. */
typedef int (*selection_refit)(void *context, const bool *kept, struct judged *ret);

struct selection_step {
    uint32_t round; /* of deleting outliers; the first is 0 */
    uint64_t rows;
    double degrees, rss;
    size_t worst; /* term of the formula */
    double p;     /* its; under bic, how much the BIC changes without it */
    bool dropped;
};

/* How terms were found; large. Steps beyond the most are not recorded. */
struct selection_path {
    struct selection_step steps[SELECTION_STEPS_MAX];
    size_t count;
    uint32_t round;
};

struct selection {
    const struct sums_layout *layout;
    enum select rule; /* not auto */
    double threshold;
};

/* Changes KEPT, by column, all true when it begins, until every term has to stay. The last fit is then that
 * of KEPT. PATH may be NULL. 1, or 0 when a fit was not possible, or a negative errno. */
int selection_run(const struct selection *selection, selection_refit refit, void *context, bool *kept,
                  struct judged *judged, struct selection_path *path);

#endif
