/*
 * The sums of some rows over the columns of an expansion, dummies included: what least squares works on.
 *
 * Column 0 is the constant 1, whether there is an intercept or not; then comes a column for every expanded
 * term but the intercept, and the response last. A dummy is 1 in the cells that have its level, so its sums
 * are those of its product over these cells alone.
 */
#ifndef ASSAY_FIT_LINEAR_SUMS_H
#define ASSAY_FIT_LINEAR_SUMS_H

#include "plugins/fit-linear/expansion.h"
#include "plugins/fit-linear/moments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SUMS_COLUMNS_MAX = EXPANSION_TERMS_MAX + 2 };

/* Which column is which: the same for all sums of a fit. */
struct sums_layout {
    const struct expansion *expansion;
    size_t width; /* of the constant, the slopes and the response */
    bool intercept, weighted;
    size_t term_of[SUMS_COLUMNS_MAX];    /* the expanded term of each column; of column 0 the intercept's */
    size_t product_of[SUMS_COLUMNS_MAX]; /* which z of the moments */
};

/* A cell of moments, and its levels' codes. */
struct sums_cell {
    uint32_t cell;
    const uint32_t *codes;
};

struct sums {
    const struct sums_layout *layout;
    uint64_t rows, incomplete;
    double log_weights;  /* sum of log(w) */
    double negative;     /* sum of w*y where y < 0, unscaled */
    struct dd *products; /* width * width; scaled by the columns' exponents */
    int exponents[SUMS_COLUMNS_MAX];
    double minimum[SUMS_COLUMNS_MAX], maximum[SUMS_COLUMNS_MAX]; /* unscaled */
};

void sums_layout_init(struct sums_layout *layout, const struct expansion *expansion, bool weighted);

/* Whether the column's dummies are 1 in the cell. */
bool sums_is_active(const struct sums_layout *layout, size_t column, const struct sums_cell *cell);
/* Whether all levels of the cell are there: "" is none. */
bool sums_is_complete(const struct sums_layout *layout, const struct sums_cell *cell);

struct sums *sums_new(const struct sums_layout *layout); /* NULL when out of memory */
void sums_free(struct sums *sums);

/* The rows of one fold of some cells. Cells with a missing level count as incomplete. */
void sums_collect(struct sums *sums, const struct moments *moments, const struct sums_cell *cells,
                  size_t cell_count, uint32_t fold);
/* TO takes in what OTHER has; or what WHOLE has without PART, of which the ranges stay WHOLE's. */
void sums_add(struct sums *to, const struct sums *other);
void sums_subtract(const struct sums *whole, const struct sums *part, struct sums *ret);

static inline struct dd sums_at(const struct sums *sums, size_t a, size_t b) {
    return sums->products[a * sums->layout->width + b];
}

#endif
