/* The measure phase: records what the lanes answer, block by block, commits it, and shows how far things are.
 */
#include "engine/run/measure/measurement.h"

#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/tables.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whoever sees a unit as done can rely on it being on disk, so the counts are shown after each commit. Four
 * commits a second cost the measured machine little. */
static const int64_t commit_period_ns = 250 * EVENT_MILLISECOND;

/* ---- Progress --------------------------------------------------------------------------------------------
 */

static void show_progress(struct measurement *measurement) {
    struct run *run = measurement->run;
    uint64_t units = run->units->done + run->units->failed;
    double spent = (double)(clock_monotonic_ns() - measurement->started_ns) * 1e-9, left = -1;
    size_t reached = 0;
    if (measurement->weight_done > 0)
        left = spent * (measurement->weight_total - measurement->weight_done) / measurement->weight_done;
    for (size_t i = 0; i < run->node_count; i++)
        reached += run_node_is_in(&run->nodes[i]) && agent_link_state(run->nodes[i].link) == AGENT_LINK_READY;
    const struct run_observer *observer = &run->request->observer;
    struct run_event event = {.kind = RUN_EVENT_PROGRESS,
                              .nodes_done = reached,
                              .nodes_total = run_count_in(run),
                              .units_done = run->units->done,
                              .units_failed = run->units->failed,
                              .units_total = measurement->units_total,
                              .rate = spent > 0 ? (double)(units - measurement->units_before) / spent : 0,
                              .seconds_left = left};
    if (observer->event)
        observer->event(observer->context, &event);
}

static void commit_and_show(struct measurement *measurement) {
    struct failure failure = {0};
    if (run_commit(measurement->run, &failure) < 0)
        measurement_fail(measurement, &failure);
    else
        show_progress(measurement);
}

static void on_commit_timer(struct event_source *source, void *context) {
    (void)source;
    struct measurement *measurement = context;
    if (measurement->run->experiment->streamed)
        for (size_t i = 0; measurement->opened && i < measurement->lane_count; i++)
            lane_check_streamed(&measurement->lanes[i], clock_monotonic_ns());
    if (measurement->job)
        job_look(measurement->job);
    (void)results_release(measurement, false);
    commit_and_show(measurement);
}

/* ---- Ends ------------------------------------------------------------------------------------------------
 */

bool measurement_is_over(const struct measurement *measurement) {
    return measurement->ended || measurement->run->interrupted;
}

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
    char reason[PATTERN_REASON_SIZE];
    if (experiment->streamed)
        return 0;
    measurement->patterns = xcalloc(experiment->response_count, sizeof *measurement->patterns);
    for (size_t i = 0; i < experiment->response_count; i++)
        if (pattern_compile(experiment->responses[i].pattern, &measurement->patterns[i], reason) < 0)
            return failure_memory(failure); /* it compiled when the experiment was read */
    return 0;
}

/* A resumed run has one, unless it was killed before. */
static int write_header(struct run *run, struct failure *failure) {
    if (run->results->committed > 0)
        return 0;
    int r = tables_append_header(run->plan, &run->results->pending);
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
    return measurement->catching_up;
}

static int measure(struct measurement *measurement, struct failure *failure) {
    struct run *run = measurement->run;
    const struct design_order *order = run->plan->order;
    int r = run_rehearse_ending(run, failure);
    if (r == 0)
        r = compile_patterns(measurement, failure);
    if (r == 0)
        r = write_header(run, failure);
    if (r < 0)
        return r;
    measurement->commit_timer =
        event_loop_add_timer(run->loop, commit_period_ns, commit_period_ns, on_commit_timer, measurement);
    if (!measurement->commit_timer)
        return failure_memory(failure);
    if (run_count_in(run) >= SLOW_NODES_NODES)
        measurement->speeds = slow_nodes_new(run->node_count, run->plan->design->row_count);
    if (job_is_wanted(measurement))
        r = job_new(measurement, &measurement->job, failure);
    if (r < 0)
        return r;
    measurement->started_ns = clock_monotonic_ns();
    measurement->units_before = run->units->done + run->units->failed;
    r = spares_bring_in(measurement, failure); /* for those that were lost before */
    do
        for (size_t i = 0; r == 0 && i < order->block_count && !measurement_is_over(measurement); i++)
            r = block_measure(measurement, &order->blocks[i], failure);
    while (r == 0 && !measurement_is_over(measurement) && find_late(measurement));
    return r;
}

/* "3 of 8 lines of the results are flagged: throttle 2, load 3" */
static void note_flags(struct run *run) {
    cleanup(text_clear) struct text words;
    text_init(&words, 1024);
    for (size_t gate = 0; gate < GATE_KINDS; gate++)
        if (run->units->flagged_by[gate] > 0)
            text_printf(&words, "%s%s %" PRIu64, words.length ? ", " : ": ", gate_kind_names[gate],
                        run->units->flagged_by[gate]);
    if (run->units->flagged > 0)
        run_note(run, "%" PRIu64 " of %" PRIu64 " lines of the results are flagged%s", run->units->flagged,
                 run->units->done + run->units->repeated, words.bytes);
}

int run_phase_measure(struct run *run, struct failure *failure) {
    cleanup(clear_measurement) struct measurement measurement = {.run = run};
    uint64_t repeats_failed = run->units->repeats_failed; /* in parts before */
    int r = measure(&measurement, failure);
    struct failure commit = {0};
    int committed = run_commit(run, &commit);
    if (measurement.ended) { /* the first reason */
        *failure = measurement.why;
        r = measurement.why.code;
    } else if (r == 0 && committed < 0) {
        *failure = commit;
        r = committed;
    }
    if (committed == 0 && measurement.units_total > 0)
        show_progress(&measurement);
    note_flags(run);
    settling_note(run, r == 0 && !run->interrupted);
    if (r < 0 || run->interrupted)
        return r;
    uint64_t failed_again = run->units->repeats_failed - repeats_failed;
    if (run->units->failed > 0)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -EIO,
                                "%" PRIu64 " of %" PRIu64 " units failed; the first: %s", run->units->failed,
                                measurement.units_total, run->first_unit_failure);
    if (failed_again > 0)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -EIO,
                                "%" PRIu64 " units failed when they were measured again; the first: %s",
                                failed_again, run->first_unit_failure);
    return 0;
}
