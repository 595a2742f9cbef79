#include "engine/run/state/unit-state.h"

#include "engine/run/nodes/placement.h"
#include "engine/run/state/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_needed_by_gates(const struct node_set *set, enum probe_kind kind) {
    for (unsigned gate = 0; gate < GATE_UNWATCHED; gate++)
        if (gate_probe((enum gate_kind)gate) == kind && set->campaign->gates.actions[gate] != GATE_NONE)
            return true;
    return false;
}

/* Have all samples come that the state at END_NS needs? The load probe may never have a value that gates use;
 * it is then not waited for. */
bool unit_state_is_known(const struct watch *watch, size_t node, int64_t end_ns) {
    if (!watch_is_live(watch, node))
        return true;
    for (unsigned i = 0; i < PROBE_KINDS; i++) {
        enum probe_kind kind = (enum probe_kind)i;
        const struct watch_probe *probe = watch_probe(watch, node, kind);
        bool is_slow = watch->set->campaign->probes.periods_ns[kind] > UNIT_STATE_SAMPLE_TIMEOUT_NS;
        if (!probe || (is_slow && !is_needed_by_gates(watch->set, kind)))
            continue;
        size_t count = probe->history.count;
        /* A node may never know which program the load comes from. */
        if (count == 0 && kind == PROBE_LOAD)
            continue;
        if (count == 0 || history_time(&probe->history, count - 1) < end_ns)
            return false;
    }
    return true;
}

/* ---- What one probe says ---------------------------------------------------------------------------------
 */

/* A unit, and the samples of one probe around it. */
struct view {
    const struct watch *watch;
    const struct placement_share *place;
    int64_t start_ns, end_ns;
    const struct unit_state *state;
    const struct watch_probe *probe;
    struct history_span span;
};

/* False when the node does not have the probe, or nothing is known of it yet. */
static bool load_samples(struct view *view, enum probe_kind kind) {
    view->probe = watch_probe(view->watch, view->place->node->number, kind);
    return view->probe && history_span(&view->probe->history, view->start_ns, view->end_ns, &view->span);
}

/* The last that is known of COLUMN at or before ROW; nan if nothing is. Probes that are expensive to read
 * leave values out. */
static double last_known(const struct history *history, size_t row, size_t column) {
    for (size_t i = row + 1; i-- > 0;)
        if (!isnan(history_row(history, i)[column]))
            return history_row(history, i)[column];
    return NAN;
}

/* Has any of the counters moved? One that is not known at either side has not. */
static bool counters_moved(const struct view *view) {
    const struct history *history = &view->probe->history;
    for (size_t i = 0; i < history->columns; i++)
        if (last_known(history, view->span.last, i) > last_known(history, view->span.first, i))
            return true;
    return false;
}

/* The greatest value of the column NAME after the span's first row; a row is about the time before
 * it. */
static double greatest(const struct view *view, const char *name) {
    const struct history *history = &view->probe->history;
    const struct history_span *span = &view->span;
    size_t column = watch_column(view->probe, name);
    double most = NAN;
    if (column == SIZE_MAX)
        return NAN;
    for (size_t row = span->first < span->last ? span->first + 1 : span->first; row <= span->last; row++)
        most = fmax(most, history_row(history, row)[column]); /* of a number and nan, the number */
    return isnan(most) ? last_known(history, span->last, column) : most;
}

/* The mean over the unit's PUs of one row; nan if none of them is known. */
static double frequency_of_row(const struct view *view, size_t row) {
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < view->place->pu_count; i++) {
        size_t column = watch_pu_column(view->probe, view->place->pus[i]);
        double value = column == SIZE_MAX ? NAN : history_row(&view->probe->history, row)[column];
        if (!isnan(value)) {
            sum += value;
            known++;
        }
    }
    return known ? sum / (double)known : NAN;
}

/* The mean over the samples within the unit. If there are none, the faster of the samples around it: at the
 * other one the PUs may have been idle. */
static double frequency_within(const struct view *view) {
    double sum = 0, fastest = NAN;
    size_t count = 0;
    for (size_t row = view->span.first; row <= view->span.last; row++) {
        double value = frequency_of_row(view, row);
        int64_t time = history_time(&view->probe->history, row);
        fastest = fmax(fastest, value);
        if (!isnan(value) && time >= view->start_ns && time <= view->end_ns) {
            sum += value;
            count++;
        }
    }
    return count ? sum / (double)count : fastest;
}

/* The temperature of the hottest package at the last row of the span. */
static double temperature_at_end(const struct view *view) {
    const double *row = history_row(&view->probe->history, view->span.last);
    double most = NAN;
    for (size_t i = 0; i < view->probe->history.columns; i++)
        if (watch_is_package(view->probe, i))
            most = fmax(most, row[i]);
    return most;
}

/* ---- The gates -------------------------------------------------------------------------------------------
 */

static bool is_off_frequency(const struct view *view) {
    const struct node_control_record *control = &view->place->node->control;
    double tolerance = view->watch->set->campaign->gates.frequency_tolerance, hz = view->state->frequency_hz;
    return (control->target_min_hz > 0 && hz < control->target_min_hz * (1 - tolerance)) ||
           (control->target_max_hz > 0 && hz > control->target_max_hz * (1 + tolerance));
}

static bool is_off_temperature(const struct view *view) {
    double warm = view->place->node->warm_temperature;
    return fabs(view->state->temperature - warm) > view->watch->set->campaign->gates.temperature_band;
}

