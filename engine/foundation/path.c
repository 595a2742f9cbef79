#include "engine/foundation/path.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_LIMIT = 40, PATH_BYTES_MAX = PATH_MAX - 1 }; /* as in the kernel */
#define PATH_SUSPECT                                                                                         \
    " belongs to user %u and has mode %04o; root uses only what root owns and no other user may "            \
    "write to. Change its owner or mode, or name its folder in " PATH_TRUST_VARIABLE

enum { FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC };

struct walk {
    int root, folder; /* where absolute links begin; where `rest` begins */
    bool confined;    /* to the root */
    bool keep_last;   /* a link at the end is not followed */
    size_t depth;     /* of `folder` below the root, if confined */
    unsigned links;
    char rest[PATH_MAX];
    char name[NAME_MAX + 1]; /* the current part of the path */
    /* Why a part of an unconfined path was refused with -EXDEV: a sentence for the user. */
    char suspect[PATH_MAX + 256];
};

static const char *trusted_folder; /* path_trust() */

static void walk_clear(struct walk *walk) {
    cleanup_close_descriptor(&walk->folder);
}

static int enter(struct walk *walk, int folder) {
    int code = folder < 0 ? -errno : 0;
    cleanup_close_descriptor(&walk->folder);
    walk->folder = folder;
    return code;
}

char *path_of_file(int file, const char *otherwise, char *buffer, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, buffer, size - 1);
    if (length < 0)
        snprintf(buffer, size, "%s", otherwise);
    else
        buffer[length] = '\0';
    return buffer;
}

/* ---- trust */

void path_trust(const char *folder) {
    trusted_folder = folder;
}

const char *const *path_trust_environment(void) {
    static char variable[PATH_MAX];
    static const char *const words[] = {variable, NULL};
    const char *value = getenv(PATH_TRUST_VARIABLE);
    return value && (size_t)snprintf(variable, sizeof variable, PATH_TRUST_VARIABLE "=%s", value) <
                        sizeof variable
               ? words
               : NULL;
}

/* Whether files of the user OWNER are trusted: our own, root's, those of the owner of the root folder (root,
 * in a user namespace), of our program's owner, and of the user who became root by sudo. Such users could
 * harm us anyway. */
static bool is_trusted_user(uid_t owner) {
    struct stat root, program;
    const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
    return owner == 0 || owner == geteuid() || (stat("/", &root) == 0 && owner == root.st_uid) ||
           (stat("/proc/self/exe", &program) == 0 && owner == program.st_uid) ||
           (sudo && *sudo && owner == strtoul(sudo, NULL, 10));
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether STATUS is of a folder that PATH_TRUST_VARIABLE or path_trust() names. */
static bool is_trusted_folder(const struct stat *status) {
    struct stat named;
    const char *list = getenv(PATH_TRUST_VARIABLE);
    if (trusted_folder && !(status->st_mode & S_IWOTH) && stat(trusted_folder, &named) == 0 &&
        is_same_file(status, &named))
        return true;
    for (size_t length; list && *list; list += length + (list[length] == ':')) {
        char path[PATH_MAX];
        length = strcspn(list, ":");
        if (*list == '/' && length < sizeof path && snprintf(path, sizeof path, "%.*s", (int)length, list) &&
            stat(path, &named) == 0 && is_same_file(status, &named))
            return true;
    }
    return false;
}

/* Whether FOLDER, or a folder above it, is one that the user declared as trusted. */
static bool is_in_trusted_folder(int folder) {
    struct stat status, above = {0};
    cleanup_close int at = openat(folder, ".", FOLDER);
    while (at >= 0 && fstat(at, &status) == 0 && !is_same_file(&status, &above)) {
        if (is_trusted_folder(&status))
            return true;
        int next = openat(at, "..", FOLDER);
        close(at);
        at = next;
        above = status;
    }
    return false;
}

/* Whether another user owns, or may write to, the file or folder (not a link) that STATUS describes. A sticky
 * folder does not count as writable: others may add to it, but cannot replace our files in it. */
static bool is_others(const struct stat *status) {
    return !is_trusted_user(status->st_uid) || ((status->st_mode & (S_IWGRP | S_IWOTH)) &&
                                                !(S_ISDIR(status->st_mode) && (status->st_mode & S_ISVTX)));
}

/* Whether the program runs as root and another user could have placed or changed the open file or folder
 * FILE, or can replace it. True also if that cannot be determined. */
bool path_is_suspect(int file) {
    struct stat status;
    if (geteuid() != 0)
        return false;
    if (fstat(file, &status) < 0)
        return true;
    if (!is_others(&status) || (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)))
        return false;
    if (S_ISDIR(status.st_mode))
        return !is_in_trusted_folder(file);
    char place[PATH_MAX];
    *strrchr(path_of_file(file, "/", place, sizeof place), '/') = '\0';
    cleanup_close int folder = open(*place ? place : "/", FOLDER);
    return folder < 0 || !is_in_trusted_folder(folder);
}

/* ---- the walk */

