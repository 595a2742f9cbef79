/*
 * Arithmetic over named numbers, for the files of experiments: defaults of factors ("max(m, n, k)"),
 * conditions on rows ("lda >= m"), sizes of memory ("8 * (a + b) + 64MiB").
 *
 *     operators, loosest first           or   and   not   < <= > >= == !=   + -   * / %   - (sign)   ^
 *     functions                          min(a, ...)  max(a, ...)  ceil(a)  floor(a)  sqrt(a)  cbrt(a)
 *                                        abs(a)  log2(a)  gcd(a, ...)  lcm(a, ...)  round_down(a, multiple)
 *                                        grid_rows(a)
 *     numbers                            12  0.5  1e9  64MiB (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)
 *     names                              letters, digits and _, not beginning with a digit
 *
 * Numbers are doubles. ^ is the power, groups to the right and binds more tightly than a sign on its left:
 * -2^2 is -4. % is the remainder of the division cut towards zero, with the sign of the left side, exactly.
 * Comparisons do not chain. True is 1 and false 0; what is not 0 counts as true. All results are the same on
 * every machine (portable-math.h); a ^ (1/3) is cbrt(a) where that is defined, exact for cubes.
 *
 * gcd and lcm take whole numbers of at most 2^53 in size, whatever their signs; gcd(a, 0) is a, and lcm(a, 0)
 * is 0. round_down(a, multiple) is the largest multiple that is at most a, but MULTIPLE itself where a lies
 * between 0 and that: what is asked for in multiples is asked for once at least. grid_rows(n), of a whole
 * number from 1 to 2^40, is its largest divisor that is at most sqrt(n): n processes make a grid of
 * grid_rows(n) rows that is as square as it can be. All are nan for anything else, and for an lcm above 2^53.
 *
 * Division by zero gives inf or nan, as IEEE 754 has it, and so may overflow; whoever uses the value refuses
 * what is not finite. A comparison with nan is nan. "and" and "or" look at both sides and are nan only where
 * the nan matters: `k == 0 or m / k > 1` is 1 for k = 0, m = 0.
 */
#ifndef ASSAY_EXPRESSION_EXPRESSION_H
#define ASSAY_EXPRESSION_EXPRESSION_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    EXPRESSION_LENGTH_MAX = 4096, /* bytes */
    EXPRESSION_DEPTH_MAX = 64,    /* parentheses, function calls, signs, "not" and ^ inside one another */
    EXPRESSION_STACK_MAX = 256,   /* values waiting for an operator */
};
#define EXPRESSION_GRID_MAX 0x1p40 /* of grid_rows, which tries up to 2^20 divisors of a prime */

struct expression;

/* Parses TEXT over the COUNT names; what is unknown is refused with the nearest name. FILE (may be NULL),
 * LINE and COLUMN say where the text begins, for messages: an error's column is exact when the text is a
 * plain scalar on one line. Nothing is borrowed. */
int expression_parse(const char *text, const char *const *names, size_t count, const char *file, size_t line,
                     size_t column, struct expression **ret, struct failure *failure);
/* The same, where names may also be compared with texts: NAME == 'text', NAME != "text". The j-th of these
 * comparisons is a value that the caller has: that of NAMES[COUNT + j], 1 where both are equal and 0
 * elsewhere. */
int expression_parse_condition(const char *text, const char *const *names, size_t count,
                               struct expression **ret, struct failure *failure);
size_t expression_comparison_count(const struct expression *expression);
/* The text of comparison J, and which name is compared with it. */
const char *expression_comparison(const struct expression *expression, size_t j, size_t *ret_name);
/* NULL is fine. */
void expression_free(struct expression *expression);
void expression_cleanup(struct expression **expression); /* the same, for cleanup() */

/* VALUES[i] is the value of the i-th name. Cannot fail; may be inf or nan. */
double expression_value(const struct expression *expression, const double *values);
/* Whether the i-th name occurs. */
bool expression_uses(const struct expression *expression, size_t name);
/* The text that was parsed. */
const char *expression_text(const struct expression *expression);
/* A failure about the expression: its place filled in, the sentence given. Returns -EINVAL. */
int expression_failure(const struct expression *expression, struct failure *failure, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