static bool is_drifted(const struct view *view) {
    return greatest(view, WATCH_DRIFTED) > 0;
}

static bool is_loaded(const struct view *view) {
    return greatest(view, WATCH_FOREIGN) > view->watch->set->campaign->gates.foreign_load;
}

/* By what gate_probe() says: is it as the gate is to notice? */
static bool (*const gates[GATE_UNWATCHED])(const struct view *view) = {
    [GATE_THROTTLE] = counters_moved,
    [GATE_FREQUENCY] = is_off_frequency,
    [GATE_TEMPERATURE] = is_off_temperature,
    [GATE_DRIFT] = is_drifted,
    [GATE_LOAD] = is_loaded,
    [GATE_KERNEL] = counters_moved,
};

/* Do the samples of all probes that gates look at, and that the node has, cover the whole unit? A node that
 * has none of these probes counts as watched if any probe covers the unit. */
static bool is_watched(struct view *view) {
    size_t gated = 0, any = 0;
    for (unsigned i = 0; i < PROBE_KINDS; i++) {
        enum probe_kind kind = (enum probe_kind)i;
        bool covered = load_samples(view, kind) && view->span.before && view->span.after;
        any += covered;
        if (!view->probe || !is_needed_by_gates(view->watch->set, kind) || kind == PROBE_LOAD)
            continue;
        gated++;
        if (!covered)
            return false;
    }
    return gated > 0 || any > 0;
}

/* Evaluates the gates that are on, for the time from START_NS to END_NS on PLACE, on probes with samples. */
struct unit_state unit_state_of_span(const struct watch *watch, const struct placement_share *place,
                                     int64_t start_ns, int64_t end_ns) {
    struct unit_state state = {.frequency_hz = NAN, .temperature = NAN};
    const enum gate_action *actions = watch->set->campaign->gates.actions;
    struct view view = {
        .watch = watch, .place = place, .start_ns = start_ns, .end_ns = end_ns, .state = &state};
    if (!watch->nodes)
        return state;
    if (load_samples(&view, PROBE_FREQUENCY))
        state.frequency_hz = frequency_within(&view);
    if (load_samples(&view, PROBE_TEMPERATURE))
        state.temperature = temperature_at_end(&view);
    for (unsigned gate = 0; gate < GATE_UNWATCHED; gate++)
        if (actions[gate] != GATE_NONE && load_samples(&view, gate_probe((enum gate_kind)gate)) &&
            gates[gate](&view))
            state.flags |= 1u << gate;
    if (actions[GATE_UNWATCHED] != GATE_NONE && !is_watched(&view))
        state.flags |= 1u << GATE_UNWATCHED;
    return state;
}

const char *unit_state_flags(unsigned flags, char *buffer, size_t size) {
    size_t length = 0;
    buffer[0] = '\0';
    for (size_t gate = 0; gate < GATE_KINDS; gate++)
        if (flags & 1u << gate && length < size)
            length += (size_t)snprintf(buffer + length, size - length, "%s%s", length ? ";" : "",
                                       gate_kind_names[gate]);
    return buffer;
}

unsigned unit_state_parse_flags(const char *text) {
    unsigned flags = 0;
    while (*text) {
        size_t length = strcspn(text, ";");
        for (unsigned gate = 0; gate < GATE_KINDS; gate++)
            if (strlen(gate_kind_names[gate]) == length && memcmp(gate_kind_names[gate], text, length) == 0)
                flags |= 1U << gate;
        text += length + (text[length] == ';');
    }
    return flags;
}

enum gate_action unit_state_action(const struct gate_settings *settings, unsigned flags) {
    enum gate_action action = GATE_NONE;
    for (size_t gate = 0; gate < GATE_KINDS; gate++)
        if (flags & 1u << gate && settings->actions[gate] > action)
            action = settings->actions[gate];
    return action;
}

/* A sentence about the most telling of the unit's flags, in BUFFER, which is returned. */
const char *unit_state_describe(const struct watch *watch, size_t node, const struct unit_state *state,
                                char *buffer, size_t size) {
    const struct run_node *run_node = &watch->set->items[node];
    if (state->flags & 1u << GATE_DRIFT)
        snprintf(buffer, size, "a control changed since it was set: %s", watch->nodes[node].last_drift);
    else if (state->flags & 1u << GATE_THROTTLE)
        snprintf(buffer, size, "the processor was slowed down (throttle counts moved)");
    else if (state->flags & 1u << GATE_FREQUENCY)
        snprintf(buffer, size, "it ran at %.3g GHz; %.3g GHz to %.3g GHz was asked",
                 state->frequency_hz * 1e-9, run_node->control.target_min_hz * 1e-9,
                 run_node->control.target_max_hz * 1e-9);
    else if (state->flags & 1u << GATE_TEMPERATURE)
        snprintf(buffer, size, "the package was at %.0f Cel; it was at %.0f Cel after the warm-up",
                 state->temperature, run_node->warm_temperature);
    else if (state->flags & 1u << GATE_KERNEL)
        snprintf(buffer, size, "the kernel logged an error: %s", watch->nodes[node].last_error);
    else if (state->flags & 1u << GATE_LOAD)
        snprintf(buffer, size, "other programs took processor time");
    else
        snprintf(buffer, size, "%s", state->flags ? "the node has no samples for this unit" : "");
    return buffer;
}
