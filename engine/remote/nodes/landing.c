#include "engine/remote/nodes/landing.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_BYTES_MAX = 4095,
    STAGED_SIZE = 32, /* of the name of the temporary folder, or of a file in it */
};

static const char scratch[] = "archive";
static const char other_user[] =
    "a folder there belongs to another user, or another user may write to it; change "
    "its owner or mode, or name it in " PATH_TRUST_VARIABLE;

struct landing {
    char *shown; /* "FOLDER/NAME", for messages */
    int folder;  /* its descriptor */
    /* The temporary folder, made with the first file. Its name is random, so that the node cannot name it. */
    int staging; /* descriptor; -1: not made yet */
    char staging_name[STAGED_SIZE];
    char **paths; /* owned: final paths of the temporary files, which are called "0", "1", ... */
    size_t count, capacity;
};

/* FAILURE for PATH below the folder, which cannot be written; returns CODE. */
static int fail_to_write(const struct landing *landing, const char *path, int code, struct failure *failure) {
    return failure_set(failure, code, "cannot write '%s/%s': %s", landing->shown, path,
                       code == -EXDEV ? other_user : strerror(-code));
}

/* ---- paths */

const char *landing_problem(const char *path) {
    size_t depth = 0;
    if (!*path)
        return "it is empty";
    if (*path == '/')
        return "it is absolute";
    if (strlen(path) > PATH_BYTES_MAX)
        return "it is too long";
    if (text_has_control(path))
        return "it has a control character";
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0)
            return "it has an empty part";
        if ((length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return "it has a part '.' or '..'";
        if (length > NAME_MAX)
            return "a part of it is too long";
        if (++depth > LANDING_DEPTH_MAX)
            return "it is too deep";
        part += length;
        if (!*part)
            return NULL;
    }
}

/* Opens the folder NAME of PARENT, made if it does not exist; links are not followed. A descriptor or a
 * negative errno. */
static int open_or_make(int parent, const char *name) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int folder = openat(parent, name, flags);
    if (folder >= 0 || errno != ENOENT)
        return folder >= 0 ? folder : -errno;
    if (mkdirat(parent, name, geteuid() == 0 ? 0755 : 0777) < 0 && errno != EEXIST)
        return -errno;
    folder = openat(parent, name, flags);
    return folder >= 0 ? folder : -errno;
}

/* Opens or makes the folder NAME of PARENT, too; -EXDEV where assay runs as root and another user may write
 * to it. */
static int open_own_folder(int parent, const char *name) {
    cleanup_close int folder = open_or_make(parent, name);
    return folder >= 0 && path_is_suspect(folder) ? -EXDEV : take_descriptor(folder);
}

/* Opens the folder that the first LENGTH bytes of PATH name, below that of LANDING; makes the folders that do
 * not exist. A descriptor or a negative errno. */
static int open_folder(const struct landing *landing, const char *path, size_t length) {
    cleanup_close int folder = fcntl(landing->folder, F_DUPFD_CLOEXEC, 0);
    if (folder < 0)
        return -errno;
    for (size_t at = 0; at < length;) {
        char name[NAME_MAX + 1];
        size_t size = strcspn(path + at, "/");
        memcpy(name, path + at, size);
        name[size] = '\0';
        int next = open_own_folder(folder, name);
        close(folder);
        folder = next;
        if (next < 0)
            return next;
        at += size + 1;
    }
    return take_descriptor(folder);
}

/* Opens the folder that has the last part of PATH, as walk() does. */
static int open_parent(const struct landing *landing, const char *path) {
    const char *slash = strrchr(path, '/');
    return open_folder(landing, path, slash ? (size_t)(slash - path) : 0);
}

/* ---- the landing */

static const char *staged_name(size_t number, char buffer[static STAGED_SIZE]) {
    snprintf(buffer, STAGED_SIZE, "%zu", number);
    return buffer;
}

