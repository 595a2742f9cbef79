/* Spares: nodes that are connected only when another is lost, made as ready as the others were, and given its
 * whole share. */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/run/state/state.h"

#include <errno.h>
#include <string.h>

/* ---- Who for whom ----------------------------------------------------------------------------------------
 */

/* A node that is out and whose share is not measured; or a spare. */
static struct run_node *find(const struct node_set *set, enum node_state state) {
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].state == state &&
            (state == NODE_SPARE || !node_set_has_all_units(set, &set->items[i])))
            return &set->items[i];
    return NULL;
}

bool spares_are_wanted(const struct node_set *set) {
    return find(set, NODE_OUT) && find(set, NODE_SPARE);
}

/* Phases and the group ask the newcomer alone; or, with NULL, all that are in. */
static void look_at(struct node_set *set, const struct run_node *newcomer) {
    set->newcomer = newcomer;
    for (size_t i = 0; i < set->count; i++)
        node_group_leave_out(set->group, i, !node_set_has(set, i));
}

/* ---- Making it ready -------------------------------------------------------------------------------------
 */

/* Its units stand for those of the node that was lost, so it needs the same cores; those of a node that was
 * never inspected are not known. */
static int check_cores(const struct run_node *newcomer, const struct run_node *lost,
                       struct failure *failure) {
    if (!lost->facts)
        return 0;
    bool same = newcomer->core_count == lost->core_count;
    for (size_t i = 0; same && i < lost->core_count; i++)
        same = newcomer->cores[i]->index == lost->cores[i]->index;
    if (same)
        return 0;
    return failure_set_kind(failure, FAILURE_EXPERIMENT, -EINVAL,
                            "it has %zu physical cores, and node %s has %zu: expected the same ones",
                            newcomer->core_count, lost->name, lost->core_count);
}

static int run_phases(struct watch *watch, const struct run_node *newcomer, const struct run_node *lost,
                      struct failure *failure) {
    static int (*const acts[])(struct node_set * set, struct failure * failure) = {
        node_set_connect, node_set_inspect, node_set_check_fit, node_set_prepare, controls_begin};
    int r = 0;
    for (size_t i = 0; r == 0 && run_node_is_in(newcomer) && i < sizeof acts / sizeof *acts; i++)
        r = acts[i](watch->set, failure);
    if (r < 0 || !run_node_is_in(newcomer))
        return r;
    r = check_cores(newcomer, lost, failure);
    return r < 0 ? r : warm_up_begin(watch, failure);
}

/* Is the run ending, whatever becomes of the newcomer? */
static bool is_ending(const struct measurement *measurement) {
    return measurement->ended || measurement->set->record->interrupted ||
           event_loop_is_stopped(measurement->set->loop);
}

/* 0 when it is ready, or out itself; negative when the run cannot continue, or is ending. */
static int make_ready(struct measurement *measurement, struct run_node *newcomer, const struct run_node *lost,
                      struct failure *failure) {
    struct node_set *set = measurement->set;
    struct failure why = {0};
    node_set_report_news(set); /* first that the other is out */
    record_note(set->record, "node %s: a spare, is made ready to measure what node %s was to", newcomer->name,
                lost->name);
    journal_note(set->record->journal, "node", "name", newcomer->name);
    node_set_enter(set, newcomer, NODE_IN);
    look_at(set, newcomer);
    int r = run_phases(measurement->watch, newcomer, lost, &why);
    look_at(set, NULL);
    if (is_ending(measurement)) {
        node_set_enter(set, newcomer, NODE_SPARE);
        return failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted");
    }
    if (set->loss.code < 0) {
        *failure = set->loss;
        return set->loss.code;
    }
    if (r < 0)
        r = node_set_take_out(set, newcomer, NODE_OUT_UNFIT, &why, failure);
    if (newcomer->state == NODE_OUT)
        node_set_enter(set, newcomer,
                       NODE_REPLACED); /* it never had a share that another would have to measure */
    return r;
}

/* ---- Bringing in -----------------------------------------------------------------------------------------
 */

static void give_share(struct measurement *measurement, struct run_node *newcomer, struct run_node *lost) {
    struct node_set *set = measurement->set;
    node_set_enter(set, lost, NODE_REPLACED);
    if (measurement->noted && set->experiment->placement != EXPERIMENT_PLACEMENT_JOB)
        node_set_enter(set, newcomer, NODE_LATE);
    node_set_note_replacement(set, lost, newcomer);
    record_note(set->record, "node %s takes the place of node %s, and measures its whole share",
                newcomer->name, lost->name);
    if (measurement->speeds)
        slow_nodes_forget(measurement->speeds, lost->number);
}

int spares_bring_in(struct measurement *measurement, struct failure *failure) {
    struct node_set *set = measurement->set;
    int r = 0;
    while (r == 0 && spares_are_wanted(set)) {
        struct run_node *lost = find(set, NODE_OUT), *newcomer = find(set, NODE_SPARE);
        r = make_ready(measurement, newcomer, lost, failure);
        if (r < 0 || newcomer->out)
            continue;
        give_share(measurement, newcomer, lost);
        r = block_join(measurement, newcomer, failure);
    }
    return r == -EINTR && failure->kind == FAILURE_INTERRUPTED ? 0 : r;
}
