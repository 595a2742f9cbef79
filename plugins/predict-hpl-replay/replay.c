#include "plugins/predict-hpl-replay/state.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The one place where a process's time moves: it did ACTIVITY from FROM until UNTIL, its new time. WHAT: the
 * kernel, or the phase of messages. */
static void pass(struct replay *replay, struct process *process, enum activity activity, int what,
                 double from, double until) {
    struct replay_times *times = &replay->times;
    double *total = activity == KERNEL       ? &times->kernels[what]
                    : activity == MESSAGES   ? &times->messages[what]
                    : activity == PANEL_WAIT ? &times->panel_wait
                                             : &times->probing;
    *total += until - from;
    process->now = until;
    if (activity == MESSAGES)
        process->progressed = until;
    if (replay->trace)
        trace_pass(replay->trace, (int)(process - replay->processes), activity, what, from, until);
}

/* ---- Operations of a process */

static void append(struct replay *replay, struct operations *list, struct operation operation) {
    if (list->head > 0 &&
        (list->head == list->count || (list->count == list->size && 2 * list->head >= list->size))) {
        list->count -= list->head;
        memmove(list->items, list->items + list->head, (size_t)list->count * sizeof *list->items);
        list->head = 0;
    }
    if (list->count == list->size) {
        int size = list->size + list->size / 2 + 8;
        struct operation *items = realloc(list->items, (size_t)size * sizeof *items);
        if (!items) {
            replay->error = -ENOMEM;
            return;
        }
        list->items = items;
        list->size = size;
    }
    list->items[list->count++] = operation;
}

static struct replay *replay_of(struct hpl_sink *sink) {
    return !sink->control ? (struct replay *)((char *)sink - offsetof(struct replay, clock_sink))
                          : (struct replay *)((char *)sink - offsetof(struct replay, queue_sink));
}

static struct process *process_at(struct replay *replay, int row, int column) {
    return &replay->processes[hpl_rank(replay->hpl, row, column)];
}

/* Whether KERNEL does nothing with these sizes. */
static bool is_empty(enum hpl_kernel kernel, int m, int n, int k) {
    int arity = hpl_dimensions(kernel);
    if (kernel == HPL_DLASWP04_N || kernel == HPL_DLASWP04_T) /* copies m rows and k rows */
        return n == 0 || (m == 0 && k == 0);
    return m == 0 || (arity > 1 && n == 0) || (arity > 2 && k == 0);
}

static void queue_kernel(struct hpl_sink *sink, enum hpl_kernel kernel, int from, int to, const int *each,
                         int same, int n, int k) {
    struct replay *replay = replay_of(sink);
    if (!replay->machine->kernel[kernel])
        return;
    for (int row = from; row < to; row++) {
        int m = each ? each[row] : same;
        if (!is_empty(kernel, m, n, k))
            append(replay, &process_at(replay, row, sink->column)->queue,
                   (struct operation){.kind = DO_KERNEL,
                                      .what = (uint8_t)kernel,
                                      .phase = (uint8_t)sink->phase,
                                      .m = m,
                                      .n = n,
                                      .k = k});
    }
}

static void queue_call(struct hpl_sink *sink, enum hpl_call call, int row, int peer_row, int peer_column,
                       int64_t bytes) {
    struct replay *replay = replay_of(sink);
    struct process *process = process_at(replay, row, sink->column);
    append(replay, sink->phase == HPL_BCAST ? &process->urgent : &process->queue,
           (struct operation){.kind = DO_CALL,
                              .what = (uint8_t)call,
                              .phase = (uint8_t)sink->phase,
                              .peer = call == HPL_WAIT ? NONE : hpl_rank(replay->hpl, peer_row, peer_column),
                              .bytes = bytes});
}

/* Irecv, Send and Wait of each. */
static void queue_exchange(struct hpl_sink *sink, int a, int b, int64_t a_to_b, int64_t b_to_a) {
    struct replay *replay = replay_of(sink);
    int rows[] = {a, b};
    int64_t bytes[] = {a_to_b, b_to_a};
    for (int i = 0; i < 2; i++) {
        struct operation operation = {.kind = DO_CALL,
                                      .what = EXCHANGE,
                                      .phase = (uint8_t)sink->phase,
                                      .peer = hpl_rank(replay->hpl, rows[1 - i], sink->column),
                                      .bytes = bytes[i]};
        if (a_to_b > 0 && b_to_a > 0)
            append(replay, &process_at(replay, rows[i], sink->column)->queue, operation);
        else if (bytes[i] > 0)
            queue_call(sink, HPL_SEND, rows[i], rows[1 - i], sink->column, bytes[i]);
        else if (bytes[1 - i] > 0)
            queue_call(sink, HPL_RECV, rows[i], rows[1 - i], sink->column, bytes[1 - i]);
    }
}

