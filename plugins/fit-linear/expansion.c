#include "plugins/fit-linear/expansion.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the parts of a term span: a product, times all dummies of some categories (a bit for each). */
struct span {
    size_t product;
    unsigned categories;
};

struct expanding {
    struct expansion *expansion;
    uint32_t *orders[FORMULA_CATEGORIES_MAX]; /* codes in natural order, without the missing value */
    uint32_t counts[FORMULA_CATEGORIES_MAX];
    struct span spans[FORMULA_TERMS_MAX * (FORMULA_CATEGORIES_MAX + 1)];
    size_t span_count;
};

void expansion_free(struct expansion *expansion) {
    if (!expansion)
        return;
    for (size_t t = 0; t < expansion->count; t++)
        free(expansion->terms[t].name);
    for (size_t c = 0; c < FORMULA_CATEGORIES_MAX; c++) {
        for (uint32_t i = 0; i < expansion->level_counts[c]; i++)
            free(expansion->levels[c][i]);
        free(expansion->levels[c]);
    }
    free(expansion);
}

const char *expansion_level(const struct expansion *expansion, const struct expanded_term *term, size_t c) {
    return expansion->levels[expansion->formula->terms[term->term].categories[c]][term->levels[c]];
}

static int copy_levels(const struct plugin_host *host, size_t category, struct expanding *expanding) {
    struct expansion *expansion = expanding->expansion;
    struct plugin_levels levels;
    int r = host->levels(host->context, category, &levels);
    if (r < 0)
        return r;
    expansion->levels[category] = calloc((size_t)levels.count + 1, sizeof(char *));
    expanding->orders[category] = calloc((size_t)levels.count + 1, sizeof(uint32_t));
    if (!expansion->levels[category] || !expanding->orders[category])
        return -ENOMEM;
    for (uint32_t i = 0; i < levels.count; i++) {
        if (!(expansion->levels[category][i] = strdup(levels.texts[i])))
            return -ENOMEM;
        expansion->level_counts[category]++;
        if (levels.texts[levels.order[i]][0] != '\0')
            expanding->orders[category][expanding->counts[category]++] = levels.order[i];
    }
    return 0;
}

static unsigned categories_of(const struct formula_term *term) {
    unsigned bits = 0;
    for (size_t c = 0; c < term->category_count; c++)
        bits |= 1u << term->categories[c];
    return bits;
}

static bool is_spanned(const struct expanding *expanding, size_t product, unsigned categories) {
    for (size_t i = 0; i < expanding->span_count; i++)
        if (expanding->spans[i].product == product && expanding->spans[i].categories == categories)
            return true;
    return false;
}

/* How many dummies each category of the term has, the base's left out where it would be a combination of
 * others; CONTRASTS[c] says whether it is. Returns how many terms they make. */
static size_t choose_contrasts(struct expanding *expanding, const struct formula_term *term,
                               bool contrasts[FORMULA_CATEGORIES_MAX]) {
    unsigned all = categories_of(term);
    size_t count = 1;
    for (size_t c = 0; c < term->category_count; c++) {
        unsigned rest = all & ~(1u << term->categories[c]);
        contrasts[c] = is_spanned(expanding, term->product, rest);
        if (!contrasts[c]) /* all dummies together are the rest of the term */
            expanding->spans[expanding->span_count++] = (struct span){term->product, rest};
        size_t dummies = expanding->counts[term->categories[c]];
        count *= dummies - (contrasts[c] && dummies > 0);
        count = count > EXPANSION_TERMS_MAX ? EXPANSION_TERMS_MAX + 1 : count;
    }
    return count;
}

/* "host[dahu-2]*m*n"; what is longer is cut. */
static char *make_name(const struct expansion *expansion, const struct expanded_term *expanded) {
    const struct formula *formula = expansion->formula;
    const struct formula_term *term = &formula->terms[expanded->term];
    char name[FORMULA_BYTES_MAX] = "";
    size_t length = 0;
    for (size_t c = 0; c < term->category_count && length < sizeof name; c++) {
        int written =
            snprintf(name + length, sizeof name - length, "%s%s[%s]", c ? "*" : "",
                     formula->categories[term->categories[c]], expansion_level(expansion, expanded, c));
        length += written > 0 ? (size_t)written : 0;
    }
    if (term->product > 0 && length + 1 < sizeof name) {
        name[length++] = '*';
        formula_product_name(formula, &formula->products[term->product], name + length, sizeof name - length);
    }
    return strdup(name);
}

/* The INDEX-th combination of the term's levels, the last category turning fastest. */
static int add_combination(struct expanding *expanding, size_t t, const bool *contrasts, size_t index) {
    struct expansion *expansion = expanding->expansion;
    const struct formula_term *term = &expansion->formula->terms[t];
    struct expanded_term *expanded = &expansion->terms[expansion->count];
    *expanded = (struct expanded_term){.term = t, .product = term->product};
    for (size_t c = term->category_count; c-- > 0;) {
        size_t category = term->categories[c], dummies = expanding->counts[category] - contrasts[c];
        expanded->levels[c] = expanding->orders[category][index % dummies + contrasts[c]];
        index /= dummies;
    }
    expanded->name = term->category_count ? make_name(expansion, expanded) : strdup(term->name);
    if (!expanded->name)
        return -ENOMEM;
    expansion->count++;
    return 0;
}

static int expand(struct expanding *expanding, struct plugin_message *message) {
    const struct formula *formula = expanding->expansion->formula;
    for (size_t t = 0; t < formula->term_count; t++)
        expanding->spans[expanding->span_count++] =
            (struct span){formula->terms[t].product, categories_of(&formula->terms[t])};
    for (size_t t = 0; t < formula->term_count; t++) {
        bool contrasts[FORMULA_CATEGORIES_MAX];
        size_t count = choose_contrasts(expanding, &formula->terms[t], contrasts);
        if (expanding->expansion->count + count > EXPANSION_TERMS_MAX) {
            snprintf(
                message->text, sizeof message->text,
                "with a dummy for each level of its categories, the term '%.200s' makes more than %d terms; "
                "fit groups with --by where levels are that many",
                formula->terms[t].name, (int)EXPANSION_TERMS_MAX);
            return -EINVAL;
        }
        for (size_t i = 0; i < count; i++) {
            int r = add_combination(expanding, t, contrasts, i);
            if (r < 0)
                return r;
        }
    }
    if (expanding->expansion->count > 0)
        return 0;
    snprintf(message->text, sizeof message->text,
             "no term is left: the categories have one level or none, and a level more than that is a dummy");
    return -EINVAL;
}

int expansion_new(const struct plugin_host *host, const struct formula *formula, struct expansion **ret,
                  struct plugin_message *message) {
    struct expanding *expanding = calloc(1, sizeof *expanding);
    struct expansion *expansion = calloc(1, sizeof *expansion);
    int r = expanding && expansion ? 0 : -ENOMEM;
    if (r == 0) {
        expansion->formula = formula;
        expanding->expansion = expansion;
    }
    for (size_t c = 0; r == 0 && c < formula->category_count; c++)
        r = copy_levels(host, c, expanding);
    r = r < 0 ? r : expand(expanding, message);
    for (size_t c = 0; expanding && c < FORMULA_CATEGORIES_MAX; c++)
        free(expanding->orders[c]);
    free(expanding);
    if (r < 0)
        expansion_free(expansion);
    else
        *ret = expansion;
    return r;
}
