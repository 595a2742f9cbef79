#include "engine/agent/files/anywhere.h"

#include "engine/agent/files/beneath.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_LIMIT = 40 }; /* as the kernel has it */
enum { FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC };

/* What is done on the way, beside going down. */
enum walk_mode { WALK_FOLLOW, WALK_KEEP_LAST /* if it is a link */, WALK_MAKE /* folders */ };

struct walk {
    int root, folder; /* where absolute links begin; where `rest` begins */
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

/* Whether somebody else may have made this link so that we read or write in their place: it is neither ours
 * nor of the owner of its folder, which is one like /tmp. The kernel's protected_symlinks is the same rule,
 * but may be switched off, and does not look at links to folders on the way. */
static bool is_trap(const struct walk *walk, const struct stat *link) {
    struct stat folder;
    return fstat(walk->folder, &folder) < 0 || ((folder.st_mode & S_ISVTX) && (folder.st_mode & S_IWOTH) &&
                                                link->st_uid != geteuid() && link->st_uid != folder.st_uid);
}

/* What the link leads to takes its place before AFTER. */
static int follow(struct walk *walk, int link, const struct stat *status, const char *after) {
    char next[PATH_MAX];
    size_t left = strlen(after) + 1;
    if (is_trap(walk, status))
        return -EXDEV;
    struct statfs system;
    if (fstatfs(walk->folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC) {
        /* What a link of /proc leads to need not be where its text says: the kernel follows it. */
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

/* The first part of what is left. 1: there is more; 0: it was the last; or a negative errno. */
static int take_step(struct walk *walk, enum walk_mode mode) {
    char *part = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(part, "/");
    const char *after = part + length + strspn(part + length, "/");
    bool folder = *after || mode == WALK_MAKE;
    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(walk->name, length ? part : ".", length ? length : 1);
    walk->name[length ? length : 1] = '\0';
    int r = mode == WALK_MAKE ? make_folder(walk) : 0;
    if (r < 0)
        return r;
    /* As a folder first, so that one is mounted which automount mounts when it is wanted. */
    cleanup_close int found =
        openat(walk->folder, walk->name, (folder ? FOLDER : O_PATH | O_CLOEXEC) | O_NOFOLLOW);
    if (found < 0 && errno == ENOTDIR)
        found = openat(walk->folder, walk->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (found < 0)
        return errno == ENOENT && !folder ? 0 : -errno;
    if (fstat(found, &status) < 0)
        return -errno;
    if (S_ISLNK(status.st_mode) && (*after || mode != WALK_KEEP_LAST))
        r = follow(walk, found, &status, after);
    else if (folder && !S_ISDIR(status.st_mode))
        return -ENOTDIR;
    else if (!*after)
        return 0;
    else {
        memmove(walk->rest, after, strlen(after) + 1);
        r = enter(walk, take_descriptor(found));
    }
    return r < 0 ? r : 1;
}

/* Down to the last part: the folder that holds it, and its name there. It need not be there, and is no link
 * that should have been followed. */
static int walk_down(struct walk *walk, int root, const char *path, enum walk_mode mode) {
    *walk = (struct walk){.root = root, .folder = -1};
    size_t length = strlen(path);
    if (length >= sizeof walk->rest)
        return -ENAMETOOLONG;
    memcpy(walk->rest, path, length + 1);
    int r = enter(walk, openat(root, ".", FOLDER));
    if (r == 0)
        while ((r = take_step(walk, mode)) > 0)
            continue;
    return r;
}

static int complain(const struct walk *walk, int code, const char *what, const char *path,
                    struct failure *failure) {
    if (code == -EXDEV)
        return failure_set(failure, code,
                           "cannot %s '%.256s': the link '%.256s' on the way was made by another user in a "
                           "folder where everybody may make one, and is not followed",
                           what, path, walk->name);
    return failure_set(failure, code, "cannot %s '%.256s': %s", what, path, strerror(-code));
}

/* For writing: the root is the system's, and the last part must be a name. */
static int walk_to_name(struct walk *walk, const char *path, enum walk_mode mode, const char *what,
                        struct failure *failure) {
    cleanup_close int root = open("/", FOLDER);
    int r = root < 0 ? -errno : walk_down(walk, root, path, mode);
    if (r == 0 && (strcmp(walk->name, ".") == 0 || strcmp(walk->name, "..") == 0))
        return failure_set(failure, -EINVAL, "'%.256s' has no name at its end", path);
    return r < 0 ? complain(walk, r, what, path, failure) : 0;
}

int anywhere_open(int root, const char *path, int flags, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    int r = walk_down(&walk, root, path, WALK_FOLLOW);
    int opened = r < 0 ? r : openat(walk.folder, walk.name, flags | O_NOFOLLOW | O_CLOEXEC);
    if (r == 0 && opened < 0)
        r = -errno;
    return r < 0 ? complain(&walk, r, "read", path, failure) : opened;
}

int anywhere_open_parent(const char *path, char **ret_name, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    int r = walk_to_name(&walk, path, WALK_FOLLOW, "write", failure);
    if (r < 0)
        return r;
    struct stat status;
    if (fstatat(walk.folder, walk.name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(status.st_mode))
        return failure_set(failure, S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL,
                           "cannot write '%.256s': it is %s", path,
                           S_ISDIR(status.st_mode) ? "a folder" : "not a file");
    cleanup_free char *name = strdup(walk.name);
    if (!name)
        return failure_memory(failure);
    int folder = openat(walk.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return complain(&walk, -errno, "write", path, failure);
    *ret_name = take_pointer(name);
    return folder;
}

int anywhere_make_folders(const char *path, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    if (path[strspn(path, "/")] == '\0')
        return 0; /* the root is there */
    return walk_to_name(&walk, path, WALK_MAKE, "make folder", failure);
}

int anywhere_remove_tree(const char *path, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    struct failure own = {0};
    int r = walk_to_name(&walk, path, WALK_KEEP_LAST, "remove", &own);
    if (r == -ENOENT)
        return 0;
    if (r < 0 && failure)
        *failure = own;
    return r < 0 ? r : beneath_remove_tree(walk.folder, walk.name, failure);
}
