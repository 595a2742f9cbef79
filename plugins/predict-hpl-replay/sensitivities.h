/*
 * Derivatives of the total time, from one replay: the forward mode of automatic differentiation (R. E.
 * Wengert, Comm. ACM 7(8), 1964) over the clocks of the processes. Each clock has a vector: by how much it
 * would be later if a cost, such as the latency of messages, were greater, in seconds per relative change of
 * the cost. Where a process waits for the later one of two clocks, its vector is that of the later one, so
 * the vector of the last process is what the critical path has of each cost.
 *
 * Messages that share network cards do not follow one path: when one of them ends depends on when the others
 * begin and end. Their streams are followed here beside network.h, whose rule they have. A message that
 * begins later lets others end earlier, so members may be negative, and in a chaotic schedule they grow
 * without bound: with look-ahead and a ring, a delay of nanoseconds becomes one of milliseconds within some
 * panels. Each clock therefore has a second vector, where a message begins when it does and takes what it
 * takes. It has the mean of the derivative over small changes there, and errs by some 7 % of the bandwidth
 * elsewhere.
 *
 * The derivative is that of the schedule as it was: it does not see that other processes become critical,
 * nor that a panel is found after another piece of an update.
 */
#ifndef ASSAY_PREDICT_HPL_REPLAY_SENSITIVITIES_H
#define ASSAY_PREDICT_HPL_REPLAY_SENSITIVITIES_H

#include "plugins/predict-hpl-replay/replay.h"

#include <stddef.h>

/* The members of a vector, s. The first is the clock itself; it is the sum of all others but those that are
 * parts of them: the cards' of the bandwidth, and the nodes' of the kernels. */
enum {
    SENSITIVITY_TIME,
    SENSITIVITY_LATENCY,       /* of messages between nodes */
    SENSITIVITY_BANDWIDTH,     /* of messages between nodes and of cards, together */
    SENSITIVITY_CARD,          /* of the bandwidth: where cards are shared, and slower than a message alone */
    SENSITIVITY_LOCAL_LATENCY, /* of messages within a node */
    SENSITIVITY_LOCAL_BANDWIDTH, /* likewise */
    SENSITIVITY_CALLS,           /* what calls of MPI cost the process */
    SENSITIVITY_PROBES,
    SENSITIVITY_KERNELS,
    SENSITIVITY_NODES = SENSITIVITY_KERNELS + HPL_KERNELS, /* kernels by node */
    SENSITIVITY_NODES_MAX = 1024,                          /* beyond, there are none by node, */
    SENSITIVITY_VALUES_MAX = 1 << 25 /* or if there were more of nodes x ranks: 0.5 GB */
};

/* Messages that share cards between the same two nodes; its vector is that of the bytes that one of them
 * would have transferred at time 0, if its rate had always been the present one. */
struct sensitivity_stream {
    int from, to, count, next_up, next_down;
    double rate; /* byte/s, of each message */
    bool is_card;
};

struct sensitivities {
    const struct replay_machine *machine;
    int width, nodes;  /* members of a vector; of them, by node */
    size_t size;       /* of two vectors */
    double *ranks;     /* two vectors each: of its clock */
    double *transfers; /* two vectors each: when its data can begin to travel, then of its end in its stream,
                          then when they are there */
    size_t transfer_count;
    struct sensitivity_stream *streams;
    double *stream_vectors;
    int stream_count, free_stream;
    int *ups, *downs, *sending, *receiving; /* by node: streams, chained; messages */
    double *scratch;                        /* two vectors */
    int error;
};

/* -ENOMEM, or 0. The caller calls sensitivities_clear() in either case. MACHINE outlives it. */
int sensitivities_init(struct sensitivities *s, const struct replay_machine *machine, int ranks);
void sensitivities_clear(struct sensitivities *s);
/* The clock of RANK moves to UNTIL because of PART, a member of its vector. */
void sensitivities_pass(struct sensitivities *s, int rank, int part, double until);
/* The data of TRANSFER can begin to travel when RANK says so: now. */
void sensitivities_ready(struct sensitivities *s, int transfer, int rank);
/* The data of TRANSFER, of BYTES from SOURCE to TARGET, can begin at TIME. They take TRANSIT, their latency
 * and their own time, or the latency alone if their stream follows. */
void sensitivities_begin(struct sensitivities *s, int transfer, int source, int target, int64_t bytes,
                         double time, double transit);
/* TRANSFER begins to share the cards of two nodes; it has ended, and would have taken ALONE seconds alone. */
void sensitivities_start(struct sensitivities *s, int transfer, int from, int to, double now);
void sensitivities_finish(struct sensitivities *s, int transfer, int from, int to, double alone, double now);
/* RANK has waited for the data of TRANSFER. */
void sensitivities_follow(struct sensitivities *s, int rank, int transfer);

/* Whether a cost of the process of RANKS that was done last is far below 0, as in a chaotic schedule. */
bool sensitivities_are_means(const struct sensitivities *s, int ranks);
/* The vector of that process: the first one, or in a chaotic schedule the second one. */
const double *sensitivities_last(const struct sensitivities *s, int ranks);

/* Two processes exchange messages; of each: what it sends. */
struct sensitivity_exchange {
    int ranks[2];
    const int64_t *bytes;
    const bool *starts_when_both_are_ready, *waits;
    const double *send, *transit, *receive;
};
void sensitivities_exchange(struct sensitivities *s, const struct sensitivity_exchange *exchange);

#endif
