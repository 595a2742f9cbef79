/* State of a replay, shared by its files: the processes and their scripts, messages under way, and the queue
 * of events. Times are in seconds of virtual time. */
#ifndef ASSAY_PREDICT_HPL_REPLAY_STATE_H
#define ASSAY_PREDICT_HPL_REPLAY_STATE_H

#include "plugins/predict-hpl-replay/events.h"
#include "plugins/predict-hpl-replay/replay.h"
#include "plugins/predict-hpl-replay/sensitivities.h"
#include "plugins/predict-hpl-replay/trace.h"

#include <errno.h>

enum {
    NONE = -1,
    LARGE = 65536,   /* bytes from which on a message takes bandwidth from others on its cards */
    CACHE_LINE = 64, /* bytes */
    SENDERS = 3, /* how many processes up the ring a probe looks at, to see that a panel cannot be there */
};

enum operation_kind {
    DO_CALL,
    DO_KERNEL,
    DO_FIXED, /* a kernel whose time depends on its sizes alone: the operation has it */
    DO_CONTROL,
    DO_NEXT /* end of the script: the next script of the column follows */
};

/* One operation for MPI_Irecv, MPI_Send and MPI_Wait of a process that exchanges messages with another one.
 * It extends enum hpl_call. */
enum { EXCHANGE = HPL_CALLS };

/* One thing that a process does: a call of MPI, a kernel, or a control (hpl.h). */
struct operation {
    uint8_t kind, what, phase; /* what: hpl_call or EXCHANGE, hpl_kernel or hpl_control, by `kind` */
    uint8_t probes;            /* how many calls of MPI_Iprobe follow it, while a panel is awaited */
    union {
        int peer; /* of a call: rank of the other process less the own rank; of a control: panel */
        int m;    /* of a kernel */
    };
    union {
        int64_t bytes; /* of a call */
        int columns;   /* of a control */
        double time;   /* of DO_FIXED, s */
        struct {
            int n, k;
        };
    };
};

/* The operations of a column's processes in one step, in the order in which hpl_emit() gives them: those of
 * one process are a list. new_script() sorts them by process. */
struct draft {
    struct operation *items;
    int *next; /* by item: the next item of the same process, or NONE */
    int count, size;
    int *first, *last; /* by process row: items, or NONE */
};

/* The operations of a column's processes in one step, one process after the other, each ended by DO_NEXT.
 * They name ranks relative to the own one, so that columns with the same work share a script. */
struct script {
    struct operation *items;
    int size;
    int panel, pending, columns; /* the step that it was made of; columns: local ones */
    int users;                   /* columns that have it to do, and 1 while it is in `shared` */
    struct script *next;         /* in the list of unused scripts */
    int first[];                 /* by process row: the first item */
};

/* A place in a column's list of scripts. Its processes go through the list one by one, each at its own time.
 */
struct script_use {
    struct script *script; /* NULL: the place before the first step */
    struct script_use *next;
    int users; /* processes that are here or have not come here yet */
};

/* The calls by which a process receives a panel that it has found, and sends it on. They precede the rest of
 * its script. */
struct urgent {
    struct operation *items;
    int head, count, size;
};

/* A message, from the call that sends it until the call that receives it has ended. */
struct transfer {
    int source, target; /* ranks */
    int next; /* in the target's list of messages not yet received, or in the list of unused transfers */
    int64_t bytes;
    double posted; /* when the sender was ready: from then on a probe finds the message */
    double done;   /* when the data have arrived; NaN: not known yet */
    uint8_t is_detached, is_eager, is_matched, is_sender_done;
};

enum process_state { READY, AT_FACTOR, IN_CALL, IN_CHUNKS, DONE };

