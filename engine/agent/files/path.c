#include "engine/agent/files/path.h"

#include "engine/agent/wire/protocol.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_LIMIT = 40 }; /* as in the kernel */
enum { FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC };

struct walk {
    int root, folder; /* where absolute links begin; where `rest` begins */
    bool confined;    /* to the root */
    bool keep_last;   /* a link at the end is not followed */
    size_t depth;     /* of `folder` below the root, if confined */
    unsigned links;
    char rest[PATH_MAX];
    char name[NAME_MAX + 1]; /* the part that is looked at */
};

static void walk_clear(struct walk *walk) {
    cleanup_close_descriptor(&walk->folder);
}

static int enter(struct walk *walk, int folder) {
    int code = folder < 0 ? -errno : 0;
    cleanup_close_descriptor(&walk->folder);
    walk->folder = folder;
    return code;
}

/* Whether another user may have made this link so that we read or write in their place: it belongs neither to
 * us nor to the owner of its folder, which is one like /tmp. The kernel's protected_symlinks is the same
 * rule, but may be switched off, and does not look at links to folders on the way. */
static bool is_trap(const struct walk *walk, const struct stat *link) {
    struct stat folder;
    return fstat(walk->folder, &folder) < 0 || ((folder.st_mode & S_ISVTX) && (folder.st_mode & S_IWOTH) &&
                                                link->st_uid != geteuid() && link->st_uid != folder.st_uid);
}

