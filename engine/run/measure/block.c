/* One block of the measure phase: sets its state, runs its lanes, and journals its begin and end. */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/placement.h"
#include "engine/run/nodes/reservation.h"
#include "engine/run/state/state.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of rows that wait in the engine for one kernel, beside what the pipe holds; and for all kernels
 * together, of a campaign on hundreds of nodes. */
enum { AHEAD_BYTES_MAX = 64 << 10, AHEAD_BYTES_MIN = 4 << 10, AHEAD_BYTES_TOGETHER = 64 << 20 };

/* ---- Journal ---------------------------------------------------------------------------------------------
 */

/* Journals that BLOCK begins, and notes its state if the design varies controls. */
static void note_begin(struct measurement *measurement, const struct design_block *block) {
    struct node_set *set = measurement->set;
    const struct plan *plan = set->plan;
    journal_begin(set->record->journal, "block-started");
    journal_integer(set->record->journal, "block", (int64_t)measurement->progress->block_number);
    journal_integer(set->record->journal, "first", (int64_t)block->first + 1);
    journal_integer(set->record->journal, "last", (int64_t)(block->first + block->count));
    for (size_t i = 0; i < plan_control_count(plan); i++) {
        char key[CONTROL_VARIABLE_SIZE];
        snprintf(key, sizeof key, CONTROL_PREFIX "%s", plan_control_name(plan, i));
        journal_string(set->record->journal, key, plan_control_value(plan, block->row, i));
    }
    journal_end(set->record->journal);
    if (plan_control_count(plan) == 0)
        return;
    cleanup(text_clear) struct text state;
    text_init(&state, 64 << 10);
    plan_append_state(plan, block->row, &state);
    record_note(set->record, "block %zu of %zu: %s", (size_t)(block - plan->order->blocks) + 1,
                plan->order->block_count, state.bytes);
}

/* Does every lane have an answer for each of the block's positions? False if time was too short for some. */
static bool is_whole(const struct measurement *measurement) {
    if (!measurement->opened || measurement->refused)
        return false;
    for (size_t i = 0; i < measurement->lane_count; i++)
        if (measurement->lanes[i].next < measurement->lanes[i].count &&
            run_node_is_in(measurement->lanes[i].at.node))
            return false;
    return measurement->lane_count > 0;
}

static void note_end(struct measurement *measurement) {
    struct node_set *set = measurement->set;
    journal_begin(set->record->journal, "block-ended");
    journal_integer(set->record->journal, "block", (int64_t)measurement->progress->block_number);
    journal_string(set->record->journal, "status",
                   is_whole(measurement)      ? "done"
                   : set->record->interrupted ? "interrupted"
                                              : "failed");
    journal_end(set->record->journal);
}

/* Notes how many units there are and how they come about, once in a run. */
static void note_units(const struct measurement *measurement) {
    struct node_set *set = measurement->set;
    const struct design_order *order = set->plan->order;
    size_t lanes = measurement->lanes_counted;
    enum experiment_placement placement = set->experiment->placement;
    char nodes[64] = "", blocks[96] = "";
    if (placement != EXPERIMENT_PLACEMENT_NODE && node_set_count_in(set) > 1)
        snprintf(nodes, sizeof nodes, " of %zu nodes", node_set_count_in(set));
    if (plan_control_count(set->plan))
        snprintf(blocks, sizeof blocks, ", %zu block%s of %zu state%s of the controls", order->block_count,
                 order->block_count == 1 ? "" : "s", order->state_count, order->state_count == 1 ? "" : "s");
    record_note(set->record,
                "%" PRIu64 " units%s: %zu rows, %zu repetitions, %zu %s%s%s%s, order %s, seed %" PRIu64,
                measurement->units_total, measurement->progress->settling.rule ? " at most" : "",
                set->plan->design->row_count, order->repetitions, lanes, experiment_placement_name(placement),
                lanes == 1 ? "" : "s", nodes, blocks, design_order_kind_name(order->kind),
                design_specification_seed(set->campaign->design));
}

