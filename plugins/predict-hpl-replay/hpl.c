/* The steps of HPL's main loops (pdgesv, pdgesvK2, pdtrsv) and of rocHPL's. */
#include "plugins/predict-hpl-replay/hpl.h"

#include <stddef.h>

const char *const hpl_kernel_names[HPL_KERNELS] = {
    "dgemm",     "dtrsm",     "dgemv",     "dger",      "dtrsv",     "dscal",     "daxpy",
    "dcopy",     "idamax",    "dlocmax",   "dlocswpN",  "dlocswpT",  "dlacpy",    "dlatcpy",
    "dlaswp00N", "dlaswp01N", "dlaswp01T", "dlaswp02N", "dlaswp03N", "dlaswp03T", "dlaswp04N",
    "dlaswp04T", "dlaswp05N", "dlaswp05T", "dlaswp06N", "dlaswp06T", "dlaswp10N"};
const char *const hpl_phase_names[HPL_PHASES] = {"fact", "bcast", "swap", "update", "trsv"};
const char *const hpl_call_names[HPL_CALLS] = {"Send", "Ssend", "Issend", "Recv", "Irecv", "Wait"};

int hpl_panel_count(const struct hpl *hpl) {
    return hpl->n / hpl->nb + (hpl->n % hpl->nb > 0);
}

/* Without a second column there is nobody to send panels to, and HPL takes depth 0. */
static int look_ahead(const struct hpl *hpl) {
    return hpl->q == 1 ? 0 : hpl->depth;
}

static int chosen_count(const struct hpl *hpl) {
    return hpl->chosen ? hpl->chosen_count : hpl_panel_count(hpl);
}

/* The panel that is factored in ITERATION. Iterations after the last panel get panels of width 0. */
static int panel_of(const struct hpl *hpl, int iteration) {
    if (!hpl->chosen)
        return iteration;
    return iteration < hpl->chosen_count ? hpl->chosen[iteration]
                                         : hpl_panel_count(hpl) + iteration - hpl->chosen_count;
}

static struct hpl_step update_step(int panel, int pending, int from, int to) {
    return (struct hpl_step){
        .kind = HPL_STEP_UPDATE, .panel = panel, .pending = pending, .from = from, .to = to};
}

/* hpl_next() of pdgesvK2: the first `depth` panels are factored and broadcast; then each iteration factors
 * one more panel and updates with the oldest one. False: only the back substitution is left. */
static bool next_factorisation(const struct hpl *hpl, int column, struct hpl_position *at,
                               struct hpl_step *ret) {
    int depth = look_ahead(hpl), panels = chosen_count(hpl);
    int end = panels > depth ? panels : depth, behind = hpl->n + 1;
    for (;;) {
        int i = at->iteration, part = at->part++, panel = panel_of(hpl, i);
        int start = hpl_panel_start(hpl, panel), next = start + hpl_panel_width(hpl, panel);
        bool owns = panel % hpl->q == column;
        *ret = (struct hpl_step){.panel = panel, .pending = -1};
        if (i < depth) {
            if (part < 2) {
                ret->kind = part == 0 ? HPL_STEP_FACTOR : HPL_STEP_BROADCAST;
                return true;
            }
            at->iteration++;
            at->part = 0;
            *ret = update_step(panel, -1, next, hpl_panel_start(hpl, panel_of(hpl, depth)));
            if (i < depth - 1)
                return true;
        } else if (i < end) {
            if (part < depth) {
                *ret = update_step(panel_of(hpl, i - depth + part), -1, start, next);
                if (owns)
                    return true;
            } else if (part == depth) {
                ret->kind = HPL_STEP_FACTOR;
                return true;
            } else if (part == depth + 1 && depth == 0) {
                ret->kind = HPL_STEP_BROADCAST;
                return true;
            } else {
                at->iteration++;
                at->part = 0;
                *ret = update_step(panel_of(hpl, i - depth), depth > 0 ? panel : -1,
                                   owns || depth == 0 ? next : start, behind);
                return true;
            }
        } else {
            *ret = update_step(panel_of(hpl, end - depth + part), -1, hpl->n, behind);
            return part < depth;
        }
    }
}

/* ---- The split update of rocHPL (N. Chalmers and others, Optimizing High-Performance Linpack for Exascale
 * Accelerated Architectures, arXiv 2304.10397, 2023; its pdgesv and pdpanel_init) */

