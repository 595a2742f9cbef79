#include "engine/foundation/append-file.h"

#include "engine/foundation/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int append_file_create(const char *path, struct append_file **ret, struct failure *failure) {
    struct append_file *file = calloc(1, sizeof *file);
    if (!file)
        return failure_memory(failure);
    text_init(&file->pending, APPEND_FILE_PENDING_MOST);
    file->path = strdup(path);
    file->descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (!file->path || file->descriptor < 0) {
        int code = file->path ? -errno : -ENOMEM;
        append_file_close(file);
        return failure_set(failure, code, "cannot create '%s': %s", path, strerror(-code));
    }
    int r = file_sync_folder_of(path, failure);
    if (r < 0) {
        append_file_close(file);
        return r;
    }
    *ret = file;
    return 0;
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

int append_file_commit(struct append_file *file, struct failure *failure) {
    if (file->pending.length == 0)
        return 0;
    if (file->broken)
        return failure_set(failure, -EIO, "cannot write '%s': it ends in a line that could not be taken back",
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
