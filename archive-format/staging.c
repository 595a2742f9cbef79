#include "archive-format/staging.h"

#include "archive-format/reader.h"
#include "archive-format/writer.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct staged_file *)a)->name, ((const struct staged_file *)b)->name);
}

static void close_folder(DIR **folder) {
    if (*folder)
        closedir(*folder);
}

static int add(struct staging *staging, const char *name, bool folder, uint64_t size,
               struct failure *failure) {
    int r = list_reserve(&staging->files, &staging->capacity, staging->count + 1, sizeof *staging->files,
                         ARCHIVE_ENTRIES_MAX);
    if (r == -EFBIG)
        return failure_set(failure, r, "'%s' has more than %d files and folders, more than an archive takes",
                           staging->folder, ARCHIVE_ENTRIES_MAX);
    if (r < 0)
        memory_exhausted();
    staging->files[staging->count++] =
        (struct staged_file){.name = xstrdup(name), .folder = folder, .size = size};
    return 0;
}

static int scan_folder(struct staging *staging, int parent, const char *name, const char *path,
                       struct failure *failure);

/* What is called LAST in the open folder PARENT, PATH below the staging folder. */
static int scan_name(struct staging *staging, int parent, const char *last, const char *path,
                     struct failure *failure) {
    struct stat status;
    const char *problem = archive_name_problem(path);
    if (problem)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s/%s' cannot be archived: its name %s",
                                staging->folder, path, problem);
    if (fstatat(parent, last, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return failure_set(failure, -errno, "cannot read '%s/%s': %s", staging->folder, path,
                           strerror(errno));
    if (S_ISDIR(status.st_mode))
        return scan_folder(staging, parent, last, path, failure);
    if (!S_ISREG(status.st_mode))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s/%s' cannot be archived: it is %s",
                                staging->folder, path,
                                S_ISLNK(status.st_mode) ? "a symbolic link" : "neither a file nor a folder");
    if ((uint64_t)status.st_size > ARCHIVE_MEMBER_BYTES_MAX)
        return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                                "'%s/%s' cannot be archived: it has %jd bytes, at most %" PRIu64 " are taken",
                                staging->folder, path, (intmax_t)status.st_size, ARCHIVE_MEMBER_BYTES_MAX);
    return add(staging, path, false, (uint64_t)status.st_size, failure);
}

/* ".run.json.123.part": what file_replace() of a process that was killed has left. */
static bool is_leftover(const char *name) {
    const char *end = name + strlen(name), *part = text_ends_in(name, ".part") ? end - strlen(".part") : name;
    const char *digits = part;
    while (digits > name && isdigit((unsigned char)digits[-1]))
        digits--;
    return name[0] == '.' && digits < part && digits > name + 1 && digits[-1] == '.';
}

static int scan_folder(struct staging *staging, int parent, const char *name, const char *path,
                       struct failure *failure) {
    cleanup_close int descriptor =
        openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (*path ? O_NOFOLLOW : 0));
    cleanup(close_folder) DIR *entries = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!entries)
        return failure_set_kind(failure, errno == ENOENT ? FAILURE_INPUT : FAILURE_SYSTEM, -errno,
                                "cannot open '%s%s%s': %s", staging->folder, *path ? "/" : "", path,
                                strerror(errno));
    int here = take_descriptor(descriptor); /* now the stream's */
    size_t before = staging->count;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(entries);
        if (!entry && errno != 0)
            return failure_set(failure, -errno, "cannot read '%s/%s': %s", staging->folder, path,
                               strerror(errno));
        if (!entry)
            break;
        if (is_leftover(entry->d_name))
            unlinkat(here, entry->d_name, 0);
        if (entry->d_name[0] == '.')
            continue;
        cleanup_free char *below = *path ? xformat("%s/%s", path, entry->d_name) : xstrdup(entry->d_name);
        int r = scan_name(staging, here, entry->d_name, below, failure);
        if (r < 0)
            return r;
    }
    return *path && staging->count > before ? add(staging, path, true, 0, failure) : 0;
}

int staging_scan(const char *folder, struct staging *ret, struct failure *failure) {
    cleanup(staging_clear) struct staging staging = {.folder = folder};
    int r = scan_folder(&staging, AT_FDCWD, folder, "", failure);
    if (r < 0)
        return r;
    if (staging.count > 0)
        qsort(staging.files, staging.count, sizeof *staging.files, compare_names);
    *ret = staging;
    staging = (struct staging){0};
    return 0;
}

void staging_clear(struct staging *staging) {
    for (size_t i = 0; i < staging->count; i++)
        free(staging->files[i].name);
    free(staging->files);
    *staging = (struct staging){0};
}

struct staged_file *staging_find(const struct staging *staging, const char *name) {
    struct staged_file wanted = {.name = (char *)name};
    return staging->count ? bsearch(&wanted, staging->files, staging->count, sizeof wanted, compare_names)
                          : NULL;
}

int staging_put(struct staging *staging, const char *name, const char *bytes, size_t length,
                struct failure *failure) {
    char sha256[HASH_HEX_SIZE];
    cleanup_free char *path = xformat("%s/%s", staging->folder, name);
    hash_bytes(bytes, length, sha256);
    int r = file_replace(path, bytes, length, 0644, failure);
    if (r < 0)
        return r;
    struct staged_file *file = staging_find(staging, name);
    if (!file) {
        r = add(staging, name, false, length, failure);
        if (r < 0)
            return r;
        qsort(staging->files, staging->count, sizeof *staging->files, compare_names);
        file = staging_find(staging, name);
    }
    file->size = length;
    memcpy(file->sha256, sha256, sizeof sha256);
    return 0;
}

int staging_hash(struct staging *staging, struct failure *failure) {
    for (size_t i = 0; i < staging->count; i++) {
        struct staged_file *file = &staging->files[i];
        uint64_t size;
        if (file->folder || file->sha256[0] != '\0')
            continue;
        cleanup_free char *path = xformat("%s/%s", staging->folder, file->name);
        if (!path)
            return failure_memory(failure);
        int r = hash_file(path, file->sha256, &size, failure);
        if (r < 0)
            return r;
        if (size != file->size)
            return failure_set(failure, -EBUSY, "'%s' changed while it was being sealed", path);
    }
    return 0;
}
