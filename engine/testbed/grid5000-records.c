/* Records from Grid'5000's API for the archive: the environment, the hardware, and the metrics of Kwollect.
 */
#include "engine/testbed/grid5000.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/nodes/ssh-nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *site_name(const struct scheduler_stage *stage) {
    return stage->settings->resources.grid5000.site;
}

/* ---- The environment */

/* Writes the ITEMS of one version of the environment into environment.json; there is one item for each
 * processor architecture. */
static int write_environment(const struct scheduler_stage *stage, const struct document_node *items,
                             int64_t version, struct failure *failure) {
    cleanup(json_cleanup) cJSON *array = cJSON_CreateArray();
    cleanup_free char *path = grid5000_file(stage, "environment.json");
    for (size_t i = 0; i < items->count; i++)
        if (scheduler_number(items->items[i], "version") == version)
            cJSON_AddItemToArray(array, json_from_node(items->items[i]));
    return json_write_file(path, array, failure);
}

/* The version that an engine which died has deployed in this job, from environment.json; 0: none. It is used
 * again, even if there is a newer version by now. */
static int64_t read_deployed_version(const struct scheduler_stage *stage) {
    cleanup_free char *path = grid5000_file(stage, "environment.json");
    cleanup(document_cleanup) struct document *document = NULL;
    if (document_read_json(path, &document, NULL) < 0)
        return 0;
    const struct document_node *items = document->root;
    return items->kind == DOCUMENT_SEQUENCE && items->count > 0 ? scheduler_number(items->items[0], "version")
                                                                : 0;
}

/* RET_VERSION: the version of the environment to deploy. IS_RECORDED: the one deployed, whose description is
 * recorded. FAILURE_INPUT: there is no such one. */
int grid5000_find_environment(const struct scheduler_stage *stage, bool is_recorded, int64_t *ret_version,
                              struct failure *failure) {
    const struct grid5000_resources *own = &stage->settings->resources.grid5000;
    int64_t wanted_version = own->version || !is_recorded ? own->version : read_deployed_version(stage);
    *ret_version = wanted_version;
    if (strstr(own->environment, "://"))
        return 0;
    const char *at = strchr(own->environment, '@'), *user = at ? at + 1 : NULL;
    cleanup_free char *environment = xstrndup(own->environment, strcspn(own->environment, "@"));
    cleanup_free char *all = xformat("/sites/%s/environments?limit=500%s%s", site_name(stage),
                                     user ? "&user=" : "", user ? user : "");
    cleanup_free char *name = NULL;
    int r = grid5000_find_item(stage, all, site_name(stage), "environment", environment, &name, failure);
    if (r < 0)
        return r;
    cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
    cleanup_free char *path = xformat("/sites/%s/environments?latest_only=no&limit=500&name=%s%s%s",
                                      site_name(stage), name, user ? "&user=" : "", user ? user : "");
    r = grid5000_request(stage, "GET", path, NULL, GRID5000_TRIES, &answer, failure);
    if (r < 0)
        return r;
    const struct document_node *items = document_get(answer.document->root, "items");
    int64_t newest = 0;
    bool is_there = false;
    for (size_t i = 0; items && i < items->count; i++) {
        int64_t version = scheduler_number(items->items[i], "version");
        newest = version > newest ? version : newest;
        is_there |= version == wanted_version;
    }
    if (wanted_version > 0 && !is_there)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "the environment '%s' has no version %lld; the newest is %lld", name,
                                (long long)wanted_version, (long long)newest);
    *ret_version = wanted_version > 0 ? wanted_version : newest;
    return is_recorded && items ? write_environment(stage, items, *ret_version, failure) : 0;
}

/* ---- The hardware */

/* Writes the body of ANSWER into the file NAME of the job's folder. */
static int write_answer(const struct scheduler_stage *stage, const char *name,
                        const struct grid5000_answer *answer, struct failure *failure) {
    cleanup_free char *path = grid5000_file(stage, name);
    return file_replace(path, answer->http.body.bytes, answer->http.body.length, 0666, failure);
}

