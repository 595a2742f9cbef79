/* The samplers' lives, and their lines. */
#include "engine/run/state/watch-inside.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"
#include "engine/remote/nodes/tools.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXPECTED_BYTES_MOST = 192 << 10, /* of arguments; the agent takes 256 KiB, */
    EXPECTED_MOST = 2000,            /* and 4,096 of them: two a file */
    EVENTS_TOLD_MOST = 20,           /* of one node, in the journal and the log */
    MISSING_MOST = 4096,             /* bytes */
    COALESCE_MS = 50,
    FIXED_ARGUMENTS = 10 + 2 * PROBE_KINDS,
};
static const int64_t begin_timeout_ns = 20 * EVENT_SECOND, end_timeout_ns = 10 * EVENT_SECOND;
static const int64_t flush_least_ns = 100 * EVENT_MILLISECOND;
static const int64_t write_period_ns = 2 * EVENT_SECOND;

/* ---- What the sampler is told ----------------------------------------------------------------------------
 */

static void free_arguments(struct watch_node *node) {
    for (size_t i = 0; node->owned_arguments && node->owned_arguments[i]; i++)
        free(node->owned_arguments[i]);
    free(take_pointer(node->owned_arguments));
    free((void *)take_pointer(node->arguments));
}

static int own(struct watch_node *node, size_t *count, size_t *owned, char *argument) {
    if (!argument)
        return -ENOMEM;
    node->owned_arguments[(*owned)++] = argument;
    node->arguments[(*count)++] = argument;
    return 0;
}

/* Files that would make the command line too long are not watched for drift, and that is said. */
static size_t choose_expectations(struct watch_node *node) {
    const struct node_control_record *control = &node->watch->run->nodes[node->number].control;
    size_t bytes = 0, count = 0;
    while (count < control->expectation_count && count < EXPECTED_MOST &&
           (bytes += strlen(control->expectations[count]) + sizeof "--expect" + 1) <= EXPECTED_BYTES_MOST)
        count++;
    if (count < control->expectation_count)
        run_log(node->watch->run, "node %s: of %zu files that were set, %zu are watched for drift",
                node->watch->run->nodes[node->number].name, control->expectation_count, count);
    return count;
}

static int make_arguments(struct watch_node *node) {
    const struct run *run = node->watch->run;
    const struct probe_settings *settings = &run->campaign->probes;
    size_t expected = choose_expectations(node), count = 0, owned = 0;
    free_arguments(node);
    node->arguments = calloc(FIXED_ARGUMENTS + 2 * expected + 1, sizeof *node->arguments);
    node->owned_arguments = calloc(FIXED_ARGUMENTS + expected + 1, sizeof *node->owned_arguments);
    if (!node->arguments || !node->owned_arguments)
        return -ENOMEM;
    int64_t shortest = INT64_MAX;
    for (size_t i = 0; i < PROBE_KINDS; i++)
        if (settings->periods_ns[i] > 0 && settings->periods_ns[i] < shortest)
            shortest = settings->periods_ns[i];
    node->arguments[count++] = NODE_TOOL_PROGRAM;
    node->arguments[count++] = "--sample";
    node->arguments[count++] = "--period";
    int r = own(node, &count, &owned, text_format("%lld", (long long)shortest));
    /* Units wait for their samples, so these wait for no company longer than for the next of their kind. */
    node->arguments[count++] = "--flush";
    if (r == 0)
        r = own(node, &count, &owned,
                text_format("%lld", (long long)(shortest > flush_least_ns ? shortest : flush_least_ns)));
    for (size_t i = 0; r == 0 && i < PROBE_KINDS; i++) {
        if (settings->periods_ns[i] == 0 || (i == PROBE_DRIFT && expected == 0))
            continue;
        node->arguments[count++] = "--probe";
        r = own(node, &count, &owned,
                text_format("%s=%lld", probe_kind_names[i], (long long)settings->periods_ns[i]));
    }
    for (size_t i = 0; r == 0 && i < expected; i++) {
        node->arguments[count++] = "--expect";
        r = own(node, &count, &owned, strdup(run->nodes[node->number].control.expectations[i]));
    }
    return r;
}

/* ---- What it tells ---------------------------------------------------------------------------------------
 */

