/* The files of watching. */
#include "engine/run/state/watch-inside.h"

#include "archive-format/datapackage.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WRITTEN_AT = 16 << 10, /* bytes that wait for one file before they are written */
    PENDING_MOST = 4 << 20,
};

void watch_columns_clear(struct watch_columns *columns) {
    for (size_t i = 0; i < columns->count; i++) {
        free(columns->names[i]);
        free(columns->units[i]);
    }
    free(columns->names);
    free(columns->units);
    *columns = (struct watch_columns){0};
}

void watch_probe_clear(struct watch_probe *probe) {
    for (size_t i = 0; i < probe->past_count; i++) {
        free(probe->past[i].name);
        watch_columns_clear(&probe->past[i].columns);
    }
    free(probe->past);
    watch_columns_clear(&probe->columns);
    watch_file_clear(&probe->file);
    history_clear(&probe->history);
    free(probe->values);
    free(probe->pus);
    *probe = (struct watch_probe){0};
}

void watch_file_clear(struct watch_file *file) {
    free(file->name);
    text_clear(&file->pending);
    *file = (struct watch_file){0};
}

static int open_file(struct watch_node *node, struct watch_file *file, const char *base,
                     struct failure *failure) {
    struct run *run = node->watch->run;
    cleanup_free char *home = run_node_folder(run, &run->nodes[node->number]);
    cleanup_free char *folder = home ? file_join(home, "probes") : NULL;
    text_init(&file->pending, PENDING_MOST);
    file->name = folder ? text_format("%s/%s.csv", folder, base) : NULL;
    return file->name ? run_make_folder(run, folder, failure) : failure_memory(failure);
}

static int append_header(struct watch_probe *probe) {
    struct text *text = &probe->file.pending;
    int r = text_append_string(text, "time,monotonic,late,missed");
    for (size_t i = 0; r == 0 && i < probe->columns.count; i++)
        r = csv_append_field(text, false, probe->columns.names[i], strlen(probe->columns.names[i]));
    return r == 0 ? text_append_character(text, '\n') : r;
}

/* Not through the run's list of files to sync: these are written all the time, and a machine that measures
 * itself should not sync them as often. */
static int write_file(struct watch *watch, struct watch_file *file, bool all, struct failure *failure) {
    if (!file->name || file->pending.length == 0 || (!all && file->pending.length < WRITTEN_AT))
        return 0;
    if (all) {
        int r = run_append_file(watch->run, file->name, file->pending.bytes, file->pending.length, failure);
        text_reset(&file->pending);
        return r;
    }
    cleanup_free char *path = run_path(watch->run, file->name);
    if (!path)
        return failure_memory(failure);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    int r = descriptor < 0 ? -errno : file_write_all(descriptor, file->pending.bytes, file->pending.length);
    if (descriptor >= 0 && close(descriptor) < 0 && r == 0)
        r = -errno;
    watch->run->written.bytes += file->pending.length;
    text_reset(&file->pending);
    return r < 0 ? failure_set(failure, r, "cannot write '%s': %s", path, strerror(-r)) : 0;
}

static bool same_columns(const struct watch_columns *a, const struct watch_columns *b) {
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->names[i], b->names[i]) == 0 && strcmp(a->units[i], b->units[i]) == 0;
    return same;
}

/* What waits for the file that is left must be in it first. */
static int leave_file(struct watch_node *node, struct watch_probe *probe, struct failure *failure) {
    int r = write_file(node->watch, &probe->file, true, failure);
    struct watch_past *past = xrealloc(probe->past, (probe->past_count + 1) * sizeof *past);
    probe->past = past;
    past[probe->past_count++] =
        (struct watch_past){.name = take_pointer(probe->file.name), .columns = probe->columns};
    probe->columns = (struct watch_columns){0};
    watch_file_clear(&probe->file);
    return r;
}

/* Columns that were there before, such as those of PUs that come and go with the blocks of a design, go on in
 * their file. */
