/*
 * Generators of designs over levels (levels.h). Each writes a design whose columns are the COUNT levels, in
 * their order, with the names and types of the levels. The same levels and the same source give the same
 * design on every machine.
 */
#ifndef ASSAY_DESIGN_GENERATE_H
#define ASSAY_DESIGN_GENERATE_H

#include "engine/design/levels.h"
#include "engine/design/random.h"
#include "engine/foundation/failure.h"

#include <stddef.h>

struct design;

/* Every combination of the levels, the last factor changing fastest. */
int design_generate_factorial(const struct levels *levels, size_t count, struct design **ret,
                              struct failure *failure);

/* ROWS independent rows. A list or a stepped range: each level as likely. A range of integers: each of them
 * as likely. A range of numbers: low + u (high - low), u in [0, 1). Rows are drawn one after another, so that
 * more rows of the same seed continue the design. */
int design_generate_uniform(const struct levels *levels, size_t count, size_t rows,
                            struct random_source *source, struct design **ret, struct failure *failure);

/* ROWS independent rows, uniform in the logarithm (T. Cornebize, "High Performance Computing: towards better
 * performance predictions and experiments", 2021, draws message sizes so: 10^U(0, 9)). A range of numbers:
 * exp of a uniform number from log low to log high. A range of integers: the same from log low to log (high +
 * 1), rounded down: the integer n has the probability log((n + 1) / n) / log((high + 1) / low). A list: each
 * as likely. Ranges begin above 0 and have no step. */
int design_generate_log_uniform(const struct levels *levels, size_t count, size_t rows,
                                struct random_source *source, struct design **ret, struct failure *failure);

/* A Latin hypercube of ROWS rows (M. McKay, R. Beckman, W. Conover, Technometrics 21(2), 1979): for each
 * factor the range is cut in ROWS strata of equal width, each of which has one row, at a random place in it;
 * the strata of different factors are combined at random. Integers, lists and steps: as if each level were an
 * interval of the same width. */
int design_generate_latin_hypercube(const struct levels *levels, size_t count, size_t rows,
                                    struct random_source *source, struct design **ret,
                                    struct failure *failure);

/* Every row of TABLE with every combination of the levels, which become columns behind its own: the
 * combinations of the first row, then those of the second. Rows keep their places. A column that TABLE has
 * already is refused. */
int design_generate_crossed(const struct design *table, const struct levels *levels, size_t count,
                            struct design **ret, struct failure *failure);

#endif
