/* A fit: a table, the groups of its rows, a fit plugin, and the resulting model. The host reads the table,
 * binds the plugin's parameters and columns, parses the formula, calls fit() once a group, cross-validates
 * by leaving out folds of whole settings, and tests for lack of fit, in the same way for all methods. */
#ifndef ASSAY_FIT_FIT_H
#define ASSAY_FIT_FIT_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/model/score.h"
#include "engine/plugin/library.h"
#include "engine/report/report.h"
#include "engine/table/table.h"

#include <assay/model.h>

enum fit_folds_by { FIT_FOLDS_BY_SETTING, FIT_FOLDS_BY_ROW, FIT_FOLDS_BY_COLUMNS };

/* The options of a fit. All members are borrowed. */
struct fit_options {
    const char *response; /* a column or an expression */
    const char *terms;    /* NULL: the plugin's own */
    const char *const
        *sizes; /* the columns of named models, and of the plugin's column parameters in order */
    size_t size_count;
    const char *const *by;
    size_t by_count;
    const char *weights;         /* a column or an expression; or NULL */
    const char *const *settings; /* of the plugin's parameters: "NAME=VALUE" */
    size_t setting_count;
    const char *where; /* only rows for which this is true; or NULL */
    bool with_flagged;
    bool suggested; /* the terms are an experiment's, not the user's */
    uint64_t seed;
    size_t folds; /* 0: no cross-validation */
    enum fit_folds_by folds_by;
    const char *const *fold_columns;
    size_t fold_column_count;
    /* For a cross-validation over the whole table, which must be loaded: the fold of each row, below
     * `folds`, and memory for the predictions of each row by the fit without its fold. NULL: each group
     * has folds of its own. */
    const uint8_t *row_folds;
    struct score_row *held_out;
    bool keep_predictions; /* fit->mean and fit->scaled are wanted */
    /* Called several times a second with the progress; OF: "rows" or "groups". */
    void (*progress)(void *context, const char *of, uint64_t done, uint64_t total);
    void *progress_context;
};

struct fit {
    struct model *model;
    struct report *tables; /* tables of the plugin: a section a group */
    char **notes;          /* on the fit as a whole */
    size_t note_count;
    /* With keep_predictions: the model's mean for each row of the table, and the error of the row in
     * standard deviations of the noise; NaN: not predicted. */
    double *mean, *scaled;
    double response_scale; /* from the table's response to the model's unit */
};

/* Reads TABLE, which is open, and fits it; a table that is loaded already must have all columns. Succeeds
 * also if no group could be fitted: model->skipped has the reasons. */
int fit_run(const struct library *library, struct table *table, const struct fit_options *options,
            struct fit **ret, struct failure *failure);
void fit_free(struct fit *fit);     /* NULL is fine */
void fit_cleanup(struct fit **fit); /* for cleanup() */

#endif
