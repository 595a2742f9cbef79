/* One block of the measure phase: its state, its lanes from beginning to end, and its two entries in the
 * journal. */
#include "engine/run/measurement.h"

#include "engine/foundation/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t end_grace_ns = 3 * EVENT_SECOND; /* between SIGTERM and SIGKILL */

enum {
    AHEAD_BYTES_MOST = 64 << 10, /* rows that wait on this side for one kernel; the pipe holds more */
    AHEAD_BYTES_LEAST = 4 << 10,
};
/* Of a campaign on hundreds of nodes, all rows that wait. */
static const size_t ahead_bytes_together = 64 << 20;

/* ---- Journal ---------------------------------------------------------------------------------------------
 */

static void note_begin(struct measurement *measurement, const struct design_block *block) {
    struct run *run = measurement->run;
    const struct plan *plan = run->plan;
    journal_begin(run->journal, "block-started");
    journal_integer(run->journal, "block", (int64_t)run->block_number);
    journal_integer(run->journal, "first", (int64_t)block->first + 1);
    journal_integer(run->journal, "last", (int64_t)(block->first + block->count));
    for (size_t i = 0; i < plan_control_count(plan); i++) {
        char key[CONTROL_VARIABLE_SIZE];
        snprintf(key, sizeof key, CONTROL_PREFIX "%s", plan_control_name(plan, i));
        journal_string(run->journal, key, plan_control_value(plan, block->row, i));
    }
    journal_end(run->journal);
    if (plan_control_count(plan) == 0)
        return;
    struct text state;
    text_init(&state, 64 << 10);
    plan_append_state(plan, block->row, &state);
    run_note(run, "block %zu of %zu: %s", (size_t)(block - plan->order->blocks) + 1, plan->order->block_count,
             state.bytes);
    text_clear(&state);
}

/* Whether every lane has an answer for each of the block's positions. */
static bool is_whole(const struct measurement *measurement) {
    if (!measurement->opened)
        return false;
    for (size_t i = 0; i < measurement->lane_count; i++)
        if (measurement->lanes[i].next < measurement->lanes[i].count)
            return false;
    return measurement->lane_count > 0;
}

static void note_end(struct measurement *measurement) {
    struct run *run = measurement->run;
    journal_begin(run->journal, "block-ended");
    journal_integer(run->journal, "block", (int64_t)run->block_number);
    journal_string(run->journal, "status",
                   is_whole(measurement) ? "done"
                   : run->interrupted    ? "interrupted"
                                         : "failed");
    journal_end(run->journal);
}

static void note_units(const struct measurement *measurement) {
    struct run *run = measurement->run;
    size_t rows = run->plan->design->row_count, lanes = measurement->lanes_counted;
    bool whole = run->experiment->placement == EXPERIMENT_PLACEMENT_NODE;
    char nodes[64] = "";
    if (!whole && run->node_count > 1)
        snprintf(nodes, sizeof nodes, " of %zu nodes", run->node_count);
    const struct design_order *order = run->plan->order;
    char blocks[96] = "";
    if (plan_control_count(run->plan))
        snprintf(blocks, sizeof blocks, ", %zu block%s of %zu state%s of the controls", order->block_count,
                 order->block_count == 1 ? "" : "s", order->state_count, order->state_count == 1 ? "" : "s");
    run_note(run, "%" PRIu64 " units: %zu rows, %zu repetitions, %zu %s%s%s%s, order %s, seed %" PRIu64,
             measurement->units_total, rows, plan_positions(run->plan) / rows, lanes, whole ? "node" : "core",
             lanes == 1 ? "" : "s", nodes, blocks, design_order_kind_name(run->plan->order->kind),
             design_specification_seed(run->campaign->design));
}

/* ---- Lanes -----------------------------------------------------------------------------------------------
 */

/* So that memory is bounded however many kernels take rows. */
static size_t choose_ahead(size_t lanes) {
    size_t share = ahead_bytes_together / (lanes ? lanes : 1);
    return share > AHEAD_BYTES_MOST    ? AHEAD_BYTES_MOST
           : share < AHEAD_BYTES_LEAST ? AHEAD_BYTES_LEAST
                                       : share;
}

void block_clear(struct measurement *measurement) {
    for (size_t i = 0; i < measurement->lane_count; i++)
        lane_close(&measurement->lanes[i]);
    free(measurement->lanes);
    measurement->lanes = NULL;
    measurement->lane_count = 0;
}

