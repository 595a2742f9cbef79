/* A lane that runs one command a unit: its output, kept in results/raw/, is read with the responses'
 * patterns. */
#include "engine/run/measure/measurement.h"
#include "engine/run/measure/unit-output.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_LEFT_OUT = 1 };

static int start_unit(struct lane *lane, struct failure *failure);

/* Keeps what the unit wrote, so that a number can be traced to its text. */
static int keep_output(struct lane *lane, struct failure *failure) {
    struct run *run = lane->measurement->run;
    struct {
        const char *suffix;
        const struct text *text;
    } parts[] = {{"out", &lane->output}, {"err", &lane->errors}};
    size_t position = lane_position(lane, lane->next);
    int r = run_make_folder(run, "results/raw", failure);
    for (size_t i = 0; r == 0 && i < 2; i++) {
        if (parts[i].text->length == 0)
            continue;
        cleanup_free char *name =
            unit_output_name(position + 1, ledger_place_node(run->ledger, lane->at.place), lane->at.core,
                             lane_attempt(lane, position), parts[i].suffix);
        r = name ? run_write_file(run, name, parts[i].text->bytes, parts[i].text->length, failure)
                 : failure_memory(failure);
    }
    return r;
}

/* What mpirun says of a failure is a few lines with rules around them: their end in one line, without these.
 */
static void append_end(const struct text *errors, char *why, size_t size) {
    enum { KEPT = 280 };
    char line[KEPT + 1];
    size_t kept = KEPT;
    for (size_t i = errors->length; i > 0 && kept > 0; i--) {
        char c = errors->bytes[i - 1] > ' ' ? errors->bytes[i - 1] : ' ';
        if ((c != ' ' && c != '-') || (kept < KEPT && line[kept] != c && line[kept] != ' '))
            line[--kept] = c;
    }
    snprintf(why + strnlen(why, size), size - strnlen(why, size), "%.*s", (int)(KEPT - kept), line + kept);
}

/* The last line that has anything in it. */
static const char *last_line(struct text *text) {
    while (text->length > 0 && (unsigned char)text->bytes[text->length - 1] <= ' ')
        text->bytes[--text->length] = '\0';
    const char *newline = strrchr(text->bytes, '\n');
    return newline ? newline + 1 : text->bytes;
}

/* What is not kept may be what a pattern was to find, so that a unit that failed says so itself; of the
 * others the first is noted, and all are in the journal. */
static void note_cut(const struct lane *lane, const struct remote_exit *exit, bool good,
                     char why[static 512]) {
    struct measurement *measurement = lane->measurement;
    char sentence[160];
    if (!exit || !exit->output_cut)
        return;
    snprintf(sentence, sizeof sentence,
             "it printed %" PRIu64
             " bytes, of which only the first %d MiB are kept and searched; have it print less",
             exit->output_bytes, LANE_OUTPUT_MOST >> 20);
    if (!good)
        snprintf(why + strnlen(why, 340), 512 - strnlen(why, 340), "; %s", sentence);
    else if (!measurement->cut_noted) {
        run_note(measurement->run, "unit %zu on node %s: %s", lane_position(lane, lane->next) + 1,
                 lane->at.node->name, sentence);
        measurement->cut_noted = true;
    }
}

static bool record_unit(struct lane *lane, const struct remote_exit *exit, const char *not_started) {
    struct measurement *measurement = lane->measurement;
    double responses[EXPERIMENT_NAMES_MOST];
    char why[512] = "", how[128];
    bool good = exit && !exit->signalled && exit->code == 0 && !exit->timed_out && !lane->stuck;
    if (!exit)
        snprintf(why, sizeof why, "%.500s", not_started);
    else if (lane->stuck)
        snprintf(why, sizeof why, "it printed nothing, and its ranks were idle, for %d s; it was stopped",
                 JOB_STUCK_SECONDS);
    else if (!good)
        snprintf(why, sizeof why, "the command %s%s%.300s", remote_exit_describe(exit, how, sizeof how),
                 lane->errors.length ? ": " : "", measurement->job ? "" : last_line(&lane->errors));
    if (exit && !good && !lane->stuck && measurement->job)
        append_end(&lane->errors, why, sizeof why);
    if (good)
        good = unit_output_read(measurement->run->experiment, measurement->patterns, &measurement->texts,
                                &lane->output, exit->output_cut, responses, why);
    note_cut(lane, exit, good, why);
    size_t position = lane_position(lane, lane->next);
    measurement_record(measurement, lane,
                       &(struct measured_unit){.position = position,
                                               .attempt = lane_attempt(lane, position),
                                               .start = lane->unit_start,
                                               .begun_ns = lane->unit_start.monotonic_ns,
                                               .output_bytes = exit ? exit->output_bytes : 0,
                                               .error_bytes = exit ? exit->error_bytes : 0,
                                               .end_ns = exit ? exit->monotonic_ns : -1},
                       good ? responses : NULL, good ? NULL : why);
    if (good)
        run_take_unit_time(measurement->run, lane->at.node, position, lane->unit_start.monotonic_ns,
                           exit->monotonic_ns);
    if (good)
        lane->failures_in_a_row = 0;
    else
        lane_note_failure(lane, position, why);
    return good;
}

