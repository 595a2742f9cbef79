/* The samplers' lives, and their lines. */
#include "engine/run/state/watch.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/remote/nodes/tools.h"
#include "engine/run/nodes/kinds.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXPECTED_BYTES_MAX = 192 << 10, /* of arguments; the agent takes 256 KiB, */
    EXPECTED_MAX = 2000,            /* and 4,096 of them: two a file */
    EVENTS_NOTED_MAX = 20,          /* reported of one node, in the journal and the log */
    MISSING_MAX = 4096,             /* bytes */
    COLUMN_NAME_MAX = 128,
    COALESCE_MS = 50,
    FIXED_ARGUMENTS = 10 + 2 * PROBE_KINDS,
};
static const int64_t begin_timeout_ns = 20 * EVENT_SECOND, end_timeout_ns = 10 * EVENT_SECOND;
static const int64_t flush_least_ns = 100 * EVENT_MILLISECOND;
static const int64_t write_period_ns = 2 * EVENT_SECOND;

/* ---- Arguments of the sampler ---------------------------------------------------------------------------
 */

/* How many of the files that were set are watched for drift: as many as fit on the command line. Others are
 * logged. */
static size_t choose_expectations(const struct watch_node *node) {
    const struct node_control_record *control = &node->node->control;
    size_t bytes = 0, count = 0;
    while (count < control->expectation_count && count < EXPECTED_MAX &&
           (bytes += strlen(control->expectations[count]) + sizeof "--expect" + 1) <= EXPECTED_BYTES_MAX)
        count++;
    if (count < control->expectation_count)
        record_log(node->watch->set->record,
                   "node %s: %zu of the %zu files that were set are watched for drift", node->node->name,
                   count, control->expectation_count);
    return count;
}

/* The sampler's command line for NODE: periods, probes, and files to watch for drift. For
 * experiment_arguments_free(). */
static char **make_arguments(const struct watch_node *node) {
    const struct probe_settings *settings = &node->watch->set->campaign->probes;
    size_t expected = choose_expectations(node), count = 0;
    char **arguments = xcalloc(FIXED_ARGUMENTS + 2 * expected + 1, sizeof *arguments);
    int64_t shortest = INT64_MAX;
    for (size_t i = 0; i < PROBE_KINDS; i++)
        if (settings->periods_ns[i] > 0 && settings->periods_ns[i] < shortest)
            shortest = settings->periods_ns[i];
    arguments[count++] = xstrdup(NODE_TOOL_PROGRAM);
    arguments[count++] = xstrdup("--sample");
    arguments[count++] = xstrdup("--period");
    arguments[count++] = xformat("%lld", (long long)shortest);
    /* Units wait for their samples, so these are sent together with others for one period at most. */
    arguments[count++] = xstrdup("--flush");
    arguments[count++] = xformat("%lld", (long long)(shortest > flush_least_ns ? shortest : flush_least_ns));
    for (size_t i = 0; i < PROBE_KINDS; i++) {
        if (settings->periods_ns[i] == 0 || (i == PROBE_DRIFT && expected == 0))
            continue;
        arguments[count++] = xstrdup("--probe");
        arguments[count++] = xformat("%s=%lld", probe_kind_names[i], (long long)settings->periods_ns[i]);
    }
    for (size_t i = 0; i < expected; i++) {
        arguments[count++] = xstrdup("--expect");
        arguments[count++] = xstrdup(node->node->control.expectations[i]);
    }
    return arguments;
}

/* ---- What it prints --------------------------------------------------------------------------------------
 */

static void note_failure(struct watch *watch, const struct failure *failure) {
    if (watch->failed)
        return;
    watch->failed = true;
    record_note(watch->set->record, "watching: %s", failure->text);
}

static void malformed(struct watch_node *node) {
    if (node->malformed++ == 0)
        record_note(node->watch->set->record, "node %s: the sampler sent a malformed line, which is ignored",
                    node->node->name);
}

/* Parses the sampler's columns, "cpu0:Hz" with the unit after the last colon, behind those of the time. NULL:
 * malformed. The caller frees them with watch_columns_free(). */