enum section { NEXT_PANEL, LEFT_PART, RIGHT_PART };

/* Local columns of COLUMN that the panel of ITERATION updates. */
static int section_columns(const struct hpl *hpl, int iteration, int column, enum section section) {
    if (iteration < 0 || iteration >= chosen_count(hpl))
        return 0;
    int next = panel_of(hpl, iteration + 1), from = hpl_panel_start(hpl, next);
    int own = hpl_local_columns(hpl, from, from + hpl_panel_width(hpl, next), column);
    int rest = hpl_local_columns(hpl, from, hpl->n + 1, column) - own;
    int right = (int)(hpl->split * hpl_local(hpl->n + 1, hpl->nb, column, hpl->q)) / hpl->nb * hpl->nb;
    right = hpl->p == 1 || right > rest ? rest : right;
    return section == NEXT_PANEL ? own : section == RIGHT_PART ? right : rest - right;
}

/* hpl_next() of the split update: an iteration ends the updates with the panel before its own, and begins
 * those with its own. False: only the back substitution is left. */
static bool next_split(const struct hpl *hpl, int column, struct hpl_position *at, struct hpl_step *ret) {
    static const struct part {
        enum hpl_step_kind kind;
        enum hpl_control control;
        enum section section;
        bool of_panel_before;
        int columns;
    } parts[] = {
        {.kind = HPL_STEP_CONTROL, .control = HPL_LAUNCH, .section = NEXT_PANEL, .of_panel_before = true},
        {.kind = HPL_STEP_CONTROL, .control = HPL_AWAIT},
        {.kind = HPL_STEP_CONTROL, .control = HPL_LAUNCH, .section = RIGHT_PART, .of_panel_before = true},
        {.kind = HPL_STEP_CONTROL, .control = HPL_MARK},
        {.kind = HPL_STEP_FACTOR},
        {.kind = HPL_STEP_BROADCAST},
        {.kind = HPL_STEP_SWAP, .section = LEFT_PART, .of_panel_before = true},
        {.kind = HPL_STEP_CONTROL, .control = HPL_LAUNCH, .section = LEFT_PART, .of_panel_before = true},
        {.kind = HPL_STEP_CONTROL, .control = HPL_AWAIT, .columns = 1},
        {.kind = HPL_STEP_SWAP, .section = RIGHT_PART},
        {.kind = HPL_STEP_CONTROL, .control = HPL_AWAIT},
        {.kind = HPL_STEP_SWAP, .section = NEXT_PANEL},
    };
    for (int last = chosen_count(hpl);;) {
        if (at->part == (int)(sizeof parts / sizeof *parts)) {
            at->iteration++;
            at->part = 0;
        }
        if (at->iteration > last)
            return false;
        const struct part *part = &parts[at->part++];
        int i = at->iteration - part->of_panel_before;
        bool is_swap = part->kind == HPL_STEP_SWAP, has_columns = is_swap || part->control == HPL_LAUNCH;
        int columns = has_columns ? section_columns(hpl, i, column, part->section) : part->columns;
        *ret = (struct hpl_step){.kind = part->kind,
                                 .panel = i < 0 ? 0 : panel_of(hpl, i),
                                 .pending = -1,
                                 .columns = columns,
                                 .control = part->control};
        if (has_columns ? columns > 0 && (!is_swap || hpl->p > 1)
                        : i < last || part->kind == HPL_STEP_CONTROL)
            return true;
    }
}

bool hpl_next(const struct hpl *hpl, int column, struct hpl_position *at, struct hpl_step *ret) {
    int last = hpl_panel_count(hpl) - 1;
    if (!at->is_solving) {
        if (hpl->is_split ? next_split(hpl, column, at, ret) : next_factorisation(hpl, column, at, ret))
            return true;
        *at = (struct hpl_position){.is_solving = true};
    }
    *ret = (struct hpl_step){.kind = HPL_STEP_SOLVE, .panel = last - at->iteration + 1, .pending = -1};
    return at->iteration++ <= last + 1;
}

