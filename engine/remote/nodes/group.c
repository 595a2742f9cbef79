#include "engine/remote/nodes/group.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/nodes-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STARTS_A_TURN = 64, /* nodes asked before the loop serves the others again */
};

/* ---- callbacks of the links */

/* Updates the count of requests under way: one to a node whose stream is broken may be answered late or
 * never, and makes room for another node. Then calls the round's on_node. */
static void update_round(struct node_round *round, size_t node, enum agent_link_state state) {
    struct node_asked *asked = &round->asked[node];
    bool parked = state == AGENT_LINK_BROKEN;
    if (asked->asked && !asked->answered && asked->parked != parked) {
        asked->parked = parked;
        round->under_way += parked ? (size_t)-1 : 1;
        event_source_defer(round->start);
    }
    if (round->on_node)
        round->on_node(round, node, state);
}

static void on_state(struct agent_link *link, enum agent_link_state state, const struct failure *why,
                     void *context) {
    (void)link;
    struct node_member *member = context;
    struct node_group *group = member->group;
    if (group->listener.on_node)
        group->listener.on_node(group, member->number, state, why, group->listener.context);
    if (group->round)
        update_round(group->round, member->number, state);
}

/* ---- creating and freeing */

int node_group_new(struct event_loop *loop, const struct node_group_listener *listener,
                   struct node_group **ret) {
    struct node_group *group = xcalloc(1, sizeof *group);
    group->loop = loop;
    if (listener)
        group->listener = *listener;
    *ret = group;
    return 0;
}

void node_group_free(struct node_group *group) {
    if (!group)
        return;
    for (size_t i = 0; i < group->count; i++) {
        agent_link_free(group->members[i]->link);
        free(group->members[i]->unstarted);
        free(group->members[i]);
    }
    free((void *)group->members);
    text_set_clear(&group->texts);
    free(group);
}

/* FAILURE_INPUT when NAME cannot be part of the name of a file. */
static int check_name(const char *name, struct failure *failure) {
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') || strlen(name) > NODE_NAME_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "'%s' cannot be a node's name; expected 1 to %d bytes without '/' that do not "
                             "begin with '.'",
                             name, NODE_NAME_MAX);
    return 0;
}

int node_group_add(struct node_group *group, struct transport *transport,
                   const struct agent_link_policy *policy, struct failure *failure) {
    int r = check_name(transport->node, failure);
    if (r == 0)
        r = list_reserve(&group->members, &group->capacity, group->count + 1, sizeof *group->members,
                         NODE_GROUP_MAX);
    if (r == -EFBIG)
        failure_input(failure, NULL, 0, 0, "there are more than %d nodes", NODE_GROUP_MAX);
    if (r < 0) {
        transport_free(transport);
        return r;
    }
    struct node_member *member = xcalloc(1, sizeof *member);
    member->group = group;
    member->number = group->count;
    struct agent_link_callbacks callbacks = {.on_state = on_state, .context = member};
    r = agent_link_new(group->loop, transport, &callbacks, &member->link, failure);
    if (r < 0) {
        free(member);
        return r;
    }
    if (policy)
        agent_link_set_policy(member->link, policy);
    group->members[group->count++] = member;
    return 0;
}

size_t node_group_count(const struct node_group *group) {
    return group->count;
}

const char *node_group_name(const struct node_group *group, size_t node) {
    return agent_link_node(group->members[node]->link);
}

struct agent_link *node_group_link(const struct node_group *group, size_t node) {
    return group->members[node]->link;
}

bool node_group_is_there(const struct node_group *group, size_t node) {
    enum agent_link_state state = agent_link_state(group->members[node]->link);
    return state == AGENT_LINK_READY || state == AGENT_LINK_BROKEN;
}

void node_group_leave_out(struct node_group *group, size_t node, bool left_out) {
    group->members[node]->left_out = left_out;
}

int node_group_fail_unconnected(const struct node_group *group, size_t node, struct failure *failure) {
    const struct node_member *member = group->members[node];
    const struct failure *why =
        member->unstarted ? member->unstarted : agent_link_failure(group->members[node]->link);
    return node_failure(failure, node_group_name(group, node), -ENOTCONN, "there is no connection%s%s",
                        why ? ": " : "", why ? why->text : "");
}

/* ---- rounds */

static void report_progress(struct node_round *round) {
    struct node_group *group = round->group;
    if (group->listener.on_progress)
        group->listener.on_progress(group, round->done, round->total, group->listener.context);
}

static void count_answer(struct node_asked *asked) {
    asked->answered = true;
    asked->round->done++;
    report_progress(asked->round);
}

void node_round_answered(struct node_asked *asked) {
    if (asked->answered)
        return;
    asked->round->under_way -= !asked->parked;
    count_answer(asked);
    event_source_defer(asked->round->start);
}

void node_round_fail(struct node_round *round, const struct failure *failure) {
    if (round->code < 0)
        return;
    round->failure = *failure;
    round->code = failure->code < 0 ? failure->code : -EIO;
}

