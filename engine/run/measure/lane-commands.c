/* A lane that runs one command a unit: its output, kept in results/raw/, is read with the responses'
 * patterns. */
#include "archive-format/layout.h"
#include "engine/run/measure/measurement.h"
#include "engine/run/measure/unit-output.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_LEFT_OUT = 1 };
enum { FILE_NOT_REGULAR = 3, FILE_MISSING = 4 }; /* exit codes of fetch_file() */

static int start_unit(struct lane *lane, struct failure *failure);

/* ---- The end of a unit -----------------------------------------------------------------------------------
 */

/* The path of the file that keeps the output of the lane's unit; the caller frees. */
static char *name_output(const struct lane *lane, const char *suffix) {
    const struct ledger *ledger = lane->measurement->set->record->ledger;
    size_t position = lane_position(lane, lane->next);
    return archive_output_path(position + 1, ledger_place_node(ledger, lane->at.place), lane->at.core,
                               ledger_attempts(ledger, lane->at.place, position) + 1, suffix);
}

/* Keeps what the unit wrote, so that a number can be traced to its text. */
static int save_output(struct lane *lane, struct failure *failure) {
    struct node_set *set = lane->measurement->set;
    const struct text *texts[] = {&lane->unit.output, &lane->errors};
    int r = record_make_folder(set->record, ARCHIVE_RAW, failure);
    for (size_t i = 0; r == 0 && i < 2; i++) {
        cleanup_free char *name = name_output(lane, i ? "err" : "out");
        if (texts[i]->length > 0)
            r = run_files_write(&set->record->files, name, texts[i]->bytes, texts[i]->length, failure);
    }
    return r;
}

/* The unit printed more than is kept. For a failed unit WHY says so, since the missing output may be what a
 * pattern was to find; else it is noted once. */
static void note_cut(const struct lane *lane, const struct remote_exit *exit, bool good, struct text *why) {
    struct measurement *measurement = lane->measurement;
    cleanup_free char *sentence =
        xformat("it printed %" PRIu64
                " bytes, of which only the first %d MiB are kept and searched; have it print less",
                exit->output_bytes, LANE_OUTPUT_MAX >> 20);
    if (!good)
        text_printf(why, "; %s", sentence);
    else if (!measurement->cut_noted)
        record_note(measurement->set->record, "unit %zu on node %s: %s", lane_position(lane, lane->next) + 1,
                    lane->at.node->name, sentence);
    measurement->cut_noted |= good;
}

/* The seconds that the lane's next unit may take; 0: any time. */
static double unit_timeout(const struct lane *lane) {
    const struct experiment *experiment = lane->measurement->set->experiment;
    const struct plan *plan = lane->measurement->set->plan;
    double timeout = experiment->timeout;
    if (experiment->overrun > 0 && plan->row_seconds) {
        size_t row = design_order_row(plan->order, lane_position(lane, lane->next));
        double limit = fmax(OVERRUN_SECONDS_MIN, experiment->overrun * plan->row_seconds[row]);
        timeout = timeout > 0 ? fmin(timeout, limit) : limit;
    }
    return timeout;
}

/* Reads the unit's responses and adds it as done or failed; true: done. EXIT is NULL when the command could
 * not be started, for the reason NOT_STARTED. */
