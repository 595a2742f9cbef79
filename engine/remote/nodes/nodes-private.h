/* The inside of a node group: what the files of this folder share. Nobody else includes it.
 */
#ifndef ASSAY_NODES_NODES_PRIVATE_H
#define ASSAY_NODES_NODES_PRIVATE_H

#include "engine/foundation/text-set.h"
#include "engine/remote/channel/channel.h"
#include "engine/remote/nodes/group.h"

struct node_member {
    struct node_group *group;
    size_t number;
    struct agent_link *link;
    struct failure *unstarted; /* owned: why its link could not even be started; NULL: it was, or not yet */
    bool left_out;
};

struct node_round;

struct node_group {
    struct event_loop *loop;
    struct node_group_listener listener;
    struct node_member **members; /* each its own memory: the links' callbacks point to them */
    size_t count, capacity;
    struct node_round *round; /* what is being waited for; NULL: nothing */
    struct text_set texts;    /* that many nodes have alike (controls.h) */
};

/* ---- a round: one thing that is asked of many nodes, and waited for */

/* The context of a node's requests. */
struct node_asked {
    struct node_round *round;
    size_t node;
    bool wanted; /* one of those that are to be asked */
    bool asked, answered;
    bool parked; /* its stream is broken: it is not counted among those under way */
};

struct node_round {
    /* Set by who makes it; the rest is node_round_run()'s. */
    struct node_group *group;
    const bool *nodes; /* which; NULL: all */
    size_t at_once; /* nodes that may be under way, those with a broken stream not counted; 0: any number */
    /* Asks. True: under way, and node_round_answered() will be called; false: it has answered already. */
    bool (*ask)(struct node_round *round, size_t node, struct node_asked *asked);
    /* May be NULL. The state of a node's link has changed (the first READY is not told). */
    void (*on_node)(struct node_round *round, size_t node, enum agent_link_state state);
    void *context;

    struct node_asked *asked;   /* one a node */
    struct event_source *start; /* deferred: asks those that have not been asked */
    size_t next;                /* the first node that has not been looked at */
    size_t total, under_way, done;
    int code; /* negative: the whole has failed */
    struct failure failure;
};

/* Asks, a bounded number a turn, and turns the loop until all have answered. Negative when the whole cannot
 * go on: the round was ended by node_round_fail(), the loop was stopped or failed, or there is no memory;
 * then answers that are still to come to the `asked` go nowhere, and those to other contexts are the
 * caller's to forget. */
int node_round_run(struct node_round *round, struct failure *failure);
void node_round_answered(struct node_asked *asked);
/* The first failure counts. */
void node_round_fail(struct node_round *round, const struct failure *failure);

/* ---- words */

/* Why NODE cannot be asked: -ENOTCONN and a sentence. */
int node_group_complain_absent(const struct node_group *group, size_t node, struct failure *failure);

/* Appends "names: sentence; names: sentence", those of equal sentences folded; the sentence of node i is
 * SENTENCES[i], NULL for those of which there is nothing to say. What would make it longer than
 * NODE_WORDS_MAX bytes is only counted. */
enum { NODE_WORDS_MAX = 1200, NODE_SENTENCES_MAX = NODE_WORDS_MAX + 4 * FAILURE_TEXT_SIZE };
void node_group_fold_sentences(const struct node_group *group, const char *const *sentences,
                               struct text *ret);

#endif
