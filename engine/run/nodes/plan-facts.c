/* The plan is made anew once the nodes are known, if their facts decide what it is. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "engine/run/nodes/out.h"

#include <math.h>
#include <stdlib.h>

uint64_t run_available_memory(const struct run_node *node) {
    const struct node_facts *facts = node->facts;
    return facts->memory_limit < facts->memory_available ? facts->memory_limit : facts->memory_available;
}

static struct plan_facts find_facts(const struct run *run) {
    struct plan_facts facts = {.cores = INFINITY, .memory = INFINITY, .known = true};
    for (size_t i = 0; i < run->node_count; i++) {
        const struct run_node *node = &run->nodes[i];
        if (!run_node_is_in(node))
            continue;
        facts.nodes++;
        facts.cores = fmin(facts.cores, (double)node->core_count);
        facts.memory = fmin(facts.memory, (double)run_available_memory(node));
    }
    return facts;
}

static void record_facts(struct run *run, const struct plan_facts *facts) {
    char memory[NUMBER_TEXT_SIZE];
    journal_begin(run->journal, "facts");
    journal_integer(run->journal, "run_nodes", (int64_t)facts->nodes);
    journal_integer(run->journal, "node_cores", (int64_t)facts->cores);
    journal_integer(run->journal, "node_memory", (int64_t)facts->memory);
    journal_end(run->journal);
    run_note(run,
             "the design is made for %.0f node%s of %.0f physical core%s and %s of available memory each",
             facts->nodes, facts->nodes == 1 ? "" : "s", facts->cores, facts->cores == 1 ? "" : "s",
             number_describe_bytes(facts->memory, memory));
}

int run_plan_for_facts(struct run *run, struct failure *failure) {
    cleanup(plan_cleanup) struct plan *plan = NULL;
    if (run->plan->facts.known || !run->plan->uses_facts)
        return 0;
    struct plan_facts facts = find_facts(run);
    record_facts(run, &facts);
    int r = plan_new(run->campaign, &facts, &plan, failure);
    if (r < 0)
        return r;
    /* Others have the plan's address. */
    struct plan guessed = *run->plan;
    *run->plan = *plan;
    *plan = guessed;
    free(take_pointer(run->expected_seconds));
    r = run_read_expectations(run, failure);
    return r < 0 ? r : run_record_plan(run, failure);
}