static void note_failure(struct watch *watch, const struct failure *failure) {
    if (watch->failed)
        return;
    watch->failed = true;
    run_note(watch->run, "watching: %s", failure->text);
}

static void malformed(struct watch_node *node) {
    if (node->malformed++ == 0)
        run_note(node->watch->run, "node %s: its sampler told a line that is none; it is left out",
                 node->watch->run->nodes[node->number].name);
}

static size_t count_fields(const char *at) {
    size_t count = 1;
    for (; *at; at++)
        count += *at == '\t';
    return count;
}

/* "cpu0:Hz": the unit comes after the last colon. */
static int take_column(struct watch_columns *columns, const char *field) {
    const char *colon = strrchr(field, ':');
    size_t length = colon ? (size_t)(colon - field) : 0;
    if (length == 0 || length > 128 || strpbrk(field, ",\" \n"))
        return -EPROTO;
    char *name = strndup(field, length), *unit = strdup(colon + 1);
    if (!name || !unit) {
        free(name);
        free(unit);
        return -ENOMEM;
    }
    columns->names[columns->count] = name;
    columns->units[columns->count++] = unit;
    return 0;
}

static int take_columns(struct watch_columns *columns, char *at) {
    size_t most = at ? count_fields(at) : 0;
    if (most > WATCH_COLUMNS_MOST)
        return -EPROTO;
    columns->names = calloc(most + 1, sizeof *columns->names);
    columns->units = calloc(most + 1, sizeof *columns->units);
    int r = columns->names && columns->units ? 0 : -ENOMEM;
    while (r == 0 && at)
        r = take_column(columns, tool_field_next(&at));
    return r;
}

/* "cpu12" is of PU 12. */
static void find_pus(struct watch_probe *probe) {
    free(probe->pus);
    probe->pus = calloc(probe->columns.count + 1, sizeof *probe->pus);
    for (size_t i = 0; probe->pus && i < probe->columns.count; i++) {
        const char *name = probe->columns.names[i];
        uint64_t pu;
        bool is_pu = strncmp(name, "cpu", 3) == 0 && number_parse_uint64(name + 3, strlen(name + 3), &pu) &&
                     pu < UINT_MAX;
        probe->pus[i] = is_pu ? (unsigned)pu : UINT_MAX;
    }
}

/* The sampler numbers its probes by itself: one that is none of ours, or told twice, keeps its number. */
static void take_probe(struct watch_node *node, char *at) {
    uint64_t index;
    const char *number = tool_field_next(&at), *name = tool_field_next(&at);
    tool_field_next(&at); /* the period, which is what was asked for */
    size_t kind = 0;
    while (kind < PROBE_KINDS && strcmp(probe_kind_names[kind], name) != 0)
        kind++;
    if (!number_parse_uint64(number, strlen(number), &index) || index != node->kind_count ||
        node->kind_count == PROBE_KINDS || node->state != WATCH_STARTING) {
        malformed(node);
        return;
    }
    node->kinds[node->kind_count++] = -1;
    if (kind == PROBE_KINDS || node->probes[kind].there) {
        malformed(node);
        return;
    }
    struct watch_probe *probe = &node->probes[kind];
    struct watch_columns columns = {0};
    struct failure failure = {0};
    int r = take_columns(&columns, at);
    size_t count = columns.count;
    if (r == 0)
        r = watch_probe_open_file(node, (enum probe_kind)kind, &columns, &failure);
    watch_columns_clear(&columns);
    free(probe->values);
    probe->values = calloc(count + 1, sizeof *probe->values);
    if (r == -EPROTO) {
        malformed(node);
        return;
    }
    if (r == 0 && !probe->values)
        r = -ENOMEM;
    if (r < 0) {
        if (failure.code == 0)
            failure_memory(&failure);
        note_failure(node->watch, &failure);
        return;
    }
    history_reset(&probe->history, count,
                  kind == PROBE_THROTTLE || kind == PROBE_KERNEL || kind == PROBE_DRIFT);
    find_pus(probe);
    probe->there = true;
    node->kinds[index] = (int)kind;
}