void hpl_exchange(struct hpl_sink *sink, int a, int b, int64_t a_to_b, int64_t b_to_a) {
    int column = sink->column;
    if (sink->exchange) {
        sink->exchange(sink, a, b, a_to_b, b_to_a);
    } else if (a_to_b > 0 && b_to_a > 0) {
        sink->call(sink, HPL_IRECV, a, b, column, b_to_a);
        sink->call(sink, HPL_IRECV, b, a, column, a_to_b);
        sink->call(sink, HPL_SEND, a, b, column, a_to_b);
        sink->call(sink, HPL_SEND, b, a, column, b_to_a);
        sink->call(sink, HPL_WAIT, a, -1, -1, 0);
        sink->call(sink, HPL_WAIT, b, -1, -1, 0);
    } else if (a_to_b > 0) {
        sink->call(sink, HPL_SEND, a, b, column, a_to_b);
        sink->call(sink, HPL_RECV, b, a, column, a_to_b);
    } else if (b_to_a > 0) {
        hpl_exchange(sink, b, a, b_to_a, 0);
    }
}

void hpl_binomial(struct hpl_sink *sink, int root, int size, int64_t bytes, bool probes) {
    int p = sink->hpl->p;
    if (size < 2)
        return;
    for (int bit = hpl_power_below(size - 1); bit > 0; bit /= 2) {
        for (int i = 0; i + bit < size; i += 2 * bit)
            hpl_exchange(sink, (root + i) % p, (root + i + bit) % p, bytes, 0);
        for (int i = 0; probes && i < size; i++)
            sink->control(sink, HPL_PROBE, (root + i) % p, (root + i) % p + 1, -1, 0);
    }
}

void hpl_chunk(struct hpl_sink *sink, int panel, int row, int columns) {
    const struct hpl *hpl = sink->hpl;
    int width = hpl_panel_width(hpl, panel);
    bool is_plain = hpl->p == 1 || hpl->u_plain;
    sink->phase = HPL_UPDATE;
    if (hpl->p == 1)
        sink->kernel(sink, HPL_DLASWP00_N, row, row + 1, NULL, width, columns, 0);
    sink->kernel(sink, HPL_DTRSM, row, row + 1, NULL, is_plain ? width : columns, is_plain ? columns : width,
                 width);
    sink->kernel(sink, HPL_DGEMM, row, row + 1, NULL, hpl_rows_below(hpl, panel, row), columns, width);
    if (hpl->p > 1 && row == hpl_panel_row(hpl, panel))
        sink->kernel(sink, is_plain ? HPL_DLACPY : HPL_DLATCPY, row, row + 1, NULL, width, columns, 0);
}

/* The copy of the panel, if HPL was built for it, and HPL_START. */
static void start_broadcast(struct hpl_sink *sink, int panel) {
    const struct hpl *hpl = sink->hpl;
    sink->phase = HPL_BCAST;
    if (hpl->copy_l && hpl->q > 1 && sink->column == hpl_panel_column(hpl, panel))
        for (int row = 0; row < hpl->p; row++)
            sink->kernel(sink, HPL_DLACPY, row, row + 1, NULL, hpl_rows_below(hpl, panel, row),
                         hpl_panel_width(hpl, panel), 0);
    if (hpl->q > 1)
        sink->control(sink, HPL_START, 0, hpl->p, panel, 0);
}

/* Swaps of rows and update with the step's panel, while the pending one is broadcast. */
static void emit_update(struct hpl_sink *sink, const struct hpl_step *step) {
    const struct hpl *hpl = sink->hpl;
    int columns = hpl_local_columns(hpl, step->from, step->to, sink->column);
    if (step->pending >= 0)
        start_broadcast(sink, step->pending);
    if (columns > 0 && hpl_panel_width(hpl, step->panel) > 0) {
        if (hpl->p > 1)
            hpl_swap_rows(sink, step->panel, columns);
        sink->control(sink, HPL_CHUNKS, 0, hpl->p, step->panel, columns);
    }
    if (step->pending >= 0)
        sink->control(sink, HPL_FINISH, 0, hpl->p, step->pending, 0);
}

/* How many of the OF rows of the matrix before row END are in process row ROW. */
static int rows_before(const struct hpl *hpl, int row, int end, int64_t of) {
    int from = of < end ? end - (int)of : 0;
    return hpl_local(end, hpl->nb, row, hpl->p) - hpl_local(from, hpl->nb, row, hpl->p);
}

/* Back substitution by blocks from the last one up. Block PREVIOUS is solved in the step before: its part of
 * the solution goes up its process column, its product with the blocks above goes to the left, where the next
 * block is then solved. PREVIOUS 0: the end, where the first part is sent to the whole column. */
