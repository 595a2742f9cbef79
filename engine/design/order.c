#include "engine/design/order.h"

#include "engine/design/random.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <stdbool.h>
#include <stdlib.h>

static void free_order(struct design_order **order) {
    design_order_free(*order);
}

/* Allocates an order of all repetitions of all rows. -EINVAL: none, or too many. */
static int order_begin(enum design_order_kind kind, uint64_t seed, size_t rows, size_t repetitions,
                       struct design_order **ret, struct failure *failure) {
    if (rows == 0 || repetitions == 0)
        return failure_input(failure, NULL, 0, 0,
                             "%zu repetitions of %zu rows, expected at least one of each", repetitions, rows);
    if (rows > DESIGN_POSITIONS_MAX / repetitions)
        return failure_input(failure, NULL, 0, 0,
                             "%zu repetitions of %zu rows are more than the limit of %d measurements",
                             repetitions, rows, DESIGN_POSITIONS_MAX);
    struct design_order *order = xmalloc(sizeof *order);
    *order = (struct design_order){.kind = kind,
                                   .seed = seed,
                                   .row_count = rows,
                                   .repetitions = repetitions,
                                   .count = rows * repetitions,
                                   .units = xcalloc(rows * repetitions, sizeof *order->units)};
    *ret = order;
    return 0;
}

/* Makes room for COUNT blocks. -EINVAL: too many. */
static int reserve_blocks(struct design_order *order, size_t states, size_t count, struct failure *failure) {
    if (count > DESIGN_BLOCKS_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "the order has %zu blocks of one state of the controls each; expected "
                             "at most %d",
                             count, DESIGN_BLOCKS_MAX);
    order->blocks = xcalloc(count, sizeof *order->blocks);
    order->state_count = states;
    return 0;
}

/* ---- As written */

/* Whether a block begins at position AT: the state of the controls changes there, or a round begins. */
static bool is_first(const struct design_order *order, const struct design_states *states, bool in_rounds,
                     size_t at) {
    size_t row = at % order->row_count;
    return at == 0 || (in_rounds && row == 0) ||
           states->items[row] != states->items[(at - 1) % order->row_count];
}

/* Orders the units as written, with a block for each run of one state. */
static int write_runs(struct design_order *order, const struct design_states *states, bool in_rounds,
                      struct failure *failure) {
    size_t count = 0;
    for (size_t i = 0; i < order->count; i++) {
        order->units[i] = (uint32_t)i;
        count += is_first(order, states, in_rounds, i);
    }
    int r = reserve_blocks(order, states->count, count, failure);
    if (r < 0)
        return r;
    cleanup_free size_t *rows = xcalloc(states->count, sizeof *rows); /* a row of each state */
    for (size_t row = order->row_count; row-- > 0;)
        rows[states->items[row]] = row;
    for (size_t i = 0; i < order->count; i++) {
        uint32_t state = states->items[i % order->row_count];
        if (is_first(order, states, in_rounds, i))
            order->blocks[order->block_count++] = (struct design_block){.first = i, .row = rows[state]};
        order->blocks[order->block_count - 1].count++;
    }
    return 0;
}

/* ---- Random */

/* The rows of each state. */
struct groups {
    uint32_t *rows; /* by state, and as written within a state */
    size_t *first;  /* by state, into rows; one more than there are states */
    uint32_t *turn; /* the states, in the order of the round */
};

static void groups_clear(struct groups *groups) {
    free(groups->rows);
    free(groups->first);
    free(groups->turn);
}

/* Lists the rows of each state. */
static void groups_init(struct groups *groups, const struct design_states *states, size_t rows) {
    *groups = (struct groups){.rows = xcalloc(rows, sizeof *groups->rows),
                              .first = xcalloc(states->count + 2, sizeof *groups->first),
                              .turn = xcalloc(states->count, sizeof *groups->turn)};
    /* Counted one further on, so that filling moves each to its beginning. */
    for (size_t row = 0; row < rows; row++)
        groups->first[states->items[row] + 2]++;
    for (size_t i = 2; i < states->count + 2; i++)
        groups->first[i] += groups->first[i - 1];
    for (size_t row = 0; row < rows; row++)
        groups->rows[groups->first[states->items[row] + 1]++] = (uint32_t)row;
    for (size_t i = 0; i < states->count; i++)
        groups->turn[i] = (uint32_t)i;
}

