/* Spares: nodes that are connected only when another is lost, made as ready as the others were, and given its
 * whole share. */
#include "engine/run/measure/measurement.h"

#include "engine/run/state/state.h"

#include <errno.h>
#include <string.h>

/* ---- Who for whom ----------------------------------------------------------------------------------------
 */

/* The first spare, or the first node that is out and has units left; NULL: none. */
static struct run_node *find_node(const struct node_set *set, enum node_state state) {
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].state == state &&
            (state == NODE_SPARE || !node_set_has_all_units(set, &set->items[i])))
            return &set->items[i];
    return NULL;
}

bool spares_are_wanted(const struct node_set *set) {
    return find_node(set, NODE_OUT) && find_node(set, NODE_SPARE);
}

/* Has the group and the phases ask JOINING alone; NULL: all nodes that take part. */
static void select_nodes(struct node_set *set, const struct run_node *joining) {
    set->joining = joining;
    for (size_t i = 0; i < set->count; i++)
        node_group_leave_out(set->group, i, !node_set_has(set, i));
}

/* ---- Making it ready -------------------------------------------------------------------------------------
 */

/* Refuses JOINING if its cores differ from those of LOST, whose units it measures. A node that was never
 * inspected has no known cores. */
static int check_cores(const struct run_node *joining, const struct run_node *lost, struct failure *failure) {
    if (!lost->facts)
        return 0;
    bool same = joining->core_count == lost->core_count;
    for (size_t i = 0; same && i < lost->core_count; i++)
        same = joining->cores[i]->index == lost->cores[i]->index;
    if (same)
        return 0;
    return failure_set_kind(failure, FAILURE_EXPERIMENT, -EINVAL,
                            "it has %zu physical cores, and node %s has %zu: expected the same ones",
                            joining->core_count, lost->name, lost->core_count);
}

/* Runs the phases from connect to warm-up on JOINING alone. 0 also when it was taken out meanwhile. */
static int run_phases(struct watch *watch, const struct run_node *joining, const struct run_node *lost,
                      struct failure *failure) {
    static int (*const phases[])(struct node_set * set, struct failure * failure) = {
        node_set_connect, node_set_inspect, node_set_check_fit, node_set_prepare, controls_begin};
    int r = 0;
    for (size_t i = 0; r == 0 && run_node_is_in(joining) && i < sizeof phases / sizeof *phases; i++)
        r = phases[i](watch->set, failure);
    if (r < 0 || !run_node_is_in(joining))
        return r;
    r = check_cores(joining, lost, failure);
    return r < 0 ? r : warm_up_begin(watch, failure);
}

/* Is the run ending, whatever becomes of the joining node? */
static bool is_ending(const struct measurement *measurement) {
    return measurement->ended || measurement->set->record->interrupted ||
           event_loop_is_stopped(measurement->set->loop);
}

/* Makes JOINING ready to measure. 0: it is ready, or was taken out itself; negative: the run cannot continue,
 * or is ending. */
static int prepare_spare(struct measurement *measurement, struct run_node *joining,
                         const struct run_node *lost, struct failure *failure) {
    struct node_set *set = measurement->set;
    struct failure why = {0};
    node_set_report_news(set); /* first that the other is out */
    record_note(set->record, "preparing the spare node %s to measure in place of node %s", joining->name,
                lost->name);
    journal_note(set->record->journal, "node", "name", joining->name);
    node_set_enter(set, joining, NODE_IN);
    select_nodes(set, joining);
    int r = run_phases(measurement->watch, joining, lost, &why);
    select_nodes(set, NULL);
    if (is_ending(measurement)) {
        node_set_enter(set, joining, NODE_SPARE);
        return failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted");
    }
    if (set->loss.code < 0) {
        *failure = set->loss;
        return set->loss.code;
    }
    if (r < 0)
        r = node_set_take_out(set, joining, NODE_OUT_UNFIT, &why, failure);
    if (joining->state == NODE_OUT)
        node_set_enter(set, joining,
                       NODE_REPLACED); /* it never had a share that another would have to measure */
    return r;
}

/* ---- Bringing in -----------------------------------------------------------------------------------------
 */

/* Lets JOINING measure the units of LOST. If blocks have begun it is late, and catches up at the end. */
static void replace_node(struct measurement *measurement, struct run_node *joining, struct run_node *lost) {
    struct node_set *set = measurement->set;
    node_set_enter(set, lost, NODE_REPLACED);
    if (measurement->noted && set->experiment->placement != EXPERIMENT_PLACEMENT_JOB)
        node_set_enter(set, joining, NODE_LATE);
    node_set_note_replacement(set, lost, joining);
    record_note(set->record, "node %s takes the place of node %s and measures all of its units",
                joining->name, lost->name);
    if (measurement->speeds)
        slow_nodes_forget(measurement->speeds, lost->number);
}

/* Replaces lost nodes by spares, one after the other, as long as there are both. */
int spares_bring_in(struct measurement *measurement, struct failure *failure) {
    struct node_set *set = measurement->set;
    int r = 0;
    while (r == 0 && spares_are_wanted(set)) {
        struct run_node *lost = find_node(set, NODE_OUT), *joining = find_node(set, NODE_SPARE);
        r = prepare_spare(measurement, joining, lost, failure);
        if (r < 0 || joining->left_reason)
            continue;
        replace_node(measurement, joining, lost);
        r = block_join(measurement, joining, failure);
    }
    return r == -EINTR && failure->kind == FAILURE_INTERRUPTED ? 0 : r;
}
