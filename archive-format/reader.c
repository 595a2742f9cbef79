#include "archive-format/reader.h"

#include "archive-format/name.h"
#include "archive-format/reader-private.h"
#include "archive-format/writer.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MANIFEST_LINE_MAX = HASH_HEX_SIZE - 1 + 2 + ARCHIVE_NAME_MAX + 1,
};

enum origin { OURS, OF_ANOTHER_PROGRAM };

#define refuse(archive, failure, ...) failure_verification((failure), (archive)->path, __VA_ARGS__)

/* ---- Names */

static int refuse_name(const struct archive_reader *archive, const char *name, const char *what,
                       struct failure *failure) {
    char shown[ARCHIVE_NAME_SHOWN_SIZE];
    return refuse(archive, failure, "the name '%s' %s", archive_name_show(name, shown), what);
}

static int compare_indices(const void *a, const void *b, void *context) {
    const struct zip_entry *entries = context;
    return archive_name_compare(entries[*(const uint32_t *)a].name, entries[*(const uint32_t *)b].name);
}

static int check_names(struct archive_reader *archive, struct failure *failure) {
    const struct zip_directory *zip = &archive->zip;
    for (size_t i = 0; i < zip->count; i++) {
        const char *problem = archive_name_problem(zip->entries[i].name);
        if (problem)
            return refuse_name(archive, zip->entries[i].name, problem, failure);
    }
    for (size_t i = 1; i < zip->count; i++) {
        const struct zip_entry *a = &zip->entries[archive->by_name[i - 1]],
                               *b = &zip->entries[archive->by_name[i]];
        const char *conflict = archive_name_conflict(a->name, a->folder, b->name);
        if (conflict)
            return refuse_name(archive, conflict[0] == 'i' ? a->name : b->name, conflict, failure);
    }
    return 0;
}

/* Dangerous names are named first, whatever the file is; then whether it is ours at all; then the finer
 * rules, for which a stranger's zip should not be blamed. */
static int check_content(struct archive_reader *archive, enum origin origin, struct failure *failure) {
    const struct zip_directory *zip = &archive->zip;
    for (size_t i = 0; i < zip->count; i++) {
        const char *danger = archive_name_danger(zip->entries[i].name);
        if (danger)
            return refuse_name(archive, zip->entries[i].name, danger, failure);
    }
    const char *needed[] = {ARCHIVE_RUN, ARCHIVE_MANIFEST, ARCHIVE_CRATE};
    for (size_t i = 0; origin == OURS && i < sizeof needed / sizeof *needed; i++) {
        const struct zip_entry *entry = archive_entry_called(archive, needed[i]);
        if (!entry || entry->folder)
            return refuse(archive, failure, "not an assay archive: no %s in it", needed[i]);
    }
    return check_names(archive, failure);
}

static void index_entries(struct archive_reader *archive) {
    const struct zip_directory *zip = &archive->zip;
    archive->by_name = xcalloc(zip->count + 1, sizeof *archive->by_name);
    archive->members = xcalloc(zip->count + 1, sizeof *archive->members);
    archive->sha256 = xcalloc(zip->count + 1, sizeof *archive->sha256);
    for (size_t i = 0; i < zip->count; i++) {
        archive->by_name[i] = (uint32_t)i;
        if (!zip->entries[i].folder)
            archive->members[archive->member_count++] = (uint32_t)i;
    }
    qsort_r(archive->by_name, zip->count, sizeof *archive->by_name, compare_indices, zip->entries);
}