/* ---- Lanes -----------------------------------------------------------------------------------------------
 */

void block_clear(struct measurement *measurement) {
    for (size_t i = 0; i < measurement->lane_count; i++)
        lane_close(&measurement->lanes[i]);
    free(take_pointer(measurement->lanes));
    measurement->lane_count = 0;
}

/* Failures in a row are counted across blocks, because a block may have few units. */
static void inherit_failures(struct measurement *measurement, const struct lane *before, size_t count) {
    for (size_t i = 0; i < count && i < measurement->lane_count; i++) {
        struct lane *lane = &measurement->lanes[i];
        if (before[i].at.node == lane->at.node && strcmp(before[i].at.core, lane->at.core) == 0)
            lane->failures_in_a_row = before[i].failures_in_a_row;
    }
}

static bool has_lanes(const struct measurement *measurement, const struct run_node *node) {
    return run_node_is_in(node) && (!measurement->catching_up || node->state == NODE_CATCHING_UP);
}

static size_t count_lanes(const struct measurement *measurement) {
    const struct node_set *set = measurement->set;
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        if (has_lanes(measurement, &set->items[i]))
            count += placement_count(set, &set->items[i]);
    return count;
}

/* Opens the lanes of one node at the end of the array, which has room for them. */
static void open_node(struct measurement *measurement, struct run_node *node) {
    size_t count = placement_count(measurement->set, node);
    for (size_t core = 0; core < count; core++) {
        struct lane *lane = &measurement->lanes[measurement->lane_count++];
        lane_open(lane, measurement, node, core, measurement->block);
        lane->finished = lane->count == 0;
        measurement->lanes_open += lane->count > 0;
    }
}

/* Opens the lanes of the block on all nodes, and divides the memory for rows sent ahead among them. */
static void open_lanes(struct measurement *measurement) {
    struct node_set *set = measurement->set;
    size_t count = count_lanes(measurement), before_count = measurement->lane_count, of_a_node = 1;
    cleanup_free struct lane *before = measurement->lanes;
    for (size_t i = 0; i < set->count; i++)
        if (placement_count(set, &set->items[i]) > of_a_node)
            of_a_node = placement_count(set, &set->items[i]);
    /* There is room for spares that may come: each has the cores of a node that was lost. */
    measurement->lanes = xcalloc(set->count * of_a_node, sizeof *before);
    measurement->lane_count = measurement->lanes_open = 0;
    measurement->opened = true;
    for (size_t i = 0; i < set->count; i++)
        if (has_lanes(measurement, &set->items[i]))
            open_node(measurement, &set->items[i]);
    inherit_failures(measurement, before, before_count);
    size_t ahead =
        AHEAD_BYTES_TOGETHER / (count ? count : 1); /* so that memory is bounded for any number of lanes */
    measurement->ahead_bytes = ahead > AHEAD_BYTES_MAX   ? AHEAD_BYTES_MAX
                               : ahead < AHEAD_BYTES_MIN ? AHEAD_BYTES_MIN
                                                         : ahead;
}

void measurement_lane_finish(struct measurement *measurement, struct lane *lane) {
    if (lane->finished)
        return;
    lane->finished = true;
    /* While a spare is brought in, spares_bring_in() looks itself. */
    if (--measurement->lanes_open == 0 && !measurement->set->joining)
        event_loop_stop(measurement->set->loop);
}

static bool is_idle(const struct lane *lane) {
    return !lane->finished && !lane->command && !lane->unit.writes && !lane->unit.after_sweep;
}

/* Asks commands that still run to end, and waits for them, since an mpirun has ranks elsewhere to end. Called
 * after the loop was stopped. What does not end in time is killed when its lane is closed. */