static struct column *parse_columns(char *at, size_t *ret_count) {
    size_t most = at != NULL, count = WATCH_TIME_COLUMNS;
    for (const char *tab = at; tab && (tab = strchr(tab, '\t')); tab++)
        most++;
    if (most > WATCH_COLUMNS_MAX)
        return NULL;
    struct column *columns = watch_columns_new(most);
    while (at) {
        const char *field = tool_field_next(&at), *colon = strrchr(field, ':');
        size_t length = colon ? (size_t)(colon - field) : 0;
        if (length == 0 || length > COLUMN_NAME_MAX || strpbrk(field, ",\" \n")) {
            watch_columns_free(columns, count);
            return NULL;
        }
        struct column *column = &columns[count++];
        *column = (struct column){.name = xstrndup(field, length),
                                  .type = COLUMN_NUMBER,
                                  .unit = xstrdup(colon + 1),
                                  .role = COLUMN_ROLE_COVARIATE,
                                  .help = "empty: not known"};
        column->label = column->name;
    }
    *ret_count = count;
    return columns;
}

static bool is_package(const char *column) {
    return strncmp(column, "package", strlen("package")) == 0;
}

/* Finds which PU each column is of ("cpu12": PU 12; other names: none), and whether one is of a package. */
static void find_columns(struct watch_probe *probe) {
    size_t count = probe->file->column_count - WATCH_TIME_COLUMNS;
    probe->pus = xrealloc(probe->pus, (count + 1) * sizeof *probe->pus);
    probe->values = xrealloc(probe->values, (count + 1) * sizeof *probe->values);
    probe->any_package = false;
    for (size_t i = 0; i < count; i++) {
        const char *name = watch_column_name(probe, i);
        uint64_t pu;
        bool is_pu = strncmp(name, "cpu", 3) == 0 && number_parse_uint64(name + 3, strlen(name + 3), &pu) &&
                     pu < UINT_MAX;
        probe->pus[i] = is_pu ? (unsigned)pu : UINT_MAX;
        probe->any_package |= is_package(name);
    }
}

/* Reads a line on a probe and its columns. The sampler numbers probes in order; an unknown or repeated probe
 * keeps its number, and its samples are ignored. */
static void read_probe(struct watch_node *node, char *at) {
    uint64_t index;
    const char *number = tool_field_next(&at), *name = tool_field_next(&at);
    tool_field_next(&at); /* the period, which is what was asked for */
    size_t kind = text_find(name, probe_kind_names, PROBE_KINDS), count = 0;
    if (!number_parse_uint64(number, strlen(number), &index) || index != node->kind_count ||
        node->kind_count == PROBE_KINDS || node->state != WATCH_STARTING) {
        malformed(node);
        return;
    }
    node->kinds[node->kind_count++] = -1;
    struct watch_probe *probe = kind < PROBE_KINDS ? &node->probes[kind] : NULL;
    struct column *columns = probe && !probe->there ? parse_columns(at, &count) : NULL;
    struct failure failure = {0};
    if (!columns) {
        malformed(node);
    } else if (watch_open_probe(node, (enum probe_kind)kind, columns, count, &failure) < 0) {
        note_failure(node->watch, &failure);
    } else {
        history_reset(&probe->history, count - WATCH_TIME_COLUMNS);
        find_columns(probe);
        probe->there = true;
        node->kinds[index] = (int)kind;
    }
}

/* Reads a line on a probe that the node does not have, and adds it to node->missing. */
static void read_missing(struct watch_node *node, char *at) {
    const char *name = tool_field_next(&at), *why = tool_field_next(&at);
    cleanup_free char *before = node->missing;
    node->missing = !before                        ? xformat("%.64s (%.256s)", name, why)
                    : strlen(before) < MISSING_MAX ? xformat("%s, %.64s (%.256s)", before, name, why)
                                                   : take_pointer(before);
}

/* Reads the wall and monotonic time at *AT, ns. False: malformed, which is counted. */
static bool read_times(struct watch_node *node, char **at, int64_t *wall, int64_t *monotonic) {
    const char *first = tool_field_next(at), *second = tool_field_next(at);
    if (number_parse_int64(first, strlen(first), wall) &&
        number_parse_int64(second, strlen(second), monotonic))
        return true;
    malformed(node);
    return false;
}

/* Reads that the sampler has begun: an event that marks a gap in files that are continued from block to
 * block. */
