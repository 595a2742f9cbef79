/* What the parts of the replay share: its processes, what they have to do, and messages under way. */
#ifndef ASSAY_PREDICT_HPL_REPLAY_STATE_H
#define ASSAY_PREDICT_HPL_REPLAY_STATE_H

#include "plugins/predict-hpl-replay/events.h"
#include "plugins/predict-hpl-replay/replay.h"
#include "plugins/predict-hpl-replay/sensitivities.h"
#include "plugins/predict-hpl-replay/trace.h"

#include <errno.h>

enum { NONE = -1, LARGE = 65536 /* bytes from which a message slows others down */ };

enum operation_kind { DO_CALL, DO_KERNEL, DO_CONTROL };

/* Irecv, Send and Wait of one process in one operation, beside the calls of MPI. */
enum { EXCHANGE = HPL_CALLS };

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

/* A message on its way: it exists from the call that sends it until the call that receives it has ended. */
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
    double progressed; /* when a call of MPI last looked for messages to it */
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

enum {
    EXCHANGES = 1024,
    COLUMNS_AT_ONCE = 16,
    SENDERS = 3, /* of a panel, one before the other, whose clocks a probe looks at */
};

struct replay {
    struct hpl_sink queue_sink, clock_sink;
    const struct hpl *hpl;
    const struct replay_machine *machine;
    const struct replay_observer *observer;
    struct trace *trace;                 /* or NULL */
    struct sensitivities *sensitivities; /* the trace's, or NULL */
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

static inline void push(struct replay *replay, double time, enum event_kind kind, int id) {
    if (event_push(&replay->events, time, kind, id) < 0)
        replay->error = -ENOMEM;
}

/* PROCESS waits for the data of transfer ID until UNTIL. */
static inline void follow(struct replay *replay, const struct process *process, int id, double until) {
    if (replay->trace && until > process->now)
        trace_follow(replay->trace, (int)(process - replay->processes), id);
}

static inline double later(double a, double b) {
    return a > b ? a : b;
}

static inline enum network_path path_of(const struct replay *replay, int a, int b) {
    return replay->machine->node_of[a] == replay->machine->node_of[b] ? NETWORK_LOOPBACK : NETWORK_REMOTE;
}

static inline const struct network_segment *segment_of(const struct replay *replay, int a, int b,
                                                       int64_t bytes) {
    return network_find(replay->machine->network, path_of(replay, a, b), (double)bytes);
}

/* How long the data of a message take that does not slow others down. Processes of the same node and column
 * send at the same time, and share their card. */
double small_time(const struct replay *replay, int source, int target, int64_t bytes);
/* Carries out the call OPERATION, or continues one that was begun; it began at `since`. False: it is not
 * finished, and PROCESS waits. */
bool do_call(struct replay *replay, struct process *process, const struct operation *operation);
/* The transfer from SOURCE that waits to be received by PROCESS; or NONE. */
int find_incoming(const struct replay *replay, const struct process *process, int source);
/* The data of transfer ID are there at TIME: whoever waits for them goes on. */
void finish_transfer(struct replay *replay, int id, double time);
/* The flow of transfer ID, and those that begin with it, take their shares of the cards from now on. */
void begin_flow(struct replay *replay, int id);
/* A panel may have come to RANK, which is between pieces of an update: it was sent at VISIBLE. */
void wake_prober(struct replay *replay, int rank, double visible);

#endif