static void end_lanes(struct measurement *measurement) {
    struct event_loop *loop = measurement->set->loop;
    event_loop_resume(loop);
    for (size_t i = 0; i < measurement->lane_count; i++)
        if (is_idle(&measurement->lanes[i]))
            measurement_lane_finish(measurement, &measurement->lanes[i]);
        else if (measurement->lanes[i].command && !measurement->lanes[i].finished)
            remote_command_kill(measurement->lanes[i].command, SIGTERM, NULL);
    int64_t deadline = clock_monotonic_ns() + reservation_grace_ns(measurement->set), left;
    while (measurement->lanes_open > 0 && (left = deadline - clock_monotonic_ns()) > 0 &&
           !event_loop_is_stopped(loop))
        if (event_loop_run_once(loop, left, NULL) < 0)
            break;
    event_loop_resume(loop);
}

/* ---- The block -------------------------------------------------------------------------------------------
 */

/* The units that are left at some positions. */
struct units_left {
    uint64_t units;      /* units that nodes of the run can measure */
    uint64_t missing;    /* units of nodes that are out and not replaced */
    uint64_t with_lanes; /* how many of `units` have lanes now */
};

/* Counts the units that are left of COUNT positions from FIRST on. TIMES, unless NULL, gets those of nodes
 * that take part. */
static struct units_left count_units_left(const struct measurement *measurement, size_t first, size_t count,
                                          struct unit_times *times) {
    const struct node_set *set = measurement->set;
    struct units_left left = {0};
    for (const struct run_node *node = set->items; node < set->items + set->count; node++) {
        bool shares = node->state != NODE_SPARE && node->state != NODE_REPLACED;
        size_t places = shares ? placement_count(set, node) : 0;
        for (size_t p = 0; p < places; p++) {
            size_t place = placement_place(set, node, p);
            if (!run_node_is_in(node))
                left.missing += count - ledger_count_done(set->record->ledger, place, first, count);
            for (size_t i = first; run_node_is_in(node) && i < first + count; i++)
                if (!ledger_is_done(set->record->ledger, place, i) &&
                    !settling_skips(&measurement->progress->settling, i)) {
                    left.units++;
                    left.with_lanes += has_lanes(measurement, node);
                    if (times)
                        unit_times_plan(times, design_order_row(set->plan->order, i), 1);
                }
        }
    }
    return left;
}

static void journal_planned(struct node_set *set, size_t lanes) {
    journal_begin(set->record->journal, "planned");
    journal_integer(set->record->journal, "units", (int64_t)set->record->units_planned);
    journal_integer(set->record->journal, "rows", (int64_t)set->plan->design->row_count);
    journal_integer(set->record->journal, "repetitions", (int64_t)set->plan->order->repetitions);
    journal_integer(set->record->journal, "lanes", (int64_t)lanes);
    journal_end(set->record->journal);
}

/* Counts all units of the run again, if the number of lanes has changed. Later blocks are taken to have as
 * many lanes as this one. */
static int count_units(struct measurement *measurement, struct failure *failure) {
    struct node_set *set = measurement->set;
    size_t lanes = count_lanes(measurement), first = measurement->block->first;
    if (lanes == measurement->lanes_counted)
        return 0;
    unit_times_plan_none(measurement->times);
    struct units_left left =
        count_units_left(measurement, first, plan_positions(set->plan) - first, measurement->times);
    measurement->lanes_counted = lanes;
    measurement->units_total =
        set->record->units->done + measurement->failed_in_part + left.units + left.missing;
    set->record->units_planned = measurement->units_total;
    journal_planned(set, lanes);
    return node_set_check_units(set, lanes, failure);
}

/* Settles rows that are known well enough, and takes their remaining units out of the totals. */
static void settle_rows(struct measurement *measurement, bool has_ended) {
    struct settling_saving saving = settling_apply(&measurement->progress->settling, measurement->block,
                                                   has_ended, measurement->times, measurement->lanes_counted);
    if (saving.positions == 0)
        return;
    measurement->units_total -= saving.positions * measurement->lanes_counted;
    measurement->set->record->units_planned = measurement->units_total;
    journal_planned(measurement->set, measurement->lanes_counted);
}

