/* Units that wait for the samples that say what state they ran under, and what becomes of them. */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/clock.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <math.h>

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
    struct measured_unit held = *unit;
    held.held_ns = clock_monotonic_ns();
    held.shares = lane->shares;
    if (!responses || !run->watch) {
        measurement_write(measurement, lane, &held, &unknown, responses, why);
        return;
    }
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

/* Of all its nodes; the slowest and the hottest of them count. False if it is not known yet; with NOW, by
 * what is known. */
static bool judge(const struct run *run, struct lane *lane, const struct measured_unit *unit, bool now,
                  struct unit_state *ret) {
    int64_t end_ns = unit->end_ns >= 0 ? unit->end_ns : unit->begun_ns;
    if (!now && unit->end_ns < 0)
        return false;
    *ret = (struct unit_state){.frequency_hz = NAN, .temperature = NAN};
    for (size_t i = 0; i < unit->shares; i++) {
        const struct placement_share *share = &lane->at.shares[i];
        int64_t from_ns = placement_time_of(&lane->at, i, unit->begun_ns),
                to_ns = placement_time_of(&lane->at, i, end_ns);
        struct unit_place place = {number_of(run, share->node), share->pus, share->pu_count};
        if (!now && !unit_state_is_known(run, place.node, to_ns))
            return false;
        struct unit_state own = unit_state_judge(run, &place, from_ns, to_ns);
        if (own.flags && !ret->flags)
            ret->off = share->node;
        ret->flags |= own.flags;
        ret->frequency_hz = fmin(ret->frequency_hz, own.frequency_hz); /* of a number and nan, the number */
        ret->temperature = fmax(ret->temperature, own.temperature);
    }
    return true;
}

/* Why the unit is no good, and which node is to blame. */
static struct run_node *blame(const struct run *run, const struct lane *lane,
                              const struct measured_unit *unit, const struct unit_state *state,
                              struct failure *ret) {
    struct run_node *node = state->off ? state->off : lane->at.node;
    char words[768];
    failure_set_kind(ret, FAILURE_EXPERIMENT, -ECANCELED, "unit %zu on node %s, core %s: %s",
                     unit->position + 1, node->name, lane->at.core,
                     unit_state_describe(run, number_of(run, node), state, words, sizeof words));
    return node;
}

/* The gate that has its node taken out. */
static const char *dropping_gate(const struct gate_settings *gates, unsigned flags) {
    unsigned gate = 0;
    while (gate < GATE_UNWATCHED && !(flags >> gate & 1 && gates->actions[gate] == GATE_DROP))
        gate++;
    return gate_kind_names[gate];
}

static void decide(struct measurement *measurement, struct lane *lane, const struct measured_unit *unit,
                   const struct unit_state *state, const double *responses) {
    const struct gate_settings *gates = &measurement->run->campaign->gates;
    measurement_write(measurement, lane, unit, state, responses, NULL);
    enum gate_action action = unit_state_action(gates, state->flags);
    if (measurement->ended || measurement->run->interrupted || !run_node_is_in(lane->at.node))
        return; /* it ends as it is: nothing more is stopped or repeated */
    struct failure why;
    if (action == GATE_STOP) {
        blame(measurement->run, lane, unit, state, &why);
        measurement_fail(measurement, &why);
    } else if (action == GATE_DROP) {
        struct run_node *node = blame(measurement->run, lane, unit, state, &why);
        measurement_lose_node(measurement, node, dropping_gate(gates, state->flags), &why);
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
    const struct measured_unit *unit;
    const double *responses;
    int64_t now_ns = clock_monotonic_ns(), patience_ns = find_patience(run);
    while ((unit = held_units_first(&lane->held, &responses))) {
        struct unit_state state;
        struct measured_unit judged = *unit;
        bool in = run_node_is_in(lane->at.node), known = judge(run, lane, unit, false, &state);
        bool patient = in && measurement->held < HELD_MOST && now_ns - unit->held_ns < patience_ns;
        if (!known && !all && (patient || (unit->end_ns < 0 && in)))
            return;
        if (judged.end_ns < 0)
            judged.end_ns = judged.begun_ns;
        if (!known)
            judge(run, lane, &judged, true, &state);
        decide(measurement, lane, &judged, &state, responses);
        lane->since_ns = judged.end_ns;
        held_units_drop(&lane->held);
        measurement->held--;
        commit_if_much(measurement);
    }
}

void verdict_release_lane(struct measurement *measurement, struct lane *lane) {
    if (measurement->run->watch)
        release_lane(measurement, lane, true);
}

/* What nobody will ask for any more. */
static void forget(const struct run *run, const struct lane *lane, int64_t since_ns) {
    for (size_t i = 0; since_ns != INT64_MIN && i < lane->at.count; i++)
        watch_forget(run->watch, number_of(run, lane->at.shares[i].node),
                     placement_time_of(&lane->at, i, since_ns));
}

void verdict_release(struct measurement *measurement, bool all) {
    const struct run *run = measurement->run;
    if (!run->watch)
        return;
    for (size_t i = 0; i < measurement->lane_count;) {
        const struct lane *first = &measurement->lanes[i];
        int64_t since_ns = INT64_MAX;
        for (; i < measurement->lane_count && measurement->lanes[i].at.node == first->at.node; i++) {
            struct lane *lane = &measurement->lanes[i];
            release_lane(measurement, lane, all);
            since_ns = lane->since_ns < since_ns ? lane->since_ns : since_ns;
        }
        forget(run, first, since_ns);
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
        if (measurement->lanes[i].repeat_count > 0 && run_node_is_in(measurement->lanes[i].at.node))
            return true;
    return false;
}
