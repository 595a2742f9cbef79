/*
 * The order in which a design is measured: every row, as many times as there are repetitions, each (row,
 * repetition) at one position. Four bytes a position.
 */
#ifndef ASSAY_DESIGN_ORDER_H
#define ASSAY_DESIGN_ORDER_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DESIGN_POSITIONS_MOST = 1 << 28,
    DESIGN_REPETITIONS_MOST = 1 << 24,
};

enum design_order_kind {
    DESIGN_ORDER_RANDOM,     /* all rows of all repetitions shuffled as one: any sequence is as likely as any
                                other */
    DESIGN_ORDER_AS_WRITTEN, /* the whole table, then the whole table again, ... */
};

struct design_order {
    enum design_order_kind kind;
    uint64_t seed; /* of a random order */
    size_t row_count, repetitions;
    size_t count;    /* of positions: row_count * repetitions */
    uint32_t *units; /* owned; by position: repetition * row_count + row */
};

/* A random order is random_shuffle of the units 0, 1, 2, ... with stream RANDOM_STREAM_ORDER of SEED
 * (random.h): it depends on nothing but the seed, the number of rows and the repetitions. More positions than
 * DESIGN_POSITIONS_MOST are refused. */
int design_order_new(enum design_order_kind kind, uint64_t seed, size_t rows, size_t repetitions,
                     struct design_order **ret, struct failure *failure);
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
