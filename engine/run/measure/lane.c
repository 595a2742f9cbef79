/* What streamed and command lanes share: how they begin, the command that they start, and how they end early.
 */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/secret.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/nodes/software.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX = 2 << 20 }; /* bytes, with what comes at once */

/* ---- Positions */

/* Is the unit done, but a gate wants it measured again and that has not happened yet? */
static bool wants_repeat(const struct node_set *set, size_t place, size_t position) {
    const struct gate_settings *gates = &set->campaign->gates;
    return unit_state_action(gates, ledger_flags(set->record->ledger, place, position)) == GATE_REPEAT &&
           (int64_t)ledger_attempts(set->record->ledger, place, position) <= gates->repeats;
}

bool measure_wants_repeats(const struct node_set *set, size_t first, size_t count) {
    for (size_t place = 0; set->record->part > 1 && place < ledger_place_count(set->record->ledger); place++)
        for (size_t i = first; i < first + count; i++)
            if (wants_repeat(set, place, i))
                return true;
    return false;
}

/* Chooses the positions that are left for the lane in BLOCK, and those that a gate wants measured again. */
static void choose_positions(struct lane *lane, const struct design_block *block) {
    const struct node_set *set = lane->measurement->set;
    size_t *list = xcalloc(block->count, sizeof *list);
    for (size_t i = block->first; i < block->first + block->count; i++)
        if (!ledger_is_done(set->record->ledger, lane->at.place, i) &&
            !settling_skips(&lane->measurement->progress->settling, i))
            list[lane->count++] = i;
        else if (wants_repeat(set, lane->at.place, i))
            lane_add_repeat(lane, i);
    if (lane->count == block->count)
        free(list);
    else
        lane->list = list;
}

size_t lane_position(const struct lane *lane, size_t k) {
    return lane->list ? lane->list[k] : lane->first + k;
}

void lane_add_repeat(struct lane *lane, size_t position) {
    size_t count = lane->repeat_count;
    if ((count & (count - 1)) == 0) /* 0 or a power of two: full */
        lane->to_repeat = xrealloc(lane->to_repeat, (count ? 2 * count : 1) * sizeof position);
    lane->to_repeat[lane->repeat_count++] = position;
}

bool lane_out_of_time(struct lane *lane, size_t k, int64_t busy_ns) {
    if (measurement_has_time(lane->measurement, lane_position(lane, k), busy_ns))
        return false;
    lane->refused = lane->measurement->refused = true;
    return true;
}

/* ---- Beginning and end */

void lane_open(struct lane *lane, struct measurement *measurement, struct run_node *node, size_t i,
               const struct design_block *block) {
    *lane =
        (struct lane){.measurement = measurement, .first = block->first, .pass = 1, .since_ns = INT64_MIN};
    text_init(&lane->kernel.line, LINE_MAX);
    text_init(&lane->unit.output, LANE_OUTPUT_MAX);
    text_init(&lane->unit.file, LANE_OUTPUT_MAX);
    text_init(&lane->errors, LINE_MAX);
    placement_init(&lane->at, measurement->set, node, i);
    lane->shares = lane->at.count;
    choose_positions(lane, block);
}

int lane_start(struct lane *lane, struct failure *failure) {
    lane->turn_ns = clock_monotonic_ns();
    return lane->measurement->set->experiment->streamed ? lane_start_streamed(lane, failure)
                                                        : lane_start_commands(lane, failure);
}

void lane_close(struct lane *lane) {
    lane_clear_kernel(lane);
    lane_forget_files(lane);
    lane->unit.after_sweep = NULL;
    text_clear(&lane->kernel.line);
    text_clear(&lane->unit.output);
    text_clear(&lane->unit.file);
    free(take_pointer(lane->unit.keep_error));
    text_clear(&lane->errors);
    placement_clear(&lane->at);
    free(take_pointer(lane->list));
    free(take_pointer(lane->to_repeat));
    results_drop(lane);
}

bool lane_repeat(struct lane *lane) {
    if (lane->repeat_count == 0)
        return false;
    lane_clear_kernel(lane);
    free(lane->list);
    lane->list = take_pointer(lane->to_repeat);
    lane->count = lane->repeat_count;
    lane->repeat_count = lane->next = 0;
    lane->finished = lane->refused = false;
    lane->pass++;
    return true;
}

/* ---- Its command */

struct plan_values lane_values(const struct lane *lane) {
    const struct plan *plan = lane->measurement->set->plan;
    struct plan_values values = plan_values_new(plan, lane->at.shares->pu_count);
    bool streamed = lane->measurement->set->experiment->streamed;
    size_t position = streamed ? lane->measurement->block->first : lane_position(lane, lane->next);
    plan_values_set(&values, plan, position, lane->measurement->progress->block_number);
    return values;
}

static void log_command(const struct lane *lane, const char *const *arguments) {
    cleanup(text_clear) struct text line;
    text_init(&line, 64 << 10);
    text_append_command(&line, arguments);
    record_log(lane->measurement->set->record, "node %s, core %s: %s", lane->at.node->name, lane->at.core,
               line.bytes);
}

