#include "engine/remote/nodes/landing.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_BYTES_MOST = 4095,
    STAGED_SIZE = 32,     /* of a name there, or of the folder's */
    WRITE_BACK = 8 << 20, /* bytes after which the kernel is asked to begin writing */
};

/* A whole file that waits to be synced with others. */
struct waiting {
    char *path; /* owned */
    unsigned long number;
};

struct landing {
    char *shown; /* "FOLDER/NAME", for messages */
    int folder;
    /* A folder of it for files on their way, made with the first: what a node has there cannot be known to
     * it, for the name is drawn when its listing has been taken. */
    int staging; /* -1: none */
    char staging_name[STAGED_SIZE];
    unsigned long made; /* files there so far */
    bool changed;       /* names were made that may not be on disk yet */
    struct waiting waiting[LANDING_TOGETHER_MOST];
    size_t waiting_count;
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
static int enter(struct landing *landing, int parent, const char *name) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int folder = openat(parent, name, flags);
    if (folder >= 0 || errno != ENOENT)
        return folder >= 0 ? folder : -errno;
    if (mkdirat(parent, name, 0777) == 0)
        landing->changed = true;
    else if (errno != EEXIST)
        return -errno;
    folder = openat(parent, name, flags);
    return folder >= 0 ? folder : -errno;
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
        int next = enter(landing, folder, name);
        close(folder);
        folder = next;
        if (next < 0)
            return next;
        at += size + 1;
    }
    return take_descriptor(folder);
}

/* The folder that PATH is in. */
static int walk_to_parent(struct landing *landing, const char *path) {
    const char *slash = strrchr(path, '/');
    return walk(landing, path, slash ? (size_t)(slash - path) : 0);
}

/* ---- files on their way */

