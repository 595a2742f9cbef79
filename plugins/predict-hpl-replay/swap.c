/* The swaps of pivot rows between the processes of a column: which rows move, and by which messages
 * (pdlaswp00, pdlaswp01). */
#include "plugins/predict-hpl-replay/hpl.h"

#include <stdlib.h>
#include <string.h>

enum {
    PANELS_CACHED = 8
}; /* whose moves are known, or depth + 2 if that is more: so many panels are in use */

/* By process row: how many rows it owns of those that move or are in the diagonal block of PANEL, and how
 * many rows go to it from the root, the row of the grid that owns the diagonal block. */
struct hpl_moves {
    int panel;
    int *owned, *going;
};

struct hpl_space *hpl_space_new(const struct hpl *hpl) {
    struct hpl_space *ret = calloc(1, sizeof *ret);
    size_t p = (size_t)hpl->p, moving = 2 * (size_t)hpl->nb;
    size_t cached = (size_t)(hpl->depth + 2 > PANELS_CACHED ? hpl->depth + 2 : PANELS_CACHED);
    if (!ret)
        return NULL;
    *ret =
        (struct hpl_space){.hpl = hpl,
                           .numbers = calloc(6 * (p + 1) + 2 * moving + 2 * cached * p, sizeof *ret->numbers),
                           .peaks = calloc(p, sizeof *ret->peaks),
                           .moves = calloc(cached, sizeof *ret->moves),
                           .cached = (int)cached};
    if (!ret->numbers || !ret->peaks || !ret->moves) {
        hpl_space_free(ret);
        return NULL;
    }
    ret->sources = ret->numbers + 6 * (p + 1);
    ret->contents = ret->sources + moving;
    for (size_t i = 0; i < cached; i++)
        ret->moves[i] = (struct hpl_moves){-1, ret->contents + moving + 2 * i * p,
                                           ret->contents + moving + (2 * i + 1) * p};
    return ret;
}

void hpl_space_free(struct hpl_space *space) {
    if (!space)
        return;
    free(space->numbers);
    free(space->peaks);
    free(space->moves);
    free(space);
}

/* Fills MOVES by doing the swaps of PANEL on the numbers of rows: those of the diagonal block come first,
 * then the other rows that are pivots. */
static void find_moves(struct hpl_space *space, struct hpl_moves *moves, int panel) {
    const struct hpl *hpl = space->hpl;
    int start = hpl_panel_start(hpl, panel), width = hpl_panel_width(hpl, panel), count = width;
    int root = hpl_panel_row(hpl, panel), *sources = space->sources, *contents = space->contents;
    moves->panel = panel;
    memset(moves->owned, 0, 2 * (size_t)hpl->p * sizeof *moves->owned);
    for (int i = 0; i < width; i++)
        sources[i] = contents[i] = start + i;
    for (int i = 0; i < width; i++) {
        int pivot = hpl->pivots[start + i], at = pivot - start;
        if (at >= width) {
            for (at = width; at < count && sources[at] != pivot; at++)
                ;
            if (at == count)
                sources[count] = contents[count] = pivot, count++;
        }
        int row = contents[i];
        contents[i] = contents[at];
        contents[at] = row;
    }
    for (int i = 0; i < count; i++) {
        int from = contents[i] / hpl->nb % hpl->p, to = sources[i] / hpl->nb % hpl->p;
        moves->owned[from]++;
        if (from == root && (to != root || i < width))
            moves->going[to]++;
    }
}

/* PLAIN, the kernel for a U that is not transposed, or the kernel after it, for one that is. */
static enum hpl_kernel form(const struct hpl_sink *sink, enum hpl_kernel plain) {
    return plain + (sink->hpl->u_plain ? 0 : 1);
}

static void copy(struct hpl_sink *sink, enum hpl_kernel kernel, int row, int m, int n, int k) {
    sink->kernel(sink, kernel, row, row + 1, NULL, m, n, k);
}

static void probe_row(struct hpl_sink *sink, int row) {
    sink->control(sink, HPL_PROBE, row, row + 1, -1, 0);
}

static void probe_all(struct hpl_sink *sink) {
    sink->control(sink, HPL_PROBE, 0, sink->hpl->p, -1, 0);
}

/* HPL_BINARY_EXCHANGE (pdlaswp00): by recursive doubling, rows that go into U travel as W, with their index,
 * towards the root, and U travels the other way. A number of processes that is no power of 2 is folded before
 * and unfolded after. */