/* Writes the description of one NODE into reference-NODE.json. */
static int record_node(const struct scheduler_stage *stage, const char *node, struct failure *failure) {
    cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
    const char *dash = strrchr(node, '-');
    cleanup_free char *path =
        xformat("/sites/%s/clusters/%.*s/nodes/%s?timestamp=%lld", site_name(stage),
                dash ? (int)(dash - node) : 0, node, node, (long long)stage->job->start_s);
    cleanup_free char *file = ssh_node_name(node), *name = xformat("reference-%s.json", file);
    int r = grid5000_request(stage, "GET", path, NULL, 3, &answer, failure);
    return r < 0 ? r : write_answer(stage, name, &answer, failure);
}

/* Asks for all nodes of the job at once, which the API does not document. Where the answer lacks a node, each
 * node is asked for alone. */
void grid5000_record_reference(const struct scheduler_stage *stage) {
    cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
    cleanup_free char *path = xformat("/sites/%s?deep=1&job_id=%s", site_name(stage), stage->job->id);
    const struct host_list *nodes = &stage->job->nodes;
    struct failure failure = {0};
    int r = grid5000_request(stage, "GET", path, NULL, 3, &answer, &failure);
    bool has_all = r == 0;
    for (size_t i = 0; i < nodes->count; i++) {
        cleanup_free char *node = grid5000_short_name(nodes->names[i]);
        cleanup_free char *quoted = xformat("\"%s\"", node);
        has_all = has_all && strstr(answer.http.body.bytes, quoted);
    }
    if (has_all)
        r = write_answer(stage, "reference.json", &answer, &failure);
    else if (r != -EINTR)
        r = 0;
    for (size_t i = 0; !has_all && r == 0 && i < nodes->count; i++) {
        cleanup_free char *node = grid5000_short_name(nodes->names[i]);
        r = record_node(stage, node, &failure);
    }
    if (r < 0 && r != -EINTR)
        grid5000_report(stage, "cannot record the description of the nodes in the archive: %s", failure.text);
}

/* ---- Metrics */

enum { WINDOW_S = 600 /* time span of one request */, ROWS_MAX = 256 << 20 /* bytes of its rows */ };

