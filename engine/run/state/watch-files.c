/* The files of watching. */
#include "archive-format/layout.h"
#include "engine/run/state/watch.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WRITTEN_AT = 16 << 10, /* bytes that wait for one file before they are written */
    PENDING_MAX = 4 << 20,
};

/* What waits longer is written, however little it is: others show it while the run goes on (samples.h). */
static const int64_t written_after_ns = 30 * EVENT_SECOND;

/* ---- Columns ---------------------------------------------------------------------------------------------
 */

/* When something was seen, which all tables begin with. */
#define TIME_COLUMNS                                                                                         \
    {"time",           COLUMN_INTEGER, "ns",                                                                 \
     COLUMN_ROLE_TIME, "time",         .help = "by the node's clock, since 1970-01-01T00:00:00Z"},           \
    {                                                                                                        \
        "monotonic", COLUMN_INTEGER, "ns", COLUMN_ROLE_TIME, "time, monotonic",                              \
            .help = "the same by the node's monotonic clock"                                                 \
    }
static const struct column time_columns[WATCH_TIME_COLUMNS] = {
    TIME_COLUMNS,
    {"late", COLUMN_INTEGER, "ns", COLUMN_ROLE_NONE, "lateness", .help = "after the sample was due"},
    {"missed", COLUMN_INTEGER, "1", COLUMN_ROLE_NONE, "missed samples",
     .help = "that were due between this line and the one before: a gap"},
};
static const struct column event_columns[] = {
    TIME_COLUMNS,
    {"kind", COLUMN_STRING, "", COLUMN_ROLE_NONE, "kind",
     .help = "begin, gone, back, kernel-error, drift, drift-over"},
    {"text", COLUMN_STRING, "", COLUMN_ROLE_NONE, "text", .help = "what happened"},
};

struct column *watch_columns_new(size_t count) {
    struct column *columns = xcalloc(WATCH_TIME_COLUMNS + count, sizeof *columns);
    memcpy(columns, time_columns, sizeof time_columns);
    return columns;
}

void watch_columns_free(struct column *columns, size_t count) {
    for (size_t i = WATCH_TIME_COLUMNS; i < count; i++) {
        free((void *)columns[i].name);
        free((void *)columns[i].unit);
    }
    free(columns);
}

static bool has_columns(const struct watch_file *file, const struct column *columns, size_t count) {
    bool same = file->column_count == count;
    for (size_t i = 0; same && i < count; i++)
        same = strcmp(file->columns[i].name, columns[i].name) == 0 &&
               strcmp(file->columns[i].unit, columns[i].unit) == 0;
    return same;
}

/* ---- Files -----------------------------------------------------------------------------------------------
 */

void watch_file_free(struct watch_file *file) {
    while (file) {
        struct watch_file *next = file->next;
        watch_columns_free(file->columns, file->column_count);
        free(file->name);
        text_clear(&file->pending);
        free(file);
        file = next;
    }
}

void watch_probe_clear(struct watch_probe *probe) {
    watch_file_free(probe->files);
    history_clear(&probe->history);
    free(probe->values);
    free(probe->pus);
    *probe = (struct watch_probe){0};
}

/* Makes nodes/NODE/probes/BASE.csv with its header; NULL and FAILURE if the folder cannot be made. COLUMNS
 * are not adopted. */
static struct watch_file *new_watch_file(struct watch_node *node, const char *base,
                                         const struct column *columns, size_t count,
                                         struct failure *failure) {
    struct node_set *set = node->watch->set;
    cleanup_free char *home = archive_node_folder(node->node->name, set->record->part);
    cleanup_free char *folder = xformat("%s/probes", home);
    if (record_make_folder(set->record, folder, failure) < 0)
        return NULL;
    struct watch_file *file = xcalloc(1, sizeof *file);
    file->name = xformat("%s/%s.csv", folder, base);
    text_init(&file->pending, PENDING_MAX);
    for (size_t i = 0; i < count; i++)
        csv_append_field(&file->pending, i == 0, columns[i].name, strlen(columns[i].name));
    text_append_character(&file->pending, '\n');
    node->described = false;
    return file;
}