/* A process of HPL. Members that are used together share a line of the cache. */
struct process {
    _Alignas(CACHE_LINE) double now;   /* its clock */
    double since;                      /* when its current operation began */
    double progressed;                 /* when a call of MPI last brought in messages that had come for it */
    const struct operation *operation; /* the current one, in its script */
    int probes; /* calls of MPI_Iprobe that are left to do after the current operation */
    int latest; /* the last panel of which it is the root, or that it began to receive */
    enum process_state state;
    int pending;        /* the panel that it awaits, or NONE */
    uint64_t calls;     /* of kernels so far: the number of the next draw */
    double early_until; /* the pending panel cannot be there before */

    int source;   /* rank from which the pending panel comes */
    int incoming; /* first of the transfers that were sent to this process and not yet received, or NONE */
    int row, column;
    int partner;      /* rank that has to come for the exchange that has begun, or NONE */
    int sender_count; /* of `senders`; 0: not found yet */
    double received,
        receive_cost; /* in an exchange: when the data arrive, NaN: not known; what MPI_Recv costs */
    struct urgent urgent;

    struct script_use *use;
    struct sender {
        int rank;
        double delay;   /* least time from when RANK sends the panel until this process finds it, s */
    } senders[SENDERS]; /* its source, the source of that, and so on */
    bool is_probing;    /* it waits in the middle of a probe or an update, and goes on there */
    bool has_probed;    /* SMPI's probe was paid for already */
    bool waits_for_send, waits_for_receive; /* what ends the call that it is in */

    int chunk_panel, chunk_left; /* the update that it is in: with which panel; local columns that are left */
    double device, mark;   /* when its accelerator is done: with all of its work, with that before HPL_MARK */
    int neighbours;        /* processes of the same column on the same node, this one included */
    int receive_from;      /* rank from which it receives while nothing was sent yet, or NONE */
    double receive_posted; /* since when */
    int receiving, sending; /* transfers of its current call, or NONE */
};

/* What happens at the time of an event: process ID goes on; transfer ID takes its share of the cards; column
 * ID factors the next columns of its panel. */
enum event_kind { RESUME, FLOW_BEGINS, FACTOR };

/* A process column. */
struct column {
    struct hpl_position position;
    struct script_use *first, *last; /* the place of its slowest process, and the last one that was made */
    int arrived;                     /* processes that are at the factorisation of `panel` */
    int panel, factored;             /* the panel that it factors; how many of its columns are done */
    bool is_done;                    /* there are no more steps */
    double begun;                    /* when its first process began to factor the panel */
};

/* Two processes of a column exchange messages in the search for a pivot: what the message of each costs. */
struct exchange {
    int rows[2];
    int64_t bytes[2];
    bool is_rendezvous; /* at least one message starts when both processes are ready */
    bool starts_when_both_are_ready[2];
    bool waits[2];                          /* the sender waits until its message has arrived */
    double send[2], transit[2], receive[2]; /* s: MPI_Send, the way, MPI_Recv */
};

/* The column that factors a panel, by process row. The exchanges of one search for a pivot stay the same for
 * COLUMNS_AT_ONCE columns. */
struct factoring {
    double *clocks, *times;  /* times: s, of the kernel that the processes call now */
    uint64_t *ranks, *calls; /* calls: of kernels so far */
    int *sizes;              /* m of the kernel */
    struct exchange *exchanges;
    uint64_t messages;      /* of one search */
    int exchange_count, at; /* at: index of the next exchange of the search */
};

/* One of the kernels by which an update treats one chunk of columns (hpl_chunk). */
struct chunk_kernel {
    enum hpl_kernel kernel;
    int m, n, k;
};

enum {
    SCRIPTS_SHARED = 16,  /* so many of the latest scripts are offered to other columns */
    COLUMNS_AT_ONCE = 16, /* of a panel, that are factored between two events */
    FIRST_CHUNKS = 8, /* of an update, whose times are drawn together at first; later as many as are needed */
    CHUNKS_AT_ONCE = 64, /* at most */
    CHUNK_KERNELS_MAX = 4,
};

/* s: from the beginning of a message until its data travel, and from then on until they arrive. A small
 * message has its share of the cards as they are now, a large one has them alone. */