/* Does a job lack a node for which there is a spare? Such a job waits. */
static bool awaits_spare(const struct measurement *measurement) {
    return measurement->set->experiment->placement == EXPERIMENT_PLACEMENT_JOB &&
           spares_are_wanted(measurement->set);
}

/* Places the job on the nodes that take part now, if one was lost or has joined. MPI is tested again then. */
static int renew_job(struct measurement *measurement, struct lane *lane, struct failure *failure) {
    struct node_set *set = measurement->set;
    size_t in = 0;
    for (size_t i = 0; i < lane->at.count; i++)
        in += run_node_is_in(lane->at.shares[i].node);
    if (in == lane->at.count && in == node_set_count_in(set))
        return 0;
    results_release_lane(lane, true);
    measurement->mpi_nodes_tested = 0;
    lane->since_ns = INT64_MIN; /* of the first node */
    placement_clear(&lane->at);
    for (size_t i = 0; i < set->count; i++)
        if (placement_count(set, &set->items[i]) > 0) {
            placement_init(&lane->at, set, &set->items[i], 0);
            return 0;
        }
    return failure_set(failure, -ENOTCONN, "no node is left");
}

/* Waits until the nodes of units with ranks are ready. MPI is tested between the nodes of a job, and again
 * when they have changed. 0 also when the measurement is over. */
static int make_job_ready(struct measurement *measurement, struct failure *failure) {
    struct lane *lane = measurement->lanes; /* a job has one */
    bool job = measurement->set->experiment->placement == EXPERIMENT_PLACEMENT_JOB && is_idle(lane), tried;
    int r;
    if (!measurement->job)
        return 0;
    measurement->testing_mpi = true;
    do {
        r = job_make_ready(measurement->job, failure);
        if (r == 0 && job && !measurement_is_over(measurement))
            r = renew_job(measurement, lane, failure);
        tried = !job || measurement->mpi_nodes_tested == lane->at.count || awaits_spare(measurement);
        if (r == 0 && !tried && !measurement_is_over(measurement)) {
            measurement->mpi_nodes_tested = lane->at.count;
            r = job_preflight(lane, failure);
        }
    } while (r == 0 && !tried && !measurement_is_over(measurement));
    measurement->testing_mpi = false;
    return measurement_is_over(measurement) ? 0 : r;
}

/* Starts all lanes that have no command. A lane whose node is lost is left; a job that waits for a spare is
 * not started. */
static int start_lanes(struct measurement *measurement, struct failure *failure) {
    int r = make_job_ready(measurement, failure);
    if (awaits_spare(measurement))
        return r;
    for (size_t i = 0; r == 0 && i < measurement->lane_count && !measurement_is_over(measurement); i++) {
        struct failure why = {0};
        if (!is_idle(&measurement->lanes[i]) || lane_start(&measurement->lanes[i], &why) == 0 ||
            lane_handle_loss(&measurement->lanes[i], &why))
            continue;
        *failure = why;
        r = why.code;
    }
    return r;
}

/* One pass: runs all lanes to their ends, and brings spares in meanwhile. */
static int run_lanes(struct measurement *measurement, struct failure *failure) {
    struct node_set *set = measurement->set;
    for (;;) {
        int r = start_lanes(measurement, failure);
        /* The loop is stopped by the last lane, by a failure, by a signal, for a spare, or when the nodes
         * of a job have changed. */
        if (r == 0 && measurement->lanes_open > 0 && !spares_are_wanted(set))
            r = event_loop_run(set->loop, failure);
        bool wanted = spares_are_wanted(set);
        if (r < 0 || measurement_is_over(measurement) || (!wanted && measurement->lanes_open == 0))
            return r;
        event_loop_resume(set->loop);
        r = wanted ? spares_bring_in(measurement, failure) : 0;
        if (r < 0 || measurement_is_over(measurement))
            return r;
    }
}

