/* What the parts of the replay share: its processes, what they have to do, and messages under way. */
#ifndef ASSAY_PREDICT_HPL_REPLAY_STATE_H
#define ASSAY_PREDICT_HPL_REPLAY_STATE_H

#include "plugins/predict-hpl-replay/events.h"
#include "plugins/predict-hpl-replay/replay.h"
#include "plugins/predict-hpl-replay/sensitivities.h"
#include "plugins/predict-hpl-replay/trace.h"

#include <errno.h>

enum {
    NONE = -1,
    LARGE = 65536,   /* bytes from which a message slows others down */
    CACHE_LINE = 64, /* bytes */
    SENDERS = 3,     /* of a panel, one before the other, whose clocks a probe looks at */
};

enum operation_kind {
    DO_CALL,
    DO_KERNEL,
    DO_FIXED, /* a kernel whose time is known */
    DO_CONTROL,
    DO_NEXT /* the script ends here */
};

/* Irecv, Send and Wait of one process in one operation, beside the calls of MPI. */
enum { EXCHANGE = HPL_CALLS };

struct operation {
    uint8_t kind, what, phase; /* what: hpl_call or EXCHANGE, hpl_kernel or hpl_control */
    uint8_t probes;            /* so many HPL_PROBE follow it */
    union {
        int peer; /* its rank less that of the process; of a control: panel */
        int m;
    };
    union {
        int64_t bytes;
        int columns; /* of a control */
        double time; /* of DO_FIXED */
        struct {
            int n, k;
        };
    };
};

/* What the processes of a column do in a step, before it is a script: in the order in which it is told. */
struct draft {
    struct operation *items;
    int *next; /* item of the same process, or NONE */
    int count, size;
    int *first, *last; /* items by process row, or NONE */
};

/* The same, one process after the other. Columns that do the same share it: the operations do not say whose
 * they are. */
struct script {
    struct operation *items;
    int size;
    int panel, pending, columns; /* what it depends on */
    int users;                   /* columns, and the list of shared ones */
    struct script *next;         /* unused one */
    int first[];                 /* item by process row */
};

/* A script in the sequence of those of a column. */
struct script_use {
    struct script *script; /* NULL before the first step */
    struct script_use *next;
    int users; /* processes that have not left it */
};

/* Messages of a panel that was found, which go before what the script says. */
struct urgent {
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

/* What is looked at together shares a line of the cache. */
struct process {
    _Alignas(CACHE_LINE) double now;
    double since;                      /* when the operation that it is in began */
    double progressed;                 /* when a call of MPI last looked for messages to it */
    const struct operation *operation; /* of the script: what it does */
    int probes;                        /* after that: those that are left, if it is done */
    int latest;                        /* the last panel that it sent first, or began to receive */
    enum process_state state;
    int pending; /* panel, or NONE */
    uint64_t calls;
    double early_until; /* the panel cannot be there before */

    int source;   /* rank that sends the panel */
    int incoming; /* first of the transfers that have been sent to it and not received */
    int row, column;
    int partner;                   /* rank with which it exchanges messages and that is awaited */
    int sender_count;              /* 0: not known */
    double received, receive_cost; /* in an exchange: when the data are there, or NaN; what receiving costs */
    struct urgent urgent;

    struct script_use *use;
    struct sender {
        int rank;
        double delay; /* from when this one sends the panel until PROCESS may find it, s */
    } senders[SENDERS];
    bool is_probing; /* it comes back to a probe */
    bool has_probed;
    bool waits_for_send, waits_for_receive; /* in the call that it is in */