static bool is_broken(const struct node_group *group, size_t node) {
    return agent_link_state(group->members[node]->link) == AGENT_LINK_BROKEN;
}

/* Sends the next requests: at most STARTS_A_TURN, and at_once under way. A request that `ask` does not send
 * counts as answered. */
static void on_start(struct event_source *self, void *context) {
    struct node_round *round = context;
    struct node_group *group = round->group;
    size_t started = 0;
    while (round->next < group->count && round->code == 0 &&
           (round->at_once == 0 || round->under_way < round->at_once)) {
        if (started == STARTS_A_TURN) {
            event_source_defer(self);
            return;
        }
        struct node_asked *asked = &round->asked[round->next++];
        if (!asked->wanted)
            continue;
        started++;
        asked->asked = true;
        asked->parked = is_broken(group, asked->node);
        round->under_way += !asked->parked;
        if (!round->ask(round, asked->node, asked) && !asked->answered) {
            round->under_way -= !asked->parked;
            count_answer(asked);
        }
    }
}

/* Makes ROUND that of its group and defers the first requests. -EBUSY when the group has a round already. */
static int round_open(struct node_round *round, struct failure *failure) {
    struct node_group *group = round->group;
    if (group->round)
        return failure_set(failure, -EBUSY, "another request to the nodes is under way");
    round->asked = xcalloc(group->count + 1, sizeof *round->asked);
    round->start = event_loop_add_deferred(group->loop, on_start, round);
    if (!round->start)
        return failure_memory(failure);
    for (size_t i = 0; i < group->count; i++) {
        bool wanted = (!round->nodes || round->nodes[i]) && !group->members[i]->left_out;
        round->asked[i] = (struct node_asked){.round = round, .node = i, .wanted = wanted};
        round->total += wanted;
    }
    group->round = round;
    event_source_defer(round->start);
    return 0;
}

/* Ends the round of its group; answers that have not come are dropped. */
static void round_close(struct node_round *round) {
    struct node_group *group = round->group;
    if (group->round == round)
        group->round = NULL;
    if (round->asked && round->done < round->total)
        for (size_t i = 0; i < group->count; i++)
            agent_link_forget(group->members[i]->link, &round->asked[i]);
    event_source_remove(round->start);
    free(round->asked);
    round->asked = NULL;
    round->start = NULL;
}

int node_round_run(struct node_round *round, struct failure *failure) {
    int r = round_open(round, failure);
    while (r >= 0 && round->code == 0 && round->done < round->total)
        r = event_loop_turn(round->group->loop, -1, failure);
    round_close(round);
    if (r >= 0 && round->code < 0 && failure)
        *failure = round->failure;
    return r < 0 ? r : round->code;
}

/* ---- connecting and leaving */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* FAILURE_INPUT when two nodes have the same name: results and files are told apart by it. */
static int check_names_differ(const struct node_group *group, struct failure *failure) {
    cleanup_free const char **names = xcalloc(group->count + 1, sizeof *names);
    for (size_t i = 0; i < group->count; i++)
        names[i] = node_group_name(group, i);
    qsort((void *)names, group->count, sizeof *names, compare_names);
    for (size_t i = 1; i < group->count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return failure_input(
                failure, NULL, 0, 0,
                "two nodes would be called '%s'; expected names that differ (an alias in the ssh "
                "configuration gives one)",
                names[i]);
    return 0;
}

/* Has the connection of NODE succeeded, or ended? */
static bool is_settled(const struct node_group *group, size_t node) {
    return node_group_is_there(group, node) ||
           agent_link_state(group->members[node]->link) >= AGENT_LINK_CLOSING;
}

/* Starts the link of NODE. False: it is connected, it has ended, or it cannot be started, which the listener
 * is told. */
static bool ask_to_connect(struct node_round *round, size_t node, struct node_asked *asked) {
    (void)asked;
    struct node_member *member = round->group->members[node];
    if (is_settled(round->group, node) || member->unstarted)
        return false;
    if (agent_link_state(member->link) != AGENT_LINK_IDLE)
        return true; /* an earlier wait for it was interrupted */
    struct failure why = {0};
    if (agent_link_start(member->link, AGENT_LINK_HELLO_TIMEOUT, &why) == 0)
        return true;
    member->unstarted = xcalloc(1, sizeof why);
    *member->unstarted = why;
    struct node_group *group = round->group;
    if (group->listener.on_node)
        group->listener.on_node(group, node, AGENT_LINK_CLOSED, &why, group->listener.context);
    return false;
}

static void on_node_connecting(struct node_round *round, size_t node, enum agent_link_state state) {
    (void)state;
    if (round->asked[node].asked)
        node_round_answered(&round->asked[node]);
}

/* One failure that names all nodes without a connection, folded by reason; 0 if all have one. */
static int describe_unconnected(const struct node_group *group, struct failure *failure) {
    cleanup_free const char **sentences = xcalloc(group->count + 1, sizeof *sentences);
    size_t absent = 0;
    const struct failure *first = NULL;
    size_t first_node = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct node_member *member = group->members[i];
        if (node_group_is_there(group, i) || member->left_out)
            continue;
        const struct failure *why = member->unstarted ? member->unstarted : agent_link_failure(member->link);
        sentences[i] = why ? why->text : "the connection was closed";
        if (absent++ == 0) {
            first = why;
            first_node = i;
        }
    }
    if (absent == 0)
        return 0;
    int code = first && first->code < 0 ? first->code : -ENOTCONN;
    if (group->count == 1) {
        return node_failure(failure, node_group_name(group, first_node), code, "%s", sentences[0]);
    }
    cleanup(text_clear) struct text words;
    text_init(&words, NODE_SENTENCES_MAX);
    node_group_fold_sentences(group, sentences, &words);
    return failure_set(failure, code, "%zu of %zu nodes cannot be reached: %s", absent, group->count,
                       words.bytes);
}

