#include "engine/run/state/unit-state.h"

#include "engine/run/run-state.h"
#include "engine/run/state/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_looked_at(const struct run *run, enum probe_kind kind) {
    for (unsigned gate = 0; gate < GATE_UNWATCHED; gate++)
        if (gate_probe((enum gate_kind)gate) == kind && run->campaign->gates.actions[gate] != GATE_NONE)
            return true;
    return false;
}

bool unit_state_is_known(const struct run *run, size_t node, int64_t end_ns) {
    if (!watch_is_live(run->watch, node))
        return true;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++) {
        if (!watch_has(run->watch, node, (enum probe_kind)kind) ||
            (watch_period_ns(run->watch, (enum probe_kind)kind) > UNIT_STATE_PATIENCE_NS &&
             !is_looked_at(run, (enum probe_kind)kind)))
            continue;
        const struct history *history = watch_history(run->watch, node, (enum probe_kind)kind);
        /* Whose load it is, a node may never be able to tell. */
        if (history->count == 0 && kind == PROBE_LOAD)
            continue;
        if (history->count == 0 || history_time(history, history->count - 1) < end_ns)
            return false;
    }
    return true;
}

/* ---- one probe each */

/* The last that is known of COLUMN at or before ROW; nan if nothing is. Probes that are dear to read leave
 * values out. */
static double last_known(const struct history *history, size_t row, size_t column) {
    for (size_t i = row + 1; i-- > 0;)
        if (!isnan(history_row(history, i)[column]))
            return history_row(history, i)[column];
    return NAN;
}

/* Has any of the counters moved? One that is not known at either side has not. */
static bool counters_moved(const struct history *history, const struct history_span *span) {
    for (size_t i = 0; i < history->columns; i++)
        if (last_known(history, span->last, i) > last_known(history, span->first, i))
            return true;
    return false;
}

/* The greatest value of COLUMN after the span's first row; what a row tells is of the time before it. */
static double greatest(const struct history *history, const struct history_span *span, size_t column) {
    double most = NAN;
    for (size_t row = span->first < span->last ? span->first + 1 : span->first; row <= span->last; row++) {
        double value = history_row(history, row)[column];
        most = value > most || isnan(most) ? value : most;
    }
    return isnan(most) ? last_known(history, span->last, column) : most;
}

/* The mean over the unit's PUs of one row; nan if none of them is known. */
static double frequency_of_row(const struct run *run, size_t node, size_t row, const unsigned *pus,
                               size_t pu_count) {
    const struct history *history = watch_history(run->watch, node, PROBE_FREQUENCY);
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < pu_count; i++) {
        size_t column = watch_pu_column(run->watch, node, pus[i]);
        double value = column < history->columns ? history_row(history, row)[column] : NAN;
        if (!isnan(value)) {
            sum += value;
            known++;
        }
    }
    return known ? sum / (double)known : NAN;
}

/* Of a unit between two samples, that one of them counts that saw the PUs faster: at the other they may have
 * been idle. */
static double frequency_within(const struct run *run, size_t node, const unsigned *pus, size_t pu_count,
                               int64_t start_ns, int64_t end_ns) {
    const struct history *history = watch_history(run->watch, node, PROBE_FREQUENCY);
    struct history_span span;
    if (!history_span(history, start_ns, end_ns, &span))
        return NAN;
    double sum = 0, fastest = NAN;
    size_t count = 0;
    for (size_t row = span.first; row <= span.last; row++) {
        double value = frequency_of_row(run, node, row, pus, pu_count);
        int64_t time = history_time(history, row);
        if (isnan(value))
            continue;
        fastest = value > fastest || isnan(fastest) ? value : fastest;
        if (time >= start_ns && time <= end_ns) {
            sum += value;
            count++;
        }
    }
    return count ? sum / (double)count : fastest;
}

/* Of the hottest package; where no column is of a package, of the hottest of all. */
static double temperature_at(const struct run *run, size_t node, int64_t end_ns) {
    const struct history *history = watch_history(run->watch, node, PROBE_TEMPERATURE);
    struct history_span span;
    if (!history_span(history, end_ns, end_ns, &span))
        return NAN;
    const double *row = history_row(history, span.last);
    double most = NAN;
    for (int all = 0; all < 2 && isnan(most); all++)
        for (size_t i = 0; i < history->columns; i++)
            if ((all ||
                 run_is_package_temperature(watch_column_name(run->watch, node, PROBE_TEMPERATURE, i))) &&
                !(row[i] <= most) && !isnan(row[i]))
                most = row[i];
    return most;
}

/* ---- all of them */

static bool is_off(const struct run *run, size_t node, enum gate_kind gate, const struct unit_state *state,
                   int64_t start_ns, int64_t end_ns) {
    const struct gate_settings *settings = &run->campaign->gates;
    const struct run_node *run_node = &run->nodes[node];
    if (gate == GATE_FREQUENCY) {
        double least = run_node->control.target_min_hz, most = run_node->control.target_max_hz,
               tolerance = settings->frequency_tolerance;
        return (least > 0 && state->frequency_hz < least * (1 - tolerance)) ||
               (most > 0 && state->frequency_hz > most * (1 + tolerance));
    }
    if (gate == GATE_TEMPERATURE)
        return fabs(state->temperature - run_node->warm_temperature) > settings->temperature_band;
    const struct history *history = watch_history(run->watch, node, gate_probe((enum gate_kind)gate));
    struct history_span span;
    if (!history_span(history, start_ns, end_ns, &span))
        return false;
    if (gate == GATE_THROTTLE || gate == GATE_KERNEL)
        return counters_moved(history, &span);
    size_t column = watch_column(run->watch, node, gate_probe((enum gate_kind)gate),
                                 gate == GATE_DRIFT ? WATCH_DRIFTED : WATCH_FOREIGN);
    if (column == SIZE_MAX)
        return false;
    return greatest(history, &span, column) > (gate == GATE_DRIFT ? 0 : settings->foreign_load);
}