static void queue_control(struct hpl_sink *sink, enum hpl_control control, int from, int to, int panel,
                          int columns) {
    struct replay *replay = replay_of(sink);
    for (int row = from; row < to; row++) {
        struct operations *queue = &process_at(replay, row, sink->column)->queue;
        struct operation *last = queue->head < queue->count ? &queue->items[queue->count - 1] : NULL;
        bool takes_probes = last && (last->kind != DO_CONTROL || last->what == HPL_PROBE);
        if (control == HPL_PROBE && takes_probes && last->probes < UINT8_MAX)
            last->probes++;
        else
            append(replay, queue,
                   (struct operation){.kind = DO_CONTROL,
                                      .what = (uint8_t)control,
                                      .phase = (uint8_t)sink->phase,
                                      .peer = panel,
                                      .columns = columns});
    }
}

static void spend(struct replay *replay, struct process *process, enum hpl_kernel kernel, int m, int n,
                  int k) {
    const struct replay_machine *machine = replay->machine;
    if (is_empty(kernel, m, n, k))
        return;
    double time = machine->kernel[kernel](machine->context, kernel, (int)(process - replay->processes), m, n,
                                          k, process->calls++);
    replay->times.kernel_count++;
    if (!(time >= 0)) {
        replay->times.unusable_count++;
        time = 0;
    }
    if (machine->whole_microseconds)
        time = floor(time * 1e6) / 1e6;
    pass(replay, process, KERNEL, kernel, process->now, process->now + time);
}

static void clock_kernel(struct hpl_sink *sink, enum hpl_kernel kernel, int from, int to, const int *each,
                         int same, int n, int k) {
    struct replay *replay = replay_of(sink);
    if (!replay->machine->kernel[kernel])
        return;
    for (int row = from; row < to; row++)
        spend(replay, process_at(replay, row, sink->column), kernel, each ? each[row] : same, n, k);
}

/* ---- The search for pivots */

/* Shares of cards do not change within a piece of a factorisation, so costs are found once for each. */
static const struct exchange *find_exchange(struct replay *replay, int column, const int rows[2],
                                            const int64_t bytes[2]) {
    unsigned place = ((unsigned)rows[0] * 0x9e3779b1u + (unsigned)rows[1] * 0x85ebca6bu) >> 22;
    struct exchange *ret = &replay->exchanges[place % EXCHANGES];
    const struct network_model *model = replay->machine->network;
    if (ret->of == replay->factorisations && ret->rows[0] == rows[0] && ret->rows[1] == rows[1] &&
        ret->bytes[0] == bytes[0] && ret->bytes[1] == bytes[1])
        return ret;
    *ret = (struct exchange){.of = replay->factorisations};
    for (int i = 0; i < 2; i++) {
        int source = hpl_rank(replay->hpl, rows[i], column),
            target = hpl_rank(replay->hpl, rows[1 - i], column);
        const struct network_segment *segment = segment_of(replay, source, target, bytes[i]);
        double size = (double)bytes[i];
        bool is_sent = bytes[i] > 0, waits = is_sent && size >= model->detached_below;
        ret->rows[i] = rows[i];
        ret->bytes[i] = bytes[i];
        ret->waits[i] = waits;
        ret->starts_when_both_are_ready[i] = waits || (is_sent && size >= model->eager_below);
        ret->transit[i] = is_sent ? small_time(replay, source, target, bytes[i]) : -INFINITY;
        if (is_sent && !waits) {
            ret->send[i] = network_cost(segment, NETWORK_SEND, size);
            ret->receive[i] = network_cost(segment, NETWORK_RECV, size);
        }
    }
    return ret;
}

