/* The measure phase: opens the lanes, records what they answer, commits it, and shows how far things are. */
#include "engine/run/lane.h"

#include "archive-format/reader.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whoever sees a unit as done can rely on it being on disk, so the counts are shown after each commit. Four
 * commits a second cost the measured machine little. */
static const int64_t commit_period_ns = 250 * EVENT_MILLISECOND;
static const int64_t rate_window_ns = 5 * EVENT_SECOND;
static const int64_t end_grace_ns = 3 * EVENT_SECOND; /* between SIGTERM and SIGKILL */

/* ---- Records ---------------------------------------------------------------------------------------------
 */

/* A line of results.csv, whole or not at all. */
static int append_unit(struct measurement *measurement, const struct lane *lane, size_t position,
                       const struct lane_start *start, const double *responses) {
    struct run *run = measurement->run;
    const struct plan *plan = run->plan;
    size_t row = design_order_row(plan->order, position);
    struct text *text = &run->results->pending;
    size_t before = text->length;
    int r = csv_append_int64(text, true, (int64_t)row + 1);
    r = r < 0 ? r
              : csv_append_int64(text, false, (int64_t)design_order_repetition(plan->order, position) + 1);
    r = r < 0 ? r : csv_append_int64(text, false, (int64_t)position + 1);
    r = r < 0 ? r : csv_append_field(text, false, lane->node->name, strlen(lane->node->name));
    r = r < 0 ? r : csv_append_field(text, false, lane->core, strlen(lane->core));
    r = r < 0 ? r : csv_append_int64(text, false, start->wall_ns);
    if (r == 0 && start->monotonic_ns >= 0)
        r = csv_append_int64(text, false, start->monotonic_ns);
    else if (r == 0)
        r = text_append_character(text, ','); /* an empty field */
    r = r < 0 ? r : plan_append_factors(plan, row, text);
    for (size_t i = 0; r == 0 && i < run->experiment->response_count; i++)
        r = csv_append_double(text, false, responses[i]);
    r = r < 0 ? r : text_append_character(text, '\n');
    if (r < 0 && text->capacity) {
        text->length = before;
        text->bytes[before] = '\0';
    }
    return r;
}

void measurement_record(struct measurement *measurement, const struct lane *lane, size_t position,
                        const struct lane_start *start, const double *responses, const char *why) {
    struct run *run = measurement->run;
    const struct plan *plan = run->plan;
    size_t row = design_order_row(plan->order, position),
           repetition = design_order_repetition(plan->order, position);
    if (responses && append_unit(measurement, lane, position, start, responses) < 0) {
        struct failure failure;
        failure_set(&failure, -ENOMEM,
                    "cannot keep the results of %zu units in memory until they are written",
                    (size_t)(run->units_done + 1));
        measurement_fail(measurement, &failure);
        return;
    }
    journal_begin(run->journal, "unit");
    journal_integer(run->journal, "row", (int64_t)row + 1);
    journal_integer(run->journal, "repetition", (int64_t)repetition + 1);
    journal_integer(run->journal, "order", (int64_t)position + 1);
    journal_string(run->journal, "node", lane->node->name);
    journal_string(run->journal, "core", lane->core);
    journal_string(run->journal, "status", responses ? "done" : "failed");
    if (why)
        journal_string(run->journal, "sentence", why);
    journal_end(run->journal);
    if (responses)
        run->units_done++;
    else
        run->units_failed++;
    measurement->weight_done += plan_weight(plan, position);
}

/* ---- Progress --------------------------------------------------------------------------------------------
 */