/* An experiment that is broken is so in every block, however few units it has. */
static void inherit_failures(struct measurement *measurement, const struct lane *before, size_t count) {
    for (size_t i = 0; i < count && i < measurement->lane_count; i++) {
        struct lane *lane = &measurement->lanes[i];
        if (before[i].node == lane->node && strcmp(before[i].core, lane->core) == 0)
            lane->failures_in_a_row = before[i].failures_in_a_row;
    }
}

static size_t count_lanes(const struct run *run) {
    if (run->experiment->placement == EXPERIMENT_PLACEMENT_NODE)
        return run->node_count;
    size_t count = 0;
    for (size_t i = 0; i < run->node_count; i++)
        count += run->nodes[i].core_count;
    return count;
}

static int open_lanes(struct measurement *measurement, const struct design_block *block,
                      struct failure *failure) {
    struct run *run = measurement->run;
    bool whole = run->experiment->placement == EXPERIMENT_PLACEMENT_NODE;
    size_t count = count_lanes(run), before_count = measurement->lane_count;
    struct lane *before = measurement->lanes, *lanes = calloc(count, sizeof *lanes);
    if (!lanes)
        return failure_memory(failure);
    measurement->lanes = lanes;
    measurement->lane_count = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        for (size_t core = 0; r == 0 && core < (whole ? 1 : run->nodes[i].core_count); core++)
            r = lane_open(&lanes[measurement->lane_count++], measurement, &run->nodes[i], core, block,
                          failure);
    inherit_failures(measurement, before, before_count);
    measurement->opened = true;
    free(before);
    measurement->lanes_open = r < 0 ? 0 : count;
    for (size_t i = 0; r == 0 && i < count; i++)
        if (lanes[i].count == 0) {
            lanes[i].finished = true;
            measurement->lanes_open--;
        }
    measurement->ahead_bytes = choose_ahead(count);
    return r;
}

void measurement_lane_over(struct measurement *measurement, struct lane *lane) {
    if (lane->finished)
        return;
    lane->finished = true;
    if (--measurement->lanes_open == 0)
        event_loop_stop(measurement->run->loop);
}

/* After the loop was stopped: asks what still runs to end, and gives it time to (an mpirun has ranks
 * elsewhere to end). What does not is killed when its lane is cleared. */
static void end_lanes(struct measurement *measurement) {
    struct event_loop *loop = measurement->run->loop;
    event_loop_resume(loop);
    for (size_t i = 0; i < measurement->lane_count; i++)
        if (measurement->lanes[i].command && !measurement->lanes[i].finished)
            remote_command_kill(measurement->lanes[i].command, SIGTERM, NULL);
    int64_t deadline = clock_monotonic_ns() + end_grace_ns, left;
    while (measurement->lanes_open > 0 && (left = deadline - clock_monotonic_ns()) > 0 &&
           !event_loop_is_stopped(loop))
        if (event_loop_run_once(loop, left, NULL) < 0)
            break;
    event_loop_resume(loop);
}

/* ---- The block -------------------------------------------------------------------------------------------
 */

/* What is still to do, at positions from FIRST on, COUNT of them, with the lanes that the nodes have now. */
struct todo {
    uint64_t units;
    double weight;
};

static void add_place(const struct run *run, size_t place, size_t first, size_t count, struct todo *todo) {
    if (ledger_count_done(run->ledger, place, first, count) == count)
        return;
    for (size_t i = first; i < first + count; i++)
        if (!ledger_is_done(run->ledger, place, i)) {
            todo->units++;
            todo->weight += plan_weight(run->plan, i);
        }
}

static int count_todo(const struct run *run, size_t first, size_t count, struct todo *todo) {
    bool whole = run->experiment->placement == EXPERIMENT_PLACEMENT_NODE;
    *todo = (struct todo){0};
    for (size_t i = 0; i < run->node_count; i++)
        for (size_t core = 0; core < (whole ? 1 : run->nodes[i].core_count); core++) {
            char name[16] = "all";
            if (!whole)
                snprintf(name, sizeof name, "%u", run->nodes[i].cores[core]->index);
            size_t place = ledger_place(run->ledger, run->nodes[i].name, name);
            if (place == SIZE_MAX)
                return -ENOMEM;
            add_place(run, place, first, count, todo);
        }
    return 0;
}