static int open_staging(struct landing *landing) {
    uint64_t random;
    if (landing->staging >= 0)
        return 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    snprintf(landing->staging_name, sizeof landing->staging_name, ".assay-%016" PRIx64, random);
    if (mkdirat(landing->folder, landing->staging_name, 0700) < 0)
        return -errno;
    landing->staging =
        openat(landing->folder, landing->staging_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return landing->staging < 0 ? -errno : 0;
}

static const char *staged_name(unsigned long number, char buffer[static STAGED_SIZE]) {
    snprintf(buffer, STAGED_SIZE, "%lu", number);
    return buffer;
}

static void remove_staged(const struct landing *landing, unsigned long number) {
    char name[STAGED_SIZE];
    unlinkat(landing->staging, staged_name(number, name), 0);
}

/* FILE, synced, gets its name. */
static int move_to(struct landing *landing, unsigned long number, const char *path) {
    char name[STAGED_SIZE];
    cleanup_close int parent = walk_to_parent(landing, path);
    if (parent < 0)
        return parent;
    if (renameat(landing->staging, staged_name(number, name), parent, file_base_name(path)) < 0)
        return -errno;
    landing->changed = true;
    return 0;
}

/* ---- those that are synced together */

static void drop_waiting(struct landing *landing) {
    for (size_t i = 0; i < landing->waiting_count; i++) {
        remove_staged(landing, landing->waiting[i].number);
        free(landing->waiting[i].path);
    }
    landing->waiting_count = 0;
}

/* After syncfs: the file is clean, so that this costs little, but tells whether it could be written. */
static int settle_one(struct landing *landing, const struct waiting *waiting) {
    char name[STAGED_SIZE];
    cleanup_close int file =
        openat(landing->staging, staged_name(waiting->number, name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || fsync(file) < 0)
        return -errno;
    return move_to(landing, waiting->number, waiting->path);
}

/* Those that cannot get their names are removed; the first tells. */
static int settle(struct landing *landing, struct failure *failure) {
    if (landing->waiting_count == 0)
        return 0;
    int result = syncfs(landing->folder) < 0 ? complain(landing, "", -errno, failure) : 0;
    size_t left = 0;
    for (size_t i = 0; i < landing->waiting_count; i++) {
        struct waiting waiting = landing->waiting[i];
        int r = settle_one(landing, &waiting);
        if (r < 0 && result == 0)
            result = complain(landing, waiting.path, r, failure);
        if (r < 0)
            landing->waiting[left++] = waiting;
        else
            free(waiting.path);
    }
    landing->waiting_count = left;
    drop_waiting(landing);
    return result;
}

int landing_sync(struct landing *landing, struct failure *failure) {
    int r = settle(landing, failure);
    if (r == 0 && landing->changed && syncfs(landing->folder) < 0)
        r = complain(landing, "", -errno, failure);
    if (r == 0)
        landing->changed = false;
    return r;
}

/* ---- the landing */

void landing_free(struct landing *landing) {
    if (!landing)
        return;
    drop_waiting(landing);
    if (landing->staging >= 0)
        unlinkat(landing->folder, landing->staging_name, AT_REMOVEDIR);
    cleanup_close_descriptor(&landing->staging);
    cleanup_close_descriptor(&landing->folder);
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
    landing->folder = landing->staging = -1;
    landing->shown = file_join(folder, name);
    if (!landing->shown)
        return failure_memory(failure);
    int r = file_make_folders(folder, failure);
    if (r < 0)
        return r;
    cleanup_close int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return failure_set(failure, -errno, "cannot open the folder '%s': %s", folder, strerror(errno));
    landing->folder = enter(landing, parent, name);
    if (landing->folder < 0) {
        r = landing->folder;
        return failure_set(failure, r, "cannot open the folder '%s': %s", landing->shown,
                           r == -ELOOP || r == -ENOTDIR ? "it is there and is no folder" : strerror(-r));
    }
    *ret = take_pointer(landing);
    return 0;
}

int landing_make_folder(struct landing *landing, const char *path, struct failure *failure) {
    cleanup_close int folder = walk(landing, path, strlen(path));
    return folder < 0 ? complain(landing, path, folder, failure) : 0;
}

/* ---- files */

void landed_clear(struct landed *landed) {
    if (landed->descriptor >= 0)
        remove_staged(landed->landing, landed->number);
    cleanup_close_descriptor(&landed->descriptor);
    free(landed->path);
    *landed = LANDED_NONE;
}

/* The folder that it will be in is made now: what is wrong with that is known before its bytes come. */
static int stage(struct landing *landing, const char *path, struct landed *landed) {
    char name[STAGED_SIZE];
    cleanup_close int parent = walk_to_parent(landing, path);
    int r = parent < 0 ? parent : open_staging(landing);
    if (r < 0)
        return r;
    landed->number = landing->made++;
    landed->descriptor = openat(landing->staging, staged_name(landed->number, name),
                                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return landed->descriptor < 0 ? -errno : 0;
}

int landed_open(struct landing *landing, const char *path, struct landed *ret, struct failure *failure) {
    cleanup(landed_clear) struct landed landed = LANDED_NONE;
    landed.landing = landing;
    landed.path = xstrdup(path);
    int r = stage(landing, path, &landed);
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

static void commit_with_others(struct landed *landed) {
    struct landing *landing = landed->landing;
    landing->waiting[landing->waiting_count++] =
        (struct waiting){.path = take_pointer(landed->path), .number = landed->number};
}

int landed_commit(struct landed *landed, unsigned mode, struct failure *failure) {
    struct landing *landing = landed->landing;
    bool alone = landed->written > LANDING_TOGETHER_SIZE;
    int r = fchmod(landed->descriptor, (mode & 0777) | 0600) < 0 ? -errno : 0;
    if (r == 0 && alone)
        r = fsync(landed->descriptor) < 0 ? -errno : move_to(landing, landed->number, landed->path);
    if (r < 0) {
        complain(landing, landed->path, r, failure);
    } else {
        if (!alone)
            commit_with_others(landed);
        cleanup_close_descriptor(&landed->descriptor); /* which is not to be removed any more */
    }
    landed_clear(landed);
    if (r == 0 && landing->waiting_count == LANDING_TOGETHER_MOST)
        r = settle(landing, failure);
    return r;
}