void landing_drop_last(struct landing *landing) {
    char name[STAGED_SIZE];
    unlinkat(landing->staging, staged_name(--landing->count, name), 0);
    free(landing->paths[landing->count]);
}

void landing_free(struct landing *landing) {
    if (!landing)
        return;
    while (landing->count > 0)
        landing_drop_last(landing);
    if (landing->staging >= 0) {
        unlinkat(landing->staging, scratch, 0);
        unlinkat(landing->folder, landing->staging_name, AT_REMOVEDIR);
    }
    cleanup_close_descriptor(&landing->staging);
    cleanup_close_descriptor(&landing->folder);
    free(landing->paths);
    free(landing->shown);
    free(landing);
}

static void free_landing(struct landing **landing) {
    landing_free(*landing);
}

int landing_new(const char *folder, const char *name, struct landing **ret, struct failure *failure) {
    cleanup(free_landing) struct landing *landing = xcalloc(1, sizeof *landing);
    landing->folder = landing->staging = -1;
    landing->shown = xformat("%s/%s", folder, name);
    cleanup_close int parent = path_make(folder, failure);
    if (parent < 0)
        return parent;
    landing->folder = open_own_folder(parent, name);
    if (landing->folder < 0) {
        int r = landing->folder;
        return failure_set(failure, r, "cannot open the folder '%s': %s", landing->shown,
                           r == -ELOOP || r == -ENOTDIR ? "it exists and is not a folder"
                           : r == -EXDEV                ? other_user
                                                        : strerror(-r));
    }
    *ret = take_pointer(landing);
    return 0;
}

/* Makes the temporary folder, unless there is one. A negative errno on failure. */
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

int landing_open_scratch(struct landing *landing, struct failure *failure) {
    int r = open_staging(landing);
    int file = r < 0 ? r : openat(landing->staging, scratch, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (r == 0 && file < 0)
        r = -errno;
    if (r < 0)
        return fail_to_write(landing, "", r, failure);
    return file;
}

int landing_make_folder(struct landing *landing, const char *path, struct failure *failure) {
    cleanup_close int folder = open_folder(landing, path, strlen(path));
    return folder < 0 ? fail_to_write(landing, path, folder, failure) : 0;
}

/* ---- files */

int landing_add(struct landing *landing, const char *path, unsigned mode, struct failure *failure) {
    char name[STAGED_SIZE];
    cleanup_close int parent = open_parent(landing, path);
    int r = parent < 0 ? parent : open_staging(landing);
    if (r == 0)
        r = list_reserve(&landing->paths, &landing->capacity, landing->count + 1, sizeof *landing->paths,
                         LANDING_FILES_MAX);
    if (r < 0)
        return fail_to_write(landing, path, r, failure);
    int file = openat(landing->staging, staged_name(landing->count, name),
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || fchmod(file, (mode & 0777) | 0600) < 0)
        return fail_to_write(landing, path, -errno, failure);
    landing->paths[landing->count++] = xstrdup(path);
    return file;
}

/* Gives the file that was added last its final name. A negative errno on failure. */
static int move_last(struct landing *landing) {
    char name[STAGED_SIZE];
    const char *path = landing->paths[landing->count - 1];
    cleanup_close int parent = open_parent(landing, path);
    if (parent < 0)
        return parent;
    staged_name(landing->count - 1, name);
    return renameat(landing->staging, name, parent, file_base_name(path)) < 0 ? -errno : 0;
}

/* From the last file added to the first; a file whose name cannot be given is removed. */
int landing_commit(struct landing *landing, struct failure *failure) {
    if (syncfs(landing->folder) < 0)
        return fail_to_write(landing, "", -errno, failure);
    int result = 0;
    while (landing->count > 0) {
        int r = move_last(landing);
        if (r < 0 && result == 0)
            result = fail_to_write(landing, landing->paths[landing->count - 1], r, failure);
        landing_drop_last(landing);
    }
    if (syncfs(landing->folder) < 0 && result == 0)
        result = fail_to_write(landing, "", -errno, failure);
    return result;
}
