#include "plugins/predict-hpl-replay/replay.h"
#include "plugins/predict-hpl-replay/events.h"
#include "plugins/predict-hpl-replay/trace.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1, LARGE = 65536 /* bytes from which a message slows others down */ };

enum operation_kind { DO_CALL, DO_KERNEL, DO_CONTROL };

/* What calls of MPI are made of. An exchange is Irecv, Send and Wait of one process in one operation. */
enum { EXCHANGE = HPL_CALLS };
static const struct {
    bool receives, sends, is_synchronous, ends_send, ends_receive;
    enum network_cost cost; /* of one that sends */
} calls[] = {
    [HPL_SEND] = {.sends = true, .ends_send = true, .cost = NETWORK_SEND},
    [HPL_SSEND] = {.sends = true, .is_synchronous = true, .ends_send = true, .cost = NETWORK_SEND},
    [HPL_ISSEND] = {.sends = true, .is_synchronous = true, .cost = NETWORK_ISEND},
    [HPL_RECV] = {.receives = true, .ends_receive = true},
    [HPL_IRECV] = {.receives = true},
    [HPL_WAIT] = {.ends_send = true, .ends_receive = true},
    [EXCHANGE] =
        {.receives = true, .sends = true, .ends_send = true, .ends_receive = true, .cost = NETWORK_SEND},
};

struct operation {
    uint8_t kind, what, phase; /* what: hpl_call or EXCHANGE, hpl_kernel or hpl_control */
    uint8_t probes;            /* so many HPL_PROBE follow it */
    union {
        int peer; /* rank; of a control: panel */
        int m;
    };
    union {
        int64_t bytes;
        int columns; /* of a control */
        int n;
    };
    int k;
};

struct operations {
    struct operation *items;
    int head, count, size;
};

/* A message from the call that sends it to the end of the call that receives it. */
struct transfer {
    int source, target, next; /* in its target's list of those that are not yet received, or of unused ones */
    int64_t bytes;
    double posted; /* when the sender was ready; a probe finds it from then on */
    double done;   /* when the data are there; NaN: not known */
    uint8_t is_detached, is_eager, is_matched, is_sender_done;
};

enum process_state { READY, AT_FACTOR, IN_CALL, IN_CHUNKS, DONE };

struct process {
    struct operations queue, urgent;
    double now, since; /* its clock; when the operation that it is in began */
    uint64_t calls;
    int neighbours; /* processes of its column on its node, itself included */
    enum process_state state;
    int incoming;     /* first of the transfers that have been sent to it and not received */
    int receive_from; /* rank of a receive that no transfer has met; or NONE */
    double receive_posted;
    int receiving, sending;                 /* transfers */
    bool waits_for_send, waits_for_receive; /* in the call that it is in */
    int pending;                            /* panel, or NONE */
    int source;                             /* rank that sends it */
    int latest;                             /* the last panel that it sent first, or began to receive */
    int chunk_panel, chunk_left;
    bool is_probing; /* it comes back to a probe */
    bool has_probed;
    enum hpl_phase phase;
};

enum event_kind { RESUME, FLOW_BEGINS, FACTOR };
struct column {
    struct hpl_position position;
    int arrived;         /* processes that are at the factorisation of `panel` */
    int panel, factored; /* columns of it */
    bool is_done;
    double begun; /* when its first process began to factor the panel */
};

/* What an exchange of messages between two processes costs in the factorisation of a panel: what each sends.
 */
struct exchange {
    int64_t bytes[2];
    int rows[2];
    uint32_t of; /* number of the factorisation */
    bool starts_when_both_are_ready[2], waits[2];
    double send[2], transit[2], receive[2];
};

enum { EXCHANGES = 1024, COLUMNS_AT_ONCE = 16 };