static void journal_planned(struct run *run, size_t lanes) {
    journal_begin(run->journal, "planned");
    journal_integer(run->journal, "units", (int64_t)run->units_planned);
    journal_integer(run->journal, "rows", (int64_t)run->plan->design->row_count);
    journal_integer(run->journal, "repetitions", (int64_t)run->plan->order->repetitions);
    journal_integer(run->journal, "lanes", (int64_t)lanes);
    journal_end(run->journal);
}

/* What there is to do in all, from BLOCK on with as many lanes as the nodes have now. */
static int count_units(struct measurement *measurement, const struct design_block *block,
                       struct failure *failure) {
    struct run *run = measurement->run;
    size_t lanes = count_lanes(run);
    struct todo todo;
    if (lanes == measurement->lanes_counted)
        return 0;
    measurement->lanes_counted = lanes;
    if (count_todo(run, block->first, plan_positions(run->plan) - block->first, &todo) < 0)
        return failure_memory(failure);
    measurement->units_total = run->units->done + measurement->failed_here + todo.units;
    measurement->weight_total = measurement->weight_done + todo.weight;
    run->units_planned = measurement->units_total;
    journal_planned(run, lanes);
    return run_check_units(run, lanes, failure);
}

/* One pass: all lanes that are not finished, to their ends. */
static int run_lanes(struct measurement *measurement, struct failure *failure) {
    struct run *run = measurement->run;
    int r = 0;
    for (size_t i = 0; r == 0 && i < measurement->lane_count; i++) {
        struct lane *lane = &measurement->lanes[i];
        if (!lane->finished)
            r = run->experiment->streamed ? lane_start_streamed(lane, failure)
                                          : lane_start_commands(lane, failure);
    }
    /* It is stopped by the last lane, by a failure, or by a signal. */
    return r < 0 || measurement->lanes_open == 0 ? r : event_loop_run(run->loop, failure);
}

static bool is_over(const struct measurement *measurement) {
    return measurement->ended || measurement->run->interrupted;
}

/* What gates want again is measured again, while the state is still set. */
static int run_passes(struct measurement *measurement, struct failure *failure) {
    for (unsigned attempt = 1;; attempt++) {
        int r = run_lanes(measurement, failure);
        if (r < 0) /* before those that have started are ended, which would look like their own failure */
            measurement_fail(measurement, failure);
        end_lanes(measurement);
        bool again = verdict_settle(measurement);
        if (r < 0 || !again || is_over(measurement))
            return r;
        size_t units = 0;
        for (size_t i = 0; i < measurement->lane_count; i++)
            if (lane_repeat(&measurement->lanes[i])) {
                measurement->lanes_open++;
                units += measurement->lanes[i].count;
            }
        run_note(measurement->run,
                 "%zu unit%s measured again, as their state was not what it should be (attempt %u)", units,
                 units == 1 ? " is" : "s are", attempt + 1);
    }
}

/* A run may have ended between a unit and its repetition. */
static bool wants_repeats(const struct run *run, const struct design_block *block) {
    for (size_t place = 0; run->part > 1 && place < ledger_place_count(run->ledger); place++)
        for (size_t i = block->first; i < block->first + block->count; i++)
            if (lane_wants_repeat(run, place, i))
                return true;
    return false;
}

/* Is anything of the block left to do, as far as can be told before its state is set? */
static int is_left(const struct run *run, const struct design_block *block, bool *ret,
                   struct failure *failure) {
    struct todo todo;
    if (count_todo(run, block->first, block->count, &todo) < 0)
        return failure_memory(failure);
    *ret = todo.units > 0 || wants_repeats(run, block);
    return 0;
}

int block_measure(struct measurement *measurement, const struct design_block *block,
                  struct failure *failure) {
    struct run *run = measurement->run;
    bool left = true;
    measurement->opened = false;
    measurement->block = block;
    int r = count_units(measurement, block, failure);
    if (r == 0)
        r = is_left(run, block, &left, failure);
    if (r < 0 || !left)
        return r;
    if (!measurement->noted) {
        measurement->noted = true;
        note_units(measurement);
    }
    run->block_number++;
    note_begin(measurement, block);
    r = run_set_block(run, (size_t)(block - run->plan->order->blocks), failure);
    if (r == 0 && !measurement->ended && !run->interrupted) {
        r = count_units(measurement, block, failure); /* the state may have changed what cores there are */
        if (r == 0)
            r = open_lanes(measurement, block, failure);
        if (r == 0)
            r = run_passes(measurement, failure);
        for (size_t i = 0; i < measurement->lane_count; i++)
            lane_close(&measurement->lanes[i]);
    }
    note_end(measurement);
    return r;
}
