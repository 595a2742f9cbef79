/* What the two kinds of lanes share: their beginning, their end, and the command that they start. */
#include "engine/run/measure/measurement.h"
#include "engine/run/nodes/software.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 1 << 20 };

bool lane_wants_repeat(const struct run *run, size_t place, size_t position) {
    const struct gate_settings *gates = &run->campaign->gates;
    return unit_state_action(gates, ledger_flags(run->ledger, place, position)) == GATE_REPEAT &&
           (int64_t)ledger_attempts(run->ledger, place, position) <= gates->repeats;
}

bool lane_want_repeats(const struct run *run, size_t first, size_t count) {
    for (size_t place = 0; run->part > 1 && place < ledger_place_count(run->ledger); place++)
        for (size_t i = first; i < first + count; i++)
            if (lane_wants_repeat(run, place, i))
                return true;
    return false;
}

static int choose_positions(struct lane *lane, const struct design_block *block, struct failure *failure) {
    const struct run *run = lane->measurement->run;
    const struct ledger *ledger = run->ledger;
    uint64_t done = ledger_count_done(ledger, lane->at.place, block->first, block->count),
             left_out = settling_count_left_out(run, block);
    lane->count = block->count;
    if (done == 0 && left_out == 0)
        return 0;
    lane->count = 0;
    lane->list = xcalloc(block->count - (done > left_out ? done : left_out) + 1, sizeof *lane->list);
    for (size_t i = block->first; i < block->first + block->count; i++)
        if (!ledger_is_done(ledger, lane->at.place, i) && !settling_leaves_out(run, i))
            lane->list[lane->count++] = i;
        else if (lane_wants_repeat(run, lane->at.place, i) && lane_add_repeat(lane, i) < 0)
            return failure_memory(failure);
    return 0;
}

int lane_open(struct lane *lane, struct measurement *measurement, struct run_node *node, size_t i,
              const struct design_block *block, struct failure *failure) {
    *lane = (struct lane){.measurement = measurement,
                          .first = block->first,
                          .pass = 1,
                          .since_ns = INT64_MIN,
                          .last_begun_ns = -1};
    text_init(&lane->line, LINE_MOST);
    text_init(&lane->output, LANE_OUTPUT_MOST);
    text_init(&lane->errors, LINE_MOST);
    int r = placement_init(&lane->at, measurement->run, node, i, failure);
    lane->shares = lane->at.count;
    return r < 0 ? r : choose_positions(lane, block, failure);
}

void lane_close(struct lane *lane) {
    remote_command_free(take_pointer(lane->command));
    lane_forget_files(lane);
    lane->after_sweep = NULL;
    text_clear(&lane->line);
    text_clear(&lane->output);
    text_clear(&lane->errors);
    free(lane->columns);
    lane->columns = NULL;
    placement_clear(&lane->at);
    free(take_pointer(lane->list));
    free(take_pointer(lane->to_repeat));
    held_units_clear(&lane->held);
}

size_t lane_position(const struct lane *lane, size_t k) {
    return lane->list ? lane->list[k] : lane->first + k;
}

unsigned lane_attempt(const struct lane *lane, size_t position) {
    return ledger_attempts(lane->measurement->run->ledger, lane->at.place, position) + 1;
}

int lane_add_repeat(struct lane *lane, size_t position) {
    size_t count = lane->repeat_count;
    if ((count & (count - 1)) == 0) { /* 0 or a power of two: full */
        size_t *more = realloc(lane->to_repeat, (count ? 2 * count : 1) * sizeof *more);
        if (!more)
            return -ENOMEM;
        lane->to_repeat = more;
    }
    lane->to_repeat[lane->repeat_count++] = position;
    return 0;
}

bool lane_repeat(struct lane *lane) {
    if (lane->repeat_count == 0)
        return false;
    remote_command_free(take_pointer(lane->command));
    text_reset(&lane->line);
    text_reset(&lane->errors);
    free(take_pointer(lane->columns));
    free(lane->list);
    lane->list = take_pointer(lane->to_repeat);
    lane->count = lane->repeat_count;
    lane->repeat_count = lane->next = lane->sent = 0;
    lane->header_seen = lane->finished = lane->input_closed = lane->refused = false;
    lane->ahead_ns = 0;
    lane->last_begun_ns = -1;
    lane->pass++;
    return true;
}

bool lane_refuse(struct lane *lane, size_t k, int64_t busy_ns) {
    if (run_has_time(lane->measurement->run, lane->at.node, lane_position(lane, k), busy_ns))
        return false;
    lane->refused = lane->measurement->refused = true;
    return true;
}

int lane_launch(struct lane *lane, struct remote_command_specification *specification,
                const struct remote_command_callbacks *callbacks, struct failure *failure) {
    struct run *run = lane->measurement->run;
    struct plan_values values = {0};
    char **arguments = NULL, **environment = NULL;
    int r = plan_values_new(run->plan, lane->at.shares->pu_count, &values, failure);
    if (r == 0)
        r = run->experiment->streamed
                ? plan_values_set_block(&values, run->plan, lane->measurement->block->row, run->block_number,
                                        failure)
                : plan_values_set_unit(&values, run->plan, lane_position(lane, lane->next), run->block_number,
                                       failure);
    if (r == 0) {
        struct experiment_values usable = plan_values_view(&values);
        r = experiment_command_arguments(&run->experiment->run, run->experiment->file, &usable, &arguments,
                                         failure);
    }
    if (r == 0)
        r = plan_values_environment(&values, &environment, failure);
    if (r == 0 && lane->measurement->job) {
        struct experiment_values usable = plan_values_view(&values);
        r = job_adapt(lane, &lane->shape, &usable, &arguments, &environment, failure);
    }
    static const char *const none[] = {NULL}; /* the container is what ranks are in, not mpirun */
    cleanup_free const char **prefixed = software_join(
                                experiment_has_ranks(run->experiment) ? none : software_prefix(run),
                                (const char *const *)arguments),
                            **added = software_join(software_environment(run, lane->at.node),
                                                    (const char *const *)environment);
    if (r == 0 && (!prefixed || !added))
        r = failure_memory(failure);
    if (r == 0) {
        specification->arguments = prefixed;
        specification->environment = added;
        specification->folder = RUN_WORK_FOLDER;
        if (!lane->measurement->job) { /* MPI libraries bind their ranks themselves */
            specification->pus = lane->at.shares->pus;
            specification->pu_count = lane->at.shares->pu_count;
        }
        if (lane->pass == 1 && lane_position(lane, lane->next) == 0) {
            struct text line;
            text_init(&line, 64 << 10);
            experiment_command_describe((char *const *)prefixed, &line);
            run_log(run, "node %s, core %s: %s", lane->at.node->name, lane->at.core, line.bytes);
            text_clear(&line);
        }
        r = remote_command_start(lane->at.node->link, specification, callbacks, lane, &lane->command,
                                 failure);
    }
    experiment_arguments_free(arguments);
    experiment_arguments_free(environment);
    plan_values_clear(&values);
    return r;
}