struct replay {
    struct hpl_sink queue_sink, clock_sink;
    const struct hpl *hpl;
    const struct replay_machine *machine;
    const struct replay_observer *observer;
    struct trace *trace; /* or NULL */
    struct network *network;
    struct process *processes;
    struct column *columns;
    struct transfer *transfers;
    int transfer_count, free_transfer;
    int begin_last; /* of the last event FLOW_BEGINS: its last transfer, time and place */
    double begin_time;
    uint32_t begin_order;
    struct event_queue events;
    double clock;
    int ready[2], ready_count; /* ranks that go on at this time */
    int sleeps;                /* of SMPI's probes */
    int error;
    int done;
    uint32_t factorisations;
    struct exchange exchanges[EXCHANGES]; /* known ones, by chance */
    struct replay_times times;
};

static void push(struct replay *replay, double time, enum event_kind kind, int id) {
    if (event_push(&replay->events, time, kind, id) < 0)
        replay->error = -ENOMEM;
}

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

/* ---- Messages */

static enum network_path path_of(const struct replay *replay, int a, int b) {
    return replay->machine->node_of[a] == replay->machine->node_of[b] ? NETWORK_LOOPBACK : NETWORK_REMOTE;
}

static const struct network_segment *segment_of(const struct replay *replay, int a, int b, int64_t bytes) {
    return network_find(replay->machine->network, path_of(replay, a, b), (double)bytes);
}

/* How long the data of a message take that does not slow others down. Processes of the same node and column
 * send at the same time, and share their card. */
static double small_time(const struct replay *replay, int source, int target, int64_t bytes) {
    const struct network_model *model = replay->machine->network;
    const int *node_of = replay->machine->node_of;
    const struct network_segment *segment = segment_of(replay, source, target, bytes);
    double rate = segment->rate;
    if (node_of[source] != node_of[target]) {
        double share = network_share(replay->network, node_of[source], node_of[target],
                                     replay->processes[source].neighbours) *
                       segment->rate_factor;
        rate = share < rate ? share : rate;
    }
    return segment->latency + ((double)bytes + model->envelope) / rate;
}

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

static double later(double a, double b) {
    return a > b ? a : b;
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
    pass(replay, a, MESSAGES, HPL_FACT, a->now, a_end);
    pass(replay, b, MESSAGES, HPL_FACT, b->now, b_end);
    replay->times.message_count += (uint64_t)(a_to_b > 0) + (b_to_a > 0);
}

static int new_transfer(struct replay *replay) {
    int ret = replay->free_transfer;
    if (ret != NONE) {
        replay->free_transfer = replay->transfers[ret].next;
        return ret;
    }
    if ((replay->transfer_count & (replay->transfer_count - 1)) == 0) {
        size_t size = replay->transfer_count > 0 ? 2 * (size_t)replay->transfer_count : 1;
        struct transfer *transfers = realloc(replay->transfers, size * sizeof *transfers);
        if (!transfers) {
            replay->error = -ENOMEM;
            return NONE;
        }
        replay->transfers = transfers;
    }
    return replay->transfer_count++;
}

/* Frees a transfer that both sides are done with. */
static void release(struct replay *replay, int id) {
    struct transfer *transfer = &replay->transfers[id];
    if (transfer->is_sender_done && transfer->is_matched == 2) {
        transfer->next = replay->free_transfer;
        replay->free_transfer = id;
    }
}

/* RANK goes on at TIME: that of the events, or later. */
static void resume(struct replay *replay, double time, int rank) {
    if (time <= replay->clock && replay->ready_count < 2)
        replay->ready[replay->ready_count++] = rank;
    else
        push(replay, time, RESUME, rank);
}

/* Whether all messages that PROCESS waits for in its call have their time. */
static bool is_call_done(const struct replay *replay, const struct process *process) {
    const struct transfer *transfers = replay->transfers;
    if (process->waits_for_send && process->sending != NONE && isnan(transfers[process->sending].done))
        return false;
    if (!process->waits_for_receive)
        return true;
    return process->receiving != NONE ? !isnan(transfers[process->receiving].done)
                                      : process->receive_from == NONE;
}

/* Whether PROCESS is in a call that waits for ID, and for no other message whose time is not known. */
static bool waited_for(const struct replay *replay, const struct process *process, int id) {
    bool is_awaited = (process->waits_for_send && process->sending == id) ||
                      (process->waits_for_receive && process->receiving == id);
    return process->state == IN_CALL && is_awaited && is_call_done(replay, process);
}

