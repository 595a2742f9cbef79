#include "plugins/predict-hpl-replay/sensitivities.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NO_STREAM = -1 };

int sensitivities_init(struct sensitivities *s, const struct replay_machine *machine, int ranks) {
    bool has_nodes =
        machine->nodes <= SENSITIVITY_NODES_MAX && (double)machine->nodes * ranks <= SENSITIVITY_VALUES_MAX;
    int nodes = has_nodes ? machine->nodes : 0;
    *s = (struct sensitivities){.machine = machine,
                                .nodes = nodes,
                                .width = SENSITIVITY_NODES + nodes,
                                .size = 2 * (size_t)(SENSITIVITY_NODES + nodes),
                                .free_stream = NO_STREAM};
    s->ranks = calloc((size_t)ranks * s->size, sizeof *s->ranks);
    s->scratch = calloc(s->size, sizeof *s->scratch);
    s->ups = calloc(4 * (size_t)machine->nodes, sizeof *s->ups);
    if (!s->ranks || !s->scratch || !s->ups)
        return -ENOMEM;
    s->downs = s->ups + machine->nodes;
    s->sending = s->downs + machine->nodes;
    s->receiving = s->sending + machine->nodes;
    for (int i = 0; i < 2 * machine->nodes; i++)
        s->ups[i] = NO_STREAM;
    return 0;
}

void sensitivities_clear(struct sensitivities *s) {
    free(s->ranks);
    free(s->transfers);
    free(s->streams);
    free(s->stream_vectors);
    free(s->ups);
    free(s->scratch);
}

static double *rank_vector(struct sensitivities *s, int rank) {
    return s->ranks + (size_t)rank * s->size;
}

/* NULL: no memory, which `error` says. */
static double *transfer_vector(struct sensitivities *s, int transfer) {
    if ((size_t)transfer >= s->transfer_count) {
        size_t count = 2 * (size_t)transfer + 16;
        double *transfers = realloc(s->transfers, count * s->size * sizeof *transfers);
        if (!transfers) {
            s->error = -ENOMEM;
            return NULL;
        }
        s->transfers = transfers;
        s->transfer_count = count;
    }
    return s->transfers + (size_t)transfer * s->size;
}

static void copy_vector(const struct sensitivities *s, double *to, const double *from) {
    memcpy(to, from, s->size * sizeof *to);
}

/* Adds TIME to PART of both vectors. */
static void add(const struct sensitivities *s, double *vectors, int part, double time) {
    vectors[part] += time;
    vectors[s->width + part] += time;
}

/* The clock moves to UNTIL because of PART. */
static void move_clock(const struct sensitivities *s, double *vectors, int part, double until) {
    add(s, vectors, part, until - vectors[SENSITIVITY_TIME]);
    vectors[SENSITIVITY_TIME] = until;
}

void sensitivities_pass(struct sensitivities *s, int rank, int part, double until) {
    double *vector = rank_vector(s, rank), time = until - vector[SENSITIVITY_TIME];
    int node = s->machine->node_of[rank];
    move_clock(s, vector, part, until);
    if (part >= SENSITIVITY_KERNELS && node < s->nodes)
        add(s, vector, SENSITIVITY_NODES + node, time);
}

void sensitivities_ready(struct sensitivities *s, int transfer, int rank) {
    double *vector = transfer_vector(s, transfer);
    if (vector)
        copy_vector(s, vector, rank_vector(s, rank));
}

/* Adds TRANSIT of a message, its latency and its own time. */
static void travel(const struct sensitivities *s, double *vector, int source, int target, int64_t bytes,
                   double transit) {
    const struct network_model *model = s->machine->network;
    bool is_remote = s->machine->node_of[source] != s->machine->node_of[target];
    const struct network_segment *segment =
        network_find(model, is_remote ? NETWORK_REMOTE : NETWORK_LOOPBACK, (double)bytes);
    double alone =
        ((double)bytes + model->envelope) / fmin(segment->rate, model->rate * segment->rate_factor);
    double latency = fmin(segment->latency, transit), rest = transit - latency;
    vector[SENSITIVITY_TIME] += transit;
    add(s, vector, is_remote ? SENSITIVITY_LATENCY : SENSITIVITY_LOCAL_LATENCY, latency);
    add(s, vector, is_remote ? SENSITIVITY_BANDWIDTH : SENSITIVITY_LOCAL_BANDWIDTH, rest);
    if (is_remote && rest > alone * (1 + 1e-9))
        add(s, vector, SENSITIVITY_CARD, rest);
}

