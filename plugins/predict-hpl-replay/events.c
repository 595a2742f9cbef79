#include "plugins/predict-hpl-replay/events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 /* bytes: the four below an event share a line of the cache */ };

static bool is_before(struct event a, struct event b) {
    return a.time < b.time || (a.time == b.time && a.key < b.key);
}

static int enlarge(struct event_queue *queue) {
    size_t size = queue->size > 0 ? 2 * queue->size : 256;
    char *memory = aligned_alloc(LINE, (size + LINE / sizeof(struct event)) * sizeof(struct event));
    if (!memory)
        return -ENOMEM;
    struct event *heap = (struct event *)(memory + LINE) - 1;
    if (queue->count > 0)
        memcpy(heap, queue->heap, queue->count * sizeof *heap);
    free(queue->memory);
    queue->memory = memory;
    queue->heap = heap;
    queue->size = size;
    return 0;
}

int event_push(struct event_queue *queue, double time, unsigned kind, int id) {
    if (queue->count == queue->size && enlarge(queue) < 0)
        return -ENOMEM;
    struct event event = {time, ((uint64_t)queue->order++ << 32) | ((uint64_t)kind << EVENT_ID_BITS) |
                                    (unsigned)id};
    size_t place = queue->count++;
    while (place > 0 && is_before(event, queue->heap[(place - 1) / 4])) {
        queue->heap[place] = queue->heap[(place - 1) / 4];
        place = (place - 1) / 4;
    }
    queue->heap[place] = event;
    return 0;
}

struct event event_pop(struct event_queue *queue) {
    struct event *heap = queue->heap, ret = heap[0], last = heap[--queue->count];
    size_t place = 0, count = queue->count, child;
    for (; (child = 4 * place + 1) < count; place = child) {
        size_t end = child + 4 < count ? child + 4 : count;
        for (size_t i = child + 1; i < end; i++)
            child = is_before(heap[i], heap[child]) ? i : child;
        if (!is_before(heap[child], last))
            break;
        heap[place] = heap[child];
    }
    heap[place] = last;
    return ret;
}

void event_clear(struct event_queue *queue) {
    free(queue->memory);
}
