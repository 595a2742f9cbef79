/* Agents of the parts before, whose engine was killed: they wait for it until their lease is over, with all
 * that they had started, and with the controls set. They are told to leave, which ends what runs and puts
 * the controls back, before anything else is done on their nodes. */
#include "engine/run/nodes/out.h"
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t end_ms = 60000; /* commands have their grace, and controls are put back */
enum { IS_GONE = 69 };                /* what the agent's --end exits with when there is none */

struct ending {
    struct run *run;
    bool *chosen;                            /* nodes that are asked now */
    const struct run_history_agent **agents; /* of each */
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

/* One agent a node that is there. False if none is left. DONE: those chosen so far. */
static bool choose(struct ending *ending, bool *done) {
    const struct run *run = ending->run;
    bool any = false;
    for (size_t node = 0; node < run->node_count; node++) {
        ending->chosen[node] = false;
        for (size_t i = 0; i < run->past.agent_count && !ending->chosen[node]; i++) {
            const struct run_history_agent *agent = &run->past.agents[i];
            if (done[i] || strcmp(agent->node, run->nodes[node].name) != 0 || !run_concerns(run, node) ||
                !node_group_is_there(run->group, node))
                continue;
            done[i] = any = ending->chosen[node] = true;
            ending->agents[node] = agent;
        }
    }
    return any;
}

static void judge(const struct ending *ending, const struct node_result *results, struct failure *failures) {
    struct run *run = ending->run;
    for (size_t i = 0; i < run->node_count; i++) {
        const struct node_result *result = &results[i];
        char how[128];
        if (result->outcome == NODE_NOT_ASKED)
            continue;
        bool gone = result->outcome == NODE_DONE && !result->exit.signalled && result->exit.code == IS_GONE;
        if (gone || node_result_is_good(result)) {
            journal_begin(run->journal, "agent-ended");
            journal_string(run->journal, "node", run->nodes[i].name);
            journal_string(run->journal, "session", ending->agents[i]->session);
            journal_end(run->journal);
        } else if (result->outcome != NODE_DONE) {
            failures[i] = result->failure;
        } else {
            failure_set(&failures[i], -EIO,
                        "the agent that an earlier part of this run left could not be ended: %s: %.200s",
                        remote_exit_describe(&result->exit, how, sizeof how), result->error.bytes);
        }
    }
}

int run_end_old_agents(struct run *run, struct failure *failure) {
    cleanup_free bool *chosen = calloc(run->node_count + 1, sizeof *chosen),
                      *done = calloc(run->past.agent_count + 1, sizeof *done);
    cleanup_free const struct run_history_agent **agents = calloc(run->node_count + 1, sizeof *agents);
    cleanup_free struct failure *failures = calloc(run->node_count + 1, sizeof *failures);
    struct ending ending = {.run = run, .chosen = chosen, .agents = agents};
    if (!chosen || !done || !agents || !failures)
        return failure_memory(failure);
    int r = 0;
    while (r == 0 && choose(&ending, done)) {
        struct node_result *results = NULL;
        struct node_group_command command = {.specify = specify_end, .context = &ending, .nodes = chosen};
        r = node_group_run(run->group, &command, &results, failure);
        if (r == 0)
            judge(&ending, results, failures);
        node_results_free(run->group, results);
    }
    return r < 0 ? r : run_merge_failures(run, failures, "ending earlier agents", failure);
}