/* The target of the link takes its place before AFTER. */
static int follow(struct walk *walk, int link, const struct stat *status, const char *after) {
    char next[PATH_MAX];
    size_t left = strlen(after) + 1;
    if (is_trap(walk, status))
        return -EXDEV;
    struct statfs system;
    if (!walk->confined && fstatfs(walk->folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC) {
        /* The target of a link of /proc need not be where its text says: the kernel follows it. */
        int target = openat(walk->folder, walk->name, O_PATH | O_CLOEXEC);
        struct stat found;
        if (target >= 0 && (fstat(target, &found) < 0 || S_ISDIR(found.st_mode))) {
            memmove(walk->rest, *after ? after : ".", left + !*after);
            return enter(walk, target);
        }
        cleanup_close_descriptor(&target);
    }
    if (++walk->links > LINKS_LIMIT)
        return -ELOOP;
    ssize_t length = readlinkat(link, "", next, sizeof next);
    if (length < 0)
        return -errno;
    if ((size_t)length + 1 + left > sizeof next)
        return -ENAMETOOLONG;
    if (next[0] == '/' && walk->confined)
        return -EXDEV;
    next[length] = '/';
    memcpy(next + length + 1, after, left);
    memcpy(walk->rest, next, (size_t)length + 1 + left);
    return next[0] == '/' ? enter(walk, openat(walk->root, ".", FOLDER)) : 0;
}

static int make_folder(const struct walk *walk) {
    if (mkdirat(walk->folder, walk->name, 0777) < 0)
        return errno == EEXIST ? 0 : -errno;
    cleanup_close int folder = openat(walk->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 || (fsync(folder) < 0 && errno != EINVAL) ? -errno : 0;
}

/* The part that is looked at, or a negative errno. It is opened as a FOLDER first, so that automount mounts
 * one that it manages. */
static int open_part(const struct walk *walk, bool folder) {
    int found =
        openat(walk->folder, walk->name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (folder ? O_DIRECTORY : 0));
    if (found < 0 && errno == ENOTDIR)
        found = openat(walk->folder, walk->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return found < 0 ? -errno : found;
}

static int descend(struct walk *walk, int folder, const char *after) {
    if (strcmp(walk->name, "..") == 0)
        walk->depth--;
    else if (strcmp(walk->name, ".") != 0)
        walk->depth++;
    memmove(walk->rest, after, strlen(after) + 1);
    return enter(walk, folder);
}

/* Handles the first part of the rest. 1: there is more; 0: it was the last; or a negative errno. */
static int take_step(struct walk *walk, bool make) {
    char *part = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(part, "/");
    const char *after = part + length + strspn(part + length, "/");
    bool folder = *after || make;
    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(walk->name, length ? part : ".", length ? length : 1);
    walk->name[length ? length : 1] = '\0';
    if (walk->confined && walk->depth == 0 && strcmp(walk->name, "..") == 0)
        return -EXDEV;
    cleanup_close int found = open_part(walk, folder);
    if (found == -ENOENT && make) {
        int r = make_folder(walk);
        if (r < 0)
            return r;
        found = open_part(walk, folder);
    }
    struct stat status;
    if (found < 0)
        return found == -ENOENT && !folder ? 0 : found;
    if (fstat(found, &status) < 0)
        return -errno;
    int r;
    if (S_ISLNK(status.st_mode) && (*after || !walk->keep_last))
        r = follow(walk, found, &status, after);
    else if (folder && !S_ISDIR(status.st_mode))
        return -ENOTDIR;
    else if (!*after)
        return 0;
    else
        r = descend(walk, take_descriptor(found), after);
    return r < 0 ? r : 1;
}

static int complain(const struct walk *walk, int code, const char *what, const char *path,
                    struct failure *failure) {
    if (code == -EXDEV && walk->confined)
        return failure_set(failure, code, "'%.256s' leaves the run directory through a link", path);
    if (code == -EXDEV)
        return failure_set(failure, code,
                           "cannot %s '%.256s': the link '%.256s' on the way was made by another user in a "
                           "folder where everybody may make one, and is not followed",
                           what, path, walk->name);
    return failure_set(failure, code, "cannot %s '%.256s': %s", what, path, strerror(-code));
}

static int check_relative(const char *path, struct failure *failure) {
    if (path[0] == '\0')
        return failure_set(failure, -EINVAL, "a path is empty; expected one below the run directory");
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return failure_set(failure, -EXDEV, "'%.256s' leaves the run directory", path);
    }
    return 0;
}

/* Walks down to the last part: afterwards walk->folder holds it, and walk->name is its name there. It need
 * not exist, and is no link. */
static int walk_down(struct walk *walk, const int from[2], const char *path, bool make, const char *what,
                     struct failure *failure) {
    bool confined = path[0] != '/';
    *walk = (struct walk){
        .root = from[confined ? 0 : 1], .folder = -1, .confined = confined, .keep_last = walk->keep_last};
    size_t length = strnlen(path, PROTOCOL_PATH_LIMIT + 1);
    if (length > PROTOCOL_PATH_LIMIT)
        return failure_set(failure, -ENAMETOOLONG, "'%.64s...' is longer than %d bytes", path,
                           PROTOCOL_PATH_LIMIT);
    if (walk->root < 0)
        return failure_set(failure, -EXDEV, "'%.256s' is absolute; expected a path below the run directory",
                           path);
    int r = confined ? check_relative(path, failure) : 0;
    if (r < 0)
        return r;
    memcpy(walk->rest, path, length + 1);
    r = enter(walk, openat(walk->root, ".", FOLDER));
    if (r == 0)
        while ((r = take_step(walk, make)) > 0)
            continue;
    return r < 0 ? complain(walk, r, what, path, failure) : 0;
}

int path_open(int directory, int root, const char *path, int flags, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    int r = walk_down(&walk, (const int[]){directory, root}, path, false, "read", failure);
    if (r < 0)
        return r;
    int opened = openat(walk.folder, walk.name, flags | O_NOFOLLOW | O_CLOEXEC);
    return opened < 0 ? complain(&walk, -errno, "read", path, failure) : opened;
}

int path_open_parent(int directory, const char *path, char ret_name[static NAME_MAX + 1],
                     struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1, .keep_last = path[0] != '/'};
    cleanup_close int root = open("/", FOLDER);
    int r = walk_down(&walk, (const int[]){directory, root}, path, false, "write", failure);
    if (r < 0)
        return r;
    if (strcmp(walk.name, ".") == 0 || strcmp(walk.name, "..") == 0)
        return failure_set(failure, -EINVAL, "'%.256s' has no name at its end", path);
    struct stat status;
    if (fstatat(walk.folder, walk.name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(status.st_mode) &&
        !S_ISLNK(status.st_mode))
        return failure_set(failure, S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL,
                           "cannot write '%.256s': it is %s", path,
                           S_ISDIR(status.st_mode) ? "a folder" : "not a file");
    int folder = openat(walk.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return complain(&walk, -errno, "write", path, failure);
    memcpy(ret_name, walk.name, sizeof walk.name);
    return folder;
}

ssize_t path_read_up_to(int file, void *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(file, (char *)bytes + done, size - done);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

int path_make_folders(int directory, const char *path, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    cleanup_close int root = open("/", FOLDER);
    if (*path && path[strspn(path, "/")] == '\0')
        return 0; /* the root exists */
    return walk_down(&walk, (const int[]){directory, root}, path, true, "make folder", failure);
}
