#include "engine/command-line/status-describe.h"

#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    BAR_WIDTH = 40,
    NODES_SHOWN = 20, /* of those that are not as they should be; JSON has all */
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
    else if (status->condition == RUN_IS_RUNNING)
        snprintf(buffer, STATUS_WHEN_SIZE, "in %s", status->phase[0] ? status->phase : "its first moments");
    else if (status->ended[0])
        snprintf(buffer, STATUS_WHEN_SIZE, "ended %s", status_describe_time(status->ended, time));
    else
        snprintf(buffer, STATUS_WHEN_SIZE, "last heard of %s",
                 status_describe_time(status->last_entry, time));
    return buffer;
}

static const char *node_word(const struct run_history_node *node) {
    static const char *const words[] = {[RUN_NODE_IN] = "in",
                                        [RUN_NODE_OUT_OF_REACH] = "out of reach",
                                        [RUN_NODE_LOST] = "lost",
                                        [RUN_NODE_OUT] = "taken out"};
    return node->condition == RUN_NODE_IN && node->slow ? "slow" : words[node->condition];
}

static const char *sentence_of(const struct run_history_node *node) {
    return node->condition == RUN_NODE_IN ? node->slow : node->sentence;
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static void add_text(cJSON *object, const char *key, const char *text) {
    json_add_string(object, key, text && text[0] ? text : NULL);
}

static void add_owner(cJSON *object, const struct run_status *status) {
    const struct run_lock_owner *owner = &status->owner;
    if (status->condition != RUN_IS_RUNNING || !owner->known) {
        json_add_string(object, "owner", NULL);
        return;
    }
    cJSON *item = json_add_object(object, "owner");
    json_add_string(item, "host", owner->host);
    json_add_int64(item, "pid", owner->pid);
    json_add_string(item, "since", owner->since);
}

static void add_units(cJSON *object, const struct run_status *status) {
    cJSON *units = json_add_object(object, "units");
    if (status->is_planned) {
        json_add_uint64(units, "planned", status->planned);
        json_add_uint64(units, "left", status->left);
    } else {
        json_add_string(units, "planned", NULL);
        json_add_string(units, "left", NULL);
    }
    json_add_uint64(units, "done", status->done);
    json_add_uint64(units, "failed", status->failed);
    json_add_uint64(units, "flagged", status->flagged);
    json_add_uint64(units, "repeated", status->repeated);
    cJSON *blocks = json_add_object(object, "blocks");
    json_add_uint64(blocks, "done", status->blocks_done);
    if (status->block)
        json_add_uint64(blocks, "current", status->block);
    else
        json_add_string(blocks, "current", NULL);
}

static void add_nodes(cJSON *object, const struct run_status *status) {
    cJSON *nodes = json_add_array(object, "nodes");
    for (size_t i = 0; i < status->node_count; i++) {
        const struct run_history_node *node = status->nodes[i];
        cJSON *item = json_add_object(nodes, NULL);
        json_add_string(item, "name", node->name);
        json_add_string(item, "status", node_word(node));
        json_add_boolean(item, "slow", node->slow);
        json_add_string(item, "sentence", sentence_of(node));
    }
}

cJSON *status_describe_json(const struct run_status *status) {
    cJSON *object = cJSON_CreateObject();
    if (!object)
        return NULL;
    json_add_string(object, "path", status->path);
    json_add_string(object, "folder", status->folder);
    json_add_string(object, "archive", status->archive);
    add_text(object, "name", status->name);
    add_text(object, "run_id", status->run_id);
    json_add_int64(object, "part", status->part);
    json_add_string(object, "status", run_condition_name(status->condition));
    add_owner(object, status);
    add_text(object, "phase", status->phase);
    add_text(object, "started", status->started);
    add_text(object, "ended", status->ended);
    add_text(object, "last_entry", status->last_entry);
    add_text(object, "deadline", status->deadline);
    add_units(object, status);
    add_nodes(object, status);
    json_add_double(object, "units_per_second", status->rate);
    json_add_double(object, "seconds_left", status->seconds_left < 0 ? NAN : status->seconds_left);
    add_text(object, "error", status->last_error);
    json_add_uint64(object, "journal_torn_bytes", status->journal_torn_bytes);
    json_add_uint64(object, "journal_whole_after", status->journal_whole_after);
    json_add_string(object, "next", status->next);
    json_add_string(object, "command", status->command);
    return object;
}

/* ---- A page ------------------------------------------------------------------------------------ */

struct page {
    struct text *text;
    int result;
};

static void keep(struct page *page, int result) {
    if (result < 0 && page->result == 0)
        page->result = result;
}

__attribute__((format(printf, 3, 4))) static void line(struct page *page, const char *key, const char *format,
                                                       ...) {
    va_list list;
    va_start(list, format);
    keep(page, text_printf(page->text, "%-11s ", key));
    keep(page, text_vprintf(page->text, format, list));
    keep(page, text_append_character(page->text, '\n'));
    va_end(list);
}

static void describe_condition(struct page *page, const struct run_status *status) {
    const struct run_lock_owner *owner = &status->owner;
    char since[CLOCK_TEXT_SIZE];
    const char *name = run_condition_name(status->condition);
    if (status->condition == RUN_IS_RUNNING && owner->known)
        line(page, "status", "%s: process %" PRId64 " on host %s, since %s", name, owner->pid, owner->host,
             status_describe_time(owner->since, since));
    else if (status->condition == RUN_IS_STOPPED)
        line(page, "status", "%s: it ended without being sealed", name);
    else
        line(page, "status", "%s", name);
    if (status->part > 1)
        line(page, "part", "%" PRId64 ": it was resumed", status->part);
    if (status->phase[0])
        line(page, "phase", "%s", shown(status->phase).text);
}

static void describe_units(struct page *page, const struct run_status *status) {
    char units[STATUS_UNITS_SIZE], bar[BAR_WIDTH + 1] = "";
    status_describe_units(status, units);
    if (status->is_planned && status->planned > 0) {
        double share = (double)status->done / (double)status->planned;
        int filled = share < 1 ? (int)(share * BAR_WIDTH) : BAR_WIDTH;
        memset(bar, '.', BAR_WIDTH);
        memset(bar, '#', (size_t)filled);
        line(page, "units", "[%s] %.1f %%", bar, 100 * share);
        line(page, "", "%s done, %" PRIu64 " failed, %" PRIu64 " left", units, status->failed, status->left);
    } else {
        line(page, "units", "%s done, %" PRIu64 " failed; how many there are is not known", units,
             status->failed);
    }
    if (status->flagged || status->repeated)
        line(page, "", "lines with flags: %" PRIu64 "; units measured again: %" PRIu64, status->flagged,
             status->repeated);
    if (status->block)
        line(page, "blocks", "%" PRIu64 " done, number %" PRIu64 " is measured", status->blocks_done,
             status->block);
}

static void describe_nodes(struct page *page, const struct run_status *status) {
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
    line(page, "nodes", "%zu%s", status->node_count, words);
    size_t told = 0, all = 0;
    for (size_t i = 0; i < status->node_count; i++) {
        const struct run_history_node *node = status->nodes[i];
        if ((node->condition == RUN_NODE_IN && !node->slow) || all++ >= NODES_SHOWN)
            continue;
        told++;
        const char *sentence = sentence_of(node);
        line(page, "", "%s is %s%s%s", shown(node->name).text, node_word(node), sentence ? ": " : "",
             sentence ? shown(sentence).text : "");
    }
    if (all > told)
        line(page, "", "... and %zu more", all - told);
}

static void describe_times(struct page *page, const struct run_status *status) {
    char time[CLOCK_TEXT_SIZE], left[NUMBER_TEXT_SIZE];
    if (isfinite(status->rate))
        line(page, "rate", "%.4g units/s", status->rate);
    if (status->seconds_left >= 0)
        line(page, "left", "%s", number_describe_duration(status->seconds_left, left));
    if (status->deadline[0])
        line(page, "deadline", "%s UTC", status_describe_time(status->deadline, time));
    line(page, "started", "%s UTC", shown(status_describe_time(status->started, time)).text);
    if (status->ended[0])
        line(page, "ended", "%s UTC", shown(status_describe_time(status->ended, time)).text);
    else if (status->last_entry[0])
        line(page, "last heard", "%s UTC", status_describe_time(status->last_entry, time));
}

int status_describe(const struct run_status *status, struct text *ret) {
    struct page page = {.text = ret};
    line(&page, "name", "%s", shown(status->name).text);
    if (status->run_id[0])
        line(&page, "run", "%s", shown(status->run_id).text);
    if (status->folder)
        line(&page, "folder", "%s", shown(status->folder).text);
    if (status->archive)
        line(&page, "archive", "%s", shown(status->archive).text);
    describe_condition(&page, status);
    describe_units(&page, status);
    describe_nodes(&page, status);
    describe_times(&page, status);
    if (status->last_error[0])
        line(&page, "last error", "%s", shown(status->last_error).text);
    if (status->journal_torn_bytes)
        line(&page, "journal", "its last %" PRIu64 " bytes are torn: they count for nothing",
             status->journal_torn_bytes);
    if (status->journal_whole_after)
        line(&page, "",
             "%" PRIu64 " whole entries lie behind the tear: the disk, or somebody, changed the file",
             status->journal_whole_after);
    line(&page, "next", "%s", shown(status->next).text);
    return page.result;
}
