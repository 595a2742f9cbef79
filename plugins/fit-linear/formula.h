/*
 * A formula: which products of powers of columns explain the response.
 *
 *     formula := term { "+" term }
 *     term    := "1" | factor { "*" factor }
 *     factor  := column [ power ] | "log2(" column ")" [ power ] | "category(" column ")"
 *     power   := "^" [ "-" ] whole number
 *     column  := letters, digits, "_" and "."; anything else between backquotes
 *
 * Blanks do not count. There is an intercept only where "1" is written. A word that is no column, but whose
 * every letter is one, is their product: mnk is m*n*k. Two terms that are the same product are refused.
 *
 * A column that holds texts (of the type "string" or "boolean" in an archive, or any column in category())
 * stands for dummies, one for each of its levels: expansion.h.
 *
 * Named models over sizes s1 ... sd (the thesis of T. Cornebize, 2021, chapter 4, where the sizes are m, n,
 * k): M-0   1 M-1   1 + s1*...*sd M-2   1 + s1*...*sd + every product that leaves out one size: 1 + m*n*k +
 * m*n + m*k + n*k; of two sizes: 1 + m*n + m + n; of one: 1 + m
 */
#ifndef ASSAY_FIT_LINEAR_FORMULA_H
#define ASSAY_FIT_LINEAR_FORMULA_H

#include "plugins/interface/fit.h"

enum {
    FORMULA_TERMS_MAX = 64,
    FORMULA_COLUMNS_MAX = 32,   /* different columns that are read as numbers */
    FORMULA_INPUTS_MAX = 64,    /* these, their inverses and their logarithms */
    FORMULA_CATEGORIES_MAX = 4, /* different columns that are read as categories */
    FORMULA_DEGREE_MAX = 16,    /* sum of the powers of a term, without their signs */
    FORMULA_BYTES_MAX = 4096,   /* of the text */
    FORMULA_SIZES_MAX = 8,
};

/* What products are made of: a column, its binary logarithm, or the inverse of either, in double precision.
 * Where one is not defined (the inverse of 0, the logarithm of what is not positive) it is not finite. */
struct formula_input {
    size_t column; /* index in formula.columns */
    bool logarithm, inverse;
};

struct formula_factor {
    size_t input; /* index in formula.inputs */
    int power;    /* at least 1 */
};

/* A product of powers of inputs. The first is the constant 1, which has no factor. */
struct formula_product {
    struct formula_factor factors[FORMULA_DEGREE_MAX];
    size_t factor_count;
    int degree; /* sum of the powers */
};

/* A product, times the dummies of its categories. */
struct formula_term {
    char *name;                                /* owned: "1", "m*n*k", "m^2*n", "host*m" */
    size_t product;                            /* index in formula.products */
    size_t categories[FORMULA_CATEGORIES_MAX]; /* indices in formula.categories, rising */
    size_t category_count;
};

struct formula {
    struct formula_term terms[FORMULA_TERMS_MAX];
    size_t term_count;
    struct formula_product products[FORMULA_TERMS_MAX + 1]; /* all different; the constant, then as used */
    size_t product_count;
    struct formula_input inputs[FORMULA_INPUTS_MAX]; /* a column itself comes before what is made of it */
    size_t input_count;
    /* Names are borrowed from the request. */
    const char *columns[FORMULA_COLUMNS_MAX]; /* in order of first use */
    size_t column_count;
    size_t column_inputs[FORMULA_COLUMNS_MAX]; /* which input is the column itself */
    const char *categories[FORMULA_CATEGORIES_MAX];
    size_t category_count;
};

/* Reads request->terms (NULL: M-2 where the table has the sizes) into *RET, whose names the caller clears. */
int formula_read(const struct plugin_host *host, const struct fit_request *request, struct formula *ret,
                 struct plugin_message *message);
void formula_clear(struct formula *formula);

/* Whether the term is the constant 1. */
bool formula_is_constant(const struct formula_term *term);

/* The input's value of the column's VALUES, ROWS of them. */
void formula_derive(const struct formula_input *input, size_t rows, const double *values, double *ret);

/* "m^2*n" of a product, or "1"; NAME is left as it is when it does not fit. Returns its length, or -1. */
int formula_product_name(const struct formula *formula, const struct formula_product *product, char *name,
                         size_t size);

#endif
