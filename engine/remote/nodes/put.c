/*
 * A file or a folder to many nodes.
 *
 * Each file is hashed once, and no node gets it before: by then its bytes are in the page cache, from where
 * each node's stream takes them. A node has a few requests under way, so that the way there and back is not
 * waited for with each small file. What all of them hold in memory together is bounded by a budget; a node
 * whose stream is broken holds none of it, or a few dead ones would keep all others waiting.
 */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/inside.h"
#include "engine/remote/nodes/local-tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 8,              /* requests of one node under way */
    STARTS_A_TURN = 256,    /* of all nodes */
    BUDGET = 24 << 20,      /* bytes that the links may hold for all of them */
    COST_LEAST = 128 << 10, /* of a file, so that not too many are open at once either */
    COST_MOST = 6 << 20, /* what a link holds at most: PROTOCOL_WINDOW, and half of it not yet given back */
};

/* A request under way; the context of its callbacks. */
struct put_slot {
    struct put_node *node;
    const struct local_entry *entry; /* NULL: free */
    char *remote;
    uint64_t cost;
};

struct put_node {
    struct put *put;
    struct node_asked *asked;
    struct failure *failure;
    size_t next; /* the entry that is sent next */
    unsigned under_way;
    uint64_t held; /* cost of what is under way */
    bool broken;   /* its stream is; what it holds is not counted */
    bool queued;
    struct put_node *queue_next;
    struct put_slot slots[SLOTS];
};

struct put {
    struct node_round round;
    struct local_tree tree;
    char *remote; /* without slashes at its end; "" for the run directory */
    bool whole;   /* the top is a file: its folder is made first */
    struct put_node *nodes;
    struct put_node *queue, **queue_end; /* nodes that may have something to send */
    size_t queue_length;
    uint64_t held;
};

/* ---- the queue */

static void enqueue(struct put_node *node) {
    struct put *put = node->put;
    if (node->queued)
        return;
    node->queued = true;
    node->queue_next = NULL;
    *put->queue_end = node;
    put->queue_end = &node->queue_next;
    put->queue_length++;
}

static struct put_node *dequeue(struct put *put) {
    struct put_node *node = put->queue;
    put->queue = node->queue_next;
    if (!put->queue)
        put->queue_end = &put->queue;
    put->queue_length--;
    node->queued = false;
    return node;
}

/* ---- requests */

static struct agent_link *link_of(const struct put_node *node) {
    return node_group_link(node->put->round.group, node->asked->node);
}

static void give_back(struct put_slot *slot) {
    slot->node->held -= slot->cost;
    if (!slot->node->broken)
        slot->node->put->held -= slot->cost;
    slot->cost = 0;
}

static void end_if_done(struct put_node *node) {
    bool over = node->failure->code < 0 || node->next == node->put->tree.count;
    if (over && node->under_way == 0)
        node_round_answered(node->asked);
}

/* WHY: NULL if it went well. */
static void end_slot(struct put_slot *slot, const struct failure *why) {
    struct put_node *node = slot->node;
    if (why && node->failure->code == 0)
        *node->failure = *why;
    give_back(slot);
    free(take_pointer(slot->remote));
    slot->entry = NULL;
    node->under_way--;
    end_if_done(node);
    enqueue(node);
    node_round_wake(&node->put->round);
}

static void on_hash(struct agent_link *link, const char *hex, uint64_t size, const struct failure *failure,
                    void *context) {
    (void)link;
    (void)size;
    struct put_slot *slot = context;
    struct failure why;
    if (!failure && strcmp(hex, slot->entry->hash) != 0) {
        failure_set(&why, -EBADMSG,
                    "'%s' has SHA-256 %.16s... there and '%s' had %.16s... here: it was changed while it was "
                    "sent",
                    slot->remote, hex, slot->entry->path, slot->entry->hash);
        failure = &why;
    }
    end_slot(slot, failure);
}

