/* How lanes end before their time: units that fail, and nodes that are lost. */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Has a unit been done on another node? Then it is not the experiment that is broken. */
static bool works_elsewhere(const struct run *run, const struct run_node *node) {
    if (run->experiment->placement == EXPERIMENT_PLACEMENT_JOB)
        return false;
    for (size_t place = 0; place < ledger_place_count(run->ledger); place++)
        if (strcmp(ledger_place_node(run->ledger, place), node->name) != 0 &&
            ledger_count_done(run->ledger, place, 0, plan_positions(run->plan)) > 0)
            return true;
    return false;
}

/* The experiment is taken to be broken, or the node, where others go on without it. */
static void stop_failing(struct lane *lane, const char *why) {
    struct run *run = lane->measurement->run;
    struct failure failure;
    failure_set_kind(&failure, FAILURE_EXPERIMENT, -EIO, "%u units in a row failed; the last: %s",
                     lane->failures_in_a_row, why);
    if (run->campaign->node_loss.action != NODE_LOSS_ABORT && works_elsewhere(run, lane->at.node))
        measurement_lose_node(lane->measurement, lane->at.node, NODE_OUT_FAILING, &failure);
    else
        measurement_fail(lane->measurement, &failure);
}

void lane_note_failure(struct lane *lane, size_t position, const char *why) {
    struct run *run = lane->measurement->run;
    lane->failures_in_a_row++;
    run_note(run, "unit %zu on node %s failed: %s", position + 1, lane->at.node->name, why);
    if (!run->first_unit_failure[0])
        snprintf(run->first_unit_failure, sizeof run->first_unit_failure, "unit %zu on node %s: %s",
                 position + 1, lane->at.node->name, why);
    int64_t most = run->campaign->stop_after_failures;
    if (most > 0 && lane->failures_in_a_row >= most)
        stop_failing(lane, why);
}

/* Whatever of a unit is under way: its files, its command, its ranks, or the sweep after it. */
static void end_unit(struct measurement *measurement, struct lane *lane) {
    remote_command_free(take_pointer(lane->command));
    lane_forget_files(lane);
    if (measurement->job)
        job_end_unit(lane, false, NULL);
}

/* What it will not measure in this pass is nothing to wait for. */
static void give_up(struct measurement *measurement, struct lane *lane) {
    for (size_t k = lane->next; k < lane->count; k++)
        measurement->weight_total -= plan_weight(measurement->run->plan, lane_position(lane, k));
    end_unit(measurement, lane);
    measurement_lane_over(measurement, lane);
}

void measurement_lose_node(struct measurement *measurement, struct run_node *node, const char *word,
                           const struct failure *why) {
    struct run *run = measurement->run;
    struct failure ending;
    bool was_in = run_node_is_in(node), interrupted = false;
    if (run_take_out(run, node, word, why, &ending) < 0)
        measurement_fail(measurement, &ending);
    for (size_t i = 0; was_in && i < measurement->lane_count; i++) {
        struct lane *lane = &measurement->lanes[i];
        if (lane->finished || !placement_has(&lane->at, node))
            continue;
        if (run->experiment->placement == EXPERIMENT_PLACEMENT_JOB) {
            end_unit(measurement, lane);
            interrupted = true;
        } else {
            give_up(measurement, lane);
        }
    }
    /* A spare is brought in outside of callbacks, and there the job's unit begins again, with the nodes that
     * are left. */
    if ((interrupted || spares_are_wanted(run)) && !run->newcomer && !measurement->trying)
        event_loop_stop(run->loop);
}

bool lane_is_lost(struct lane *lane, const struct failure *why) {
    struct measurement *measurement = lane->measurement;
    enum agent_link_state state = agent_link_state(lane->at.node->link);
    if (!why || why->kind == FAILURE_EXPERIMENT || state == AGENT_LINK_READY || state == AGENT_LINK_BROKEN)
        return false;
    measurement_lose_node(measurement, lane->at.node, NODE_OUT_LOST, why);
    return true;
}

void lane_hang(struct lane *lane, const char *what) {
    struct failure why;
    failure_set_kind(&why, FAILURE_EXPERIMENT, -ETIMEDOUT, "on core %s, %s could not be ended", lane->at.core,
                     what);
    measurement_lose_node(lane->measurement, lane->at.node, NODE_OUT_HUNG, &why);
}