/* A and B exchange messages in the factorisation, by recurrence. */
static void clock_exchange(struct hpl_sink *sink, int row_a, int row_b, int64_t a_to_b, int64_t b_to_a) {
    struct replay *replay = replay_of(sink);
    const struct exchange *costs =
        find_exchange(replay, sink->column, (const int[]){row_a, row_b}, (const int64_t[]){a_to_b, b_to_a});
    struct process *a = process_at(replay, row_a, sink->column), *b = process_at(replay, row_b, sink->column);
    double a_sent = a->now + costs->send[0], b_sent = b->now + costs->send[1];
    double b_got =
        (costs->starts_when_both_are_ready[0] ? later(a_sent, b->now) : a_sent) + costs->transit[0];
    double a_got =
        (costs->starts_when_both_are_ready[1] ? later(b_sent, a->now) : b_sent) + costs->transit[1];
    double a_end = later(costs->waits[0] ? later(a_sent, b_got) : a_sent, a_got) + costs->receive[1];
    double b_end = later(costs->waits[1] ? later(b_sent, a_got) : b_sent, b_got) + costs->receive[0];
    if (replay->trace)
        trace_exchange(replay->trace, (int)(a - replay->processes), (int)(b - replay->processes),
                       a_got > a_sent, b_got > b_sent);
    if (replay->sensitivities)
        sensitivities_exchange(
            replay->sensitivities,
            &(struct sensitivity_exchange){{(int)(a - replay->processes), (int)(b - replay->processes)},
                                           costs->bytes,
                                           costs->starts_when_both_are_ready,
                                           costs->waits,
                                           costs->send,
                                           costs->transit,
                                           costs->receive});
    pass(replay, a, MESSAGES, HPL_FACT, a->now, a_end);
    pass(replay, b, MESSAGES, HPL_FACT, b->now, b_end);
    replay->times.message_count += (uint64_t)(a_to_b > 0) + (b_to_a > 0);
}

/* ---- Panels that are awaited */

static void receive_panel(struct replay *replay, struct process *process) {
    int rank = (int)(process - replay->processes), panel = process->pending;
    const struct hpl *hpl = replay->hpl;
    process->pending = NONE;
    process->latest = panel;
    replay->queue_sink.column = hpl_column_of(hpl, rank);
    hpl_broadcast(&replay->queue_sink, panel, hpl_row_of(hpl, rank));
}

/* Whether the call of MPI_Iprobe that PROCESS makes now finds a message that was sent at VISIBLE. A call that
 * is deferred finds what calls of MPI before it brought in, and brings in what has come since. */
static bool finds(const struct replay *replay, struct process *process, double visible) {
    double until = replay->machine->probe_is_deferred ? process->progressed : process->now;
    process->progressed = process->now;
    return visible <= until;
}

/* A call of MPI_Iprobe looks first and takes its time then; SMPI's takes its time first. */
static void pay_probe(struct replay *replay, struct process *process) {
    double cost = replay->machine->probe * (replay->machine->probe_grows ? replay->sleeps : 1);
    pass(replay, process, PROBING, 0, process->now, process->now + cost);
}

/* Whether the panel that PROCESS awaits cannot have been sent by now, although the events are not that far:
 * its sender is ahead, or has to receive it first, as may the sender's sender. */
static bool is_early(const struct replay *replay, const struct process *process) {
    const struct hpl *hpl = replay->hpl;
    int panel = process->pending, at = process->source, row = -1, column = -1, root = -1;
    int64_t bytes = 0;
    double delay = 0;
    for (int i = 0; i < SENDERS; i++) {
        const struct process *source = &replay->processes[at];
        if (process->now < later(source->now, replay->clock) + delay)
            return true;
        if (source->latest >= panel)
            return false;
        if (row < 0) {
            row = hpl_row_of(hpl, at);
            column = hpl_column_of(hpl, at);
            root = hpl_panel_column(hpl, panel);
            bytes = 8 * (int64_t)hpl_rows_below(hpl, panel, row) * hpl_panel_width(hpl, panel);
        }
        if (column == root || (double)bytes < replay->machine->network->detached_below)
            return false;
        column = hpl_ring_source(hpl, panel, column);
        int before = hpl_rank(hpl, row, column);
        const struct network_segment *segment = segment_of(replay, before, at, bytes);
        delay += segment->latency + (double)bytes / segment->rate;
        at = before;
    }
    return false;
}

/* Whether the panel is there now. A process that is ahead of the events comes back at its time: then
 * *RET_WAIT is true. */
