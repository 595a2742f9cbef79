/*
 * Binds one group of a model to a caller's columns once; each evaluation then takes some nanoseconds, from
 * any thread (struct predict_call of <assay/predict.h>). The values are the same as evaluator_row()'s, but
 * for the order in which the products of a term list over three columns are summed: that of M-2 is the same.
 *
 *     bound_new(evaluator, group, names) ; bound_follow(drawn group, seed) ; bound->call ... ; bound_free
 */
#ifndef ASSAY_MODEL_BOUND_H
#define ASSAY_MODEL_BOUND_H

#include "engine/model/evaluator.h"

#include <assay/predict.h>

enum { BOUND_VALUES_MAX = 252 }; /* names of a call */

struct bound;

/* EVALUATOR is of the model of GROUP; both must outlive what is made. NAMES as in predict_inputs.bind. RET
 * follows GROUP with the seed 0. FAILURE_INPUT: the model needs a column that NAMES does not have, or has
 * more columns and powers than a call can hold. OWNER is the caller's. */
int bound_new(const struct evaluator *evaluator, const struct model_group *group, const char *const *names,
              size_t count, void *owner, struct bound **ret, struct failure *failure);
void bound_free(struct bound *bound); /* NULL is fine */

/* From now on estimates and noise are those of GROUP, which is the bound one or drawn from it, and draws are
 * of SEED. No other thread may use the call meanwhile. */
void bound_follow(struct bound *bound, const struct model_group *group, uint64_t seed);

const struct predict_call *bound_call(const struct bound *bound);
struct bound *bound_of(const struct predict_call *call);
void *bound_owner(const struct bound *bound);
const char *bound_name(const struct bound *bound); /* the first name, for messages; "1" without one */

/* For the host alone, not for plugins. Mean and standard deviation of the noise; NaN: not defined. */
void bound_value(const struct bound *bound, const double *values, double *ret_mean, double *ret_sigma);
/* The same of COUNT rows, and whether each is outside: several times faster than one by one. COLUMNS has an
 * array for each name; that of a text may be NULL. RET_SIGMAS and RET_OUTSIDE may be NULL. */
void bound_rows(const struct bound *bound, const double *const *columns, size_t count, double *ret_means,
                double *ret_sigmas, bool *ret_outside);
/* Row ROW of COLUMNS: a value for each name; NaN where there is no column. */
void bound_values(const struct bound *bound, const double *const *columns, size_t row, double *ret);
/* Whether the row lies outside of the rows that the model was fitted to, and how far (extrapolation.h). */
bool bound_is_outside(const struct bound *bound, const double *values);
void bound_extrapolation(const struct bound *bound, const double *values, struct evaluator_value *ret);
/* Standard error of the mean, from the covariance of the estimates. */
double bound_standard_error(const struct bound *bound, const double *values);

#endif
