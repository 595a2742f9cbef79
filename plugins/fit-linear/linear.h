/*
 * Least squares on the terms of a formula, for one group: which terms stay, which rows are outliers, what the
 * estimates and their errors are, and how rows scatter about the mean. README.md has the formulas.
 *
 * Functions return 0, -ENOMEM, or what they say; a refusal's sentence is in MESSAGE.
 */
#ifndef ASSAY_FIT_LINEAR_LINEAR_H
#define ASSAY_FIT_LINEAR_LINEAR_H

#include "engine/numerics/least-squares.h"

#include <assay/fit.h>

enum parameter { SELECT, THRESHOLD, BOUNDS, OUTLIERS, ROBUST, NOISE, DISTRIBUTION, ONE_OF };
enum select { SELECT_NONE, SELECT_ELIMINATION };
enum bounds { BOUNDS_AUTO, BOUNDS_NONE, BOUNDS_NONNEGATIVE };
enum robust_choice { ROBUST_NONE, ROBUST_BY_HUBER, ROBUST_BY_BISQUARE };
enum noise_choice { NOISE_AUTO, NOISE_NONE, NOISE_HOMOSCEDASTIC, NOISE_HETEROSCEDASTIC, NOISE_RULE };
enum distribution { NORMAL, HALF_NORMAL };

static inline double linear_number(const struct fit_request *request, enum parameter parameter) {
    return request->values[parameter].number;
}

/* The terms X, the response y and weights w of the rows that take part. */
struct problem {
    size_t rows, terms, stride; /* of x, column by column */
    const double *x, *y, *w;    /* w NULL: all are 1 */
    const uint32_t *settings;   /* which setting each is of, below setting_count */
    size_t setting_count;
    const uint32_t *places; /* which row of fit() each is; NULL: the same */
    const struct fit_request *request;
    struct least_squares sums; /* of these rows */
    double *owned; /* where x, y, w, settings and places lie, if they are the problem's own; or NULL */
};

/* Sums the rows up; the other members are set. The caller clears PROBLEM, after failures too. */
int problem_sum(struct problem *problem);
/* Those COUNT rows of PROBLEM that ROWS lists, in that order, as a problem with arrays of its own. */
int problem_select(const struct problem *problem, const size_t *rows, size_t count, struct problem *ret);
void problem_clear(struct problem *problem);

/* A fit of a problem, and how rows scatter about it. */
struct linear {
    struct least_squares_fit fit;
    double freedom; /* rows less estimated terms */
    double rss, r2, adjusted_r2, sigma, condition;
    double variance;           /* the estimates' covariance is this times fit.covariance */
    struct model_noise noise;  /* its coefficients are owned; the floor's covariance is floor_covariance */
    double log_likelihood;     /* NaN: not defined */
    size_t scale_parameters;   /* of the noise: what AIC and BIC count besides the estimates */
    double covariance_freedom; /* Student's degrees of freedom of covariance and noise; 0: `freedom` */
    bool has_free_covariance;  /* it is that without bounds */
    double *floor_covariance;  /* of the noise's floor; NULL: it has none */
};

/* Fits PROBLEM with ROLES. -EDOM with the reason in MESSAGE: a term depends on those before it, or there are
 * fewer rows than terms. The caller clears RET, after failures too. DESCRIBED: its members are filled in,
 * with homoscedastic noise, which needs the rows once more; otherwise only `fit` is. */
int linear_solve(const struct problem *problem, const enum least_squares_role *roles, bool described,
                 struct linear *ret, struct plugin_message *message);
/* Fills the members in from `fit` and the rows; with homoscedastic noise. */
int linear_describe(const struct problem *problem, struct linear *linear, struct plugin_message *message);
/* Replaces the fit by an M-estimate with the same terms, and its members. */
int linear_reweight(const struct problem *problem, enum robust_choice kind,
                    const enum least_squares_role *roles, struct linear *linear, struct fit_result *result,
                    struct plugin_message *message);
void linear_clear(struct linear *linear);

/* Backward elimination from ROLES on. As long as several terms have columns of one kind (ONE_OF), the one of
 * them with the largest p goes: its role becomes LEFT_OUT. Then as long as the term with the largest p is
 * above THRESHOLD that one goes. RESULT hears what went in which order. */
int linear_eliminate(const struct problem *problem, enum least_squares_role *roles, struct fit_result *result,
                     struct plugin_message *message);

/* The rows of PROBLEM whose externally studentised residual is at most LIMIT, as a problem of its own in
 * *RET: by LINEAR, the described fit of PROBLEM with ROLES, which becomes that of growth_find() unless the
 * noise asked for is the same everywhere. *RET_DELETED: how many rows are not in it. */
int outliers_delete(const struct problem *problem, const enum least_squares_role *roles, double limit,
                    struct linear *linear, struct problem *ret, size_t *ret_deleted,
                    struct plugin_message *message);

/* The rows of a problem, setting by setting: those of one are equal in all columns of the terms. */
struct settings {
    size_t *rows;  /* all rows of the problem, setting by setting */
    size_t *first; /* count + 1: where each setting begins in `rows` */
    size_t count;  /* some may be empty */
};

/* The caller clears RET, after failures too. */
int settings_find(const struct problem *problem, struct settings *ret);
void settings_clear(struct settings *settings);

/* The moment estimator of an N-2's deviation (T. Cornebize, High Performance Computing: Towards Better
 * Performance Predictions and Experiments, thesis, Grenoble 2021, chapter 4; the engine peanut's
 * generate_model, cashew's head_mnk_mk_nk): of each setting that has two rows or more the standard deviation
 * (n - 1); the constant is the mean of those whose volume, the first of the terms with most factors, is at
 * most 100 times the least, or 0 where that is negative; the coefficients are those of least squares, without
 * a constant, of what is left of the deviations on the terms. ROLES leaves out the terms that have no part.
 * COEFFICIENTS has one for each term, 0 for a constant. -EDOM: it cannot be followed, for *RET_REASON. */
int rule_follow(const struct problem *problem, const enum least_squares_role *roles, double *ret_constant,
                double *coefficients, const char **ret_reason);

/* The standard deviation of a row by NOISE; NaN where the sum is not above 0. */
double linear_sigma(const struct problem *problem, const struct model_noise *noise, size_t row);

/* Whether there are less than 8 rows for each of RANK coefficients. */
bool linear_has_few_rows(const struct problem *problem, size_t rank);

/* LINEAR, the described fit of PROBLEM with ROLES, becomes that with sigma = constant + ratio x mean, both at
 * least 0 (N-2, whose coefficients are the ratio's share of the estimates). Constant and ratio are their
 * means over a grid of constant/ratio, weighted by the restricted likelihood of a fit without bounds. LINEAR
 * stays as it is where constant noise has most of the weight, without residuals or without a term but 1. */
int growth_find(const struct problem *problem, const enum least_squares_role *roles, struct linear *linear,
                struct plugin_message *message);

/* Adds to LINEAR, the described fit of PROBLEM with ROLES, the noise that the request asks for: the same
 * everywhere, or by the terms of the mean (N-1 and N-2 of the same chapter). The estimates and their
 * covariance become those which are found with it, but for the rule's. What cannot be found is homoscedastic
 * instead, with a note. The covariance is that of the fit without bounds: a coefficient at its bound is no
 * surer than it would be without. */
int scatter_find(const struct problem *problem, const enum least_squares_role *roles, struct linear *linear,
                 struct fit_result *result, struct plugin_message *message);

#endif
