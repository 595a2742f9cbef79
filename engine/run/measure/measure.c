/* The measure phase: records what the lanes answer, block by block, commits it, and shows how far things are.
 */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/tables.h"
#include "engine/run/nodes/reservation.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SECONDS_LEFT_MAX = 1000000000 };

/* A unit that is shown as done is on disk, so the counts are shown after each commit. Four commits a second
 * cost the measured machine little. */
static const int64_t commit_period_ns = 250 * EVENT_MILLISECOND;

/* ---- Progress --------------------------------------------------------------------------------------------
 */

/* Reports units done, rate and time left, for the terminal and 'assay watch'. */
static void show_progress(struct measurement *measurement) {
    struct node_set *set = measurement->set;
    uint64_t units = set->record->units->done + set->record->units->failed;
    int64_t now_ns = clock_monotonic_ns(), left_ns = run_left_ns(&set->record->left, now_ns);
    double spent = (double)(now_ns - measurement->started_ns) * 1e-9;
    size_t reached = 0;
    for (size_t i = 0; i < set->count; i++)
        reached += run_node_is_in(&set->items[i]) && agent_link_state(set->items[i].link) == AGENT_LINK_READY;
    struct run_event event = {.kind = RUN_EVENT_PROGRESS,
                              .nodes_done = reached,
                              .nodes_total = node_set_count_in(set),
                              .units_done = set->record->units->done,
                              .units_failed = set->record->units->failed,
                              .units_total = measurement->units_total,
                              .rate = spent > 0 ? (double)(units - measurement->units_before) / spent : 0,
                              .seconds_left = left_ns < 0 ? -1 : (double)left_ns * 1e-9};
    record_report_event(set->record, &event);
}

/* The time left, ns; negative: not known. The lanes share the units that are left. Time spent on units that
 * run counts, up to their expected time. */
static int64_t estimate_left_ns(const struct measurement *measurement) {
    const struct design_order *order = measurement->set->plan->order;
    double left = unit_times_left(measurement->times);
    size_t at_work = 0;
    for (size_t i = 0; left > 0 && i < measurement->lane_count; i++) {
        const struct lane *lane = &measurement->lanes[i];
        if (lane->finished || lane->next >= lane->count)
            continue;
        double mean =
            unit_times_mean(measurement->times, design_order_row(order, lane_position(lane, lane->next)));
        at_work++;
        left -= fmin(mean, (double)(clock_monotonic_ns() - lane->turn_ns) * 1e-9);
    }
    left = left < 0 ? left : left / (double)(at_work ? at_work : 1);
    return left < 0 ? -1 : (int64_t)(fmin(left, SECONDS_LEFT_MAX) * 1e9);
}

static void commit_and_show(struct measurement *measurement) {
    struct failure failure = {0};
    if (record_has_ended_units(measurement->set->record)) /* it looks at all rows */
        measurement->set->record->estimated_ns = estimate_left_ns(measurement);
    if (record_commit(measurement->set->record, &failure) < 0)
        measurement_fail(measurement, &failure);
    else
        show_progress(measurement);
}

static void on_commit_timer(struct event_source *source, void *context) {
    (void)source;
    struct measurement *measurement = context;
    if (measurement->set->experiment->streamed)
        for (size_t i = 0; measurement->opened && i < measurement->lane_count; i++)
            lane_check_streamed(&measurement->lanes[i], clock_monotonic_ns());
    if (measurement->job)
        job_end_stuck_units(measurement->job);
    (void)results_release(measurement, false);
    commit_and_show(measurement);
}

/* ---- Ends ------------------------------------------------------------------------------------------------
 */

bool measurement_is_over(const struct measurement *measurement) {
    return measurement->ended || measurement->set->record->interrupted;
}

void measurement_fail(struct measurement *measurement, const struct failure *why) {
    if (measurement->ended)
        return;
    measurement->ended = true;
    measurement->why = *why;
    event_loop_stop(measurement->set->loop);
}

/* ---- Time ------------------------------------------------------------------------------------------------
 */

int64_t measurement_expect_ns(const struct measurement *measurement, size_t position) {
    size_t row = design_order_row(measurement->set->plan->order, position);
    return unit_times_predict(measurement->times, row);
}

bool measurement_has_time(const struct measurement *measurement, size_t position, int64_t busy_ns) {
    int64_t left_ns = reservation_left_ns(measurement->set);
    if (left_ns == INT64_MAX)
        return true;
    int64_t expected_ns = measurement_expect_ns(measurement, position);
    /* A unit of unknown length is started only when at least the margin is left. */
    if (expected_ns < 0)
        expected_ns = deadline_margin_ns(&measurement->set->deadline);
    return busy_ns + expected_ns <= left_ns;
}

void measurement_add_time(struct measurement *measurement, size_t position, int64_t begun_ns,
                          int64_t end_ns) {
    if (begun_ns >= 0)
        unit_times_add(measurement->times, design_order_row(measurement->set->plan->order, position),
                       end_ns - begun_ns);
}

/* ---- Beginnings and ends ---------------------------------------------------------------------------------
 */

void run_progress_clear(struct run_progress *progress) {
    settling_clear(&progress->settling);
    free(progress->expected_seconds);
}