void sensitivities_begin(struct sensitivities *s, int transfer, int source, int target, int64_t bytes,
                         double time, double transit) {
    double *vector = transfer_vector(s, transfer);
    if (!vector)
        return;
    move_clock(s, vector, SENSITIVITY_CALLS, time);
    travel(s, vector, source, target, bytes, transit);
}

void sensitivities_follow(struct sensitivities *s, int rank, int transfer) {
    if ((size_t)transfer < s->transfer_count)
        copy_vector(s, rank_vector(s, rank), s->transfers + (size_t)transfer * s->size);
}

/* ---- Shared cards */

static double *stream_vector(const struct sensitivities *s, int stream) {
    return s->stream_vectors + (size_t)stream * (size_t)s->width;
}

/* The rate that STREAM has now, as network.h shares cards. */
static double stream_rate(const struct sensitivities *s, const struct sensitivity_stream *stream,
                          bool *ret_is_card) {
    const struct network_model *model = s->machine->network;
    int from = stream->from, to = stream->to;
    double up = model->card / (s->sending[from] + model->reverse * s->receiving[from]);
    double down = model->card / (s->receiving[to] + model->reverse * s->sending[to]);
    double share = fmin(up, down);
    *ret_is_card = share < model->rate;
    return fmin(share, model->rate);
}

/* The rate of a stream changes at NOW, whose vector is TIME: what it has transferred until NOW remains. */
static void change_rate(const struct sensitivities *s, int index, double now, const double *time) {
    struct sensitivity_stream *stream = &s->streams[index];
    double *vector = stream_vector(s, index), before = stream->rate;
    bool was_card = stream->is_card;
    stream->rate = stream_rate(s, stream, &stream->is_card);
    if (stream->rate == before && stream->is_card == was_card)
        return;
    for (int i = SENSITIVITY_TIME + 1; i < s->width; i++)
        vector[i] += (before - stream->rate) * time[i];
    vector[SENSITIVITY_BANDWIDTH] += (stream->rate - before) * now;
    vector[SENSITIVITY_CARD] += ((stream->is_card ? stream->rate : 0) - (was_card ? before : 0)) * now;
}

static void change_rates(const struct sensitivities *s, int from, int to, double now, const double *time) {
    int nodes[] = {from, to};
    for (int n = 0; n < 2; n++) {
        for (int i = s->ups[nodes[n]]; i != NO_STREAM; i = s->streams[i].next_up)
            change_rate(s, i, now, time);
        for (int i = s->downs[nodes[n]]; i != NO_STREAM; i = s->streams[i].next_down)
            change_rate(s, i, now, time);
    }
}

static int find_stream(const struct sensitivities *s, int from, int to) {
    int index = s->ups[from];
    while (index != NO_STREAM && s->streams[index].to != to)
        index = s->streams[index].next_up;
    return index;
}

static int add_stream(struct sensitivities *s, int from, int to) {
    int index = s->free_stream;
    if (index != NO_STREAM) {
        s->free_stream = s->streams[index].next_up;
    } else {
        if ((s->stream_count & (s->stream_count - 1)) == 0) {
            size_t size = s->stream_count > 0 ? 2 * (size_t)s->stream_count : 1;
            struct sensitivity_stream *streams = realloc(s->streams, size * sizeof *streams);
            s->streams = streams ? streams : s->streams;
            double *vectors = realloc(s->stream_vectors, size * (size_t)s->width * sizeof *vectors);
            s->stream_vectors = vectors ? vectors : s->stream_vectors;
            if (!streams || !vectors) {
                s->error = -ENOMEM;
                return NO_STREAM;
            }
        }
        index = s->stream_count++;
    }
    s->streams[index] = (struct sensitivity_stream){
        .from = from, .to = to, .next_up = s->ups[from], .next_down = s->downs[to]};
    s->ups[from] = s->downs[to] = index;
    memset(stream_vector(s, index), 0, (size_t)s->width * sizeof(double));
    return index;
}

static void remove_stream(struct sensitivities *s, int index) {
    const struct sensitivity_stream *stream = &s->streams[index];
    int *up = &s->ups[stream->from], *down = &s->downs[stream->to];
    while (*up != index)
        up = &s->streams[*up].next_up;
    *up = stream->next_up;
    while (*down != index)
        down = &s->streams[*down].next_down;
    *down = stream->next_down;
    s->streams[index].next_up = s->free_stream;
    s->free_stream = index;
}

