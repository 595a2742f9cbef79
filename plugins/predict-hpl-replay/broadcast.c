/* The broadcast of a panel along a row of the grid. */
#include "plugins/predict-hpl-replay/hpl.h"

#include <stddef.h>

/* How many columns COLUMN is to the right of the root of PANEL's broadcast, cyclic. */
static int distance_to(const struct hpl *hpl, int panel, int column) {
    return (column - hpl_panel_column(hpl, panel) + hpl->q) % hpl->q;
}

/* In a ring: the distance from the root of the process that sends to the one at DISTANCE, which is not 0. */
static int ring_source(const struct hpl *hpl, int distance) {
    int half = (hpl->q + 1) / 2;
    bool is_second = distance == 2 && (hpl->bcast == HPL_1RINGM || hpl->bcast == HPL_2RINGM);
    bool is_half = distance == half && (hpl->bcast == HPL_2RING || hpl->bcast == HPL_2RINGM);
    return is_second || is_half ? 0 : distance - 1;
}

bool hpl_probes(const struct hpl *hpl, int panel, int column) {
    return hpl->bcast < HPL_LONG && distance_to(hpl, panel, column) > 0;
}

int hpl_ring_source(const struct hpl *hpl, int panel, int column) {
    return (hpl_panel_column(hpl, panel) + ring_source(hpl, distance_to(hpl, panel, column))) % hpl->q;
}

static void call(struct hpl_sink *sink, enum hpl_call call, int row, int peer, int64_t length) {
    sink->call(sink, call, row, row, peer, 8 * length);
}

/* The ring broadcasts: what the process at DISTANCE from the root ROOT does with a panel of LENGTH numbers.
 */
static void go_round(struct hpl_sink *sink, int root, int distance, int row, int64_t length) {
    const struct hpl *hpl = sink->hpl;
    int half = (hpl->q + 1) / 2;
    bool two_rings = hpl->bcast == HPL_2RING || hpl->bcast == HPL_2RINGM;
    bool is_modified = hpl->bcast == HPL_1RINGM || hpl->bcast == HPL_2RINGM;
    if (distance > 0) {
        call(sink, HPL_RECV, row, (root + ring_source(hpl, distance)) % hpl->q, length);
        if (distance + 1 < hpl->q && ring_source(hpl, distance + 1) == distance)
            call(sink, HPL_SEND, row, (root + distance + 1) % hpl->q, length);
        return;
    }
    call(sink, HPL_SEND, row, (root + 1) % hpl->q, length);
    if (hpl->q > 2 && is_modified && !(two_rings && half == 2))
        call(sink, HPL_SEND, row, (root + 2) % hpl->q, length);
    if (hpl->q > 2 && two_rings)
        call(sink, HPL_SEND, row, (root + half) % hpl->q, length);
}

int64_t hpl_broadcast_length(const struct hpl *hpl, int panel, int row) {
    int64_t width = hpl_panel_width(hpl, panel);
    return hpl_rows_below(hpl, panel, row) * width + width * width + width + 1;
}

int hpl_roll_member(const struct hpl *hpl, int panel, int i) {
    int size = hpl_roll_size(hpl);
    return (hpl_panel_column(hpl, panel) + i + (size < hpl->q && i > 0)) % hpl->q;
}

int64_t hpl_roll_bytes(const struct hpl *hpl, int panel, int row, int piece, int count) {
    int size = hpl_roll_size(hpl);
    int64_t length = hpl_broadcast_length(hpl, panel, row), each = length / size > 1 ? length / size : 1;
    int64_t from = piece * each, to = piece + count < size ? from + count * each : length;
    to = to < length ? to : length;
    return to > from ? 8 * (to - from) : 0;
}

int hpl_roll_piece(int size, int me, int step, bool is_received) {
    bool is_odd = (me + step) % 2 != 0;
    int distance = step / 2 + is_received;
    return (me + (is_odd != is_received ? distance : size - distance)) % size;
}

/* Spread of the pieces of PANEL down a binomial tree, and a roll that sends every piece to everybody: what
 * member ME does. */
static void spread_and_roll(struct hpl_sink *sink, int panel, int me, int row) {
    const struct hpl *hpl = sink->hpl;
    int size = hpl_roll_size(hpl);
    for (int bit = hpl_power_below(size - 1); bit > 0; bit /= 2) {
        int peer = me ^ bit, upper = me | bit;
        if ((me & (bit - 1)) == 0 && upper < size)
            sink->call(sink, me == upper ? HPL_RECV : HPL_SSEND, row, row, hpl_roll_member(hpl, panel, peer),
                       hpl_roll_bytes(hpl, panel, row, upper, bit));
    }
    for (int k = 0; k < size - 1; k++) {
        int peer = hpl_roll_member(hpl, panel, (me + ((me + k) % 2 != 0 ? size - 1 : 1)) % size);
        int sent = hpl_roll_piece(size, me, k, false), received = hpl_roll_piece(size, me, k, true);
        sink->call(sink, HPL_ISSEND, row, row, peer, hpl_roll_bytes(hpl, panel, row, sent, 1));
        sink->call(sink, HPL_RECV, row, row, peer, hpl_roll_bytes(hpl, panel, row, received, 1));
        sink->call(sink, HPL_WAIT, row, -1, -1, 0);
    }
}

void hpl_broadcast(struct hpl_sink *sink, int panel, int row) {
    const struct hpl *hpl = sink->hpl;
    int root = hpl_panel_column(hpl, panel), distance = distance_to(hpl, panel, sink->column);
    int64_t length = hpl_broadcast_length(hpl, panel, row);
    sink->phase = HPL_BCAST;
    if (hpl->bcast < HPL_LONG) {
        go_round(sink, root, distance, row, length);
    } else if (hpl->bcast == HPL_LONG) {
        spread_and_roll(sink, panel, distance, row);
    } else { /* the root's neighbour gets the whole panel, the others share the work */
        if (distance == 0)
            call(sink, HPL_SSEND, row, (root + 1) % hpl->q, length);
        if (distance == 1)
            call(sink, HPL_RECV, row, root, length);
        else if (hpl->q > 2)
            spread_and_roll(sink, panel, distance > 0 ? distance - 1 : 0, row);
    }
}
