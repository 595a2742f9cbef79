/*
 * The rule of peanut and cashew for N-2 (T. Cornebize), on the terms of the formula:
 *
 *  1. the response's mean over rows that are equal in all terms ("sizes");
 *  2. the intercept: the mean of those means where the volume (the term of the most factors, the first of
 * them: m*n*k) is at most 100 times the least volume; 0 if it is negative;
 *  3. least squares, without intercept, of (mean - intercept) on the terms;
 *  4. the standard deviation (n - 1) of every size that has two rows or more, and 2 and 3 on these.
 *
 * With the terms 1+mnk+mk+nk that is peanut's and cashew's later rule (head_mnk_mk_nk), with those of M-2
 * their earlier one (generate_model_mnk_mn_mk_nk).
 *
 * The trimmed rule is cashew's of another day (its commit c0a430e): in 2 a volume is small up to 3 times the
 * least, and of the values there only those below their own quantile 0.95 (type 7) count; where none does,
 * the intercept is 0.
 */
#ifndef ASSAY_FIT_LINEAR_NOISE_RULE_H
#define ASSAY_FIT_LINEAR_NOISE_RULE_H

#include "plugins/fit-linear/noise-search.h"

enum noise_rule { NOISE_RULE_PLAIN, NOISE_RULE_TRIMMED };

/* The rule's mean in b (its intercept in b[0], whether the formula has one or not) and its standard deviation
 * in c, from the rows of FOLDS. 1; 0 when it cannot be followed, with *RET_REASON a clause; -ENOMEM. */
int noise_rule_run(struct noise_design *design, enum noise_rule rule, uint32_t folds, struct noise_point *ret,
                   const char **ret_reason);

#endif
