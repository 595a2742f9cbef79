/* The measure phase: records what the lanes answer, block by block, commits it, and shows how far things are.
 */
#include "engine/run/measure/measurement.h"

#include "archive-format/reader.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whoever sees a unit as done can rely on it being on disk, so the counts are shown after each commit. Four
 * commits a second cost the measured machine little. */
static const int64_t commit_period_ns = 250 * EVENT_MILLISECOND;
static const int64_t rate_window_ns = 5 * EVENT_SECOND;

/* ---- Records ---------------------------------------------------------------------------------------------
 */

/* Empty is not known. */
static int append_known(struct text *text, double value) {
    return isnan(value) ? text_append_character(text, ',') : csv_append_double(text, false, value);
}

static int append_state(const struct unit_state *state, struct text *text) {
    char flags[128];
    unit_state_flags(state->flags, flags, sizeof flags);
    int r = append_known(text, round(state->frequency_hz));
    r = r < 0 ? r : append_known(text, state->temperature);
    return r < 0 ? r : csv_append_field(text, false, flags, strlen(flags));
}

static bool is_job(const struct lane *lane) {
    return lane->measurement->run->experiment->placement == EXPERIMENT_PLACEMENT_JOB;
}

/* The node, or "a-[1-4]". NULL when out of memory; the caller frees. */
static char *name_nodes(const struct lane *lane, const struct measured_unit *unit) {
    struct text names;
    text_init(&names, 16 << 20);
    if (!is_job(lane))
        return strdup(lane->at.node->name);
    if (placement_append_nodes(&lane->at, unit->shares, &names) == 0)
        return text_take(&names);
    text_clear(&names);
    return NULL;
}

static int append_response(const struct measurement *measurement, const struct experiment_response *response,
                           double value, struct text *text) {
    if (response->type == EXPERIMENT_RESPONSE_NUMBER)
        return csv_append_double(text, false, value);
    const char *label = measurement->texts.items[(size_t)value];
    return csv_append_field(text, false, label, strlen(label));
}

/* A line of results.csv, whole or not at all. */
static int append_unit(struct measurement *measurement, const struct lane *lane,
                       const struct measured_unit *unit, const struct unit_state *state,
                       const double *responses) {
    struct run *run = measurement->run;
    const struct plan *plan = run->plan;
    size_t position = unit->position, row = design_order_row(plan->order, position);
    struct text *text = &run->results->pending;
    cleanup_free char *nodes = name_nodes(lane, unit);
    if (!nodes)
        return -ENOMEM;
    size_t before = text->length;
    int r = csv_append_int64(text, true, (int64_t)row + 1);
    r = r < 0 ? r
              : csv_append_int64(text, false, (int64_t)design_order_repetition(plan->order, position) + 1);
    r = r < 0 ? r : csv_append_int64(text, false, (int64_t)position + 1);
    r = r < 0 ? r : csv_append_int64(text, false, (int64_t)run->block_number);
    r = r < 0 ? r : csv_append_int64(text, false, unit->attempt);
    r = r < 0 ? r : csv_append_field(text, false, nodes, strlen(nodes));
    r = r < 0 ? r : csv_append_field(text, false, lane->at.core, strlen(lane->at.core));
    r = r < 0 ? r : csv_append_int64(text, false, unit->start.wall_ns);
    if (r == 0 && unit->start.monotonic_ns >= 0)
        r = csv_append_int64(text, false, unit->start.monotonic_ns);
    else if (r == 0)
        r = text_append_character(text, ','); /* an empty field */
    r = r < 0 ? r : plan_append_factors(plan, row, text);
    r = r < 0 ? r : plan_append_controls(plan, row, text);
    for (size_t i = 0; r == 0 && i < run->experiment->response_count; i++)
        r = append_response(measurement, &run->experiment->responses[i], responses[i], text);
    r = r < 0 ? r : append_state(state, text);
    r = r < 0 ? r : text_append_character(text, '\n');
    if (r < 0 && text->capacity) {
        text->length = before;
        text->bytes[before] = '\0';
    }
    return r;
}

