/*
 * One more instance of a fitting's plugin, on the rows that the fitting kept: without some of them
 * (cross-validation), or asked for something else (alternatives). Gives the model in memory.
 */
#ifndef ASSAY_PLUGIN_REFIT_H
#define ASSAY_PLUGIN_REFIT_H

#include "engine/plugin/fitted-model.h"
#include "engine/plugin/fitting.h"
#include "engine/plugin/folds.h"

struct refit {
    const struct fitting *fitting;
    const struct fit_request *request; /* as the fitting's own but for what shall be other; it can need only
                                          columns that the fitting's plugin needed */
    const uint32_t *groups;            /* of each kept row */
    uint32_t group_count;
    const uint8_t *folds; /* of each kept row (folds.h); NULL: all rows are seen, otherwise not those of
                             FOLDS_NONE */
    uint8_t left_out;     /* the fold whose rows are not seen */
};

/* A failure is the plugin's own, or that of columns that were not kept. What the plugin notes is not
 * heard. */
int refit_run(const struct refit *refit, struct fitted_model **ret, struct failure *failure);

#endif