static void read_begin(struct watch_node *node, char *at) {
    int64_t wall, monotonic;
    if (node->kind_count == 0)
        node->state = WATCH_ON; /* and there will be nothing to see */
    if (read_times(node, &at, &wall, &monotonic))
        watch_append_event(node, wall, monotonic, "begin", "counters start at 0");
}

/* Reads a line on an event, such as drift or an error of the kernel. All go to events.csv; the first
 * EVENTS_NOTED_MAX to the journal and log. */
static void read_event(struct watch_node *node, char *at) {
    struct node_set *set = node->watch->set;
    int64_t wall, monotonic;
    bool timed = read_times(node, &at, &wall, &monotonic);
    const char *kind = tool_field_next(&at), *text = tool_field_next(&at);
    if (!timed)
        return;
    if (strcmp(kind, "drift") == 0)
        snprintf(node->last_drift, sizeof node->last_drift, "%s", text);
    if (strcmp(kind, "kernel-error") == 0)
        snprintf(node->last_error, sizeof node->last_error, "%s", text);
    watch_append_event(node, wall, monotonic, kind, text);
    if (node->events_noted++ >= EVENTS_NOTED_MAX)
        return;
    struct journal *journal = node_set_begin_entry(set, "watch-event", node->node);
    journal_string(journal, "kind", kind);
    journal_string(journal, "text", text);
    journal_end(journal);
    record_log(set->record, "node %s: %s: %s", node->node->name, kind, text);
}

/* Journals what the sampler cost. */
static void read_cost(struct watch_node *node, char *at) {
    static const char *const keys[] = {"user_us", "system_us", "worst_late_ns",
                                       "samples", "missed",    "rss_bytes"};
    struct journal *journal = node_set_begin_entry(node->watch->set, "watch-cost", node->node);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = tool_field_next(&at);
        int64_t value;
        if (number_parse_int64(text, strlen(text), &value))
            journal_integer(journal, keys[i], value);
    }
    journal_end(journal);
}

/* ---- Samples */

/* Parses comma-separated fields: WATCH_TIME_COLUMNS integers, then COUNT numbers, NAN where empty. False:
 * malformed. */
static bool parse_numbers(const char *at, int64_t times[WATCH_TIME_COLUMNS], double *values, size_t count) {
    for (size_t i = 0; i < WATCH_TIME_COLUMNS + count; i++) {
        size_t length = strcspn(at, ",");
        if (i < WATCH_TIME_COLUMNS) {
            if (!number_parse_int64(at, length, &times[i]) || times[i] < 0 || times[i] > INT64_MAX / 4)
                return false;
        } else {
            double *value = &values[i - WATCH_TIME_COLUMNS];
            *value = NAN;
            if (length > 0 && !number_parse_double(at, length, value))
                return false;
        }
        at += length;
        bool last = i + 1 == WATCH_TIME_COLUMNS + count;
        if ((*at == ',') == last)
            return false;
        at += *at == ',';
    }
    return true;
}

/* Has the sample a value that gates can use? Expensive quantities are read less often than asked; rows
 * without them stay in the file only. */
static bool has_values(const struct watch_probe *probe, enum probe_kind kind) {
    for (size_t i = 0; i < probe->history.columns; i++)
        if (!isnan(probe->values[i]) &&
            (kind != PROBE_LOAD || strcmp(watch_column_name(probe, i), WATCH_FOREIGN) == 0))
            return true;
    return false;
}

/* Reads a sample into the probe's file and history. Each probe samples once at start, in order: after the
 * last one the node is watched. */
static void read_sample(struct watch_node *node, const char *line) {
    const char *comma = strchr(line, ',');
    uint64_t index;
    if (!comma || !number_parse_uint64(line + 1, (size_t)(comma - line - 1), &index) ||
        index >= node->kind_count) {
        malformed(node);
        return;
    }
    if (node->kinds[index] < 0)
        return;
    enum probe_kind kind = (enum probe_kind)node->kinds[index];
    struct watch_probe *probe = &node->probes[kind];
    int64_t times[WATCH_TIME_COLUMNS];
    if (!parse_numbers(comma + 1, times, probe->values, probe->history.columns)) {
        malformed(node);
        return;
    }
    struct failure failure;
    if (text_printf(&probe->file->pending, "%s\n", comma + 1) < 0) {
        failure_set(&failure, -EFBIG, "samples of node %s come faster than they can be written",
                    node->node->name);
        note_failure(node->watch, &failure);
    }
    if (has_values(probe, kind))
        history_add(&probe->history, times[1], probe->values);
    /* The first sample of every probe comes at once, in their order: with the last of them all are watched.
     */
    if (node->state == WATCH_STARTING && index + 1 == node->kind_count)
        node->state = WATCH_ON;
}

