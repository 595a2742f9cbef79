/* Units that wait for the samples that say what state they ran under, and what becomes of them. */
#include "engine/run/measurement.h"

#include "engine/foundation/clock.h"
#include "engine/run/node-out.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum {
    HELD_MOST = 1 << 20,    /* units of all lanes; of more, the first are judged by what is known */
    PENDING_MOST = 4 << 20, /* bytes */
};
static const int64_t patience_least_ns = 3 * EVENT_SECOND, look_period_ns = 20 * EVENT_MILLISECOND;

static size_t number_of(const struct run *run, const struct run_node *node) {
    return (size_t)(node - run->nodes);
}

void measurement_record(struct measurement *measurement, struct lane *lane, const struct measured_unit *unit,
                        const double *responses, const char *why) {
    static const struct unit_state unknown = {.frequency_hz = NAN, .temperature = NAN};
    struct run *run = measurement->run;
    if (!responses || !run->watch) {
        measurement_write(measurement, lane, unit, &unknown, responses, why);
        return;
    }
    struct measured_unit held = *unit;
    held.held_ns = clock_monotonic_ns();
    if (held_units_add(&lane->held, &held, responses, run->experiment->response_count) == 0) {
        measurement->held++;
        return;
    }
    struct failure failure;
    failure_memory(&failure);
    measurement_fail(measurement, &failure);
}

/* ---- Judging ---------------------------------------------------------------------------------------------
 */

static void stop(struct measurement *measurement, const struct lane *lane, const struct measured_unit *unit,
                 const struct unit_state *state) {
    struct failure failure;
    char words[768];
    failure_set_kind(&failure, FAILURE_EXPERIMENT, -ECANCELED, "unit %zu on node %s, core %s: %s",
                     unit->position + 1, lane->node->name, lane->core,
                     unit_state_describe(measurement->run, number_of(measurement->run, lane->node), state,
                                         words, sizeof words));
    measurement_fail(measurement, &failure);
}

/* The gate that has its node taken out. */
static const char *dropping_gate(const struct gate_settings *gates, unsigned flags) {
    unsigned gate = 0;
    while (gate < GATE_UNWATCHED && !(flags >> gate & 1 && gates->actions[gate] == GATE_DROP))
        gate++;
    return gate_kind_names[gate];
}

static void drop(struct measurement *measurement, const struct lane *lane, const struct measured_unit *unit,
                 const struct unit_state *state) {
    struct failure failure;
    char words[768];
    struct run *run = measurement->run;
    failure_set_kind(&failure, FAILURE_EXPERIMENT, -ECANCELED, "unit %zu on core %s: %s", unit->position + 1,
                     lane->core,
                     unit_state_describe(run, number_of(run, lane->node), state, words, sizeof words));
    measurement_lose_node(measurement, lane->node, dropping_gate(&run->campaign->gates, state->flags),
                          &failure);
}

static void decide(struct measurement *measurement, struct lane *lane, const struct measured_unit *unit,
                   const struct unit_state *state, const double *responses) {
    const struct gate_settings *gates = &measurement->run->campaign->gates;
    measurement_write(measurement, lane, unit, state, responses, NULL);
    enum gate_action action = unit_state_action(gates, state->flags);
    if (measurement->ended || measurement->run->interrupted || !run_node_is_in(lane->node))
        return; /* it ends as it is: nothing more is stopped or repeated */
    if (action == GATE_STOP) {
        stop(measurement, lane, unit, state);
    } else if (action == GATE_DROP) {
        drop(measurement, lane, unit, state);
    } else if (action == GATE_REPEAT && (int64_t)unit->attempt <= gates->repeats &&
               lane_add_repeat(lane, unit->position) < 0) {
        struct failure failure;
        failure_memory(&failure);
        measurement_fail(measurement, &failure);
    }
}

/* Many units are released at once, when their samples come: what is written of them does not wait in memory
 * for the next commit. */
