/* Units that have ended. Each waits in its lane until samples say what state it ran under; then it is judged
 * by the campaign's gates, and gets its line in results.csv, or its entry in the journal. */
#include "engine/run/measure/measurement.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/nodes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 4 << 20 }; /* bytes of results that wait for the next commit */
static const int64_t sample_timeout_min_ns = 3 * EVENT_SECOND, check_period_ns = 20 * EVENT_MILLISECOND;

/* ---- Lines -----------------------------------------------------------------------------------------------
 */

static void append_response(const struct measurement *measurement, int type, double value,
                            struct text *text) {
    const char *label = type == COLUMN_STRING ? measurement->texts.texts[(size_t)value] : NULL;
    if (label)
        csv_append_field(text, false, label, strlen(label));
    else
        csv_append_double(text, false, value);
}

/* Appends the unit's line to results.csv. Negative: it does not fit into memory; nothing was appended. */
static int append_unit(struct measurement *measurement, const struct lane *lane,
                       const struct measured_unit *unit, const struct unit_state *state, const char *nodes) {
    struct node_set *set = measurement->set;
    const struct plan *plan = set->plan;
    size_t row = design_order_row(plan->order, unit->position);
    struct text *text = &set->record->results->pending;
    char flags[128];
    unit_state_flags(state->flags, flags, sizeof flags);
    const struct results_row line = {
        .row = (int64_t)row + 1,
        .repetition = (int64_t)design_order_repetition(plan->order, unit->position) + 1,
        .order = (int64_t)unit->position + 1,
        .block = (int64_t)measurement->progress->block_number,
        .attempt = unit->attempt,
        .node = {nodes, strlen(nodes)},
        .core = {lane->at.core, strlen(lane->at.core)},
        .start_ns = unit->start.wall_ns,
        .start_monotonic_ns = unit->start.monotonic_ns,
        .frequency_hz = round(state->frequency_hz),
        .temperature = state->temperature,
        .flags = {flags, strlen(flags)},
    };
    struct text_mark mark = text_mark(text);
    results_row_append(text, &line, RESULTS_ROW, RESULTS_FACTORS);
    plan_append_row(plan, row, text);
    for (size_t i = 0; i < set->experiment->response_count; i++)
        append_response(measurement, set->experiment->responses[i].about.type, unit->responses[i], text);
    results_row_append(text, &line, RESULTS_FREQUENCY, RESULTS_COLUMNS);
    text_append_character(text, '\n');
    return text_keep(text, mark);
}

/* Journals why a unit failed, or that its output was cut. Other units are in the results only. */
static void journal_unit(const struct lane *lane, const struct measured_unit *unit, const char *nodes) {
    const struct measurement *measurement = lane->measurement;
    const struct node_set *set = measurement->set;
    struct journal *journal = set->record->journal;
    const struct design_order *order = set->plan->order;
    bool cut = unit->output_bytes > LANE_OUTPUT_MAX || unit->error_bytes > LANE_ERRORS_MAX;
    if (unit->responses && !cut)
        return;
    journal_begin(journal, unit->responses ? "output-cut" : "unit-failed");
    journal_integer(journal, "order", (int64_t)unit->position + 1);
    journal_integer(journal, "attempt", unit->attempt);
    journal_string(journal, "node", ledger_place_node(set->record->ledger, lane->at.place));
    journal_string(journal, "core", lane->at.core);
    if (!unit->responses)
        journal_string(journal, "sentence", unit->why);
    journal_integer(journal, "row", (int64_t)design_order_row(order, unit->position) + 1);
    journal_integer(journal, "repetition", (int64_t)design_order_repetition(order, unit->position) + 1);
    journal_integer(journal, "block", (int64_t)measurement->progress->block_number);
    if (set->experiment->placement == EXPERIMENT_PLACEMENT_JOB)
        journal_string(journal, "nodes", nodes);
    if (unit->output_bytes > LANE_OUTPUT_MAX)
        journal_integer(journal, "output_bytes", (int64_t)unit->output_bytes);
    if (unit->error_bytes > LANE_ERRORS_MAX)
        journal_integer(journal, "error_bytes", (int64_t)unit->error_bytes);
    journal_end(journal);
}

/* Counts the unit in the ledger, in the rule that settles rows, and in the speeds of nodes. */
static void count_unit(struct measurement *measurement, const struct lane *lane,
                       const struct measured_unit *unit, unsigned flags) {
    struct node_set *set = measurement->set;
    size_t place = lane->at.place, row = design_order_row(set->plan->order, unit->position);
    bool done = unit->responses != NULL;
    struct failure failure;
    if (!ledger_is_done(set->record->ledger, place, unit->position)) {
        measurement->failed_in_part += !done;
    }
    struct ledger_attempt attempt = {place, unit->position, unit->attempt, done, flags};
    ledger_add_attempt(set->record->ledger, &attempt);
    if (done &&
        settling_add(&measurement->progress->settling, place, unit->position, unit->responses, &failure) < 0)
        measurement_fail(measurement, &failure);
    if (done && measurement->speeds && unit->begun_ns >= 0 && unit->end_ns >= 0)
        slow_nodes_add(measurement->speeds, lane->at.node->number, row,
                       (double)(unit->end_ns - unit->begun_ns) * 1e-9);
}

