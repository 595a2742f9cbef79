/* Makes the plan again when the nodes are known, if its design depends on their facts. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/nodes/nodes.h"

#include <math.h>
#include <stdlib.h>

/* The number of nodes that take part, and the smallest core count and available memory among them. */
static struct plan_facts find_facts(const struct run *run) {
    struct plan_facts facts = {.cores = INFINITY, .memory = INFINITY, .known = true};
    for (size_t i = 0; i < run->set.count; i++) {
        const struct run_node *node = &run->set.items[i];
        if (!run_node_is_in(node))
            continue;
        facts.nodes++;
        facts.cores = fmin(facts.cores, (double)node->core_count);
        facts.memory = fmin(facts.memory, (double)run_node_available_memory(node));
    }
    return facts;
}

/* Journals and notes the facts that the design is made with. */
static void record_facts(struct run *run, const struct plan_facts *facts) {
    char memory[NUMBER_TEXT_SIZE];
    journal_begin(run->record.journal, "facts");
    journal_integer(run->record.journal, "run_nodes", (int64_t)facts->nodes);
    journal_integer(run->record.journal, "node_cores", (int64_t)facts->cores);
    journal_integer(run->record.journal, "node_memory", (int64_t)facts->memory);
    journal_end(run->record.journal);
    record_note(&run->record,
                "the design is made for %.0f node%s of %.0f physical core%s and %s of available memory each",
                facts->nodes, facts->nodes == 1 ? "" : "s", facts->cores, facts->cores == 1 ? "" : "s",
                number_describe_bytes(facts->memory, memory));
}

/* Reads the seconds that a unit of each row should take from the model `walltime.model`. Without a model
 * nothing is read. */
static int read_expectations(struct run *run, struct failure *failure) {
    const struct run_request *request = run->request;
    const struct plan *plan = run->set.plan;
    if (!run->set.campaign->walltime.model || !request->predict)
        return 0;
    run->progress.expected_seconds = xcalloc(plan->design->row_count + 1, sizeof(double));
    return request->predict(request->predict_context, plan, run->progress.expected_seconds, failure);
}

/* Makes everything that is indexed by the plan's rows and positions again: ledger, progress, settling,
 * expected seconds. */
static int adopt_plan(struct run *run, struct failure *failure) {
    ledger_free(run->record.ledger);
    run->record.ledger = ledger_new(plan_positions(run->set.plan));
    run->record.units = ledger_totals(run->record.ledger);
    run_progress_clear(&run->progress);
    run->progress = (struct run_progress){0};
    settling_init(&run->progress.settling, &run->record, run->set.plan);
    return read_expectations(run, failure);
}

int run_make_plan(struct run *run, const struct plan_facts *facts, struct failure *failure) {
    struct plan_facts guess = plan_guess_facts(run->set.campaign);
    int r = plan_new(run->set.campaign, facts ? facts : &guess, &run->set.plan, failure);
    return r < 0 ? r : adopt_plan(run, failure);
}

int run_plan_for_facts(struct run *run, struct failure *failure) {
    cleanup(plan_cleanup) struct plan *plan = NULL;
    if (run->set.plan->facts.known || !run->set.plan->uses_facts)
        return 0;
    struct plan_facts facts = find_facts(run);
    record_facts(run, &facts);
    int r = plan_new(run->set.campaign, &facts, &plan, failure);
    if (r < 0)
        return r;
    /* Exchanged in place: other parts of the run hold the address of the plan. */
    struct plan guessed = *run->set.plan;
    *run->set.plan = *plan;
    *plan = guessed;
    r = adopt_plan(run, failure);
    return r < 0 ? r : run_record_plan(run, failure);
}
