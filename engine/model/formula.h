/*
 * A formula: which products of powers of columns explain the response.
 *
 *     formula := term { "+" term } | "M-0" | "M-1" | "M-2"
 *     term    := "1" | factor { "*" factor }
 *     factor  := column [ power ] | "log2(" column ")" [ power ] | "category(" column ")"
 *     power   := "^" [ "-" ] whole number
 *     column  := letters, digits, "_" and "."; anything else between backquotes
 *
 * Blanks do not count. There is an intercept only where "1" is written. A word that is no column, but whose
 * every letter is one, is their product: mnk is m*n*k. Two terms that are the same product are refused.
 *
 * A column that holds texts (of the type "string" or "boolean", or any column in category()) stands for
 * dummies, 1 where it has one of its levels and 0 elsewhere. formula_read() leaves it as one factor of the
 * function "category"; formula_expand() writes the dummies out, once the levels are known.
 *
 * M-0, M-1 and M-2 are models over sizes s1 ... sd (T. Cornebize, thesis, Grenoble 2021, chapter 4, where
 * they are m, n and k): 1; 1 + s1*...*sd; 1 + s1*...*sd + every product that leaves out one size.
 *
 * Out of memory ends the program.
 */
#ifndef ASSAY_MODEL_FORMULA_H
#define ASSAY_MODEL_FORMULA_H

#include "engine/foundation/failure.h"

#include <assay/model.h>

enum {
    FORMULA_BYTES_MAX = 4096,    /* of the text */
    FORMULA_TERMS_MAX = 1024,    /* with all dummies */
    FORMULA_POWERS_MAX = 16,     /* the sum of the powers of a term, without their signs */
    FORMULA_SIZES_MAX = 8,       /* of M-0, M-1, M-2 */
    FORMULA_CATEGORIES_MAX = 64, /* of a formula */
    FORMULA_CROSSED_MAX = 8,     /* categories of one term */
};

/* The function of a factor that stands for the dummies of its column. */
#define FORMULA_CATEGORY "category"

struct formula {
    char *text; /* as it was read */
    struct model_term *terms;
    size_t term_count;
    size_t *places; /* of each term: the byte of the text where it begins, from 1 */
    char *note;     /* a likely slip in the text, for a note; or NULL */
};

/* What a formula is read against. */
struct formula_context {
    const struct model_column *columns; /* the existing columns; their levels are ignored */
    size_t column_count;
    const char *response;     /* it cannot explain itself; or NULL */
    const char *const *sizes; /* of M-0, M-1, M-2; none: m, n, k */
    size_t size_count;
};

/* The terms of TEXT as it is written, their units NULL. FAILURE_INPUT with the place in the text. */
int formula_read(const char *text, const struct formula_context *context, struct formula *ret,
                 struct failure *failure);
/* Frees what FORMULA has; fine on zeroed memory. */
void formula_clear(struct formula *formula);
/* "1 + m*n*k + host": reads back as the same formula. The caller frees. */
char *formula_print(const struct formula *formula);

/*
 * The same terms with a dummy for each level of their categories. COLUMNS have the levels, in natural order;
 * the empty text is no level but a value that is missing. As in R, the first level has no dummy where the
 * others then say how they differ from it: where the rest of the term is in the formula too, or dummies of
 * an earlier term add up to it.
 *
 *     1 + host             host[b], host[c]
 *     host                 host[a], host[b], host[c]
 *     1 + host*m*n         host[a]*m*n, host[b]*m*n, host[c]*m*n
 *     1 + m*n + host*m*n   host[b]*m*n, host[c]*m*n
 *     host + mode          three of host, all but the first of mode
 *
 * FAILURE_INPUT for terms whose dummies add up to those of others whatever the rows, with what to write
 * instead (1 + host*mode needs host and mode, too); for more than FORMULA_TERMS_MAX dummies; and where no
 * term is left.
 */
int formula_expand(const struct formula *formula, const struct model_column *columns, size_t column_count,
                   struct formula *ret, struct failure *failure);

/* The unit of a term's coefficient: RESPONSE_UNIT over the units of the factors, what cancels left out. A
 * dummy and a logarithm have none. NULL where a unit is not known. The caller frees. */
char *formula_unit(const struct model_term *term, const char *response_unit,
                   const struct model_column *columns, size_t column_count);

/* ---- Values ---- */

/* A column of rows in memory: numbers, texts by their codes, or both. */
struct formula_column {
    const char *name;
    const double *numbers; /* or NULL */
    const uint32_t *codes; /* indices into texts; or NULL */
    const char *const *texts;
    size_t text_count;
};

/* The value of TERM, without categories (formula_expand), at each of COUNT rows. Missing or undefined
 * values (the inverse of 0, the logarithm of a number below 0) are NaN or infinite. -ENOENT: there is no
 * column *RET_MISSING. */
int formula_values(const struct model_term *term, const struct formula_column *columns, size_t column_count,
                   size_t count, double *ret, const char **ret_missing);
/* VALUE to a whole POWER, by the same multiplications wherever it is computed. */
double formula_power(double value, int32_t power);

/* The place of the column called NAME, or COUNT. */
size_t formula_find_column(const struct model_column *columns, size_t count, const char *name);

#endif
