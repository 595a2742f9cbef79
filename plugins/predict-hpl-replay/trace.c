#include "plugins/predict-hpl-replay/trace.h"

#include "plugins/predict-hpl-replay/sensitivities.h"

#include <errno.h>
#include <stdlib.h>

int trace_init(struct trace *trace, int ranks) {
    *trace = (struct trace){.ranks = ranks,
                            .spent = calloc((size_t)ranks, sizeof *trace->spent),
                            .paths = calloc((size_t)ranks, sizeof *trace->paths),
                            .open = calloc((size_t)ranks, sizeof *trace->open)};
    for (int i = 0; trace->open && i < ranks; i++)
        trace->open[i].part = -1;
    return trace->spent && trace->paths && trace->open ? 0 : -ENOMEM;
}

void trace_clear(struct trace *trace) {
    free(trace->spent);
    free(trace->paths);
    free(trace->open);
    free(trace->ready);
}

static void end_interval(struct trace *trace, int rank) {
    int r = trace->open[rank].part >= 0 ? trace->interval(trace->context, rank, &trace->open[rank]) : 0;
    trace->error = trace->error < 0 ? trace->error : r;
    trace->open[rank].part = -1;
}

void trace_pass(struct trace *trace, int rank, enum activity activity, int what, double from, double until) {
    int part = activity == KERNEL     ? what
               : activity == MESSAGES ? HPL_KERNELS + what
                                      : HPL_KERNELS + HPL_PHASES + (activity == PROBING);
    struct trace_path *path = &trace->paths[rank];
    struct trace_interval *open = &trace->open[rank];
    trace->spent[rank][part] += until - from;
    if (until > path->until) {
        path->parts[part] += until - path->until;
        path->until = until;
    }
    if (trace->sensitivities)
        sensitivities_pass(trace->sensitivities, rank,
                           activity == KERNEL     ? SENSITIVITY_KERNELS + what
                           : activity == MESSAGES ? SENSITIVITY_CALLS
                                                  : SENSITIVITY_PROBES,
                           until);
    if (!trace->is_open || rank < trace->first_rank || rank >= trace->end_rank || until <= from)
        return;
    if (open->part != part || open->until < from) {
        end_interval(trace, rank);
        *open = (struct trace_interval){part, from, until};
    }
    open->until = until;
}

void trace_ready(struct trace *trace, int transfer, int rank) {
    if ((size_t)transfer >= trace->ready_count) {
        size_t count = 2 * (size_t)transfer + 16;
        struct trace_path *ready = realloc(trace->ready, count * sizeof *ready);
        if (!ready) {
            trace->error = -ENOMEM;
            return;
        }
        trace->ready = ready;
        trace->ready_count = count;
    }
    trace->ready[transfer] = trace->paths[rank];
    if (trace->sensitivities)
        sensitivities_ready(trace->sensitivities, transfer, rank);
}

void trace_follow(struct trace *trace, int rank, int transfer) {
    if ((size_t)transfer < trace->ready_count)
        trace->paths[rank] = trace->ready[transfer];
    if (trace->sensitivities)
        sensitivities_follow(trace->sensitivities, rank, transfer);
}

void trace_exchange(struct trace *trace, int a, int b, bool a_waits, bool b_waits) {
    struct trace_path before = trace->paths[a];
    if (a_waits)
        trace->paths[a] = trace->paths[b];
    if (b_waits)
        trace->paths[b] = before;
}

void trace_window(struct trace *trace, bool is_open) {
    for (int i = 0; trace->is_open && !is_open && i < trace->ranks; i++)
        end_interval(trace, i);
    /* An empty interval of each rank first, so that their lanes are in order. */
    for (int i = trace->first_rank; trace->interval && is_open && !trace->is_open && i < trace->end_rank;
         i++) {
        trace->open[i] = (struct trace_interval){HPL_DGEMM, trace->paths[i].until, trace->paths[i].until};
        end_interval(trace, i);
    }
    trace->is_open = is_open && trace->interval;
}
