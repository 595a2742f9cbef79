/*
 * A specification of a design: what the `design:` of a campaign or an experiment says, or the command line.
 *
 *     design: sizes.csv                     # a CSV file, relative to the folder of the document
 *     design: {file: sizes.csv, repetitions: 10, order: random, seed: 42}
 *     design: {generate: factorial, factors: {n: [1000, 2000], nb: {from: 64, to: 256, step: 64}, bcast:
 * [ring, blong]}} design: {generate: uniform, rows: 100, factors: {n: [1, 5000], nb: {choices: [64, 128]}}}
 *     design: {generate: log-uniform, rows: 1000, factors: {size: [1, 1e9]}}
 *     design: {generate: latin-hypercube, rows: 100, factors: {m: [1, 5000], alpha: [0.0, 1.0]}}
 *     design: {generate: uniform-product, factors: [m, n, k], max-product: 1e10, max-size: 15500, products:
 * 30, batch: 3, fixed: {k: 128}, add: [[2048, 2048, 2048]], compute: {lda: "max(m, n, k)"}} design:
 * {repetitions: 10}             # no table: one row without columns, or of all defaults
 *
 * Without `generate`, factors are those of factorial. These take a list of values; those of uniform,
 * log-uniform and latin-hypercube a range [low, high]. All take {from: low, to: high}, with or without step,
 * {from: 1KiB, to: 64MiB, steps: 17, scale: log} (17 values, both ends exact, in equal ratios; scale: linear,
 * at equal distances, is what is meant without), {choices: [...]}, or one value. A value of a factor that has
 * expressions for it may be a share or a time, such as 80% or 10min (factor.h). What is an integer and what a
 * number is said by the experiment, or else by the way in which the values are written (levels.h). The
 * generators are described in generate.h and uniform-product.h.
 *
 *     design: {generate: uniform-product, factors: [m, n, k], cross: {control.turbo: [on, off]}}
 *
 *     cross        factors whose values every row is combined with, all with all; written as those of
 * factorial compute      columns to add, by expressions over the columns before them (expression.h)
 *     repetitions  how often each row is measured; default 1
 *     repeat       until a row is known well enough, instead of so many times (repeat.h)
 *     order        random (default) or as-written (order.h)
 *     blocks       how many times each state of the controls comes (order.h); default 1, at most the
 * repetitions. Only where the table has columns of controls, and in random order seed         a whole number
 * from 0 to 2^64 - 1; drawn from the system when not given
 *
 * Table and order come from two independent streams of the one seed (random.h): a table that was written
 * as-written and is read again has, with the same seed, the order that it would have had when generated.
 */
#ifndef ASSAY_DESIGN_SPECIFICATION_H
#define ASSAY_DESIGN_SPECIFICATION_H

#include "engine/design/factor.h"
#include "engine/design/levels.h"
#include "engine/design/order.h"
#include "engine/design/repeat.h"
#include "engine/design/uniform-product.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct design;

enum design_kind {
    DESIGN_KIND_FACTORIAL,
    DESIGN_KIND_UNIFORM,
    DESIGN_KIND_LOG_UNIFORM,
    DESIGN_KIND_LATIN_HYPERCUBE,
    DESIGN_KIND_UNIFORM_PRODUCT,
    DESIGN_KIND_FILE,
    DESIGN_KIND_SINGLE, /* one row, no columns */
};

/* The names of the kinds that generate, in the order of the enum, ended by NULL; and of the orders. */
extern const char *const design_kind_names[];
extern const char *const design_order_names[];

/* A column that is computed from others. */
struct design_computed {
    char *name, *text; /* owned */
    size_t line, column;
};

/* All strings and arrays are owned. Fields that the kind does not use are as they were born. */
struct design_specification {
    enum design_kind kind;
    char *file; /* of the table; "-" is standard input */
    struct levels *levels;
    size_t level_count;
    uint64_t rows; /* to draw */
    struct uniform_product product;
    struct levels *crossed;
    size_t crossed_count;
    struct design_computed *computed;
    size_t computed_count;

    uint64_t repetitions; /* with `repeat`: the most repetitions */
    struct design_repeat repeat;
    uint64_t blocks; /* of each state; 0: nothing was said */
    size_t blocks_line, blocks_column;
    enum design_order_kind order;
    uint64_t seed;
    bool seed_drawn; /* the seed was not given, but drawn from the system */

    char *place_file; /* where it was written, for messages; or NULL */
    size_t line, column;
};

/* One row without columns, once, in random order, with a seed drawn from the system. */
int design_specification_new(struct design_specification **ret, struct failure *failure);
/* Frees the specification; NULL is allowed. */
void design_specification_free(struct design_specification *specification);
void design_specification_cleanup(struct design_specification **specification); /* the same, for cleanup() */

/* Reads NODE; paths are relative to FOLDER. NODE may be NULL or a null: the result is that of
 * design_specification_new(). Refused, with the place: keys that are unknown or that the kind does not
 * use, and values that are missing, out of range or of the wrong type. */
int design_specification_from_node(const struct document *document, const struct document_node *node,
                                   const char *folder, struct design_specification **ret,
                                   struct failure *failure);

/* Each replaces a value of the specification; TEXT is decimal. A refusal has no place. */
int design_specification_set_seed(struct design_specification *specification, const char *text,
                                  struct failure *failure);
/* Instead of `repeat`, if that was said. */
int design_specification_set_repetitions(struct design_specification *specification, const char *text,
                                         struct failure *failure);
int design_specification_set_order(struct design_specification *specification, const char *name,
                                   struct failure *failure);
int design_specification_set_blocks(struct design_specification *specification, const char *text,
                                    struct failure *failure);
/* Each adds one, and moves LEVELS into the specification, which then owns them. */
int design_specification_add_levels(struct design_specification *specification, struct levels *levels,
                                    struct failure *failure);
int design_specification_add_crossed(struct design_specification *specification, struct levels *levels,
                                     struct failure *failure);
int design_specification_add_computed(struct design_specification *specification, const char *name,
                                      const char *text, size_t line, size_t column, struct failure *failure);

uint64_t design_specification_seed(const struct design_specification *specification);
/* Whether the seed decides anything: the table or the order is drawn. */
bool design_specification_is_random(const struct design_specification *specification);

/* Makes the design and its order. With FACTORS (an experiment's) it conforms to them (design_conform);
 * NULL: every column is kept as it is. */
int design_specification_make(const struct design_specification *specification,
                              const struct design_factors *factors, struct design **ret_design,
                              struct design_order **ret_order, struct failure *failure);

#endif