static void on_written(struct agent_link *link, const struct failure *failure, void *context) {
    struct put_slot *slot = context;
    struct failure why;
    give_back(slot);
    node_round_wake(&slot->node->put->round);
    if (failure)
        end_slot(slot, failure);
    else if (agent_link_hash_file(link, slot->remote, on_hash, slot, &why) < 0)
        end_slot(slot, &why);
}

static void on_made(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    end_slot(context, failure);
}

/* ---- starting them */

static uint64_t cost_of(const struct local_entry *entry) {
    if (entry->is_folder)
        return 0;
    return entry->size < COST_LEAST ? COST_LEAST : entry->size > COST_MOST ? COST_MOST : entry->size;
}

/* Where ENTRY goes; NULL when out of memory. */
static char *remote_of(const struct put *put, const struct local_entry *entry) {
    if (put->whole || !entry->relative[0])
        return strdup(put->remote[0] ? put->remote : ".");
    return put->remote[0] ? file_join(put->remote, entry->relative) : strdup(entry->relative);
}

static int send_entry(struct put_slot *slot, struct failure *failure) {
    struct agent_link *link = link_of(slot->node);
    const struct local_entry *entry = slot->entry;
    if (entry->is_folder)
        return agent_link_make_folder(link, slot->remote, on_made, slot, failure);
    return agent_link_send_file(link, slot->remote, entry->path, entry->mode, on_written, slot, failure);
}

static void start_next(struct put_node *node) {
    struct put *put = node->put;
    struct put_slot *slot = node->slots;
    while (slot->entry)
        slot++;
    slot->entry = &put->tree.entries[node->next++];
    slot->cost = cost_of(slot->entry);
    slot->remote = remote_of(put, slot->entry);
    node->held += slot->cost;
    put->held += slot->cost;
    node->under_way++;
    struct failure failure;
    if (!slot->remote) {
        failure_memory(&failure);
        node_round_fail(&put->round, &failure);
    } else if (send_entry(slot, &failure) < 0) {
        end_slot(slot, &failure);
    }
}

enum readiness { IDLE, WAITING, READY };

/* IDLE: nothing, until one of its requests has ended or its stream is back. WAITING: it waits for a hash or
 * for the budget. */
static enum readiness readiness_of(const struct put_node *node) {
    const struct put *put = node->put;
    if (node->failure->code < 0 || node->broken || node->under_way == SLOTS || node->next == put->tree.count)
        return IDLE;
    uint64_t cost = cost_of(&put->tree.entries[node->next]);
    bool fits = put->held == 0 || cost == 0 || put->held + cost <= BUDGET;
    return fits && node->next < put->tree.hashed ? READY : WAITING;
}

/* Each in turn. True when it stopped only so that others are served. */
static bool serve_queue(struct put *put) {
    size_t started = 0;
    for (size_t waiting = 0; put->queue && waiting < put->queue_length;) {
        if (started == STARTS_A_TURN)
            return true;
        struct put_node *node = dequeue(put);
        enum readiness readiness = readiness_of(node);
        if (readiness == READY) {
            start_next(node);
            started++;
        }
        if (readiness != IDLE)
            enqueue(node);
        waiting = readiness == WAITING ? waiting + 1 : 0;
    }
    return false;
}

static bool on_turn(struct node_round *round) {
    struct put *put = round->context;
    struct failure failure;
    int more = local_tree_hash(&put->tree, &failure);
    if (more < 0) {
        node_round_fail(round, &failure);
        return false;
    }
    return serve_queue(put) || more > 0;
}

static void on_node(struct node_round *round, size_t number, enum agent_link_state state) {
    struct put *put = round->context;
    struct put_node *node = &put->nodes[number];
    bool broken = state != AGENT_LINK_READY;
    if (!node->put)
        return;
    if (node->broken != broken)
        put->held = broken ? put->held - node->held : put->held + node->held;
    node->broken = broken;
    /* Its requests have been told; but it may have had none under way. */
    if (state == AGENT_LINK_CLOSED && node->failure->code == 0 && node->next < put->tree.count)
        node_group_complain_absent(round->group, number, node->failure);
    end_if_done(node);
    enqueue(node);
    node_round_wake(round);
}

