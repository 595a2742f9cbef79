/*
 * A formula: which products of powers of columns explain the response.
 *
 *     formula := term { "+" term }
 *     term    := "1" | factor { "*" factor }
 *     factor  := column [ "^" whole number ]
 *     column  := letters, digits, "_" and "."; anything else between backquotes
 *
 * Blanks do not count. There is an intercept only where "1" is written. A word that is no column, but whose
 * every letter is one, is their product: mnk is m*n*k. Two terms that are the same product are refused.
 *
 * Named models over sizes s1 ... sd (the thesis of T. Cornebize, 2021, chapter 4, where the sizes are m, n,
 * k): M-0   1 M-1   1 + s1*...*sd M-2   1 + s1*...*sd + every product that leaves out one size: 1 + m*n*k +
 * m*n + m*k + n*k; of two sizes: 1 + m*n + m + n; of one: 1 + m
 */
#ifndef ASSAY_FIT_LINEAR_FORMULA_H
#define ASSAY_FIT_LINEAR_FORMULA_H

#include "plugins/interface/fit.h"

enum {
    FORMULA_TERMS_MOST = 64,
    FORMULA_FACTORS_MOST = 32, /* different columns */
    FORMULA_DEGREE_MOST = 16,  /* sum of the powers of a term */
    FORMULA_BYTES_MOST = 4096, /* of the text */
    FORMULA_SIZES_MOST = 8,
};

struct formula_factor {
    size_t column; /* index in formula.columns */
    int power;
};

struct formula_term {
    char *name; /* owned: "1", "m*n*k", "m^2*n" */
    struct formula_factor factors[FORMULA_DEGREE_MOST];
    size_t factor_count; /* 0: the constant */
    int degree;
};

struct formula {
    struct formula_term terms[FORMULA_TERMS_MOST];
    size_t term_count;
    const char *columns[FORMULA_FACTORS_MOST]; /* in order of first use; borrowed from the request */
    size_t column_count;
};

/* Reads request->terms (NULL: M-2 where the table has the sizes) into *RET, whose names the caller clears. */
int formula_read(const struct plugin_host *host, const struct fit_request *request, struct formula *ret,
                 struct plugin_message *message);
void formula_clear(struct formula *formula);

#endif
