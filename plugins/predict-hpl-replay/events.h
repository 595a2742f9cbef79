/* A queue of events in order of time; events of one time leave in the order in which they were pushed. A heap
 * with four children a node. */
#ifndef ASSAY_PREDICT_HPL_REPLAY_EVENTS_H
#define ASSAY_PREDICT_HPL_REPLAY_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum { EVENT_ID_BITS = 29, EVENT_KINDS = 8 };

struct event {
    double time;
    uint64_t key; /* order, then kind, then id */
};

struct event_queue {
    struct event *heap; /* NULL at first */
    void *memory;
    size_t count, size;
    uint32_t order; /* number of the next event */
};

static inline unsigned event_kind(struct event event) {
    return (unsigned)(event.key >> EVENT_ID_BITS) % EVENT_KINDS;
}
static inline int event_id(struct event event) {
    return (int)(event.key & ((1u << EVENT_ID_BITS) - 1));
}

/* 0 or -ENOMEM. KIND is below EVENT_KINDS, ID of EVENT_ID_BITS. */
int event_push(struct event_queue *queue, double time, unsigned kind, int id);
/* Removes and returns the first event. The queue must not be empty. */
struct event event_pop(struct event_queue *queue);
void event_clear(struct event_queue *queue);

#endif