char *lane_name_nodes(const struct lane *lane, size_t count) {
    struct text names;
    text_init(&names, 16 << 20);
    if (lane->measurement->set->experiment->placement != EXPERIMENT_PLACEMENT_JOB)
        return xstrdup(lane->at.node->name);
    (void)placement_append_nodes(&lane->at, count, &names); /* of a few nodes, so that it always fits */
    return text_take(&names);
}

/* Journals ITEMS as member KEY, or null where they have too many bytes. Nothing when NODES had the same ITEMS
 * before: LAST is the hash of both, and becomes that of these. */
static void journal_changed(struct journal *journal, const char *key, const char *nodes,
                            const char *const *items, char last[static HASH_HEX_SIZE]) {
    char hash[HASH_HEX_SIZE];
    cleanup(text_clear) struct text joined;
    text_init(&joined, NODE_CALL_BYTES_MAX);
    int r = text_append(&joined, nodes, strlen(nodes) + 1);
    for (size_t i = 0; r == 0 && items[i]; i++)
        r = text_append(&joined, items[i], strlen(items[i]) + 1);
    hash_bytes(joined.bytes, joined.length, hash);
    if (strcmp(hash, last) == 0)
        return;
    memcpy(last, hash, sizeof hash);
    if (r == 0)
        journal_strings(journal, key, items);
    else
        journal_string(journal, key, NULL);
}

/* Journals the command of the lane's unit, or of the kernel that measures several. From ENVIRONMENT, which is
 * cut, go what may be a secret, and the unit's own VALUES, which its line of the results has. */
static void journal_command(struct lane *lane, const struct plan_values *values, const char *const *arguments,
                            const char **environment) {
    struct node_set *set = lane->measurement->set;
    struct journal *journal = set->record->journal;
    size_t position = lane_position(lane, lane->next), kept = 0, from = values->unit_from;
    const struct experiment_values own = plan_values_view(&(struct plan_values){
        .names = values->names + from, .values = values->values + from, .count = values->count - from});
    cleanup_free char *nodes = lane_name_nodes(lane, lane->shares);
    for (size_t i = 0; environment[i]; i++)
        if (!secret_is_variable(environment[i]) &&
            !experiment_values_get(&own, environment[i], strcspn(environment[i], "=")))
            environment[kept++] = environment[i];
    environment[kept] = NULL;
    journal_begin(journal, "unit-command");
    journal_string(journal, "node", nodes);
    journal_string(journal, "core", lane->at.core);
    journal_integer(journal, "block", (int64_t)lane->measurement->progress->block_number);
    journal_integer(journal, set->experiment->streamed ? "first" : "order", (int64_t)position + 1);
    if (!set->experiment->streamed)
        journal_integer(journal, "attempt",
                        ledger_attempts(set->record->ledger, lane->at.place, position) + 1);
    journal_changed(journal, "arguments", nodes, arguments, lane->at.node->last_arguments);
    journal_changed(journal, "environment", nodes, environment, lane->at.node->last_environment);
    journal_end(journal);
}

/* Starts the run command with the unit's values as arguments and environment. Ranks run in the software's
 * container, mpirun does not. */
int lane_launch(struct lane *lane, struct remote_command_specification *specification,
                const struct remote_command_callbacks *callbacks, struct failure *failure) {
    static const char *const none[] = {NULL};
    struct node_set *set = lane->measurement->set;
    cleanup(plan_values_clear) struct plan_values values = lane_values(lane);
    cleanup(job_free_words) char **arguments = NULL, **environment = plan_values_environment(&values);
    struct experiment_values view = plan_values_view(&values);
    int r = experiment_command_arguments(&set->experiment->run, set->experiment->file, &view, &arguments,
                                         failure);
    if (r == 0 && lane->measurement->job)
        r = job_adapt(lane, &lane->unit.shape, &view, &arguments, &environment, failure);
    if (r < 0)
        return r;
    /* Ranks run in the container, mpirun does not. */
    cleanup_free const char **prefixed = software_join(
                                experiment_has_ranks(set->experiment) ? none : software_prefix(set),
                                (const char *const *)arguments),
                            **added = software_join(software_environment(set, lane->at.node),
                                                    (const char *const *)environment);
    specification->arguments = prefixed;
    specification->environment = added;
    specification->folder = RUN_WORK_FOLDER;
    if (!lane->measurement->job) { /* MPI libraries bind their ranks themselves */
        specification->pus = lane->at.shares->pus;
        specification->pu_count = lane->at.shares->pu_count;
    }
    if (lane->pass == 1 && lane_position(lane, lane->next) == 0)
        log_command(lane, prefixed);
    r = remote_command_start(lane->at.node->link, specification, callbacks, lane, &lane->command, failure);
    if (r == 0)
        journal_command(lane, &values, prefixed, added);
    return r;
}

/* ---- Failures --------------------------------------------------------------------------------------------
 */