/* WHY a unit failed, or that more was written than results/raw/ has; what is done is in the results. */
static void journal_unit(struct measurement *measurement, const struct lane *lane,
                         const struct measured_unit *unit, const char *event, const char *why) {
    struct run *run = measurement->run;
    const struct design_order *order = run->plan->order;
    journal_begin(run->journal, event);
    journal_integer(run->journal, "order", (int64_t)unit->position + 1);
    journal_integer(run->journal, "attempt", unit->attempt);
    journal_string(run->journal, "node", ledger_place_node(run->ledger, lane->at.place));
    journal_string(run->journal, "core", lane->at.core);
    if (why)
        journal_string(run->journal, "sentence", why);
    journal_integer(run->journal, "row", (int64_t)design_order_row(order, unit->position) + 1);
    journal_integer(run->journal, "repetition", (int64_t)design_order_repetition(order, unit->position) + 1);
    journal_integer(run->journal, "block", (int64_t)run->block_number);
    if (is_job(lane)) {
        cleanup_free char *nodes = name_nodes(lane, unit);
        journal_string(run->journal, "nodes", nodes ? nodes : "");
    }
    if (unit->output_bytes > LANE_OUTPUT_MOST)
        journal_integer(run->journal, "output_bytes", (int64_t)unit->output_bytes);
    if (unit->error_bytes > LANE_ERRORS_MOST)
        journal_integer(run->journal, "error_bytes", (int64_t)unit->error_bytes);
    journal_end(run->journal);
}

static void count_unit(struct measurement *measurement, const struct lane *lane,
                       const struct measured_unit *unit, const struct unit_state *state,
                       const double *responses) {
    bool done = responses != NULL;
    struct run *run = measurement->run;
    if (!ledger_is_done(run->ledger, lane->at.place, unit->position)) {
        measurement->weight_done += plan_weight(run->plan, unit->position);
        measurement->failed_here += !done;
    }
    struct ledger_attempt attempt = {.place = lane->at.place,
                                     .position = unit->position,
                                     .attempt = unit->attempt,
                                     .done = done,
                                     .flags = state->flags};
    struct failure failure;
    ledger_take(run->ledger, &attempt);
    if (responses && settling_take(run, lane->at.place, unit->position, unit->attempt, state->flags,
                                   responses, &failure) < 0)
        measurement_fail(measurement, &failure);
}

void measurement_write(struct measurement *measurement, const struct lane *lane,
                       const struct measured_unit *unit, const struct unit_state *state,
                       const double *responses, const char *why) {
    struct run *run = measurement->run;
    if (responses && append_unit(measurement, lane, unit, state, responses) < 0) {
        struct failure failure;
        failure_set(&failure, -ENOMEM,
                    "cannot keep the results of %zu units in memory until they are written",
                    (size_t)(run->units->done + 1));
        measurement_fail(measurement, &failure);
        return;
    }
    if (!responses)
        journal_unit(measurement, lane, unit, "unit-failed", why);
    else if (unit->output_bytes > LANE_OUTPUT_MOST || unit->error_bytes > LANE_ERRORS_MOST)
        journal_unit(measurement, lane, unit, "output-cut", NULL);
    count_unit(measurement, lane, unit, state, responses);
    if (responses)
        node_speeds_add(measurement, lane, unit);
}

/* ---- Progress --------------------------------------------------------------------------------------------
 */

static void show_progress(struct measurement *measurement) {
    struct run *run = measurement->run;
    int64_t now = clock_monotonic_ns();
    uint64_t units = run->units->done + run->units->failed;
    if (now - measurement->window_ns >= rate_window_ns || measurement->rate == 0) {
        double seconds = (double)(now - measurement->window_ns) * 1e-9;
        measurement->rate = seconds > 0 ? (double)(units - measurement->window_units) / seconds : 0;
        if (now - measurement->window_ns >= rate_window_ns) {
            measurement->window_ns = now;
            measurement->window_units = units;
        }
    }
    double spent = (double)(now - measurement->started_ns) * 1e-9;
    double left = -1;
    if (measurement->weight_done > 0)
        left = spent * (measurement->weight_total - measurement->weight_done) / measurement->weight_done;
    const struct run_observer *observer = &run->request->observer;
    size_t reached = 0;
    for (size_t i = 0; i < run->node_count; i++)
        reached += run_node_is_in(&run->nodes[i]) && agent_link_state(run->nodes[i].link) == AGENT_LINK_READY;
    if (observer->event)
        observer->event(observer->context, &(struct run_event){.kind = RUN_EVENT_PROGRESS,
                                                               .nodes_done = reached,
                                                               .nodes_total = run_count_in(run),
                                                               .units_done = run->units->done,
                                                               .units_failed = run->units->failed,
                                                               .units_total = measurement->units_total,
                                                               .rate = measurement->rate,
                                                               .seconds_left = left});
}

