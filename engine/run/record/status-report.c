#include "engine/run/record/status-report.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    BAR_WIDTH = 40,
    NODES_SHOWN = 20, /* of those that are not as they should be, or are sampled; JSON has all */
    DIGITS_SHOWN = 4,
    COLUMNS_SHOWN = 5, /* of a probe; of more the range of their values */
};

/* ---- Pieces ------------------------------------------------------------------------------------ */

const char *status_describe_time(const char *time, char buffer[static CLOCK_TEXT_SIZE]) {
    if (!time[0])
        return memcpy(buffer, "-", 2);
    snprintf(buffer, CLOCK_TEXT_SIZE, "%.19s", time);
    char *between = strchr(buffer, 'T');
    if (between)
        *between = ' ';
    return buffer;
}

const char *status_describe_moment(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]) {
    char time[CLOCK_TEXT_SIZE] = "";
    return status_describe_time(wall_ns ? clock_format(wall_ns, time) : time, buffer);
}

const char *status_describe_units(const struct run_status *status, char buffer[static STATUS_UNITS_SIZE]) {
    if (status->is_planned)
        snprintf(buffer, STATUS_UNITS_SIZE, "%" PRIu64 " of %" PRIu64, status->done, status->planned);
    else
        snprintf(buffer, STATUS_UNITS_SIZE, "%" PRIu64, status->done);
    return buffer;
}

const char *status_describe_when(const struct run_status *status, char buffer[static STATUS_WHEN_SIZE]) {
    char left[NUMBER_TEXT_SIZE], time[CLOCK_TEXT_SIZE];
    if (status->condition == RUN_IS_RUNNING && status->seconds_left >= 0)
        snprintf(buffer, STATUS_WHEN_SIZE, "%s left", number_describe_duration(status->seconds_left, left));
    else if (status->condition == RUN_IS_QUEUED)
        snprintf(buffer, STATUS_WHEN_SIZE, "waits for its job");
    else if (status->condition == RUN_IS_RUNNING)
        snprintf(buffer, STATUS_WHEN_SIZE, "in %s", status->phase[0] ? status->phase : "its first moments");
    else if (status->ended[0])
        snprintf(buffer, STATUS_WHEN_SIZE, "ended %s", status_describe_time(status->ended, time));
    else
        snprintf(buffer, STATUS_WHEN_SIZE, "last heard of %s",
                 status_describe_time(status->last_entry, time));
    return buffer;
}

static const char *node_condition_name(const struct run_history_node *node) {
    static const char *const words[] = {[RUN_NODE_IN] = "in",
                                        [RUN_NODE_OUT_OF_REACH] = "out of reach",
                                        [RUN_NODE_LOST] = "lost",
                                        [RUN_NODE_OUT] = "taken out"};
    return node->condition == RUN_NODE_IN && node->slow ? "slow" : words[node->condition];
}

/* ---- The tree: what is only for people has no name, what is only for programs is a detail ---- */

/* Adds a line for people after LABEL; LABEL " ": under the line before. */
__attribute__((format(printf, 3, 4))) static void print_line(struct report *page, const char *label,
                                                             const char *format, ...) {
    char text[2 * FAILURE_TEXT_SIZE];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    report_text(page->root, NULL, label, text, false);
}

/* For both; people do not see an empty one. */
static void add_text(struct report *page, const char *name, const char *label, const char *text) {
    bool known = text && text[0];
    report_text(page->root, name, label, known ? text : NULL, !known);
}

static void add_count(struct report_section *to, const char *name, bool known, uint64_t count) {
    if (known)
        report_number(to, name, NULL, (double)count, NULL, 0, true);
    else
        report_text(to, name, NULL, NULL, true);
}

/* Adds the condition with the process that works on the run, the part, the phase, and the reservation that is
 * waited for. */
