#include "engine/analysis/effects.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"
#include "engine/numerics/least-squares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 201, FREEDOM_LEAST = 3 /* of the residuals, for interactions */ };

/* The columns of a term: a dummy for each level but the first, or each pair of such levels. */
struct term {
    size_t factors[2], order, first, count;
};

struct analysis {
    const struct effects_factor *factors;
    size_t rows, factor_count;
    struct term *terms;
    size_t term_count, columns;
    double *x;
    struct least_squares sums;
};

static size_t own_columns(const struct effects_factor *factor) {
    return factor->codes ? factor->level_count - 1 : 1;
}

/* Value of own column C of FACTOR at ROW. */
static double own_value(const struct effects_factor *factor, size_t c, size_t row) {
    return factor->codes ? factor->codes[row] == c + 1 : factor->values[row];
}

static void add_term(struct analysis *analysis, size_t a, size_t b, size_t order) {
    const struct effects_factor *factors = analysis->factors;
    struct term *term = &analysis->terms[analysis->term_count++];
    *term = (struct term){{a, b}, order, analysis->columns, own_columns(&factors[a])};
    if (order == 2)
        term->count *= own_columns(&factors[b]);
    analysis->columns += term->count;
}

/* Makes the terms: main effects, and WITH_INTERACTIONS those of two factors, except with nuisances. */
static void make_terms(struct analysis *analysis, bool with_interactions) {
    size_t count = analysis->factor_count;
    analysis->terms = xcalloc(count + count * count / 2 + 1, sizeof *analysis->terms);
    analysis->term_count = 0;
    analysis->columns = 1; /* the mean */
    for (size_t a = 0; a < count; a++)
        add_term(analysis, a, a, 1);
    for (size_t a = 0; with_interactions && a < count; a++)
        for (size_t b = a + 1; b < count; b++)
            if (!analysis->factors[a].is_nuisance && !analysis->factors[b].is_nuisance)
                add_term(analysis, a, b, 2);
}

/* Fills the columns of the model's matrix: the mean, then those of each term; interactions are products. */
static void fill_columns(struct analysis *analysis) {
    size_t rows = analysis->rows;
    analysis->x = xcalloc(rows * analysis->columns, sizeof *analysis->x);
    for (size_t row = 0; row < rows; row++)
        analysis->x[row] = 1;
    for (size_t t = 0; t < analysis->term_count; t++) {
        const struct term *term = &analysis->terms[t];
        const struct effects_factor *a = &analysis->factors[term->factors[0]];
        const struct effects_factor *b = &analysis->factors[term->factors[1]];
        size_t inner = term->order == 2 ? own_columns(b) : 1;
        for (size_t c = 0; c < term->count; c++)
            for (size_t row = 0; row < rows; row++)
                analysis->x[(term->first + c) * rows + row] =
                    own_value(a, c / inner, row) * (term->order == 2 ? own_value(b, c % inner, row) : 1);
    }
}

static bool contains(const struct term *outer, const struct term *inner) {
    return outer->order == 2 && inner->order == 1 &&
           (outer->factors[0] == inner->factors[0] || outer->factors[1] == inner->factors[0]);
}

/* Fits without the terms that contain TERM, and with or without TERM itself; TERM NULL: all terms. */
static int fit_terms(const struct analysis *analysis, const struct term *left_out, bool with_itself,
                     struct least_squares_fit *ret) {
    enum least_squares_role roles[LEAST_SQUARES_COLUMNS_MAX] = {LEAST_SQUARES_FREE};
    for (size_t t = 0; left_out && t < analysis->term_count; t++) {
        const struct term *term = &analysis->terms[t];
        if (contains(term, left_out) || (term == left_out && !with_itself))
            for (size_t c = 0; c < term->count; c++)
                roles[term->first + c] = LEAST_SQUARES_LEFT_OUT;
    }
    return least_squares_solve(&analysis->sums, roles, ret);
}

/* Finds freedom and sum of squares of one term: by how much the residual sum of squares falls when it is
 * added (type II). */
static int find_term(const struct analysis *analysis, const struct term *term, struct effect *ret) {
    cleanup(least_squares_fit_clear) struct least_squares_fit with = {0}, without = {0};
    int r = fit_terms(analysis, term, true, &with);
    r = r < 0 ? r : fit_terms(analysis, term, false, &without);
    *ret = (struct effect){
        .factors = {term->factors[0], term->factors[1]}, .order = term->order, .p = NAN, .f = NAN};
    if (r < 0)
        return r;
    ret->freedom = (double)(with.rank - without.rank);
    ret->squares = ret->freedom > 0 ? fmax(0, without.rss - with.rss) : 0;
    return 0;
}