static bool record_unit(struct lane *lane, const struct remote_exit *exit, const char *not_started) {
    struct measurement *measurement = lane->measurement;
    const struct lane_unit *unit = &lane->unit;
    double responses[EXPERIMENT_NAMES_MAX];
    char how[128];
    cleanup(text_clear) struct text why;
    text_init(&why, UNIT_OUTPUT_WHY_MAX);
    bool good = exit && !exit->signalled && exit->code == 0 && !exit->timed_out && !unit->stuck;
    if (good && unit->keep_error) {
        good = false;
        text_append_string(&why, unit->keep_error);
    } else if (good) {
        good = unit_output_read(measurement->set->experiment, measurement->patterns, &measurement->texts,
                                &unit->output, exit->output_cut, responses, &why);
        cleanup_free char *name = name_output(lane, "out");
        if (!good && unit->output.length > 0)
            text_printf(&why, "; see %s", name);
    } else if (!exit) {
        text_printf(&why, "%.500s", not_started);
    } else if (unit->stuck) {
        text_printf(&why, "it printed nothing, and its ranks were idle, for %g s; it was stopped",
                    measurement->set->experiment->idle_timeout);
    } else {
        text_printf(&why, "the command %s", remote_exit_describe(exit, how, sizeof how));
        if (exit->timed_out)
            text_printf(&why, "; the limit is %g s", unit_timeout(lane));
        lane_append_errors(lane->errors.bytes, measurement->job, LANE_REASON_MAX, &why);
    }
    if (exit && exit->output_cut)
        note_cut(lane, exit, good, &why);
    size_t position = lane_position(lane, lane->next);
    results_add(lane, &(struct measured_unit){.position = position,
                                              .responses = good ? responses : NULL,
                                              .why = good ? NULL : why.bytes,
                                              .start = unit->start,
                                              .begun_ns = unit->start.monotonic_ns,
                                              .end_ns = exit ? exit->monotonic_ns : -1,
                                              .output_bytes = exit ? exit->output_bytes : 0,
                                              .error_bytes = exit ? exit->error_bytes : 0});
    if (!good) {
        lane_note_failure(lane, position, why.bytes);
        return false;
    }
    measurement_add_time(measurement, position, unit->start.monotonic_ns, exit->monotonic_ns);
    lane->failures_in_a_row = 0;
    return true;
}

/* Ends the lane. WHY: the measurement fails for this reason, or a node is lost; NULL: nothing is left to do.
 */
static void end_lane(struct lane *lane, const struct failure *why) {
    if (lane_handle_loss(lane, why))
        return;
    if (why)
        measurement_fail(lane->measurement, why);
    measurement_lane_finish(lane->measurement, lane);
}

/* Starts the next unit, or ends the lane when there is none or too little time. */
static void start_next(struct lane *lane) {
    struct failure why = {0};
    int r = UNIT_LEFT_OUT;
    while (r == UNIT_LEFT_OUT && !lane->finished && !measurement_is_over(lane->measurement) &&
           lane->next < lane->count && !lane_out_of_time(lane, lane->next, 0))
        r = start_unit(lane, &why);
    if (r != 0 && !lane->finished)
        end_lane(lane, r < 0 ? &why : NULL);
}

/* Records the unit, whose output and files are kept, ends what is left of its ranks, and starts the next one.
 * EXIT and NOT_STARTED as in record_unit(). */
static void finish_unit(struct lane *lane, const struct remote_exit *exit, const char *not_started) {
    struct measurement *measurement = lane->measurement;
    bool good = false;
    if (!measurement_is_over(measurement)) {
        good = record_unit(lane, exit, not_started);
        lane->next++;
        if (lane->finished) /* its node was taken out */
            return;
        if (exit && exit->abandoned) {
            cleanup_free char *what = xformat("unit %zu", lane_position(lane, lane->next - 1) + 1);
            lane_end_hung_node(lane, what);
            return;
        }
    }
    if (measurement->job)
        job_end_unit(lane, good, start_next);
    else
        start_next(lane);
}

/* ---- Files that a unit leaves ----------------------------------------------------------------------------
 */

static int fetch_file(struct lane *lane, struct failure *failure);

static void on_file_bytes(struct remote_command *command, enum remote_stream stream, const char *bytes,
                          size_t length, void *context) {
    (void)command, (void)stream;
    text_append(&((struct lane *)context)->unit.file, bytes, length); /* fits: see fetch_file() */
}

/* Keeps the file NAME that the unit left, if EXIT says that it was read whole; otherwise the unit fails, and
 * unit->keep_error says why. */
static int save_file(struct lane *lane, const char *name, const struct remote_exit *exit,
                     struct failure *failure) {
    struct lane_unit *unit = &lane->unit;
    cleanup_free char *path = name_output(lane, name);
    if (!exit->signalled && exit->code == 0 && !exit->output_cut)
        return run_files_write(&lane->measurement->set->record->files, path, unit->file.bytes,
                               unit->file.length, failure);
    free(unit->keep_error);
    if (!exit->signalled && exit->code == FILE_MISSING)
        unit->keep_error = xformat("the unit left no file '%s', which 'keep' names", name);
    else if (!exit->signalled && exit->code == FILE_NOT_REGULAR)
        unit->keep_error =
            xformat("'%s', which 'keep' names, is not a file but a link, a folder or a device", name);
    else if (exit->output_cut)
        unit->keep_error =
            xformat("the file '%s' has more than %d MiB, the most that 'keep' takes of one file", name,
                    LANE_OUTPUT_MAX >> 20);
    else
        unit->keep_error = xformat("the file '%s', which 'keep' names, cannot be read", name);
    return 0;
}

