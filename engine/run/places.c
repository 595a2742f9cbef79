#include "engine/run/places.h"

#include "engine/run/ledger.h"

#include <stdio.h>

static bool is_whole(const struct run *run) {
    return run->experiment->placement == EXPERIMENT_PLACEMENT_NODE;
}

size_t places_count(const struct run *run, const struct run_node *node) {
    return is_whole(run) ? 1 : node->core_count;
}

size_t places_find(const struct run *run, const struct run_node *node, size_t i) {
    char name[16] = "all";
    if (!is_whole(run))
        snprintf(name, sizeof name, "%u", node->cores[i]->index);
    return ledger_place(run->ledger, node->name, name);
}