static void add_condition(struct report *page, const struct run_status *status) {
    const struct run_lock_owner *owner = &status->owner;
    char since[CLOCK_TEXT_SIZE];
    const char *name = run_condition_name(status->condition);
    bool is_owned = status->condition == RUN_IS_RUNNING && owner->known;
    report_number(page->root, "part", NULL, (double)status->part, NULL, 0, true);
    report_text(page->root, "status", NULL, name, true);
    if (is_owned) {
        print_line(page, "status", "%s: process %" PRId64 " on host %s, since %s", name, owner->pid,
                   owner->host, status_describe_time(owner->since, since));
        struct report_section *section = report_section(page->root, "owner", NULL, true);
        report_text(section, "host", NULL, owner->host, true);
        report_number(section, "pid", NULL, (double)owner->pid, NULL, 0, true);
        report_text(section, "since", NULL, owner->since, true);
    } else {
        print_line(page, "status", "%s%s%s", name,
                   status->damage                        ? ": "
                   : status->condition == RUN_IS_STOPPED ? ": it ended without being sealed"
                                                         : "",
                   status->damage ? status->damage : "");
        report_text(page->root, "owner", NULL, NULL, true);
    }
    if (status->part > 1)
        print_line(page, "part", "%" PRId64 ": it was resumed", status->part);
    add_text(page, "phase", NULL, status->phase);
    bool is_reserving =
        status->condition == RUN_IS_QUEUED || strcmp(status->phase, run_phase_names[RUN_RESERVE]) == 0;
    add_text(page, "reservation", NULL, is_reserving ? status->history.reservation : NULL);
}

/* Adds what is reserved, with the names of the nodes: nothing else says where to log in by hand. */
static void add_reservation(struct report *page, const struct run_status *status) {
    const struct run_history_reservation *held = &status->history.held;
    struct report_section *section = report_section(page->root, "reserved", NULL, true);
    if (!run_history_is_reserved(&status->history, clock_wall_ns()))
        return;
    char time[CLOCK_TEXT_SIZE], until[CLOCK_TEXT_SIZE];
    cleanup_free const char **names = xcalloc(status->node_count + 1, sizeof *names);
    cleanup(text_clear) struct text nodes;
    text_init(&nodes, (size_t)HOST_LIST_MAX * (HOST_BYTES_MAX + 1));
    for (size_t i = 0; i < status->node_count; i++)
        names[i] = status->nodes[i]->name;
    host_list_fold(names, status->node_count, &nodes);
    print_line(page, "reserved", "%s, %s%s%s%s%s", held->testbed, held->id[0] ? "job " : "asked for",
               held->id, held->until_ns ? ", until " : "",
               held->until_ns ? status_describe_moment(held->until_ns, until) : "",
               held->until_ns ? " UTC" : "");
    if (nodes.length)
        report_text(page->root, NULL, " ", nodes.bytes, false);
    report_text(section, "testbed", NULL, held->testbed, true);
    report_text(section, "id", NULL, held->id, true);
    report_text(section, "since", NULL, clock_format(held->since_ns, time), true);
    report_text(section, "until", NULL, held->until_ns ? clock_format(held->until_ns, until) : NULL, true);
}

/* For people: a bar, and the counts of units and blocks. */
static void print_units(struct report *page, const struct run_status *status) {
    char units[STATUS_UNITS_SIZE], bar[BAR_WIDTH + 1] = "";
    status_describe_units(status, units);
    if (status->is_planned && status->planned > 0) {
        double share = (double)status->done / (double)status->planned;
        int filled = share < 1 ? (int)(share * BAR_WIDTH) : BAR_WIDTH;
        memset(bar, '.', BAR_WIDTH);
        memset(bar, '#', (size_t)filled);
        print_line(page, "units", "[%s] %.1f %%", bar, 100 * share);
        print_line(page, " ", "%s done, %" PRIu64 " failed, %" PRIu64 " left", units, status->failed,
                   status->left);
    } else if (run_status_is_under_way(status)) {
        print_line(page, "units", "none yet: they are counted when the nodes are known");
    } else {
        print_line(page, "units", "%s: it ended before its units were counted",
                   status->done + status->failed ? units : "none");
    }
    if (status->flagged || status->repeated)
        print_line(page, " ", "lines with flags: %" PRIu64 "; units measured again: %" PRIu64,
                   status->flagged, status->repeated);
    if (status->block)
        print_line(page, "blocks", "%" PRIu64 " done, number %" PRIu64 " is measured", status->blocks_done,
                   status->block);
}

