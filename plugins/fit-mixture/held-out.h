/* What a mixture says of values that it was not fitted to. */
#ifndef ASSAY_FIT_MIXTURE_HELD_OUT_H
#define ASSAY_FIT_MIXTURE_HELD_OUT_H

#include "plugins/fit-mixture/em.h"

#include <stdint.h>

struct held_out {
    double rmse;      /* root of the mean squared distance from the mean of the others */
    double relative;  /* that, relative to the mean of |value| */
    double log_score; /* mean logarithm of the density that the mixture of the others gives */
    uint32_t folds;   /* that have values */
};

/* The COUNT values are in the folds FOLD_OF, 0 to FOLDS - 1; for each the mixture of the others, which begins
 * at MIXTURE, the one of all of them in SAMPLE, and has as many components. NaNs where a fold leaves too
 * little. WEIGHTS may be NULL. 0 or -ENOMEM. */
int held_out_score(const double *values, const double *weights, const double *fold_of, size_t count,
                   const struct sample *sample, const struct mixture *mixture, double floor, uint32_t folds,
                   struct held_out *ret);

#endif
