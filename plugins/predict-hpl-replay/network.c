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
    int first, last, count; /* flows */
    int place;              /* in the heap */
    int next_up, next_down; /* streams of the same cards; next_up: of unused ones, too */
};

/* The cables that a stream crosses: NO_ITEM, none. */
enum { UP, DOWN, WAYS };
struct crossing {
    int cables[WAYS], back[WAYS]; /* links; back: of its acknowledgements */
    int next[WAYS];               /* streams of the same cables */
};

struct ending {
    double time; /* of the first end of a stream's flows */
    int stream;
};

struct network {
    const struct network_model *model;
    int nodes, links; /* links: cards up by node, cards down, cables up by leaf switch, cables down */
    int *streams_of;  /* by link: streams, chained */
    int *out, *back;  /* by link: messages, and those whose acknowledgements it carries */
    double *share;    /* by link: of each message, byte/s */
    double *left;     /* by link: byte/s, while max-min shares are found */
    int *open_out, *open_back;  /* by link, likewise: those whose share is not found */
    struct flow *flows;         /* unused ones are chained */
    struct stream *streams;     /* likewise, by next_up */
    struct crossing *crossings; /* by stream; NULL: there are no cables */
    int flow_count, stream_count, free_flow, free_stream;
    struct ending *heap;
    int heap_count;
};

struct network *network_new(const struct network_model *model, int nodes) {
    const struct network_tree *tree = &model->tree;
    struct network *ret = calloc(1, sizeof *ret);
    int cables = network_leaf_count(tree, nodes) * tree->spines * tree->spine_cables;
    size_t links = 2 * ((size_t)nodes + (size_t)cables);
    if (!ret || !(ret->streams_of = calloc(5 * links, sizeof *ret->streams_of)) ||
        !(ret->share = calloc(2 * links, sizeof *ret->share))) {
        network_free(ret);
        return NULL;
    }
    ret->model = model;
    ret->nodes = nodes;
    ret->links = (int)links;
    ret->out = ret->streams_of + links;
    ret->back = ret->out + links;
    ret->open_out = ret->back + links;
    ret->open_back = ret->open_out + links;
    ret->left = ret->share + links;
    ret->free_flow = ret->free_stream = NO_ITEM;
    for (size_t i = 0; i < links; i++)
        ret->streams_of[i] = NO_ITEM;
    return ret;
}

void network_free(struct network *network) {
    if (!network)
        return;
    free(network->streams_of);
    free(network->share);
    free(network->flows);
    free(network->streams);
    free(network->crossings);
    free(network->heap);
    free(network);
}

static double lesser(double a, double b) {
    return a < b ? a : b;
}

/* The cables between leaf switch LEAF and SPINE that are cut. */
static int cut_cables(const struct network_tree *tree, int leaf, int spine) {
    return leaf == 0 && tree->cut_cables > spine ? (tree->cut_cables - spine - 1) / tree->spines + 1 : 0;
}

/* The cable UP or DOWN, by WAY, that messages from node FROM to node TO cross; NO_ITEM: there is none.
 * D-mod-k (E. Zahavi, "D-Mod-K Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat
 * Trees", 2010), as SimGrid 3.32 does it: TO decides the spine and the cable up, FROM the cable down. Spines
 * to which a leaf switch has no cable left are passed over. */
static int find_cable(const struct network *network, int from, int to, int way) {
    const struct network_tree *tree = &network->model->tree;
    int source = from / tree->leaf_nodes, target = to / tree->leaf_nodes, cables = tree->spine_cables;
    if (source == target)
        return NO_ITEM;
    int lost = tree->cut_cables - (cables - 1) * tree->spines; /* spines of the first leaf switch */
    int first = lost > 0 && (source == 0 || target == 0) ? lost : 0, spines = tree->spines - first;
    int spine = first + to % spines, leaf = way == UP ? source : target;
    int cut = cut_cables(tree, leaf, spine), place = way == UP ? to / spines : from;
    int begin = way == UP ? 2 * network->nodes : network->nodes + network->links / 2;
    return begin + (leaf * tree->spines + spine) * cables + cut + place % (cables - cut);
}

