#include "engine/remote/landing.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_BYTES_MOST = 4095,
    STAGED_TRIES = 1000,
    WRITE_BACK = 8 << 20, /* bytes after which the kernel is asked to begin writing */
};

struct landing {
    char *shown; /* "FOLDER/NAME", for messages */
    int folder;
    int unsynced; /* the folder that was last changed and not synced yet; -1: none */
    dev_t unsynced_device;
    ino_t unsynced_inode;
    unsigned long made; /* staged files so far */
};

static int complain(const struct landing *landing, const char *path, int code, struct failure *failure) {
    return failure_set(failure, code, "cannot write '%s/%s': %s", landing->shown, path, strerror(-code));
}

/* ---- paths */

const char *landing_problem(const char *path) {
    size_t depth = 0;
    if (!*path)
        return "it is empty";
    if (*path == '/')
        return "it is absolute";
    if (strlen(path) > PATH_BYTES_MOST)
        return "it is too long";
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0)
            return "it has an empty part";
        if ((length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return "it has a part '.' or '..'";
        if (length > NAME_MAX)
            return "a part of it is too long";
        if (++depth > LANDING_DEPTH_MOST)
            return "it is too deep";
        part += length;
        if (!*part)
            return NULL;
    }
}

/* The folder NAME of PARENT, made if it is not there; not through a link. A descriptor or a negative errno.
 */
static int enter(int parent, const char *name, bool *ret_made) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int folder = openat(parent, name, flags);
    if (folder >= 0 || errno != ENOENT)
        return folder >= 0 ? folder : -errno;
    if (mkdirat(parent, name, 0777) == 0)
        *ret_made = true;
    else if (errno != EEXIST)
        return -errno;
    folder = openat(parent, name, flags);
    return folder >= 0 ? folder : -errno;
}

/* ---- syncing: folders when another one is changed, and at the end */

static int sync_noted(struct landing *landing) {
    if (landing->unsynced < 0)
        return 0;
    int r = fsync(landing->unsynced) < 0 ? -errno : 0;
    close(take_descriptor(landing->unsynced));
    return r;
}

/* FOLDER has changed. Files come sorted by path, so that it is mostly the same one as before. */
static int note_changed(struct landing *landing, int folder) {
    struct stat status;
    if (fstat(folder, &status) < 0)
        return -errno;
    if (landing->unsynced >= 0 && status.st_dev == landing->unsynced_device &&
        status.st_ino == landing->unsynced_inode)
        return 0;
    int r = sync_noted(landing);
    if (r < 0)
        return r;
    landing->unsynced = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    landing->unsynced_device = status.st_dev;
    landing->unsynced_inode = status.st_ino;
    return landing->unsynced < 0 ? -errno : 0;
}

int landing_sync(struct landing *landing, struct failure *failure) {
    int r = sync_noted(landing);
    return r < 0 ? complain(landing, "", r, failure) : 0;
}

/* ---- the landing */

void landing_free(struct landing *landing) {
    if (!landing)
        return;
    cleanup_close_descriptor(&landing->folder);
    cleanup_close_descriptor(&landing->unsynced);
    free(landing->shown);
    free(landing);
}

static void free_landing(struct landing **landing) {
    landing_free(*landing);
}

int landing_new(const char *folder, const char *name, struct landing **ret, struct failure *failure) {
    cleanup(free_landing) struct landing *landing = calloc(1, sizeof *landing);
    if (!landing)
        return failure_memory(failure);
    landing->folder = landing->unsynced = -1;
    landing->shown = file_join(folder, name);
    if (!landing->shown)
        return failure_memory(failure);
    int r = file_make_folders(folder, failure);
    if (r < 0)
        return r;
    cleanup_close int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return failure_set(failure, -errno, "cannot open the folder '%s': %s", folder, strerror(errno));
    bool made = false;
    landing->folder = enter(parent, name, &made);
    r = landing->folder < 0 ? landing->folder : made ? note_changed(landing, parent) : 0;
    if (r < 0)
        return failure_set(failure, r, "cannot open the folder '%s': %s", landing->shown,
                           r == -ELOOP || r == -ENOTDIR ? "it is there and is no folder" : strerror(-r));
    *ret = take_pointer(landing);
    return 0;
}

