/* What the files of this folder share of a node group: its members, the rounds of requests, failure texts. */
#ifndef ASSAY_NODES_NODES_PRIVATE_H
#define ASSAY_NODES_NODES_PRIVATE_H

#include "engine/foundation/text-set.h"
#include "engine/remote/channel/channel.h"
#include "engine/remote/nodes/group.h"

/* One node of a group. */
struct node_member {
    struct node_group *group;
    size_t number;
    struct agent_link *link;
    struct failure *unstarted; /* owned: why its link could not be started; NULL: it was, or not yet */
    bool left_out;             /* node_group_leave_out() */
};

struct node_round;

struct node_group {
    struct event_loop *loop;
    struct node_group_listener listener;
    struct node_member **members; /* each its own memory, because the callbacks of the links point to them */
    size_t count, capacity;
    struct node_round *round; /* the request that the group waits for; NULL: none */
    struct text_set texts;    /* strings of node_change.expectations, each stored once for all nodes */
};

/* ---- a round: one request to many nodes, and the wait for all answers */

/* The request of a round to one node. It is the context of what the node's link is asked. */
struct node_asked {
    struct node_round *round;
    size_t node;
    bool wanted;          /* the node is one of those to ask */
    bool asked, answered; /* the request was sent; its answer, or its failure, has come */
    bool parked;          /* the stream of its link is broken; node_round.under_way does not count it */
};

struct node_round {
    /* Set by the caller of node_round_run(). */
    struct node_group *group;
    const bool *nodes; /* one a node: is it asked? NULL: all are */
    size_t at_once;    /* most requests at a time, those of broken streams not counted; 0: no limit */
    /* Sends the request. True: it was sent, and node_round_answered() will be called; false: the node needs
     * no request, or its failure is stored already, and it counts as answered. */
    bool (*ask)(struct node_round *round, size_t node, struct node_asked *asked);
    /* Called when the state of the link of a node changes. May be NULL. */
    void (*on_node)(struct node_round *round, size_t node, enum agent_link_state state);
    void *context;

    /* Set by node_round_run(). */
    struct node_asked *asked;      /* one a node */
    struct event_source *start;    /* deferred: sends the next requests */
    size_t next;                   /* the first node that the start has not reached */
    size_t total, under_way, done; /* nodes to ask, sent without answer, answered */
    int code;                      /* negative: node_round_fail() ended the round with FAILURE */
    struct failure failure;
};

/* Sends the requests, a bounded number a turn of the loop, and turns the loop until all nodes have answered.
 * 0, also when nodes failed; negative when node_round_fail() was called, the loop was stopped or failed, or
 * another round is under way. Answers that come later to a node_asked are then dropped; the caller must
 * forget requests with other contexts. */
int node_round_run(struct node_round *round, struct failure *failure);
/* The answer of a node, or its failure, is stored. A second call for the same node does nothing. */
void node_round_answered(struct node_asked *asked);
/* Ends the round: node_round_run() returns FAILURE. Later failures of the same round are ignored. */
void node_round_fail(struct node_round *round, const struct failure *failure);

/* ---- failure texts */

/* FAILURE for a NODE that has no connection, with the reason. Returns -ENOTCONN. */
int node_group_fail_unconnected(const struct node_group *group, size_t node, struct failure *failure);

/* Appends "names: sentence; names: sentence" to RET, the names of nodes with equal sentences folded into one
 * list. SENTENCES[i] is of node i; NULL: it is not named. Nodes whose sentences would make the text longer
 * than NODE_WORDS_MAX bytes are only counted. */
enum { NODE_WORDS_MAX = 1200, NODE_SENTENCES_MAX = NODE_WORDS_MAX + 4 * FAILURE_TEXT_SIZE };
void node_group_fold_sentences(const struct node_group *group, const char *const *sentences,
                               struct text *ret);

#endif