static void add_units(struct report *page, const struct run_status *status) {
    print_units(page, status);
    struct report_section *units = report_section(page->root, "units", NULL, true);
    add_count(units, "planned", status->is_planned, status->planned);
    add_count(units, "left", status->is_planned, status->left);
    add_count(units, "done", true, status->done);
    add_count(units, "failed", true, status->failed);
    add_count(units, "flagged", true, status->flagged);
    add_count(units, "repeated", true, status->repeated);
    struct report_section *blocks = report_section(page->root, "blocks", NULL, true);
    add_count(blocks, "done", true, status->blocks_done);
    add_count(blocks, "current", status->block, status->block);
}

/* For people: "8, 1 lost, 2 slow". */
static void print_node_counts(struct report *page, const struct run_status *status) {
    const struct {
        size_t count;
        const char *word;
    } kinds[] = {{status->nodes_out_of_reach, "out of reach"},
                 {status->nodes_lost, "lost"},
                 {status->nodes_out, "taken out"},
                 {status->nodes_slow, "slow"}};
    char words[160] = "";
    for (size_t i = 0, length = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].count > 0)
            length += (size_t)snprintf(words + length, sizeof words - length, ", %zu %s", kinds[i].count,
                                       kinds[i].word);
    print_line(page, "nodes", "%zu%s", status->node_count, words);
}

/* Appends the last values of a probe: "load-1min 3.2, busy 0.98", or, if there are many, "frequency 64
 * values, 2.1 GHz to 2.4 GHz". */
static void describe_probe(const struct samples_probe *probe, struct text *ret) {
    double least = INFINITY, most = -INFINITY;
    size_t known = 0;
    for (size_t i = 0; i < probe->count; i++) {
        if (!isfinite(probe->values[i]))
            continue;
        known++;
        least = fmin(least, probe->values[i]);
        most = fmax(most, probe->values[i]);
        cleanup_free char *value = report_format(probe->values[i], probe->units[i], DIGITS_SHOWN);
        if (probe->count <= COLUMNS_SHOWN)
            (void)text_printf(ret, "%s%s %s", ret->length ? ", " : "", probe->names[i], value);
    }
    bool is_alike = true; /* the columns have one unit */
    for (size_t i = 1; i < probe->count; i++)
        is_alike =
            is_alike && probe->units[i] && probe->units[0] && strcmp(probe->units[i], probe->units[0]) == 0;
    cleanup_free char *low = report_format(least, is_alike ? probe->units[0] : NULL, DIGITS_SHOWN);
    cleanup_free char *high = report_format(most, is_alike ? probe->units[0] : NULL, DIGITS_SHOWN);
    if (known > 0 && probe->count > COLUMNS_SHOWN)
        (void)text_printf(ret, "%s%.*s %zu values, %s to %s", ret->length ? ", " : "",
                          (int)strcspn(probe->file, "."), probe->file, known, low, high);
}

/* Adds the last samples of NODE to SECTION. COUNT counts the lines for people, at most NODES_SHOWN. */
static void add_samples(struct report *page, struct report_section *section,
                        const struct run_history_node *node, size_t *count) {
    cleanup(text_clear) struct text words;
    char time[CLOCK_TEXT_SIZE], moment[CLOCK_TEXT_SIZE];
    int64_t last_ns = 0;
    text_init(&words, FAILURE_TEXT_SIZE);
    struct report_section *list = report_list(section, "samples");
    for (size_t i = 0; i < node->samples.count; i++) {
        const struct samples_probe *probe = &node->samples.probes[i];
        if (probe->count == 0)
            continue;
        struct report_section *item = report_section(list, "probe", NULL, true);
        report_text(item, "file", NULL, probe->file, true);
        report_text(item, "time", NULL, clock_format(probe->time_ns, time), true);
        struct report_section *values = report_section(item, "values", NULL, true);
        for (size_t c = 0; c < probe->count; c++)
            report_number(values, probe->names[c], NULL, probe->values[c], probe->units[c], 0, true);
        describe_probe(probe, &words);
        last_ns = probe->time_ns > last_ns ? probe->time_ns : last_ns;
    }
    if (words.length > 0 && (*count)++ < NODES_SHOWN)
        print_line(page, *count == 1 ? "samples" : " ", "%s, %s UTC: %s", node->name,
                   status_describe_moment(last_ns, moment), words.bytes);
}

