/* Messages of one process to another, from the call that sends to the end of the call that receives. */
#include "plugins/predict-hpl-replay/state.h"

#include <math.h>
#include <stdlib.h>

/* What each call of MPI does: begins to receive or to send, and what it waits for. */
static const struct {
    bool receives, sends, is_synchronous, ends_send, ends_receive;
    enum network_cost cost; /* of a call that sends */
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

double small_time(const struct replay *replay, int source, int target, int64_t bytes) {
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

/* Whether a message has to share cards with others, so that events order what it takes. */
static bool is_shared(const struct replay *replay, int source, int target, int64_t bytes) {
    return bytes >= LARGE && !replay->is_unshared && path_of(replay, source, target) == NETWORK_REMOTE;
}

struct transit find_transit(const struct replay *replay, int source, int target, int64_t bytes) {
    const struct network_model *model = replay->machine->network;
    const int *node_of = replay->machine->node_of;
    if (bytes < LARGE || node_of[source] == node_of[target])
        return (struct transit){0, small_time(replay, source, target, bytes)};
    const struct network_segment *segment = segment_of(replay, source, target, bytes);
    double work = ((double)bytes + model->envelope) / segment->rate_factor;
    return (struct transit){segment->latency,
                            work / network_share(replay->network, node_of[source], node_of[target], 1)};
}

/* NONE: no memory (`error`). */
static int new_transfer(struct replay *replay) {
    int ret = replay->free_transfer;
    if (ret != NONE) {
        replay->free_transfer = replay->transfers[ret].next;
        return ret;
    }
    if (replay->transfer_count == replay->transfer_size) {
        int size = 2 * replay->transfer_size;
        struct transfer *transfers = realloc(replay->transfers, (size_t)size * sizeof *transfers);
        if (!transfers) {
            replay->error = -ENOMEM;
            return NONE;
        }
        replay->transfers = transfers;
        replay->transfer_size = size;
    }
    return replay->transfer_count++;
}

/* Puts transfer ID into the list of unused ones if both processes have ended their calls for it. */
static void release(struct replay *replay, int id) {
    struct transfer *transfer = &replay->transfers[id];
    if (transfer->is_sender_done && transfer->is_matched == 2) {
        transfer->next = replay->free_transfer;
        replay->free_transfer = id;
    }
}

/* RANK goes on at TIME: after the current event if that is its time, else by an event of its own. */
static void resume(struct replay *replay, double time, int rank) {
    if (time <= replay->clock && replay->ready_count < 2)
        replay->ready[replay->ready_count++] = rank;
    else
        push(replay, time, RESUME, rank);
}

/* Whether it is known when the messages that PROCESS waits for in its call arrive. */
static bool is_call_done(const struct replay *replay, const struct process *process) {
    const struct transfer *transfers = replay->transfers;
    if (process->waits_for_send && process->sending != NONE && isnan(transfers[process->sending].done))
        return false;
    if (!process->waits_for_receive)
        return true;
    return process->receiving != NONE ? !isnan(transfers[process->receiving].done)
                                      : process->receive_from == NONE;
}

/* Whether PROCESS waits for transfer ID alone: the time of any other message of its call is known. */
static bool waited_for(const struct replay *replay, const struct process *process, int id) {
    bool is_awaited = (process->waits_for_send && process->sending == id) ||
                      (process->waits_for_receive && process->receiving == id);
    return process->state == IN_CALL && is_awaited && is_call_done(replay, process);
}

/* Whether it is known when both messages of the exchange of PROCESS arrive. */
static bool is_exchange_done(const struct replay *replay, const struct process *process) {
    const struct transfer *sent = &replay->transfers[rank_of(replay, process)];
    return !isnan(process->received) && (sent->is_detached || !isnan(sent->done));
}

void finish_transfer(struct replay *replay, int id, double time) {
    struct transfer *transfer = &replay->transfers[id];
    struct process *source = &replay->processes[transfer->source],
                   *target = &replay->processes[transfer->target];
    transfer->done = time;
    if (id == transfer->source) { /* of an exchange */
        target->received = time;
        if (is_exchange_done(replay, source))
            resume(replay, fmax(time, source->now), transfer->source);
        if (is_exchange_done(replay, target))
            resume(replay, fmax(time, target->now), transfer->target);
        return;
    }
    if (waited_for(replay, source, id))
        resume(replay, fmax(time, source->now), transfer->source);
    if (waited_for(replay, target, id))
        resume(replay, fmax(time, target->now), transfer->target);
}

/* The data of ID begin to travel at TIME. The two messages of an exchange that begin at one time share an
 * event.
 */
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

/* Transfer ID begins at TIME. Where it shares cards with others, its end comes by events, else it is known
 * now. */
static void begin_transfer(struct replay *replay, int id, double time) {
    struct transfer *transfer = &replay->transfers[id];
    int source = transfer->source, target = transfer->target;
    bool has_flow = is_shared(replay, source, target, transfer->bytes);
    struct transit transit =
        has_flow ? (struct transit){segment_of(replay, source, target, transfer->bytes)->latency, 0}
                 : find_transit(replay, source, target, transfer->bytes);
    if (replay->sensitivities)
        sensitivities_begin(replay->sensitivities, id, source, target, transfer->bytes, time,
                            transit.latency + transit.travel);
    if (has_flow)
        begin_later(replay, id, time + transit.latency);
    else
        finish_transfer(replay, id, arrival(time, transit));
}

/* The send of ID has met its receive, which was posted at RECEIVE_POSTED. A message that is not eager begins
 * now.
 */
static void match(struct replay *replay, int id, double receive_posted) {
    struct transfer *transfer = &replay->transfers[id];
    transfer->is_matched = 1;
    if (replay->trace && !transfer->is_eager && receive_posted > transfer->posted)
        trace_ready(replay->trace, id, transfer->target);
    if (!transfer->is_eager)
        begin_transfer(replay, id, fmax(transfer->posted, receive_posted));
}

/* PROCESS begins to send. A receive that waits for the message is met; a receiver that probes is told. */
static void post_send(struct replay *replay, struct process *process, const struct operation *operation) {
    const struct network_model *model = replay->machine->network;
    int source = rank_of(replay, process), target = source + operation->peer, id = new_transfer(replay);
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

int find_incoming(const struct replay *replay, const struct process *process, int source) {
    int id = process->incoming;
    while (id != NONE && replay->transfers[id].source != source)
        id = replay->transfers[id].next;
    return id;
}

/* PROCESS begins to receive from rank SOURCE: the oldest message that has come, or the next one. */
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

/* Moves the clock of PROCESS to the end of its receive, whose time is known. */
static void end_receive(struct replay *replay, struct process *process) {
    int id = process->receiving;
    struct transfer *transfer = &replay->transfers[id];
    trace_wait(replay, process, id, transfer->done);
    process->now = fmax(process->now, transfer->done);
    if (transfer->is_detached)
        process->now += network_cost(segment_of(replay, transfer->source, transfer->target, transfer->bytes),
                                     NETWORK_RECV, (double)transfer->bytes);
    transfer->is_matched = 2;
    process->receiving = NONE;
    release(replay, id);
}

/* The same for its send. */
static void end_send(struct replay *replay, struct process *process) {
    struct transfer *transfer = &replay->transfers[process->sending];
    trace_wait(replay, process, process->sending, transfer->done);
    process->now = fmax(process->now, transfer->done);
    transfer->is_sender_done = true;
    release(replay, process->sending);
    process->sending = NONE;
}

/* do_exchange(): both processes are there, and the message that rank ID sends begins at TIME. */
static void begin_exchange(struct replay *replay, int id, double time) {
    struct transfer *transfer = &replay->transfers[id];
    struct process *target = &replay->processes[transfer->target];
    const struct network_segment *segment = segment_of(replay, id, transfer->target, transfer->bytes);
    if (isnan(transfer->done) && is_shared(replay, id, transfer->target, transfer->bytes))
        begin_later(replay, id, time + segment->latency);
    else if (isnan(transfer->done))
        transfer->done = arrival(time, find_transit(replay, id, transfer->target, transfer->bytes));
    target->received = transfer->done;
    target->receive_cost =
        transfer->is_detached ? network_cost(segment, NETWORK_RECV, (double)transfer->bytes) : 0;
}

/* EXCHANGE: MPI_Irecv, MPI_Send and MPI_Wait at once. Each process has a transfer of its own for that (its
 * rank is the transfer's index). The first process waits as `partner`; the second one begins both messages.
 * False: PROCESS waits. */
static bool do_exchange(struct replay *replay, struct process *process, const struct operation *operation) {
    const struct network_model *model = replay->machine->network;
    int rank = rank_of(replay, process), peer = rank + operation->peer;
    struct transfer *sent = &replay->transfers[rank];
    struct process *partner = &replay->processes[peer];
    if (process->state == READY) {
        const struct network_segment *segment = segment_of(replay, rank, peer, operation->bytes);
        double size = (double)operation->bytes;
        bool is_detached = size < model->detached_below;
        process->since = process->now;
        process->now += is_detached ? network_cost(segment, NETWORK_SEND, size) : 0;
        process->received = NAN;
        *sent = (struct transfer){.source = rank,
                                  .target = peer,
                                  .bytes = operation->bytes,
                                  .posted = process->now,
                                  .done = NAN,
                                  .is_detached = is_detached};
        if (is_detached && size < model->eager_below)
            sent->done = process->now + small_time(replay, rank, peer, operation->bytes);
        replay->times.message_count++;
        process->state = IN_CALL;
        process->partner = peer;
        if (partner->partner != rank)
            return false;
        partner->partner = process->partner = NONE;
        begin_exchange(replay, peer, later(replay->transfers[peer].posted, process->since));
        begin_exchange(replay, rank, later(process->now, partner->since));
        if (is_exchange_done(replay, partner))
            resume(replay, later(partner->received, partner->now), peer);
    }
    if (!is_exchange_done(replay, process))
        return false;
    process->now = sent->is_detached ? process->now : later(process->now, sent->done);
    process->now = later(process->now, process->received) + process->receive_cost;
    process->state = READY;
    return true;
}

bool do_call(struct replay *replay, struct process *process, const struct operation *operation) {
    int call = operation->what;
    if (call == EXCHANGE && replay->has_exchanges)
        return do_exchange(replay, process, operation);
    if (process->state == READY) {
        process->since = process->now;
        if (calls[call].receives)
            post_receive(replay, process, rank_of(replay, process) + operation->peer);
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
    return true;
}

void begin_flow(struct replay *replay, int id) {
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
        if (replay->sensitivities)
            sensitivities_start(replay->sensitivities, id, node_of[source], node_of[target], replay->clock);
    }
}