static bool probe(struct replay *replay, struct process *process, bool *ret_wait) {
    *ret_wait = false;
    if (replay->machine->probe_grows && !process->has_probed)
        pay_probe(replay, process);
    process->has_probed = true;
    int id = find_incoming(replay, process, process->source);
    if (id == NONE && process->now > replay->clock &&
        (replay->machine->probe_grows || !is_early(replay, process))) {
        push(replay, process->now, RESUME, (int)(process - replay->processes));
        *ret_wait = true;
        return false;
    }
    process->has_probed = false;
    bool is_there = finds(replay, process, id != NONE ? replay->transfers[id].posted : INFINITY);
    replay->sleeps = is_there ? 1 : replay->sleeps + 1;
    if (!replay->machine->probe_grows)
        pay_probe(replay, process);
    return is_there;
}

static void update_chunk(struct replay *replay, struct process *process, int columns) {
    int rank = (int)(process - replay->processes);
    const struct hpl *hpl = replay->hpl;
    replay->clock_sink.column = hpl_column_of(hpl, rank);
    hpl_chunk(&replay->clock_sink, process->chunk_panel, hpl_row_of(hpl, rank), columns);
    process->chunk_left -= columns;
}

/* Chunks until a probe finds the panel, which was sent at VISIBLE. */
static void update_until(struct replay *replay, struct process *process, double visible) {
    bool is_found =
        process->now >= visible && (!replay->machine->probe_is_deferred || process->progressed >= visible);
    while (process->chunk_left > 0 && !is_found) {
        int nb = replay->hpl->nb;
        update_chunk(replay, process, process->chunk_left < nb ? process->chunk_left : nb);
        is_found = finds(replay, process, visible);
        pay_probe(replay, process);
    }
    if (process->now < visible) {
        double cost = replay->machine->probe, wait = visible - process->now;
        wait = cost > 0 ? ceil(wait / cost) * cost : wait;
        if (replay->trace)
            follow(replay, process, find_incoming(replay, process, process->source), visible);
        pass(replay, process, PANEL_WAIT, 0, process->now, process->now + wait);
    }
}

void wake_prober(struct replay *replay, int rank, double visible) {
    struct process *process = &replay->processes[rank];
    if (replay->machine->probe_grows || process->pending == NONE ||
        find_incoming(replay, process, process->source) == NONE)
        return;
    update_until(replay, process, visible);
    process->state = READY;
    process->is_probing = true;
    push(replay, fmax(process->now, replay->clock), RESUME, rank);
}

/* Chunks of an update, or the wait for a panel. False: the process waits. */
static bool do_chunks(struct replay *replay, struct process *process, const struct operation *operation) {
    int nb = replay->hpl->nb;
    if (process->state == READY && !process->is_probing) {
        process->chunk_panel = operation->what == HPL_CHUNKS ? operation->peer : NONE;
        process->chunk_left = operation->columns;
    }
    process->state = READY;
    if (process->pending != NONE && !replay->machine->probe_grows) {
        int id = find_incoming(replay, process, process->source);
        if (id == NONE) {
            process->state = IN_CHUNKS;
            return false;
        }
        update_until(replay, process, replay->transfers[id].posted);
        process->is_probing = process->chunk_left > 0;
        receive_panel(replay, process);
        return process->chunk_left == 0;
    }
    while (process->pending != NONE) {
        bool waits;
        if (!process->has_probed && process->chunk_left > 0)
            update_chunk(replay, process, process->chunk_left < nb ? process->chunk_left : nb);
        process->is_probing = true;
        bool is_there = probe(replay, process, &waits);
        if (waits)
            return false;
        if (is_there) {
            receive_panel(replay, process);
            process->is_probing = process->chunk_left > 0;
            return process->chunk_left == 0;
        }
    }
    process->is_probing = false;
    if (process->chunk_left > 0)
        update_chunk(replay, process, process->chunk_left);
    return true;
}

/* ---- Steps */

/* The next few columns of the panel that COLUMN factors, by recurrence over the clocks of its processes; at
 * the time of the last of them, so that small messages find the cards as they then are. */