/* Of all that gates look at and that the node can tell, do samples tell of the whole unit? A node that can
 * tell nothing of it is watched if it tells anything at all. */
static bool is_watched(const struct run *run, size_t node, int64_t start_ns, int64_t end_ns) {
    size_t looked_at = 0, any = 0;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++) {
        if (!watch_has(run->watch, node, (enum probe_kind)kind))
            continue;
        bool covered = watch_covers(run->watch, node, (enum probe_kind)kind, start_ns, end_ns);
        any += covered;
        if (!is_looked_at(run, (enum probe_kind)kind) || kind == PROBE_LOAD)
            continue;
        looked_at++;
        if (!covered)
            return false;
    }
    return looked_at > 0 || any > 0;
}

struct unit_state unit_state_judge(const struct run *run, const struct unit_place *place, int64_t start_ns,
                                   int64_t end_ns) {
    size_t node = place->node;
    struct unit_state state = {.frequency_hz = NAN, .temperature = NAN};
    const struct gate_settings *settings = &run->campaign->gates;
    if (!run->watch)
        return state;
    if (watch_has(run->watch, node, PROBE_FREQUENCY))
        state.frequency_hz = frequency_within(run, node, place->pus, place->pu_count, start_ns, end_ns);
    if (watch_has(run->watch, node, PROBE_TEMPERATURE))
        state.temperature = temperature_at(run, node, end_ns);
    for (unsigned gate = 0; gate < GATE_UNWATCHED; gate++)
        if (settings->actions[gate] != GATE_NONE &&
            watch_has(run->watch, node, gate_probe((enum gate_kind)gate)) &&
            is_off(run, node, (enum gate_kind)gate, &state, start_ns, end_ns))
            state.flags |= 1u << gate;
    if (settings->actions[GATE_UNWATCHED] != GATE_NONE && !is_watched(run, node, start_ns, end_ns))
        state.flags |= 1u << GATE_UNWATCHED;
    return state;
}

/* From the latest sample at or before START to the earliest at or after END, over all probes: no other sample
 * comes into it for a unit in between. False if one of them has no such samples. */
static bool find_window(const struct run *run, size_t node, struct unit_memory *memory, int64_t start_ns,
                        int64_t end_ns) {
    memory->from_ns = INT64_MIN;
    memory->to_ns = INT64_MAX;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++) {
        struct history_span span;
        if (!watch_has(run->watch, node, (enum probe_kind)kind))
            continue;
        const struct history *history = watch_history(run->watch, node, (enum probe_kind)kind);
        if (!history_span(history, start_ns, end_ns, &span) || !span.before || !span.after ||
            span.last > span.first + 1)
            return false;
        int64_t from = history_time(history, span.first), to = history_time(history, span.last);
        memory->from_ns = from > memory->from_ns ? from : memory->from_ns;
        memory->to_ns = to < memory->to_ns ? to : memory->to_ns;
    }
    return memory->from_ns < memory->to_ns && memory->from_ns != INT64_MIN;
}

bool unit_state_remember(const struct run *run, const struct unit_place *place, struct unit_memory *memory,
                         int64_t start_ns, int64_t end_ns, struct unit_state *ret) {
    /* Not at its edges: a sample at the very start or end counts as one within. */
    if (start_ns > memory->from_ns && end_ns < memory->to_ns) {
        *ret = memory->state;
        return true;
    }
    if (!unit_state_is_known(run, place->node, end_ns))
        return false;
    *ret = memory->state = unit_state_judge(run, place, start_ns, end_ns);
    if (!find_window(run, place->node, memory, start_ns, end_ns))
        *memory = (struct unit_memory){0};
    return true;
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

const char *unit_state_describe(const struct run *run, size_t node, const struct unit_state *state,
                                char *buffer, size_t size) {
    const struct run_node *run_node = &run->nodes[node];
    if (state->flags & 1u << GATE_DRIFT)
        snprintf(buffer, size, "a control is not as it was set: %s",
                 watch_last_event(run->watch, node, "drift"));
    else if (state->flags & 1u << GATE_THROTTLE)
        snprintf(buffer, size, "the processor was slowed down (throttle counts moved)");
    else if (state->flags & 1u << GATE_FREQUENCY)
        snprintf(buffer, size, "it ran at %.3g GHz, and %.3g GHz to %.3g GHz was asked",
                 state->frequency_hz * 1e-9, run_node->control.target_min_hz * 1e-9,
                 run_node->control.target_max_hz * 1e-9);
    else if (state->flags & 1u << GATE_TEMPERATURE)
        snprintf(buffer, size, "the package was at %.0f Cel, and %.0f Cel when it was warm",
                 state->temperature, run_node->warm_temperature);
    else if (state->flags & 1u << GATE_KERNEL)
        snprintf(buffer, size, "the kernel logged an error: %s",
                 watch_last_event(run->watch, node, "kernel-error"));
    else if (state->flags & 1u << GATE_LOAD)
        snprintf(buffer, size, "other programs took processor time");
    else
        snprintf(buffer, size, "%s", state->flags ? "nothing says what it ran under" : "");
    return buffer;
}
