#include "plugins/predict-hpl-replay/network.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

enum { NO_ITEM = -1 };

/* A message under way: in order of its end in its stream. */
struct flow {
    double end; /* by the stream's clock */
    int id, next;
};

struct stream {
    double clock;         /* bytes that a message has got */
    double rate, updated; /* byte/s; time */
    double first_end;     /* of its first flow, by its clock */
    int from, to;
    int first, last;        /* flows */
    int place;              /* in the heap */
    int next_up, next_down; /* next_up: of unused ones, too */
};

struct ending {
    double time; /* of the first end of a stream's flows */
    int stream;
};

struct network {
    const struct network_model *model;
    int *ups, *downs;              /* by node: streams, chained */
    int *sending, *receiving;      /* by node: messages */
    double *share_up, *share_down; /* by node: of each message, byte/s */
    struct flow *flows;            /* unused ones are chained */
    struct stream *streams;        /* likewise, by next_up */
    int flow_count, stream_count, free_flow, free_stream;
    struct ending *heap;
    int heap_count;
};

struct network *network_new(const struct network_model *model, int nodes) {
    struct network *ret = calloc(1, sizeof *ret);
    if (!ret || !(ret->ups = calloc(4 * (size_t)nodes, sizeof *ret->ups)) ||
        !(ret->share_up = calloc(2 * (size_t)nodes, sizeof *ret->share_up))) {
        network_free(ret);
        return NULL;
    }
    ret->model = model;
    ret->downs = ret->ups + nodes;
    ret->sending = ret->downs + nodes;
    ret->receiving = ret->sending + nodes;
    ret->share_down = ret->share_up + nodes;
    ret->free_flow = ret->free_stream = NO_ITEM;
    for (int i = 0; i < 2 * nodes; i++)
        ret->ups[i] = NO_ITEM;
    return ret;
}

void network_free(struct network *network) {
    if (!network)
        return;
    free(network->ups);
    free(network->share_up);
    free(network->flows);
    free(network->streams);
    free(network->heap);
    free(network);
}

/* Of each of OUT messages through a card, while BACK go the other way. */
static double share_of(const struct network *network, int out, int back) {
    const struct network_model *model = network->model;
    double share = model->card / (out + model->reverse * back);
    return share < model->rate ? share : model->rate;
}

double network_share(const struct network *network, int from, int to, int count) {
    double up = share_of(network, network->sending[from] + count, network->receiving[from]);
    double down = share_of(network, network->receiving[to] + count, network->sending[to]);
    return up < down ? up : down;
}

/* ---- Heap of streams */

static void put(struct network *network, int place, struct ending ending) {
    network->heap[place] = ending;
    network->streams[ending.stream].place = place;
}