static void factor(struct replay *replay, int column) {
    const struct hpl *hpl = replay->hpl;
    struct column *at = &replay->columns[column];
    bool is_begin = at->factored < 0, is_end = false;
    double last = 0;
    if (!is_begin) {
        int next = at->factored + COLUMNS_AT_ONCE, width = hpl_panel_width(hpl, at->panel);
        is_end = next >= width;
        replay->clock_sink.column = column;
        replay->factorisations++;
        hpl_factor(&replay->clock_sink, at->panel, at->factored, is_end ? width + 1 : next);
    }
    at->factored = is_begin ? 0 : at->factored + COLUMNS_AT_ONCE;
    for (int row = 0; row < hpl->p; row++) {
        struct process *process = process_at(replay, row, column);
        at->begun = is_begin ? fmin(row > 0 ? at->begun : INFINITY, process->now) : at->begun;
        last = fmax(last, process->now);
        if (is_end) {
            process->state = READY;
            process->queue.head++;
            push(replay, fmax(process->now, replay->clock), RESUME, hpl_rank(hpl, row, column));
        }
    }
    if (!is_end) {
        push(replay, last, FACTOR, column);
    } else if (replay->observer && replay->observer->panel_done) {
        int r = replay->observer->panel_done(replay->observer->context, at->panel, at->begun, last);
        r = r == 0 && replay->trace ? replay->trace->error : r;
        r = r == 0 && replay->sensitivities ? replay->sensitivities->error : r;
        replay->error = r < 0 ? r : replay->error;
    }
}

static bool do_control(struct replay *replay, struct process *process, const struct operation *operation) {
    const struct hpl *hpl = replay->hpl;
    int rank = (int)(process - replay->processes);
    int column = hpl_column_of(hpl, rank);
    bool waits = false;
    switch ((enum hpl_control)operation->what) {
    case HPL_FACTOR:
        process->state = AT_FACTOR;
        if (++replay->columns[column].arrived == hpl->p) {
            replay->columns[column].arrived = 0;
            replay->columns[column].panel = operation->peer;
            replay->columns[column].factored = NONE;
            factor(replay, column);
        }
        return false;
    case HPL_START:
        if (!process->is_probing)
            process->pending = operation->peer;
        if (!hpl_probes(hpl, operation->peer, column)) {
            receive_panel(replay, process);
            return true;
        }
        process->source = hpl_rank(hpl, hpl_row_of(hpl, rank), hpl_ring_source(hpl, operation->peer, column));
        /* fall through */
    case HPL_PROBE:
        if (process->pending == NONE)
            return true;
        process->is_probing = true;
        if (probe(replay, process, &waits))
            receive_panel(replay, process);
        process->is_probing = waits;
        return !waits;
    case HPL_FINISH:
        return process->pending == NONE || do_chunks(replay, process, operation);
    default:
        return do_chunks(replay, process, operation);
    }
}

/* Appends the operations of the next step of COLUMN that has some to the queues of its processes. */
static bool queue_step(struct replay *replay, int column) {
    struct hpl_step step;
    struct column *at = &replay->columns[column];
    if (at->is_done || !hpl_next(replay->hpl, column, &at->position, &step)) {
        at->is_done = true;
        return false;
    }
    replay->queue_sink.column = column;
    hpl_emit(&replay->queue_sink, &step);
    return true;
}

/* RANK goes on until it waits. */
static void run(struct replay *replay, int rank) {
    struct process *process = &replay->processes[rank];
    const struct hpl *hpl = replay->hpl;
    while (replay->error == 0) {
        struct operations *list =
            process->urgent.head < process->urgent.count ? &process->urgent : &process->queue;
        if (list->head == list->count) {
            if (queue_step(replay, hpl_column_of(hpl, rank)))
                continue;
            process->state = DONE;
            replay->done++;
            return;
        }
        const struct operation *operation = &list->items[list->head];
        uint8_t probes = operation->probes;
        if (operation->kind == DO_KERNEL) {
            spend(replay, process, operation->what, operation->m, operation->n, operation->k);
        } else if (operation->kind == DO_CALL && do_call(replay, process, operation)) {
            pass(replay, process, MESSAGES, operation->phase, process->since, process->now);
        } else if (operation->kind == DO_CALL || !do_control(replay, process, operation)) {
            if (process->state != READY || process->has_probed || list == &process->urgent)
                return;
            if (process->urgent.head < process->urgent.count)
                continue; /* the panel is received first */
            return;
        }
        if (probes > 0 && process->pending != NONE) /* becomes a probe */
            list->items[list->head] =
                (struct operation){.kind = DO_CONTROL, .what = HPL_PROBE, .probes = (uint8_t)(probes - 1)};
        else
            list->head++;
    }
}

