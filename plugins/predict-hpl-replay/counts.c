#include "plugins/predict-hpl-replay/counts.h"

#include <errno.h>
#include <stdlib.h>

struct counter {
    struct hpl_sink sink;
    struct counts *counts;
    bool is_late;
    int *pending; /* by process row: the panel that is awaited, or -1 */
    counts_observer observer;
    void *context;
    int error;
};

int counts_compare(const void *a, const void *b) {
    const struct counts_message *x = a, *y = b;
    int64_t keys[][2] = {{x->rank, y->rank},
                         {x->phase, y->phase},
                         {x->type, y->type},
                         {x->peer, y->peer},
                         {x->bytes, y->bytes}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

void counts_sort(struct counts_message *messages, size_t *count) {
    size_t kept = 0;
    if (*count > 0)
        qsort(messages, *count, sizeof *messages, counts_compare);
    for (size_t i = 0; i < *count; i++)
        if (kept > 0 && counts_compare(&messages[kept - 1], &messages[i]) == 0)
            messages[kept - 1].count += messages[i].count;
        else
            messages[kept++] = messages[i];
    *count = kept;
}

/* hpl_sink.kernel */
static void count_kernel(struct hpl_sink *sink, enum hpl_kernel kernel, int from, int to, const int *each,
                         int same, int n, int k) {
    struct counter *counter = (struct counter *)sink;
    bool is_pair = kernel == HPL_DLASWP04_N || kernel == HPL_DLASWP04_T; /* empty if it has neither m nor k */
    int arity = hpl_dimensions(kernel);
    for (int row = from; row < to; row++) {
        int rank = hpl_rank(sink->hpl, row, sink->column);
        int m = each ? each[row] : same;
        double *sums = counter->counts->kernels[rank][sink->phase][kernel], x = m, y = n, z = k;
        bool is_empty = (m == 0 && !(is_pair && k > 0)) || (arity > 1 && n == 0) || (arity > 2 && k == 0);
        double values[COUNTS_SUMS] = {1, 0, x, y, z, x * y, x * z, y * z, x * y * z};
        if (counter->observer)
            counter->observer(counter->context, rank, hpl_kernel_names[kernel], sink->phase, m, n, k);
        sums[COUNTS_EMPTY] += is_empty;
        for (int i = 0; !is_empty && i < COUNTS_SUMS; i++)
            sums[i] += values[i];
    }
}

/* hpl_sink.call: equal messages are added up when the list is full, so that it grows with what is different.
 */
static void count_call(struct hpl_sink *sink, enum hpl_call call, int row, int peer_row, int peer_column,
                       int64_t bytes) {
    struct counter *counter = (struct counter *)sink;
    struct counts *counts = counter->counts;
    int peer = call == HPL_WAIT ? -1 : hpl_rank(sink->hpl, peer_row, peer_column);
    int rank = hpl_rank(sink->hpl, row, sink->column);
    if (counts->message_count == counts->message_size)
        counts_sort(counts->messages, &counts->message_count);
    if (2 * counts->message_count >= counts->message_size) {
        size_t size = counts->message_size > 0 ? 2 * counts->message_size : 4096;
        struct counts_message *messages = realloc(counts->messages, size * sizeof *messages);
        if (!messages) {
            counter->error = -ENOMEM;
            return;
        }
        counts->messages = messages;
        counts->message_size = size;
    }
    counts->messages[counts->message_count++] =
        (struct counts_message){rank, (int)sink->phase, (int)call, peer, bytes, 1};
    if (counter->observer)
        counter->observer(counter->context, rank, hpl_call_names[call], sink->phase, peer, bytes, 0);
}

/* The process in ROW receives the panel that it awaits, and sends it on. */
static void receive(struct counter *counter, int row) {
    enum hpl_phase phase = counter->sink.phase;
    hpl_broadcast(&counter->sink, counter->pending[row], row);
    counter->pending[row] = -1;
    counter->sink.phase = phase;
}

/* hpl_sink.control, by the rule `is_late`. */
static void count_control(struct hpl_sink *sink, enum hpl_control control, int from, int to, int panel,
                          int columns) {
    struct counter *counter = (struct counter *)sink;
    if (control == HPL_FACTOR) {
        hpl_factor(sink, panel, 0, hpl_panel_width(sink->hpl, panel) + 1);
        return;
    }
    for (int row = from; row < to; row++) {
        int *pending = &counter->pending[row];
        if (control == HPL_START)
            *pending = panel;
        for (int left = control == HPL_CHUNKS || control == HPL_LAUNCH ? columns : 0, chunk; left > 0;
             left -= chunk) {
            chunk = *pending >= 0 && left > sink->hpl->nb ? sink->hpl->nb : left;
            hpl_chunk(sink, panel, row, chunk);
        }
        if (*pending >= 0 && control != HPL_PROBE &&
            (control != HPL_START || !counter->is_late || !hpl_probes(sink->hpl, panel, sink->column)))
            receive(counter, row);
    }
}

int counts_make(const struct hpl *hpl, bool is_late, counts_observer observer, void *context,
                struct counts *ret) {
    struct counter counter = {.sink = {.hpl = hpl,
                                       .space = hpl_space_new(hpl),
                                       .kernel = count_kernel,
                                       .call = count_call,
                                       .control = count_control},
                              .counts = ret,
                              .is_late = is_late,
                              .pending = calloc((size_t)hpl->p, sizeof(int)),
                              .observer = observer,
                              .context = context};
    *ret = (struct counts){.kernels = calloc((size_t)hpl->p * (size_t)hpl->q, sizeof *ret->kernels)};
    if (!counter.sink.space || !counter.pending || !ret->kernels)
        counter.error = -ENOMEM;
    for (int column = 0; counter.error == 0 && column < hpl->q; column++) {
        struct hpl_position position = {0};
        struct hpl_step step;
        counter.sink.column = column;
        for (int row = 0; row < hpl->p; row++)
            counter.pending[row] = -1;
        while (counter.error == 0 && hpl_next(hpl, column, &position, &step))
            hpl_emit(&counter.sink, &step);
    }
    counts_sort(ret->messages, &ret->message_count);
    hpl_space_free(counter.sink.space);
    free(counter.pending);
    return counter.error;
}

void counts_clear(struct counts *counts) {
    free(counts->messages);
    free(counts->kernels);
    *counts = (struct counts){0};
}
