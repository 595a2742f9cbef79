/* The broadcasts HPL_LONG and HPL_LONGM where every process has a card of its own: by recurrence over the
 * clocks of a row's processes, without events. */
#include "plugins/predict-hpl-replay/state.h"

#include <stdlib.h>

int rolls_init(struct replay *replay) {
    size_t q = (size_t)replay->hpl->q;
    replay->rolls.arrived = calloc((size_t)replay->hpl->p, sizeof *replay->rolls.arrived);
    replay->rolls.clocks = calloc(2 * q, sizeof *replay->rolls.clocks);
    replay->rolls.transits = calloc(q, sizeof *replay->rolls.transits);
    replay->rolls.post = replay->rolls.clocks + q;
    return replay->rolls.arrived && replay->rolls.clocks && replay->rolls.transits ? 0 : -ENOMEM;
}

void rolls_clear(struct replay *replay) {
    free(replay->rolls.arrived);
    free(replay->rolls.clocks);
    free(replay->rolls.transits);
}

/* A synchronous message of BYTES between processes that are ready at *A and *B. Both go on when it is there.
 */
static void send_synchronously(const struct replay *replay, double *a, double *b, int64_t bytes) {
    *a = *b = arrival(later(*a, *b), find_transit(replay, 0, 1, bytes));
}

/* Members A and B exchange pieces: A in step A_STEP of its roll, B in B_STEP. */
static inline void exchange_by_clock(struct rolls *rolls, int size, int a, int a_step, int b, int b_step) {
    int a_piece = hpl_roll_piece(size, a, a_step, false), b_piece = hpl_roll_piece(size, b, b_step, false);
    double begin = later(rolls->clocks[a] + rolls->post[a_piece], rolls->clocks[b] + rolls->post[b_piece]);
    rolls->clocks[a] = rolls->clocks[b] =
        later(arrival(begin, rolls->transits[a_piece]), arrival(begin, rolls->transits[b_piece]));
}

/* Spread and roll of PANEL in ROW, over the clocks of its members. */
static void recur(struct replay *replay, int panel, int row) {
    const struct hpl *hpl = replay->hpl;
    struct rolls *rolls = &replay->rolls;
    int size = hpl_roll_size(hpl);
    for (int bit = hpl_power_below(size - 1); bit > 0; bit /= 2)
        for (int i = 0; i + bit < size; i += 2 * bit)
            send_synchronously(replay, &rolls->clocks[i], &rolls->clocks[i + bit],
                               hpl_roll_bytes(hpl, panel, row, i + bit, bit));
    for (int piece = 0; piece < size; piece++) {
        int64_t bytes = hpl_roll_bytes(hpl, panel, row, piece, 1);
        rolls->post[piece] = network_cost(segment_of(replay, 0, 1, bytes), NETWORK_ISEND, (double)bytes);
        rolls->transits[piece] = find_transit(replay, 0, 1, bytes);
    }
    for (int step = 0; step < size - 1; step++) {
        int is_odd = step % 2;
        if (is_odd) /* an odd number of members: the last one has not done the step before */
            exchange_by_clock(rolls, size, size - 1, size % 2 ? step - 1 : step, 0, step);
        for (int i = is_odd; i + 1 < size; i += 2)
            exchange_by_clock(rolls, size, i, step, i + 1, step);
    }
    replay->times.message_count += (uint64_t)(size - 1) * (uint64_t)(size + 1);
}

void long_broadcast(struct replay *replay, int panel, int row) {
    const struct hpl *hpl = replay->hpl;
    struct rolls *rolls = &replay->rolls;
    int size = hpl_roll_size(hpl);
    for (int i = 0; i < size; i++)
        rolls->clocks[i] = process_at(replay, row, hpl_roll_member(hpl, panel, i))->now;
    if (hpl->bcast == HPL_LONGM) {
        int neighbour = (hpl_panel_column(hpl, panel) + 1) % hpl->q;
        send_synchronously(replay, &rolls->clocks[0], &process_at(replay, row, neighbour)->now,
                           8 * hpl_broadcast_length(hpl, panel, row));
        replay->times.message_count++;
    }
    recur(replay, panel, row);
    for (int i = 0; i < size; i++)
        process_at(replay, row, hpl_roll_member(hpl, panel, i))->now = rolls->clocks[i];
}
