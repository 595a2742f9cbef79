/*
 * The calls of a table, kept until the pass is over: trimming and pairing need their order, and whether a
 * Send is one end of a ping-pong is known only then. 24 bytes a row.
 */
#ifndef ASSAY_FIT_SMPI_CALLS_H
#define ASSAY_FIT_SMPI_CALLS_H

#include "plugins/fit-smpi/trim.h"

#include <stdbool.h>
#include <stdint.h>

enum { CALLS_MAX = 1 << 24 }; /* rows */

enum operation {
    OPERATION_ISEND,
    OPERATION_SEND, /* one end of a ping-pong: the blocking send */
    OPERATION_RECV,
    OPERATION_PING_PONG, /* a message there and back */
    OPERATION_IPROBE,
    OPERATION_TEST,
    OPERATION_WTIME,
    OPERATION_ASYNCHRONOUS, /* no call: the size is a threshold that was measured */
    OPERATION_DETACHED,
    OPERATION_COUNT,
};

extern const char *const operation_names[OPERATION_COUNT]; /* "Isend" */

/* The operation that TEXT names, with or without "MPI_" and in any case; OPERATION_COUNT where it names none.
 */
enum operation operation_find(const char *text);

/* What one group has of each operation. */
struct group_calls {
    struct call *calls[OPERATION_COUNT];
    size_t counts[OPERATION_COUNT];
    uint64_t incomplete; /* rows without a size or a duration, or with one that is negative */
    uint64_t other;      /* rows of other operations, and of probes that found something */
    size_t paired;       /* ping-pongs that were made of a Send and the Recv after it */
};

struct calls;

struct calls *calls_new(void); /* NULL when out of memory */
void calls_free(struct calls *calls);

/* Keeps a row; NaN: the table leaves it empty. -EFBIG: there are CALLS_MAX already. */
int calls_add(struct calls *calls, uint32_t group, uint32_t level, double size, double duration);
uint64_t calls_count(const struct calls *calls);

/* After the last row, once: OPERATIONS tells what each level is. */
int calls_sort(struct calls *calls, uint32_t group_count, const enum operation *operations);

/* The calls of GROUP, in the table's order, in *RET, which is valid until the next one is asked for.
 *
 * A group with no PingPong may be raw data of both ends: there a Send whose next row is a Recv of the same
 * size is a ping-pong that took both durations together, and its Recv is none for itself. */
void calls_of_group(struct calls *calls, uint32_t group, struct group_calls *ret);

/* What one row is by itself, or as the end of a ping-pong. */
struct call_at {
    enum operation operation;
    bool paired;    /* it is the Recv of a pair */
    uint64_t send;  /* the row of its Send; the row itself where it is none */
    double sending; /* what that took, or 0 */
};

/* Of the ROW-th that was added; after calls_sort. False where it counts for nothing, or is a threshold. */
bool calls_at(const struct calls *calls, uint64_t row, struct call_at *ret);

#endif