/* Measures units again that gates rejected, in passes, while the block's state is still set. */
static int run_passes(struct measurement *measurement, struct failure *failure) {
    for (unsigned attempt = 1;; attempt++) {
        int r = run_lanes(measurement, failure);
        if (r < 0) /* fail first: lanes that are ended would report failures of their own */
            measurement_fail(measurement, failure);
        end_lanes(measurement);
        if (r == 0 && measurement->refused && !measurement->ended)
            reservation_reach_end(measurement->set,
                                  "no time is left for another unit before the reservation ends");
        results_wait(measurement);
        size_t units = 0;
        for (size_t i = 0; r == 0 && !measurement_is_over(measurement) && i < measurement->lane_count; i++)
            if (run_node_is_in(measurement->lanes[i].at.node) && lane_repeat(&measurement->lanes[i])) {
                measurement->lanes_open++;
                units += measurement->lanes[i].count;
            }
        if (r < 0 || measurement_is_over(measurement) || (units == 0 && !spares_are_wanted(measurement->set)))
            return r;
        if (units > 0)
            record_note(measurement->set->record,
                        "measuring %zu unit%s again: a gate rejected the state of the node "
                        "(attempt %u)",
                        units, units == 1 ? " is" : "s are", attempt + 1);
    }
}

int block_join(struct measurement *measurement, struct run_node *node, struct failure *failure) {
    struct node_set *set = measurement->set;
    if (!measurement->opened || set->plan->order->block_count > 1 || controls_vary(set) ||
        set->experiment->placement == EXPERIMENT_PLACEMENT_JOB) /* whose lane gets it as another node */
        return 0;
    node_set_enter(set, node, NODE_IN);
    measurement->lanes_counted = SIZE_MAX; /* as many lanes as before have more units */
    open_node(measurement, node);
    return count_units(measurement, failure);
}

/* Sets the block's state, opens lanes, runs the passes and closes the lanes. */
static int measure_block(struct measurement *measurement, struct failure *failure) {
    struct node_set *set = measurement->set;
    const struct design_block *block = measurement->block;
    int r = controls_set_block(measurement->watch, block, measurement->progress->block_number, failure);
    if (r < 0 || measurement_is_over(measurement))
        return r;
    r = count_units(measurement, failure); /* the state may have changed what cores there are */
    if (r == 0) {
        open_lanes(measurement);
        r = run_passes(measurement, failure);
    }
    for (size_t i = 0; i < measurement->lane_count; i++)
        lane_close(&measurement->lanes[i]);
    if (r == 0 && !measurement_is_over(measurement))
        settle_rows(measurement, true);
    if (measurement->speeds)
        slow_nodes_note(measurement->speeds, set);
    return r;
}

/* Measures what is left of BLOCK. A block in which nothing is left is skipped. */
int block_measure(struct measurement *measurement, const struct design_block *block,
                  struct failure *failure) {
    struct node_set *set = measurement->set;
    measurement->opened = false;
    measurement->block = block;
    int r = count_units(measurement, failure);
    if (r < 0)
        return r;
    if (set->record->part > 1) /* an earlier part may have ended before it settled them */
        settle_rows(measurement, false);
    if (count_units_left(measurement, block->first, block->count, NULL).with_lanes == 0 &&
        !measure_wants_repeats(set, block->first, block->count))
        return 0;
    if (!measurement->noted)
        note_units(measurement);
    measurement->noted = true;
    measurement->progress->block_number++;
    measurement->progress->reached = block->first;
    note_begin(measurement, block);
    r = measure_block(measurement, failure);
    note_end(measurement);
    measurement->opened = false;
    return r;
}