/* Rate of each message through LINK, which has BANDWIDTH, if there were so many MORE of them, byte/s. */
static inline double share_of(const struct network *network, double bandwidth, int link, int more) {
    const struct network_model *model = network->model;
    double messages = network->out[link] + more + model->reverse * network->back[link];
    return lesser(bandwidth / messages, model->rate);
}

/* The least share of COUNT more messages of the cables that they would cross; INFINITY: they cross none. */
static __attribute__((noinline)) double cable_share(const struct network *network, int from, int to,
                                                    int count) {
    double ret = INFINITY;
    for (int way = UP; way < WAYS; way++) {
        int link = find_cable(network, from, to, way);
        ret = link == NO_ITEM ? ret : lesser(ret, share_of(network, network->model->tree.cable, link, count));
    }
    return ret;
}

double network_share(const struct network *network, int from, int to, int count) {
    const struct network_model *model = network->model;
    double up = share_of(network, model->card, from, count),
           down = share_of(network, model->card, network->nodes + to, count), ret = lesser(up, down);
    return model->tree.leaf_nodes == 0 ? ret : lesser(ret, cable_share(network, from, to, count));
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

/* The lesser share of a message of stream INDEX of the cables that it crosses; INFINITY: it crosses none. */
static double crossing_rate(const struct network *network, int index) {
    const int *cables = network->crossings[index].cables;
    return cables[UP] == NO_ITEM ? INFINITY
                                 : lesser(network->share[cables[UP]], network->share[cables[DOWN]]);
}

/* Stream INDEX goes at the least of its shares from NOW on. */
static void update(struct network *network, double now, int index) {
    struct stream *stream = &network->streams[index];
    double up = network->share[stream->from], down = network->share[network->nodes + stream->to];
    double rate = lesser(up, down);
    if (network->crossings)
        rate = lesser(rate, crossing_rate(network, index));
    if (rate == stream->rate)
        return;
    stream->clock += stream->rate * (now - stream->updated);
    stream->updated = now;
    stream->rate = rate;
    find_end(network, index);
}

/* ---- Max-min fairness */

enum { ROUTE_MAX = 4 };

/* Lists the links of stream INDEX and those of its acknowledgements; returns how many each of them are. */
static int find_route(const struct network *network, int index, int *ret, int *ret_back) {
    const struct stream *stream = &network->streams[index];
    ret[0] = stream->from;
    ret[1] = network->nodes + stream->to;
    ret_back[0] = stream->to;
    ret_back[1] = network->nodes + stream->from;
    if (!network->crossings || network->crossings[index].cables[UP] == NO_ITEM)
        return 2;
    for (int way = UP; way < WAYS; way++) {
        ret[2 + way] = network->crossings[index].cables[way];
        ret_back[2 + way] = network->crossings[index].back[way];
    }
    return ROUTE_MAX;
}

/* What LINK has left for each message whose rate is not found; INFINITY: it has no such message. */
static double left_share(const struct network *network, int link) {
    double open = network->open_out[link] + network->model->reverse * network->open_back[link];
    return open > 0 ? network->left[link] / open : INFINITY;
}

/* Gives stream INDEX the rate LEVEL and takes that from its links, if one of them has no more than LEVEL left
 * for each message; returns whether it has. */
static bool settle(struct network *network, int index, double level) {
    static const double rounding = 1 + 1e-9;
    struct stream *stream = &network->streams[index];
    int links[ROUTE_MAX], back[ROUTE_MAX], count = find_route(network, index, links, back);
    double share = network->model->rate, reverse = network->model->reverse;
    for (int i = 0; i < count; i++) {
        share = lesser(share, left_share(network, links[i]));
        share = reverse > 0 ? lesser(share, left_share(network, back[i])) : share;
    }
    if (share > level * rounding)
        return false;
    stream->rate = level;
    for (int i = 0; i < count; i++) {
        network->left[links[i]] -= stream->count * level;
        network->left[back[i]] -= reverse * stream->count * level;
        network->open_out[links[i]] -= stream->count;
        network->open_back[back[i]] -= stream->count;
    }
    return true;
}

/* Gives all streams their max-min fair rates from NOW on, by progressive filling (D. Bertsekas and
 * R. Gallager, Data Networks, 1992, 6.5.2): the links that have the least for each message decide the rate of
 * their streams; then the same of what is left on the other links. */
static void fill(struct network *network, double now) {
    const struct network_model *model = network->model;
    double level = 0;
    int open = 0;
    for (int link = 0; link < network->links; link++) {
        network->left[link] = link < 2 * network->nodes ? model->card : model->tree.cable;
        network->open_out[link] = network->out[link];
        network->open_back[link] = network->back[link];
    }
    for (int i = 0; i < network->stream_count; i++) {
        struct stream *stream = &network->streams[i];
        stream->clock += stream->rate * (now - stream->updated);
        stream->updated = now;
        stream->rate = 0;
        open += stream->count > 0;
    }
    while (open > 0) {
        double least = model->rate;
        for (int link = 0; link < network->links; link++)
            least = lesser(least, left_share(network, link));
        level = fmax(level, least);
        for (int i = 0; i < network->stream_count; i++)
            if (network->streams[i].count > 0 && network->streams[i].rate == 0)
                open -= settle(network, i, level);
    }
    for (int i = 0; i < network->stream_count; i++)
        if (network->streams[i].count > 0)
            find_end(network, i);
}

/* ---- Changes */

/* The messages over a link of BANDWIDTH, or the acknowledgements: COUNTS, have become so many MORE. */
static inline void count_messages(struct network *network, int link, double bandwidth, int *counts,
                                  int more) {
    counts[link] += more;
    network->share[link] = share_of(network, bandwidth, link, 0);
}

static void update_ups(struct network *network, double now, int from) {
    for (int i = network->streams_of[from]; i != NO_ITEM; i = network->streams[i].next_up)
        update(network, now, i);
}
static void update_downs(struct network *network, double now, int to) {
    for (int i = network->streams_of[network->nodes + to]; i != NO_ITEM; i = network->streams[i].next_down)
        update(network, now, i);
}
static void update_cables(struct network *network, double now, const int *cables) {
    for (int way = UP; way < WAYS; way++)
        for (int i = network->streams_of[cables[way]]; i != NO_ITEM; i = network->crossings[i].next[way])
            update(network, now, i);
}

/* The messages of stream INDEX have become so many MORE. */
static void change(struct network *network, double now, int index, int more) {
    const struct network_model *model = network->model;
    int from = network->streams[index].from, to = network->streams[index].to, nodes = network->nodes;
    bool has_reverse = model->reverse > 0;
    const struct crossing *crossing = network->crossings ? &network->crossings[index] : NULL;
    if (crossing && crossing->cables[UP] == NO_ITEM)
        crossing = NULL;
    count_messages(network, from, model->card, network->out, more);
    count_messages(network, nodes + to, model->card, network->out, more);
    if (has_reverse) {
        count_messages(network, nodes + from, model->card, network->back, more);
        count_messages(network, to, model->card, network->back, more);
    }
    for (int way = UP; crossing && way < WAYS; way++) {
        count_messages(network, crossing->cables[way], model->tree.cable, network->out, more);
        count_messages(network, crossing->back[way], model->tree.cable, network->back, more);
    }
    if (model->is_max_min) {
        fill(network, now);
        return;
    }
    update_ups(network, now, from);
    update_downs(network, now, to);
    if (has_reverse) {
        update_downs(network, now, from);
        update_ups(network, now, to);
    }
    if (crossing)
        update_cables(network, now, crossing->cables);
    if (crossing && has_reverse)
        update_cables(network, now, crossing->back);
}

/* Room for one more of COUNT items that are chained from FREE_ITEM. */
static void *grow(void *items, int count, size_t size) {
    if ((count & (count - 1)) != 0)
        return items;
    return realloc(items, (count > 0 ? 2 * (size_t)count : 1) * size);
}

/* Finds the cables of the new stream INDEX, and chains it to them. */
static void cross(struct network *network, int index) {
    struct crossing *crossing = &network->crossings[index];
    int from = network->streams[index].from, to = network->streams[index].to;
    for (int way = UP; way < WAYS; way++) {
        int cable = find_cable(network, from, to, way);
        crossing->cables[way] = cable;
        crossing->back[way] = find_cable(network, to, from, way);
        if (cable != NO_ITEM) {
            crossing->next[way] = network->streams_of[cable];
            network->streams_of[cable] = index;
        }
    }
}

static int new_stream(struct network *network, double now, int from, int to) {
    int index = network->free_stream;
    if (index == NO_ITEM) {
        struct stream *streams = grow(network->streams, network->stream_count, sizeof *streams);
        if (!streams)
            return -ENOMEM;
        network->streams = streams;
        if (network->model->tree.leaf_nodes > 0) {
            struct crossing *crossings = grow(network->crossings, network->stream_count, sizeof *crossings);
            if (!crossings)
                return -ENOMEM;
            network->crossings = crossings;
        }
        struct ending *heap = grow(network->heap, network->stream_count, sizeof *heap);
        if (!heap)
            return -ENOMEM;
        network->heap = heap;
        index = network->stream_count++;
    } else {
        network->free_stream = network->streams[index].next_up;
    }
    struct stream *stream = &network->streams[index];
    int *up = &network->streams_of[from], *down = &network->streams_of[network->nodes + to];
    *stream = (struct stream){.from = from,
                              .to = to,
                              .first = NO_ITEM,
                              .last = NO_ITEM,
                              .updated = now,
                              .rate = 1,
                              .place = network->heap_count,
                              .next_up = *up,
                              .next_down = *down};
    *up = *down = index;
    if (network->crossings)
        cross(network, index);
    network->heap[network->heap_count++] = (struct ending){INFINITY, index};
    return index;
}

/* Takes item INDEX out of the chain that begins at HEAD. ITEMS have SIZE; their link is at OFFSET. */
static void unchain(int *head, char *items, size_t size, size_t offset, int index) {
    while (*head != index)
        head = (int *)(items + (size_t)*head * size + offset);
    *head = *(int *)(items + (size_t)index * size + offset);
}

static void free_stream(struct network *network, int index) {
    struct stream *stream = &network->streams[index];
    struct ending last = network->heap[--network->heap_count];
    char *streams = (char *)network->streams, *crossings = (char *)network->crossings;
    const int *cables = crossings ? network->crossings[index].cables : NULL;
    unchain(&network->streams_of[stream->from], streams, sizeof *stream, offsetof(struct stream, next_up),
            index);
    unchain(&network->streams_of[network->nodes + stream->to], streams, sizeof *stream,
            offsetof(struct stream, next_down), index);
    for (int way = UP; cables && cables[way] != NO_ITEM && way < WAYS; way++)
        unchain(&network->streams_of[cables[way]], crossings, sizeof(struct crossing),
                offsetof(struct crossing, next) + (size_t)way * sizeof(int), index);
    stream->next_up = network->free_stream;
    network->free_stream = index;
    if (last.stream != index)
        sift(network, stream->place, last);
}

int network_start(struct network *network, double now, int from, int to, double work, int id) {
    int index = network->streams_of[from], flow = network->free_flow;
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
    stream->count++;
    change(network, now, index, 1);
    find_end(network, index);
    return 0;
}

double network_next(const struct network *network) {
    return network->heap_count > 0 ? network->heap[0].time : INFINITY;
}

int network_finish(struct network *network, double now) {
    int index = network->heap[0].stream;
    struct stream *stream = &network->streams[index];
    int flow = stream->first, ret = network->flows[flow].id;
    stream->first = network->flows[flow].next;
    network->flows[flow].next = network->free_flow;
    network->free_flow = flow;
    stream->count--;
    if (stream->first == NO_ITEM) {
        free_stream(network, index);
    } else {
        stream->first_end = network->flows[stream->first].end;
        find_end(network, index);
    }
    change(network, now, index, -1);
    return ret;
}