/* A file that `keep` names has been read: keeps it, and reads the next one or finishes the unit. */
static void on_file_exit(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    struct lane *lane = context;
    const struct bind_texts *names = &lane->measurement->set->experiment->job.keep;
    struct failure why = {0};
    lane->command = NULL;
    remote_command_free(command);
    if (!exit && lane_handle_loss(lane, failure))
        return;
    int r = exit ? save_file(lane, names->items[lane->unit.files_kept], exit, &why) : failure->code;
    text_clear(&lane->unit.file); /* as many lanes as nodes would each hold its largest file */
    if (r == 0 && ++lane->unit.files_kept < names->count && !measurement_is_over(lane->measurement))
        r = fetch_file(lane, &why);
    else if (r == 0)
        finish_unit(lane, &lane->unit.exit, NULL);
    if (r < 0)
        end_lane(lane, exit ? &why : failure);
}

/* Starts reading the next file that `keep` names from the node, and removes it there, so that no later unit
 * can pass it off as its own. Links are not followed. */
static int fetch_file(struct lane *lane, struct failure *failure) {
    static const char script[] = "if [ -L \"$1\" ]; then rm -f \"$1\"; exit 3; fi\n"
                                 "[ -e \"$1\" ] || exit 4\n"
                                 "[ -f \"$1\" ] || exit 3\n"
                                 "head -c \"$2\" \"$1\" && rm -f \"$1\"";
    char limit[NUMBER_TEXT_SIZE];
    const char *name = lane->measurement->set->experiment->job.keep.items[lane->unit.files_kept];
    snprintf(limit, sizeof limit, "%d", LANE_OUTPUT_MAX + 1);
    const char *arguments[] = {"sh", "-c", script, "sh", name, limit, NULL};
    const struct remote_command_specification specification = {.arguments = arguments,
                                                               .folder = RUN_WORK_FOLDER,
                                                               .error = REMOTE_OUTPUT_NULL,
                                                               .output_limit = LANE_OUTPUT_MAX,
                                                               .idle_limit_ms = REMOTE_FILES_IDLE_LIMIT_MS};
    const struct remote_command_callbacks callbacks = {.on_output = on_file_bytes, .on_exit = on_file_exit};
    text_reset(&lane->unit.file);
    return remote_command_start(lane->at.node->link, &specification, &callbacks, lane, &lane->command,
                                failure);
}

/* The unit's command has ended: keeps its output, then reads its files, or finishes it. A unit that may have
 * ended because a node is gone is started again. */
static void on_exit_unit(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    struct lane *lane = context;
    struct measurement *measurement = lane->measurement;
    struct failure why = {0};
    lane->command = NULL;
    remote_command_free(command);
    if (!exit && lane_handle_loss(lane, failure))
        return;
    /* A command that cannot be started is the experiment's failure, as is one that exits badly; a link that
     * is dead is not. */
    if (!exit && failure->kind != FAILURE_EXPERIMENT) {
        end_lane(lane, failure);
        return;
    }
    /* The command may have ended because one of its nodes is gone, which is only known when the lease is
     * over. */
    bool left =
        exit && (exit->signalled || exit->code != 0) && measurement->job && !job_nodes_are_reachable(lane);
    bool is_kept = exit && !left && !measurement_is_over(measurement);
    if (left && measurement->job)
        job_end_unit(lane, false, start_next);
    else if (is_kept && save_output(lane, &why) < 0)
        end_lane(lane, &why);
    else if (is_kept && !exit->abandoned && measurement->set->experiment->job.keep.count > 0) {
        lane->unit.fetching_files = true;
        lane->unit.exit = *exit;
        if (fetch_file(lane, &why) < 0)
            end_lane(lane, &why);
    } else {
        finish_unit(lane, exit, exit ? NULL : failure->text);
    }
}

/* ---- The beginning ---------------------------------------------------------------------------------------
 */

static void on_started(struct remote_command *command, const struct remote_start *start, void *context) {
    (void)command;
    ((struct lane *)context)->unit.start = (struct unit_start){start->wall_ns, start->monotonic_ns};
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct lane *lane = context;
    struct text *text = stream == REMOTE_STDOUT ? &lane->unit.output : &lane->errors;
    /* The agent keeps to the limits that start_command() gave it, so this always fits. */
    text_append(text, bytes, length);
}

