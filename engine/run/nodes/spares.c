/* Spares: nodes that are connected only when another is lost, made as ready as the others were, and given its
 * whole share. */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/run/nodes/out.h"
#include "engine/run/record/history.h"

#include <errno.h>
#include <string.h>

/* ---- Who for whom ----------------------------------------------------------------------------------------
 */

static struct run_node *find_lost(const struct run *run) {
    for (size_t i = 0; i < run->node_count; i++)
        if (run->nodes[i].state == NODE_OUT && !run_has_all_units(run, &run->nodes[i]))
            return &run->nodes[i];
    return NULL;
}

static struct run_node *find_spare(const struct run *run) {
    for (size_t i = 0; i < run->node_count; i++)
        if (run->nodes[i].state == NODE_SPARE)
            return &run->nodes[i];
    return NULL;
}

bool spares_are_wanted(const struct run *run) {
    return find_lost(run) && find_spare(run);
}

/* Phases and the group ask the newcomer and nobody else; or, with NULL, all that are in. */
static void look_at(struct run *run, const struct run_node *newcomer) {
    run->newcomer = newcomer;
    for (size_t i = 0; i < run->node_count; i++)
        node_group_leave_out(run->group, i, !run_concerns(run, i));
}

/* ---- Making it ready -------------------------------------------------------------------------------------
 */

/* Its units stand for those of the node that was lost. One that was never looked at had any cores. */
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

static int run_phases(struct run *run, const struct run_node *newcomer, const struct run_node *lost,
                      struct failure *failure) {
    static int (*const acts[])(struct run * run, struct failure * failure) = {
        run_phase_connect, run_phase_inspect, run_phase_prepare, run_phase_control};
    int r = 0;
    for (size_t i = 0; r == 0 && run_node_is_in(newcomer) && i < sizeof acts / sizeof *acts; i++)
        r = acts[i](run, failure);
    if (r < 0 || !run_node_is_in(newcomer))
        return r;
    r = check_cores(newcomer, lost, failure);
    return r < 0 ? r : run_phase_warm_up(run, failure);
}

/* Is the run ending, whatever becomes of the newcomer? */
static bool is_ending(const struct measurement *measurement) {
    return measurement->ended || measurement->run->interrupted ||
           event_loop_is_stopped(measurement->run->loop);
}

/* 0 when it is ready, or out itself; negative when the run cannot go on, or is ending. */
static int make_ready(struct measurement *measurement, struct run_node *newcomer, const struct run_node *lost,
                      struct failure *failure) {
    struct run *run = measurement->run;
    struct failure why = {0};
    run_tell_news(run); /* first that the other is out */
    run_note(run, "node %s: a spare, is made ready to measure what node %s was to", newcomer->name,
             lost->name);
    journal_note(run->journal, "node", "name", newcomer->name);
    run_node_enter(run, newcomer, NODE_IN);
    look_at(run, newcomer);
    int r = run_phases(run, newcomer, lost, &why);
    look_at(run, NULL);
    if (is_ending(measurement)) {
        run_node_enter(run, newcomer, NODE_SPARE);
        return failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted");
    }
    if (run->loss.code < 0) {
        *failure = run->loss;
        return run->loss.code;
    }
    if (r < 0)
        r = run_take_out(run, newcomer, NODE_OUT_UNFIT, &why, failure);
    if (newcomer->state == NODE_OUT)
        run_node_enter(run, newcomer,
                       NODE_REPLACED); /* it never had a share that somebody would measure for it */
    return r;
}

/* ---- Bringing in -----------------------------------------------------------------------------------------
 */

static void give_share(struct measurement *measurement, struct run_node *newcomer, struct run_node *lost) {
    struct run *run = measurement->run;
    run_node_enter(run, lost, NODE_REPLACED);
    if (measurement->noted && run->experiment->placement != EXPERIMENT_PLACEMENT_JOB)
        run_node_enter(run, newcomer, NODE_LATE);
    run_note_entry(run, "node-replaced", lost, "by", newcomer->name);
    run_note(run, "node %s takes the place of node %s, and measures its whole share", newcomer->name,
             lost->name);
    if (measurement->speeds)
        slow_nodes_forget(measurement->speeds, lost->number);
}

int spares_bring_in(struct measurement *measurement, struct failure *failure) {
    struct run *run = measurement->run;
    int r = 0;
    while (r == 0 && spares_are_wanted(run)) {
        struct run_node *lost = find_lost(run), *newcomer = find_spare(run);
        r = make_ready(measurement, newcomer, lost, failure);
        if (r < 0 || newcomer->out)
            continue;
        give_share(measurement, newcomer, lost);
        r = block_join(measurement, newcomer, failure);
    }
    return r == -EINTR && failure->kind == FAILURE_INTERRUPTED ? 0 : r;
}

void spares_recall(struct run *run, const struct run_history *past) {
    for (size_t i = 0; i < past->replacement_count; i++) {
        const struct run_history_replacement *one = &past->replacements[i];
        struct run_node *node = run_find_node(run, one->node), *by = run_find_node(run, one->by);
        if (!node || !by)
            continue; /* the testbed does not give them any more: what is missing is measured by whom it gives
                       */
        run_node_enter(run, by, NODE_IN);
        run_node_enter(run, node, NODE_REPLACED);
        node->out = NODE_OUT_REPLACED;
        run_note_entry(run, "node-replaced", node, "by", by->name);
    }
}