static void take_missing(struct watch_node *node, char *at) {
    const char *name = tool_field_next(&at), *why = tool_field_next(&at);
    if (node->missing && strlen(node->missing) > MISSING_MOST)
        return;
    char *longer = text_format("%s%s%.64s (%.256s)", node->missing ? node->missing : "",
                               node->missing ? ", " : "", name, why);
    if (!longer)
        return;
    free(node->missing);
    node->missing = longer;
}

static bool take_times(struct watch_node *node, char **at, int64_t *wall, int64_t *monotonic) {
    const char *first = tool_field_next(at), *second = tool_field_next(at);
    if (number_parse_int64(first, strlen(first), wall) &&
        number_parse_int64(second, strlen(second), monotonic))
        return true;
    malformed(node);
    return false;
}

/* After each start, and so between the blocks of a design: in files that go on it is where a gap is. */
static void take_begin(struct watch_node *node, char *at) {
    int64_t wall, monotonic;
    if (node->kind_count == 0)
        node->state = WATCH_ON; /* and there will be nothing to see */
    if (take_times(node, &at, &wall, &monotonic))
        watch_event_append(node, wall, monotonic, "begin", "what counts since the sampler began is 0");
}

static void take_event(struct watch_node *node, char *at) {
    struct run *run = node->watch->run;
    int64_t wall, monotonic;
    bool timed = take_times(node, &at, &wall, &monotonic);
    const char *kind = tool_field_next(&at), *text = tool_field_next(&at);
    if (!timed)
        return;
    if (strcmp(kind, "drift") == 0)
        snprintf(node->last_drift, sizeof node->last_drift, "%s", text);
    if (strcmp(kind, "kernel-error") == 0)
        snprintf(node->last_error, sizeof node->last_error, "%s", text);
    watch_event_append(node, wall, monotonic, kind, text);
    if (node->events_told++ >= EVENTS_TOLD_MOST)
        return;
    const char *name = run->nodes[node->number].name;
    journal_begin(run->journal, "watch-event");
    journal_string(run->journal, "node", name);
    journal_string(run->journal, "kind", kind);
    journal_string(run->journal, "text", text);
    journal_end(run->journal);
    run_log(run, "node %s: %s: %s", name, kind, text);
}

static void take_cost(struct watch_node *node, char *at) {
    static const char *const keys[] = {"user_us", "system_us", "worst_late_ns",
                                       "samples", "missed",    "rss_bytes"};
    struct run *run = node->watch->run;
    journal_begin(run->journal, "watch-cost");
    journal_string(run->journal, "node", run->nodes[node->number].name);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = tool_field_next(&at);
        int64_t value;
        if (number_parse_int64(text, strlen(text), &value))
            journal_integer(run->journal, keys[i], value);
    }
    journal_end(run->journal);
}

/* ---- Samples */

/* Splits REST in place of nothing: numbers between commas, an empty one is not known. False if it has not
 * LEADING + COUNT fields of that kind. */
static bool parse_numbers(const char *rest, int64_t leading[WATCH_FILE_HEADER_COLUMNS], double *values,
                          size_t count) {
    const char *at = rest;
    for (size_t i = 0; i < WATCH_FILE_HEADER_COLUMNS + count; i++) {
        size_t length = strcspn(at, ",");
        if (i < WATCH_FILE_HEADER_COLUMNS) {
            if (!number_parse_int64(at, length, &leading[i]) || leading[i] < 0 || leading[i] > INT64_MAX / 4)
                return false;
        } else {
            double *value = &values[i - WATCH_FILE_HEADER_COLUMNS];
            *value = NAN;
            if (length > 0 && !number_parse_double(at, length, value))
                return false;
        }
        at += length;
        bool last = i + 1 == WATCH_FILE_HEADER_COLUMNS + count;
        if ((*at == ',') == last)
            return false;
        at += *at == ',';
    }
    return true;
}

/* What is dear to read is read less often than asked: rows without it are kept in the file, and say nothing
 * of units. */
static bool tells_anything(const struct watch_probe *probe, enum probe_kind kind) {
    for (size_t i = 0; i < probe->columns.count; i++)
        if (!isnan(probe->values[i]) &&
            (kind != PROBE_LOAD || strcmp(probe->columns.names[i], WATCH_FOREIGN) == 0))
            return true;
    return false;
}

