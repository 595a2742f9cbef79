/*
 * assay nodes clean: agents that are left over, and their end.
 *
 * Each node's own agent tells: it runs the agent's program a second time, with --list and then with --end
 * (engine/agent/README.md). Agents of other users are neither seen nor touched.
 */
#include "engine/command-line/nodes.h"

#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/launch/agent-transport.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LEFT_OVER_MAX = 1 << 20, /* of all nodes */
    FIELDS = 9,
    SESSION_DIGITS = 16,
    LIST_BYTES_MAX = 1 << 20, /* of one node: some 8,000 agents */
    ALONE_LEAST_S = 30,       /* whose link is broken, and who has an engine that may be back */
};

static const uint64_t list_ms = 60000; /* agents that are stopped are waited for, 2 s each */
static const uint64_t end_ms = 60000;  /* an agent ends its commands and empties its folder */

struct left_over {
    size_t node;
    char session[SESSION_DIGITS + 1];
    enum standing { ALONE, ATTACHED, UNANSWERING } standing;
    uint64_t pid;
    /* These are not known of one that does not answer. */
    uint64_t silent_s, lease_s, commands, started; /* started: since 1970 */
    char *directory, *label;                       /* owned */
};

struct cleaning {
    struct nodes *nodes;
    struct left_over *found;
    size_t count, capacity;
    bool *chosen;  /* nodes that --end is run on now */
    size_t *which; /* for these: of FOUND */
    const char *arguments[8];
};

static void clear_cleaning(struct cleaning *cleaning) {
    for (size_t i = 0; i < cleaning->count; i++) {
        free(cleaning->found[i].directory);
        free(cleaning->found[i].label);
    }
    free(cleaning->found);
    free(cleaning->chosen);
    free(cleaning->which);
}

/* ---- the list */

static const struct transport *stream_of(const struct cleaning *cleaning, size_t node) {
    return agent_link_transport(node_group_link(cleaning->nodes->group, node));
}

/* The agent's program on NODE with an option and its argument (or NULL). Where it is may be told from the
 * user's home folder, which only the node knows: then a shell puts the two together, by words that are the
 * same whatever the path is. */
static int set_arguments(struct cleaning *cleaning, size_t node, const char *option, const char *argument,
                         struct failure *failure) {
    const struct transport *transport = stream_of(cleaning, node);
    const struct agent_arrival *agent = transport ? agent_transport_arrival(transport) : NULL;
    if (!agent || !agent->path)
        return failure_set(failure, -ENOTCONN, "there is no connection");
    bool from_home = strncmp(agent->path, "~/", 2) == 0;
    const char **at = cleaning->arguments;
    if (from_home) {
        *at++ = "sh";
        *at++ = "-c";
        *at++ = "exec \"$HOME/$0\" \"$@\"";
    }
    *at++ = agent->path + (from_home ? 2 : 0);
    *at++ = option;
    *at++ = argument;
    *at = NULL;
    return 0;
}

static int specify_list(size_t node, struct remote_command_specification *ret, void *context,
                        struct failure *failure) {
    struct cleaning *cleaning = context;
    *ret = (struct remote_command_specification){.arguments = cleaning->arguments, .timeout_ms = list_ms};
    return set_arguments(cleaning, node, "--list", NULL, failure);
}

static bool take_number(const char *field, uint64_t *ret) {
    return number_parse_uint64(field, strlen(field), ret);
}

static bool is_session(const char *text) {
    return strlen(text) == SESSION_DIGITS && strspn(text, "0123456789abcdef") == SESSION_DIGITS;
}

/* The fields of a LINE, which is cut up; false if it is not one of --list. */
static bool parse_line(char *line, struct left_over *ret) {
    const char *fields[FIELDS];
    size_t count = 0;
    for (char *at = line; at && count < FIELDS;)
        fields[count++] = strsep(&at, "\t");
    if (count != FIELDS || !is_session(fields[0]) || !take_number(fields[2], &ret->silent_s) ||
        !take_number(fields[3], &ret->lease_s) || !take_number(fields[4], &ret->commands) ||
        !take_number(fields[5], &ret->pid) || !take_number(fields[6], &ret->started))
        return false;
    memcpy(ret->session, fields[0], sizeof ret->session);
    ret->standing = strcmp(fields[1], "alone") == 0    ? ALONE
                    : strcmp(fields[1], "silent") == 0 ? UNANSWERING
                                                       : ATTACHED;
    ret->directory = strdup(fields[7]);
    ret->label = strdup(fields[8]);
    return true;
}