/* Finds the effects of levels, from a fit of the main effects alone. */
static int find_levels(const struct analysis *analysis, struct effects *effects) {
    cleanup(least_squares_fit_clear) struct least_squares_fit main = {0};
    enum least_squares_role roles[LEAST_SQUARES_COLUMNS_MAX] = {LEAST_SQUARES_FREE};
    for (size_t t = 0; t < analysis->term_count; t++)
        for (size_t c = 0; analysis->terms[t].order == 2 && c < analysis->terms[t].count; c++)
            roles[analysis->terms[t].first + c] = LEAST_SQUARES_LEFT_OUT;
    int r = least_squares_solve(&analysis->sums, roles, &main);
    effects->factor_count = analysis->factor_count;
    effects->level_effects = xcalloc(analysis->factor_count + 1, sizeof(double *));
    for (size_t f = 0; r == 0 && f < analysis->factor_count; f++) {
        const struct effects_factor *factor = &analysis->factors[f];
        if (!factor->codes)
            continue;
        effects->level_effects[f] = xcalloc(factor->level_count, sizeof(double));
        memcpy(effects->level_effects[f] + 1, main.estimate + analysis->terms[f].first,
               analysis->terms[f].count * sizeof(double));
    }
    return r;
}

static void analysis_clear(struct analysis *analysis) {
    free(analysis->terms), free(analysis->x);
    least_squares_clear(&analysis->sums);
    analysis->terms = NULL;
    analysis->x = NULL;
}

/* Sets up terms and sums. 1: there are too few rows, or too many columns, for interactions. */
static int prepare_analysis(struct analysis *analysis, const double *y, bool with_interactions) {
    cleanup(least_squares_fit_clear) struct least_squares_fit all = {0};
    make_terms(analysis, with_interactions);
    if (analysis->columns > COLUMNS_MAX)
        return with_interactions ? 1 : -E2BIG;
    fill_columns(analysis);
    int r = least_squares_init(&analysis->sums, analysis->columns);
    r = r < 0 ? r
              : least_squares_append(&analysis->sums, analysis->rows, analysis->x, analysis->rows, y, NULL);
    r = r < 0 || !with_interactions ? r : fit_terms(analysis, NULL, false, &all);
    return r < 0 ? r : with_interactions && analysis->rows < all.rank + FREEDOM_LEAST;
}

/* Finds the total, the residual, and each term's share, F and p. */
static int find_all(const struct analysis *analysis, struct effects *ret) {
    cleanup(least_squares_fit_clear) struct least_squares_fit all = {0};
    int r = fit_terms(analysis, NULL, false, &all);
    if (r < 0)
        return r;
    ret->total = analysis->sums.total;
    ret->residual_freedom = (double)(analysis->rows - all.rank);
    ret->residual_squares = ret->residual_freedom > 0 ? all.rss : 0;
    ret->residual_share = ret->residual_squares / ret->total;
    ret->items = xcalloc(analysis->term_count + 1, sizeof *ret->items);
    for (size_t t = 0; r == 0 && t < analysis->term_count; t++) {
        struct effect *effect = &ret->items[ret->count++];
        r = find_term(analysis, &analysis->terms[t], effect);
        effect->share = effect->squares / ret->total;
        if (ret->residual_freedom == 0 || effect->freedom == 0)
            continue;
        effect->f = effect->squares / effect->freedom / (ret->residual_squares / ret->residual_freedom);
        effect->p = distribution_f_upper(effect->f, effect->freedom, ret->residual_freedom);
    }
    return r < 0 ? r : find_levels(analysis, ret);
}

/* Finds the share of the variance that each factor explains. Interactions are left out when the rows are too
 * few for them. */
int effects_find(const double *y, size_t rows, const struct effects_factor *factors, size_t count,
                 struct effects *ret) {
    cleanup(analysis_clear) struct analysis analysis = {
        .factors = factors, .rows = rows, .factor_count = count};
    cleanup(effects_clear) struct effects effects = {0};
    bool varies = false, is_constant = true;
    for (size_t f = 0; f < count; f++)
        varies = varies || (!factors[f].is_nuisance && factors[f].codes && factors[f].level_count > 1);
    for (size_t row = 1; row < rows; row++)
        is_constant = is_constant && y[row] == y[0];
    if (!varies || is_constant)
        return -EDOM;
    int r = prepare_analysis(&analysis, y, true);
    effects.has_interactions = r == 0;
    if (r == 1) {
        analysis_clear(&analysis);
        r = prepare_analysis(&analysis, y, false);
    }
    r = r < 0 ? r : find_all(&analysis, &effects);
    if (r < 0)
        return r;
    *ret = effects;
    effects = (struct effects){0};
    return 0;
}

void effects_clear(struct effects *effects) {
    for (size_t f = 0; effects->level_effects && f < effects->factor_count; f++)
        free(effects->level_effects[f]);
    free(effects->level_effects), free(effects->items);
    *effects = (struct effects){0};
}