static void on_started(struct remote_command *command, const struct remote_start *start, void *context) {
    (void)command;
    ((struct lane *)context)->unit_start = (struct unit_start){start->wall_ns, start->monotonic_ns};
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct lane *lane = context;
    struct text *text = stream == REMOTE_STDOUT ? &lane->output : &lane->errors;
    /* The agent keeps to the limits that start_unit gave it, so this always fits. */
    text_append(text, bytes, length);
}

/* The lane cannot go on for the reason WHY, or has nothing more to do. */
static void end_lane(struct lane *lane, const struct failure *why) {
    if (why && lane_is_lost(lane, why))
        return;
    if (why)
        measurement_fail(lane->measurement, why);
    measurement_lane_over(lane->measurement, lane);
}

/* The next unit, or the end of the lane. */
static void go_on(struct lane *lane) {
    const struct measurement *measurement = lane->measurement;
    struct failure why = {0};
    int r = UNIT_LEFT_OUT;
    while (r == UNIT_LEFT_OUT && !lane->finished && !measurement->ended && !measurement->run->interrupted &&
           lane->next < lane->count && !lane_refuse(lane, lane->next, 0))
        r = start_unit(lane, &why);
    if (r == UNIT_LEFT_OUT && !lane->finished)
        end_lane(lane, NULL);
    else if (r < 0)
        end_lane(lane, &why);
}

static void on_exit_unit(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    struct lane *lane = context;
    struct measurement *measurement = lane->measurement;
    lane->command = NULL;
    remote_command_free(command);
    struct failure why = {0};
    bool good = false;
    if (!exit && lane_is_lost(lane, failure))
        return;
    /* A command that cannot be started is the experiment's failure, as is one that exits badly; a link that
     * is dead is not. */
    if (!exit && failure->kind != FAILURE_EXPERIMENT) {
        end_lane(lane, failure);
        return;
    }
    /* What ended it may be that a node of it is gone, which is not known before its lease is over. */
    bool left = exit && (exit->signalled || exit->code != 0) && measurement->job && !job_is_heard(lane);
    if (!left && !measurement->ended && !measurement->run->interrupted) {
        if (exit && keep_output(lane, &why) < 0) {
            end_lane(lane, &why);
            return;
        }
        good = record_unit(lane, exit, exit ? NULL : failure->text);
        lane->next++;
        if (lane->finished) /* its node was taken out */
            return;
        if (exit && exit->abandoned) {
            cleanup_free char *what = text_format("unit %zu", lane_position(lane, lane->next - 1) + 1);
            lane_hang(lane, what ? what : "a unit");
            return;
        }
    }
    if (measurement->job)
        job_end_unit(lane, good, go_on);
    else
        go_on(lane);
}

static void launch(struct lane *lane, const struct failure *why) {
    const struct run *run = lane->measurement->run;
    struct failure failure;
    struct remote_command_specification specification = {
        .output_limit = LANE_OUTPUT_MOST,
        .error_limit = LANE_ERRORS_MOST,
        .timeout_ms = (uint64_t)(run->experiment->timeout * 1e3),
    };
    struct remote_command_callbacks callbacks = {
        .on_started = on_started, .on_output = on_output, .on_exit = on_exit_unit};
    if (why)
        end_lane(lane, why);
    else if (lane->measurement->ended || run->interrupted)
        end_lane(lane, NULL);
    else if (lane_launch(lane, &specification, &callbacks, &failure) < 0)
        end_lane(lane, &failure);
}

/* UNIT_LEFT_OUT: its nodes are not there any more. The run will be partial for want of them. */
static int start_unit(struct lane *lane, struct failure *failure) {
    struct run *run = lane->measurement->run;
    text_reset(&lane->output);
    text_reset(&lane->errors);
    lane->stuck = false;
    lane->idle_since_ns = 0;
    if (lane->measurement->job) {
        int r = job_shape(lane, &lane->shape, failure);
        if (r < 0)
            return r;
        lane->shares = lane->at.count < lane->shape.nodes ? lane->at.count : lane->shape.nodes;
        if (lane->shares < lane->shape.nodes) {
            run_note(run, "unit %zu is left out: it needs %zu nodes, and there are %zu",
                     lane_position(lane, lane->next) + 1, lane->shape.nodes, lane->shares);
            lane->next++;
            return UNIT_LEFT_OUT;
        }
    }
    return lane_write_files(lane, launch, failure);
}

int lane_start_commands(struct lane *lane, struct failure *failure) {
    (void)failure; /* what fails ends the measurement by itself */
    go_on(lane);
    return 0;
}
