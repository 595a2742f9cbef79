/*
 * A fit under way: a table, its groups and a fit plugin. fitting_run streams the rows through the plugin as
 * often as it asks; fitting_finish lets it tell its results to listeners: a model file, a table for people,
 * or both.
 */
#ifndef ASSAY_PLUGIN_FITTING_H
#define ASSAY_PLUGIN_FITTING_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/plugin/folds.h"
#include "engine/plugin/hull.h"
#include "engine/plugin/kept-rows.h"
#include "engine/plugin/model-breaks.h"
#include "engine/plugin/table.h"
#include "plugins/interface/fit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FITTING_PASSES_MAX = 10000 }; /* over the rows: more means a plugin that does not end */

/* How far a fit is. */
struct fitting_stage {
    const char *of;       /* what is counted: "rows", "groups", "folds", "candidates" */
    uint64_t done, total; /* TOTAL 0: not known */
    uint32_t pass;        /* over the rows: 1, 2, ...; of others 0 */
};
/* Hears it, many times a second. NULL: something else is about to be printed. */
typedef void (*fitting_progress)(void *context, const struct fitting_stage *stage);

/* What is asked for; names are looked for in the table. Borrowed for the life of the fitting. */
struct fitting_options {
    const char *method;   /* "linear": the plugin fit-linear */
    const char *response; /* a column */
    const char *terms;    /* or NULL for the plugin's default */
    const char *const *sizes;
    size_t size_count;
    const char *const *by;
    size_t by_count;
    const char *weights;         /* or NULL */
    const char *const *settings; /* of the plugin's parameters: "NAME=VALUE", the value with its unit */
    size_t setting_count;
    uint64_t seed;                          /* of whatever the plugin draws */
    bool suggested;                         /* the terms are not the user's own */
    const char *other_method, *other_terms; /* what an archive suggests for another method; or NULL */
    const struct model_breaks *breaks;      /* of another model, for a plugin that takes them; or NULL */
    const char *folds; /* value of the parameter `folds` where the plugin has one that is not set; or NULL */
    enum folds_unit folds_by;
    const char *const *fold_columns; /* of FOLDS_BY_COLUMNS */
    size_t fold_column_count;
    /* How many rows stay in memory at most (kept-rows.h; an even number, KEPT_ROWS_MAX), 0 for none. */
    size_t kept_rows;
    fitting_progress progress; /* or NULL */
    void *progress_context;
};

/* Hears the results in this order: the formula once; every group, fitted or skipped, in the natural order of
 * their labels (numbers by value, dahu-2 before dahu-10). Each returns 0, or negative with FAILURE filled,
 * which ends it. */
struct fitting_listener {
    void *context;
    int (*formula)(void *context, const struct fit_formula *formula, struct failure *failure);
    int (*group)(void *context, const struct fit_group *group, struct failure *failure);
    int (*skipped)(void *context, uint32_t group, uint64_t rows, const char *reason, struct failure *failure);
};

/* Takes what the plugin notes while it works: one sentence. */
typedef void (*fitting_note)(void *context, const char *sentence);

struct fitting;

/* Loads the plugin and reads the table, which stays the caller's and must live longer. NOTE may be NULL. */
int fitting_run(const struct installation *installation, struct table *table,
                const struct fitting_options *options, fitting_note note, void *note_context,
                struct fitting **ret, struct failure *failure);
/* Once. With no group fitted it still ends well: the listeners know. */
int fitting_finish(struct fitting *fitting, const struct fitting_listener *const *listeners, size_t count,
                   struct failure *failure);
void fitting_free(struct fitting *fitting);
void fitting_cleanup(struct fitting **fitting); /* for cleanup() */

/* To whom it was asked for. STAGE as fitting_progress has it. */
void fitting_tell(const struct fitting *fitting, const struct fitting_stage *stage);

const struct assay_plugin *fitting_plugin(const struct fitting *fitting);
const struct fitting_options *fitting_options(const struct fitting *fitting);
const struct table *fitting_table(const struct fitting *fitting);
uint64_t fitting_rows(const struct fitting *fitting);
uint32_t fitting_group_count(const struct fitting *fitting);
/* The label of GROUP in the J-th column of options->by. */
const char *fitting_label(const struct fitting *fitting, uint32_t group, size_t j);
/* Where the rows lay, and the columns that it is told of, in its order. */
const struct hull *fitting_hull(const struct fitting *fitting);
const char *fitting_hull_column(const struct fitting *fitting, size_t i);
/* The texts of the column NAME, if the plugin reads it as a category; false otherwise. Valid until the next
 * call for that column. */
bool fitting_levels(const struct fitting *fitting, const char *name, struct plugin_levels *ret);
/* What the plugin asked for and was asked; of the rows that were kept, columns are in the order of its needs,
 * labels are those of options->by, its categories, and others that folds are by. NULL: none were kept. */
const struct fit_needs *fitting_needs(const struct fitting *fitting);
const struct fit_request *fitting_request(const struct fitting *fitting);
const struct kept_rows *fitting_kept_rows(const struct fitting *fitting);
/* How the I-th row that was kept is compared with the model; that of most says what it stands for itself. */
void fitting_compare(const struct fitting *fitting, size_t i, struct fit_comparison *ret);
/* The column of the J-th label of the rows that were kept. */
const char *fitting_label_column(const struct fitting *fitting, size_t j);
/* By what the rows are parted into folds: as asked, but by row where there is no factor to tell settings
 * apart. The columns that do it are those that the plugin needs besides response and weights, or those that
 * were asked for. */
enum folds_unit fitting_folds_by(const struct fitting *fitting);
size_t fitting_fold_column_count(const struct fitting *fitting);
const char *fitting_fold_column(const struct fitting *fitting, size_t i);
/* The folds, COUNT of them, of the rows that were kept, in *RET, which the caller frees; where all rows were,
 * they are those that the plugin was told. 0 or -ENOMEM. */
int fitting_kept_folds(const struct fitting *fitting, uint32_t count, uint8_t **ret);
/* What is told in place of residuals: the SET-th kind of distances, after fitting_finish; false: there are no
 * more. Valid until fitting_free. */
bool fitting_distances(const struct fitting *fitting, size_t set, struct fit_distances *ret);
/* The value of the I-th of the plugin's parameters, as it was set or by default. */
double fitting_parameter(const struct fitting *fitting, size_t i);
/* The unit of column NAME (UCUM), or NULL where it is not known. */
const char *fitting_unit(const struct fitting *fitting, const char *name);

#endif