/* 0 if the part of the path may be used. -EXDEV, with a sentence in walk->suspect, if another user owns PART
 * or may write to it. A link of a user in a folder that only this user may write to is followed, unless we
 * are root. */
static int check_part(struct walk *walk, int part, const struct stat *status) {
    char place[PATH_MAX];
    bool is_link = S_ISLNK(status->st_mode);
    struct stat folder;
    if (is_link ? is_trusted_user(status->st_uid) ||
                      (geteuid() != 0 && fstat(walk->folder, &folder) == 0 &&
                       folder.st_uid == status->st_uid && !(folder.st_mode & (S_IWGRP | S_IWOTH)))
                : walk->confined || !S_ISDIR(status->st_mode) || !path_is_suspect(part))
        return 0;
    snprintf(walk->suspect, sizeof walk->suspect,
             is_link ? "the link '%.512s' belongs to user %u, who may let it lead anywhere; it is not "
                       "followed. Name what it leads to"
                     : "'%.512s'" PATH_SUSPECT,
             path_of_file(part, walk->name, place, sizeof place), (unsigned)status->st_uid,
             (unsigned)status->st_mode & 07777);
    return -EXDEV;
}

/* Replaces a link by its target: walk->rest becomes the target and AFTER. Negative errno: too many links, or
 * the target leads out of a confined walk. */
