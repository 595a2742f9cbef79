/* The broadcast of a panel along a row of the grid. */
#include "plugins/predict-hpl-replay/hpl.h"

#include <stddef.h>

static int distance_to(const struct hpl *hpl, int panel, int column) {
    return (column - hpl_panel_column(hpl, panel) + hpl->q) % hpl->q;
}

/* From which distance DISTANCE receives; distances count from the root. */
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

/* A ring of SIZE processes, the i-th of which is at distance i from the root, or, where the first neighbour
 * of the root is left out, at i + 1 for i > 0. */
static int member(const struct hpl *hpl, int root, int size, int i) {
    return (root + i + (size < hpl->q && i > 0)) % hpl->q;
}

/* Spread of SIZE pieces down a binomial tree, and a roll that sends every piece to everybody: member ME of
 * SIZE. The last piece also has what is left over. */
static void spread_and_roll(struct hpl_sink *sink, int root, int size, int me, int row, int64_t length) {
    const struct hpl *hpl = sink->hpl;
    int64_t piece = length / size > 1 ? length / size : 1;
    int bit = hpl_power_below(size - 1), mask = 2 * bit - 1, rest = me, index = bit;
    while (bit > 0) {
        int64_t part = length - index * piece;
        if (index + bit < size && part > bit * piece)
            part = bit * piece;
        mask ^= bit;
        if ((me & mask) == 0 && (me & bit) != 0)
            call(sink, HPL_RECV, row, member(hpl, root, size, me ^ bit), part > 0 ? part : 0);
        else if ((me & mask) == 0 && (me ^ bit) < size)
            call(sink, HPL_SSEND, row, member(hpl, root, size, me ^ bit), part > 0 ? part : 0);
        int half = bit / 2;
        index += rest < bit ? -half : half;
        rest -= rest < bit ? 0 : bit;
        bit = half;
    }
    for (int k = 0; k < size - 1; k++) {
        bool is_odd = ((me + k) & 1) != 0;
        int ahead = k / 2 + (is_odd ? 0 : 1), behind = k / 2 + (is_odd ? 1 : 0);
        int up = (me + ahead) % size, down = (me - behind + size) % size;
        int64_t ends[2], pieces[2] = {is_odd ? up : down, is_odd ? down : up}; /* sent, received */
        for (int i = 0; i < 2; i++) {
            int64_t from = pieces[i] * piece, to = pieces[i] == size - 1 ? length : from + piece;
            to = to < length ? to : length;
            ends[i] = to > from ? to - from : 0;
        }
        int peer = member(hpl, root, size, (me + (is_odd ? size - 1 : 1)) % size);
        call(sink, HPL_ISSEND, row, peer, ends[0]);
        call(sink, HPL_RECV, row, peer, ends[1]);
        sink->call(sink, HPL_WAIT, row, -1, -1, 0);
    }
}

void hpl_broadcast(struct hpl_sink *sink, int panel, int row) {
    const struct hpl *hpl = sink->hpl;
    int root = hpl_panel_column(hpl, panel), distance = distance_to(hpl, panel, sink->column);
    int64_t width = hpl_panel_width(hpl, panel);
    int64_t length = hpl_rows_below(hpl, panel, row) * width + width * width + width + 1;
    sink->phase = HPL_BCAST;
    if (hpl->bcast < HPL_LONG) {
        go_round(sink, root, distance, row, length);
    } else if (hpl->bcast == HPL_LONG) {
        spread_and_roll(sink, root, hpl->q, distance, row, length);
    } else { /* the root's neighbour gets the whole panel, the others share the work */
        if (distance == 0)
            call(sink, HPL_SSEND, row, (root + 1) % hpl->q, length);
        if (distance == 1)
            call(sink, HPL_RECV, row, root, length);
        else if (hpl->q > 2)
            spread_and_roll(sink, root, hpl->q - 1, distance > 0 ? distance - 1 : 0, row, length);
    }
}