static void emit_solve(struct hpl_sink *sink, int previous) {
    const struct hpl *hpl = sink->hpl;
    int p = hpl->p, q = hpl->q, nb = hpl->nb, column = sink->column, last = hpl_panel_count(hpl) - 1;
    int row_before = previous % p, column_before = previous % q,
        width_before = hpl_panel_width(hpl, previous);
    int row_now = (previous - 1) % p, column_now = (previous - 1) % q;
    int holder = hpl->n / nb % q; /* of the right-hand side */
    sink->phase = HPL_TRSV;
    if (previous > 0 && column != column_before && column != column_now && column != holder)
        return;
    if (previous == 0) {
        if (column == 0)
            hpl_binomial(sink, 0, p, 8 * (int64_t)width_before, false);
        return;
    }
    for (int row = 0; row < p; row++) {
        int up = (row + p - 1) % p, down = (row + 1) % p;
        if (previous == last + 1) { /* the right-hand side goes to the owner of the last block */
            int rows = hpl_local(hpl->n, nb, row, p);
            if (rows > 0 && column_now != holder && column == holder)
                sink->call(sink, HPL_SEND, row, row, column_now, 8 * (int64_t)rows);
            if (rows > 0 && column_now != holder && column == column_now)
                sink->call(sink, HPL_RECV, row, row, holder, 8 * (int64_t)rows);
        } else {
            int above = hpl_local(previous * nb, nb, row, p);
            int near = rows_before(hpl, row, previous * nb, q > 2 ? (int64_t)(q - 1) * nb : nb);
            int64_t part = 8 * (int64_t)width_before, sums = 8 * (int64_t)near;
            if (column == column_before) {
                if (row != row_before)
                    sink->call(sink, HPL_RECV, row, down, column, part);
                else if (p > 1)
                    sink->call(sink, HPL_SEND, row, up, column, part);
                if (near > 0)
                    sink->kernel(sink, HPL_DGEMV, row, row + 1, NULL, near, width_before, 0);
                if (near > 0 && q > 1)
                    sink->call(sink, HPL_SEND, row, row, column_now, sums);
                if (row != row_before && row != (row_before + 1) % p)
                    sink->call(sink, HPL_SEND, row, up, column, part);
            } else if (column == column_now && near > 0) {
                sink->call(sink, HPL_RECV, row, row, column_before, sums);
                sink->kernel(sink, HPL_DAXPY, row, row + 1, NULL, near, 0, 0);
            }
            if (column == column_now && row == row_now) {
                sink->kernel(sink, HPL_DTRSV, row, row + 1, NULL, nb, nb, 0);
                sink->kernel(sink, HPL_DCOPY, row, row + 1, NULL, nb, 0, 0);
            }
            if (column == column_before && above > near)
                sink->kernel(sink, HPL_DGEMV, row, row + 1, NULL, above - near, width_before, 0);
        }
        if (previous == last + 1 && column == column_now && row == row_now) {
            int width = hpl_panel_width(hpl, last);
            sink->kernel(sink, HPL_DTRSV, row, row + 1, NULL, width, width, 0);
            sink->kernel(sink, HPL_DCOPY, row, row + 1, NULL, width, 0, 0);
        }
    }
}

void hpl_emit(struct hpl_sink *sink, const struct hpl_step *step) {
    const struct hpl *hpl = sink->hpl;
    switch (step->kind) {
    case HPL_STEP_FACTOR:
        if (hpl_panel_width(hpl, step->panel) > 0 && sink->column == hpl_panel_column(hpl, step->panel))
            sink->control(sink, HPL_FACTOR, 0, hpl->p, step->panel, 0);
        break;
    case HPL_STEP_BROADCAST:
        start_broadcast(sink, step->panel);
        sink->control(sink, HPL_FINISH, 0, hpl->p, step->panel, 0);
        break;
    case HPL_STEP_UPDATE:
        emit_update(sink, step);
        break;
    case HPL_STEP_SOLVE:
        emit_solve(sink, step->panel);
        break;
    case HPL_STEP_SWAP:
        hpl_swap_rows(sink, step->panel, step->columns);
        break;
    case HPL_STEP_CONTROL:
        sink->phase = HPL_UPDATE;
        sink->control(sink, step->control, 0, hpl->p, step->panel, step->columns);
    }
}