/* The data of ID are there at TIME: whoever waits for them goes on. */
static void finish_transfer(struct replay *replay, int id, double time) {
    struct transfer *transfer = &replay->transfers[id];
    struct process *source = &replay->processes[transfer->source],
                   *target = &replay->processes[transfer->target];
    transfer->done = time;
    if (waited_for(replay, source, id))
        resume(replay, fmax(time, source->now), transfer->source);
    if (waited_for(replay, target, id))
        resume(replay, fmax(time, target->now), transfer->target);
}

/* The flow of ID begins at TIME: by one event with the one before, if both of an exchange begin then. */
static void begin_later(struct replay *replay, int id, double time) {
    replay->transfers[id].next = NONE;
    if (replay->begin_time == time && replay->begin_order == replay->events.order) {
        replay->transfers[replay->begin_last].next = id;
    } else {
        push(replay, time, FLOW_BEGINS, id);
        replay->begin_time = time;
        replay->begin_order = replay->events.order;
    }
    replay->begin_last = id;
}

/* The data of ID begin to travel at TIME. */
static void begin_transfer(struct replay *replay, int id, double time) {
    struct transfer *transfer = &replay->transfers[id];
    int source = transfer->source, target = transfer->target;
    bool is_remote = path_of(replay, source, target) == NETWORK_REMOTE;
    if (transfer->bytes < LARGE || !is_remote)
        finish_transfer(replay, id, time + small_time(replay, source, target, transfer->bytes));
    else
        begin_later(replay, id, time + segment_of(replay, source, target, transfer->bytes)->latency);
}

static void match(struct replay *replay, int id, double receive_posted) {
    struct transfer *transfer = &replay->transfers[id];
    transfer->is_matched = 1;
    if (replay->trace && !transfer->is_eager && receive_posted > transfer->posted)
        trace_ready(replay->trace, id, transfer->target);
    if (!transfer->is_eager)
        begin_transfer(replay, id, fmax(transfer->posted, receive_posted));
}

static void wake_prober(struct replay *replay, int rank, double visible);

static void post_send(struct replay *replay, struct process *process, const struct operation *operation) {
    const struct network_model *model = replay->machine->network;
    int target = operation->peer, source = (int)(process - replay->processes), id = new_transfer(replay);
    struct process *receiver = &replay->processes[target];
    double size = (double)operation->bytes;
    if (id == NONE)
        return;
    bool is_detached = !calls[operation->what].is_synchronous && size < model->detached_below;
    bool is_eager = is_detached && size < model->eager_below;
    if (is_detached || calls[operation->what].cost == NETWORK_ISEND)
        process->now += network_cost(segment_of(replay, source, target, operation->bytes),
                                     calls[operation->what].cost, size);
    replay->transfers[id] = (struct transfer){.source = source,
                                              .target = target,
                                              .next = NONE,
                                              .bytes = operation->bytes,
                                              .posted = process->now,
                                              .done = NAN,
                                              .is_detached = is_detached,
                                              .is_eager = is_eager,
                                              .is_sender_done = is_detached};
    process->sending = is_detached ? NONE : id;
    replay->times.message_count++;
    if (replay->trace)
        trace_ready(replay->trace, id, source);
    if (is_eager)
        begin_transfer(replay, id, process->now);
    if (receiver->receive_from == source) {
        receiver->receive_from = NONE;
        receiver->receiving = id;
        match(replay, id, receiver->receive_posted);
        if (is_eager && !isnan(replay->transfers[id].done))
            finish_transfer(replay, id, replay->transfers[id].done);
        return;
    }
    int *link = &receiver->incoming;
    while (*link != NONE)
        link = &replay->transfers[*link].next;
    *link = id;
    if (receiver->state == IN_CHUNKS)
        wake_prober(replay, target, process->now);
}

static int find_incoming(const struct replay *replay, const struct process *process, int source) {
    int id = process->incoming;
    while (id != NONE && replay->transfers[id].source != source)
        id = replay->transfers[id].next;
    return id;
}

