/*
 * The terms of a formula with their categories written out: what a model file has.
 *
 * A category in a term stands for dummies, 1 where the column has one of its levels and 0 elsewhere. As in
 * R's model.matrix: where the rest of the term, without the category, is a term of the formula too (or is
 * spanned by dummies of an earlier one), the first level in natural order has no dummy, and the others tell
 * how they differ from it (treatment contrasts); otherwise every level has one. So 1 + host has a dummy for
 * every host but the first, host alone one for each, and host*m*n beside m*n one for every host but the
 * first.
 */
#ifndef ASSAY_FIT_LINEAR_EXPANSION_H
#define ASSAY_FIT_LINEAR_EXPANSION_H

#include "plugins/fit-linear/formula.h"

#include <stdint.h>

enum { EXPANSION_TERMS_MAX = 128 };

struct expanded_term {
    char *name;  /* owned: "1", "m*n", "host[dahu-2]*m*n" */
    size_t term; /* of the formula */
    size_t product;
    uint32_t levels[FORMULA_CATEGORIES_MAX]; /* the code for each of the term's categories */
};

struct expansion {
    const struct formula *formula;
    struct expanded_term terms[EXPANSION_TERMS_MAX];
    size_t count;
    /* The texts of the categories' levels by code; "" is no level but a value that is missing. Owned. */
    char **levels[FORMULA_CATEGORIES_MAX];
    uint32_t level_counts[FORMULA_CATEGORIES_MAX];
};

/* The rows must have been read, all of them. The category c of the formula is the host's category c. -EINVAL
 * with the message filled when the terms become too many. */
int expansion_new(const struct plugin_host *host, const struct formula *formula, struct expansion **ret,
                  struct plugin_message *message);
void expansion_free(struct expansion *expansion);

/* The text of the level that the term has of its C-th category. */
const char *expansion_level(const struct expansion *expansion, const struct expanded_term *term, size_t c);

#endif