static void commit_and_show(struct measurement *measurement) {
    struct failure failure = {0};
    if (run_commit(measurement->run, &failure) < 0)
        measurement_fail(measurement, &failure);
    else
        show_progress(measurement);
}

static void look_at_speeds(struct measurement *measurement, bool now) {
    struct failure failure;
    if (node_speeds_look(measurement, now) < 0)
        measurement_fail(measurement, (failure_memory(&failure), &failure));
}

static void on_commit_timer(struct event_source *source, void *context) {
    (void)source;
    struct measurement *measurement = context;
    if (measurement->run->experiment->streamed)
        for (size_t i = 0; measurement->opened && i < measurement->lane_count; i++)
            lane_check_streamed(&measurement->lanes[i], clock_monotonic_ns());
    if (measurement->job)
        job_look(measurement->job);
    verdict_release(context, false);
    look_at_speeds(measurement, false);
    commit_and_show(context);
}

/* ---- Ends ------------------------------------------------------------------------------------------------
 */

void measurement_fail(struct measurement *measurement, const struct failure *why) {
    if (measurement->ended)
        return;
    measurement->ended = true;
    measurement->why = *why;
    event_loop_stop(measurement->run->loop);
}

static void clear_measurement(struct measurement *measurement) {
    event_source_remove(measurement->commit_timer);
    slow_nodes_free(measurement->speeds);
    block_clear(measurement);
    job_free(measurement->job);
    if (measurement->patterns)
        for (size_t i = 0; i < measurement->run->experiment->response_count; i++)
            tre_regfree(&measurement->patterns[i]);
    free(measurement->patterns);
    labels_clear(&measurement->texts);
}

/* ---- Beginnings ------------------------------------------------------------------------------------------
 */

static int compile_patterns(struct measurement *measurement, struct failure *failure) {
    const struct experiment *experiment = measurement->run->experiment;
    if (experiment->streamed)
        return 0;
    measurement->patterns = xcalloc(experiment->response_count, sizeof *measurement->patterns);
    char reason[PATTERN_REASON_SIZE];
    for (size_t i = 0; i < experiment->response_count; i++)
        if (pattern_compile(experiment->responses[i].pattern, &measurement->patterns[i], reason) < 0)
            return failure_memory(failure); /* it compiled when the experiment was read */
    return 0;
}

int run_append_header(const struct plan *plan, struct text *text) {
    const struct design *design = plan->design;
    const struct experiment *experiment = plan->campaign->experiment;
    int r = text_append_string(text, "row,repetition,order,block,attempt,node,core,start,start_monotonic");
    for (size_t i = 0; r == 0 && i < design->column_count; i++)
        r = csv_append_field(text, false, design->columns[i].name, strlen(design->columns[i].name));
    for (size_t i = 0; r == 0 && i < experiment->response_count; i++)
        r = csv_append_field(text, false, experiment->responses[i].name,
                             strlen(experiment->responses[i].name));
    return r < 0 ? r : text_append_string(text, ",state.frequency,state.temperature,state.flags\n");
}

/* A run that goes on has one, unless it was killed before. */
static int write_header(struct run *run, struct failure *failure) {
    if (run->results->committed > 0)
        return 0;
    int r = run_append_header(run->plan, &run->results->pending);
    return r < 0 ? failure_memory(failure) : run_commit(run, failure);
}

enum {
    FILES_APART = 16384,  /* of an archive: all but the output of units, for a few nodes; and */
    FILES_OF_A_NODE = 64, /* of each */
};

/* Units keep their output in up to two files each, and an archive has room for so many. */
int run_check_units(const struct run *run, uint64_t lanes, struct failure *failure) {
    const struct gate_settings *gates = &run->campaign->gates;
    uint64_t attempts = 1;
    for (size_t gate = 0; gate < GATE_KINDS; gate++)
        if (gates->actions[gate] == GATE_REPEAT)
            attempts = 1 + (uint64_t)gates->repeats;
    uint64_t units = lanes * plan_positions(run->plan) * attempts;
    uint64_t apart = FILES_APART + (uint64_t)run->node_count * FILES_OF_A_NODE;
    if (run->experiment->streamed || 2 * units + apart <= ARCHIVE_ENTRIES_MOST)
        return 0;
    return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                            "%" PRIu64
                            " units would keep their output in more files than the %d of an archive; "
                            "expected fewer rows, repetitions, repeats or nodes",
                            units, ARCHIVE_ENTRIES_MOST);
}

