/*
 * Where the next points belong: of the rows of a design, those that make a model surer. The coefficients'
 * covariance of every group is where it begins, and a unit's information is weight x x' / sigma^2, x being
 * its terms and sigma the group's (optimal-rows.h has the criteria and how rows are chosen).
 *
 * Groups. A row is measured in every group, on all cores and nodes at once, and what counts is the average
 * over the groups. Groups that are as sure as each other, but for sigma, are one: their covariances divided
 * by sigma^2 are the same, as those of the cores of one run are. Where a column of the design is one that the
 * model has groups by (a factor, or control.turbo), a row is measured in the groups that have its value.
 *
 * Cost. Of a row, the time that the slowest of its groups needs, by the model, and no less than that group's
 * sigma: shorter times the model cannot tell from nothing. A row whose predicted time is 0 or less is not
 * chosen, since nobody knows what it would cost; the average over the domain has it all the same.
 *
 * Weights. Without any, a unit's variance is that of the model's noise at the row, at least a millionth of
 * the group's sigma^2; where the model tells none that varies, it is sigma^2 everywhere. Weights of one's own
 * say otherwise: a unit's variance is sigma^2 / weight. A model that was fitted with weights needs them here
 * too. Of one that was fitted without, sigma^2 is taken for the mean of the variances over the domain: only
 * how weights compare with one another counts.
 */
#ifndef ASSAY_PLUGIN_NEXT_ROWS_H
#define ASSAY_PLUGIN_NEXT_ROWS_H

#include "engine/design/design.h"
#include "engine/foundation/failure.h"
#include "engine/plugin/model-fit.h"
#include "engine/plugin/optimal-rows.h"

#include <stdbool.h>
#include <stddef.h>

struct next_request {
    const struct model_fit *fit;
    const size_t *groups; /* that are to be served */
    size_t group_count;
    const struct design *candidates;
    const double *shares; /* by candidate, in averages over the domain; NULL: all 1 */
    enum optimal_criterion criterion;
    double budget; /* s, or whatever COST is in; INFINITY: none */
    size_t rows_most;
    bool distinct;
    const char *cost;    /* expression over the columns of the candidates and the response; NULL: as above */
    const char *weights; /* likewise; NULL: none */
};

struct next_rows {
    struct optimal_rows rows; /* of candidates */
    double *costs;            /* owned: of each row, in s or as COST has it; NULL: each row costs one */
    double cost;              /* of all: by the model, without the floor of sigma */
    bool cost_is_time;
    bool unit_assumed; /* the model does not say that its response is in s */
    bool noise_varies; /* sigma is not the same everywhere, by the model or by the weights */
    size_t barred;     /* candidates whose predicted time is 0 or less */
    /* Of the predicted response: root of the mean variance over domain and groups, in the response's unit;
     * and the mean of the prediction's size there. */
    double error_before, error_after, response;
    size_t undefined; /* groups that were left out: the fit has no standard errors of them */
    size_t distinct;  /* classes of groups that are as sure as each other, but for sigma */
    size_t classes;   /* what was made of them: when there are too many, one stands for its neighbours */
};

/* Whether a ROW of DESIGN would be measured in one of the groups, if some of its columns make groups. */
bool next_rows_has_group(const struct model_fit *fit, const size_t *groups, size_t count,
                         const struct design *design, size_t row);

int next_rows_find(const struct next_request *request, struct next_rows *ret, struct failure *failure);
/* Fine on zeroed memory. */
void next_rows_clear(struct next_rows *next);

#endif
