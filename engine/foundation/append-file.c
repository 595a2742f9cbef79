#include "engine/foundation/append-file.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void close_file(struct append_file **file) {
    append_file_close(*file);
}

/* Opens PATH for appending, with nothing pending, into *RET, which the caller closes. VERB is for the
 * message. */
static int open_file(const char *path, int flags, const char *verb, struct append_file **ret,
                     struct failure *failure) {
    cleanup(close_file) struct append_file *file = xcalloc(1, sizeof *file);
    text_init(&file->pending, APPEND_FILE_PENDING_MAX);
    file->descriptor = -1;
    file->path = xstrdup(path);
    file->descriptor = open(path, O_WRONLY | O_CLOEXEC | flags, 0666);
    if (file->descriptor < 0)
        return failure_set(failure, -errno, "cannot %s '%s': %s", verb, path, strerror(errno));
    *ret = take_pointer(file);
    return 0;
}

int append_file_create(const char *path, struct append_file **ret, struct failure *failure) {
    cleanup(close_file) struct append_file *file = NULL;
    int r = open_file(path, O_CREAT | O_EXCL, "create", &file, failure);
    r = r < 0 ? r : file_sync_folder_of(path, failure);
    if (r == 0)
        *ret = take_pointer(file);
    return r;
}

/* Cuts the open file to KEEP bytes and appends from there on. -ESPIPE: it is shorter, so that committed bytes
 * are lost. */
static int truncate_to(struct append_file *file, uint64_t keep, struct failure *failure) {
    struct stat status;
    if (fstat(file->descriptor, &status) < 0)
        return failure_set(failure, -errno, "cannot read '%s': %s", file->path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return failure_set(failure, -EINVAL, "'%s' is not a file", file->path);
    if (keep > (uint64_t)status.st_size)
        return failure_set(failure, -ESPIPE, "'%s' has %jd bytes, but %" PRIu64 " bytes were written",
                           file->path, (intmax_t)status.st_size, keep);
    bool longer = (uint64_t)status.st_size > keep;
    /* Synced even if nothing is cut: a writer that was killed may not have synced what it had
     * written. */
    if ((longer && ftruncate(file->descriptor, (off_t)keep) < 0) || fsync(file->descriptor) < 0 ||
        lseek(file->descriptor, (off_t)keep, SEEK_SET) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", file->path, strerror(errno));
    file->committed = keep;
    return 0;
}

int append_file_open(const char *path, uint64_t keep_bytes, struct append_file **ret,
                     struct failure *failure) {
    cleanup(close_file) struct append_file *file = NULL;
    /* O_NONBLOCK: a FIFO in its place is refused and not waited for; it means nothing for a file. */
    int r = open_file(path, O_NOFOLLOW | O_NONBLOCK, "open", &file, failure);
    r = r < 0 ? r : truncate_to(file, keep_bytes, failure);
    if (r == 0)
        *ret = take_pointer(file);
    return r;
}

void append_file_close(struct append_file *file) {
    if (!file)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    text_clear(&file->pending);
    free(file->path);
    free(file);
}

/* Writes what is pending and syncs it to the disk. On failure the file is cut back to what was committed
 * before; if that fails too, later commits fail. */
int append_file_commit(struct append_file *file, struct failure *failure) {
    if (file->pending.length == 0)
        return 0;
    if (file->broken)
        return failure_set(failure, -EIO,
                           "cannot write '%s': it ends in an incomplete line that could not be "
                           "removed; check the file system",
                           file->path);
    int r = file_write_all(file->descriptor, file->pending.bytes, file->pending.length);
    if (r == 0 && fdatasync(file->descriptor) < 0)
        r = -errno;
    if (r < 0) {
        file->broken = ftruncate(file->descriptor, (off_t)file->committed) < 0 ||
                       lseek(file->descriptor, (off_t)file->committed, SEEK_SET) < 0;
        return failure_set(failure, r, "cannot write '%s': %s", file->path, strerror(-r));
    }
    file->committed += file->pending.length;
    text_reset(&file->pending);
    return 0;
}
