#include "engine/run/nodes/placement.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/out.h"
#include "engine/run/record/ledger.h"
#include "engine/run/run-state.h"

#include <stdio.h>
#include <stdlib.h>

static const struct run_node *first_in(const struct run *run) {
    size_t i = 0;
    while (i < run->node_count && !run_node_is_in(&run->nodes[i]))
        i++;
    return i < run->node_count ? &run->nodes[i] : NULL;
}

size_t placement_count(const struct run *run, const struct run_node *node) {
    switch (run->experiment->placement) {
    case EXPERIMENT_PLACEMENT_CORE:
        return node->core_count;
    case EXPERIMENT_PLACEMENT_NODE:
        return 1;
    case EXPERIMENT_PLACEMENT_JOB:
        return node == first_in(run);
    }
    return 0;
}

size_t placement_place(const struct run *run, const struct run_node *node, size_t i) {
    if (run->experiment->placement == EXPERIMENT_PLACEMENT_JOB)
        return ledger_place(run->ledger, PLACEMENT_JOB_NODE, PLACEMENT_ALL_CORES);
    char core[16] = PLACEMENT_ALL_CORES;
    if (run->experiment->placement == EXPERIMENT_PLACEMENT_CORE)
        snprintf(core, sizeof core, "%u", node->cores[i]->index);
    return ledger_place(run->ledger, node->name, core);
}

static void add_share(struct placement *placement, struct run_node *node, size_t first, size_t count) {
    struct placement_share *share = &placement->shares[placement->count++];
    *share = (struct placement_share){node, xcalloc(count + 1, sizeof *share->pus), count};
    for (size_t i = 0; i < count; i++)
        share->pus[i] = node->cores[first + i]->index;
}

void placement_init(struct placement *placement, const struct run *run, struct run_node *node, size_t i) {
    bool job = run->experiment->placement == EXPERIMENT_PLACEMENT_JOB,
         core = run->experiment->placement == EXPERIMENT_PLACEMENT_CORE;
    *placement = (struct placement){.place = placement_place(run, node, i)};
    placement->shares = xcalloc(run->node_count, sizeof *placement->shares);
    if (!job)
        add_share(placement, node, core ? i : 0, core ? 1 : node->core_count);
    for (size_t k = 0; job && k < run->node_count; k++)
        if (run_node_is_in(&run->nodes[k]))
            add_share(placement, &run->nodes[k], 0, run->nodes[k].core_count);
    placement->core = ledger_place_core(run->ledger, placement->place);
    placement->node = placement->shares[0].node;
}

void placement_clear(struct placement *placement) {
    for (size_t i = 0; i < placement->count; i++)
        free(placement->shares[i].pus);
    free(take_pointer(placement->shares));
    placement->count = 0;
}

bool placement_has(const struct placement *placement, const struct run_node *node) {
    for (size_t i = 0; i < placement->count; i++)
        if (placement->shares[i].node == node)
            return true;
    return false;
}

int placement_append_nodes(const struct placement *placement, size_t count, struct text *text) {
    cleanup_free const char **names = xcalloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = placement->shares[i].node->name;
    return host_list_fold(names, count, text);
}

int64_t placement_time_of(const struct placement *placement, size_t i, int64_t first_ns) {
    const struct agent_clock *from = &placement->node->clocks[RUN_CLOCK_START],
                             *to = &placement->shares[i].node->clocks[RUN_CLOCK_START];
    if (i == 0 || from->exchanges == 0 || to->exchanges == 0)
        return first_ns;
    return first_ns - from->node_monotonic_ns + from->engine_monotonic_ns - to->engine_monotonic_ns +
           to->node_monotonic_ns;
}
