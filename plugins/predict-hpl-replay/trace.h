/*
 * What each process does when, for tables: how long by part, intervals of a window, and the critical path.
 * The path is found while the replay goes on: each process carries how its time is made up, by parts, along
 * the chain of work and messages that nothing waited within; where it waits for a message, it takes over what
 * whoever was ready last carried at that moment (J. K. Hollingsworth, "Critical path profiling of message
 * passing and shared-memory programs", IEEE Trans. Parallel Distrib. Syst. 9(10), 1998).
 */
#ifndef ASSAY_PREDICT_HPL_REPLAY_TRACE_H
#define ASSAY_PREDICT_HPL_REPLAY_TRACE_H

#include "plugins/predict-hpl-replay/hpl.h"

#include <stddef.h>

struct sensitivities;

enum activity { KERNEL, MESSAGES, PANEL_WAIT, PROBING };

/* Each kernel, the messages of each phase, waiting for a panel, and probes. */
enum { TRACE_PARTS = HPL_KERNELS + HPL_PHASES + 2 };

struct trace_path {
    double until; /* the sum of the parts, s */
    double parts[TRACE_PARTS];
};

struct trace_interval {
    int part; /* or -1: none */
    double from, until;
};

struct trace {
    int ranks;
    double (*spent)[TRACE_PARTS]; /* by rank, s */
    struct trace_path *paths;     /* by rank */
    struct trace_path *ready;     /* by transfer: of the process by which its data could begin to travel */
    size_t ready_count;
    struct trace_interval *open; /* by rank: intervals of one part that follow each other are one */
    int first_rank, end_rank;
    bool is_open; /* intervals are recorded now */
    void *context;
    /* Takes an interval; negative errno ends the replay. NULL: there are none. */
    int (*interval)(void *context, int rank, const struct trace_interval *interval);
    struct sensitivities *sensitivities; /* takes the same, or NULL */
    int error;
};

/* -ENOMEM, or 0. The caller calls trace_clear() in either case. */
int trace_init(struct trace *trace, int ranks);
void trace_clear(struct trace *trace);
/* RANK did ACTIVITY, of the kernel or phase WHAT, from FROM until UNTIL. */
void trace_pass(struct trace *trace, int rank, enum activity activity, int what, double from, double until);
/* RANK is the later one of those that the data of TRANSFER have to wait for. */
void trace_ready(struct trace *trace, int transfer, int rank);
/* RANK waits for the data of TRANSFER. */
void trace_follow(struct trace *trace, int rank, int transfer);
/* A waits for what B sends now, B for what A sends, or both. */
void trace_exchange(struct trace *trace, int a, int b, bool a_waits, bool b_waits);
/* Opens or closes the window; closed, all intervals are given to `interval`. */
void trace_window(struct trace *trace, bool is_open);

#endif
