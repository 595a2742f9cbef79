/*
 * K-fold cross-validation by the host, for plugins that do none themselves (no `cv_rmse` among their values):
 * K more instances, each without one fold of the rows, predict the rows of that fold. It stands between a
 * fitting and its listeners, and adds to every group
 *
 *     cv_rmse       root of the mean squared error on rows that were left out, in the response's unit
 *     cv_relative   cv_rmse / mean |response| of these rows
 *     cv_log_score  mean logarithm of the density that the noise gives them
 *     folds         how many of the K had rows of the group
 *
 * each NaN where it is not defined: a fold's instance could not fit the group, or tells no noise. It is done
 * for tables whose rows are all kept (KEPT_ROWS_MAX), of at most CROSS_VALIDATION_GROUPS_MAX groups: what
 * is told of a table does not depend on the time that it takes.
 */
#ifndef ASSAY_PLUGIN_CROSS_VALIDATION_H
#define ASSAY_PLUGIN_CROSS_VALIDATION_H

#include "engine/plugin/fitting.h"
#include "engine/plugin/held-out.h"
#include "engine/plugin/refit.h"

enum {
    CROSS_VALIDATION_FOLDS = 5,
    CROSS_VALIDATION_GROUPS_MAX = 1 << 14,
};

/* Errors on the rows of each fold, but FOLDS_NONE, by REFIT without it, whose members folds and left_out
 * are set here: into RET, one for each group. TOLD: progress is told, fold by fold. */
int cross_validation_run(struct refit *refit, const uint8_t *folds, uint32_t count, bool told,
                         struct held_out *ret, struct failure *failure);

struct cross_validation_options {
    uint32_t folds; /* 2 to FOLDS_MAX; 0: none, everything passes through */
    fitting_note note;
    void *note_context; /* hears why there is none */
};

struct cross_validation;

/* LISTENERS (COUNT of them, borrowed) hear what this one hears, with more values. */
int cross_validation_new(const struct fitting *fitting, const struct cross_validation_options *options,
                         const struct fitting_listener *const *listeners, size_t count,
                         struct cross_validation **ret);
const struct fitting_listener *cross_validation_listener(const struct cross_validation *validation);
void cross_validation_free(struct cross_validation *validation);
void cross_validation_cleanup(struct cross_validation **validation); /* for cleanup() */

#endif
