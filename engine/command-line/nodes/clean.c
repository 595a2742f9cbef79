/*
 * assay nodes clean: agents that are left over, and their end; folders that agents which were killed have
 * left, and their removal.
 *
 * Each node's own agent knows them: its program runs a second time, with --list and then with --end
 * (engine/agent/README.md). Agents of other users are neither seen nor touched.
 */
#include "engine/command-line/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/nodes/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEFT_OVER_MAX = 1 << 20, /* of all nodes */
    SESSION_DIGITS = 16,
    ALONE_LEAST_S = 30, /* whose link is broken, and who has an engine that may be back */
};

/* Agents that are stopped are waited for, 2 s each; one that ends kills its commands and empties its folder.
 */
static const uint64_t tool_ms = 60000;

struct left_over {
    size_t node;
    char session[SESSION_DIGITS + 1];
    enum standing { ALONE, ATTACHED, UNANSWERING } standing;
    uint64_t pid;
    /* Not known for an agent that does not answer. */
    uint64_t silent_s, lease_s, commands, started; /* started: since 1970 */
    char *directory, *label;                       /* owned */
    bool is_done;                                  /* it was asked to end */
};

struct cleaning {
    struct nodes *nodes;
    struct left_over *found;
    size_t count, capacity;
    const char *(*arguments)[3]; /* one a node: to end an agent */
    bool has_folders, is_dry;
};

static void clear_cleaning(struct cleaning *cleaning) {
    for (size_t i = 0; i < cleaning->count; i++) {
        free(cleaning->found[i].directory);
        free(cleaning->found[i].label);
    }
    free(cleaning->found);
    free((void *)cleaning->arguments);
}

/* ---- the list */

static bool is_session(const char *text) {
    return strlen(text) == SESSION_DIGITS && strspn(text, "0123456789abcdef") == SESSION_DIGITS;
}

/* Our own agent is in the list too. */
static bool is_ours(const struct cleaning *cleaning, size_t node, const char *session) {
    const struct transport *transport = agent_link_transport(node_group_link(cleaning->nodes->group, node));
    char own[SESSION_DIGITS + 1];
    snprintf(own, sizeof own, "%016" PRIx64, transport ? transport->session : 0);
    return strcmp(own, session) == 0;
}

/* A line about a run directory whose agent was killed. */
static void add_folder(size_t node, char *at, struct cleaning *cleaning) {
    const char *outcome = tool_field_next(&at);
    cleaning->has_folders = true;
    report_note(cleaning->nodes->report->root, REPORT_LINE, "%s: %s: %s, the folder of a killed agent",
                node_group_name(cleaning->nodes->group, node),
                strcmp(outcome, "abandoned") == 0 ? "left over" : outcome, tool_field_next(&at));
}

/* Called with a line of the agents' list: keeps agents that are not ours, and folders. */
static int on_listed_agent(size_t node, const char *session, char *at, void *context,
                           struct failure *failure) {
    struct cleaning *cleaning = context;
    struct left_over agent = {.node = node};
    if (strcmp(session, "folder") == 0) {
        add_folder(node, at, cleaning);
        return 0;
    }
    const char *standing = tool_field_next(&at);
    uint64_t *const numbers[] = {&agent.silent_s, &agent.lease_s, &agent.commands, &agent.pid,
                                 &agent.started};
    bool is_line = is_session(session);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *field = tool_field_next(&at);
        is_line = is_line && number_parse_uint64(field, strlen(field), numbers[i]);
    }
    const char *directory = tool_field_next(&at);
    if (!is_line || !at)
        return failure_set(failure, -EPROTO, "the agent's list has the malformed line '%.100s'", session);
    if (is_ours(cleaning, node, session))
        return 0;
    if (list_reserve(&cleaning->found, &cleaning->capacity, cleaning->count + 1, sizeof agent,
                     LEFT_OVER_MAX) < 0)
        return failure_set(failure, -EFBIG, "there are more than %d agents", LEFT_OVER_MAX);
    memcpy(agent.session, session, sizeof agent.session);
    agent.standing = strcmp(standing, "alone") == 0    ? ALONE
                     : strcmp(standing, "silent") == 0 ? UNANSWERING
                                                       : ATTACHED;
    agent.directory = xstrdup(directory);
    agent.label = xstrdup(tool_field_next(&at));
    cleaning->found[cleaning->count++] = agent;
    return 0;
}

static int find_all(struct cleaning *cleaning, struct failure *failure) {
    const char *const arguments[] = {"--list", cleaning->is_dry ? NULL : "--remove-abandoned", NULL};
    const struct node_tool tool = {
        .arguments = arguments, .timeout_ms = tool_ms, .take = on_listed_agent, .context = cleaning};
    return node_group_run_tool(cleaning->nodes->group, &tool, &cleaning->nodes->failures, failure);
}

/* ---- words */