const struct zip_entry *archive_entry_called(const struct archive_reader *archive, const char *name) {
    size_t low = 0, high = archive->zip.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct zip_entry *entry = &archive->zip.entries[archive->by_name[middle]];
        int order = archive_name_compare(name, entry->name);
        if (order == 0)
            return strcmp(name, entry->name) == 0 ? entry : NULL;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- Manifest */

static bool in_manifest(const struct zip_entry *entry) {
    return !entry->folder && strcmp(entry->name, ARCHIVE_MANIFEST) != 0 &&
           strcmp(entry->name, ARCHIVE_SIGNATURE) != 0;
}

/* One LINE, NUL-ended, without its newline: "<64 hexadecimal digits>  <name>". */
static int take_line(struct archive_reader *archive, const char *line, size_t length, size_t number,
                     struct failure *failure) {
    const size_t digits = HASH_HEX_SIZE - 1;
    if (strlen(line) != length || length < digits + 3 || strspn(line, "0123456789abcdef") != digits ||
        memcmp(line + digits, "  ", 2) != 0)
        return refuse(archive, failure, "line %zu of the manifest is not a sha256, two blanks and a name",
                      number);
    const char *name = line + digits + 2;
    char shown[ARCHIVE_NAME_SHOWN_SIZE];
    archive_name_show(name, shown);
    const struct zip_entry *entry = archive_entry_called(archive, name);
    if (entry && !entry->folder && !in_manifest(entry))
        return refuse(archive, failure,
                      "the manifest names '%s', but neither it nor its signature can be in it", shown);
    if (!entry || entry->folder)
        return refuse(archive, failure, "the manifest names '%s', but there is no such member", shown);
    char *sha256 = archive->sha256[entry - archive->zip.entries];
    if (sha256[0] != '\0')
        return refuse(archive, failure, "the manifest names '%s' twice", shown);
    memcpy(sha256, line, digits);
    return 0;
}

static int read_manifest(struct archive_reader *archive, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, (archive->zip.count + 1) * MANIFEST_LINE_MAX);
    int r = archive_read_member(archive, ARCHIVE_MANIFEST, &text, failure);
    if (r == -EFBIG)
        return refuse(archive, failure, "the manifest is longer than one of %zu members can be",
                      archive->member_count);
    size_t number = 1, at = 0;
    for (char *newline; r == 0 && at < text.length; at = (size_t)(newline - text.bytes) + 1, number++) {
        char *line = text.bytes + at;
        newline = memchr(line, '\n', text.length - at);
        if (!newline)
            return refuse(archive, failure, "line %zu of the manifest has no end", number);
        *newline = '\0';
        r = take_line(archive, line, (size_t)(newline - line), number, failure);
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < archive->zip.count; i++)
        if (in_manifest(&archive->zip.entries[i]) && archive->sha256[i][0] == '\0') {
            char shown[ARCHIVE_NAME_SHOWN_SIZE];
            archive_name_show(archive->zip.entries[i].name, shown);
            return refuse(archive, failure, "member '%s' is not in the manifest", shown);
        }
    return 0;
}

/* ---- run.json */

static int read_run(struct archive_reader *archive, struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    int r = archive_read_document(archive, ARCHIVE_RUN, &document, failure);
    return r < 0 ? r : archive_run_read(document, &archive->run, failure);
}

const struct archive_run *archive_run(const struct archive_reader *archive) {
    return &archive->run;
}

int archive_check_measured(const struct archive_reader *archive, struct failure *failure) {
    if (archive->run.kind != ARCHIVE_OF_PREDICTION)
        return 0;
    return failure_input(failure, archive->path, 0, 0,
                         "this is the archive of a prediction, nothing in it was measured; 'assay report' "
                         "prints it, and 'assay archive cat ARCHIVE " ARCHIVE_RESULTS "' gives its table");
}

/* ---- Opening */

void archive_close(struct archive_reader *archive) {
    if (!archive)
        return;
    zip_directory_clear(&archive->zip);
    staging_clear(&archive->staging);
    archive_run_clear(&archive->run);
    free(archive->by_name);
    free(archive->members);
    free(archive->sha256);
    free(archive->path);
    cleanup_close_descriptor(&archive->descriptor);
    free(archive);
}

void archive_cleanup(struct archive_reader **archive) {
    archive_close(*archive);
}