static bool find_file(struct watch_probe *probe, const struct watch_columns *columns) {
    for (size_t i = 0; i < probe->past_count; i++) {
        if (!same_columns(&probe->past[i].columns, columns))
            continue;
        probe->file.name = probe->past[i].name;
        probe->columns = probe->past[i].columns;
        probe->past[i] = probe->past[--probe->past_count];
        return true;
    }
    return false;
}

int watch_probe_open_file(struct watch_node *node, enum probe_kind kind, struct watch_columns *columns,
                          struct failure *failure) {
    struct watch_probe *probe = &node->probes[kind];
    if (probe->file.name && same_columns(&probe->columns, columns))
        return 0;
    int r = probe->file.name ? leave_file(node, probe, failure) : 0;
    watch_columns_clear(&probe->columns);
    text_init(&probe->file.pending, PENDING_MOST);
    if (r < 0 || find_file(probe, columns))
        return r;
    probe->columns = *columns;
    *columns = (struct watch_columns){0};
    probe->described = false;
    char base[64];
    if (probe->past_count == 0)
        snprintf(base, sizeof base, "%s", probe_kind_names[kind]);
    else
        snprintf(base, sizeof base, "%s-%zu", probe_kind_names[kind], probe->past_count + 1);
    r = open_file(node, &probe->file, base, failure);
    return r < 0 ? r : append_header(probe) < 0 ? failure_memory(failure) : 0;
}

int watch_probe_append(struct watch_probe *probe, const char *rest, size_t length) {
    int r = text_append(&probe->file.pending, rest, length);
    return r == 0 ? text_append_character(&probe->file.pending, '\n') : r;
}

int watch_event_append(struct watch_node *node, int64_t wall_ns, int64_t monotonic_ns, const char *kind,
                       const char *text) {
    struct text *pending = &node->events.pending;
    int r = 0;
    if (!node->events.name) {
        r = open_file(node, &node->events, "events", NULL);
        pending = &node->events.pending;
        if (r == 0)
            r = text_append_string(pending, "time,monotonic,kind,text\n");
    }
    if (r == 0)
        r = csv_append_int64(pending, true, wall_ns);
    if (r == 0)
        r = csv_append_int64(pending, false, monotonic_ns);
    if (r == 0)
        r = csv_append_field(pending, false, kind, strlen(kind));
    if (r == 0)
        r = csv_append_field(pending, false, text, strlen(text));
    return r == 0 ? text_append_character(pending, '\n') : r;
}

int watch_write_files(struct watch *watch, bool all, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < watch->count; i++) {
        struct watch_node *node = &watch->nodes[i];
        for (size_t kind = 0; r == 0 && kind < PROBE_KINDS; kind++)
            r = write_file(watch, &node->probes[kind].file, all, failure);
        if (r == 0)
            r = write_file(watch, &node->events, all, failure);
    }
    return r;
}

/* ---- datapackage.json */

/* When something was seen, which all tables begin with. */
#define TIME_COLUMNS                                                                                         \
    {"time", ARCHIVE_INTEGER,                                                                                \
     "ns",   ARCHIVE_ROLE_TIME,                                                                              \
     "time", "by the node's clock, since 1970-01-01T00:00:00Z"},                                             \
    {                                                                                                        \
        "monotonic", ARCHIVE_INTEGER, "ns", ARCHIVE_ROLE_TIME, "time, monotonic",                            \
            "the same by the node's monotonic clock"                                                         \
    }
static const struct archive_column first_columns[WATCH_FILE_HEADER_COLUMNS] = {
    TIME_COLUMNS,
    {"late", ARCHIVE_INTEGER, "ns", ARCHIVE_ROLE_NONE, "lateness", "after the sample was due"},
    {"missed", ARCHIVE_INTEGER, "1", ARCHIVE_ROLE_NONE, "missed samples",
     "that were due between this line and the one before: a gap"},
};
static const struct archive_column event_columns[] = {
    TIME_COLUMNS,
    {"kind", ARCHIVE_STRING, "", ARCHIVE_ROLE_NONE, "kind",
     "begin, gone, back, kernel-error, drift, drift-over"},
    {"text", ARCHIVE_STRING, "", ARCHIVE_ROLE_NONE, "text", "what happened"},
};