static void exchange_binary(struct hpl_sink *sink, int panel, int columns, const int *owned) {
    const struct hpl *hpl = sink->hpl;
    int p = hpl->p, power = hpl_power_below(p), rest = p - power, root = hpl_panel_row(hpl, panel);
    int64_t u = 8 * (int64_t)hpl_panel_width(hpl, panel) * columns, w = 8 * ((int64_t)columns + 1);
    int *held = sink->space->numbers; /* by distance from the root: rows of W that the process has so far */
    for (int d = 0; d < p; d++) {
        int row = (root + d) % p;
        held[d] = d == 0 ? 0 : owned[row];
        copy(sink, d == 0 ? form(sink, HPL_DLASWP01_N) : HPL_DLASWP02_N, row, owned[row], columns, 0);
    }
    probe_all(sink);
    for (int d = 0; d < rest; d++) {
        int low = (root + d) % p, high = (root + d + power) % p;
        hpl_exchange(sink, low, high, d == 0 ? u : 0, held[d + power] * w);
        if (d == 0 && held[power] > 0)
            copy(sink, form(sink, HPL_DLASWP03_N), low, held[power], columns, 0);
        if (d > 0)
            held[d] += held[d + power];
    }
    probe_all(sink);
    for (int bit = 1; bit < power; bit *= 2) {
        for (int d = 0; d < power; d++) {
            int low = (root + d) % p, high = (root + d + bit) % p;
            if ((d & bit) != 0)
                continue;
            hpl_exchange(sink, low, high, d < bit ? u : held[d] * w, held[d + bit] * w);
            if (d < bit) {
                copy(sink, form(sink, HPL_DLASWP03_N), low, held[d + bit], columns, 0);
                copy(sink, form(sink, HPL_DLASWP04_N), high, owned[high], columns, held[d + bit]);
            }
            held[d] = held[d + bit] = held[d] + held[d + bit];
        }
        for (int d = 0; d < power; d++)
            probe_row(sink, (root + d) % p);
    }
    hpl_binomial(sink, (root + power) % p, rest, u, true);
    for (int d = 0; d < rest; d++) {
        int high = (root + d + power) % p;
        copy(sink, form(sink, HPL_DLASWP05_N), high, owned[high], columns, 0);
        hpl_exchange(sink, (root + d) % p, high, u, 0);
    }
    probe_all(sink);
}

/* ---- Spread and roll */

/* U in pieces, one a process. The processes are numbered as members, the root as 0. */
struct pieces {
    struct hpl_sink *sink;
    int columns;
    int *starts; /* P + 1: row of U where the piece of each member starts */
    int *rows;   /* by member: its row of the grid */
};

/* Numbers the members so that those with many rows are near the root of the tree, in the order that HPL's own
 * sort gives. */
static void sort_members(int root, const int *going, struct pieces *pieces) {
    int p = pieces->sink->hpl->p, *lengths = pieces->starts + 1, *depth = pieces->rows + p, depth_max = 0;
    for (int i = 0; i < p; i++) {
        pieces->rows[i] = (root + i) % p;
        lengths[i] = going[(root + i) % p];
        depth[i] = __builtin_popcount((unsigned)i);
        depth_max = depth[i] > depth_max ? depth[i] : depth_max;
    }
    for (int k = 1; k <= depth_max; k++)
        for (int j = 1; j < p; j++)
            for (int i = 2; depth[j] == k && i < p; i++)
                if (k < depth[i] && lengths[j] < lengths[i]) {
                    int length = lengths[j], row = pieces->rows[j];
                    lengths[j] = lengths[i];
                    pieces->rows[j] = pieces->rows[i];
                    lengths[i] = length;
                    pieces->rows[i] = row;
                }
    pieces->starts[0] = 0;
    for (int i = 0; i < p; i++)
        lengths[i] += pieces->starts[i];
}

/* Member SOURCE spreads pieces down a binomial tree: to all members after it, or, IS_LEFT, before it. STARTS:
 * rows of U where the pieces start. */
static void spread(const struct pieces *pieces, const int *starts, int source, bool is_left) {
    struct hpl_sink *sink = pieces->sink;
    int p = sink->hpl->p, size = is_left ? source + 1 : p - source;
    for (int i = 0; size > 1 && i < size; i++) { /* i: distance from the source */
        int bit = hpl_power_below(size - 1), mask = 2 * bit - 1, rest = i;
        int index = is_left ? size - 1 - bit : bit, row = pieces->rows[is_left ? source - i : source + i];
        while (bit > 0) {
            int from, to;
            if (is_left) {
                to = starts[index + 1];
                from = starts[index - (index < bit ? index : bit)];
            } else {
                from = starts[source + (index < size ? index : size)];
                to = starts[source + (index + bit < size ? index + bit : size)];
            }
            int other = i ^ bit, half = bit / 2;
            int64_t bytes = 8 * (int64_t)(to - from) * pieces->columns;
            mask ^= bit;
            if ((i & mask) == 0 && to > from && other < size)
                sink->call(sink, (i & bit) != 0 ? HPL_RECV : HPL_SEND, row,
                           pieces->rows[is_left ? source - other : source + other], sink->column, bytes);
            index += (rest < bit) == is_left ? half : -half;
            rest -= rest < bit ? 0 : bit;
            bit = half;
            probe_row(sink, row);
        }
    }
}