static int open_zip(int given, const char *name, enum origin origin, struct archive_reader **ret,
                    struct failure *failure) {
    cleanup_close int descriptor = given;
    cleanup(archive_cleanup) struct archive_reader *archive = xcalloc(1, sizeof *archive);
    archive->descriptor = take_descriptor(descriptor);
    archive->path = xstrdup(name);
    archive->is_foreign = origin == OF_ANOTHER_PROGRAM;
    int r = zip_directory_read(archive->descriptor, name, &archive->zip, failure);
    if (r < 0)
        return r;
    index_entries(archive);
    r = check_content(archive, origin, failure);
    if (r == 0 && origin == OURS)
        r = read_manifest(archive, failure);
    if (r == 0 && origin == OURS)
        r = read_run(archive, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(archive);
    return 0;
}

int archive_open_descriptor(int descriptor, const char *name, struct archive_reader **ret,
                            struct failure *failure) {
    return open_zip(descriptor, name, OURS, ret, failure);
}

int archive_open_foreign(const char *path, struct archive_reader **ret, struct failure *failure) {
    int descriptor = file_open(path, FILE_REGULAR, failure);
    return descriptor < 0 ? descriptor : open_zip(descriptor, path, OF_ANOTHER_PROGRAM, ret, failure);
}

static int open_folder(int descriptor, const char *path, struct archive_reader **ret,
                       struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = xcalloc(1, sizeof *archive);
    archive->descriptor = descriptor;
    archive->is_folder = true;
    archive->path = xstrdup(path);
    int r = read_run(archive, failure);
    if (r < 0)
        return failure_prefix(failure, "'%s' is a folder, but not that of a run", path);
    *ret = take_pointer(archive);
    return 0;
}

int archive_open(const char *path, struct archive_reader **ret, struct failure *failure) {
    /* Not blocking: a FIFO of that name would hold us until somebody writes to it. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (descriptor < 0) {
        enum failure_kind kind = errno == ENOENT || errno == ENOTDIR ? FAILURE_INPUT : FAILURE_SYSTEM;
        return failure_set_kind(failure, kind, -errno, "cannot open '%s': %s", path, strerror(errno));
    }
    if (fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode))
        return open_folder(descriptor, path, ret, failure);
    return archive_open_descriptor(descriptor, path, ret, failure);
}

int archive_list(struct archive_reader *archive, struct failure *failure) {
    if (!archive->is_folder || archive->members)
        return 0;
    struct staging *staging = &archive->staging;
    int r = staging_scan(archive->path, staging, failure);
    if (r < 0)
        return r;
    archive->zip.entries = xcalloc(staging->count + 1, sizeof *archive->zip.entries);
    for (size_t i = 0; i < staging->count; i++) {
        const struct staged_file *file = &staging->files[i];
        archive->zip.entries[archive->zip.count++] = (struct zip_entry){
            .name = file->name, .folder = file->folder, .size = file->size, .stored_size = file->size};
        archive->zip.bytes += file->size;
    }
    index_entries(archive);
    return 0;
}

/* ---- Members */

static const struct zip_entry *member_at(const struct archive_reader *archive, size_t index) {
    return &archive->zip.entries[archive->members[index]];
}

const char *archive_path(const struct archive_reader *archive) {
    return archive->path;
}

bool archive_is_folder(const struct archive_reader *archive) {
    return archive->is_folder;
}

uint64_t archive_bytes(const struct archive_reader *archive) {
    return archive->zip.bytes;
}

size_t archive_member_count(const struct archive_reader *archive) {
    return archive->member_count;
}

const char *archive_member_name(const struct archive_reader *archive, size_t index) {
    return member_at(archive, index)->name;
}

uint64_t archive_member_size(const struct archive_reader *archive, size_t index) {
    return member_at(archive, index)->size;
}

uint64_t archive_member_stored_size(const struct archive_reader *archive, size_t index) {
    return member_at(archive, index)->stored_size;
}

const char *archive_member_sha256(const struct archive_reader *archive, size_t index) {
    return archive->sha256[archive->members[index]];
}

bool archive_find(const struct archive_reader *archive, const char *name, uint64_t *ret_bytes) {
    struct stat status;
    const struct zip_entry *entry = archive->is_folder ? NULL : archive_entry_called(archive, name);
    if (archive->is_folder
            ? fstatat(archive->descriptor, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode)
            : !entry || entry->folder)
        return false;
    if (ret_bytes)
        *ret_bytes = entry ? entry->size : (uint64_t)status.st_size;
    return true;
}
