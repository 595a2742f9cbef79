#include "plugins/predict-hpl-replay/events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_before(const struct event *a, const struct event *b) {
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

int event_push(struct event_queue *queue, double time, uint8_t kind, int id) {
    if (queue->count == queue->size) {
        size_t size = queue->size > 0 ? 2 * queue->size : 256;
        struct event *heap = realloc(queue->heap, size * sizeof *heap);
        if (!heap)
            return -ENOMEM;
        queue->heap = heap;
        queue->size = size;
    }
    struct event event = {time, queue->order++, id, kind};
    size_t place = queue->count++;
    while (place > 0 && is_before(&event, &queue->heap[(place - 1) / 4])) {
        queue->heap[place] = queue->heap[(place - 1) / 4];
        place = (place - 1) / 4;
    }
    queue->heap[place] = event;
    return 0;
}

struct event event_pop(struct event_queue *queue) {
    struct event *heap = queue->heap, ret = heap[0], last = heap[--queue->count];
    size_t place = 0, count = queue->count;
    for (;;) {
        size_t child = 4 * place + 1, least = child;
        if (child >= count)
            break;
        for (size_t i = child + 1; i < child + 4 && i < count; i++)
            if (is_before(&heap[i], &heap[least]))
                least = i;
        if (!is_before(&heap[least], &last))
            break;
        heap[place] = heap[least];
        place = least;
    }
    heap[place] = last;
    return ret;
}
