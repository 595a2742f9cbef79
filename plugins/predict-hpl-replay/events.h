/* A queue of events in order of time; those of one time in the order in which they came. */
#ifndef ASSAY_PREDICT_HPL_REPLAY_EVENTS_H
#define ASSAY_PREDICT_HPL_REPLAY_EVENTS_H

#include <stddef.h>
#include <stdint.h>

struct event {
    double time;
    uint32_t order;
    int32_t id;
    uint8_t kind;
};

struct event_queue {
    struct event *heap; /* 4 below each; NULL at first, freed by the owner */
    size_t count, size;
    uint32_t order;
};

/* 0 or -ENOMEM. */
int event_push(struct event_queue *queue, double time, uint8_t kind, int id);
/* The first event, which leaves the queue. There is one. */
struct event event_pop(struct event_queue *queue);

#endif
