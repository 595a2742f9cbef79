/* Messages of one process to another, from the call that sends to the end of the call that receives. */
#include "plugins/predict-hpl-replay/state.h"

#include <math.h>
#include <stdlib.h>

/* What calls of MPI are made of. */
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

void finish_transfer(struct replay *replay, int id, double time) {
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
    bool is_shared = transfer->bytes >= LARGE && is_remote;
    double transit = is_shared ? segment_of(replay, source, target, transfer->bytes)->latency
                               : small_time(replay, source, target, transfer->bytes);
    if (replay->sensitivities)
        sensitivities_begin(replay->sensitivities, id, source, target, transfer->bytes, time, transit);
    if (is_shared)
        begin_later(replay, id, time + transit);
    else
        finish_transfer(replay, id, time + transit);
}

static void match(struct replay *replay, int id, double receive_posted) {
    struct transfer *transfer = &replay->transfers[id];
    transfer->is_matched = 1;
    if (replay->trace && !transfer->is_eager && receive_posted > transfer->posted)
        trace_ready(replay->trace, id, transfer->target);
    if (!transfer->is_eager)
        begin_transfer(replay, id, fmax(transfer->posted, receive_posted));
}

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

int find_incoming(const struct replay *replay, const struct process *process, int source) {
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

bool do_call(struct replay *replay, struct process *process, const struct operation *operation) {
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
