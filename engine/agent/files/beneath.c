#include "engine/agent/files/beneath.h"

#include "engine/agent/wire/protocol.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437 /* the same on every architecture */
#endif

/* linux/openat2.h, which old header sets do not have. */
struct open_request {
    uint64_t flags, mode, resolve;
};
enum { NO_MAGIC_LINKS = 0x02, BENEATH = 0x08 };

enum { RACES = 16, DEPTH_LIMIT = 256 };

static int check(const char *path, struct failure *failure) {
    if (path[0] == '\0')
        return failure_set(failure, -EINVAL, "a path is empty; expected one below the run directory");
    if (path[0] == '/')
        return failure_set(failure, -EXDEV, "'%.256s' is absolute; expected a path below the run directory",
                           path);
    if (strnlen(path, PROTOCOL_PATH_LIMIT + 1) > PROTOCOL_PATH_LIMIT)
        return failure_set(failure, -ENAMETOOLONG, "'%.64s...' is longer than %d bytes", path,
                           PROTOCOL_PATH_LIMIT);
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return failure_set(failure, -EXDEV, "'%.256s' leaves the run directory", path);
    }
    return 0;
}

int beneath_walk(int folder, const char *path, int flags, mode_t mode) {
    cleanup_close int at = -1;
    for (;;) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        char part[NAME_MAX + 1];
        if (length > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(part, path, length);
        part[length] = '\0';
        path += length;
        bool last = path[strspn(path, "/")] == '\0';
        int next = openat(at < 0 ? folder : at, part,
                          (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC, mode);
        if (next < 0) {
            struct stat status;
            bool link = fstatat(at < 0 ? folder : at, part, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISLNK(status.st_mode);
            return link ? -EXDEV : -errno;
        }
        if (last)
            return next;
        cleanup_close_descriptor(&at);
        at = next;
    }
}

static int open_beneath(int folder, const char *path, int flags, mode_t mode) {
    struct open_request how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                               .mode = flags & O_CREAT ? mode : 0,
                               .resolve = BENEATH | NO_MAGIC_LINKS};
    for (int tries = 0;; tries++) {
        int descriptor = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
        if (descriptor >= 0)
            return descriptor;
        if (errno == ENOSYS || errno == EPERM) /* an old kernel, or a container that hides the call */
            return beneath_walk(folder, path, flags, mode);
        if (errno != EAGAIN || tries >= RACES) /* EAGAIN: a rename meanwhile */
            return -errno;
    }
}

static int describe(struct failure *failure, int code, const char *what, const char *path) {
    if (code == -EXDEV || code == -ELOOP)
        return failure_set(failure, code, "'%.256s' leaves the run directory through a link", path);
    return failure_set(failure, code, "cannot %s '%.256s': %s", what, path, strerror(-code));
}

int beneath_open(int folder, const char *path, int flags, mode_t mode, struct failure *failure) {
    int r = check(path, failure);
    if (r < 0)
        return r;
    r = open_beneath(folder, path, flags, mode);
    return r < 0 ? describe(failure, r, "open", path) : r;
}

int beneath_open_parent(int folder, const char *path, const char **ret_name, struct failure *failure) {
    int r = check(path, failure);
    if (r < 0)
        return r;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (name[0] == '\0' || strcmp(name, ".") == 0)
        return failure_set(failure, -EINVAL, "'%.256s' has no name at its end", path);
    char parent[PROTOCOL_PATH_LIMIT + 1] = ".";
    if (slash) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
    }
    r = open_beneath(folder, parent, O_RDONLY | O_DIRECTORY, 0);
    if (r < 0)
        return describe(failure, r, "open folder", parent);
    *ret_name = name;
    return r;
}

int beneath_make_folders(int folder, const char *path, struct failure *failure) {
    int r = check(path, failure);
    if (r < 0)
        return r;
    cleanup_close int at = open_beneath(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    if (at < 0)
        return describe(failure, at, "open", ".");
    char partial[PROTOCOL_PATH_LIMIT + 1];
    for (const char *end = path; *end;) {
        end += strspn(end, "/");
        const char *part = end;
        end += strcspn(end, "/");
        if (end == part)
            break;
        memcpy(partial, path, (size_t)(end - path));
        partial[end - path] = '\0';
        char name[NAME_MAX + 1];
        if ((size_t)(end - part) > NAME_MAX)
            return describe(failure, -ENAMETOOLONG, "make folder", path);
        memcpy(name, part, (size_t)(end - part));
        name[end - part] = '\0';
        if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
            return describe(failure, -errno, "make folder", partial);
        /* From the top each time: the kernel then judges the whole way, links included. */
        int next = open_beneath(folder, partial, O_RDONLY | O_DIRECTORY, 0);
        if (next < 0)
            return describe(failure, next, "make folder", partial);
        cleanup_close_descriptor(&at);
        at = next;
    }
    return 0;
}

static int empty(int folder, int depth);

static int remove_at(int folder, const char *name, int depth) {
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth == 0)
        return -ELOOP;
    int code = -errno;
    cleanup_close int inner = file_open_to_empty(folder, name);
    if (inner < 0)
        /* No folder: then why it was not unlinked counts. */
        return inner == -ENOTDIR || inner == -ELOOP ? code : inner;
    int r = empty(inner, depth - 1);
    if (r == 0 && unlinkat(folder, name, AT_REMOVEDIR) < 0)
        r = -errno;
    return r;
}

static int empty(int folder, int depth) {
    /* Opened anew, since a duplicate would go on where the last reader of the folder stopped. */
    int again = file_open_to_empty(folder, ".");
    if (again < 0)
        return again;
    DIR *entries = fdopendir(again);
    if (!entries) {
        int r = -errno;
        cleanup_close_descriptor(&again);
        return r;
    }
    int r = 0;
    struct dirent *entry;
    while (r == 0 && (errno = 0, entry = readdir(entries)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = remove_at(folder, entry->d_name, depth);
    closedir(entries);
    return r;
}

/* ".", "./", "./." and the like: no part but ".". */
static bool is_the_folder_itself(const char *path) {
    while (*path) {
        size_t length = strcspn(path, "/");
        if (length > 1 || (length == 1 && *path != '.'))
            return false;
        path += length;
        path += strspn(path, "/");
    }
    return true;
}

int beneath_remove_tree(int folder, const char *path, struct failure *failure) {
    int r = check(path, failure);
    if (r < 0)
        return r;
    if (is_the_folder_itself(path)) {
        r = empty(folder, DEPTH_LIMIT);
        return r < 0 ? describe(failure, r, "remove", path) : 0;
    }
    const char *name;
    cleanup_close int parent = beneath_open_parent(folder, path, &name, failure);
    if (parent == -ENOENT)
        return 0;
    if (parent < 0)
        return parent;
    r = remove_at(parent, name, DEPTH_LIMIT);
    if (r == -ELOOP)
        return failure_set(failure, r, "cannot remove '%.256s': it is deeper than %d folders", path,
                           DEPTH_LIMIT);
    return r < 0 ? describe(failure, r, "remove", path) : 0;
}