static void post_receive(struct replay *replay, struct process *process, int source) {
    int id = find_incoming(replay, process, source), *link = &process->incoming;
    process->receiving = id;
    if (id == NONE) {
        process->receive_from = source;
        process->receive_posted = process->now;
        return;
    }
    while (*link != id)
        link = &replay->transfers[*link].next;
    *link = replay->transfers[id].next;
    match(replay, id, process->now);
}

/* PROCESS waits for the data of transfer ID until UNTIL. */
static void follow(struct replay *replay, struct process *process, int id, double until) {
    if (replay->trace && until > process->now)
        trace_follow(replay->trace, (int)(process - replay->processes), id);
}

/* The data that PROCESS receives are there. */
static void end_receive(struct replay *replay, struct process *process) {
    int id = process->receiving;
    struct transfer *transfer = &replay->transfers[id];
    follow(replay, process, id, transfer->done);
    process->now = fmax(process->now, transfer->done);
    if (transfer->is_detached)
        process->now += network_cost(segment_of(replay, transfer->source, transfer->target, transfer->bytes),
                                     NETWORK_RECV, (double)transfer->bytes);
    transfer->is_matched = 2;
    process->receiving = NONE;
    release(replay, id);
}

static void end_send(struct replay *replay, struct process *process) {
    struct transfer *transfer = &replay->transfers[process->sending];
    follow(replay, process, process->sending, transfer->done);
    process->now = fmax(process->now, transfer->done);
    transfer->is_sender_done = true;
    release(replay, process->sending);
    process->sending = NONE;
}

/* Carries out OPERATION, or continues one that was begun. False: it is not finished, and PROCESS waits. */
static bool do_call(struct replay *replay, struct process *process, const struct operation *operation) {
    int call = operation->what;
    if (process->state == READY) {
        process->since = process->now;
        if (calls[call].receives)
            post_receive(replay, process, operation->peer);
        if (calls[call].sends)
            post_send(replay, process, operation);
    }
    process->waits_for_send = calls[call].ends_send;
    process->waits_for_receive = calls[call].ends_receive;
    process->state = is_call_done(replay, process) ? READY : IN_CALL;
    if (process->state == IN_CALL)
        return false;
    if (calls[call].ends_send && process->sending != NONE)
        end_send(replay, process);
    if (calls[call].ends_receive && process->receiving != NONE)
        end_receive(replay, process);
    pass(replay, process, MESSAGES, operation->phase, process->since, process->now);
    return true;
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
    for (double delay = 0;;) {
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
    bool is_there = id != NONE && replay->transfers[id].posted <= process->now;
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

/* Chunks until the first probe at VISIBLE or later, when the panel is there. */
static void update_until(struct replay *replay, struct process *process, double visible) {
    while (process->chunk_left > 0 && process->now < visible) {
        int nb = replay->hpl->nb;
        update_chunk(replay, process, process->chunk_left < nb ? process->chunk_left : nb);
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

static void wake_prober(struct replay *replay, int rank, double visible) {
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
        if (operation->kind == DO_KERNEL)
            spend(replay, process, operation->what, operation->m, operation->n, operation->k);
        else if (!(operation->kind == DO_CALL ? do_call : do_control)(replay, process, operation)) {
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

static void begin_flow(struct replay *replay, int id) {
    const struct network_model *model = replay->machine->network;
    const int *node_of = replay->machine->node_of;
    for (int next; id != NONE && replay->error == 0; id = next) {
        const struct transfer *transfer = &replay->transfers[id];
        int source = transfer->source, target = transfer->target;
        double work = ((double)transfer->bytes + model->envelope) /
                      segment_of(replay, source, target, transfer->bytes)->rate_factor;
        next = transfer->next;
        replay->error =
            network_start(replay->network, replay->clock, node_of[source], node_of[target], work, id);
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
            finish_transfer(replay, network_finish(replay->network, flow), flow);
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
                            .free_transfer = NONE,
                            .sleeps = 1};
    struct hpl_space *space = hpl_space_new(hpl);
    replay.network = network_new(machine->network, machine->nodes);
    replay.processes = calloc(ranks, sizeof *replay.processes);
    replay.columns = calloc((size_t)hpl->q, sizeof *replay.columns);
    int r = space && replay.network && replay.processes && replay.columns ? 0 : -ENOMEM;
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