static void clear_measurement(struct measurement *measurement) {
    event_source_remove(measurement->commit_timer);
    slow_nodes_free(measurement->speeds);
    unit_times_free(measurement->times);
    block_clear(measurement);
    job_free(measurement->job);
    if (measurement->patterns)
        for (size_t i = 0; i < measurement->set->experiment->response_count; i++)
            tre_regfree(&measurement->patterns[i]);
    free(measurement->patterns);
    text_set_clear(&measurement->texts);
}

static int compile_patterns(struct measurement *measurement, struct failure *failure) {
    const struct experiment *experiment = measurement->set->experiment;
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
static int write_header(struct node_set *set, struct failure *failure) {
    if (set->record->results->committed > 0)
        return 0;
    int r = tables_append_header(set->plan, &set->record->results->pending);
    return r < 0 ? failure_memory(failure) : record_commit(set->record, failure);
}

/* Nodes that joined late are now to measure the blocks that they missed. False: there are no such nodes. */
static bool start_catching_up(struct measurement *measurement) {
    const struct node_set *set = measurement->set;
    measurement->catching_up = false;
    for (size_t i = 0; i < set->count; i++) {
        struct run_node *node = &set->items[i];
        if (node->state == NODE_CATCHING_UP)
            node_set_enter(set, node, NODE_IN);
        if (node->state == NODE_LATE)
            node_set_enter(set, node, NODE_CATCHING_UP);
        measurement->catching_up |= node->state == NODE_CATCHING_UP;
    }
    return measurement->catching_up;
}

/* Measures all blocks, then the same blocks again for nodes that joined late. */
static int run_blocks(struct measurement *measurement, struct failure *failure) {
    struct node_set *set = measurement->set;
    const struct design_order *order = set->plan->order;
    const struct run_progress *progress = measurement->progress;
    int r = reservation_estimate_reserve(set, failure);
    set->record->left.estimate_ns = set->record->estimated_ns = -1;
    measurement->times =
        unit_times_new(set->plan->design->row_count,
                       progress->expected_seconds ? progress->expected_seconds : set->plan->row_seconds);
    if (r == 0)
        r = compile_patterns(measurement, failure);
    if (r == 0)
        r = write_header(set, failure);
    if (r < 0)
        return r;
    measurement->commit_timer =
        event_loop_add_timer(set->loop, commit_period_ns, commit_period_ns, on_commit_timer, measurement);
    if (!measurement->commit_timer)
        return failure_memory(failure);
    if (node_set_count_in(set) >= SLOW_NODES_NODES)
        measurement->speeds = slow_nodes_new(set->count, set->plan->design->row_count);
    if (job_is_wanted(measurement))
        r = job_new(measurement, &measurement->job, failure);
    if (r < 0)
        return r;
    measurement->started_ns = clock_monotonic_ns();
    measurement->units_before = set->record->units->done + set->record->units->failed;
    r = spares_bring_in(measurement, failure); /* for those that were lost before */
    do
        for (size_t i = 0; r == 0 && i < order->block_count && !measurement_is_over(measurement); i++)
            r = block_measure(measurement, &order->blocks[i], failure);
    while (r == 0 && !measurement_is_over(measurement) && start_catching_up(measurement));
    return r;
}

/* "3 of 8 lines of the results are flagged: throttle 2, load 3" */
static void note_flags(struct node_set *set) {
    cleanup(text_clear) struct text words;
    text_init(&words, 1024);
    for (size_t gate = 0; gate < GATE_KINDS; gate++)
        if (set->record->units->flagged_by[gate] > 0)
            text_printf(&words, "%s%s %" PRIu64, words.length ? ", " : ": ", gate_kind_names[gate],
                        set->record->units->flagged_by[gate]);
    if (set->record->units->flagged > 0)
        record_note(set->record, "%" PRIu64 " of %" PRIu64 " lines of the results are flagged%s",
                    set->record->units->flagged, set->record->units->done + set->record->units->repeated,
                    words.bytes);
}

/* Measures all blocks. Results are committed even after a failure. Units that failed fail the run, with the
 * first one's reason. */
int measure(struct watch *watch, struct run_progress *progress, struct failure *failure) {
    struct node_set *set = watch->set;
    cleanup(clear_measurement) struct measurement measurement = {
        .set = set, .watch = watch, .progress = progress};
    uint64_t repeats_failed = set->record->units->repeats_failed; /* in parts before */
    int r = run_blocks(&measurement, failure);
    struct failure commit = {0};
    int committed = record_commit(set->record, &commit);
    bool is_durable = committed == 0 || record_commit(set->record, NULL) == 0; /* on a full disk */
    if (measurement.ended) {                                                   /* the first reason */
        *failure = measurement.why;
        r = measurement.why.code;
    } else if (r == 0 && committed < 0) {
        *failure = commit;
        r = committed;
    }
    if (is_durable && measurement.units_total > 0)
        show_progress(&measurement);
    if (is_durable)
        note_flags(set);
    settling_note(&progress->settling, r == 0 && !set->record->interrupted);
    if (r < 0 || set->record->interrupted)
        return r;
    uint64_t failed_again = set->record->units->repeats_failed - repeats_failed;
    if (set->record->units->failed > 0)
        return failure_set_kind(
            failure, FAILURE_EXPERIMENT, -EIO, "%" PRIu64 " of %" PRIu64 " units failed; the first: %s",
            set->record->units->failed, measurement.units_total, measurement.first_failure);
    if (failed_again > 0)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -EIO,
                                "%" PRIu64 " units failed when they were measured again; the first: %s",
                                failed_again, measurement.first_failure);
    return 0;
}
