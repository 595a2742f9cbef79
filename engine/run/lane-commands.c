/* A lane that runs one command a unit: its output, kept in results/raw/, is read with the responses'
 * patterns. */
#include "engine/run/measurement.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int start_unit(struct lane *lane, struct failure *failure);

/* "results/raw/12-dahu-3-all.out"; of a later attempt "results/raw/12-dahu-3-all-again-2.out". */
static char *name_output(const struct lane *lane, const char *suffix) {
    size_t order = lane_position(lane, lane->next) + 1;
    unsigned attempt = lane_attempt(lane, order - 1);
    if (attempt == 1)
        return text_format("results/raw/%zu-%s-%s.%s", order, lane->node->name, lane->core, suffix);
    return text_format("results/raw/%zu-%s-%s-again-%u.%s", order, lane->node->name, lane->core, attempt,
                       suffix);
}

/* Keeps what the unit wrote, so that a number can be traced to its text. */
static int keep_output(struct lane *lane, struct failure *failure) {
    struct run *run = lane->measurement->run;
    struct {
        const char *suffix;
        const struct text *text;
    } parts[] = {{"out", &lane->output}, {"err", &lane->errors}};
    int r = run_make_folder(run, "results/raw", failure);
    for (size_t i = 0; r == 0 && i < 2; i++) {
        if (parts[i].text->length == 0)
            continue;
        cleanup_free char *name = name_output(lane, parts[i].suffix);
        r = name ? run_write_file(run, name, parts[i].text->bytes, parts[i].text->length, failure)
                 : failure_memory(failure);
    }
    return r;
}

/* The first match of a pattern: its first group must be a number. One that ends where the output was CUT may
 * go on behind it. */
static bool read_response(const struct lane *lane, size_t i, bool cut, double *ret, char why[static 512]) {
    const struct experiment_response *response = &lane->measurement->run->experiment->responses[i];
    const char *text;
    size_t length;
    int found = pattern_find(&lane->measurement->patterns[i], lane->output.bytes, lane->output.length, &text,
                             &length);
    if (found < 0) {
        snprintf(
            why, 512,
            "the pattern of '%s', '%.200s', was given up after %d s of CPU time: it takes too long on %zu "
            "bytes of output",
            response->name, response->pattern, (int)PATTERN_CPU_SECONDS_MAX, lane->output.length);
        return false;
    }
    if (!found || (cut && text + length == lane->output.bytes + lane->output.length)) {
        snprintf(why, 512, "nothing in the output matches the pattern of '%s', '%.200s'", response->name,
                 response->pattern);
        return false;
    }
    if (number_parse_double(text, length, ret))
        return true;
    snprintf(why, 512, "the pattern of '%s' found '%.*s', expected a number", response->name,
             (int)(length < 100 ? length : 100), text);
    return false;
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
                 lane->node->name, sentence);
        measurement->cut_noted = true;
    }
}

static void record_unit(struct lane *lane, const struct remote_exit *exit, const char *not_started) {
    struct measurement *measurement = lane->measurement;
    const struct experiment *experiment = measurement->run->experiment;
    double responses[EXPERIMENT_NAMES_MOST];
    char why[512] = "", how[128];
    bool good = exit && !exit->signalled && exit->code == 0 && !exit->timed_out;
    if (!exit)
        snprintf(why, sizeof why, "%.500s", not_started);
    else if (!good)
        snprintf(why, sizeof why, "the command %s%s%.300s", remote_exit_describe(exit, how, sizeof how),
                 lane->errors.length ? ": " : "", last_line(&lane->errors));
    for (size_t i = 0; good && i < experiment->response_count; i++)
        good = read_response(lane, i, exit->output_cut, &responses[i], why);
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
        run_take_unit_time(measurement->run, lane->node, position, lane->unit_start.monotonic_ns,
                           exit->monotonic_ns);
    if (good)
        lane->failures_in_a_row = 0;
    else
        lane_note_failure(lane, position, why);
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

static void on_exit_unit(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    struct lane *lane = context;
    struct measurement *measurement = lane->measurement;
    lane->command = NULL;
    remote_command_free(command);
    struct failure why = {0};
    int r = 0;
    if (!exit && lane_is_lost(lane, failure))
        return;
    /* A command that cannot be started is the experiment's failure, as is one that exits badly; a link that
     * is dead is not. */
    bool answered = exit || (failure && failure->kind == FAILURE_EXPERIMENT);
    if (!answered) {
        why = *failure;
        r = failure->code;
    } else if (!measurement->ended && !measurement->run->interrupted) {
        r = exit ? keep_output(lane, &why) : 0;
        if (r == 0)
            record_unit(lane, exit, exit ? NULL : failure->text);
        lane->next++;
        if (lane->finished) /* its node was taken out */
            return;
        if (r == 0 && exit && exit->abandoned) {
            cleanup_free char *what = text_format("unit %zu", lane_position(lane, lane->next - 1) + 1);
            lane_hang(lane, what ? what : "a unit");
            return;
        }
        if (r == 0 && !measurement->ended && lane->next < lane->count && !lane_refuse(lane, lane->next, 0)) {
            r = start_unit(lane, &why);
            if (r == 0 || lane_is_lost(lane, &why))
                return;
        }
    }
    if (r < 0)
        measurement_fail(measurement, &why);
    measurement_lane_over(measurement, lane);
}

static int start_unit(struct lane *lane, struct failure *failure) {
    const struct run *run = lane->measurement->run;
    text_reset(&lane->output);
    text_reset(&lane->errors);
    struct remote_command_specification specification = {
        .output_limit = LANE_OUTPUT_MOST,
        .error_limit = LANE_ERRORS_MOST,
        .timeout_ms = (uint64_t)(run->experiment->timeout * 1e3),
    };
    struct remote_command_callbacks callbacks = {
        .on_started = on_started, .on_output = on_output, .on_exit = on_exit_unit};
    return lane_launch(lane, &specification, &callbacks, failure);
}

int lane_start_commands(struct lane *lane, struct failure *failure) {
    if (!lane_refuse(lane, lane->next, 0))
        return start_unit(lane, failure);
    measurement_lane_over(lane->measurement, lane);
    return 0;
}