/* Starts the unit's command when its files are on the nodes. WHY: a file could not be written, which ends the
 * lane. */
static void start_command(struct lane *lane, const struct failure *why) {
    struct failure failure;
    struct remote_command_specification specification = {
        .output_limit = LANE_OUTPUT_MAX,
        .error_limit = LANE_ERRORS_MAX,
        .timeout_ms = (uint64_t)(unit_timeout(lane) * 1e3),
    };
    struct remote_command_callbacks callbacks = {
        .on_started = on_started, .on_output = on_output, .on_exit = on_exit_unit};
    if (why || measurement_is_over(lane->measurement))
        end_lane(lane, why);
    else if (lane_launch(lane, &specification, &callbacks, &failure) < 0)
        end_lane(lane, &failure);
}

static void on_written(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    struct lane *lane = context;
    if (failure && lane->unit.written.code == 0)
        lane->unit.written = *failure;
    if (--lane->unit.writes == 0)
        start_command(lane, lane->unit.written.code < 0 ? &lane->unit.written : NULL);
}

/* Writes the file NAME to all nodes of the unit. */
static int write_file(struct lane *lane, const char *name, const char *bytes, size_t length,
                      struct failure *failure) {
    cleanup_free char *path = xformat(RUN_WORK_FOLDER "/%s", name);
    int r = 0;
    for (size_t i = 0; r == 0 && i < lane->shares; i++) {
        r = agent_link_write_file(lane->at.shares[i].node->link, path, bytes, length, 0666, on_written, lane,
                                  failure);
        lane->unit.writes += r == 0;
    }
    return r;
}

/* Writes the files of the next unit to its nodes, with the unit's values filled in, and the host file of a
 * job. */
static int write_files(struct lane *lane, struct failure *failure) {
    const struct experiment *experiment = lane->measurement->set->experiment;
    cleanup(plan_values_clear) struct plan_values values = lane_values(lane);
    cleanup(text_clear) struct text hosts;
    text_init(&hosts, 16 << 20);
    int r = 0;
    if (lane->measurement->job) {
        job_append_hosts(lane, &lane->unit.shape, &hosts);
        r = write_file(lane, JOB_HOST_FILE, hosts.bytes, hosts.length, failure);
    }
    struct experiment_values view = plan_values_view(&values);
    for (size_t i = 0; r == 0 && i < experiment->job.file_count; i++) {
        cleanup_free char *text = NULL;
        r = experiment_file_fill(&experiment->job.files[i], experiment->file, &view, &text, failure);
        if (r == 0)
            r = write_file(lane, experiment->job.files[i].name, text, strlen(text), failure);
    }
    return r;
}

void lane_forget_files(struct lane *lane) {
    for (size_t i = 0; i < lane->at.count; i++)
        agent_link_forget(lane->at.shares[i].node->link, lane);
    lane->unit.writes = 0;
}

/* Starts the next unit: its files first, then the command. UNIT_LEFT_OUT: fewer nodes remain than it needs,
 * which is noted. */
static int start_unit(struct lane *lane, struct failure *failure) {
    struct lane_unit *unit = &lane->unit;
    text_reset(&unit->output);
    text_reset(&lane->errors);
    unit->stuck = false;
    unit->idle_since_ns = 0;
    unit->written.code = 0;
    unit->fetching_files = false;
    unit->files_kept = 0;
    free(take_pointer(unit->keep_error));
    int r = lane->measurement->job ? job_shape(lane, &unit->shape, failure) : 0;
    if (r == 0 && lane->measurement->job && unit->shape.nodes > lane->at.count) {
        record_note(lane->measurement->set->record,
                    "unit %zu is left out: it needs %zu nodes, but only %zu remain",
                    lane_position(lane, lane->next) + 1, unit->shape.nodes, lane->at.count);
        lane->next++;
        return UNIT_LEFT_OUT;
    }
    if (lane->measurement->job)
        lane->shares = unit->shape.nodes;
    if (r == 0)
        r = write_files(lane, failure);
    if (r < 0)
        lane_forget_files(lane);
    else if (unit->writes == 0)
        start_command(lane, NULL);
    return r;
}

int lane_start_commands(struct lane *lane, struct failure *failure) {
    (void)failure; /* start_next() ends the measurement when it fails */
    start_next(lane);
    return 0;
}
