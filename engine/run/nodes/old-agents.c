/* Agents of earlier parts, whose engine was killed: they wait for it until their lease is over, with all that
 * they had started, and with the controls set. They are asked to leave, which ends what runs and puts the
 * controls back, before anything else is done on their nodes. */
#include "engine/run/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>

static const uint64_t end_ms = 60000; /* commands have their grace, and controls are put back */
enum { IS_GONE = 69 };                /* exit status of the agent's --end when there is no such agent */

/* The old agents that are ended at once: at most one on each node. */
struct ending {
    const struct run_history_agent **agents; /* of each node */
    const char *arguments[4];
};

static int specify_end(size_t node, struct remote_command_specification *ret, void *context,
                       struct failure *failure) {
    struct ending *ending = context;
    (void)failure;
    ending->arguments[0] = "/proc/self/exe"; /* the agent's own program */
    ending->arguments[1] = "--end";
    ending->arguments[2] = ending->agents[node]->session;
    *ret = (struct remote_command_specification){.arguments = ending->arguments, .timeout_ms = end_ms};
    return 0;
}

/* Journals that the agent of an earlier part has ended on node I, also when it was gone before; otherwise
 * sets RET. */
static void note_end(const struct node_set *set, size_t i, const struct run_history_agent *agent,
                     const struct node_result *result, struct failure *ret) {
    bool gone = result->outcome == NODE_DONE && !result->exit.signalled && result->exit.code == IS_GONE;
    char how[128];
    if (gone || node_result_is_good(result)) {
        node_set_note_entry(set, "agent-ended", &set->items[i], "session", agent->session);
    } else if (result->outcome != NODE_DONE) {
        *ret = result->failure;
    } else {
        failure_set(ret, -EIO, "cannot end the agent of an earlier part of this run: %s: %.200s",
                    remote_exit_describe(&result->exit, how, sizeof how), result->error.bytes);
    }
}

/* Ends old agents from *FIRST on, at most one on each node at a time. *FIRST becomes the first that is left.
 */
static int end_one_agent_per_node(struct node_set *set, size_t *first, struct failure *failures,
                                  struct failure *failure) {
    cleanup_free const struct run_history_agent **agents = xcalloc(set->count, sizeof *agents);
    cleanup_free bool *chosen = xcalloc(set->count, sizeof *chosen);
    struct ending ending = {.agents = agents};
    struct node_group_command command = {.specify = specify_end, .context = &ending, .nodes = chosen};
    for (; *first < set->past->agent_count; ++*first) {
        const struct run_history_agent *agent = &set->past->agents[*first];
        const struct run_node *node = node_set_find(set, agent->node);
        size_t i = node ? node->number : 0;
        if (!node || !node_set_has(set, i) || !node_group_is_there(set->group, i))
            continue;
        if (chosen[i])
            break;
        chosen[i] = true;
        agents[i] = agent;
    }
    struct node_result *results = NULL;
    int r = node_group_run(set->group, &command, &results, failure);
    for (size_t i = 0; r == 0 && i < set->count; i++)
        if (results[i].outcome != NODE_NOT_ASKED)
            note_end(set, i, agents[i], &results[i], &failures[i]);
    node_results_free(set->group, results);
    return r;
}

static int end_all(struct node_set *set, struct failure *failures, struct failure *failure) {
    int r = 0;
    for (size_t first = 0; r == 0 && first < set->past->agent_count;)
        r = end_one_agent_per_node(set, &first, failures, failure);
    set->old_agents_asked |= r == 0;
    return r;
}

int node_set_end_old_agents(struct node_set *set, struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(set->count, sizeof *failures);
    int r = end_all(set, failures, failure);
    return r < 0 ? r : node_set_merge_failures(set, failures, "ending earlier agents", failure);
}

/* Notes nodes that cannot be reached: their agents restore the controls when the leases expire. */
static void note_unreached(const struct node_set *set) {
    cleanup_free size_t *away = xcalloc(set->count, sizeof *away);
    cleanup_free bool *noted = xcalloc(set->count, sizeof *noted);
    size_t away_count = 0;
    for (size_t i = 0; i < set->past->agent_count; i++) {
        const struct run_node *node = node_set_find(set, set->past->agents[i].node);
        if (!node || node_group_is_there(set->group, node->number) || noted[node->number])
            continue;
        noted[node->number] = true;
        away[away_count++] = node->number;
    }
    cleanup_free char *who = node_set_describe(set, away, away_count);
    if (away_count > 0)
        record_note(set->record, NODE_SET_UNREACHABLE_SENTENCE, who);
}

int node_set_end_old_agents_before_seal(struct node_set *set, struct failure *failure) {
    if (!set->group || set->old_agents_asked || set->past->agent_count == 0)
        return 0;
    cleanup_free struct failure *failures = xcalloc(set->count, sizeof *failures);
    int r = end_all(set, failures, failure);
    note_unreached(set);
    for (size_t i = 0; i < set->count; i++)
        if (!node_group_is_there(set->group, i))
            failures[i].code = 0;
    return r < 0 ? r : node_failures_merge(set->group, failures, "ending earlier agents", failure);
}