/* A new stream has the rate 0 before NOW, and has transferred nothing. */
void sensitivities_start(struct sensitivities *s, int transfer, int from, int to, double now) {
    int index = find_stream(s, from, to);
    if (s->error == 0 && index == NO_STREAM)
        index = add_stream(s, from, to);
    if (s->error < 0)
        return;
    s->sending[from]++;
    s->receiving[to]++;
    s->streams[index].count++;
    double *vector = transfer_vector(s, transfer);
    change_rates(s, from, to, now, vector);
    const struct sensitivity_stream *stream = &s->streams[index];
    for (int i = SENSITIVITY_TIME + 1; i < s->width; i++)
        vector[i] = stream_vector(s, index)[i] + stream->rate * vector[i];
    vector[SENSITIVITY_BANDWIDTH] -= stream->rate * now;
    vector[SENSITIVITY_CARD] -= stream->is_card ? stream->rate * now : 0;
}

void sensitivities_finish(struct sensitivities *s, int transfer, int from, int to, double alone, double now) {
    if (s->error < 0)
        return;
    int index = find_stream(s, from, to);
    struct sensitivity_stream *stream = &s->streams[index];
    double *vector = transfer_vector(s, transfer), *path = vector + s->width,
           time = now - vector[SENSITIVITY_TIME];
    path[SENSITIVITY_BANDWIDTH] += time;
    path[SENSITIVITY_CARD] += fmin(time, fmax(0, 2 * (time - alone))); /* as if two had shared a card */
    for (int i = SENSITIVITY_TIME + 1; i < s->width; i++)
        vector[i] = (vector[i] - stream_vector(s, index)[i]) / stream->rate;
    vector[SENSITIVITY_BANDWIDTH] += now;
    vector[SENSITIVITY_CARD] += stream->is_card ? now : 0;
    vector[SENSITIVITY_TIME] = now;
    s->sending[from]--;
    s->receiving[to]--;
    if (--stream->count == 0)
        remove_stream(s, index);
    change_rates(s, from, to, now, vector);
}

/* ---- Exchanges of the factorisation */

/* How a clock comes about: that of process `from`, `calls` later, and after message `message` (-1: none). */
struct course {
    double time, calls;
    int from, message;
};

static struct course later_course(struct course a, struct course b) {
    return b.time > a.time ? b : a;
}

void sensitivities_exchange(struct sensitivities *s, const struct sensitivity_exchange *e) {
    double *vectors[] = {rank_vector(s, e->ranks[0]), rank_vector(s, e->ranks[1])};
    struct course sent[2], got[2], end[2]; /* got: what process I sends is there */
    for (int i = 0; i < 2; i++)
        sent[i] = (struct course){vectors[i][SENSITIVITY_TIME] + e->send[i], e->send[i], i, -1};
    for (int i = 0; i < 2; i++) {
        struct course other = {vectors[1 - i][SENSITIVITY_TIME], 0, 1 - i, -1};
        got[i] = e->starts_when_both_are_ready[i] ? later_course(sent[i], other) : sent[i];
        got[i].time += e->transit[i];
        got[i].message = i;
    }
    for (int i = 0; i < 2; i++) {
        end[i] = later_course(e->waits[i] ? later_course(sent[i], got[i]) : sent[i], got[1 - i]);
        end[i].calls += e->receive[1 - i];
    }
    copy_vector(s, s->scratch, vectors[0]);
    if (end[0].from == 1)
        copy_vector(s, vectors[0], vectors[1]);
    if (end[1].from == 0)
        copy_vector(s, vectors[1], s->scratch);
    for (int i = 0; i < 2; i++) {
        int message = end[i].message;
        vectors[i][SENSITIVITY_TIME] += end[i].calls;
        add(s, vectors[i], SENSITIVITY_CALLS, end[i].calls);
        if (message >= 0)
            travel(s, vectors[i], e->ranks[message], e->ranks[1 - message], e->bytes[message],
                   e->transit[message]);
    }
}

static const double *find_last(const struct sensitivities *s, int ranks) {
    const double *ret = s->ranks;
    for (int i = 1; i < ranks; i++)
        ret = s->ranks[(size_t)i * s->size] > ret[SENSITIVITY_TIME] ? s->ranks + (size_t)i * s->size : ret;
    return ret;
}

bool sensitivities_are_means(const struct sensitivities *s, int ranks) {
    static const double least = -5e-3; /* of the time */
    const double *last = find_last(s, ranks);
    for (int i = SENSITIVITY_LATENCY; i < s->width; i++)
        if (!(last[i] >= least * last[SENSITIVITY_TIME]))
            return true;
    return false;
}

const double *sensitivities_last(const struct sensitivities *s, int ranks) {
    return find_last(s, ranks) + (sensitivities_are_means(s, ranks) ? s->width : 0);
}
