/*
 * The moments of a population of machines, each seen on several days (the thesis of T. Cornebize, 2021,
 * chapter 6): coefficients x of machine c on day d are
 *
 *     x_cd = mu + S_c + T_cd ,   S ~ N(0, Sigma_S) between machines, T ~ N(0, Sigma_T) between days
 *
 * with the estimates of README.md. Vectors have P numbers, matrices P x P, row by row.
 */
#ifndef ASSAY_FIT_POPULATION_MOMENTS_H
#define ASSAY_FIT_POPULATION_MOMENTS_H

#include "plugins/fit-population/terms.h"

#include <stdbool.h>
#include <stddef.h>

enum days_rule { DAYS_POOLED, DAYS_MEAN };

struct moments {
    size_t p, machines, rows, repeated;               /* repeated: machines with more than one day */
    double *means;                                    /* of the machines less mu, one after the other */
    double inverse_days;                              /* mean over the machines of 1 / days */
    double mu[COEFFICIENTS_MAX];                      /* mean of the machines' means */
    double days[COEFFICIENTS_MAX * COEFFICIENTS_MAX]; /* Sigma_T; zeros where `repeated` is 0 */
    double least[COEFFICIENTS_MAX], greatest[COEFFICIENTS_MAX]; /* of all rows */
};

/* MACHINES many, the rows of machine i from STARTS[i] to before STARTS[i + 1], none without rows; CODES says
 * which of them are meant, COLUMNS has a column for each coefficient. 0 or -ENOMEM. */
int moments_init(struct moments *moments, size_t p, const double *const *columns, const size_t *starts,
                 const uint32_t *codes, size_t machines, enum days_rule rule);
void moments_clear(struct moments *moments);

/* Turns MATRIX into the nearest one (in the metric of SCALE, a length for each coefficient) without negative
 * eigenvalues; LEAST is the least that one may be, in squares of the scale. Whether it had to be changed. */
bool moments_make_definite(size_t p, double *matrix, const double *scale, double least);

#endif