/* Writes, journals and counts one unit. A failure to do so fails the measurement. */
static void write_unit(struct measurement *measurement, const struct lane *lane,
                       const struct measured_unit *unit, const struct unit_state *state) {
    struct node_set *set = measurement->set;
    struct text *pending = &set->record->results->pending;
    cleanup_free char *nodes = lane_name_nodes(lane, unit->node_count);
    struct failure failure = {0};
    if (unit->responses && append_unit(measurement, lane, unit, state, nodes) < 0) {
        failure_set(&failure, -ENOMEM,
                    "cannot keep the results of %zu units in memory until they are written",
                    (size_t)(set->record->units->done + 1));
        measurement_fail(measurement, &failure);
        return;
    }
    journal_unit(lane, unit, nodes);
    count_unit(measurement, lane, unit, state->flags);
    /* Many units are released at once, when their samples come. */
    if (pending->length >= PENDING_MAX && record_commit(set->record, &failure) < 0)
        measurement_fail(measurement, &failure);
}

/* ---- Units that wait -------------------------------------------------------------------------------------
 */

/* Adds a unit that has ended. It is pending until its samples have come; a failed unit, or one without
 * samples, is written at once. */
void results_add(struct lane *lane, const struct measured_unit *unit) {
    static const struct unit_state unknown = {.frequency_hz = NAN, .temperature = NAN};
    struct measurement *measurement = lane->measurement;
    const struct node_set *set = measurement->set;
    struct measured_unit ended = *unit;
    ended.attempt = ledger_attempts(set->record->ledger, lane->at.place, unit->position) + 1;
    ended.node_count = lane->shares;
    int64_t now_ns = clock_monotonic_ns();
    if (!ledger_is_done(set->record->ledger, lane->at.place, unit->position))
        unit_times_end(measurement->times, design_order_row(set->plan->order, unit->position),
                       unit->responses ? (double)(now_ns - lane->turn_ns) * 1e-9 : -1);
    lane->turn_ns = now_ns;
    if (!unit->responses || !measurement->watch->nodes) {
        write_unit(measurement, lane, &ended, &unknown);
        return;
    }
    size_t bytes = set->experiment->response_count * sizeof *ended.responses;
    struct pending_unit *added = xmalloc(sizeof *added + bytes);
    *added = (struct pending_unit){.unit = ended, .since_ns = now_ns};
    memcpy(added->responses, unit->responses, bytes);
    added->unit.responses = added->responses;
    *(lane->pending ? &lane->last_pending->next : &lane->pending) = added;
    lane->last_pending = added;
}

void results_end_last(struct lane *lane, int64_t end_ns) {
    struct measured_unit *unit = lane->pending ? &lane->last_pending->unit : NULL;
    if (unit && unit->end_ns < 0)
        unit->end_ns = end_ns > unit->begun_ns ? end_ns : unit->begun_ns;
}

static void free_first_pending(struct lane *lane) {
    struct pending_unit *first = lane->pending;
    lane->pending = first->next;
    free(first);
}

void results_drop(struct lane *lane) {
    while (lane->pending)
        free_first_pending(lane);
}

/* The state of a unit on all its nodes: the slowest and the hottest of them, and the flags of all. False:
 * samples are missing. NOW: those that there are decide. */
static bool decide_state(const struct lane *lane, const struct measured_unit *unit, bool now,
                         struct unit_state *ret) {
    int64_t end_ns = unit->end_ns >= 0 ? unit->end_ns : unit->begun_ns;
    *ret = (struct unit_state){.frequency_hz = NAN, .temperature = NAN};
    if (!now && unit->end_ns < 0)
        return false;
    for (size_t i = 0; i < unit->node_count; i++) {
        const struct placement_share *share = &lane->at.shares[i];
        int64_t from_ns = placement_time_of(&lane->at, i, unit->begun_ns),
                to_ns = placement_time_of(&lane->at, i, end_ns);
        if (!now && !unit_state_is_known(lane->measurement->watch, share->node->number, to_ns))
            return false;
        struct unit_state own = unit_state_of_span(lane->measurement->watch, share, from_ns, to_ns);
        if (own.flags && !ret->flags)
            ret->off = share->node;
        ret->flags |= own.flags;
        ret->frequency_hz = fmin(ret->frequency_hz, own.frequency_hz); /* of a number and nan, the number */
        ret->temperature = fmax(ret->temperature, own.temperature);
    }
    return true;
}

/* The name of the gate among FLAGS whose action is to take nodes out. */
static const char *dropping_gate(const struct gate_settings *gates, unsigned flags) {
    unsigned gate = 0;
    while (gate < GATE_UNWATCHED && !(flags >> gate & 1 && gates->actions[gate] == GATE_DROP))
        gate++;
    return gate_kind_names[gate];
}

