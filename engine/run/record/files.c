/* Files of a run that are many and small: what units wrote, what nodes are. Each would cost two synchronous
 * writes of its own; together, with the journal's next commit, they cost a few. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FLAGS: O_TRUNC or O_APPEND. */
static int put_bytes(struct run *run, const char *name, int flags, const void *bytes, size_t length,
                     struct failure *failure) {
    cleanup_free char *path = run_path(run, name);
    int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
    int r = file < 0 ? -errno : file_write_all(file, bytes, length);
    if (file >= 0 && close(file) < 0 && r == 0)
        r = -errno;
    if (r < 0)
        return failure_set(failure, r, "cannot write '%s': %s", path, strerror(-r));
    run->written.bytes += length;
    run->written.files += flags == O_TRUNC;
    if (run->unsynced < RUN_UNSYNCED_NAMES)
        run->unsynced_paths[run->unsynced] = take_pointer(path);
    run->unsynced++;
    return 0;
}

int run_write_file(struct run *run, const char *name, const void *bytes, size_t length,
                   struct failure *failure) {
    return put_bytes(run, name, O_TRUNC, bytes, length, failure);
}

int run_append_file(struct run *run, const char *name, const void *bytes, size_t length,
                    struct failure *failure) {
    return put_bytes(run, name, O_APPEND, bytes, length, failure);
}

char *run_node_folder_of(const struct run_node *node, unsigned part) {
    return part > 1 ? xformat("nodes/%s/part-%u", node->name, part) : xformat("nodes/%s", node->name);
}

char *run_node_folder(const struct run *run, const struct run_node *node) {
    return run_node_folder_of(node, run->part);
}

int run_write_node_json(struct run *run, const struct run_node *node, const char *file, const cJSON *value,
                        struct failure *failure) {
    cleanup_free char *folder = run_node_folder(run, node), *name = xformat("%s/%s", folder, file);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, 64 << 20);
    if (json_print(value, true, &bytes) < 0 || text_append_character(&bytes, '\n') < 0)
        return failure_memory(failure);
    int r = run_make_folder(run, folder, failure);
    return r < 0 ? r : run_write_file(run, name, bytes.bytes, bytes.length, failure);
}

static int sync_path(const char *path, struct failure *failure) {
    cleanup_close int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || fsync(file) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    return file_sync_folder_of(path, failure);
}

/* The whole file system: one call for however many files. */
static int sync_all(const struct run *run, struct failure *failure) {
    cleanup_close int folder = open(run->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || syncfs(folder) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", run->folder, strerror(errno));
    return 0;
}

int run_sync_files(struct run *run, struct failure *failure) {
    int r = 0;
    /* A few are synced by name: a machine that measures itself may have much else to write. */
    if (run->unsynced > RUN_UNSYNCED_NAMES)
        r = sync_all(run, failure);
    else
        for (size_t i = 0; r == 0 && i < run->unsynced; i++)
            r = sync_path(run->unsynced_paths[i], failure);
    if (r == 0)
        run_forget_files(run);
    return r;
}

void run_forget_files(struct run *run) {
    for (size_t i = 0; i < RUN_UNSYNCED_NAMES; i++)
        free(take_pointer(run->unsynced_paths[i]));
    run->unsynced = 0;
}