/* Our own agent is in the list too. */
static bool is_ours(const struct cleaning *cleaning, size_t node, const char *session) {
    const struct transport *transport = stream_of(cleaning, node);
    char own[SESSION_DIGITS + 1];
    snprintf(own, sizeof own, "%016" PRIx64, transport ? transport->session : 0);
    return strcmp(own, session) == 0;
}

static int take_line(struct cleaning *cleaning, size_t node, char *line, struct failure *failure) {
    struct left_over left_over = {.node = node};
    if (!*line)
        return 0;
    if (!parse_line(line, &left_over))
        return failure_set(failure, -EPROTO, "the agent lists '%.100s', which is no line of a list", line);
    int r = left_over.directory && left_over.label ? 0 : -ENOMEM;
    bool ours = is_ours(cleaning, node, left_over.session);
    if (r == 0 && !ours)
        r = list_reserve(&cleaning->found, &cleaning->capacity, cleaning->count + 1, sizeof left_over,
                         LEFT_OVER_MAX);
    if (r < 0 || ours) {
        free(left_over.directory);
        free(left_over.label);
        return r < 0 ? failure_set(failure, r, "too many agents, or no memory for their list") : 0;
    }
    cleaning->found[cleaning->count++] = left_over;
    return 0;
}

/* FAILURES: one a node. */
static int take_lists(struct cleaning *cleaning, const struct node_result *results,
                      struct failure *failures) {
    const struct node_group *group = cleaning->nodes->group;
    for (size_t i = 0; i < node_group_count(group); i++) {
        const struct node_result *result = &results[i];
        if (result->outcome != NODE_DONE) {
            failures[i] = result->failure;
            continue;
        }
        char how[128];
        if (!node_result_is_good(result)) {
            failure_set(&failures[i], -EIO, "the list of agents: %s: %.200s",
                        remote_exit_describe(&result->exit, how, sizeof how), result->error.bytes);
            continue;
        }
        if (result->output.length < result->output.total) {
            failure_set(&failures[i], -EFBIG, "the list of agents has %" PRIu64 " bytes; expected at most %d",
                        result->output.total, LIST_BYTES_MAX);
            continue;
        }
        cleanup_free char *bytes = xstrdup(result->output.bytes);
        for (char *at = bytes; at && failures[i].code == 0;)
            (void)take_line(cleaning, i, strsep(&at, "\n"), &failures[i]);
    }
    return 0;
}

static int find_all(struct cleaning *cleaning, struct failure *failures, struct failure *failure) {
    struct node_result *results = NULL;
    struct node_group_command command = {
        .specify = specify_list, .context = cleaning, .kept = LIST_BYTES_MAX};
    int r = node_group_run(cleaning->nodes->group, &command, &results, failure);
    if (r == 0)
        r = take_lists(cleaning, results, failures);
    node_results_free(cleaning->nodes->group, results);
    return r;
}

/* ---- words */

/* Is it somebody's, as far as can be told? */
static bool is_spared(const struct left_over *agent, bool force) {
    return !force && (agent->standing != ALONE || agent->silent_s <= ALONE_LEAST_S);
}

static void print_left_over(const struct cleaning *cleaning, const struct left_over *agent, const char *what,
                            bool spared) {
    char since[32] = "?", silent[NUMBER_TEXT_SIZE];
    struct tm parts;
    time_t started = (time_t)agent->started;
    if (gmtime_r(&started, &parts))
        strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &parts);
    fputs(shown(node_group_name(cleaning->nodes->group, agent->node)).text, stdout);
    printf(": %s: ", what);
    if (agent->standing == UNANSWERING) {
        printf("the agent of session %s, process %" PRIu64 ", which does not answer%s\n", agent->session,
               agent->pid, spared ? "; --force tries to end it" : "");
        return;
    }
    shown_print(stdout, agent->label[0] ? agent->label : "an agent without a label", false);
    fputs(", in ", stdout);
    shown_print(stdout, agent->directory, false);
    printf(", since %s, %" PRIu64 " command%s", since, agent->commands, agent->commands == 1 ? "" : "s");
    if (agent->standing == ATTACHED) {
        puts(", somebody is connected");
        return;
    }
    printf(", alone for %s", number_describe_duration((double)agent->silent_s, silent));
    if (agent->lease_s > 0) {
        char left[NUMBER_TEXT_SIZE];
        uint64_t rest = agent->lease_s > agent->silent_s ? agent->lease_s - agent->silent_s : 0;
        printf(", would leave in %s", number_describe_duration((double)rest, left));
    }
    puts(spared ? "; its engine may come back, --force ends it" : "");
}

