/* The recursive factorisation of a panel, by all processes of its column in step. */
#include "plugins/predict-hpl-replay/hpl.h"

#include <stdlib.h>

struct panel {
    struct hpl_sink *sink;
    const struct hpl *hpl;
    int start, width; /* first column of the matrix, columns */
    int root;         /* the process row that owns the diagonal block */
    int done;         /* columns that are factored */
    int from, to;     /* the sink gets the operations while from <= done < to */
    int *rows;        /* by process row: local rows that are not pivots yet */
    double *peaks;    /* by process row: the greatest magnitude of the column that it knows of */
    int *peak_rows;   /* and the process row that has it */
};

/* Whether the sink gets the current operation. */
static bool is_emitted(const struct panel *panel) {
    return panel->done >= panel->from && panel->done < panel->to;
}

/* All process rows call KERNEL with the same sizes. */
static void call_same(struct panel *panel, enum hpl_kernel kernel, int m, int n, int k) {
    if (is_emitted(panel))
        panel->sink->kernel(panel->sink, kernel, 0, panel->hpl->p, NULL, m, n, k);
}

/* All process rows call KERNEL with their own number of rows. */
static void call_each(struct panel *panel, enum hpl_kernel kernel, int n, int k) {
    if (is_emitted(panel))
        panel->sink->kernel(panel->sink, kernel, 0, panel->hpl->p, panel->rows, 0, n, k);
}

static void call_one(struct panel *panel, int row, enum hpl_kernel kernel, int m, int n) {
    if (is_emitted(panel))
        panel->sink->kernel(panel->sink, kernel, row, row + 1, NULL, m, n, 0);
}

/* ROW compares its candidate for the pivot with the one that it has received, of PEAK in process row
 * PEAK_ROW, and copies LENGTH numbers if that is better. Returns whether it is. */
static bool copy_better(struct panel *panel, int row, double peak, int peak_row, int length) {
    bool is_better =
        peak > panel->peaks[row] || (peak == panel->peaks[row] && peak_row < panel->peak_rows[row]);
    if (is_better) {
        panel->peaks[row] = peak;
        panel->peak_rows[row] = peak_row;
        call_one(panel, row, HPL_DCOPY, length, 0);
    }
    return is_better;
}

/* The copies after an exchange of candidates between the process rows A and B. HAS_CURRENT: A has sent the
 * row that the pivot is swapped with, too. */
static void compare(struct panel *panel, int a, int b, bool has_current) {
    double peak_a = panel->peaks[a];
    int peak_row_a = panel->peak_rows[a], width = panel->width;
    copy_better(panel, a, panel->peaks[b], panel->peak_rows[b], width + 4);
    if (!copy_better(panel, b, peak_a, peak_row_a, has_current ? 2 * width + 4 : width + 4) && has_current)
        call_one(panel, b, HPL_DCOPY, width, 0);
}

/* Each process row copies its candidate, and the root the row that the pivot is swapped with. */
static void copy_candidates(struct panel *panel, int column) {
    const struct hpl *hpl = panel->hpl;
    int owner = hpl->pivots[column] / hpl->nb % hpl->p;
    for (int row = 0; row < hpl->p; row++) {
        double peak = hpl->peaks ? hpl->peaks[(size_t)column * (size_t)hpl->p + (size_t)row] : row == owner;
        panel->peaks[row] = panel->rows[row] > 0 ? peak : 0;
        panel->peak_rows[row] = panel->rows[row] > 0 ? row : hpl->p;
        if (panel->rows[row] > 0)
            call_one(panel, row, HPL_DCOPY, panel->width, 0);
        if (row == panel->root)
            call_one(panel, row, HPL_DCOPY, panel->width, 0);
    }
}

/* The messages that find the pivot of a column and spread its row and the current row (pdmxswp): recursive
 * doubling among the largest power of 2 of process rows, counted from ROOT; the others send their candidate
 * before, and get the answer after. PANEL: also the copies; NULL: the messages alone. */
static void exchange_candidates(struct hpl_sink *sink, int root, int width, struct panel *panel) {
    int p = sink->hpl->p, power = hpl_power_below(p), rest = p - power;
    int64_t row = 8 * (int64_t)width, candidate = row + 32;
    for (int d = 0; d < rest; d++) {
        int low = (root + d) % p, high = (root + d + power) % p;
        hpl_exchange(sink, low, high, d == 0 ? row : 0, candidate);
        if (panel)
            copy_better(panel, low, panel->peaks[high], panel->peak_rows[high], width + 4);
    }
    for (int bit = 1; bit < power; bit *= 2)
        for (int d = 0; d < power; d++)
            if ((d & bit) == 0) {
                int low = (root + d) % p, high = (root + (d ^ bit)) % p;
                hpl_exchange(sink, low, high, d < bit ? candidate + row : candidate, candidate);
                if (panel)
                    compare(panel, low, high, d < bit);
            }
    hpl_binomial(sink, (root + power) % p, rest, row, false);
    for (int d = 0; d < rest; d++)
        hpl_exchange(sink, (root + d) % p, (root + d + power) % p, candidate, 0);
}

void hpl_search(struct hpl_sink *sink, int root, int width) {
    exchange_candidates(sink, root, width, NULL);
}

