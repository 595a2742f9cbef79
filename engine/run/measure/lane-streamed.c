/* A lane of a streamed experiment: one kernel takes the rows in the plan's order and answers a line a row.
 * The protocol is in experiments/kernels/README.md. */
#include "engine/run/measure/measurement.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COALESCE_MS = 50,      /* the agent wakes for answers this often: it shares the measured machine */
    ERRORS_KEPT = 4 << 10, /* of what the kernel writes to stderr */
    FIELDS_MAX = EXPERIMENT_NAMES_MAX + 4,
    /* The protocol's limits of facts: they are a node's description, and searched one by one. */
    FACTS_MAX = 256, /* of one node, whichever of its kernels printed them */
    FACT_NAME_MAX = 256,
    FACT_VALUE_MAX = 4 << 10,
};

/* With a deadline: how much time the rows that were sent and not answered may take at most. */
static const int64_t ahead_max_ns = 2 * EVENT_SECOND;
/* From an answer until the engine has it. */
static const int64_t answer_delay_ns = 2 * COALESCE_MS * EVENT_MILLISECOND;

static void fail_kernel(struct lane *lane, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails the measurement: "the kernel on node N, core C" and the sentence FORMAT. */
static void fail_kernel(struct lane *lane, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    struct failure failure;
    failure_set_kind(&failure, FAILURE_EXPERIMENT, -EPROTO, "the kernel on node %s, core %s %s",
                     lane->at.node->name, lane->at.core, sentence);
    measurement_fail(lane->measurement, &failure);
}

/* ---- Rows out --------------------------------------------------------------------------------------------
 */

/* Appends the header of the rows that a kernel reads: unit, and each factor. */
static int append_header(const struct experiment *experiment, struct text *rows) {
    int r = text_append_string(rows, "unit");
    for (size_t i = 0; r == 0 && i < experiment->factor_count; i++)
        r = csv_append_field(rows, false, experiment->factors[i].about.name,
                             strlen(experiment->factors[i].about.name));
    return r < 0 ? r : text_append_character(rows, '\n');
}

static bool has_deadline(const struct lane *lane) {
    return lane->measurement->set->deadline.source != DEADLINE_NONE;
}

/* May the next row be sent? With a deadline, rows are sent only as far ahead as keeps the kernel busy, and at
 * least one beyond the one it works on: rows that were sent will be measured. */
static bool may_send_next(struct lane *lane) {
    if (!has_deadline(lane))
        return true;
    int64_t expected_ns = measurement_expect_ns(lane->measurement, lane_position(lane, lane->kernel.sent));
    if (lane->kernel.sent == lane->next)
        lane->kernel.ahead_ns = 0;
    else if (expected_ns < 0 ||
             (lane->kernel.sent - lane->next > 1 && lane->kernel.ahead_ns + expected_ns > ahead_max_ns))
        return false;
    if (lane_out_of_time(lane, lane->kernel.sent, lane->kernel.ahead_ns + answer_delay_ns))
        return false;
    lane->kernel.ahead_ns += expected_ns > 0 ? expected_ns : 0;
    return true;
}

/* Sends rows until enough of them wait. After the last one, or when no time is left, the kernel's input is
 * closed. */
static void send_rows(struct lane *lane) {
    const struct plan *plan = lane->measurement->set->plan;
    struct lane_kernel *kernel = &lane->kernel;
    struct failure failure = {0};
    cleanup(text_clear) struct text rows;
    text_init(&rows, 16 << 20);
    if (kernel->input_closed)
        return;
    int r = kernel->header_sent ? 0 : append_header(plan->campaign->experiment, &rows);
    kernel->header_sent = true;
    size_t queued = remote_command_queued(lane->command), ahead = lane->measurement->ahead_bytes;
    while (r == 0 && kernel->sent < lane->count && queued + rows.length < ahead && may_send_next(lane)) {
        size_t position = lane_position(lane, kernel->sent++);
        r = text_printf(&rows, "%zu", position + 1);
        r = r < 0 ? r : plan_append_factors(plan, design_order_row(plan->order, position), &rows);
        r = r < 0 ? r : text_append_character(&rows, '\n');
    }
    if (r < 0)
        r = failure_memory(&failure);
    else if (rows.length > 0)
        r = remote_command_write(lane->command, rows.bytes, rows.length, NULL, &failure);
    if (r == 0 && (kernel->sent == lane->count || lane->refused)) {
        kernel->input_closed = true;
        r = remote_command_close_input(lane->command, &failure);
    }
    if (r < 0 && r != -EPIPE) /* EPIPE: the kernel has ended, and its exit says why */
        measurement_fail(lane->measurement, &failure);
}

static void on_drain(struct remote_command *command, void *context) {
    (void)command;
    send_rows(context);
}

/* ---- Answers in ------------------------------------------------------------------------------------------
 */

/* Reads "#name: value", a fact about the kernel. It is the same on every core, so the first one is kept for
 * the node. */
static void read_fact(struct lane *lane, const char *line, size_t length) {
    const char *colon = memchr(line, ':', length), *end = line + length;
    if (!colon || colon == line)
        return;
    const char *value = colon + 1;
    while (value < end && *value == ' ')
        value++;
    size_t name_length = (size_t)(colon - line), value_length = (size_t)(end - value);
    if (name_length > FACT_NAME_MAX || value_length > FACT_VALUE_MAX) {
        fail_kernel(
            lane, "printed the fact '%.40s...' of %zu bytes; expected at most %d for its name and %d for it",
            line, length, FACT_NAME_MAX, FACT_VALUE_MAX);
        return;
    }
    cleanup_free char *name = xstrndup(line, name_length);
    cJSON *facts = cJSON_GetObjectItemCaseSensitive(lane->at.node->software, "kernel");
    if (!facts)
        facts = json_add_object(lane->at.node->software, "kernel");
    if (cJSON_GetObjectItemCaseSensitive(facts, name))
        return;
    if (cJSON_GetArraySize(facts) >= FACTS_MAX)
        fail_kernel(lane, "printed more than %d facts from one node, at '%s'", FACTS_MAX, name);
    else
        json_add_bytes(facts, name, value, value_length);
}

/* Splits a line at its commas; the answers are numbers, so nothing is quoted. Returns how many fields. */
static size_t split(const char *line, size_t length, struct csv_field fields[static FIELDS_MAX]) {
    size_t count = 0;
    for (const char *at = line, *end = line + length; at <= end && count < FIELDS_MAX; count++) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        fields[count] = (struct csv_field){.bytes = at, .length = (size_t)(stop - at)};
        at = stop + 1;
    }
    return count;
}

