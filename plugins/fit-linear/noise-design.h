/*
 * The rows of one group as the columns that its mean and its noise are linear in: column 0 the constant, then
 * the terms that selection left. Columns are scaled by their greatest magnitude in the group, and turned
 * where they are negative, so that all lie in [0, 1]; but for those that change their sign, which lie in [-1,
 * 1] and have no part in the noise. The response is scaled by its own.
 */
#ifndef ASSAY_FIT_LINEAR_NOISE_DESIGN_H
#define ASSAY_FIT_LINEAR_NOISE_DESIGN_H

#include "plugins/fit-linear/noise-kernel.h"
#include "plugins/fit-linear/noise-rows.h"
#include "plugins/fit-linear/settle.h"

struct noise_column {
    size_t column; /* of the layout */
    size_t term;   /* expanded; of column 0 that of the intercept, if there is one */
    double scale;  /* signed; the value divided by it is what the design has */
    bool signless; /* it does not change its sign: it has a part in the noise */
};

struct noise_design {
    const struct fit *fit;
    const struct settled *settled;
    const struct noise_rows *rows;
    size_t width;
    struct noise_column columns[SUMS_COLUMNS_MAX];
    bool intercept, weighted;
    double unit; /* of the response */
    uint32_t folds;
    uint64_t count, fold_counts[MOMENTS_FOLDS_MAX];

    const uint32_t *cells; /* of the group */
    size_t cell_count;
    bool *active; /* by cell and column: whether it is not zero because of a category */

    /* All rows at once, by fold, where they are few enough; otherwise a chunk of them at a time. */
    bool whole;
    struct noise_columns segments[MOMENTS_FOLDS_MAX];
    double *memory, *scratch;
    size_t memory_doubles, scratch_doubles, active_bytes; /* kept from group to group */
};

void noise_design_init(struct noise_design *design, const struct fit *fit, const struct noise_rows *rows,
                       uint32_t folds);
void noise_design_clear(struct noise_design *design);

/* Takes up GROUP as it was settled, and fitted. WHOLE_MAX: bytes of columns up to which they are kept whole.
 */
int noise_design_begin(struct noise_design *design, uint32_t group, const struct settled *settled,
                       size_t whole_most);

/* Sums (noise_kernel_add) over the rows of the folds whose bits are set in FOLDS. SUMS is cleared first. */
void noise_design_sum(struct noise_design *design, uint32_t folds, const double *b, const double *c,
                      bool gradient, unsigned grams, struct noise_sums *sums);

/* Calls EACH with pieces of the columns of the folds, in a fixed order. */
typedef void (*noise_design_function)(void *context, const struct noise_columns *columns);
void noise_design_each(struct noise_design *design, uint32_t folds, noise_design_function each,
                       void *context);

#endif