/* The folder of a single file is made with it, in the same order. */
static int make_parent(const struct put_node *node, struct failure *failure);

static bool ask(struct node_round *round, size_t number, struct node_asked *asked) {
    struct put *put = round->context;
    struct put_node *node = &put->nodes[number];
    struct failure *failure = node->failure;
    if (!node_group_is_there(round->group, number)) {
        node_group_complain_absent(round->group, number, failure);
        return false;
    }
    node->put = put;
    node->asked = asked;
    node->broken = agent_link_state(node_group_link(round->group, number)) != AGENT_LINK_READY;
    for (int i = 0; i < SLOTS; i++)
        node->slots[i].node = node;
    if (make_parent(node, failure) < 0)
        return false;
    enqueue(node);
    node_round_wake(round);
    return true;
}

/* ---- all of it */

static void ignore_made(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    (void)failure;
    (void)context;
}

/* If that fails, the file's own failure says it better. */
static int make_parent(const struct put_node *node, struct failure *failure) {
    const struct put *put = node->put;
    const char *slash = put->whole ? strrchr(put->remote, '/') : NULL;
    if (!slash || slash == put->remote)
        return 0;
    cleanup_free char *folder = xstrndup(put->remote, (size_t)(slash - put->remote));
    return agent_link_make_folder(link_of(node), folder, ignore_made, NULL, failure);
}

/* "a//b///" -> "a//b"; "." -> ""; "/" stays. */
static char *trim(const char *remote) {
    size_t length = strlen(remote);
    while (length > 1 && remote[length - 1] == '/')
        length--;
    return strndup(remote, length == 1 && remote[0] == '.' ? 0 : length);
}

static void clear_put(struct put *put) {
    for (size_t i = 0; put->nodes && i < put->round.group->count; i++) {
        for (int k = 0; k < SLOTS; k++) {
            struct put_slot *slot = &put->nodes[i].slots[k];
            if (slot->entry)
                agent_link_forget(node_group_link(put->round.group, i), slot);
            free(slot->remote);
        }
    }
    free(put->nodes);
    free(put->remote);
    local_tree_clear(&put->tree);
}

static int prepare(struct put *put, const struct node_put *asked, struct failure *failures,
                   struct failure *failure) {
    struct node_group *group = put->round.group;
    put->queue_end = &put->queue;
    put->remote = trim(asked->remote);
    put->nodes = calloc(group->count + 1, sizeof *put->nodes);
    if (!put->remote || !put->nodes)
        return failure_memory(failure);
    for (size_t i = 0; i < group->count; i++)
        put->nodes[i].failure = &failures[i];
    int r = local_tree_read(&put->tree, asked->local, NULL, failure);
    if (r < 0)
        return r;
    put->whole = !put->tree.entries[0].is_folder;
    size_t length = strlen(asked->remote);
    if (put->whole && (!put->remote[0] || asked->remote[length - 1] == '/'))
        return failure_set_kind(failure, FAILURE_INPUT, -EISDIR,
                                "'%s' names a folder; expected the name that the file '%s' is to have",
                                asked->remote, asked->local);
    return 0;
}

int node_group_put(struct node_group *group, const struct node_put *asked, struct failure **ret_failures,
                   size_t *ret_left_out, struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(group->count + 1, sizeof *failures);
    cleanup(clear_put) struct put put = {.tree = LOCAL_TREE_NONE};
    put.round = (struct node_round){
        .group = group, .ask = ask, .on_node = on_node, .on_turn = on_turn, .context = &put};
    int r = prepare(&put, asked, failures, failure);
    if (r == 0)
        r = node_round_run(&put.round, failure);
    if (r < 0)
        return r;
    if (ret_left_out)
        *ret_left_out = put.tree.left_out;
    *ret_failures = take_pointer(failures);
    return 0;
}