static bool is_field(const struct csv_field *field, const char *name) {
    return field->length == strlen(name) && memcmp(field->bytes, name, field->length) == 0;
}

/* Reads the header of the answers, unit,start, perhaps start_monotonic, then each response once: it gives the
 * order of the responses. */
static void read_header(struct lane *lane, const char *line, size_t length) {
    const struct experiment *experiment = lane->measurement->set->experiment;
    struct csv_field fields[FIELDS_MAX];
    size_t count = split(line, length, fields);
    lane->kernel.columns = xcalloc(experiment->response_count, sizeof *lane->kernel.columns);
    lane->kernel.has_monotonic = count > 2 && is_field(&fields[2], "start_monotonic");
    size_t first = lane->kernel.has_monotonic ? 3 : 2;
    bool good = count == experiment->response_count + first && is_field(&fields[0], "unit") &&
                is_field(&fields[1], "start");
    for (size_t i = 0; good && i < experiment->response_count; i++) {
        size_t j = first;
        while (j < count && !is_field(&fields[j], experiment->responses[i].about.name))
            j++;
        good = j < count;
        lane->kernel.columns[i] = j;
    }
    lane->kernel.header_seen = true;
    if (!good)
        fail_kernel(lane, "answered the header '%.*s', expected unit,start and the experiment's responses",
                    (int)(length < 200 ? length : 200), line);
}

/* The last unit that was answered ended at END_NS. */
static void set_last_end(struct lane *lane, int64_t end_ns) {
    results_end_last(lane, end_ns);
    if (lane->next > 0)
        measurement_add_time(lane->measurement, lane_position(lane, lane->next - 1),
                             lane->kernel.last_begun_ns, end_ns);
}

/* Adds the measured unit. Its end is only known when the next one begins, so this is the end of the unit
 * before. */
static void record_answer(struct lane *lane, const struct unit_start *start, const double *responses) {
    const struct agent_clock *clock = &lane->at.node->clocks[RUN_CLOCK_START];
    struct lane_kernel *kernel = &lane->kernel;
    int64_t begun_ns = start->monotonic_ns;
    if (begun_ns < 0 && clock->exchanges > 0)
        begun_ns = start->wall_ns - clock->node_wall_ns + clock->node_monotonic_ns;
    set_last_end(lane, begun_ns);
    kernel->ahead_ns -= kernel->ahead_ns / (int64_t)(kernel->sent - lane->next);
    kernel->last_begun_ns = begun_ns;
    kernel->silent_since_ns = clock_monotonic_ns();
    lane->failures_in_a_row = 0;
    results_add(lane, &(struct measured_unit){.position = lane_position(lane, lane->next++),
                                              .responses = responses,
                                              .start = *start,
                                              .begun_ns = begun_ns,
                                              .end_ns = -1});
}

/* Reads one answer: the unit, its start, the responses. Answers must come in the order in which rows were
 * sent. */