/* Makes the pieces equally long, but for one row: each member spreads what it has too much to the members
 * before and after it. */
static void equilibrate(struct pieces *pieces) {
    int p = pieces->sink->hpl->p, *starts = pieces->starts, total = starts[p];
    int least = total / p, most = (total + p - 1) / p, more = total - p * least, i = 0, length;
    int *targets = pieces->rows + p, *parts = targets + p + 1;
    if (p <= 2)
        return;
    do {
        length = starts[i + 1] - starts[i];
        i++;
    } while (i < p && (length == least || length == most));
    if (i == p) /* the last member is not looked at: so it is in HPL */
        return;
    for (i = 0; i <= p; i++)
        targets[i] = i < more ? i * most : i * least + more;
    for (int source = 0; source < p; source++) {
        int from = starts[source], left = starts[source + 1] - from;
        bool to_left = from < targets[source], to_right = targets[source + 1] < from + left;
        if (left == 0 || (!to_left && !to_right))
            continue;
        for (i = 0; i < p; i++) {
            int part = targets[i + 1] > from ? targets[i + 1] - from : 0;
            part = part < left ? part : left;
            left -= part;
            parts[i] = from;
            from += part;
        }
        parts[p] = from;
        if (to_left)
            spread(pieces, parts, source, true);
        if (to_right)
            spread(pieces, parts, source, false);
    }
    memcpy(starts, targets, (size_t)p * sizeof *starts);
}

/* Every member gets every piece, in P - 1 exchanges with its two neighbours in turn. */
static void roll(const struct pieces *pieces) {
    struct hpl_sink *sink = pieces->sink;
    const int *starts = pieces->starts;
    int p = sink->hpl->p;
    for (int i = 0; i < p; i++)
        for (int k = 0; k < p - 1; k++) {
            bool is_odd = ((i + k) & 1) != 0;
            int sent = (is_odd ? i + k / 2 : i - k / 2 + p) % p;
            int got = (is_odd ? i - k / 2 - 1 + p : i + k / 2 + 1) % p;
            int row = pieces->rows[i], peer = pieces->rows[(is_odd ? i + p - 1 : i + 1) % p];
            int64_t column = 8 * (int64_t)pieces->columns;
            int64_t out = (starts[sent + 1] - starts[sent]) * column,
                    in = (starts[got + 1] - starts[got]) * column;
            if (in > 0)
                sink->call(sink, HPL_IRECV, row, peer, sink->column, in);
            if (out > 0)
                sink->call(sink, HPL_SEND, row, peer, sink->column, out);
            if (in > 0)
                sink->call(sink, HPL_WAIT, row, -1, -1, 0);
            probe_row(sink, row);
        }
}

/* HPL_SPREAD_ROLL (pdlaswp01): the root spreads pieces of U, which then roll. */
static void exchange_pieces(struct hpl_sink *sink, int panel, int columns, const int *owned,
                            const int *going) {
    const struct hpl *hpl = sink->hpl;
    int p = hpl->p, root = hpl_panel_row(hpl, panel), width = hpl_panel_width(hpl, panel);
    int *starts = sink->space->numbers, *rows = starts + p + 1;
    struct pieces pieces = {sink, columns, starts, rows};
    sort_members(root, going, &pieces);
    copy(sink, form(sink, HPL_DLASWP01_N), root, owned[root], columns, 0);
    spread(&pieces, starts, 0, false);
    for (int i = 0; i < p; i++)
        if (rows[i] != root)
            copy(sink, form(sink, HPL_DLASWP06_N), rows[i], starts[i + 1] - starts[i], columns, 0);
    if (hpl->equilibrate)
        equilibrate(&pieces);
    roll(&pieces);
    sink->kernel(sink, hpl->u_plain ? HPL_DLASWP00_N : HPL_DLASWP10_N, 0, p, NULL,
                 hpl->u_plain ? width : columns, hpl->u_plain ? columns : width, 0);
}

void hpl_swap_rows(struct hpl_sink *sink, int panel, int columns) {
    const struct hpl *hpl = sink->hpl;
    struct hpl_moves *moves = &sink->space->moves[panel % sink->space->cached];
    if (moves->panel != panel)
        find_moves(sink->space, moves, panel);
    sink->phase = HPL_SWAP;
    if (hpl->swap == HPL_SPREAD_ROLL || (hpl->swap == HPL_MIX && columns > hpl->swap_threshold))
        exchange_pieces(sink, panel, columns, moves->owned, moves->going);
    else
        exchange_binary(sink, panel, columns, moves->owned);
}

void hpl_draw_pivots(int n, uint64_t seed, int *ret) {
    for (int i = 0; i < n; i++) {
        /* splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014) by counter */
        uint64_t x = seed + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        x ^= x >> 31;
        ret[i] = i + (int)((x >> 32) * (uint64_t)(n - i) >> 32);
    }
}
