/* Watches while measuring whether a node is slower than the others (slow-nodes.h), and tells it, once a node.
 */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const int64_t look_period_ns = 5 * EVENT_SECOND;

int node_speeds_start(struct measurement *measurement) {
    const struct run *run = measurement->run;
    if (run_count_in(run) < SLOW_NODES_NODES)
        return 0;
    measurement->speeds = slow_nodes_new(run->node_count, run->plan->design->row_count);
    measurement->speeds_looked_ns = clock_monotonic_ns();
    return measurement->speeds ? 0 : -ENOMEM;
}

void node_speeds_add(struct measurement *measurement, const struct lane *lane,
                     const struct measured_unit *unit) {
    const struct run *run = measurement->run;
    if (!measurement->speeds || unit->begun_ns < 0 || unit->end_ns < 0)
        return;
    slow_nodes_add(measurement->speeds, (size_t)(lane->at.node - run->nodes),
                   design_order_row(run->plan->order, unit->position),
                   (double)(unit->end_ns - unit->begun_ns) * 1e-9);
}

/* "49.8 % longer a unit than the median of 5 nodes, over 12 rows (3.5 of their spreads are 1.2 %)" */
static void name_node(struct run *run, struct run_node *node, const struct slow_node_score *score) {
    node->slow =
        text_format("slower than the others: %.3g %% longer a unit than the median of %zu nodes of its kind, "
                    "over %zu rows (%g of their spreads are %.2g %%)",
                    expm1(score->score) * 100, score->nodes, score->rows, SLOW_NODES_SPREADS,
                    expm1(SLOW_NODES_SPREADS * score->spread) * 100);
    if (!node->slow)
        return;
    journal_begin(run->journal, "slow-node");
    journal_string(run->journal, "node", node->name);
    journal_string(run->journal, "sentence", node->slow);
    journal_end(run->journal);
    run_note(run, "node %s: %s", node->name, node->slow);
}

/* Nodes of one processor and as many cores are of one kind: of each node the first of its kind. NULL when out
 * of memory. */
static size_t *find_kinds(const struct run *run) {
    size_t *firsts = calloc(run->node_count, sizeof *firsts);
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(run->node_count);
    for (size_t i = 0; i < run->node_count; i++) {
        const struct run_node *node = &run->nodes[i];
        const char *model = node->cpu_model ? node->cpu_model : node->facts ? node->facts->machine : "";
        words.items[i] = xformat("%zu %s", node->core_count, model);
    }
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(&words);
    for (size_t k = 0; firsts && k < kinds.count; k++)
        for (size_t i = 0; i < kinds.items[k].count; i++)
            firsts[kinds.items[k].nodes[i]] = kinds.items[k].nodes[0];
    return firsts;
}

int node_speeds_look(struct measurement *measurement, bool now) {
    struct run *run = measurement->run;
    int64_t now_ns = clock_monotonic_ns();
    if (!measurement->speeds || (!now && now_ns - measurement->speeds_looked_ns < look_period_ns))
        return 0;
    measurement->speeds_looked_ns = now_ns;
    struct slow_node_score *scores = calloc(run->node_count, sizeof *scores);
    size_t *kinds = find_kinds(run);
    int r = scores && kinds ? slow_nodes_score(measurement->speeds, kinds, scores) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (scores[i].slow && !run->nodes[i].slow)
            name_node(run, &run->nodes[i], &scores[i]);
    free(kinds);
    free(scores);
    return r;
}