/* The UCUM unit of a metric, by a part of its name ("wattmetre_power_watt"); "": not known. */
static const char *metric_unit(const char *metric) {
    static const struct {
        const char *word, *code;
    } units[] = {{"_watt", "W"},   {"_celsius", "Cel"}, {"_joule", "J"},   {"_volt", "V"},
                 {"_amp", "A"},    {"_bytes", "By"},    {"_percent", "%"}, {"_rpm", "/min"},
                 {"_hertz", "Hz"}, {"_seconds", "s"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strstr(metric, units[i].word))
            return units[i].code;
    return "";
}

/* Appends the labels that distinguish series of one metric on one node: "wattmetre1-port33", or
 * "interface=eth0". */
static void append_source(const struct document_node *labels, struct text *ret) {
    for (size_t i = 0; labels && labels->kind == DOCUMENT_MAPPING && i < labels->count; i++) {
        const struct document_node *value = labels->items[i];
        const char *key = labels->keys[i]->text;
        if (ret->length)
            text_append_character(ret, ';');
        if (strcmp(key, "_device_orig") != 0)
            text_printf(ret, "%s=", key);
        if (value->text)
            text_append_string(ret, value->text);
        for (size_t j = 0; !value->text && j < value->count; j++)
            if (value->items[j]->text)
                text_printf(ret, "%s%s", j ? "+" : "", value->items[j]->text);
    }
}

/* Appends a sample as a CSV row. False, and no row: ITEM is no sample, or its time is not in [FROM_S,
 * UNTIL_S). A sample at the border of two windows is in the answers for both. */
static bool append_row(const struct document_node *item, int64_t from_s, int64_t until_s, struct text *rows) {
    char stamp[CLOCK_TEXT_SIZE];
    int64_t time_ns;
    double value;
    const char *metric = scheduler_text(item, "metric_id"), *number = scheduler_text(item, "value");
    if (!clock_parse(scheduler_text(item, "timestamp"), &time_ns) || time_ns < from_s * EVENT_SECOND ||
        time_ns >= until_s * EVENT_SECOND || !number_parse_double(number, strlen(number), &value))
        return false;
    cleanup(text_clear) struct text source;
    text_init(&source, 4096);
    append_source(document_get(item, "labels"), &source);
    clock_format_ns(time_ns, stamp);
    const char *const fields[] = {
        stamp, scheduler_text(item, "device_id"), metric, source.bytes, number, metric_unit(metric)};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        csv_append_field(rows, i == 0, fields[i], strlen(fields[i]));
    text_append_character(rows, '\n');
    return true;
}

/* Asks for the metrics of NODE in a time span and writes their rows to OUTPUT; adds their number to *COUNT.
 */
static int fetch_window(const struct scheduler_stage *stage, const char *node, int64_t from_s,
                        int64_t until_s, struct file_output *output, uint64_t *count,
                        struct failure *failure) {
    const struct bind_texts *metrics = &stage->settings->resources.grid5000.monitor;
    cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
    cleanup(text_clear) struct text path, rows;
    text_init(&path, 64 << 10);
    text_init(&rows, ROWS_MAX);
    text_printf(&path, "/sites/%s/metrics?nodes=%s&start_time=%lld&end_time=%lld&metrics=", site_name(stage),
                node, (long long)from_s, (long long)until_s);
    for (size_t i = 0; i < metrics->count; i++)
        text_printf(&path, "%s%s", i ? "," : "", metrics->items[i]);
    int r = grid5000_request(stage, "GET", path.bytes, NULL, 3, &answer, failure);
    if (r < 0)
        return r;
    const struct document_node *items = answer.document->root;
    for (size_t i = 0; items->kind == DOCUMENT_SEQUENCE && i < items->count; i++)
        *count += append_row(items->items[i], from_s, until_s, &rows);
    return file_output_write(output, rows.bytes, rows.length, failure);
}

/* Fetches the metrics of the nodes for the time of the job into metrics.csv, and reports what is missing. */
void grid5000_record_metrics(const struct scheduler_stage *stage) {
    static const char header[] = "time,node,metric,source,value,unit\n";
    cleanup_free char *path = grid5000_file(stage, "metrics.csv");
    cleanup(file_output_clear) struct file_output output = FILE_OUTPUT_NONE;
    const struct host_list *nodes = &stage->job->nodes;
    int64_t end_s = clock_wall_ns() / EVENT_SECOND + 1;
    struct failure failure = {0};
    uint64_t count = 0;
    int r = stage->job->start_s > 0 ? file_output_open(path, 0666, &output, &failure)
                                    : failure_set(&failure, -ENODATA, "the start time of the job is unknown");
    if (r == 0)
        r = file_output_write(&output, header, strlen(header), &failure);
    for (size_t i = 0; r == 0 && i < nodes->count; i++) {
        cleanup_free char *node = grid5000_short_name(nodes->names[i]);
        for (int64_t from_s = stage->job->start_s; r == 0 && from_s < end_s; from_s += WINDOW_S) {
            int64_t until_s = from_s + WINDOW_S < end_s ? from_s + WINDOW_S : end_s;
            r = fetch_window(stage, node, from_s, until_s, &output, &count, &failure);
        }
    }
    if (r < 0)
        grid5000_report(stage, "the archive lacks some of Grid'5000's metrics (the run is not affected): %s",
                        failure.text);
    if (output.descriptor >= 0 && file_output_commit(&output, &failure) < 0)
        grid5000_report(stage, "cannot record the metrics of Grid'5000 in the archive: %s", failure.text);
    else
        grid5000_report(stage, "recorded %llu values of Grid'5000's metrics", (unsigned long long)count);
}
