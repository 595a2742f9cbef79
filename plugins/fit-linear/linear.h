/*
 * Least squares on the terms of a formula, for one group: which terms stay, which rows are outliers, what the
 * estimates and their errors are. README.md has the formulas.
 */
#ifndef ASSAY_FIT_LINEAR_LINEAR_H
#define ASSAY_FIT_LINEAR_LINEAR_H

#include "engine/numerics/least-squares.h"

#include <assay/fit.h>

enum parameter { SELECT, THRESHOLD, BOUNDS, OUTLIERS, ROBUST, NOISE, DISTRIBUTION };
enum select { SELECT_NONE, SELECT_ELIMINATION };
enum bounds { BOUNDS_AUTO, BOUNDS_NONE, BOUNDS_NONNEGATIVE };
enum robust { ROBUST_NONE, ROBUST_HUBER, ROBUST_BISQUARE };
enum noise { NOISE_AUTO, NOISE_N0, NOISE_N1, NOISE_N2, NOISE_RULE };
enum distribution { NORMAL, HALF_NORMAL };

static inline double linear_number(const struct fit_request *request, enum parameter parameter) {
    return request->values[parameter].number;
}

/* The terms X, the response y and weights w of the rows that take part. */
struct problem {
    size_t rows, terms, stride; /* of x, column by column */
    const double *x, *y, *w;    /* w NULL: all are 1 */
    const struct fit_request *request;
    struct least_squares sums; /* of these rows */
    double *owned;             /* where x, y and w lie, if they are the problem's own; or NULL */
};

/* Sums the rows up; the other members are set. The caller clears PROBLEM, after failures too. */
int problem_sum(struct problem *problem, struct plugin_message *message);
void problem_clear(struct problem *problem);

/* A fit of a problem. */
struct linear {
    struct least_squares_fit fit;
    double freedom; /* rows less estimated terms */
    double rss, r2, adjusted_r2, sigma, log_likelihood, condition;
    double total; /* about the mean with an intercept, about 0 without */
};

/* Fits PROBLEM with ROLES. -EDOM with the reason in MESSAGE: a term depends on those before it, or there are
 * fewer rows than terms. The caller clears RET, after failures too. DESCRIBED: its members are filled in,
 * which needs the rows once more; otherwise only `fit` is. */
int linear_solve(const struct problem *problem, const enum least_squares_role *roles, bool described,
                 struct linear *ret, struct plugin_message *message);
void linear_clear(struct linear *linear);

/* Backward elimination from ROLES on: as long as the term with the largest p is above THRESHOLD it goes (its
 * role becomes LEFT_OUT). RESULT hears what went in which order. */
int linear_eliminate(const struct problem *problem, double threshold, enum least_squares_role *roles,
                     struct fit_result *result, struct plugin_message *message);

/* The rows of PROBLEM whose externally studentised residual by LINEAR is at most LIMIT, as a problem of its
 * own in *RET, which owns its arrays. Returns how many rows are not in it. */
int outliers_delete(const struct problem *problem, const struct linear *linear, double limit,
                    struct problem *ret, size_t *ret_deleted, struct plugin_message *message);

#endif