static int count_neighbours(struct replay *replay) {
    const struct hpl *hpl = replay->hpl;
    const int *node_of = replay->machine->node_of;
    int *counts = calloc((size_t)replay->machine->nodes, sizeof *counts);
    if (!counts)
        return -ENOMEM;
    for (int column = 0; column < hpl->q; column++) {
        for (int row = 0; row < hpl->p; row++)
            counts[node_of[hpl_rank(hpl, row, column)]]++;
        for (int row = 0; row < hpl->p; row++)
            process_at(replay, row, column)->neighbours = counts[node_of[hpl_rank(hpl, row, column)]];
        for (int row = 0; row < hpl->p; row++)
            counts[node_of[hpl_rank(hpl, row, column)]] = 0;
    }
    free(counts);
    return 0;
}

static int simulate(struct replay *replay) {
    static void (*const handlers[])(struct replay *,
                                    int) = {[RESUME] = run, [FLOW_BEGINS] = begin_flow, [FACTOR] = factor};
    int ranks = replay->hpl->p * replay->hpl->q;
    for (int rank = 0; rank < ranks; rank++)
        push(replay, 0, RESUME, rank);
    while (replay->error == 0) {
        double flow = network_next(replay->network);
        double event = replay->events.count > 0 ? replay->events.heap[0].time : INFINITY;
        replay->times.events++;
        if (flow <= event) {
            if (isinf(flow))
                break;
            replay->clock = flow;
            int id = network_finish(replay->network, flow);
            if (replay->sensitivities)
                sensitivities_finish(
                    replay->sensitivities, id, replay->machine->node_of[replay->transfers[id].source],
                    replay->machine->node_of[replay->transfers[id].target],
                    (double)replay->transfers[id].bytes / replay->machine->network->rate, flow);
            finish_transfer(replay, id, flow);
        }
        if (flow > event) {
            struct event next = event_pop(&replay->events), *after = replay->events.heap;
            if (replay->events.count > 0 && event_kind(*after) == RESUME) {
                /* its operations are seldom in a cache */
                const struct operations *queue = &replay->processes[event_id(*after)].queue;
                __builtin_prefetch(queue->items + queue->head);
            }
            replay->clock = next.time;
            handlers[event_kind(next)](replay, event_id(next));
        }
        for (int i = 0; i < replay->ready_count; i++)
            run(replay, replay->ready[i]);
        replay->ready_count = 0;
    }
    return replay->error < 0 ? replay->error : replay->done < ranks ? -EDEADLK : 0;
}

int replay_run(const struct hpl *hpl, const struct replay_machine *machine,
               const struct replay_observer *observer, struct replay_times *ret) {
    size_t ranks = (size_t)hpl->p * (size_t)hpl->q;
    struct replay replay = {.hpl = hpl,
                            .machine = machine,
                            .observer = observer,
                            .trace = observer ? observer->trace : NULL,
                            .sensitivities =
                                observer && observer->trace ? observer->trace->sensitivities : NULL,
                            .free_transfer = NONE,
                            .sleeps = 1};
    struct hpl_space *space = hpl_space_new(hpl);
    replay.network = network_new(machine->network, machine->nodes);
    replay.processes = calloc(ranks, sizeof *replay.processes);
    replay.columns = calloc((size_t)hpl->q, sizeof *replay.columns);
    int r = space && replay.network && replay.processes && replay.columns ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < ranks; i++)
        replay.processes[i].calls = machine->first_call;
    for (size_t i = 0; r == 0 && i < ranks; i++)
        replay.processes[i].incoming = replay.processes[i].receive_from = replay.processes[i].receiving =
            replay.processes[i].sending = replay.processes[i].pending = replay.processes[i].latest = NONE;
    replay.queue_sink = (struct hpl_sink){.hpl = hpl,
                                          .space = space,
                                          .kernel = queue_kernel,
                                          .call = queue_call,
                                          .exchange = queue_exchange,
                                          .control = queue_control};
    replay.clock_sink = (struct hpl_sink){.hpl = hpl,
                                          .space = space,
                                          .kernel = clock_kernel,
                                          .exchange = clock_exchange,
                                          .ignores_copies = !machine->kernel[HPL_DCOPY]};
    if (r == 0)
        r = count_neighbours(&replay);
    if (r == 0)
        r = simulate(&replay);
    for (size_t i = 0; replay.processes && i < ranks; i++) {
        struct process *process = &replay.processes[i];
        replay.times.time = fmax(replay.times.time, process->now);
        free(process->queue.items);
        free(process->urgent.items);
    }
    *ret = replay.times;
    free(replay.processes);
    free(replay.columns);
    free(replay.transfers);
    event_clear(&replay.events);
    network_free(replay.network);
    hpl_space_free(space);
    return r;
}