/* Reads a line of the sampler; lines of unknown kinds are ignored. */
static void read_line(struct watch_node *node, char *line) {
    if (line[0] == 's' && line[1] >= '0' && line[1] <= '9') {
        read_sample(node, line);
        return;
    }
    const char *kind = tool_field_next(&line);
    if (strcmp(kind, "probe") == 0)
        read_probe(node, line);
    else if (strcmp(kind, "missing") == 0)
        read_missing(node, line);
    else if (strcmp(kind, "begin") == 0)
        read_begin(node, line);
    else if (strcmp(kind, "event") == 0)
        read_event(node, line);
    else if (strcmp(kind, "cost") == 0)
        read_cost(node, line);
}

/* Splits the sampler's output into lines. A line above WATCH_LINE_MAX is dropped as malformed. */
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
            read_line(node, node->line.bytes);
        if (newline)
            text_reset(&node->line);
        bytes += part + 1;
    }
}

/* Notes that a node is no longer watched, unless the sampler was asked to end. */
static void on_sampler_exit(struct remote_command *command, const struct remote_exit *exit,
                            const struct failure *failure, void *context) {
    (void)command;
    struct watch_node *node = context;
    const char *name = node->node->name;
    char how[128];
    if (node->state != WATCH_ENDING && exit)
        record_note(node->watch->set->record, "node %s: the sampler %s%s%.*s; the node is no longer watched",
                    name, remote_exit_describe(exit, how, sizeof how), node->errors.length ? ": " : "",
                    (int)strcspn(node->errors.bytes, "\n"), node->errors.bytes);
    else if (node->state != WATCH_ENDING && failure)
        record_log(node->watch->set->record, "node %s: its sampler: %s", name, failure->text);
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

/* Makes the state of all nodes and the timer that writes their files. */
static int watch_open(struct watch *watch, struct failure *failure) {
    struct node_set *set = watch->set;
    watch->nodes = xcalloc(set->count, sizeof *watch->nodes);
    watch->count = set->count;
    for (size_t i = 0; i < watch->count; i++) {
        watch->nodes[i].watch = watch;
        watch->nodes[i].node = &set->items[i];
        watch->nodes[i].described = true;
        text_init(&watch->nodes[i].line, WATCH_LINE_MAX);
        text_init(&watch->nodes[i].errors, 4096);
    }
    watch->timer = event_loop_add_timer(set->loop, write_period_ns, write_period_ns, on_timer, watch);
    return watch->timer ? 0 : failure_memory(failure);
}

void watch_close(struct watch *watch) {
    event_source_remove(take_pointer(watch->timer));
    for (size_t i = 0; i < watch->count; i++) {
        struct watch_node *node = &watch->nodes[i];
        remote_command_free(node->sampler);
        text_clear(&node->line);
        text_clear(&node->errors);
        for (size_t kind = 0; kind < PROBE_KINDS; kind++)
            watch_probe_clear(&node->probes[kind]);
        watch_file_free(node->events);
        free(node->missing);
    }
    free(take_pointer(watch->nodes));
    watch->count = 0;
}

/* Starts the sampler of one node; what is known of its probes is reset. */
static int start_sampler(struct watch_node *node, struct failure *failure) {
    char **arguments = make_arguments(node);
    struct remote_command_specification specification = {
        .arguments = (const char *const *)arguments, .coalesce_ms = COALESCE_MS, .error_limit = 4096};
    struct remote_command_callbacks callbacks = {.on_output = on_output, .on_exit = on_sampler_exit};
    remote_command_free(take_pointer(node->sampler));
    text_reset(&node->line);
    text_reset(&node->errors);
    node->kind_count = 0;
    free(take_pointer(node->missing));
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        node->probes[kind].there = false;
    int r = remote_command_start(node->node->link, &specification, &callbacks, node, &node->sampler, failure);
    experiment_arguments_free(arguments);
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
    while (r >= 0 && any_in(watch, state) && (left = deadline - clock_monotonic_ns()) > 0)
        r = event_loop_turn(watch->set->loop, left, failure);
    return r < 0 ? r : 0;
}

/* Notes and journals the probes that nodes do not have. Done once, because blocks do not change it. */
static void note_missing(struct watch *watch) {
    struct node_set *set = watch->set;
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(watch->count);
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        size_t i = node->number;
        const char *missing = watch->nodes[i].missing;
        if (!missing)
            continue;
        node_set_note_entry(set, "not-watched", node, "probes", missing);
        words.items[i] = xformat("not watched: %s", missing);
    }
    node_set_note_grouped(set, &words);
}