/* The folder of the first LENGTH bytes of PATH, made with all that is before it. A descriptor or a negative
 * errno. */
static int walk(struct landing *landing, const char *path, size_t length) {
    cleanup_close int folder = fcntl(landing->folder, F_DUPFD_CLOEXEC, 0);
    if (folder < 0)
        return -errno;
    for (size_t at = 0; at < length;) {
        char name[NAME_MAX + 1];
        size_t size = strcspn(path + at, "/");
        memcpy(name, path + at, size);
        name[size] = '\0';
        bool made = false;
        int next = enter(folder, name, &made);
        int r = next < 0 ? next : made ? note_changed(landing, folder) : 0;
        close(folder);
        folder = next;
        if (r < 0)
            return r;
        at += size + 1;
    }
    return take_descriptor(folder);
}

int landing_make_folder(struct landing *landing, const char *path, struct failure *failure) {
    cleanup_close int folder = walk(landing, path, strlen(path));
    return folder < 0 ? complain(landing, path, folder, failure) : 0;
}

/* ---- files */

void landed_clear(struct landed *landed) {
    if (landed->descriptor >= 0)
        unlinkat(landed->parent, landed->staged, 0);
    cleanup_close_descriptor(&landed->descriptor);
    cleanup_close_descriptor(&landed->parent);
    free(landed->path);
    *landed = LANDED_NONE;
}

/* A name that nobody has; a node may have sent any. */
static int stage(struct landing *landing, struct landed *landed) {
    for (int i = 0; i < STAGED_TRIES; i++) {
        snprintf(landed->staged, sizeof landed->staged, ".assay-part-%ld-%lu", (long)getpid(),
                 landing->made++);
        landed->descriptor = openat(landed->parent, landed->staged,
                                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (landed->descriptor >= 0 || errno != EEXIST)
            break;
    }
    return landed->descriptor < 0 ? -errno : 0;
}

int landed_open(struct landing *landing, const char *path, struct landed *ret, struct failure *failure) {
    cleanup(landed_clear) struct landed landed = LANDED_NONE;
    landed.landing = landing;
    landed.path = strdup(path);
    if (!landed.path)
        return failure_memory(failure);
    const char *slash = strrchr(path, '/');
    landed.parent = walk(landing, path, slash ? (size_t)(slash - path) : 0);
    int r = landed.parent < 0 ? landed.parent : stage(landing, &landed);
    if (r < 0)
        return complain(landing, path, r, failure);
    *ret = landed;
    landed = LANDED_NONE;
    return 0;
}

int landed_write(struct landed *landed, const void *bytes, size_t length, struct failure *failure) {
    int r = file_write_all(landed->descriptor, bytes, length);
    if (r < 0)
        return complain(landed->landing, landed->path, r, failure);
    /* Gigabytes must not gather in memory until fsync, which would then hold everybody up. */
    uint64_t before = landed->written / WRITE_BACK;
    landed->written += length;
    if (landed->written / WRITE_BACK > before)
        (void)sync_file_range(landed->descriptor, (off_t)(before * WRITE_BACK), 0, SYNC_FILE_RANGE_WRITE);
    return 0;
}

int landed_commit(struct landed *landed, unsigned mode, struct failure *failure) {
    const char *name = file_base_name(landed->path);
    int r = 0;
    if (fchmod(landed->descriptor, (mode & 0777) | 0600) < 0 || fsync(landed->descriptor) < 0 ||
        renameat(landed->parent, landed->staged, landed->parent, name) < 0)
        r = -errno;
    if (r == 0) {
        cleanup_close_descriptor(&landed->descriptor); /* nothing is staged any more */
        r = note_changed(landed->landing, landed->parent);
    }
    if (r < 0)
        complain(landed->landing, landed->path, r, failure);
    landed_clear(landed);
    return r;
}