/* The search for the pivot of the current column: by sink->search where there is one. */
static void find_pivot(struct panel *panel) {
    if (panel->sink->search) {
        panel->sink->search(panel->sink, panel->root, panel->width);
        return;
    }
    copy_candidates(panel, panel->start + panel->done);
    exchange_candidates(panel->sink, panel->root, panel->width, panel);
    call_same(panel, panel->hpl->l1_plain ? HPL_DLOCSWP_N : HPL_DLOCSWP_T, panel->width, 0, 0);
}

static void find_local_maxima(struct panel *panel) {
    if (panel->sink->search) {
        call_each(panel, HPL_IDAMAX, 0, 0);
        return;
    }
    call_each(panel, HPL_DLOCMAX, 0, 0);
    for (int row = 0; row < panel->hpl->p; row++)
        if (panel->rows[row] > 0)
            call_one(panel, row, HPL_IDAMAX, panel->rows[row], 0);
}

/* Factors the next WIDTH columns one by one (pdpanllN, pdpancrN, pdpanrlN and their T forms). `rows` of the
 * root counts its pivot row until the rows are exchanged. */
static void factor_columns(struct panel *panel, int width) {
    const struct hpl *hpl = panel->hpl;
    find_local_maxima(panel);
    for (int i = 0; i < width; i++) {
        int right = width - 1 - i;
        if (is_emitted(panel))
            find_pivot(panel);
        panel->rows[panel->root]--;
        if (right > 0 && hpl->pfact == HPL_LEFT)
            call_same(panel, HPL_DTRSV, i + 1, i + 1, 0);
        if (right > 0 && hpl->pfact == HPL_CROUT && i > 0) {
            call_same(panel, HPL_DGEMV, hpl->l1_plain ? i : right, hpl->l1_plain ? right : i, 0);
            call_one(panel, panel->root, HPL_DCOPY, right, 0);
        }
        call_each(panel, HPL_DSCAL, 0, 0);
        if (right > 0) {
            if (hpl->pfact == HPL_RIGHT)
                call_each(panel, HPL_DAXPY, 0, 0);
            else
                call_each(panel, HPL_DGEMV, i + 1, 0);
            find_local_maxima(panel);
            if (hpl->pfact == HPL_RIGHT && right > 1)
                call_each(panel, HPL_DGER, right - 1, 0);
            if (hpl->pfact == HPL_LEFT)
                call_one(panel, panel->root, HPL_DCOPY, i + 1, 0);
        }
        panel->done++;
    }
}

/* dtrsm with the triangle of ORDER over COUNT columns of L1. */
static void solve_l1(struct panel *panel, int order, int count) {
    bool plain = panel->hpl->l1_plain;
    call_same(panel, HPL_DTRSM, plain ? order : count, plain ? count : order, order);
}

static void factor_recursively(struct panel *panel, int width) {
    const struct hpl *hpl = panel->hpl;
    int first = panel->done, blocks = (width + hpl->nbmin - 1) / hpl->nbmin;
    int step = (blocks + hpl->ndiv - 1) / hpl->ndiv * hpl->nbmin;
    if (first + width < panel->from || first >= panel->to) {
        panel->done += width;
        panel->rows[panel->root] -= width;
        return;
    }
    if (width <= hpl->nbmin) {
        factor_columns(panel, width);
        return;
    }
    for (int left = 0, part = step; left < width; left += part) {
        part = width - left < step ? width - left : step;
        int right = width - left - part;
        if (hpl->rfact == HPL_LEFT)
            solve_l1(panel, left, part);
        if (hpl->rfact != HPL_RIGHT)
            call_each(panel, HPL_DGEMM, part, left);
        factor_recursively(panel, part);
        if (hpl->rfact == HPL_CROUT && right > 0) {
            call_same(panel, HPL_DGEMM, hpl->l1_plain ? part : right, hpl->l1_plain ? right : part, left);
            solve_l1(panel, part, right);
        }
        if (hpl->rfact == HPL_RIGHT) {
            solve_l1(panel, part, right);
            call_each(panel, HPL_DGEMM, right, part);
        }
        call_one(panel, panel->root, hpl->l1_plain ? HPL_DLACPY : HPL_DLATCPY, first + left, part);
    }
}

void hpl_factor(struct hpl_sink *sink, int index, int from, int to) {
    const struct hpl *hpl = sink->hpl;
    struct panel panel = {.sink = sink,
                          .hpl = hpl,
                          .start = hpl_panel_start(hpl, index),
                          .width = hpl_panel_width(hpl, index),
                          .root = hpl_panel_row(hpl, index),
                          .from = from,
                          .to = to,
                          .rows = sink->space->numbers,
                          .peaks = sink->space->peaks,
                          .peak_rows = sink->space->numbers + hpl->p};
    for (int row = 0; row < hpl->p; row++)
        panel.rows[row] = hpl_local_rows(hpl, index, row);
    sink->phase = HPL_FACT;
    if (hpl->is_split) /* from the accelerator */
        call_each(&panel, HPL_DLACPY, panel.width, 0);
    factor_recursively(&panel, panel.width);
    panel.rows[panel.root] += panel.width;
    if (hpl->is_split) /* and back */
        call_each(&panel, HPL_DLACPY, panel.width, 0);
}
