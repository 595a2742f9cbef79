/*
 * What the files of this plugin share: the instance, and how its work is parted.
 *
 * One pass over the rows adds up all that estimates need, and keeps rows where outliers, robust weights or
 * the noise look at them again. Then every group is settled (settle.h): selection, outliers and robust
 * weights included, so that its estimates are the final ones; its noise is found (noise.h), and telling.h
 * writes both.
 */
#ifndef ASSAY_FIT_LINEAR_LINEAR_H
#define ASSAY_FIT_LINEAR_LINEAR_H

#include "plugins/fit-linear/cells.h"
#include "plugins/fit-linear/expansion.h"
#include "plugins/fit-linear/formula.h"
#include "plugins/fit-linear/moments.h"
#include "plugins/interface/fit.h"
#include "plugins/numerics/grouped-rows.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LINEAR_INPUTS_MAX = FORMULA_INPUTS_MAX + 2, /* of the formula, the response, the weights */
    LINEAR_NEEDS_MAX = FORMULA_COLUMNS_MAX + 2,
    LINEAR_HELD_MAX = 1 << 28, /* numbers: 2 GiB */
    LINEAR_HELD_BESIDES = 3,   /* columns besides the inputs */
};

/* The entries of fit_operations.parameters (parameters.c), in their order. */
enum parameter {
    PARAMETER_SELECT,
    PARAMETER_THRESHOLD,
    PARAMETER_OUTLIERS,
    PARAMETER_ROBUST,
    PARAMETER_FOLDS,
    PARAMETER_NOISE,
    PARAMETER_DISTRIBUTION,
    PARAMETER_COUNT,
};
extern const struct plugin_parameter linear_parameters[PARAMETER_COUNT];

enum select { SELECT_AUTO, SELECT_NONE, SELECT_ELIMINATION, SELECT_BIC };
enum robust { ROBUST_NONE, ROBUST_HUBER, ROBUST_BISQUARE };

struct fit {
    const struct plugin_host *host;
    const struct fit_request *request;
    struct formula formula;
    struct cells *cells;
    struct moments *moments; /* of the cells */
    const char *needs[LINEAR_NEEDS_MAX];
    size_t need_count;
    /* Which need each input is, or is made of: one for each formula input, the response, the weights if there
     * are. The same column may be several of them. */
    size_t input_need[LINEAR_INPUTS_MAX];
    size_t input_count;
    double *derived[LINEAR_INPUTS_MAX]; /* room for a piece of those that are made */
    uint32_t *cell_codes;               /* and for its rows' cells */
    uint64_t rows;
    /* Rows, where outliers or robust weights need to see them again: the inputs, the row's number in the
     * table, its fold and its cell. */
    bool holds;
    struct grouped_rows held;
    double *held_numbers, *held_folds, *held_cells; /* room for a piece */
    struct expansion *expansion;                    /* when all rows were seen */
    struct noise *noise;                            /* keeps rows where the noise needs them; or NULL */
};

/* What the parameter is. */
static inline double linear_parameter(const struct fit *fit, enum parameter parameter) {
    return fit->request->parameters[parameter];
}

/* How many folds are asked for; 1: none. */
static inline uint32_t linear_folds(const struct fit *fit) {
    double folds = linear_parameter(fit, PARAMETER_FOLDS);
    return folds > 1 ? (uint32_t)folds : 1;
}

#endif
