/*
 * Units that were answered, and whose line in the results waits for the samples that say what state they ran
 * under. One queue a lane, in the order of the answers. Private to this room.
 */
#ifndef ASSAY_MEASURE_HELD_UNITS_H
#define ASSAY_MEASURE_HELD_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When a unit began, by the node's two clocks, as whoever ran it tells. */
struct unit_start {
    int64_t wall_ns;
    int64_t monotonic_ns; /* negative: not told */
};

struct measured_unit {
    size_t position;  /* in the plan's order */
    unsigned attempt; /* from 1 */
    struct unit_start start;
    int64_t begun_ns;                   /* monotonic, worked out where it was not told; negative: not known */
    int64_t end_ns;                     /* monotonic; negative: not known yet */
    uint64_t output_bytes, error_bytes; /* of a command: all that it wrote, also what was not kept */
    int64_t held_ns;                    /* monotonic, of the engine: since when it waits */
    size_t shares;                      /* of its placement: it ran on the nodes of the first so many */
};

/* Zeroed memory is an empty queue. */
struct held_units {
    struct measured_unit *units; /* owned; a ring */
    double *responses;           /* owned; WIDTH a unit */
    size_t width, first, count, capacity;
};

/* WIDTH: responses a unit, always the same. 0 or -ENOMEM. */
int held_units_add(struct held_units *held, const struct measured_unit *unit, const double *responses,
                   size_t width);
/* The one that was added last ended at END_NS, if it is still there and its end is not known. */
void held_units_end_last(struct held_units *held, int64_t end_ns);
/* The first; NULL if there is none. Valid until the queue is changed. */
const struct measured_unit *held_units_first(const struct held_units *held, const double **ret_responses);
void held_units_drop(struct held_units *held);
void held_units_clear(struct held_units *held);

#endif
