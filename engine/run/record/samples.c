#include "engine/run/record/samples.h"

#include "archive-format/datapackage.h"
#include "archive-format/layout.h"
#include "archive-format/writer.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TIME_COLUMNS = 4, /* time, monotonic, late, missed */
    TAIL_FIRST = 4 << 10,
    LINE_MAX_BYTES = 1 << 20,
    PROBES_MAX = 256, /* files of a node */
};

static void probe_clear(struct samples_probe *probe) {
    for (size_t i = 0; i < probe->count; i++)
        free(probe->names[i]), free(probe->units[i]);
    free(probe->names), free(probe->units), free(probe->values), free(probe->before);
    free(probe->head), free(probe->file);
    *probe = (struct samples_probe){0};
}

void samples_clear(struct samples *samples) {
    for (size_t i = 0; i < samples->count; i++)
        probe_clear(&samples->probes[i]);
    free(samples->probes);
    *samples = (struct samples){0};
}

/* The bytes from FROM to END, the caller's and ended by NUL; NULL: they cannot be read. */
static char *read_range(int file, uint64_t from, uint64_t end) {
    size_t length = (size_t)(end - from);
    cleanup_free char *bytes = xcalloc(1, length + 1);
    return pread(file, bytes, length, (off_t)from) == (ssize_t)length ? take_pointer(bytes) : NULL;
}

/* The first line with its newline, the caller's; NULL: there is none yet. */
static char *read_head(int file, uint64_t size) {
    cleanup_free char *bytes = read_range(file, 0, size < LINE_MAX_BYTES ? size : LINE_MAX_BYTES);
    const char *end = bytes ? strchr(bytes, '\n') : NULL;
    return end ? xstrndup(bytes, (size_t)(end - bytes) + 1) : NULL;
}

/* The last whole line between FROM, where a line begins, and SIZE, the caller's; *RET_END is where it ends.
 * NULL: there is none. */
static char *read_last_line(int file, uint64_t from, uint64_t size, uint64_t *ret_end) {
    for (uint64_t tail = TAIL_FIRST;; tail *= 2) {
        uint64_t begin = size - from > tail ? size - tail : from;
        cleanup_free char *bytes = read_range(file, begin, size);
        char *end = bytes ? memrchr(bytes, '\n', (size_t)(size - begin)) : NULL;
        char *before = end ? memrchr(bytes, '\n', (size_t)(end - bytes)) : NULL;
        if (end && (before || begin == from)) {
            const char *line = before ? before + 1 : bytes;
            *ret_end = begin + (uint64_t)(end - bytes) + 1;
            return xstrndup(line, (size_t)(end + 1 - line));
        }
        if (!bytes || begin == from || tail > LINE_MAX_BYTES)
            return NULL;
    }
}

/* Parses LINE and makes it the probe's last sample; the one before is kept as well. A malformed line is
 * ignored. */
static void set_sample(struct samples_probe *probe, const char *line) {
    cleanup_free char *table = xformat("%s%s", probe->head, line);
    struct csv_reader *csv = NULL;
    const struct csv_field *fields;
    if (csv_open_memory(probe->file, table, strlen(table), &csv, NULL) < 0)
        return;
    size_t columns = csv_column_count(csv);
    if (!probe->names && columns > TIME_COLUMNS) {
        probe->names = xcalloc(columns, sizeof *probe->names);
        probe->units = xcalloc(columns, sizeof *probe->units);
        probe->values = xcalloc(columns, sizeof *probe->values);
        probe->before = xcalloc(columns, sizeof *probe->before);
        for (; probe->count < columns - TIME_COLUMNS; probe->count++)
            probe->names[probe->count] = xstrdup(csv_column_name(csv, probe->count + TIME_COLUMNS));
    }
    if (probe->names && csv_next(csv, &fields, NULL) > 0) {
        double *before = probe->before;
        probe->before = probe->values;
        probe->before_ns = probe->time_ns;
        probe->values = before;
        (void)number_parse_int64(fields[0].bytes, fields[0].length, &probe->time_ns);
        for (size_t i = 0; i < probe->count; i++)
            if (csv_number(csv, i + TIME_COLUMNS, &probe->values[i], NULL) < 0)
                probe->values[i] = NAN;
    }
    csv_close(csv);
}

/* Reads the last whole line that was appended to the probe's file since the last call. A file that became
 * shorter is read again. */
static void read_probe(int folder, struct samples_probe *probe) {
    cleanup_close int file = openat(folder, probe->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode))
        return;
    uint64_t size = (uint64_t)status.st_size, end;
    if (!probe->head && (probe->head = read_head(file, size)))
        probe->bytes = strlen(probe->head);
    if (probe->head && size < probe->bytes) /* it was cut: what is left is read again */
        probe->bytes = strlen(probe->head);
    if (!probe->head || size <= probe->bytes)
        return;
    cleanup_free char *line = read_last_line(file, probe->bytes, size, &end);
    if (!line)
        return;
    probe->bytes = end;
    set_sample(probe, line);
}

static struct samples_probe *find_probe(struct samples *samples, const char *file) {
    for (size_t i = 0; i < samples->count; i++)
        if (strcmp(samples->probes[i].file, file) == 0)
            return &samples->probes[i];
    samples->probes = xrealloc(samples->probes, (samples->count + 1) * sizeof *samples->probes);
    struct samples_probe *probe = &samples->probes[samples->count++];
    *probe = (struct samples_probe){.file = xstrdup(file)};
    return probe;
}

/* Reads the columns' units from datapackage.json in the folder PATH, for probes that have none yet. */
static void find_units(struct samples *samples, const char *path) {
    cleanup(document_cleanup) struct document *package = NULL;
    cleanup_free char *file = xformat("%s/" ARCHIVE_DATAPACKAGE, path);
    for (size_t i = 0; i < samples->count; i++) {
        struct samples_probe *probe = &samples->probes[i];
        struct archive_columns columns = {0};
        if (probe->count == 0 || probe->has_units ||
            (!package && document_read_json(file, &package, NULL) < 0))
            continue;
        probe->has_units = archive_package_columns(package, probe->file, &columns, NULL) == 0;
        for (size_t c = 0; c < probe->count; c++) {
            const struct column *column = archive_columns_find(&columns, probe->names[c]);
            probe->units[c] = column ? xstrdup_or_null(column->unit) : NULL;
        }
        archive_columns_clear(&columns);
    }
}

/* Reads the last samples of NODE, on from the last call. Files of another part are read from their
 * beginnings. */
void samples_read(struct samples *samples, const char *folder, const char *node, unsigned part) {
    cleanup_free char *home = archive_node_folder(node, part);
    cleanup_free char *path = xformat("%s/%s/probes", folder, home);
    DIR *names = archive_name_problem(home) ? NULL : opendir(path);
    const struct dirent *name;
    if (samples->part != part)
        samples_clear(samples);
    samples->part = part;
    while (names && (name = readdir(names)))
        if (text_ends_in(name->d_name, ".csv") && strcmp(name->d_name, "events.csv") != 0 &&
            samples->count < PROBES_MAX)
            read_probe(dirfd(names), find_probe(samples, name->d_name));
    find_units(samples, path);
    if (names)
        closedir(names);
}