static void show_progress(struct measurement *measurement) {
    struct run *run = measurement->run;
    int64_t now = clock_monotonic_ns();
    uint64_t units = run->units_done + run->units_failed;
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
        reached += agent_link_state(run->nodes[i].link) == AGENT_LINK_READY;
    if (observer->event)
        observer->event(observer->context, &(struct run_event){.kind = RUN_EVENT_PROGRESS,
                                                               .nodes_done = reached,
                                                               .nodes_total = run->node_count,
                                                               .units_done = run->units_done,
                                                               .units_failed = run->units_failed,
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

static void on_commit_timer(struct event_source *source, void *context) {
    (void)source;
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

void measurement_lane_over(struct measurement *measurement, struct lane *lane) {
    if (lane->finished)
        return;
    lane->finished = true;
    if (--measurement->lanes_open == 0)
        event_loop_stop(measurement->run->loop);
}

static void clear_measurement(struct measurement *measurement) {
    event_source_remove(measurement->commit_timer);
    for (size_t i = 0; measurement->lanes && i < measurement->lane_count; i++) {
        struct lane *lane = &measurement->lanes[i];
        remote_command_free(lane->command);
        text_clear(&lane->line);
        text_clear(&lane->output);
        text_clear(&lane->errors);
        free(lane->columns);
        free((void *)lane->pus);
    }
    free(measurement->lanes);
    if (measurement->patterns)
        for (size_t i = 0; i < measurement->run->experiment->response_count; i++)
            regfree(&measurement->patterns[i]);
    free(measurement->patterns);
}

/* ---- Commands */

int lane_launch(struct lane *lane, struct remote_command_specification *specification,
                const struct remote_command_callbacks *callbacks, struct failure *failure) {
    struct run *run = lane->measurement->run;
    struct plan_values values = {0};
    char **arguments = NULL, **environment = NULL;
    int r = plan_values_new(run->plan, lane->pu_count, &values, failure);
    if (r == 0 && !run->experiment->streamed)
        r = plan_values_set_unit(&values, run->plan, lane->next, failure);
    if (r == 0) {
        struct experiment_values usable = plan_values_view(&values);
        r = experiment_command_arguments(&run->experiment->run, run->experiment->file, &usable, &arguments,
                                         failure);
    }
    if (r == 0)
        r = plan_values_environment(&values, &environment, failure);
    if (r == 0) {
        specification->arguments = (const char *const *)arguments;
        specification->environment = (const char *const *)environment;
        specification->folder = RUN_WORK_FOLDER;
        specification->pus = lane->pus;
        specification->pu_count = lane->pu_count;
        if (lane->next == 0) {
            struct text line;
            text_init(&line, 64 << 10);
            experiment_command_describe(arguments, &line);
            run_log(run, "node %s, core %s: %s", lane->node->name, lane->core, line.bytes);
            text_clear(&line);
        }
        r = remote_command_start(lane->node->link, specification, callbacks, lane, &lane->command, failure);
    }
    experiment_arguments_free(arguments);
    experiment_arguments_free(environment);
    plan_values_clear(&values);
    return r;
}

/* ---- Beginnings ------------------------------------------------------------------------------------------
 */

enum {
    LINE_MOST = 1 << 20,
    FILES_APART = 16384,         /* of an archive: all but the output of units, for a few nodes; and */
    FILES_OF_A_NODE = 64,        /* of each */
    AHEAD_BYTES_MOST = 64 << 10, /* rows that wait on this side for one kernel; the pipe holds more */
    AHEAD_BYTES_LEAST = 4 << 10,
};
/* Of a campaign on hundreds of nodes, all rows that wait. */
static const size_t ahead_bytes_together = 64 << 20;

static int open_lane(struct measurement *measurement, struct lane *lane, struct run_node *node, size_t core,
                     struct failure *failure) {
    struct run *run = measurement->run;
    bool whole = run->experiment->placement == EXPERIMENT_PLACEMENT_NODE;
    *lane = (struct lane){.measurement = measurement, .node = node, .pu_count = whole ? node->core_count : 1};
    text_init(&lane->line, LINE_MOST);
    text_init(&lane->output, LANE_OUTPUT_MOST);
    text_init(&lane->errors, LINE_MOST);
    unsigned *pus = calloc(lane->pu_count, sizeof *pus);
    if (!pus)
        return failure_memory(failure);
    for (size_t i = 0; i < lane->pu_count; i++)
        pus[i] = node->cores[whole ? i : core]->index;
    lane->pus = pus;
    if (whole)
        memcpy(lane->core, "all", sizeof "all");
    else
        snprintf(lane->core, sizeof lane->core, "%u", pus[0]);
    return 0;
}

/* So that memory is bounded however many kernels take rows. */
static size_t choose_ahead(size_t lanes) {
    size_t share = ahead_bytes_together / (lanes ? lanes : 1);
    return share > AHEAD_BYTES_MOST    ? AHEAD_BYTES_MOST
           : share < AHEAD_BYTES_LEAST ? AHEAD_BYTES_LEAST
                                       : share;
}

static int open_lanes(struct measurement *measurement, struct failure *failure) {
    struct run *run = measurement->run;
    bool whole = run->experiment->placement == EXPERIMENT_PLACEMENT_NODE;
    size_t count = 0;
    for (size_t i = 0; i < run->node_count; i++)
        count += whole ? 1 : run->nodes[i].core_count;
    measurement->lanes = calloc(count, sizeof *measurement->lanes);
    if (!measurement->lanes)
        return failure_memory(failure);
    for (size_t i = 0; i < run->node_count; i++)
        for (size_t core = 0; core < (whole ? 1 : run->nodes[i].core_count); core++) {
            int r = open_lane(measurement, &measurement->lanes[measurement->lane_count++], &run->nodes[i],
                              core, failure);
            if (r < 0)
                return r;
        }
    measurement->lanes_open = count;
    measurement->ahead_bytes = choose_ahead(count);
    return 0;
}

static int compile_patterns(struct measurement *measurement, struct failure *failure) {
    const struct experiment *experiment = measurement->run->experiment;
    if (experiment->streamed)
        return 0;
    measurement->patterns = calloc(experiment->response_count, sizeof *measurement->patterns);
    if (!measurement->patterns)
        return failure_memory(failure);
    for (size_t i = 0; i < experiment->response_count; i++)
        if (regcomp(&measurement->patterns[i], experiment->responses[i].pattern,
                    REG_EXTENDED | REG_NEWLINE) != 0)
            return failure_memory(failure); /* it compiled when the experiment was read */
    return 0;
}

static int write_header(struct run *run, struct failure *failure) {
    struct text *text = &run->results->pending;
    int r = text_append_string(text, "row,repetition,order,node,core,start,start_monotonic");
    for (size_t i = 0; r == 0 && i < run->experiment->factor_count; i++)
        r = csv_append_field(text, false, run->experiment->factors[i].name,
                             strlen(run->experiment->factors[i].name));
    for (size_t i = 0; r == 0 && i < run->experiment->response_count; i++)
        r = csv_append_field(text, false, run->experiment->responses[i].name,
                             strlen(run->experiment->responses[i].name));
    if (r == 0)
        r = text_append_character(text, '\n');
    return r < 0 ? failure_memory(failure) : run_commit(run, failure);
}

/* Units keep their output in up to two files each, and an archive has room for so many. */
int run_check_units(const struct run *run, uint64_t lanes, struct failure *failure) {
    uint64_t units = lanes * plan_positions(run->plan);
    uint64_t apart = FILES_APART + (uint64_t)run->node_count * FILES_OF_A_NODE;
    if (run->experiment->streamed || 2 * units + apart <= ARCHIVE_ENTRIES_MOST)
        return 0;
    return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                            "%" PRIu64
                            " units would keep their output in more files than the %d of an archive; "
                            "expected fewer rows, repetitions or nodes",
                            units, ARCHIVE_ENTRIES_MOST);
}

static void note_units(const struct measurement *measurement) {
    struct run *run = measurement->run;
    size_t rows = run->plan->design->row_count, lanes = measurement->lane_count;
    bool whole = run->experiment->placement == EXPERIMENT_PLACEMENT_NODE;
    char nodes[64] = "";
    if (!whole && run->node_count > 1)
        snprintf(nodes, sizeof nodes, " of %zu nodes", run->node_count);
    run_note(run, "%" PRIu64 " units: %zu rows, %zu repetitions, %zu %s%s%s, order %s, seed %" PRIu64,
             measurement->units_total, rows, plan_positions(run->plan) / rows, lanes, whole ? "node" : "core",
             lanes == 1 ? "" : "s", nodes, design_order_kind_name(run->plan->order->kind),
             design_specification_seed(run->campaign->design));
}

static int measure(struct measurement *measurement, struct failure *failure) {
    struct run *run = measurement->run;
    size_t positions = plan_positions(run->plan);
    int r = compile_patterns(measurement, failure);
    if (r == 0)
        r = open_lanes(measurement, failure);
    if (r == 0)
        r = write_header(run, failure);
    if (r < 0)
        return r;
    measurement->units_total = (uint64_t)positions * measurement->lane_count;
    for (size_t i = 0; i < positions; i++)
        measurement->weight_total += plan_weight(run->plan, i) * (double)measurement->lane_count;
    run->units_planned = measurement->units_total;
    note_units(measurement);
    measurement->commit_timer =
        event_loop_add_timer(run->loop, commit_period_ns, commit_period_ns, on_commit_timer, measurement);
    if (!measurement->commit_timer)
        return failure_memory(failure);
    measurement->started_ns = measurement->window_ns = clock_monotonic_ns();
    for (size_t i = 0; r == 0 && i < measurement->lane_count; i++)
        r = run->experiment->streamed ? lane_start_streamed(&measurement->lanes[i], failure)
                                      : lane_start_commands(&measurement->lanes[i], failure);
    if (r == 0)
        r = event_loop_run(run->loop, failure);
    return r;
}

int run_phase_measure(struct run *run, struct failure *failure) {
    cleanup(clear_measurement) struct measurement measurement = {.run = run};
    int r = measure(&measurement, failure);
    /* The loop was stopped by the last lane, by a failure, or by a signal. */
    end_lanes(&measurement);
    struct failure commit = {0};
    int committed = run_commit(run, &commit);
    if (r == 0 && measurement.ended) {
        *failure = measurement.why;
        r = measurement.why.code;
    }
    if (r == 0 && committed < 0) {
        *failure = commit;
        r = committed;
    }
    if (committed == 0 && measurement.units_total > 0)
        show_progress(&measurement);
    if (r == 0 && run->units_failed > 0 && !run->interrupted)
        r = failure_set_kind(failure, FAILURE_EXPERIMENT, -EIO,
                             "%" PRIu64 " of %" PRIu64 " units failed; the first: %s", run->units_failed,
                             measurement.units_total, run->first_unit_failure);
    return r;
}