/* Makes one line of TEXT, in place, without lines of dashes. */
static void join_lines(char *text) {
    char *end = text;
    for (const char *at = text; *at; at++) {
        bool at_word = end == text || end[-1] == ' ';
        if ((unsigned char)*at > ' ' && !(*at == '-' && at_word))
            *end++ = *at;
        else if (!at_word)
            *end++ = ' ';
    }
    end -= end > text && end[-1] == ' ';
    *end = '\0';
}

void lane_append_errors(const char *errors, bool rules, size_t most, struct text *why) {
    int length;
    const char *reason = text_reason(errors, &length);
    cleanup_free char *line = rules ? xstrdup(errors) : xstrndup(reason, (size_t)length);
    if (rules)
        join_lines(line);
    text_shorten(line, strlen(line), most);
    text_printf(why, "%s%s", line[0] ? ": " : "", line);
}

/* Has a unit been done on another node? Then it is not the experiment that is broken. */
static bool works_elsewhere(const struct node_set *set, const struct run_node *node) {
    if (set->experiment->placement == EXPERIMENT_PLACEMENT_JOB)
        return false;
    for (size_t place = 0; place < ledger_place_count(set->record->ledger); place++)
        if (strcmp(ledger_place_node(set->record->ledger, place), node->name) != 0 &&
            ledger_count_done(set->record->ledger, place, 0, plan_positions(set->plan)) > 0)
            return true;
    return false;
}

/* Notes that a unit has failed. After too many in a row the node is broken if units work on other nodes; else
 * the experiment is. */
void lane_note_failure(struct lane *lane, size_t position, const char *why) {
    struct node_set *set = lane->measurement->set;
    struct failure failure;
    record_note(set->record, "unit %zu on node %s failed: %s", position + 1, lane->at.node->name, why);
    if (!lane->measurement->first_failure[0])
        snprintf(lane->measurement->first_failure, sizeof lane->measurement->first_failure,
                 "unit %zu on node %s: %s", position + 1, lane->at.node->name, why);
    int64_t limit = set->campaign->stop_after_failures;
    if (++lane->failures_in_a_row < limit || limit <= 0)
        return;
    /* The node is taken to be broken if other nodes can do units, else the experiment. */
    failure_set_kind(&failure, FAILURE_EXPERIMENT, -EIO, "%u units in a row failed; the last: %s",
                     lane->failures_in_a_row, why);
    if (set->campaign->node_loss.action != NODE_LOSS_ABORT && works_elsewhere(set, lane->at.node))
        measurement_lose_node(lane->measurement, lane->at.node, NODE_OUT_FAILING, &failure);
    else
        measurement_fail(lane->measurement, &failure);
}

/* Ends what is under way for a unit: its files, its command, its ranks, or the sweep after it. */
static void end_unit(struct lane *lane) {
    remote_command_free(take_pointer(lane->command));
    lane_forget_files(lane);
    if (lane->measurement->job)
        job_end_unit(lane, false, NULL);
}

/* Takes NODE out and ends its lanes. A job's unit begins again on the nodes that are left, outside of this
 * callback; hence the loop is stopped. */
void measurement_lose_node(struct measurement *measurement, struct run_node *node, const char *word,
                           const struct failure *why) {
    struct node_set *set = measurement->set;
    struct failure ending;
    bool was_in = run_node_is_in(node), interrupted = false;
    if (node_set_take_out(set, node, word, why, &ending) < 0)
        measurement_fail(measurement, &ending);
    for (size_t i = 0; was_in && i < measurement->lane_count; i++) {
        struct lane *lane = &measurement->lanes[i];
        if (lane->finished || !placement_has(&lane->at, node))
            continue;
        end_unit(lane);
        if (set->experiment->placement == EXPERIMENT_PLACEMENT_JOB) {
            interrupted = true;
            continue;
        }
        /* Units that it will not measure in this pass are not waited for. */
        for (size_t k = lane->next; k < lane->count; k++)
            unit_times_plan(measurement->times, design_order_row(set->plan->order, lane_position(lane, k)),
                            -1);
        measurement_lane_finish(measurement, lane);
    }
    /* A spare is brought in outside of callbacks, and there the job's unit begins again, with the nodes that
     * are left. */
    if ((interrupted || spares_are_wanted(set)) && !set->joining && !measurement->testing_mpi)
        event_loop_stop(set->loop);
}

bool lane_handle_loss(struct lane *lane, const struct failure *why) {
    enum agent_link_state state = agent_link_state(lane->at.node->link);
    if (!why || why->kind == FAILURE_EXPERIMENT || state == AGENT_LINK_READY || state == AGENT_LINK_BROKEN)
        return false;
    measurement_lose_node(lane->measurement, lane->at.node, NODE_OUT_LOST, why);
    return true;
}

void lane_end_hung_node(struct lane *lane, const char *what) {
    struct failure why;
    failure_set_kind(&why, FAILURE_EXPERIMENT, -ETIMEDOUT, "on core %s, %s could not be ended", lane->at.core,
                     what);
    measurement_lose_node(lane->measurement, lane->at.node, NODE_OUT_HUNG, &why);
}
