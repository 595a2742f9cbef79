/*
 * Which factors a response depends on: an analysis of variance with all main effects and all interactions of
 * two factors (R. Fisher, 1925; sums of squares of type II: F. Yates, J. Am. Stat. Assoc. 29, 1934). The sum
 * of squares of a term is the decrease of the residual sum of squares when the term is added to a fit of all
 * terms that do not contain it. Where a design is not balanced, the shares need not add up to 1.
 *
 *     y = mean + effects of levels + effects of pairs of levels + nuisances + residual
 *
 * It is assumed that residuals are independent, normal, and of one variance. Nuisances, such as nodes and the
 * order of the measurements, have main effects only.
 */
#ifndef ASSAY_ANALYSIS_EFFECTS_H
#define ASSAY_ANALYSIS_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct effects_factor {
    const uint32_t *codes; /* of each row, the level; NULL: `values` */
    size_t level_count;
    const double *values; /* of each row, a number, of which the effect is linear */
    bool is_nuisance;
};

struct effect {
    size_t factors[2], order; /* one factor, or two */
    double squares, share;    /* of the total sum of squares */
    double freedom, f, p;     /* p NaN: not tested; freedom 0: cannot be told from other terms */
};

struct effects {
    struct effect *items; /* main effects in the order of the factors, then interactions */
    size_t count;
    bool has_interactions; /* false: too few rows or too many levels for them */
    double residual_squares, residual_freedom, residual_share, total;
    /* For factor F with levels: level_effects[F][L] is by how much level L is above level 0, from the main
     * effects alone, in the unit of y. NULL for other factors. */
    double **level_effects;
    size_t factor_count;
};

/* Y has ROWS finite values. -EDOM: all values are equal, or there is no factor with two levels; -E2BIG: the
 * levels of all factors together are more than 200. */
int effects_find(const double *y, size_t rows, const struct effects_factor *factors, size_t count,
                 struct effects *ret);
void effects_clear(struct effects *effects);

#endif
