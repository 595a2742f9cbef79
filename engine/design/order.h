/*
 * The order in which a design is measured: every row, as many times as there are repetitions, each (row,
 * repetition) at one position. Four bytes a position.
 *
 * Positions lie in blocks. All rows of a block want the same state of the node's controls
 * (control-factors.h), which is set before the block and stays until its end: setting it takes long, and
 * moves what is measured, so it changes as rarely as the order allows. A design without columns of controls
 * is one block.
 *
 * A random order has ROUNDS (1 or more, `blocks:` of a design). Each round takes its share of the
 * repetitions, the first ones first, shares that differ by one at most; and has one block of each state, the
 * states in random order. So a state comes once, with all its repetitions, or as many times as there are
 * rounds, each time set anew: then a drift of the machine does not look like an effect of the state, and how
 * well a state can be set again is seen. A round never begins with the state that the last one ended with (of
 * two states or more), all orders that keep to this being equally likely. Within a block all units are
 * shuffled as one.
 *
 * An order as written changes the state where the table does: its blocks are the longest runs of one state.
 *
 * An order in rounds (of a design that is repeated until its rows are known well enough, repeat.h) has a
 * round for each repetition, in either order, so that every block has each of its rows once, and rows that
 * are known can be left out of later ones: the last blocks of the order need not be measured at all.
 */
#ifndef ASSAY_DESIGN_ORDER_H
#define ASSAY_DESIGN_ORDER_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DESIGN_POSITIONS_MAX = 1 << 28,
    DESIGN_REPETITIONS_MAX = 1 << 24,
    DESIGN_BLOCKS_MAX = 1 << 16,
};

enum design_order_kind {
    DESIGN_ORDER_RANDOM, /* all rows of all repetitions of a block shuffled as one: any sequence is as likely
                            as any other */
    DESIGN_ORDER_AS_WRITTEN, /* the whole table, then the whole table again, ... */
};

/* Positions that follow one another in one state. */
struct design_block {
    size_t first, count;
    size_t row; /* a row of this state: the first in the design */
};

struct design_order {
    enum design_order_kind kind;
    uint64_t seed; /* of a random order */
    size_t row_count, repetitions;
    size_t count;                /* of positions: row_count * repetitions */
    uint32_t *units;             /* owned; by position: repetition * row_count + row */
    struct design_block *blocks; /* owned; at least one; together, all positions in their order */
    size_t block_count, state_count;
};

/* The state of each row: numbers from 0, in the order in which the states first come in the design. */
struct design_states {
    uint32_t *items; /* by row */
    size_t count;    /* of states */
};

/* For ROUNDS: as many as repetitions; as written, a repetition then always begins a new block. */
#define DESIGN_ROUND_EACH SIZE_MAX

/* STATES may be NULL: all rows have the same. The order of the states in each round is drawn from stream
 * RANDOM_STREAM_BLOCKS of SEED (random.h), round after round; the units of each block, one block after the
 * other as they will be measured, from RANDOM_STREAM_ORDER, by random_shuffle of the units 0, 1, 2, ... of
 * the block: a random order of a single state in one round depends on nothing but the seed, the number of
 * rows and the repetitions. More positions than DESIGN_POSITIONS_MAX or blocks than DESIGN_BLOCKS_MAX,
 * ROUNDS above the repetitions, and ROUNDS above 1 with an order as written, are refused. */
int design_order_new(enum design_order_kind kind, uint64_t seed, size_t rows, size_t repetitions,
                     const struct design_states *states, size_t rounds, struct design_order **ret,
                     struct failure *failure);
/* NULL is fine. */
void design_order_free(struct design_order *order);

/* The row at a position, and which of its repetitions it is; all count from 0. */
static inline size_t design_order_row(const struct design_order *order, size_t position) {
    return order->units[position] % order->row_count;
}
static inline size_t design_order_repetition(const struct design_order *order, size_t position) {
    return order->units[position] / order->row_count;
}

/* "random", "as-written". */
const char *design_order_kind_name(enum design_order_kind kind);

#endif