static int measure_blocks(struct measurement *measurement, struct failure *failure) {
    const struct run *run = measurement->run;
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->plan->order->block_count; i++) {
        if (measurement->ended || run->interrupted)
            break;
        r = block_measure(measurement, &run->plan->order->blocks[i], failure);
    }
    return r;
}

/* Nodes that came when blocks were over go through these afterwards. */
static bool find_late(struct measurement *measurement) {
    const struct run *run = measurement->run;
    measurement->catching_up = false;
    for (size_t i = 0; i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        if (node->state == NODE_CATCHING_UP)
            run_node_enter(run, node, NODE_IN);
        if (node->state == NODE_LATE)
            run_node_enter(run, node, NODE_CATCHING_UP);
        measurement->catching_up |= node->state == NODE_CATCHING_UP;
    }
    return measurement->catching_up && !measurement->ended && !run->interrupted;
}

static int measure(struct measurement *measurement, struct failure *failure) {
    struct run *run = measurement->run;
    int r = run_rehearse_ending(run, failure);
    if (r == 0)
        r = compile_patterns(measurement, failure);
    if (r == 0)
        r = write_header(run, failure);
    if (r < 0)
        return r;
    measurement->commit_timer =
        event_loop_add_timer(run->loop, commit_period_ns, commit_period_ns, on_commit_timer, measurement);
    if (!measurement->commit_timer || node_speeds_start(measurement) < 0)
        return failure_memory(failure);
    if (job_is_wanted(measurement))
        r = job_new(measurement, &measurement->job, failure);
    if (r < 0)
        return r;
    measurement->started_ns = measurement->window_ns = clock_monotonic_ns();
    measurement->window_units = run->units->done + run->units->failed;
    r = spares_bring_in(measurement, failure); /* for those that were lost before */
    while (r == 0) {
        r = measure_blocks(measurement, failure);
        if (r < 0 || !find_late(measurement))
            break;
    }
    return r;
}

/* "3 of 8 lines of the results are flagged: throttle 2, load 3" */
static void note_flags(struct run *run) {
    struct text words;
    text_init(&words, 1024);
    for (size_t gate = 0; gate < GATE_KINDS; gate++)
        if (run->units->flagged_by[gate] > 0)
            text_printf(&words, "%s%s %" PRIu64, words.length ? ", " : ": ", gate_kind_names[gate],
                        run->units->flagged_by[gate]);
    if (run->units->flagged > 0)
        run_note(run, "%" PRIu64 " of %" PRIu64 " lines of the results are flagged%s", run->units->flagged,
                 run->units->done + run->units->repeated, words.bytes);
    text_clear(&words);
}

int run_phase_measure(struct run *run, struct failure *failure) {
    cleanup(clear_measurement) struct measurement measurement = {.run = run};
    uint64_t repeats_failed = run->units->repeats_failed; /* in parts before */
    int r = measure(&measurement, failure);
    look_at_speeds(&measurement, true);
    struct failure commit = {0};
    int committed = run_commit(run, &commit);
    if (measurement.ended) { /* the first reason */
        *failure = measurement.why;
        r = measurement.why.code;
    }
    if (r == 0 && committed < 0) {
        *failure = commit;
        r = committed;
    }
    if (committed == 0 && measurement.units_total > 0)
        show_progress(&measurement);
    note_flags(run);
    settling_note(run, r == 0 && !run->interrupted);
    if (r == 0 && run->units->failed == 0 && run->units->repeats_failed > repeats_failed && !run->interrupted)
        r = failure_set_kind(failure, FAILURE_EXPERIMENT, -EIO,
                             "%" PRIu64 " units failed when they were measured again; the first: %s",
                             run->units->repeats_failed - repeats_failed, run->first_unit_failure);
    if (r == 0 && run->units->failed > 0 && !run->interrupted)
        r = failure_set_kind(failure, FAILURE_EXPERIMENT, -EIO,
                             "%" PRIu64 " of %" PRIu64 " units failed; the first: %s", run->units->failed,
                             measurement.units_total, run->first_unit_failure);
    return r;
}