/* Does what the gates want about a unit that was written: repeats it, stops the run, or takes its node out.
 */
static void apply_gates(struct lane *lane, const struct measured_unit *unit, const struct unit_state *state) {
    struct measurement *measurement = lane->measurement;
    struct node_set *set = measurement->set;
    const struct gate_settings *gates = &set->campaign->gates;
    enum gate_action action = unit_state_action(gates, state->flags);
    if (measurement->ended || set->record->interrupted || !run_node_is_in(lane->at.node))
        return; /* the run is ending: nothing more is stopped or repeated */
    if (action == GATE_REPEAT && (int64_t)unit->attempt <= gates->repeats)
        lane_add_repeat(lane, unit->position);
    if (action != GATE_STOP && action != GATE_DROP)
        return;
    struct run_node *node = state->off ? state->off : lane->at.node;
    struct failure why;
    char words[768];
    failure_set_kind(&why, FAILURE_EXPERIMENT, -ECANCELED, "unit %zu on node %s, core %s: %s",
                     unit->position + 1, node->name, lane->at.core,
                     unit_state_describe(measurement->watch, node->number, state, words, sizeof words));
    if (action == GATE_STOP)
        measurement_fail(measurement, &why);
    else
        measurement_lose_node(measurement, node, dropping_gate(gates, state->flags), &why);
}

/* How long a unit that has ended waits for samples: three of the longest period, and a margin. */
static int64_t sample_timeout_ns(const struct node_set *set) {
    int64_t longest = 0;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        if (set->campaign->probes.periods_ns[kind] > longest)
            longest = set->campaign->probes.periods_ns[kind];
    return 3 * longest + sample_timeout_min_ns;
}

/* Writes the lane's pending units, in order. One is written without its samples when its node is out or
 * sample_timeout_ns() has passed. */
void results_release_lane(struct lane *lane, bool all) {
    const struct node_set *set = lane->measurement->set;
    int64_t now_ns = clock_monotonic_ns(), timeout_ns = sample_timeout_ns(set);
    while (lane->pending) {
        struct measured_unit *unit = &lane->pending->unit;
        struct unit_state state;
        bool is_awaited = run_node_is_in(lane->at.node) &&
                          (unit->end_ns < 0 || now_ns - lane->pending->since_ns < timeout_ns);
        if (!decide_state(lane, unit, all || !is_awaited, &state))
            return;
        if (unit->end_ns < 0)
            unit->end_ns = unit->begun_ns;
        write_unit(lane->measurement, lane, unit, &state);
        apply_gates(lane, unit, &state);
        lane->since_ns = unit->end_ns;
        free_first_pending(lane);
    }
}

/* Writes pending units of all lanes; true: some are still pending. Samples from before the first pending unit
 * are then forgotten. */
bool results_release(struct measurement *measurement, bool all) {
    bool any = false;
    for (size_t i = 0; measurement->watch->nodes && i < measurement->lane_count;) {
        const struct lane *first = &measurement->lanes[i];
        int64_t since_ns = INT64_MAX;
        bool released = false;
        for (; i < measurement->lane_count && measurement->lanes[i].at.node == first->at.node; i++) {
            struct lane *lane = &measurement->lanes[i];
            int64_t before_ns = lane->since_ns;
            results_release_lane(lane, all);
            released |= lane->since_ns != before_ns;
            any |= lane->pending != NULL;
            since_ns = lane->since_ns < since_ns ? lane->since_ns : since_ns;
        }
        /* No unit that is still to be judged began before that. */
        for (size_t k = 0; released && since_ns != INT64_MIN && k < first->at.count; k++)
            watch_forget(measurement->watch, first->at.shares[k].node->number,
                         placement_time_of(&first->at, k, since_ns));
    }
    return any;
}

/* Waits for the samples of pending units, then writes all. When the run is ending, the samplers are stopped:
 * each takes a last sample at once. */
void results_wait(struct measurement *measurement) {
    struct node_set *set = measurement->set;
    int64_t checked_ns = clock_monotonic_ns(), deadline_ns = checked_ns + sample_timeout_ns(set), now_ns;
    bool any_pending = results_release(measurement, false);
    while (any_pending && !measurement_is_over(measurement) &&
           (now_ns = clock_monotonic_ns()) < deadline_ns && !event_loop_is_stopped(set->loop)) {
        if (now_ns - checked_ns >= check_period_ns) {
            checked_ns = now_ns;
            any_pending = results_release(measurement, false);
        } else if (event_loop_run_once(set->loop, checked_ns + check_period_ns - now_ns, NULL) < 0) {
            break;
        }
    }
    /* The last sample is taken at once when a sampler is asked to end. */
    if (any_pending && measurement_is_over(measurement)) {
        event_loop_resume(set->loop);
        (void)watch_stop(measurement->watch, NULL);
    }
    (void)results_release(measurement, true);
}