static void read_answer(struct lane *lane, const char *line, size_t length) {
    const struct experiment *experiment = lane->measurement->set->experiment;
    struct csv_field fields[FIELDS_MAX];
    size_t count = split(line, length, fields);
    uint64_t unit = 0;
    struct unit_start start = {.monotonic_ns = -1};
    double responses[EXPERIMENT_NAMES_MAX];
    bool good = count == experiment->response_count + (lane->kernel.has_monotonic ? 3 : 2) &&
                number_parse_uint64(fields[0].bytes, fields[0].length, &unit) &&
                number_parse_int64(fields[1].bytes, fields[1].length, &start.wall_ns) && start.wall_ns >= 0;
    if (good && lane->kernel.has_monotonic)
        good = number_parse_int64(fields[2].bytes, fields[2].length, &start.monotonic_ns) &&
               start.monotonic_ns >= 0;
    for (size_t i = 0; good && i < experiment->response_count; i++) {
        const struct csv_field *field = &fields[lane->kernel.columns[i]];
        good = number_parse_double(field->bytes, field->length, &responses[i]);
    }
    if (!good)
        fail_kernel(lane, "answered '%.*s', expected a unit, its start in ns and %zu number%s",
                    (int)(length < 200 ? length : 200), line, experiment->response_count,
                    experiment->response_count == 1 ? "" : "s");
    else if (lane->next == lane->kernel.sent)
        fail_kernel(lane, "answered for unit %llu, which was not sent", (unsigned long long)unit);
    else if (unit != lane_position(lane, lane->next) + 1)
        fail_kernel(lane, "answered unit %llu, expected unit %zu", (unsigned long long)unit,
                    lane_position(lane, lane->next) + 1);
    else
        record_answer(lane, &start, responses);
}

static void read_line(struct lane *lane, const char *line, size_t length) {
    if (length > 0 && line[0] == '#')
        read_fact(lane, line + 1, length - 1);
    else if (!lane->kernel.header_seen)
        read_header(lane, line, length);
    else
        read_answer(lane, line, length);
}

/* Splits the kernel's output into lines. */
static void read_output(struct lane *lane, const char *bytes, size_t length) {
    struct text *line = &lane->kernel.line;
    const char *end;
    size_t begin = 0;
    if (text_append(line, bytes, length) < 0)
        fail_kernel(lane, "wrote a line without an end");
    while (!lane->measurement->ended && (end = memchr(line->bytes + begin, '\n', line->length - begin))) {
        size_t next = (size_t)(end - line->bytes) + 1;
        read_line(lane, line->bytes + begin, next - 1 - begin);
        begin = next;
    }
    text_consume(line, begin);
    if (has_deadline(lane) && !lane->measurement->ended)
        send_rows(lane);
}

/* Standard output has answers; of standard error the last ERRORS_KEPT bytes are kept. */
static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct lane *lane = context;
    if (stream == REMOTE_STDOUT) {
        read_output(lane, bytes, length);
        return;
    }
    /* The last ERRORS_KEPT bytes. */
    if (length > ERRORS_KEPT) {
        bytes += length - ERRORS_KEPT;
        length = ERRORS_KEPT;
    }
    if (lane->errors.length + length > ERRORS_KEPT)
        text_consume(&lane->errors, lane->errors.length + length - ERRORS_KEPT);
    text_append(&lane->errors, bytes, length);
}

/* ---- Silence ---------------------------------------------------------------------------------------------
 */

static const int64_t kill_after_ns = 3 * EVENT_SECOND, hung_after_ns = 13 * EVENT_SECOND;

void lane_clear_kernel(struct lane *lane) {
    remote_command_free(take_pointer(lane->command));
    free(take_pointer(lane->kernel.columns));
    text_reset(&lane->kernel.line);
    text_reset(&lane->errors);
}

/* Ends a kernel that has not answered for too long: by SIGTERM, later SIGKILL; if it does not end even then,
 * its node is taken out. */
void lane_check_streamed(struct lane *lane, int64_t now_ns) {
    double timeout = lane->measurement->set->experiment->timeout;
    if (timeout <= 0 || lane->finished || !lane->command)
        return;
    /* Answers that a node gave while it was out of reach come when the link is back. */
    bool waits = lane->next == lane->kernel.sent && !lane->kernel.input_closed; /* for more rows */
    if (agent_link_state(lane->at.node->link) != AGENT_LINK_READY || waits) {
        lane->kernel.silent_since_ns = now_ns;
        return;
    }
    if (lane->kernel.end_asked_ns && now_ns - lane->kernel.end_asked_ns > hung_after_ns) {
        lane_end_hung_node(lane, "its kernel");
    } else if (lane->kernel.end_asked_ns && now_ns - lane->kernel.end_asked_ns > kill_after_ns) {
        remote_command_kill(lane->command, SIGKILL, NULL);
    } else if (!lane->kernel.end_asked_ns &&
               (double)(now_ns - lane->kernel.silent_since_ns) > timeout * 1e9) {
        lane->kernel.end_asked_ns = now_ns;
        remote_command_kill(lane->command, SIGTERM, NULL);
    }
}