/* Puts ENDING where it belongs, from PLACE, which is free. */
static void sift(struct network *network, int place, struct ending ending) {
    const struct ending *heap = network->heap;
    int count = network->heap_count;
    while (place > 0 && heap[(place - 1) / 2].time > ending.time) {
        put(network, place, heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (int child = 2 * place + 1; child < count; child = 2 * place + 1) {
        child += child + 1 < count && heap[child + 1].time < heap[child].time;
        if (heap[child].time >= ending.time)
            break;
        put(network, place, heap[child]);
        place = child;
    }
    put(network, place, ending);
}

/* ---- Streams */

/* Finds when the first flow of stream INDEX ends. */
static void find_end(struct network *network, int index) {
    const struct stream *stream = &network->streams[index];
    double left = stream->first_end - stream->clock;
    sift(network, stream->place,
         (struct ending){stream->updated + (left > 0 ? left : 0) / stream->rate, index});
}

static void update(struct network *network, double now, int index) {
    struct stream *stream = &network->streams[index];
    double up = network->share_up[stream->from], down = network->share_down[stream->to];
    double rate = up < down ? up : down;
    if (rate == stream->rate)
        return;
    stream->clock += stream->rate * (now - stream->updated);
    stream->updated = now;
    stream->rate = rate;
    find_end(network, index);
}

/* The messages from FROM to TO have become so many MORE. */
static void change(struct network *network, double now, int from, int to, int more) {
    const struct stream *streams = network->streams;
    int *sending = network->sending, *receiving = network->receiving;
    bool has_reverse = network->model->reverse > 0;
    sending[from] += more;
    receiving[to] += more;
    network->share_up[from] = share_of(network, sending[from], receiving[from]);
    network->share_down[to] = share_of(network, receiving[to], sending[to]);
    if (has_reverse) {
        network->share_down[from] = share_of(network, receiving[from], sending[from]);
        network->share_up[to] = share_of(network, sending[to], receiving[to]);
    }
    for (int i = network->ups[from]; i != NO_ITEM; i = streams[i].next_up)
        update(network, now, i);
    for (int i = network->downs[to]; i != NO_ITEM; i = streams[i].next_down)
        update(network, now, i);
    for (int i = network->downs[from]; has_reverse && i != NO_ITEM; i = streams[i].next_down)
        update(network, now, i);
    for (int i = network->ups[to]; has_reverse && i != NO_ITEM; i = streams[i].next_up)
        update(network, now, i);
}

/* Room for one more of COUNT items that are chained from FREE_ITEM. */
static void *grow(void *items, int count, size_t size) {
    if ((count & (count - 1)) != 0)
        return items;
    return realloc(items, (count > 0 ? 2 * (size_t)count : 1) * size);
}

static int new_stream(struct network *network, double now, int from, int to) {
    int index = network->free_stream;
    if (index == NO_ITEM) {
        struct stream *streams = grow(network->streams, network->stream_count, sizeof *streams);
        if (!streams)
            return -ENOMEM;
        network->streams = streams;
        struct ending *heap = grow(network->heap, network->stream_count, sizeof *heap);
        if (!heap)
            return -ENOMEM;
        network->heap = heap;
        index = network->stream_count++;
    } else {
        network->free_stream = network->streams[index].next_up;
    }
    struct stream *stream = &network->streams[index];
    *stream = (struct stream){.from = from,
                              .to = to,
                              .first = NO_ITEM,
                              .last = NO_ITEM,
                              .updated = now,
                              .rate = 1,
                              .place = network->heap_count,
                              .next_up = network->ups[from],
                              .next_down = network->downs[to]};
    network->ups[from] = network->downs[to] = index;
    network->heap[network->heap_count++] = (struct ending){INFINITY, index};
    return index;
}

static void unchain(struct network *network, int *head, size_t offset, int index) {
    while (*head != index)
        head = (int *)((char *)&network->streams[*head] + offset);
    *head = *(int *)((char *)&network->streams[index] + offset);
}

static void free_stream(struct network *network, int index) {
    struct stream *stream = &network->streams[index];
    struct ending last = network->heap[--network->heap_count];
    unchain(network, &network->ups[stream->from], offsetof(struct stream, next_up), index);
    unchain(network, &network->downs[stream->to], offsetof(struct stream, next_down), index);
    stream->next_up = network->free_stream;
    network->free_stream = index;
    if (last.stream != index)
        sift(network, stream->place, last);
}

int network_start(struct network *network, double now, int from, int to, double work, int id) {
    int index = network->ups[from], flow = network->free_flow;
    while (index != NO_ITEM && network->streams[index].to != to)
        index = network->streams[index].next_up;
    if (index == NO_ITEM && (index = new_stream(network, now, from, to)) < 0)
        return index;
    if (flow == NO_ITEM) {
        struct flow *flows = grow(network->flows, network->flow_count, sizeof *flows);
        if (!flows)
            return -ENOMEM;
        network->flows = flows;
        flow = network->flow_count++;
    } else {
        network->free_flow = network->flows[flow].next;
    }
    struct stream *stream = &network->streams[index];
    struct flow *flows = network->flows;
    double end = stream->clock + stream->rate * (now - stream->updated) + work;
    flows[flow] = (struct flow){end, id, NO_ITEM};
    if (stream->first == NO_ITEM) {
        stream->first = stream->last = flow;
        stream->clock = 0;
        flows[flow].end = work;
        stream->updated = now;
    } else if (flows[stream->last].end <= end) {
        flows[stream->last].next = flow;
        stream->last = flow;
    } else {
        int *link = &stream->first;
        while (flows[*link].end <= end)
            link = &flows[*link].next;
        flows[flow].next = *link;
        *link = flow;
    }
    stream->first_end = flows[stream->first].end;
    change(network, now, from, to, 1);
    find_end(network, index);
    return 0;
}

double network_next(const struct network *network) {
    return network->heap_count > 0 ? network->heap[0].time : INFINITY;
}

int network_finish(struct network *network, double now) {
    int index = network->heap[0].stream;
    struct stream *stream = &network->streams[index];
    int flow = stream->first, from = stream->from, to = stream->to, ret = network->flows[flow].id;
    stream->first = network->flows[flow].next;
    network->flows[flow].next = network->free_flow;
    network->free_flow = flow;
    if (stream->first == NO_ITEM) {
        free_stream(network, index);
    } else {
        stream->first_end = network->flows[stream->first].end;
        find_end(network, index);
    }
    change(network, now, from, to, -1);
    return ret;
}