static void take_sample(struct watch_node *node, const char *line) {
    const char *comma = strchr(line, ',');
    uint64_t index;
    if (!comma || !number_parse_uint64(line + 1, (size_t)(comma - line - 1), &index) ||
        index >= node->kind_count) {
        malformed(node);
        return;
    }
    if (node->kinds[index] < 0)
        return;
    struct watch *watch = node->watch;
    enum probe_kind kind = (enum probe_kind)node->kinds[index];
    struct watch_probe *probe = &node->probes[kind];
    int64_t leading[WATCH_FILE_HEADER_COLUMNS];
    if (!parse_numbers(comma + 1, leading, probe->values, probe->columns.count)) {
        malformed(node);
        return;
    }
    if (watch_probe_append(probe, comma + 1, strlen(comma + 1)) < 0 ||
        (tells_anything(probe, kind) && history_add(&probe->history, leading[1], probe->values) < 0)) {
        struct failure failure;
        failure_memory(&failure);
        note_failure(watch, &failure);
    }
    struct watch_sample sample = {.node = node->number,
                                  .kind = kind,
                                  .wall_ns = leading[0],
                                  .monotonic_ns = leading[1],
                                  .columns = probe->columns.names,
                                  .values = probe->values,
                                  .count = probe->columns.count};
    /* The first sample of every probe comes at once, in their order: with the last of them all are watched.
     */
    if (node->state == WATCH_STARTING && index + 1 == node->kind_count)
        node->state = WATCH_ON;
    if (watch->listener.on_sample)
        watch->listener.on_sample(&sample, watch->listener.context);
}

static void take_line(struct watch_node *node, char *line) {
    if (line[0] == 's' && line[1] >= '0' && line[1] <= '9') {
        take_sample(node, line);
        return;
    }
    const char *kind = tool_field_next(&line);
    if (strcmp(kind, "probe") == 0)
        take_probe(node, line);
    else if (strcmp(kind, "missing") == 0)
        take_missing(node, line);
    else if (strcmp(kind, "begin") == 0)
        take_begin(node, line);
    else if (strcmp(kind, "event") == 0)
        take_event(node, line);
    else if (strcmp(kind, "cost") == 0)
        take_cost(node, line);
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct watch_node *node = context;
    if (stream == REMOTE_STDERR) {
        text_append(&node->errors, bytes, length);
        return;
    }
    for (const char *end = bytes + length; bytes < end;) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t part = newline ? (size_t)(newline - bytes) : (size_t)(end - bytes);
        if (text_append(&node->line, bytes, part) < 0) {
            malformed(node);
            text_reset(&node->line);
        }
        if (newline && node->line.length > 0)
            take_line(node, node->line.bytes);
        if (newline)
            text_reset(&node->line);
        bytes += part + 1;
    }
}

static void on_sampler_exit(struct remote_command *command, const struct remote_exit *exit,
                            const struct failure *failure, void *context) {
    (void)command;
    struct watch_node *node = context;
    const char *name = node->watch->run->nodes[node->number].name;
    char how[128];
    if (node->state != WATCH_ENDING && exit)
        run_note(node->watch->run, "node %s: its sampler %s%s%.*s; it is not watched any more", name,
                 remote_exit_describe(exit, how, sizeof how), node->errors.length ? ": " : "",
                 (int)strcspn(node->errors.bytes, "\n"), node->errors.bytes);
    else if (node->state != WATCH_ENDING && failure)
        run_log(node->watch->run, "node %s: its sampler: %s", name, failure->text);
    node->state = WATCH_OFF;
}

/* ---- Starting and stopping -------------------------------------------------------------------------------
 */

static void on_timer(struct event_source *source, void *context) {
    (void)source;
    struct watch *watch = context;
    struct failure failure = {0};
    if (watch_write_files(watch, false, &failure) < 0)
        note_failure(watch, &failure);
}

static int watch_new(struct run *run, struct failure *failure) {
    struct watch *watch = calloc(1, sizeof *watch);
    struct watch_node *nodes = calloc(run->node_count + 1, sizeof *nodes);
    if (!watch || !nodes) {
        free(watch);
        free(nodes);
        return failure_memory(failure);
    }
    *watch = (struct watch){.run = run, .nodes = nodes, .count = run->node_count};
    for (size_t i = 0; i < watch->count; i++) {
        nodes[i].watch = watch;
        nodes[i].number = i;
        text_init(&nodes[i].line, WATCH_LINE_MOST);
        text_init(&nodes[i].errors, 4096);
    }
    run->watch = watch;
    watch->timer = event_loop_add_timer(run->loop, write_period_ns, write_period_ns, on_timer, watch);
    return watch->timer ? 0 : failure_memory(failure);
}

