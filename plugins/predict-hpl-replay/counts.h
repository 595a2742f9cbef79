/*
 * How often each process of HPL makes which call with which peer and bytes, and what it asks of each kernel,
 * without time. With look-ahead that depends on when a process finds the panel that it probes for, so there
 * are two rules, between which real runs lie: at once, or when it has nothing else to do.
 */
#ifndef ASSAY_PREDICT_HPL_REPLAY_COUNTS_H
#define ASSAY_PREDICT_HPL_REPLAY_COUNTS_H

#include "plugins/predict-hpl-replay/hpl.h"

#include <stddef.h>

/* Calls with a size of 0 count as `empty` and nowhere else. Sums are exact up to 2^53; those of products
 * exceed 64 bits from N = 3,000,000 on. */
enum counts_sum {
    COUNTS_CALLS,
    COUNTS_EMPTY,
    COUNTS_M,
    COUNTS_N,
    COUNTS_K,
    COUNTS_MN,
    COUNTS_MK,
    COUNTS_NK,
    COUNTS_MNK,
    COUNTS_SUMS
};

struct counts_message {
    int rank, phase, type, peer; /* hpl_phase, hpl_call; peer -1 of HPL_WAIT */
    int64_t bytes, count;
};

struct counts {
    struct counts_message *messages; /* in order of rank, phase, type, peer, bytes */
    size_t message_count, message_size;
    double (*kernels)[HPL_PHASES][HPL_KERNELS][COUNTS_SUMS]; /* by rank */
};

/* Sees every operation of a process in its order: a call with (peer, bytes, 0), or a kernel with (m, n, k).
 */
typedef void (*counts_observer)(void *context, int rank, const char *name, enum hpl_phase phase, int64_t a,
                                int64_t b, int64_t c);

/* Counts all of HPL. IS_LATE: a process finds the panel that it probes for when it has nothing else to do,
 * else at once. 0 or -ENOMEM; OBSERVER may be NULL. The caller calls counts_clear() in either case. */
int counts_make(const struct hpl *hpl, bool is_late, counts_observer observer, void *context,
                struct counts *ret);
void counts_clear(struct counts *counts);

/* Order of messages for qsort(): by all members but the count. */
int counts_compare(const void *a, const void *b);
/* Sorts MESSAGES and adds the counts of equal ones into one; *COUNT falls. */
void counts_sort(struct counts_message *messages, size_t *count);

#endif