/* Draws the order of states of the next round. It does not begin with the last state of the round before,
 * since that would change nothing: such a state swaps places with a random later one, so that all other
 * orders stay equally likely. */
static void draw_turn(struct groups *groups, size_t count, bool is_first, struct random_source *source) {
    uint32_t last = groups->turn[count - 1];
    for (size_t i = 0; i < count; i++)
        groups->turn[i] = (uint32_t)i;
    random_shuffle(source, groups->turn, count);
    if (is_first || count < 2 || groups->turn[0] != last)
        return;
    size_t other = 1 + (size_t)random_below(source, count - 1);
    groups->turn[0] = groups->turn[other];
    groups->turn[other] = last;
}

/* Adds the block of STATE with the repetitions from FROM to TO - 1, in random order. */
static void deal_block(struct design_order *order, const struct groups *groups, uint32_t state, size_t from,
                       size_t to, size_t at, struct random_source *source) {
    struct design_block *block = &order->blocks[order->block_count++];
    *block = (struct design_block){.first = at, .row = groups->rows[groups->first[state]]};
    for (size_t repetition = from; repetition < to; repetition++)
        for (size_t i = groups->first[state]; i < groups->first[state + 1]; i++)
            order->units[at + block->count++] = (uint32_t)(repetition * order->row_count + groups->rows[i]);
    random_shuffle(source, order->units + at, block->count);
}

/* Orders the units at random: rounds of all states, and within a block all its units. */
static int shuffle_units(struct design_order *order, const struct design_states *states, size_t rounds,
                         struct failure *failure) {
    cleanup(groups_clear) struct groups groups = {0};
    int r = reserve_blocks(order, states->count, states->count * rounds, failure);
    if (r < 0)
        return r;
    groups_init(&groups, states, order->row_count);
    struct random_source turns, units;
    random_start(&turns, order->seed, RANDOM_STREAM_BLOCKS);
    random_start(&units, order->seed, RANDOM_STREAM_ORDER);
    size_t at = 0;
    for (size_t round = 0; round < rounds; round++) {
        draw_turn(&groups, states->count, round == 0, &turns);
        size_t from = round * order->repetitions / rounds, to = (round + 1) * order->repetitions / rounds;
        for (size_t i = 0; i < states->count; i++) {
            deal_block(order, &groups, groups.turn[i], from, to, at, &units);
            at += order->blocks[order->block_count - 1].count;
        }
    }
    return 0;
}

/* ---- Both */

/* Makes the order in which units are measured (order.h). -EINVAL: blocks that are not possible. */
int design_order_new(enum design_order_kind kind, uint64_t seed, size_t rows, size_t repetitions,
                     const struct design_states *states, size_t rounds, struct design_order **ret,
                     struct failure *failure) {
    cleanup(free_order) struct design_order *order = NULL;
    int r = order_begin(kind, seed, rows, repetitions, &order, failure);
    if (r < 0)
        return r;
    bool in_rounds = rounds == DESIGN_ROUND_EACH;
    rounds = in_rounds ? repetitions : rounds;
    if (rounds > 1 && !in_rounds && kind == DESIGN_ORDER_AS_WRITTEN)
        return failure_input(failure, NULL, 0, 0,
                             "%zu blocks of each state are set, but with the order as-written the "
                             "table determines when the state changes; set 'order: random'",
                             rounds);
    if (rounds < 1 || rounds > repetitions)
        return failure_input(failure, NULL, 0, 0,
                             "%zu blocks of each state are set, expected from 1 to %zu, the number "
                             "of repetitions",
                             rounds, repetitions);
    cleanup_free uint32_t *same = states ? NULL : xcalloc(rows, sizeof *same);
    struct design_states all = {.items = same, .count = 1};
    states = states ? states : &all;
    r = kind == DESIGN_ORDER_RANDOM ? shuffle_units(order, states, rounds, failure)
                                    : write_runs(order, states, in_rounds, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(order);
    return 0;
}

void design_order_free(struct design_order *order) {
    if (!order)
        return;
    free(order->units);
    free(order->blocks);
    free(order);
}

const char *design_order_kind_name(enum design_order_kind kind) {
    return kind == DESIGN_ORDER_RANDOM ? "random" : "as-written";
}