/* A silent kernel was ended: its unit has failed, and another kernel continues with the next one. False: the
 * measurement is over, or no unit was left. */
static bool skip_silent_unit(struct lane *lane, const struct remote_exit *exit) {
    struct measurement *measurement = lane->measurement;
    struct failure failure = {0};
    char why[128];
    if (measurement_is_over(measurement) || lane->next == lane->count)
        return false;
    snprintf(why, sizeof why, "the kernel on core %s gave no answer for %g s and was killed", lane->at.core,
             measurement->set->experiment->timeout);
    /* When the unit before ended is not known; it was not when the kernel was killed. It is judged without
     * that. */
    results_end_last(lane, INT64_MIN);
    size_t position = lane_position(lane, lane->next++);
    results_add(
        lane,
        &(struct measured_unit){
            .position = position, .why = why, .start = {.monotonic_ns = -1}, .begun_ns = -1, .end_ns = -1});
    lane_note_failure(lane, position, why);
    if (lane->finished) /* its node was taken out */
        return true;
    if (exit->abandoned) {
        lane_end_hung_node(lane, "its kernel");
        return true;
    }
    if (measurement->ended || lane->next == lane->count)
        measurement_lane_finish(measurement, lane);
    else if (lane_start_streamed(lane, &failure) < 0 && !lane_handle_loss(lane, &failure))
        measurement_fail(measurement, &failure);
    return true;
}

/* The kernel has ended. Fails the measurement if it ended badly or without answering all rows; a silent
 * kernel only fails its unit, and one that answered all rows but did not end is noted. */
static void on_exit_kernel(struct remote_command *command, const struct remote_exit *exit,
                           const struct failure *failure, void *context) {
    (void)command;
    struct lane *lane = context;
    struct measurement *measurement = lane->measurement;
    while (lane->errors.length > 0 && lane->errors.bytes[lane->errors.length - 1] == '\n')
        lane->errors.bytes[--lane->errors.length] = '\0';
    for (size_t i = 0; i < lane->errors.length; i++)
        if ((unsigned char)lane->errors.bytes[i] < ' ')
            lane->errors.bytes[i] = ' ';
    char how[128];
    bool lingered =
        lane->kernel.end_asked_ns && exit && lane->next == lane->kernel.sent && lane->kernel.input_closed;
    if (lane_handle_loss(lane, failure) ||
        (lane->kernel.end_asked_ns && exit && !lingered && skip_silent_unit(lane, exit)))
        return;
    if (lingered)
        record_note(measurement->set->record,
                    "node %s: the kernel on core %s answered all its rows but did not end "
                    "within %g s, and was killed",
                    lane->at.node->name, lane->at.core, measurement->set->experiment->timeout);
    if (failure)
        measurement_fail(measurement, failure);
    else if (!measurement_is_over(measurement) && !lingered &&
             (exit->signalled || exit->code != 0 ||
              lane->next < (lane->refused ? lane->kernel.sent : lane->count)))
        fail_kernel(lane, "%s after %zu of %zu units%s%s", remote_exit_describe(exit, how, sizeof how),
                    lane->next, lane->count, lane->errors.length ? ": " : "", lane->errors.bytes);
    if (exit)
        set_last_end(lane, exit->monotonic_ns);
    measurement_lane_finish(measurement, lane);
}

/* Starts a kernel for the rows that have no answer yet. */
int lane_start_streamed(struct lane *lane, struct failure *failure) {
    if (lane_out_of_time(lane, lane->next, answer_delay_ns)) {
        measurement_lane_finish(lane->measurement, lane);
        return 0;
    }
    lane_clear_kernel(lane);
    lane->kernel = (struct lane_kernel){.line = lane->kernel.line,
                                        .sent = lane->next,
                                        .last_begun_ns = -1,
                                        .silent_since_ns = clock_monotonic_ns()};
    struct remote_command_specification specification = {.input = REMOTE_INPUT_STREAM,
                                                         .coalesce_ms = COALESCE_MS,
                                                         .low_mark = lane->measurement->ahead_bytes / 2};
    struct remote_command_callbacks callbacks = {
        .on_output = on_output, .on_drain = on_drain, .on_exit = on_exit_kernel};
    int r = lane_launch(lane, &specification, &callbacks, failure);
    if (r == 0)
        send_rows(lane);
    return r;
}