struct transit {
    double latency, travel;
};

/* The long broadcast of one row, where `is_unshared` (long-broadcast.c). */
struct rolls {
    int *arrived;             /* by process row: processes that are at the broadcast of a panel */
    double *clocks;           /* by member of the row */
    double *post;             /* s, by piece: MPI_Issend */
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
    unsigned made;              /* scripts that were put into `shared` so far */
    struct transfer *transfers; /* the first ones, by rank, are of do_exchange() */
    int transfer_count, transfer_size, free_transfer;
    bool has_exchanges; /* EXCHANGE is one operation: no large message is detached, and there is no trace */
    /* `has_exchanges`, HPL_LONG or HPL_LONGM, and each process has a card of its own: no two large messages
     * are on a card at once. Their ends are then known when they begin, and need no events. A small message
     * that meets one of them does not share the card with it. */
    bool is_unshared;
    int begin_last; /* the last event FLOW_BEGINS: its last transfer, its time, and its number in the queue */
    double begin_time;
    uint32_t begin_order;
    struct event_queue events;
    double clock;              /* time of the current event; a process's own clock may be ahead */
    int ready[2], ready_count; /* ranks that go on after this event */
    int sleeps;                /* SMPI's factor of the cost of a probe: grows until a probe finds something */
    int error;                 /* negative errno: the replay ends */
    int done;                  /* processes that are */
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

/* Tells the trace that PROCESS waits for the data of transfer ID until UNTIL. */
static inline void trace_wait(struct replay *replay, const struct process *process, int id, double until) {
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

/* The later of two times; without fmax()'s care for NaN. */
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

/* Time of a message that takes no bandwidth from others, s, from when it begins until it has arrived. It gets
 * its share of the cards as they are now; processes of the same node and column send at the same time, and
 * share their card. */
double small_time(const struct replay *replay, int source, int target, int64_t bytes);
struct transit find_transit(const struct replay *replay, int source, int target, int64_t bytes);
static inline double arrival(double begin, struct transit transit) {
    return begin + transit.latency + transit.travel; /* as events would add it up */
}
/* PROCESS begins the call OPERATION, or goes on with it after a wait. False: the call has not ended; an event
 * RESUME will come. */
bool do_call(struct replay *replay, struct process *process, const struct operation *operation);
/* The oldest transfer from rank SOURCE that PROCESS has not received yet; or NONE. */
int find_incoming(const struct replay *replay, const struct process *process, int source);
/* The data of transfer ID arrive at TIME: processes that wait for nothing else go on. */
void finish_transfer(struct replay *replay, int id, double time);
/* The data of transfer ID, and of those that begin at the same time, take their shares of the cards from now
 * on. */
void begin_flow(struct replay *replay, int id);
/* -ENOMEM, or 0. The caller calls rolls_clear() in either case. */
int rolls_init(struct replay *replay);
void rolls_clear(struct replay *replay);
/* HPL_LONG or HPL_LONGM: moves the clocks of all processes of ROW, which are at the broadcast of PANEL, to
 * where each has done its part. For `is_unshared` only. */
void long_broadcast(struct replay *replay, int panel, int row);
/* RANK, which stands IN_CHUNKS, does its update up to the probe that finds a message sent at VISIBLE, if that
 * is the panel that it awaits. */
void wake_prober(struct replay *replay, int rank, double visible);

/* -ENOMEM, or 0. The caller calls scripts_clear() in either case. */
int scripts_init(struct replay *replay);
void scripts_clear(struct replay *replay);
/* PROCESS, which is at DO_NEXT, goes to the next script that has an operation for it. False: all is done, or
 * there is no memory (`error`). */
bool next_script(struct replay *replay, struct process *process);
/* Fills `urgent` of PROCESS, which has found PANEL, with the calls of the broadcast. */
void make_urgent(struct replay *replay, const struct process *process, int panel);

#endif