/* Columns that were there before, such as PUs that a block brings back, continue in their file. */
int watch_open_probe(struct watch_node *node, enum probe_kind kind, struct column *columns, size_t count,
                     struct failure *failure) {
    struct watch_probe *probe = &node->probes[kind];
    size_t number = 1;
    struct watch_file *file = probe->files;
    for (; file && !has_columns(file, columns, count); file = file->next)
        number++;
    if (file) {
        watch_columns_free(columns, count);
        probe->file = file;
        return 0;
    }
    cleanup_free char *base =
        number == 1 ? xstrdup(probe_kind_names[kind]) : xformat("%s-%zu", probe_kind_names[kind], number);
    file = new_watch_file(node, base, columns, count, failure);
    if (!file) {
        watch_columns_free(columns, count);
        return failure->code;
    }
    file->columns = columns;
    file->column_count = count;
    file->next = probe->files;
    probe->files = probe->file = file;
    return 0;
}

void watch_append_event(struct watch_node *node, int64_t wall_ns, int64_t monotonic_ns, const char *kind,
                        const char *text) {
    struct failure failure;
    if (!node->events)
        node->events = new_watch_file(node, "events", event_columns,
                                      sizeof event_columns / sizeof *event_columns, &failure);
    if (!node->events)
        return;
    struct text *pending = &node->events->pending;
    csv_append_int64(pending, true, wall_ns);
    csv_append_int64(pending, false, monotonic_ns);
    csv_append_field(pending, false, kind, strlen(kind));
    csv_append_field(pending, false, text, strlen(text));
    text_append_character(pending, '\n');
}

/* Writes the pending bytes: durably with ALL; else only when they are many or old, and without the run's list
 * of files to sync, because a machine that measures itself should not sync them as often. */
static int write_file(struct node_set *set, struct watch_file *file, bool all, struct failure *failure) {
    struct text *pending = &file->pending;
    int64_t now = clock_monotonic_ns();
    if (pending->length == 0 || (!all && pending->length < WRITTEN_AT && file->written_ns &&
                                 now - file->written_ns < written_after_ns))
        return 0;
    file->written_ns = now;
    if (all) {
        int r = run_files_append(&set->record->files, file->name, pending->bytes, pending->length, failure);
        text_reset(pending);
        return r;
    }
    cleanup_free char *path = record_path(set->record, file->name);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    int r = descriptor < 0 ? -errno : file_write_all(descriptor, pending->bytes, pending->length);
    if (descriptor >= 0 && close(descriptor) < 0 && r == 0)
        r = -errno;
    set->record->files.bytes += pending->length;
    text_reset(pending);
    return r < 0 ? failure_set(failure, r, "cannot write '%s': %s", path, strerror(-r)) : 0;
}

int watch_write_files(struct watch *watch, bool all, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < watch->count; i++) {
        struct watch_node *node = &watch->nodes[i];
        for (size_t kind = 0; kind < PROBE_KINDS; kind++)
            for (struct watch_file *file = node->probes[kind].files; r == 0 && file; file = file->next)
                r = write_file(watch->set, file, all, failure);
        if (r == 0 && node->events)
            r = write_file(watch->set, node->events, all, failure);
    }
    return r;
}

/* ---- datapackage.json ------------------------------------------------------------------------------------
 */

int watch_describe_files(struct watch_node *node, struct failure *failure) {
    struct node_set *set = node->watch->set;
    size_t count = 0;
    if (node->described)
        return 0;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        for (const struct watch_file *file = node->probes[kind].files; file; file = file->next)
            count++;
    cleanup_free struct archive_table *tables = xcalloc(count + 1, sizeof *tables);
    count = 0;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        for (const struct watch_file *file = node->probes[kind].files; file; file = file->next)
            tables[count++] = (struct archive_table){.path = file_base_name(file->name),
                                                     .description = "samples of one probe of the agent",
                                                     .columns = file->columns,
                                                     .column_count = file->column_count};
    if (node->events)
        tables[count++] =
            (struct archive_table){.path = "events.csv",
                                   .description = "what the sampler noticed",
                                   .columns = event_columns,
                                   .column_count = sizeof event_columns / sizeof *event_columns};
    cleanup_free char *home = archive_node_folder(node->node->name, set->record->part);
    cleanup_free char *path = xformat("%s/%s/probes/" ARCHIVE_DATAPACKAGE, set->record->folder, home);
    cleanup_free char *title = xformat("probes-%s", node->node->name);
    int r = archive_write_datapackage(path, title, tables, count, failure);
    if (r < 0)
        failure->kind = FAILURE_SYSTEM; /* what a node says is not the user's input */
    node->described = true;
    return r;
}
