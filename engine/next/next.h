/*
 * Where the next points belong: of the rows of a design, those that make a linear model surer. The
 * coefficients' covariance of every group is where it begins, and a unit's information is weight x x' /
 * sigma^2, x being its terms and sigma the group's (optimal-rows.h has the criteria and how rows are chosen).
 *
 * Candidates are made (candidates.h) where the model was observed, in all of its groups: within the ranges of
 * its columns, of its terms and of its hull (model/extrapolation.h), within the bounds and conditions of the
 * experiment that will measure them, and as the user asks with `within`; or they are the rows of a table.
 *
 * Groups. A row is measured in every group, on all cores and nodes at once, and what counts is the average
 * over the groups. Groups whose covariances over sigma^2 are the same, as those of the cores of one run are,
 * count as one; of more than 16 different ones the last stands for the rest, with the mean of their
 * covariances. Where a column of the candidates is one that the model has groups by (a factor, or
 * control.turbo), a row is measured in the groups that have its value. Errors are those of every group by
 * itself, averaged.
 *
 * Cost. Of a row, the time that the slowest of its groups needs, by the model, and no less than that group's
 * sigma: shorter times the model cannot tell from nothing. A row whose predicted time is 0 or less is not
 * chosen, since nobody knows what it would cost; the average over the domain has it all the same.
 *
 * Limits. A row comes at most `repeats_most` times (0: no limit), and, unless it is the only candidate, has
 * at most half of the budget, or of the rows. A row for precision that gains less than NEXT_LEAST_GAIN times
 * the gain of the best row is left out. The share `lack_share` of the budget, and of the rows, is for rows
 * that show lack of fit (optimal-rows.h). What the limits leave of the budget is not spent, and noted. Errors
 * and gains are those of all rows.
 *
 * Weights. Without any, a unit's variance is that of the model's noise at the row, at least a millionth of
 * the group's sigma^2; where the noise is homoscedastic, it is sigma^2 everywhere. Weights of one's own say
 * otherwise: a unit's variance is sigma^2 / weight. A model that was fitted with weights needs them here too.
 * Of one that was fitted without, sigma^2 is taken for the mean of the variances over the domain: only how
 * weights compare with one another counts.
 */
#ifndef ASSAY_NEXT_NEXT_H
#define ASSAY_NEXT_NEXT_H

#include "engine/design/design.h"
#include "engine/model/evaluator.h"
#include "engine/next/candidates.h"
#include "engine/next/optimal-rows.h"

/* The least gain of a row for precision, with its repetitions, as a share of that of the best row. */
#define NEXT_LEAST_GAIN 0.01

struct next_request {
    const struct model *model;
    const char *group;                    /* the group to improve; NULL: all */
    const struct design_factors *factors; /* of the experiment; NULL: none is known */
    struct expression *const *conditions; /* of the experiment, over its factors */
    size_t condition_count;
    const char *const *within, *const *settings; /* "n=1..5000"; "NAME=VALUE" of other columns */
    size_t within_count, setting_count;
    const char *candidates; /* a CSV file; NULL: they are made */
    enum optimal_criterion criterion;
    double budget; /* s, or whatever COST is in; INFINITY: none */
    size_t rows_most;
    uint32_t repeats_most; /* of one row */
    double lack_share;     /* of the budget, for lack of fit: 0 or more, below 1 */
    const char *cost;    /* expression over the columns of the candidates and the response; NULL: as above */
    const char *weights; /* likewise; NULL: none */
};

struct next_rows {
    const struct next_request *request;
    struct evaluator *evaluator; /* its inputs are the model's factors */
    size_t *groups; /* the groups that are improved: of the requested ones, those with a covariance that more
                       measurements reduce */
    size_t group_count;
    struct candidate_range *ranges, *domain; /* by factor: where candidates may be; where it was observed */

    struct design *candidates; /* conforming to the experiment */
    double *shares;            /* by candidate, in averages over the domain */
    bool *barred;              /* by candidate: it is never chosen */
    size_t candidate_count;    /* of them, those that are possible */
    double *terms, *weights;   /* by candidate; WEIGHTS NULL: all 1 */
    double *places;            /* by candidate, where it lies in the ranges of the factors */
    double *costs, *times;     /* by candidate; COSTS NULL: all 1. What the model predicts, in s */

    struct optimal_rows rows; /* of candidates */
    double cost;              /* of them all: by the model, without the floor of sigma */
    bool cost_is_time;
    /* Of the predicted response: root of the mean variance over domain and groups, in the response's unit;
     * and the mean of the prediction's size there. */
    double error_before, error_after, response;
    char **notes; /* what the user should know: sentences */
    size_t note_count;
};

/* NEXT is to be cleared after failures too. REQUEST must outlive it. */
int next_find(const struct next_request *request, struct next_rows *next, struct failure *failure);
void next_clear(struct next_rows *next);

/* Of row I of next->rows: what it costs, by the model without the floor of sigma. */
double next_cost(const struct next_rows *next, size_t i);

/* ---- Used by this room alone */

/* Fills ranges, domain, candidates, shares, barred (domain.c). */
int next_make_candidates(struct next_rows *next, struct failure *failure);

#endif
