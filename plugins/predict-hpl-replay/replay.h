/*
 * HPL in virtual time. Every process does its operations in order (hpl.h); its clock runs ahead alone while
 * it computes, and stands where it waits for others. A queue of events orders what processes do to each
 * other: beginnings and ends of large messages, and probes. The search for pivots needs no events: the
 * processes of a column meet at the factorisation of a panel, and their clocks then follow by recurrence.
 *
 * Small messages travel at the share of the cards that their nodes have at the moment, and do not slow others
 * down.
 */
#ifndef ASSAY_PREDICT_HPL_REPLAY_REPLAY_H
#define ASSAY_PREDICT_HPL_REPLAY_REPLAY_H

#include "plugins/predict-hpl-replay/hpl.h"
#include "plugins/predict-hpl-replay/network.h"

#include <stddef.h>

/* The times of COUNT calls, s: call NUMBERS[i] of the process RANKS[i] has the sizes M[i], N and K, none of
 * them 0 if the kernel has it. */
typedef void replay_kernel(void *context, enum hpl_kernel kernel, size_t count, const uint64_t *ranks,
                           const uint64_t *numbers, const int *m, int n, int k, double *ret);

struct replay_machine {
    const struct network_model *network;
    int nodes;
    const int *node_of;                       /* by rank */
    replay_kernel *kernel[HPL_KERNELS];       /* NULL: the kernel takes no time */
    replay_kernel *panel_kernel[HPL_KERNELS]; /* in the factorisation of panels; NULL: the same */
    /* The time depends on the sizes alone. */
    bool is_fixed[HPL_KERNELS];
    void *context;
    double probe; /* s: a call of MPI_Iprobe */
    /* As SMPI does: each probe that finds nothing makes the next one longer by `probe`, whoever calls it,
     * until one finds something. */
    bool probe_grows;
    /* A call finds what calls of MPI before it brought in, not what has come since the last of them. */
    bool probe_is_deferred;
    uint64_t first_call;     /* the number of each process's first call of a kernel */
    bool whole_microseconds; /* the time of each kernel call is cut to them */
};

/* Whose time: of all processes together, s. */
struct replay_times {
    double time; /* until the last process is done */
    double kernels[HPL_KERNELS];
    double messages[HPL_PHASES]; /* in MPI calls, waiting included */
    double panel_wait;           /* for a panel, with nothing else to do */
    double probing;
    uint64_t events, message_count, kernel_count;
    uint64_t unusable_count; /* of kernel calls: their time was negative or no number, and 0 was taken */
};

struct replay_observer {
    void *context;
    /* Each panel was factored, from FROM, when its first process began, until UNTIL, when its last one was
     * done. Negative errno: the replay ends and returns it. NULL is fine. */
    int (*panel_done)(void *context, int panel, double from, double until);
    /* A process has found PANEL, by its clock at NOW, in the step in which PANEL is broadcast, and ended all
     * other work of that step. TIMES: so far, without `time`. As above. */
    int (*panel_found)(void *context, int panel, double now, const struct replay_times *times);
    struct trace *trace; /* takes what each process does; or NULL */
};

/* Negative errno: -ENOMEM, or the observer's; -EDEADLK: the processes wait for each other. */
int replay_run(const struct hpl *hpl, const struct replay_machine *machine,
               const struct replay_observer *observer, struct replay_times *ret);

#endif
