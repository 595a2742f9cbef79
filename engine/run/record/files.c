#include "engine/run/record/files.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FLAGS: O_TRUNC or O_APPEND. */
static int put_bytes(struct run_files *files, const char *name, int flags, const void *bytes, size_t length,
                     struct failure *failure) {
    cleanup_free char *path = xformat("%s/%s", files->folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
    int r = file < 0 ? -errno : file_write_all(file, bytes, length);
    if (file >= 0 && close(file) < 0 && r == 0)
        r = -errno;
    if (r < 0)
        return failure_set(failure, r, "cannot write '%s': %s", path, strerror(-r));
    files->bytes += length;
    files->count += flags == O_TRUNC;
    if (files->unsynced < RUN_FILES_NAMES)
        files->names[files->unsynced] = take_pointer(path);
    files->unsynced++;
    return 0;
}

int run_files_write(struct run_files *files, const char *name, const void *bytes, size_t length,
                    struct failure *failure) {
    return put_bytes(files, name, O_TRUNC, bytes, length, failure);
}

int run_files_append(struct run_files *files, const char *name, const void *bytes, size_t length,
                     struct failure *failure) {
    return put_bytes(files, name, O_APPEND, bytes, length, failure);
}

static int sync_path(const char *path, struct failure *failure) {
    cleanup_close int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || fsync(file) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    return file_sync_folder_of(path, failure);
}

/* The whole file system: one call for however many files. */
static int sync_all(const struct run_files *files, struct failure *failure) {
    cleanup_close int folder = open(files->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || syncfs(folder) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", files->folder, strerror(errno));
    return 0;
}

int run_files_sync(struct run_files *files, struct failure *failure) {
    int r = 0;
    /* A few are synced by name: a machine that measures itself may have much else to write. */
    if (files->unsynced > RUN_FILES_NAMES)
        r = sync_all(files, failure);
    else
        for (size_t i = 0; r == 0 && i < files->unsynced; i++)
            r = sync_path(files->names[i], failure);
    if (r == 0)
        run_files_clear(files);
    return r;
}

void run_files_clear(struct run_files *files) {
    for (size_t i = 0; i < RUN_FILES_NAMES; i++)
        free(take_pointer(files->names[i]));
    files->unsynced = 0;
}
