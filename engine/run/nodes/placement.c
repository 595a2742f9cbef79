#include "engine/run/nodes/placement.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/record/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct run_node *first_in(const struct node_set *set) {
    size_t i = 0;
    while (i < set->count && !run_node_is_in(&set->items[i]))
        i++;
    return i < set->count ? &set->items[i] : NULL;
}

/* The ledger's number of the I-th place that it has of NODE; SIZE_MAX: it has fewer. */
static size_t find_known(const struct node_set *set, const struct run_node *node, size_t i) {
    for (size_t place = 0; place < ledger_place_count(set->record->ledger); place++)
        if (strcmp(ledger_place_node(set->record->ledger, place), node->name) == 0 && i-- == 0)
            return place;
    return SIZE_MAX;
}

/* How many units run on NODE at a time. A node whose cores are not known yet has the places of earlier parts.
 */
size_t placement_count(const struct node_set *set, const struct run_node *node) {
    size_t known = 0;
    switch (set->experiment->placement) {
    case EXPERIMENT_PLACEMENT_CORE:
        while (node->core_count == 0 && find_known(set, node, known) != SIZE_MAX)
            known++;
        return node->core_count + known;
    case EXPERIMENT_PLACEMENT_NODE:
        return 1;
    case EXPERIMENT_PLACEMENT_JOB:
        return node == first_in(set);
    }
    return 0;
}

size_t placement_place(const struct node_set *set, const struct run_node *node, size_t i) {
    if (set->experiment->placement == EXPERIMENT_PLACEMENT_JOB)
        return ledger_place(set->record->ledger, PLACEMENT_JOB_NODE, PLACEMENT_ALL_CORES);
    char core[16] = PLACEMENT_ALL_CORES;
    if (set->experiment->placement == EXPERIMENT_PLACEMENT_CORE && node->core_count == 0)
        return find_known(set, node, i);
    if (set->experiment->placement == EXPERIMENT_PLACEMENT_CORE)
        snprintf(core, sizeof core, "%u", node->cores[i]->index);
    return ledger_place(set->record->ledger, node->name, core);
}

static void add_share(struct placement *placement, struct run_node *node, size_t first, size_t count) {
    struct placement_share *share = &placement->shares[placement->count++];
    *share = (struct placement_share){node, xcalloc(count + 1, sizeof *share->pus), count};
    for (size_t i = 0; i < count; i++)
        share->pus[i] = node->cores[first + i]->index;
}

void placement_init(struct placement *placement, const struct node_set *set, struct run_node *node,
                    size_t i) {
    bool job = set->experiment->placement == EXPERIMENT_PLACEMENT_JOB,
         core = set->experiment->placement == EXPERIMENT_PLACEMENT_CORE;
    *placement = (struct placement){.place = placement_place(set, node, i)};
    placement->shares = xcalloc(job ? set->count : 1, sizeof *placement->shares);
    if (!job)
        add_share(placement, node, core ? i : 0, core ? 1 : node->core_count);
    for (size_t k = 0; job && k < set->count; k++)
        if (run_node_is_in(&set->items[k]))
            add_share(placement, &set->items[k], 0, set->items[k].core_count);
    placement->core = ledger_place_core(set->record->ledger, placement->place);
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
