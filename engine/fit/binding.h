/* A fit's options bound to the plugin and the table: which columns are read, and the request that fit() gets.
 * Used by this room alone. */
#ifndef ASSAY_FIT_BINDING_H
#define ASSAY_FIT_BINDING_H

#include "engine/fit/fit.h"
#include "engine/fit/rows.h"
#include "engine/model/formula.h"
#include "engine/plugin/parameters.h"

struct fit_binding {
    const struct library *library;
    const struct fit_options *options;
    struct table *table;
    struct parameters parameters;
    struct formula written, formula;    /* as written; with its dummies, after the table is loaded */
    struct model_column *model_columns; /* of the table, for the formula; levels after loading */
    size_t model_column_count;

    const char **numbers, **categories; /* columns to read from the table, each once */
    size_t number_count, category_count;
    struct rows_layout layout;
    size_t *by; /* indices into table->categories */
    size_t *fold_categories;

    struct fit_request view; /* what fit() gets */
    struct fit_levels *levels;
    char *response_unit;       /* of the model */
    bool is_positive;          /* the response is above 0 by its nature, by its unit or its usual name */
    const char **column_units; /* of the plugin's columns */
};

/* Binds OPTIONS to the plugin and the open table, and finds the columns to read. BINDING is to be cleared
 * after failures too. */
int fit_binding_bind(struct fit_binding *binding, const struct library *library, struct table *table,
                     const struct fit_options *options, struct failure *failure);
/* Binds OPTIONS, reads the table, and makes the request of fit(). BINDING is to be cleared after failures
 * too. */
int fit_binding_make(struct fit_binding *binding, const struct library *library, struct table *table,
                     const struct fit_options *options, struct failure *failure);
void fit_binding_clear(struct fit_binding *binding);

#endif