/* Adds all nodes, and for people those that are not in or are slow. */
static void add_nodes(struct report *page, const struct run_status *status) {
    size_t bad = 0, sampled = 0;
    print_node_counts(page, status);
    struct report_section *nodes = report_list(page->root, "nodes");
    cleanup_free struct report_section **sections = xcalloc(status->node_count + 1, sizeof *sections);
    for (size_t i = 0; i < status->node_count; i++) {
        const struct run_history_node *node = status->nodes[i];
        const char *sentence = node->condition == RUN_NODE_IN ? node->slow : node->sentence;
        struct report_section *section = report_section(nodes, "node", NULL, true);
        sections[i] = section;
        report_text(section, "name", NULL, node->name, true);
        report_text(section, "status", NULL, node_condition_name(node), true);
        report_boolean(section, "slow", NULL, node->slow, true);
        report_text(section, "sentence", NULL, sentence, true);
        if ((node->condition != RUN_NODE_IN || node->slow) && bad++ < NODES_SHOWN)
            print_line(page, " ", "%s is %s%s%s", node->name, node_condition_name(node), sentence ? ": " : "",
                       sentence ? sentence : "");
    }
    if (bad > NODES_SHOWN)
        print_line(page, " ", "... and %zu more", bad - NODES_SHOWN);
    for (size_t i = 0; i < status->node_count; i++)
        add_samples(page, sections[i], status->nodes[i], &sampled);
    if (sampled > NODES_SHOWN)
        print_line(page, " ", "... and %zu more", sampled - NODES_SHOWN);
}

static void add_time(struct report *page, const char *name, const char *label, const char *time, bool shown) {
    char words[CLOCK_TEXT_SIZE];
    if (shown)
        print_line(page, label, "%s UTC", status_describe_time(time, words));
    report_text(page->root, name, NULL, time[0] ? time : NULL, true);
}

/* Adds rate, time left, deadline, and the times of begin, end and last entry. */
static void add_times(struct report *page, const struct run_status *status) {
    char left[NUMBER_TEXT_SIZE];
    bool is_left_known = status->seconds_left >= 0;
    if (isfinite(status->rate))
        print_line(page, "rate", "%.4g units/s", status->rate);
    if (is_left_known)
        print_line(page, "left", "%s", number_describe_duration(status->seconds_left, left));
    report_number(page->root, "units_per_second", NULL, status->rate, NULL, 0, true);
    report_number(page->root, "seconds_left", NULL, is_left_known ? status->seconds_left : NAN, NULL, 0,
                  true);
    add_time(page, "deadline", "deadline", status->deadline, status->deadline[0]);
    add_time(page, "started", "started", status->started, true);
    add_time(page, "ended", "ended", status->ended, status->ended[0]);
    add_time(page, "last_entry", "last heard", status->last_entry,
             !status->ended[0] && status->last_entry[0]);
}

static void add_journal(struct report *page, const struct run_status *status) {
    if (status->journal_torn_bytes)
        print_line(page, "journal", "its last %" PRIu64 " bytes are torn: they count for nothing",
                   status->journal_torn_bytes);
    if (status->journal_whole_after)
        print_line(page, " ", "%" PRIu64 " whole entries follow the tear: something changed the file",
                   status->journal_whole_after);
    add_count(page->root, "journal_torn_bytes", true, status->journal_torn_bytes);
    add_count(page->root, "journal_whole_after", true, status->journal_whole_after);
}

struct report *status_describe(const struct run_status *status) {
    struct report *page = report_new();
    report_text(page->root, "path", NULL, status->path, true);
    report_text(page->root, NULL, "name", status->name, false);
    report_text(page->root, "name", NULL, status->name[0] ? status->name : NULL, true);
    add_text(page, "run_id", "run", status->run_id);
    add_text(page, "folder", NULL, status->folder);
    add_text(page, "archive", NULL, status->archive);
    add_condition(page, status);
    add_reservation(page, status);
    add_units(page, status);
    add_nodes(page, status);
    add_times(page, status);
    add_text(page, "error", "last error", status->last_error);
    add_journal(page, status);
    add_text(page, "next", NULL, status->next);
    report_text(page->root, "command", NULL, status->command, true);
    return page;
}