/* ---- the end of them */

static int specify_end(size_t node, struct remote_command_specification *ret, void *context,
                       struct failure *failure) {
    struct cleaning *cleaning = context;
    *ret = (struct remote_command_specification){.arguments = cleaning->arguments, .timeout_ms = end_ms};
    return set_arguments(cleaning, node, "--end", cleaning->found[cleaning->which[node]].session, failure);
}

/* Chooses an agent that is to be ended on each node that still has one. DONE: those chosen so far. False if
 * no node has one. */
static bool choose(struct cleaning *cleaning, bool force, bool *done) {
    bool any = false;
    size_t nodes = node_group_count(cleaning->nodes->group);
    memset(cleaning->chosen, 0, nodes * sizeof *cleaning->chosen);
    for (size_t i = 0; i < cleaning->count; i++) {
        const struct left_over *agent = &cleaning->found[i];
        if (done[i] || cleaning->chosen[agent->node] || is_spared(agent, force))
            continue;
        done[i] = any = true;
        cleaning->chosen[agent->node] = true;
        cleaning->which[agent->node] = i;
    }
    return any;
}

static void take_ends(const struct cleaning *cleaning, const struct node_result *results,
                      struct failure *failures) {
    for (size_t i = 0; i < node_group_count(cleaning->nodes->group); i++) {
        const struct node_result *result = &results[i];
        if (result->outcome == NODE_NOT_ASKED)
            continue;
        const struct left_over *agent = &cleaning->found[cleaning->which[i]];
        if (node_result_is_good(result)) {
            print_left_over(cleaning, agent, "ended", false);
            continue;
        }
        char how[128];
        if (failures[i].code < 0)
            continue;
        if (result->outcome != NODE_DONE)
            failures[i] = result->failure;
        else
            failure_set(&failures[i], -EIO, "ending agent %s: %s: %.200s", agent->session,
                        remote_exit_describe(&result->exit, how, sizeof how), result->error.bytes);
    }
}

static int end_all(struct cleaning *cleaning, bool force, struct failure *failures, struct failure *failure) {
    struct node_group *group = cleaning->nodes->group;
    size_t nodes = node_group_count(group);
    cleanup_free bool *done = xcalloc(cleaning->count + 1, sizeof *done);
    cleaning->chosen = xcalloc(nodes + 1, sizeof *cleaning->chosen);
    cleaning->which = xcalloc(nodes + 1, sizeof *cleaning->which);
    int r = 0;
    while (r == 0 && choose(cleaning, force, done)) {
        struct node_result *results = NULL;
        struct node_group_command command = {
            .specify = specify_end, .context = cleaning, .nodes = cleaning->chosen};
        r = node_group_run(group, &command, &results, failure);
        if (r == 0)
            take_ends(cleaning, results, failures);
        node_results_free(group, results);
    }
    return r;
}

/* ---- the action */

static int clean_all(struct nodes *nodes, bool dry, bool force, struct failure *failure) {
    cleanup(clear_cleaning) struct cleaning cleaning = {.nodes = nodes};
    cleanup_free struct failure *failures = xcalloc(node_group_count(nodes->group) + 1, sizeof *failures);
    nodes_doing(nodes, "looking");
    int r = find_all(&cleaning, failures, failure);
    nodes_doing(nodes, NULL);
    for (size_t i = 0; r == 0 && i < cleaning.count; i++) {
        bool spared = is_spared(&cleaning.found[i], force);
        if (dry || spared)
            print_left_over(&cleaning, &cleaning.found[i], spared ? "left alone" : "left over", spared);
    }
    if (r == 0 && !dry) {
        nodes_doing(nodes, "ending");
        r = end_all(&cleaning, force, failures, failure);
        nodes_doing(nodes, NULL);
    }
    if (r == 0 && cleaning.count == 0 && !nodes->quiet)
        puts("nothing is left over");
    return r < 0 ? r : nodes_failures(nodes, failures, "cleaning", failure);
}

int nodes_clean(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(nodes_clear) struct nodes nodes = {0};
    int r = nodes_open(&nodes, arguments, 0, failure);
    if (r == 0)
        r = clean_all(&nodes, verb_switch(arguments, "--dry-run"), verb_switch(arguments, "--force"),
                      failure);
    return nodes_close(&nodes, r, failure);
}
