#include "plugins/predict-hpl-replay/events.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 /* bytes: the four below an event share a line of the cache */ };

/* The bits of times, which are not below 0, are in their order: one comparison without branches. */
static bool is_before(struct event a, struct event b) {
    __extension__ typedef unsigned __int128 both;
    uint64_t bits[2];
    memcpy(&bits[0], &a.time, sizeof a.time);
    memcpy(&bits[1], &b.time, sizeof b.time);
    return ((both)bits[0] << 64 | a.key) < ((both)bits[1] << 64 | b.key);
}

static const struct event none = {INFINITY, UINT64_MAX}; /* behind the last one of the heap */

static int enlarge(struct event_queue *queue) {
    size_t size = queue->size > 0 ? 2 * queue->size : 256;
    char *memory = aligned_alloc(LINE, (size + LINE / sizeof(struct event)) * sizeof(struct event));
    if (!memory)
        return -ENOMEM;
    struct event *heap = (struct event *)(memory + LINE) - 1;
    if (queue->count > 0)
        memcpy(heap, queue->heap, queue->count * sizeof *heap);
    for (size_t i = queue->count; i < size; i++)
        heap[i] = none;
    free(queue->memory);
    queue->memory = memory;
    queue->heap = heap;
    queue->size = size;
    return 0;
}

/* Puts EVENT where it belongs, from PLACE up. */
static void sift_up(struct event *heap, size_t place, struct event event) {
    while (place > 0 && is_before(event, heap[(place - 1) / 4])) {
        heap[place] = heap[(place - 1) / 4];
        place = (place - 1) / 4;
    }
    heap[place] = event;
}

int event_push(struct event_queue *queue, double time, unsigned kind, int id) {
    if (queue->count + 4 > queue->size && enlarge(queue) < 0)
        return -ENOMEM;
    struct event event = {time, ((uint64_t)queue->order++ << 32) | ((uint64_t)kind << EVENT_ID_BITS) |
                                    (unsigned)id};
    sift_up(queue->heap, queue->count++, event);
    return 0;
}

struct event event_pop(struct event_queue *queue) {
    struct event *heap = queue->heap, ret = heap[0], last = heap[--queue->count];
    size_t place = 0, count = queue->count;
    heap[count] = none;
    for (size_t child; (child = 4 * place + 1) < count;
         place = child) { /* the place of the last one is free */
        size_t a = child + is_before(heap[child + 1], heap[child]),
               b = child + 2 + is_before(heap[child + 3], heap[child + 2]);
        child = is_before(heap[b], heap[a]) ? b : a;
        heap[place] = heap[child];
    }
    if (count > 0)
        sift_up(heap, place, last);
    return ret;
}

void event_clear(struct event_queue *queue) {
    free(queue->memory);
}