/* Starts the samplers and waits until all have begun. One that does not begin in time is only noted. */
int watch_start(struct watch *watch, struct failure *failure) {
    struct node_set *set = watch->set;
    if (!probe_settings_any(&set->campaign->probes))
        return 0;
    bool first = !watch->nodes;
    int r = first ? watch_open(watch, failure) : 0;
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(set, node));) {
        size_t i = node->number;
        if (watch->nodes[i].state == WATCH_OFF && node_group_is_there(set->group, i))
            r = start_sampler(&watch->nodes[i], failure);
    }
    if (r == 0)
        r = wait_while(watch, WATCH_STARTING, begin_timeout_ns, failure);
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));)
        if (watch->nodes[node->number].state == WATCH_STARTING)
            record_note(set->record, "node %s: sampler not started; its units may be flagged unwatched",
                        node->name);
    for (size_t i = 0; r == 0 && i < set->count; i++)
        r = watch_describe_files(&watch->nodes[i], failure);
    if (r == 0 && (first || set->joining))
        note_missing(watch);
    return r;
}

/* While a spare is brought in, the others continue; else all end, also on nodes that were taken out. */
static bool is_stopped(const struct node_set *set, size_t node) {
    return !set->joining || node_set_has(set, node);
}

/* Ends the samplers that are being asked, then writes all files, even if a sampler does not end. */
int watch_stop(struct watch *watch, struct failure *failure) {
    const struct node_set *set = watch->set;
    for (size_t i = 0; i < watch->count; i++) {
        struct watch_node *node = &watch->nodes[i];
        if (node->state == WATCH_OFF || !is_stopped(set, i))
            continue;
        node->state = WATCH_ENDING;
        if (remote_command_kill(node->sampler, SIGTERM, NULL) < 0)
            node->state = WATCH_OFF;
    }
    int r = wait_while(watch, WATCH_ENDING, end_timeout_ns, failure);
    for (size_t i = 0; i < watch->count; i++) {
        if (!is_stopped(set, i))
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

const struct watch_probe *watch_probe(const struct watch *watch, size_t node, enum probe_kind kind) {
    const struct watch_probe *probe = watch->nodes ? &watch->nodes[node].probes[kind] : NULL;
    return probe && probe->there && probe->history.columns > 0 ? probe : NULL;
}

bool watch_is_live(const struct watch *watch, size_t node) {
    return watch->nodes && watch->nodes[node].state != WATCH_OFF;
}

const char *watch_column_name(const struct watch_probe *probe, size_t column) {
    return probe->file->columns[WATCH_TIME_COLUMNS + column].name;
}

size_t watch_column(const struct watch_probe *probe, const char *name) {
    for (size_t i = 0; i < probe->history.columns; i++)
        if (strcmp(watch_column_name(probe, i), name) == 0)
            return i;
    return SIZE_MAX;
}

/* PUs that are there come in ascending order, and mostly without a gap: so the search begins at its own
 * place.
 */
size_t watch_pu_column(const struct watch_probe *probe, unsigned pu) {
    for (size_t i = pu < probe->history.columns ? pu + 1 : probe->history.columns; i-- > 0;)
        if (probe->pus[i] == pu)
            return i;
    return SIZE_MAX;
}

bool watch_is_package(const struct watch_probe *probe, size_t column) {
    return !probe->any_package || is_package(watch_column_name(probe, column));
}

void watch_forget(struct watch *watch, size_t node, int64_t time_ns) {
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        history_forget(&watch->nodes[node].probes[kind].history, time_ns);
}