void watch_free(struct watch *watch) {
    if (!watch)
        return;
    event_source_remove(watch->timer);
    for (size_t i = 0; i < watch->count; i++) {
        struct watch_node *node = &watch->nodes[i];
        remote_command_free(node->sampler);
        text_clear(&node->line);
        text_clear(&node->errors);
        for (size_t kind = 0; kind < PROBE_KINDS; kind++)
            watch_probe_clear(&node->probes[kind]);
        watch_file_clear(&node->events);
        free(node->missing);
        free_arguments(node);
    }
    free(watch->nodes);
    free(watch);
}

static int start_sampler(struct watch_node *node, struct failure *failure) {
    struct remote_command_specification specification = {.coalesce_ms = COALESCE_MS, .error_limit = 4096};
    struct remote_command_callbacks callbacks = {.on_output = on_output, .on_exit = on_sampler_exit};
    remote_command_free(take_pointer(node->sampler));
    text_reset(&node->line);
    text_reset(&node->errors);
    node->kind_count = 0;
    free(take_pointer(node->missing));
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        node->probes[kind].there = false;
    if (make_arguments(node) < 0)
        return failure_memory(failure);
    specification.arguments = node->arguments;
    int r = remote_command_start(node->watch->run->nodes[node->number].link, &specification, &callbacks, node,
                                 &node->sampler, failure);
    if (r == 0)
        node->state = WATCH_STARTING;
    return r;
}

static bool any_in(const struct watch *watch, enum watch_state state) {
    for (size_t i = 0; i < watch->count; i++)
        if (watch->nodes[i].state == state)
            return true;
    return false;
}

/* Turns the loop until no node is in STATE any more. */
static int wait_while(struct watch *watch, enum watch_state state, int64_t timeout_ns,
                      struct failure *failure) {
    int64_t deadline = clock_monotonic_ns() + timeout_ns, left;
    int r = 0;
    while (r >= 0 && any_in(watch, state) && (left = deadline - clock_monotonic_ns()) > 0) {
        if (event_loop_is_stopped(watch->run->loop))
            return failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted");
        r = event_loop_run_once(watch->run->loop, left, failure);
    }
    return r < 0 ? r : 0;
}

/* Once: what is missing does not change from block to block. */
static int tell_missing(struct watch *watch, struct failure *failure) {
    struct run *run = watch->run;
    cleanup_free char **words = calloc(watch->count + 1, sizeof *words);
    int r = words ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < watch->count; i++) {
        const char *missing = watch->nodes[i].missing;
        if (!missing || !run_concerns(run, i))
            continue;
        journal_begin(run->journal, "not-watched");
        journal_string(run->journal, "node", run->nodes[i].name);
        journal_string(run->journal, "probes", missing);
        journal_end(run->journal);
        if (!(words[i] = text_format("not watched: %s", missing)))
            r = -ENOMEM;
    }
    if (r == 0)
        r = run_note_kinds(run, (const char *const *)words);
    for (size_t i = 0; words && i < watch->count; i++)
        free(words[i]);
    return r < 0 ? failure_memory(failure) : 0;
}