int node_group_connect(struct node_group *group, struct failure *failure) {
    int r = check_names_differ(group, failure);
    if (r < 0)
        return r;
    struct node_round round = {.group = group, .ask = ask_to_connect, .on_node = on_node_connecting};
    r = node_round_run(&round, failure);
    return r < 0 ? r : describe_unconnected(group, failure);
}

static void on_close_timeout(struct event_source *self, void *context) {
    (void)self;
    bool *timed_out = context;
    *timed_out = true;
}

static size_t count_open(const struct node_group *group) {
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++)
        count += agent_link_state(group->members[i]->link) != AGENT_LINK_CLOSED;
    return count;
}

/* RET for an agent that could not be asked to end: it does when its lease is over. */
static void describe_unreachable_agent(const struct agent_link *link, int64_t lease_ns, struct failure *ret) {
    double lease_s = (double)lease_ns / (double)EVENT_SECOND;
    bool minutes = lease_ns >= 120 * EVENT_SECOND;
    bool started = agent_link_greeting(link)->version;
    failure_set(ret, -ETIMEDOUT,
                "cannot ask the agent to end%s; it ends by itself when its lease is over, in at most %.3g %s",
                started ? "" : " (if it was started)", minutes ? lease_s / 60 : lease_s,
                minutes ? "min" : "s");
}

/* One failure that names the agents that could not be asked to end, have not ended within TIMEOUT_NS, or
 * failed while they ended; 0 if there is none. WERE_THERE: the nodes that were connected. TIMEOUT_NS 0: only
 * agents that could not be asked. */
static int describe_remaining(const struct node_group *group, const bool *were_connected, int64_t timeout_ns,
                              struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(group->count + 1, sizeof *failures);
    for (size_t i = 0; i < group->count; i++) {
        const struct agent_link *link = group->members[i]->link;
        const struct failure *why = agent_link_failure(link);
        int64_t lease_ns = agent_link_left_ns(link);
        if (group->members[i]->left_out)
            continue;
        if (lease_ns > 0)
            describe_unreachable_agent(link, lease_ns, &failures[i]);
        else if (agent_link_state(link) != AGENT_LINK_CLOSED && timeout_ns > 0)
            failure_set(&failures[i], -ETIMEDOUT, "the agent has not left within %.3g s",
                        (double)timeout_ns / (double)EVENT_SECOND);
        else if (were_connected[i] && why && timeout_ns > 0)
            failures[i] = *why;
    }
    return node_failures_merge(group, failures, "leaving", failure);
}

/* The failure of an interrupted node_group_close(), -EINTR. It names the agents that could not be asked to
 * end; the others do, though nobody waits for them. */
static int describe_interrupted(const struct node_group *group, const bool *were_connected,
                                struct failure *failure) {
    struct failure left = {0};
    bool some_unreachable = describe_remaining(group, were_connected, 0, &left) < 0;
    return failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted while the agents left%s%s",
                            some_unreachable ? "; " : "", left.text);
}

int node_group_close(struct node_group *group, int64_t timeout_ns, struct failure *failure) {
    bool timed_out = false;
    cleanup_free bool *were_connected = calloc(group->count + 1, sizeof *were_connected);
    struct event_source *timer =
        event_loop_add_timer(group->loop, timeout_ns, 0, on_close_timeout, &timed_out);
    if (!were_connected || !timer) {
        event_source_remove(timer);
        return failure_memory(failure);
    }
    int r = 0;
    for (size_t i = 0; i < group->count && r >= 0; i++) {
        were_connected[i] = node_group_is_there(group, i);
        agent_link_close(group->members[i]->link);
        if (i % STARTS_A_TURN == STARTS_A_TURN - 1)
            r = event_loop_run_once(group->loop, 0, failure);
    }
    while (r >= 0 && !timed_out && count_open(group) > 0)
        r = event_loop_turn(group->loop, -1, failure);
    event_source_remove(timer);
    if (r == -EINTR)
        return describe_interrupted(group, were_connected, failure);
    return r < 0 ? r : describe_remaining(group, were_connected, timeout_ns, failure);
}
