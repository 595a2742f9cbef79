/* Whole archives: verified member by member, and written out below a folder. */
#include "archive-format/name.h"
#include "archive-format/reader-private.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BUFFER_SIZE = 128 << 10 };

/* ---- Verifying */

/* Inflates ENTRY to its end, with all checks; into FILE, unless that is negative. */
static int read_entry(struct archive_reader *archive, const struct zip_entry *entry, char *buffer, int file,
                      struct failure *failure) {
    cleanup(archive_member_cleanup) struct archive_member *member = archive_entry_stream(archive, entry);
    int64_t got;
    while ((got = archive_member_read(member, buffer, BUFFER_SIZE)) > 0) {
        int written = file < 0 ? 0 : file_write_all(file, buffer, (size_t)got);
        if (written < 0)
            return failure_set(failure, written, "cannot write '%s': %s", entry->name, strerror(-written));
    }
    return archive_member_status(member, failure);
}

int archive_verify(struct archive_reader *archive, struct failure *failure) {
    if (archive->is_folder)
        return failure_input(failure, archive->path, 0, 0,
                             "this is the folder of a run, which has no hashes before it is sealed; expected "
                             "its archive");
    cleanup_free char *buffer = xmalloc(BUFFER_SIZE);
    int r = 0;
    for (size_t i = 0; r == 0 && i < archive->member_count; i++)
        r = read_entry(archive, &archive->zip.entries[archive->members[i]], buffer, -1, failure);
    return r;
}

/* ---- Extracting */

struct extraction {
    struct archive_reader *archive;
    const char *folder; /* for messages */
    int root;
    const char *const *names;
    size_t name_count;
    char *buffer;
    struct failure *failure;
};

static int fail_at(const struct extraction *extraction, const char *what, const char *name) {
    int code = -errno;
    return failure_set(extraction->failure, code, "cannot %s '%s/%s': %s", what, extraction->folder, name,
                       strerror(-code));
}

/* Opens the folder that NAME is in, below the root, making what is missing; RET_LAST is the last part of
 * NAME. Each step is relative to the one before and follows no link, so nothing can turn up elsewhere. */