static void commit_if_much(struct measurement *measurement) {
    struct failure failure = {0};
    if (measurement->run->results->pending.length >= PENDING_MOST &&
        run_commit(measurement->run, &failure) < 0)
        measurement_fail(measurement, &failure);
}

/* How long a unit that has ended waits for a sampler that may have fallen silent. */
static int64_t find_patience(const struct run *run) {
    int64_t longest = 0;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        if (run->campaign->probes.periods_ns[kind] > longest)
            longest = run->campaign->probes.periods_ns[kind];
    return 3 * longest + patience_least_ns;
}

static void release_lane(struct measurement *measurement, struct lane *lane, bool all) {
    const struct run *run = measurement->run;
    struct unit_place place = {number_of(run, lane->node), lane->pus, lane->pu_count};
    const struct measured_unit *unit;
    const double *responses;
    int64_t now_ns = clock_monotonic_ns(), patience_ns = find_patience(run);
    while ((unit = held_units_first(&lane->held, &responses))) {
        struct unit_state state;
        struct measured_unit judged = *unit;
        bool known = unit->end_ns >= 0 &&
                     unit_state_remember(run, &place, &lane->memory, unit->begun_ns, unit->end_ns, &state);
        bool patient = run_node_is_in(lane->node) && measurement->held < HELD_MOST &&
                       now_ns - unit->held_ns < patience_ns;
        if (!known && !all && (patient || (unit->end_ns < 0 && run_node_is_in(lane->node))))
            return;
        if (judged.end_ns < 0)
            judged.end_ns = judged.begun_ns;
        if (!known)
            state = unit_state_judge(run, &place, judged.begun_ns, judged.end_ns);
        decide(measurement, lane, &judged, &state, responses);
        lane->since_ns = judged.end_ns;
        held_units_drop(&lane->held);
        measurement->held--;
        commit_if_much(measurement);
    }
}

void verdict_release(struct measurement *measurement, bool all) {
    const struct run *run = measurement->run;
    if (!run->watch)
        return;
    for (size_t i = 0; i < measurement->lane_count;) {
        const struct run_node *node = measurement->lanes[i].node;
        int64_t since_ns = INT64_MAX;
        for (; i < measurement->lane_count && measurement->lanes[i].node == node; i++) {
            struct lane *lane = &measurement->lanes[i];
            release_lane(measurement, lane, all);
            since_ns = lane->since_ns < since_ns ? lane->since_ns : since_ns;
        }
        /* What nobody will ask for any more is forgotten. */
        if (since_ns != INT64_MIN)
            watch_forget(run->watch, number_of(run, node), since_ns);
    }
}

/* ---- The end of a pass -----------------------------------------------------------------------------------
 */

bool verdict_settle(struct measurement *measurement) {
    struct run *run = measurement->run;
    int64_t deadline = clock_monotonic_ns() + find_patience(run), left;
    bool over = measurement->ended || run->interrupted;
    verdict_release(measurement, false);
    while (measurement->held > 0 && !over && (left = deadline - clock_monotonic_ns()) > 0 &&
           !event_loop_is_stopped(run->loop)) {
        if (event_loop_run_once(run->loop, left < look_period_ns ? left : look_period_ns, NULL) < 0)
            break;
        int64_t now_ns = clock_monotonic_ns();
        if (now_ns - measurement->looked_ns >= look_period_ns) {
            measurement->looked_ns = now_ns;
            verdict_release(measurement, false);
        }
        over = measurement->ended || run->interrupted;
    }
    /* The last sample is taken at once when a sampler is told to end. */
    if (over && measurement->held > 0) {
        event_loop_resume(run->loop);
        (void)watch_stop(run, NULL);
    }
    verdict_release(measurement, true);
    for (size_t i = 0; i < measurement->lane_count; i++)
        if (measurement->lanes[i].repeat_count > 0 && run_node_is_in(measurement->lanes[i].node))
            return true;
    return false;
}