    int chunk_panel, chunk_left;
    double device, mark; /* when its accelerator has done what it was given, all of it and up to HPL_MARK */
    int neighbours;      /* processes of its column on its node, itself included */
    int receive_from;    /* rank of a receive that no transfer has met; or NONE */
    double receive_posted;
    int receiving, sending; /* transfers */
};

enum event_kind { RESUME, FLOW_BEGINS, FACTOR };
struct column {
    struct hpl_position position;
    struct script_use *first, *last; /* scripts that processes are at, and the last one that was made */
    int arrived;                     /* processes that are at the factorisation of `panel` */
    int panel, factored;             /* columns of it */
    bool is_done;
    double begun; /* when its first process began to factor the panel */
};

/* What an exchange of messages between two processes costs in the search for a pivot: what each sends. */
struct exchange {
    int rows[2];
    int64_t bytes[2];
    bool is_rendezvous; /* of one of them */
    bool starts_when_both_are_ready[2], waits[2];
    double send[2], transit[2], receive[2];
};

/* The processes of the column that factors a panel, and the exchanges of one search, which do not change
 * within a piece of the factorisation. */
struct factoring {
    double *clocks, *times;  /* by process row; times of the kernel that they call now */
    uint64_t *ranks, *calls; /* by process row */
    int *sizes;              /* by process row */
    struct exchange *exchanges;
    uint64_t messages;      /* of a search */
    int exchange_count, at; /* at: the exchange that is next */
};

/* The kernels of one chunk of an update. */
struct chunk_kernel {
    enum hpl_kernel kernel;
    int m, n, k;
};

enum {
    SCRIPTS_SHARED = 16, /* the last ones */
    COLUMNS_AT_ONCE = 16,
    FIRST_CHUNKS = 8, /* of an update, that are drawn together; then as many as are needed, up to */
    CHUNKS_AT_ONCE = 64,
    CHUNK_KERNELS_MAX = 4,
};

/* s: from the beginning of a message until its data travel, and until they are there. A small message has its
 * share of the cards as they are now, a large one has them alone. */
struct transit {
    double latency, travel;
};

/* The broadcasts HPL_LONG and HPL_LONGM, where `is_unshared`. */
struct rolls {
    int *arrived;             /* by process row: processes that are at the broadcast of a panel */
    double *clocks;           /* by member of the row that is computed */
    double *post;             /* s: what MPI_Issend takes, by piece */
    struct transit *transits; /* by piece */
};

struct replay {
    struct hpl_sink factor_sink, chunk_sink;
    const struct hpl *hpl;
    struct hpl_space *space;
    const struct replay_machine *machine;
    const struct replay_observer *observer;
    struct trace *trace;                 /* or NULL */
    struct sensitivities *sensitivities; /* the trace's, or NULL */
    struct network *network;
    struct process *processes;
    struct column *columns;
    struct draft draft;
    struct script *shared[SCRIPTS_SHARED], *unused;
    unsigned made; /* shared scripts */
    struct transfer *transfers;
    int transfer_count, transfer_size, free_transfer; /* the first ones are of exchanges, by rank */
    bool has_exchanges; /* a message that slows others down is never detached, and there is no trace */
    /* `has_exchanges`, HPL_LONG or HPL_LONGM, and each process has a card of its own: no two large messages
     * are on a card at once. Their ends are then known when they begin, and need no events. A small message
     * that meets one of them does not share the card with it. */
    bool is_unshared;
    int begin_last; /* of the last event FLOW_BEGINS: its last transfer, time and place */
    double begin_time;
    uint32_t begin_order;
    struct event_queue events;
    double clock;
    int ready[2], ready_count; /* ranks that go on at this time */
    int sleeps;                /* of SMPI's probes */
    int error;
    int done;
    struct factoring factoring;
    struct rolls rolls;
    struct chunk_kernel chunk[CHUNK_KERNELS_MAX];
    int chunk_kernels;
    struct replay_times times;
};

static inline int rank_of(const struct replay *replay, const struct process *process) {
    return (int)(process - replay->processes);
}
static inline struct process *process_at(const struct replay *replay, int row, int column) {
    return &replay->processes[hpl_rank(replay->hpl, row, column)];
}

static inline void push(struct replay *replay, double time, enum event_kind kind, int id) {
    if (event_push(&replay->events, time, kind, id) < 0)
        replay->error = -ENOMEM;
}

/* PROCESS waits for the data of transfer ID until UNTIL. */
static inline void follow(struct replay *replay, const struct process *process, int id, double until) {
    if (replay->trace && until > process->now)
        trace_follow(replay->trace, (int)(process - replay->processes), id);
}

/* Whether KERNEL does nothing with these sizes. */
static inline bool is_empty(enum hpl_kernel kernel, int m, int n, int k) {
    int arity = hpl_dimensions(kernel);
    if (kernel == HPL_DLASWP04_N || kernel == HPL_DLASWP04_T) /* copies m rows and k rows */
        return n == 0 || (m == 0 && k == 0);
    return m == 0 || (arity > 1 && n == 0) || (arity > 2 && k == 0);
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
struct transit find_transit(const struct replay *replay, int source, int target, int64_t bytes);
static inline double arrival(double begin, struct transit transit) {
    return begin + transit.latency + transit.travel; /* as events would add it up */
}
/* Carries out the call OPERATION, or continues one that was begun; it began at `since`. False: it is not
 * finished, and PROCESS waits. */
bool do_call(struct replay *replay, struct process *process, const struct operation *operation);
/* The transfer from SOURCE that waits to be received by PROCESS; or NONE. */
int find_incoming(const struct replay *replay, const struct process *process, int source);
/* The data of transfer ID are there at TIME: whoever waits for them goes on. */
void finish_transfer(struct replay *replay, int id, double time);
/* The flow of transfer ID, and those that begin with it, take their shares of the cards from now on. */
void begin_flow(struct replay *replay, int id);
/* -ENOMEM, or 0. The caller calls rolls_clear() in either case. */
int rolls_init(struct replay *replay);
void rolls_clear(struct replay *replay);
/* HPL_LONG or HPL_LONGM: moves the clocks of all processes of ROW, which are at the broadcast of PANEL, to
 * where each has done its part. For `is_unshared` only. */
void long_broadcast(struct replay *replay, int panel, int row);
/* A panel may have come to RANK, which is between pieces of an update: it was sent at VISIBLE. */
void wake_prober(struct replay *replay, int rank, double visible);

/* -ENOMEM, or 0. The caller calls scripts_clear() in either case. */
int scripts_init(struct replay *replay);
void scripts_clear(struct replay *replay);
/* PROCESS, which has come to the end of a script, goes to the next one that has an operation for it. False:
 * there is none, or no memory. */
bool next_script(struct replay *replay, struct process *process);
/* PROCESS has found PANEL: its messages go first. */
void make_urgent(struct replay *replay, const struct process *process, int panel);

#endif
