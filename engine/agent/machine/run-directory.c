#include "engine/agent/machine/run-directory.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* True where FOLDER is empty; with HAS_MARK it may have RUN_DIRECTORY_MARK. */
static bool is_empty(int folder, bool has_mark) {
    int own_descriptor = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = own_descriptor < 0 ? NULL : fdopendir(own_descriptor);
    if (!entries) {
        cleanup_close_descriptor(&own_descriptor);
        return false;
    }
    bool empty = true;
    struct dirent *entry;
    errno = 0;
    while (empty && (entry = readdir(entries)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                (has_mark && strcmp(entry->d_name, RUN_DIRECTORY_MARK) == 0);
    empty = empty && errno == 0;
    closedir(entries);
    return empty;
}

bool run_directory_is_named(int folder, int parent, const char *name) {
    struct stat here, there;
    return fstat(folder, &here) == 0 && fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Opens the parent of PATH, and copies its last component to NAME. Slashes at the end are ignored; "." and
 * ".." are refused. Returns a descriptor, or negative with a sentence. */
static int open_parent(const char *path, char name[NAME_MAX + 1], struct failure *failure) {
    char parent[PATH_MAX];
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (length - start > NAME_MAX || start >= PATH_MAX)
        return failure_set(failure, -ENAMETOOLONG, "cannot open the run directory '%.256s...': %s", path,
                           strerror(ENAMETOOLONG));
    snprintf(name, NAME_MAX + 1, "%.*s", (int)(length - start), path + start);
    snprintf(parent, sizeof parent, "%.*s", start > 0 ? (int)start : 1, start > 0 ? path : ".");
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return failure_set(failure, -EINVAL,
                           "the run directory '%s' is removed at the end, so its path must end in a name, "
                           "not in '.' or '..'",
                           path);
    int r = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return r < 0 ? failure_set(failure, -errno, "cannot open '%s': %s", parent, strerror(errno)) : r;
}

static bool belongs_to_us(int folder) {
    struct stat status;
    return fstat(folder, &status) == 0 && status.st_uid == geteuid();
}

/* Makes and locks the mark of FOLDER; it gets its name only when it is locked. Returns its descriptor; -1:
 * files cannot be locked here. */
static int make_mark(int folder) {
    static const char unlocked_name[] = RUN_DIRECTORY_MARK "-new";
    cleanup_close int mark =
        openat(folder, unlocked_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (mark >= 0 && flock(mark, LOCK_EX | LOCK_NB) == 0 &&
        renameat(folder, unlocked_name, folder, RUN_DIRECTORY_MARK) == 0)
        return take_descriptor(mark);
    (void)unlinkat(folder, unlocked_name, 0);
    return -1;
}

/* Locks the mark of an abandoned FOLDER, and returns its descriptor. -1: FOLDER or its mark belongs to
 * another user, there is no mark, or an agent has it locked. */
static int lock_abandoned(int folder) {
    struct stat status;
    cleanup_close int mark =
        folder < 0 || !belongs_to_us(folder)
            ? -1
            : openat(folder, RUN_DIRECTORY_MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (mark < 0 || fstat(mark, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        flock(mark, LOCK_EX | LOCK_NB) < 0)
        return -1;
    return take_descriptor(mark);
}

/* Opens or makes the folder PATH. It is removed later only if that is asked for, and it is new, empty, or
 * left by a dead agent. */
int run_directory_open(struct run_directory *ret, const char *path, unsigned flags, struct failure *failure) {
    struct run_directory directory = {.folder = -1, .parent = -1, .mark = -1};
    bool remove = flags & RUN_DIRECTORY_REMOVE, private = flags & RUN_DIRECTORY_PRIVATE;
    cleanup_close int parent = remove ? open_parent(path, directory.name, failure) : -1;
    if (remove && parent < 0)
        return parent;
    int r = path_check(path, PATH_PLACE, failure);
    if (r < 0)
        return r;
    bool made = mkdir(path, 0700) == 0;
    if (!made && errno != EEXIST)
        return failure_set(failure, -errno, "cannot make the run directory '%s': %s", path, strerror(errno));
    cleanup_close int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (private ? O_NOFOLLOW : 0));
    if (folder < 0)
        return failure_set(failure, -errno, "cannot open the run directory '%s': %s", path, strerror(errno));
    if (private && !belongs_to_us(folder))
        return failure_set(failure, -EPERM, "the run directory '%s' belongs to another user", path);
    directory.folder = take_descriptor(folder);
    cleanup_close int abandoned = remove && !made ? lock_abandoned(directory.folder) : -1;
    if (remove && (made || is_empty(directory.folder, abandoned >= 0)) &&
        run_directory_is_named(directory.folder, parent, directory.name))
        directory.parent = take_descriptor(parent);
    if (directory.parent >= 0)
        directory.mark = make_mark(directory.folder);
    *ret = directory;
    return 0;
}

void run_directory_clear(struct run_directory *directory) {
    cleanup_close_descriptor(&directory->folder);
    cleanup_close_descriptor(&directory->parent);
    cleanup_close_descriptor(&directory->mark);
}

/* Removes the run directory with all files, unless it existed before this agent. */
int run_directory_remove(const struct run_directory *directory, struct failure *failure) {
    if (directory->parent < 0)
        return 0;
    (void)fchmod(directory->folder, S_IRWXU); /* a program may have taken rights away */
    int r = file_empty_folder(directory->folder);
    if (r < 0)
        return failure_set(failure, r, "the run directory '%s' stays: cannot remove '.': %s", directory->name,
                           strerror(-r));
    /* Where the folder was moved away or replaced, its name is left alone. AT_REMOVEDIR removes empty folders
     * only. */
    if (run_directory_is_named(directory->folder, directory->parent, directory->name) &&
        unlinkat(directory->parent, directory->name, AT_REMOVEDIR) < 0)
        return failure_set(failure, -errno, "cannot remove the run directory '%s': %s", directory->name,
                           strerror(errno));
    return 0;
}

/* Removes, or only lists, the run directories in WORKSPACE whose agent has died. PATH: prints each with it;
 * NULL: prints none. */
void run_directory_find_abandoned(int workspace, const char *path, bool is_removed) {
    enum { FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int own_descriptor = openat(workspace, ".", FOLDER);
    DIR *entries = own_descriptor < 0 ? NULL : fdopendir(own_descriptor);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        cleanup_close int folder =
            strncmp(entry->d_name, "assay-", 6) == 0 ? openat(workspace, entry->d_name, FOLDER) : -1;
        cleanup_close int mark = lock_abandoned(folder);
        if (mark < 0)
            continue;
        int r = is_removed ? file_empty_folder(folder) : 0;
        if (is_removed && r == 0 && unlinkat(workspace, entry->d_name, AT_REMOVEDIR) < 0)
            r = -errno;
        if (path && !strpbrk(entry->d_name, "\t\n\\"))
            printf("folder\t%s\t%s/%s\n",
                   r < 0        ? strerror(-r)
                   : is_removed ? "removed"
                                : "abandoned",
                   path, entry->d_name);
    }
    if (entries)
        closedir(entries);
}