static struct archive_column *describe_columns(const struct watch_columns *columns) {
    struct archive_column *all = calloc(WATCH_FILE_HEADER_COLUMNS + columns->count, sizeof *all);
    if (!all)
        return NULL;
    memcpy(all, first_columns, sizeof first_columns);
    for (size_t i = 0; i < columns->count; i++)
        all[WATCH_FILE_HEADER_COLUMNS + i] = (struct archive_column){.name = columns->names[i],
                                                                     .type = ARCHIVE_NUMBER,
                                                                     .unit = columns->units[i],
                                                                     .role = ARCHIVE_ROLE_COVARIATE,
                                                                     .title = columns->names[i],
                                                                     .description = "empty: not known"};
    return all;
}

/* The tables of a datapackage.json being made. */
struct description {
    struct archive_table *items; /* owned; the columns of the samples too */
    size_t count, sampled;
};

static int add_table(struct description *tables, const char *base, const struct watch_columns *columns) {
    struct archive_column *described = describe_columns(columns);
    if (!described)
        return -ENOMEM;
    tables->items[tables->count++] =
        (struct archive_table){.path = base,
                               .description = "samples of one probe of the agent",
                               .columns = described,
                               .column_count = WATCH_FILE_HEADER_COLUMNS + columns->count};
    tables->sampled++;
    return 0;
}

static int add_tables(struct watch_node *node, struct description *tables) {
    size_t most = 1;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        most += 1 + node->probes[kind].past_count;
    tables->items = calloc(most, sizeof *tables->items);
    int r = tables->items ? 0 : -ENOMEM;
    for (size_t kind = 0; r == 0 && kind < PROBE_KINDS; kind++) {
        struct watch_probe *probe = &node->probes[kind];
        for (size_t i = 0; r == 0 && i < probe->past_count; i++)
            r = add_table(tables, file_base_name(probe->past[i].name), &probe->past[i].columns);
        if (r == 0 && probe->file.name)
            r = add_table(tables, file_base_name(probe->file.name), &probe->columns);
        probe->described = true;
    }
    if (r == 0 && node->events.name)
        tables->items[tables->count++] =
            (struct archive_table){.path = "events.csv",
                                   .description = "what the sampler noticed",
                                   .columns = event_columns,
                                   .column_count = sizeof event_columns / sizeof *event_columns};
    return r;
}

int watch_describe_files(struct watch_node *node, struct failure *failure) {
    struct run *run = node->watch->run;
    bool changed = node->events.name && !node->events_described;
    for (size_t kind = 0; kind < PROBE_KINDS; kind++)
        changed |= node->probes[kind].file.name && !node->probes[kind].described;
    if (!changed)
        return 0;
    node->events_described = node->events.name;
    struct description tables = {0};
    cleanup_free char *home = run_node_folder(run, &run->nodes[node->number]);
    cleanup_free char *name = home ? file_join(home, "probes/datapackage.json") : NULL;
    cleanup_free char *path = name ? run_path(run, name) : NULL;
    cleanup_free char *title = text_format("probes-%s", run->nodes[node->number].name);
    int r = path && title ? add_tables(node, &tables) : -ENOMEM;
    r = r < 0 ? failure_memory(failure)
              : archive_write_datapackage(path, title, tables.items, tables.count, failure);
    if (r < 0 && failure)
        failure->kind = FAILURE_SYSTEM; /* what a node says is not the user's input */
    for (size_t i = 0; i < tables.sampled; i++)
        free((void *)tables.items[i].columns);
    free(tables.items);
    return r;
}
