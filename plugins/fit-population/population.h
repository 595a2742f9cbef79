/*
 * A population of machines, each seen on several days (T. Cornebize, thesis, Grenoble 2021, chapter 6):
 * coefficients x of machine c on day d are
 *
 *     x_cd = mu + S_c + T_cd ,   S ~ N(0, Sigma_S) between machines, T ~ N(0, Sigma_T) between days
 *
 * or a mixture of such S with one Sigma_T. Matrices are p x p and symmetric; README.md has the estimates.
 */
#ifndef ASSAY_FIT_POPULATION_POPULATION_H
#define ASSAY_FIT_POPULATION_POPULATION_H

#include "engine/numerics/mixture.h"

#include <assay/fit.h>

enum { COEFFICIENTS_MAX = MIXTURE_DIMENSIONS_MAX, POPULATIONS_MAX = 4 };
enum parameter { COEFFICIENTS, MACHINE, COMPONENTS, SHAPE, DAYS, STARTS };
enum shape { SHAPE_BEST, SHAPE_SHARED, SHAPE_OWN };
enum days { DAYS_POOLED, DAYS_MEAN };

struct machines {
    size_t p, count, rows;
    const double *columns[COEFFICIENTS_MAX];            /* of the rows; the response is the first */
    size_t *order;                                      /* the rows, machine by machine */
    size_t *starts;                                     /* of each machine in it; and their end */
    double *means;                                      /* count x p, column-major */
    size_t repeated;                                    /* machines with more than one row */
    double within[COEFFICIENTS_MAX * COEFFICIENTS_MAX]; /* Sigma_T; NaN where `repeated` is 0 */
};

/* The machines of the rows, in natural order of their names, and how their days differ. */
int machines_init(struct machines *machines, const struct fit_rows *rows, const struct fit_request *request);
void machines_clear(struct machines *machines);
/* "node 3, cpu 0" */
void machines_name(const struct machines *machines, size_t machine, const struct fit_rows *rows,
                   const struct fit_request *request, char *ret, size_t size);

struct component {
    char name[32]; /* "typical", "slow", "slow-2", "fast" */
    double weight, mu[COEFFICIENTS_MAX], sigma[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
};

struct population {
    size_t count;
    bool shared;
    struct component of[POPULATIONS_MAX];   /* in order of the first coefficient's mean */
    double log_likelihood, bic, parameters; /* of the machines' means; how many were estimated */
    size_t *component;                      /* of each machine, the one that it most likely is of */
};

/* 0; -EDOM: no mixture as asked for has machines enough in each; -ENOMEM. */
int population_find(const struct machines *machines, const struct fit_request *request,
                    struct population *ret);
void population_clear(struct population *population);

/* Tables of the machines and of the runs by their distance from the mean, and what they say as a whole. */
int distances_give(const struct machines *machines, const struct population *population,
                   const struct fit_rows *rows, const struct fit_request *request, struct fit_result *result);

#endif
