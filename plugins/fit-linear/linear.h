/*
 * What the files of this plugin share: the instance, and how its work is parted.
 *
 * The rows come in passes, each for a stage. STAGE_SUMS adds up all that estimates need, always in one pass.
 * When it is over every group can be settled (settle.h): selection, outliers and robust weights included, so
 * that its estimates are the final ones. STAGE_NOISE is whatever the noise needs rows for, with the estimates
 * of each group known. Then telling.h writes.
 */
#ifndef ASSAY_FIT_LINEAR_LINEAR_H
#define ASSAY_FIT_LINEAR_LINEAR_H

#include "plugins/fit-linear/formula.h"
#include "plugins/fit-linear/moments.h"
#include "plugins/interface/fit.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LINEAR_NEEDS_MOST = FORMULA_FACTORS_MOST + 2, /* the factors, the response, the weights */
};

/* The entries of fit_operations.parameters (parameters.c), in their order. */
enum parameter {
    PARAMETER_SELECT,
    PARAMETER_THRESHOLD,
    PARAMETER_OUTLIERS,
    PARAMETER_ROBUST,
    PARAMETER_FOLDS,
    PARAMETER_COUNT,
};
extern const struct plugin_parameter linear_parameters[PARAMETER_COUNT];

enum select { SELECT_AUTO, SELECT_NONE, SELECT_ELIMINATION, SELECT_BIC };
enum robust { ROBUST_NONE, ROBUST_HUBER, ROBUST_BISQUARE };

enum stage {
    STAGE_SUMS,
    STAGE_NOISE,
};

struct fit {
    const struct plugin_host *host;
    const struct fit_request *request;
    enum stage stage;
    struct formula formula;
    struct moments *moments;
    const char *needs[LINEAR_NEEDS_MOST];
    size_t need_count;
    /* Which need each input is: one for each formula column, the response, the weights if there are. The same
     * column may be two of them. */
    size_t input_need[LINEAR_NEEDS_MOST];
    size_t input_count;
    uint64_t rows;
};

#endif
