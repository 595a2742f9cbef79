/* How lanes end before their time: units that fail, and nodes that are lost. */
#include "engine/run/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/run/node-out.h"

#include <errno.h>
#include <stdio.h>

enum { FAILURES_IN_A_ROW_MOST = 3 }; /* then the lane's experiment is taken to be broken */

void lane_note_failure(struct lane *lane, size_t position, const char *why) {
    struct run *run = lane->measurement->run;
    lane->failures_in_a_row++;
    run_note(run, "unit %zu on node %s failed: %s", position + 1, lane->node->name, why);
    if (!run->first_unit_failure[0])
        snprintf(run->first_unit_failure, sizeof run->first_unit_failure, "unit %zu on node %s: %s",
                 position + 1, lane->node->name, why);
    if (lane->failures_in_a_row >= FAILURES_IN_A_ROW_MOST) {
        struct failure failure;
        failure_set_kind(&failure, FAILURE_EXPERIMENT, -EIO, "%d units in a row failed; the last: %s",
                         FAILURES_IN_A_ROW_MOST, why);
        measurement_fail(lane->measurement, &failure);
    }
}

/* What it will not measure in this pass is nothing to wait for. */
static void give_up(struct measurement *measurement, struct lane *lane) {
    for (size_t k = lane->next; k < lane->count; k++)
        measurement->weight_total -= plan_weight(measurement->run->plan, lane_position(lane, k));
    remote_command_free(take_pointer(lane->command));
    measurement_lane_over(measurement, lane);
}

void measurement_lose_node(struct measurement *measurement, struct run_node *node, const char *word,
                           const struct failure *why) {
    struct failure ending;
    if (run_take_out(measurement->run, node, word, why, &ending) < 0)
        measurement_fail(measurement, &ending);
    for (size_t i = 0; i < measurement->lane_count; i++)
        if (measurement->lanes[i].node == node && !measurement->lanes[i].finished)
            give_up(measurement, &measurement->lanes[i]);
    if (spares_are_wanted(measurement->run) && !measurement->run->newcomer)
        event_loop_stop(measurement->run->loop); /* a spare is brought in outside of callbacks */
}

bool lane_is_lost(struct lane *lane, const struct failure *why) {
    struct measurement *measurement = lane->measurement;
    enum agent_link_state state = agent_link_state(lane->node->link);
    if (!why || why->kind == FAILURE_EXPERIMENT || state == AGENT_LINK_READY || state == AGENT_LINK_BROKEN)
        return false;
    measurement_lose_node(measurement, lane->node, NODE_OUT_LOST, why);
    return true;
}

void lane_hang(struct lane *lane, const char *what) {
    struct failure why;
    failure_set_kind(&why, FAILURE_EXPERIMENT, -ETIMEDOUT, "on core %s, %s could not be ended", lane->core,
                     what);
    measurement_lose_node(lane->measurement, lane->node, NODE_OUT_HUNG, &why);
}
