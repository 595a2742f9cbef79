/*
 * The uniform product: sizes of matrices whose product, and so the work of a matrix multiplication, is spread
 * evenly up to a largest one, with every shape from cube to needle (T. Cornebize, "High Performance
 * Computing: towards better performance predictions and experiments", doctoral thesis, Université Grenoble
 * Alpes, 2021, chapters 4 and 8).
 *
 * For i = 0, 1, ... products - 1 the target is max_product (products - i) / products, moved by a uniform
 * jitter of at most max_product / 1000 to either side, but not above max_product nor below 1. For each target
 * a batch of tuples is drawn. The fixed factors divide the target first. Then, with f factors still free, one
 * size after the other:
 *
 *     s = round(U(1, target^(1/f))),  target = target / s,  f = f - 1,       and the last is round(target),
 * at least 1,
 *
 * or rounded down where that would bring the product above max_product.
 * A tuple with a size above max_size, or whose product is still above max_product, is drawn again, at most
 * UNIFORM_PRODUCT_ATTEMPTS_MAX times. A row is written for each of the f! orders of a tuple's free sizes, in
 * lexicographic order of their places: where two sizes are equal, equal rows stay, so that each tuple weighs
 * the same and the number of rows is products * batch * f! + the added ones.
 *
 * Added rows follow. Without a list of one's own they are (2048, 2048, ...) and (i, i, ...) for i = 1..4,
 * with the fixed sizes in their places, less those above a cap. Rows of one's own are taken as they stand,
 * and refused above a cap.
 */
#ifndef ASSAY_DESIGN_UNIFORM_PRODUCT_H
#define ASSAY_DESIGN_UNIFORM_PRODUCT_H

#include "engine/design/random.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct design;

enum {
    UNIFORM_PRODUCT_FACTORS_MAX = 6,
    UNIFORM_PRODUCT_ATTEMPTS_MAX = 100000,
    UNIFORM_PRODUCT_ADDED_MAX = 1 << 20,
};

struct uniform_product {
    char *names[UNIFORM_PRODUCT_FACTORS_MAX]; /* owned */
    size_t count;
    double max_product;                         /* default 1e10, at most 2^53 */
    int64_t max_size;                           /* default 15500 */
    int64_t products;                           /* default 30 */
    int64_t batch;                              /* default 3 */
    int64_t fixed[UNIFORM_PRODUCT_FACTORS_MAX]; /* 0: free */
    bool adds;                                  /* whether the list of added rows is one's own */
    int64_t *added;                             /* owned; COUNT sizes a row */
    size_t added_count;                         /* rows */
};

/* The defaults, without factors; allocates nothing. */
void uniform_product_init(struct uniform_product *product);
void uniform_product_clear(struct uniform_product *product);

/* Each refuses with a sentence that has no place: the caller knows it. */
int uniform_product_add_factor(struct uniform_product *product, const char *name, struct failure *failure);
/* After the factors: fixes one of them. */
int uniform_product_fix(struct uniform_product *product, const char *name, const char *size,
                        struct failure *failure);
/* After the factors: adds a row of COUNT sizes. With COUNT 0, only says that the list is one's own. */
int uniform_product_add_row(struct uniform_product *product, const char *const *sizes, size_t count,
                            struct failure *failure);

/* Columns of integers with the factors' names. What cannot be is refused: no free factor, a size that no
 * tuple can keep, or a cap that the draws did not meet. */
int uniform_product_generate(const struct uniform_product *product, struct random_source *source,
                             struct design **ret, struct failure *failure);

#endif
