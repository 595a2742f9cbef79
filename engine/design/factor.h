/*
 * Factors: what an experiment says about the columns of its design. A design that is made for an experiment
 * has exactly its factors as columns, in the declared order, whatever the order in the file.
 */
#ifndef ASSAY_DESIGN_FACTOR_H
#define ASSAY_DESIGN_FACTOR_H

#include "engine/documents/column.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Values of a factor, by the type of its column:
 *
 *     COLUMN_INTEGER    a whole number, at most 2^53 in size: those that doubles, and so expressions, keep
 *                       exactly
 *     COLUMN_NUMBER     a finite double
 *     COLUMN_STRING     not empty, no NUL
 *
 * 2^53, and the bounds that mean none: as in experiment.yaml, where a factor has no bounds unless it says so.
 */
#define DESIGN_INTEGER_MAX INT64_C(9007199254740992)
#define DESIGN_UNBOUNDED 1e300

struct design_factor {
    struct column about;     /* texts owned; the unit may be any text of the user's own */
    char *default_note;      /* of an option: what to know where it has its default, a sentence; or NULL */
    double minimum, maximum; /* of an integer or number; -DESIGN_UNBOUNDED and DESIGN_UNBOUNDED: none */
    char **choices;          /* of a text; none: any */
    size_t choice_count;
    /* The value where the design has no such column: of a text, the text itself; of others, an expression
     * over the factors, such as "max(m, n, k)". NULL: the design must have the column. */
    char *default_text;
    size_t default_line, default_column; /* where it was written, for messages; 0: unknown */
    /* The meaning of a value such as 80% or 10min in a number or integer: an expression, as of defaults,
     * that may also use `share` (0.8) or `time` (600, in seconds). NULL: such values are refused. */
    char *from_share, *from_time;
    size_t share_line, share_column, time_line, time_column;
};

/* A number that expressions of factors may use beside the factors. */
struct design_given {
    const char *name;
    double value;
    bool is_fact; /* a fact of the machine: another machine would give other rows */
};

/* The factors of an experiment, borrowed, and the file that declares them, for messages. */
struct design_factors {
    const struct design_factor *items;
    size_t count;
    const char *file; /* or NULL */
    const struct design_given *given;
    size_t given_count;
    bool facts_are_guessed; /* facts are guesses: a computed default out of bounds becomes the nearest
                               admitted value, since the machine's true facts are checked before measuring */
};

/* Frees what FACTOR owns and zeroes it. */
void design_factor_clear(struct design_factor *factor);

enum { DESIGN_EXPECTATION_SIZE = 512 };
/* What a value of the factor must be, for messages: "a whole number from 1 to 46340", "a number of at least
 * 0", "one of 1ring, 2ring". Returns BUFFER. */
const char *design_factor_expectation(const struct design_factor *factor,
                                      char buffer[static DESIGN_EXPECTATION_SIZE]);

/* Whether a number may be a value of a factor that is an integer or a number: finite, whole where it must be,
 * and within the bounds. */
bool design_factor_admits(const struct design_factor *factor, double value);
/* Whether the LENGTH bytes may be a value of a factor that is a text: one of its choices, if it has any. */
bool design_factor_admits_text(const struct design_factor *factor, const char *bytes, size_t length);

enum design_meaning { DESIGN_MEANS_NOTHING, DESIGN_MEANS_NUMBER, DESIGN_MEANS_SHARE, DESIGN_MEANS_TIME };
/* What TEXT means as a value of a factor that is an integer or a number: a literal such as 1e9 or 64MiB; a
 * share above 0% and up to 100%, or a time above 0, where the factor has an expression for it. The number,
 * share or seconds are in *RET. */
enum design_meaning design_factor_meaning(const struct design_factor *factor, const char *text, double *ret);
/* Whether the factor accepts shares or times; and whether TEXT is an accepted share, time or number. */
bool design_factor_has_meanings(const struct design_factor *factor);
bool design_factor_admits_written(const struct design_factor *factor, const char *text);

/* The index of the factor called NAME, or SIZE_MAX. */
size_t design_factor_find(const struct design_factors *factors, const char *name);

/* "'nn' is not a factor; did you mean 'n'?" at a place; of a column of a control, what control_factor_unknown
 * says. Returns -EINVAL. */
int design_factor_unknown(const struct design_factors *factors, const char *name, const char *file,
                          size_t line, size_t column, struct failure *failure);

#endif
