/* Searches for the best of many scenarios without running all of them. */
#ifndef ASSAY_PREDICT_SEARCH_H
#define ASSAY_PREDICT_SEARCH_H

#include "engine/predict/prediction.h"

enum {
    SEARCH_BUDGET_MAX = 10000, /* evaluations */
    SEARCH_SHOWN_MAX = 10,     /* scenarios that are kept */
    SEARCH_SECONDS_MAX = 86400 * 30,
};

/*
 * Leaves the best scenarios of all combinations of the values that are set, best first, not yet run: by the
 * column with a goal, in at most BUDGET runs of the plugin and about BUDGET_NS, unless that is 0: no run
 * begins after it, and one is made in any case. If there are more combinations than BUDGET, or a time is
 * given: compass search on their grid (R. Hooke, T. A. Jeeves, J. ACM 8(2), 1961) from random places, its
 * steps from a quarter of each parameter's values down to one; the seed of the prediction gives the places. A
 * scenario without an answer counts as a run and is the worst; a combination that is left out (scenarios.h)
 * does not. An interrupted search that has found something leaves the best up to then
 * (prediction->is_interrupted). FAILURE_INPUT: no column has a goal, no scenario has a number, or the
 * scenarios are those of a table.
 */
int search_best(struct prediction *prediction, size_t budget, int64_t budget_ns, struct failure *failure);

#endif