/* Whether AGENT is left running: an agent that serves somebody, or whose engine was heard of less than
 * ALONE_LEAST_S ago. With FORCE none is. */
static bool is_spared(const struct left_over *agent, bool force) {
    return !force && (agent->standing != ALONE || agent->silent_s <= ALONE_LEAST_S);
}

/* "alone for 40 s, would leave in 4 min 20 s"; the caller frees. */
static char *describe_link(const struct left_over *agent) {
    char silent[NUMBER_TEXT_SIZE], left[NUMBER_TEXT_SIZE];
    if (agent->standing == ATTACHED)
        return xstrdup("somebody is connected");
    number_describe_duration((double)agent->silent_s, silent);
    if (agent->lease_s == 0)
        return xformat("alone for %s", silent);
    uint64_t leaves_s = agent->lease_s > agent->silent_s ? agent->lease_s - agent->silent_s : 0;
    return xformat("alone for %s, would leave in %s", silent,
                   number_describe_duration((double)leaves_s, left));
}

/* Adds a line on one agent and what became of it. */
static void report_agent(const struct cleaning *cleaning, const struct left_over *agent, const char *outcome,
                         bool is_spared) {
    struct report_section *root = cleaning->nodes->report->root;
    const char *node = node_group_name(cleaning->nodes->group, agent->node);
    if (agent->standing == UNANSWERING) {
        report_note(root, REPORT_LINE,
                    "%s: %s: the agent of session %s, process %" PRIu64 ", which does not answer%s", node,
                    outcome, agent->session, agent->pid, is_spared ? "; --force tries to end it" : "");
        return;
    }
    char since[CLOCK_TEXT_SIZE];
    uint64_t started = agent->started < INT32_MAX ? agent->started : INT32_MAX;
    clock_format((int64_t)started * EVENT_SECOND, since);
    cleanup_free char *link = describe_link(agent);
    report_note(root, REPORT_LINE, "%s: %s: %s, in %s, since %.19sZ, %" PRIu64 " command%s, %s%s", node,
                outcome, agent->label[0] ? agent->label : "an agent without a label", agent->directory, since,
                agent->commands, agent->commands == 1 ? "" : "s", link,
                is_spared && agent->standing == ALONE ? "; its engine may come back, --force ends it" : "");
}

/* ---- the end of them */

static const char *const *arguments_of(size_t node, void *context) {
    return ((const struct cleaning *)context)->arguments[node];
}

/* Ends one agent on each node that has some left; *RET is false when no node has. */
static int end_one_agent_per_node(struct cleaning *cleaning, bool force, bool *ret, struct failure *failure) {
    size_t count = node_group_count(cleaning->nodes->group);
    cleanup_free bool *chosen = xcalloc(count + 1, sizeof *chosen);
    cleanup_free const struct left_over **which = xcalloc(count + 1, sizeof *which);
    *ret = false;
    for (size_t i = 0; i < cleaning->count; i++) {
        struct left_over *agent = &cleaning->found[i];
        if (agent->is_done || chosen[agent->node] || is_spared(agent, force))
            continue;
        agent->is_done = chosen[agent->node] = *ret = true;
        which[agent->node] = agent;
        cleaning->arguments[agent->node][0] = "--end";
        cleaning->arguments[agent->node][1] = agent->session;
    }
    cleanup_free struct failure *failures = NULL;
    const struct node_tool tool = {
        .arguments_of = arguments_of, .nodes = chosen, .timeout_ms = tool_ms, .context = cleaning};
    int r = *ret ? node_group_run_tool(cleaning->nodes->group, &tool, &failures, failure) : 0;
    for (size_t i = 0; r == 0 && *ret && i < count; i++)
        if (chosen[i] && failures[i].code == 0)
            report_agent(cleaning, which[i], "ended", false);
    nodes_add_failures(cleaning->nodes, failures);
    return r;
}

int nodes_clean(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure) {
    bool dry = verb_switch(arguments, "--dry-run"), force = verb_switch(arguments, "--force");
    cleanup(clear_cleaning) struct cleaning cleaning = {
        .nodes = nodes,
        .is_dry = dry,
        .arguments = xcalloc(node_group_count(nodes->group) + 1, sizeof *cleaning.arguments)};
    int r = find_all(&cleaning, failure);
    for (size_t i = 0; r == 0 && i < cleaning.count; i++) {
        bool spared = is_spared(&cleaning.found[i], force);
        if (dry || spared)
            report_agent(&cleaning, &cleaning.found[i], spared ? "left alone" : "left over", spared);
    }
    for (bool any = !dry; r == 0 && any;)
        r = end_one_agent_per_node(&cleaning, force, &any, failure);
    if (r == 0 && cleaning.count == 0 && !cleaning.has_folders && !nodes->quiet)
        report_note(nodes->report->root, REPORT_LINE, "nothing is left over");
    return r;
}