int watch_start(struct run *run, struct failure *failure) {
    if (!probe_settings_any(&run->campaign->probes))
        return 0;
    bool first = !run->watch;
    int r = first ? watch_new(run, failure) : 0;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (run->watch->nodes[i].state == WATCH_OFF && run_concerns(run, i) &&
            node_group_is_there(run->group, i))
            r = start_sampler(&run->watch->nodes[i], failure);
    if (r == 0)
        r = wait_while(run->watch, WATCH_STARTING, begin_timeout_ns, failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (run->watch->nodes[i].state == WATCH_STARTING && run_concerns(run, i))
            run_note(run, "node %s: its sampler has not begun; units there may be flagged as unwatched",
                     run->nodes[i].name);
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        r = watch_describe_files(&run->watch->nodes[i], failure);
    return r == 0 && (first || run->newcomer) ? tell_missing(run->watch, failure) : r;
}

/* While a spare is brought in, the others go on; else all end, also on nodes that were taken out. */
static bool is_stopped(const struct run *run, size_t node) {
    return !run->newcomer || run_concerns(run, node);
}

int watch_stop(struct run *run, struct failure *failure) {
    struct watch *watch = run->watch;
    if (!watch)
        return 0;
    for (size_t i = 0; i < watch->count; i++) {
        struct watch_node *node = &watch->nodes[i];
        if (node->state == WATCH_OFF || !is_stopped(run, i))
            continue;
        node->state = WATCH_ENDING;
        if (remote_command_kill(node->sampler, SIGTERM, NULL) < 0)
            node->state = WATCH_OFF;
    }
    int r = wait_while(watch, WATCH_ENDING, end_timeout_ns, failure);
    for (size_t i = 0; i < watch->count; i++) {
        if (!is_stopped(run, i))
            continue;
        remote_command_free(take_pointer(watch->nodes[i].sampler));
        watch->nodes[i].state = WATCH_OFF;
    }
    struct failure files = {0};
    int w = watch_write_files(watch, true, &files);
    for (size_t i = 0; w == 0 && i < watch->count; i++)
        w = watch_describe_files(&watch->nodes[i], &files);
    if (r == 0 && w < 0 && failure)
        *failure = files;
    return r < 0 ? r : w;
}

/* ---- Looking ---------------------------------------------------------------------------------------------
 */

void watch_listen(struct watch *watch, const struct watch_listener *listener) {
    if (watch)
        watch->listener = *listener;
}

bool watch_has(const struct watch *watch, size_t node, enum probe_kind kind) {
    return watch && watch->nodes[node].probes[kind].there &&
           watch->nodes[node].probes[kind].columns.count > 0;
}

bool watch_is_live(const struct watch *watch, size_t node) {
    return watch && watch->nodes[node].state != WATCH_OFF;
}

int64_t watch_period_ns(const struct watch *watch, enum probe_kind kind) {
    return watch ? watch->run->campaign->probes.periods_ns[kind] : 0;
}

const struct history *watch_history(const struct watch *watch, size_t node, enum probe_kind kind) {
    return &watch->nodes[node].probes[kind].history;
}

size_t watch_column_count(const struct watch *watch, size_t node, enum probe_kind kind) {
    return watch->nodes[node].probes[kind].columns.count;
}

const char *watch_column_name(const struct watch *watch, size_t node, enum probe_kind kind, size_t column) {
    return watch->nodes[node].probes[kind].columns.names[column];
}

size_t watch_column(const struct watch *watch, size_t node, enum probe_kind kind, const char *name) {
    const struct watch_columns *columns = &watch->nodes[node].probes[kind].columns;
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->names[i], name) == 0)
            return i;
    return SIZE_MAX;
}

/* PUs that are there come in ascending order, and mostly without a gap: so the search begins at its own
 * place.
 */
size_t watch_pu_column(const struct watch *watch, size_t node, unsigned pu) {
    const struct watch_probe *probe = &watch->nodes[node].probes[PROBE_FREQUENCY];
    for (size_t i = pu < probe->columns.count ? pu + 1 : probe->columns.count; probe->pus && i-- > 0;)
        if (probe->pus[i] == pu)
            return i;
    return SIZE_MAX;
}

bool watch_covers(const struct watch *watch, size_t node, enum probe_kind kind, int64_t start_ns,
                  int64_t end_ns) {
    const struct watch_probe *probe = &watch->nodes[node].probes[kind];
    struct history_span span;
    return probe->there && history_span(&probe->history, start_ns, end_ns, &span) && span.before &&
           span.after;
}

void watch_forget(struct watch *watch, size_t node, int64_t time_ns) {
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        history_forget(&watch->nodes[node].probes[kind].history, time_ns);
}

const char *watch_last_event(const struct watch *watch, size_t node, const char *kind) {
    return strcmp(kind, "drift") == 0 ? watch->nodes[node].last_drift : watch->nodes[node].last_error;
}

bool run_is_package_temperature(const char *column) {
    return strncmp(column, "package", strlen("package")) == 0;
}
