/*
 * Which of many candidate rows tell most about the coefficients of a linear model: optimal design of
 * experiments (V. V. Fedorov, "Theory of Optimal Experiments", 1972; A. C. Atkinson, A. N. Donev and R. D.
 * Tobias, "Optimum Experimental Designs, with SAS", 2007, chapters 11, 12 and 19). Numbers in, numbers out:
 * nothing here knows of files, factors or models.
 *
 * A unit measured at candidate x, a vector with an entry a term, has variance sigma^2 / w, w being the
 * candidate's weight, and adds w x x' / sigma^2 to the information, the inverse of the covariance C of the
 * estimates, which is where it begins. Groups have estimates of their own; a candidate is measured in all
 * groups of its kind, and what is best is best on the average of the groups.
 *
 *     D    the largest log det of the information: the smallest ellipsoid around the coefficients
 *     I    the smallest average over the candidates, by their shares, of w x'Cx: the variance of the
 *          predicted response, relative to that of a unit where the weights are not all one
 *
 * Rows for precision are added one by one, each time the one that gains most, and with a budget also the one
 * that gains most for its cost; then each is exchanged for the candidate that gains more, until none does
 * (Fedorov), and what still fits is added; the better of the two ends is the result. Rows that gain too
 * little are then left out, and what they leave free is filled again. Covariances are updated by the formula
 * of J. Sherman and W. J. Morrison (Ann. Math. Stat. 21, 1950), terms and responses scaled before. The same
 * problem gives the same rows on every machine.
 *
 * Such rows lie at borders, and cannot show that the model is wrong between them. A share of the budget goes
 * to rows for lack of fit: one by one the candidate that is farthest from all rows of its kind (R. W. Kennard
 * and L. A. Stone, "Computer aided design of experiments", Technometrics 11, 1969), repeated where the design
 * has fewer repetitions, which show the pure error, than such rows.
 */
#ifndef ASSAY_NEXT_OPTIMAL_ROWS_H
#define ASSAY_NEXT_OPTIMAL_ROWS_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTIMAL_ROWS_MAX = 1000 };

enum optimal_criterion { OPTIMAL_D, OPTIMAL_I };

struct optimal_group {
    const double *covariance; /* of the estimates, TERMS x TERMS, row by row */
    double sigma;             /* standard deviation of a unit of weight 1; above 0 */
    double share;             /* in the average over the groups; above 0 */
    uint32_t kind;            /* candidates of this kind are measured in it */
};

/* All members are borrowed; all numbers are finite. */
struct optimal_problem {
    size_t candidate_count, term_count, group_count;
    const double *terms;   /* a row of TERM_COUNT values a candidate */
    const double *weights; /* by candidate, above 0; NULL: all 1 */
    const double *shares;  /* by candidate, 0 or more, in the average of I; NULL: all 1 */
    const double *costs;   /* by candidate, above 0; NULL: all 1 */
    const uint32_t *kinds; /* by candidate; NULL: all 0 */
    const bool *barred;    /* by candidate: counts in the average, is never chosen; NULL: none */
    const struct optimal_group *groups;
    enum optimal_criterion criterion;
    double budget;    /* the costs of the rows add up to no more; INFINITY: none */
    size_t rows_most; /* at most OPTIMAL_ROWS_MAX */
    /* Limits of one candidate: how often it is chosen (0: any), and the share of BUDGET and ROWS_MOST that it
     * may have (0: all); the share is no limit where not one candidate is within it. */
    uint32_t repeats_most;
    double repeats_share;
    double least_gain; /* candidates for precision gain this share of what the best of them gains; 0: any */
    /* Rows for lack of fit: their share of BUDGET and ROWS_MOST (0: none), and where candidates lie,
     * PLACE_COUNT numbers each, from 0 to 1 over the domain. */
    double lack_share;
    const double *places;
    size_t place_count;
};

struct optimal_rows {
    size_t *items;     /* owned: candidates, those first that gain most with those before them */
    double *gains;     /* owned: of each, what the design would lose without it */
    size_t count;      /* 0: not one candidate fits into the budget */
    size_t lack_count; /* the number of rows, the last ones, that test for lack of fit */
    double cost;
    /* Gain: of D, by how much the log det of the information grew; of I, by how much the average variance
     * went down. Averages over the groups, by their shares. */
    double gain;
};

/* Refused: a covariance that is not positive semidefinite. */
int optimal_rows_find(const struct optimal_problem *problem, struct optimal_rows *ret,
                      struct failure *failure);
void optimal_rows_clear(struct optimal_rows *rows); /* fine on zeroed memory */

/* Adds the information of a unit at Z, a vector of N numbers over the standard deviation there, to a
 * covariance: C - C z z'C / (1 + z'C z). WORK has N numbers. */
void optimal_rows_add(double *covariance, const double *z, size_t n, double *work);

#endif