static int follow_link(struct walk *walk, int link, const char *after) {
    char next[PATH_MAX];
    size_t left = strlen(after) + 1;
    struct statfs system;
    if (!walk->confined && fstatfs(walk->folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC) {
        /* The target of a link of /proc need not be where its text says: the kernel follows it. */
        int target = openat(walk->folder, walk->name, O_PATH | O_CLOEXEC);
        struct stat found;
        if (target >= 0 && (fstat(target, &found) < 0 || S_ISDIR(found.st_mode))) {
            memmove(walk->rest, *after ? after : ".", left + !*after);
            int r = check_part(walk, target, &found);
            return enter(walk, target) < 0 ? -errno : r;
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
    /* Whatever the umask, root makes none that root would refuse. */
    if (mkdirat(walk->folder, walk->name, geteuid() == 0 ? 0755 : 0777) < 0)
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

/* Walks one part of walk->rest down; makes a missing folder if MAKE. 1: more parts follow; 0: it was the last
 * one, walk->name in walk->folder; or a negative errno. */
static int walk_part(struct walk *walk, bool make) {
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
    bool follows = S_ISLNK(status.st_mode) && (*after || !walk->keep_last);
    int r = !S_ISLNK(status.st_mode) || follows ? check_part(walk, found, &status) : 0;
    if (r < 0)
        return r;
    if (follows)
        r = follow_link(walk, found, after);
    else if (folder && !S_ISDIR(status.st_mode))
        return -ENOTDIR;
    else if (!*after)
        return 0;
    else
        r = descend(walk, take_descriptor(found), after);
    return r < 0 ? r : 1;
}

/* Fails with CODE: "cannot WHAT 'PATH'", and why. Returns CODE. */
static int refuse_path(const struct walk *walk, int code, const char *what, const char *path,
                       struct failure *failure) {
    if (code == -EXDEV && walk->confined && !walk->suspect[0])
        return failure_set(failure, code,
                           "'%.256s' leads out of the run directory through a link; expected a "
                           "path below it",
                           path);
    if (code == -EXDEV)
        return failure_set_kind(failure, FAILURE_INPUT, code, "cannot %s '%.256s': %s", what, path,
                                walk->suspect);
    enum failure_kind kind =
        code == -ENOENT || code == -ENOTDIR || code == -EISDIR ? FAILURE_INPUT : FAILURE_SYSTEM;
    return failure_set_kind(failure, kind, code, "cannot %s '%.256s': %s", what, path, strerror(-code));
}

/* Refuses an empty path, and one with "..", which would lead out of the run directory. */
static int check_relative(const char *path, struct failure *failure) {
    if (path[0] == '\0')
        return failure_set(failure, -EINVAL, "a path is empty; expected a path below the run directory");
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return failure_set(failure, -EXDEV,
                               "'%.256s' leads out of the run directory; expected a path below it", path);
    }
    return 0;
}

/* Walks to the last part of PATH, making folders if MAKE: walk->folder then holds it, and walk->name is its
 * name there. It need not exist, and is no link unless links are kept. FROM: folders where relative and
 * absolute paths begin. */
static int walk_down(struct walk *walk, const int from[2], const char *path, bool make, const char *what,
                     const char *shown, struct failure *failure) {
    bool confined = path[0] != '/';
    *walk = (struct walk){
        .root = from[confined ? 0 : 1], .folder = -1, .confined = confined, .keep_last = walk->keep_last};
    size_t length = strnlen(path, PATH_BYTES_MAX + 1);
    if (length > PATH_BYTES_MAX)
        return failure_set(failure, -ENAMETOOLONG, "'%.64s...' is longer than %d bytes", path,
                           PATH_BYTES_MAX);
    if (walk->root < 0)
        return failure_set(failure, -EXDEV, "'%.256s' is absolute; expected a path below the run directory",
                           path);
    int r = confined ? check_relative(path, failure) : 0;
    if (r < 0)
        return r;
    memcpy(walk->rest, path, length + 1);
    r = enter(walk, openat(walk->root, ".", FOLDER));
    if (r == 0)
        while ((r = walk_part(walk, make)) > 0)
            continue;
    return r < 0 ? refuse_path(walk, r, what, shown, failure) : 0;
}

int path_open(int directory, int root, const char *path, int flags, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    int r = walk_down(&walk, (const int[]){directory, root}, path, false, "read", path, failure);
    if (r < 0)
        return r;
    int opened = openat(walk.folder, walk.name, flags | O_NOFOLLOW | O_CLOEXEC);
    return opened < 0 ? refuse_path(&walk, -errno, "read", path, failure) : opened;
}

/* Opens the folder of the file PATH for writing the file there, and gives its name (path.h). Returns a
 * descriptor, which the caller closes; negative with FAILURE if PATH is no file. */
int path_open_parent(int directory, const char *path, char ret_name[static NAME_MAX + 1],
                     struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1, .keep_last = path[0] != '/'};
    cleanup_close int root = open("/", FOLDER);
    int r = walk_down(&walk, (const int[]){directory, root}, path, false, "write", path, failure);
    if (r < 0)
        return r;
    if (strcmp(walk.name, ".") == 0 || strcmp(walk.name, "..") == 0)
        return failure_set(failure, -EINVAL, "'%.256s' has no name at its end", path);
    struct stat status;
    if (fstatat(walk.folder, walk.name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(status.st_mode) &&
        !S_ISLNK(status.st_mode))
        return failure_set(failure, S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL,
                           "cannot write '%.256s': the path is %s", path,
                           S_ISDIR(status.st_mode) ? "a folder" : "not a file");
    int folder = openat(walk.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return refuse_path(&walk, -errno, "write", path, failure);
    memcpy(ret_name, walk.name, sizeof walk.name);
    return folder;
}

/* Reads until SIZE bytes or the end of the file. Returns the number of bytes, or a negative errno. */
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
    return walk_down(&walk, (const int[]){directory, root}, path, true, "make folder", path, failure);
}

/* ---- paths of the engine */

/* Walks PATH as walk_down() does; a relative path begins in the working directory. */
static int walk_from_here(struct walk *walk, const char *path, bool make, const char *what,
                          struct failure *failure) {
    char whole[PATH_MAX] = "";
    cleanup_close int root = open("/", FOLDER);
    if (path[0] != '/' && !getcwd(whole, sizeof whole))
        return failure_set(failure, -errno, "cannot find out the working directory: %s", strerror(errno));
    size_t length = strlen(whole);
    if ((size_t)snprintf(whole + length, sizeof whole - length, "%s%s", length ? "/" : "", path) >=
        sizeof whole - length)
        return failure_set_kind(failure, FAILURE_INPUT, -ENAMETOOLONG,
                                "cannot %s '%.256s...': its path is longer than %d bytes", what, path,
                                PATH_BYTES_MAX);
    int r = path[0] ? 0 : failure_set(failure, -ENOENT, "cannot %s '': no name", what);
    return r < 0 ? r : walk_down(walk, (const int[]){-1, root}, whole, make, what, path, failure);
}

/* Makes the folder PATH and the folders above it. Returns its descriptor, which the caller closes, or
 * negative with FAILURE. */
int path_make(const char *path, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && stat(path, &status) < 0)
        return failure_set(failure, -ENOTDIR,
                           "cannot make folder '%.256s': a link with this name leads to a file "
                           "that does not exist; remove the link",
                           path);
    int r = walk_from_here(&walk, path, true, "make folder", failure);
    if (r < 0)
        return r;
    int folder = openat(walk.folder, walk.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return folder < 0 ? refuse_path(&walk, -errno, "open folder", path, failure) : folder;
}

/* 0 if PATH may be used by root without trusting another user. -EXDEV with FAILURE otherwise. A path that
 * cannot be walked is 0: the failure shows when the path is used. */
int path_check(const char *path, enum path_use use, struct failure *failure) {
    cleanup(walk_clear) struct walk walk = {.folder = -1};
    struct failure why;
    int r = walk_from_here(&walk, path, false, "use", &why);
    if (r == -EXDEV && failure)
        *failure = why;
    if (r < 0)
        return r == -EXDEV ? r : 0; /* any other failure shows when the path is used */
    cleanup_close int last = use == PATH_SOURCE ? open_part(&walk, false) : -1;
    return last >= 0 ? path_check_file(last, path, failure) : 0;
}

int path_check_file(int file, const char *path, struct failure *failure) {
    struct stat status;
    if (!path_is_suspect(file) || fstat(file, &status) < 0)
        return 0;
    return failure_set_kind(failure, FAILURE_INPUT, -EXDEV, "cannot use '%.512s': it" PATH_SUSPECT, path,
                            (unsigned)status.st_uid, (unsigned)status.st_mode & 07777);
}