static int open_parent(const struct extraction *extraction, const char *name, int *ret,
                       const char **ret_last) {
    cleanup_close int folder = fcntl(extraction->root, F_DUPFD_CLOEXEC, 3);
    if (folder < 0)
        return fail_at(extraction, "open", name);
    const char *part = name, *slash;
    while ((slash = strchr(part, '/'))) {
        char step[ARCHIVE_NAME_MAX + 1];
        memcpy(step, part, (size_t)(slash - part));
        step[slash - part] = '\0';
        if (mkdirat(folder, step, 0777) < 0 && errno != EEXIST)
            return fail_at(extraction, "make the folder of", name);
        int next = openat(folder, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return fail_at(extraction, "open the folder of", name);
        close(folder);
        folder = next;
        part = slash + 1;
    }
    *ret = take_descriptor(folder);
    *ret_last = part;
    return 0;
}

static int write_file(const struct extraction *extraction, const struct zip_entry *entry, int folder,
                      const char *last) {
    cleanup_close int file = openat(folder, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0)
        return fail_at(extraction, "create", entry->name);
    int r = read_entry(extraction->archive, entry, extraction->buffer, file, extraction->failure);
    if (r < 0)
        return r;
    return close(take_descriptor(file)) < 0 ? fail_at(extraction, "write", entry->name) : 0;
}

/* Whether ENTRY is NAME or is below the folder NAME, which may end in a slash. */
static bool is_below(const struct zip_entry *entry, const char *name) {
    size_t length = strlen(name);
    bool slash = length > 0 && name[length - 1] == '/';
    length -= slash;
    if (strncmp(entry->name, name, length) != 0)
        return false;
    return entry->name[length] == '/' || (entry->name[length] == '\0' && (entry->folder || !slash));
}

static bool is_wanted(const struct extraction *extraction, const struct zip_entry *entry) {
    for (size_t i = 0; i < extraction->name_count; i++)
        if (is_below(entry, extraction->names[i]))
            return true;
    return extraction->name_count == 0;
}

static int check_wanted(const struct extraction *extraction) {
    const struct zip_directory *zip = &extraction->archive->zip;
    for (size_t i = 0; i < extraction->name_count; i++) {
        bool found = false;
        for (size_t k = 0; k < zip->count && !found; k++)
            found = is_below(&zip->entries[k], extraction->names[i]);
        if (!found)
            return failure_input(extraction->failure, extraction->archive->path, 0, 0,
                                 "there is no member or folder '%s'; 'assay archive list' shows them",
                                 extraction->names[i]);
    }
    return 0;
}

/* Room is asked for before anything is written: better a clear refusal now than a full disk later. */
static int check_room(const struct extraction *extraction) {
    struct statvfs room;
    uint64_t needed = 0;
    for (size_t i = 0; i < extraction->archive->zip.count; i++)
        if (is_wanted(extraction, &extraction->archive->zip.entries[i]))
            needed += extraction->archive->zip.entries[i].size;
    if (fstatvfs(extraction->root, &room) < 0 || room.f_blocks == 0)
        return 0; /* unknown: writing will show */
    uint64_t free_bytes = (uint64_t)room.f_bavail * room.f_frsize;
    if (needed > free_bytes)
        return failure_set(extraction->failure, -ENOSPC,
                           "'%s' needs %" PRIu64 " bytes, but its file system has %" PRIu64 " free",
                           extraction->folder, needed, free_bytes);
    return 0;
}

static int write_members(const struct extraction *extraction) {
    for (size_t i = 0; i < extraction->archive->zip.count; i++) {
        const struct zip_entry *entry = &extraction->archive->zip.entries[i];
        cleanup_close int folder = -1;
        const char *last = NULL;
        if (!is_wanted(extraction, entry))
            continue;
        int r = open_parent(extraction, entry->name, &folder, &last);
        if (r == 0 && !entry->folder)
            r = write_file(extraction, entry, folder, last);
        else if (r == 0 && mkdirat(folder, last, 0777) < 0 && errno != EEXIST)
            r = fail_at(extraction, "make folder", entry->name);
        if (r < 0)
            return r;
    }
    return 0;
}

/* 0: FOLDER is there, and empty; -ENOTEMPTY, or another negative errno. */
static int check_empty(const char *folder) {
    DIR *names = opendir(folder);
    if (!names)
        return -errno;
    size_t count = 0;
    while (count <= 2 && readdir(names)) /* "." and ".." */
        count++;
    closedir(names);
    return count > 2 ? -ENOTEMPTY : 0;
}

static int extract_into(struct extraction *extraction) {
    cleanup_close int root = open(extraction->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return failure_set(extraction->failure, -errno, "cannot open '%s': %s", extraction->folder,
                           strerror(errno));
    extraction->root = root;
    int r = check_room(extraction);
    r = r < 0 ? r : write_members(extraction);
    if (r < 0)
        file_empty_folder(root);
    return r;
}

int archive_extract(struct archive_reader *archive, const char *folder, const char *const *names,
                    size_t count, struct failure *failure) {
    cleanup_free char *buffer = xmalloc(BUFFER_SIZE);
    struct extraction extraction = {.archive = archive,
                                    .folder = folder,
                                    .names = names,
                                    .name_count = count,
                                    .buffer = buffer,
                                    .failure = failure};
    bool was_there = true;
    if (archive->is_folder)
        return failure_input(failure, archive->path, 0, 0,
                             "this is the folder of a run, whose files lie there; expected its archive");
    int r = check_empty(folder);
    if (r == -ENOENT)
        was_there = false;
    else if (r == -ENOTEMPTY)
        return failure_set_kind(failure, FAILURE_INPUT, r,
                                "the folder '%s' is not empty; expected a new or empty one", folder);
    else if (r < 0)
        return failure_set_kind(failure, FAILURE_INPUT, r, "cannot use '%s' as a folder: %s", folder,
                                strerror(-r));
    r = check_wanted(&extraction);
    if (r == 0)
        r = archive_check(archive, failure);
    if (r == 0 && !was_there)
        r = file_make_folders(folder, failure);
    if (r < 0)
        return r;
    r = extract_into(&extraction);
    if (r < 0 && !was_there)
        rmdir(folder);
    return r;
}
