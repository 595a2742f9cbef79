/*
 * The time of messages: what MPI costs by the size of a message, and how messages share the network cards of
 * nodes and the cables between switches.
 *
 * A message between two nodes takes links: its sender's card up and its receiver's card down, and in a fat
 * tree, between nodes of different leaf switches, a cable up to a spine switch and a cable down. N messages
 * at once on a link get a Nth of its bandwidth each; a message goes at the least of its shares. Max-min
 * fairness gives what one message leaves unused to the others, but changes rates all over the network where
 * a message starts or ends; is_max_min selects it, as a check of the cheaper rule.
 *
 * Messages of the same two nodes have the same rate all the time, so they form a stream with one clock of its
 * own: what one message would have transferred since the stream began.
 */
#ifndef ASSAY_PREDICT_HPL_REPLAY_NETWORK_H
#define ASSAY_PREDICT_HPL_REPLAY_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

enum network_path { NETWORK_REMOTE, NETWORK_LOOPBACK, NETWORK_PATHS };
enum network_cost { NETWORK_SEND, NETWORK_ISEND, NETWORK_RECV, NETWORK_COSTS };

/* What holds for messages of more than `above` bytes. */
struct network_segment {
    double above;
    double fixed[NETWORK_COSTS], per_byte[NETWORK_COSTS]; /* s, s/byte: of a process that calls */
    double latency;                                       /* s */
    double rate;                                          /* byte/s of a message that is alone */
    double rate_factor; /* rate by which it progresses, over its share of a card */
};

enum { NETWORK_SEGMENTS_MAX = 32, NETWORK_CABLES_MAX = 1000000 };

/* A fat tree of two levels: nodes fill leaf switches in order, and each leaf switch has the same number of
 * cables to each spine switch. Routes are static, destination mod spines, as in SimGrid's fat tree:
 * find_cable() has the rule. */
struct network_tree {
    int leaf_nodes; /* nodes of a leaf switch; 0: all nodes are on one switch, which never limits */
    int spines, spine_cables;
    int cut_cables; /* of the first leaf switch: the first one to each spine, then the second ones, ... */
    double cable;   /* byte/s each way */
};

struct network_model {
    struct network_segment segments[NETWORK_PATHS][NETWORK_SEGMENTS_MAX];
    int counts[NETWORK_PATHS];
    double eager_below;    /* bytes: a message starts although nobody receives it */
    double detached_below; /* bytes: a send returns although nobody receives it */
    double envelope;       /* bytes that travel with each message */
    double card;           /* byte/s of a node's card, each way */
    double rate;           /* byte/s of a large message between two nodes that is alone */
    double reverse;        /* share of a message's rate that its acknowledgements take the other way */
    struct network_tree tree;
    bool is_max_min; /* rates are max-min fair, which takes many times as long */
};

static inline const struct network_segment *network_find(const struct network_model *model,
                                                         enum network_path path, double bytes) {
    const struct network_segment *segments = model->segments[path];
    int i = model->counts[path] - 1;
    while (i > 0 && !(bytes > segments[i].above))
        i--;
    return &segments[i];
}
static inline double network_cost(const struct network_segment *segment, enum network_cost cost,
                                  double bytes) {
    return segment->fixed[cost] + segment->per_byte[cost] * bytes;
}

static inline int network_leaf_count(const struct network_tree *tree, int nodes) {
    return tree->leaf_nodes > 0 ? (nodes + tree->leaf_nodes - 1) / tree->leaf_nodes : 0;
}

struct network;
/* NULL: no memory. The tree has at most NETWORK_CABLES_MAX cables, and each leaf switch at least one. */
struct network *network_new(const struct network_model *model, int nodes);
void network_free(struct network *network);
/* Message ID of WORK bytes begins between two nodes at time NOW; negative errno. */
int network_start(struct network *network, double now, int from, int to, double work, int id);
/* When the next message ends: INFINITY, none. */
double network_next(const struct network *network);
/* Ends that message, at NOW = network_next(); returns its ID. */
int network_finish(struct network *network, double now);
/* The rate that each of COUNT more messages would have now, byte/s. */
double network_share(const struct network *network, int from, int to, int count);

#endif
