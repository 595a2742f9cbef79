#include "engine/run/record/lock.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Host, process and time, a blank between, a newline at the end. */
enum { TEXT_SIZE = RUN_LOCK_HOST_SIZE + NUMBER_TEXT_SIZE + CLOCK_TEXT_SIZE };

struct run_lock {
    int file;
};

/* ---- The text ---------------------------------------------------------------------------------- */

static void own_host(char host[static RUN_LOCK_HOST_SIZE]) {
    if (gethostname(host, RUN_LOCK_HOST_SIZE) < 0 || !host[0])
        memcpy(host, "?", 2);
    host[RUN_LOCK_HOST_SIZE - 1] = '\0';
}

/* Reads the owner from the lock's text. An incomplete text, as while it is written, leaves owner->known
 * false. */
static void read_text(int file, struct run_lock_owner *owner) {
    char text[TEXT_SIZE], newline = '\0';
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    owner->known = sscanf(text, "%255[!-~] %" SCNd64 " %39[!-~]%c", owner->host, &owner->pid, owner->since,
                          &newline) == 4 &&
                   owner->pid > 0 && newline == '\n';
}

static int write_text(int file) {
    char text[TEXT_SIZE], host[RUN_LOCK_HOST_SIZE], since[CLOCK_TEXT_SIZE];
    own_host(host);
    int length = snprintf(text, sizeof text, "%s %jd %s\n", host, (intmax_t)getpid(),
                          clock_format(clock_wall_ns(), since));
    if (ftruncate(file, 0) < 0 || lseek(file, 0, SEEK_SET) < 0)
        return -errno;
    return file_write_all(file, text, (size_t)length);
}

/* ---- The lock ---------------------------------------------------------------------------------- */

/* Does the errno CODE of fcntl say that the file system cannot lock? */
static bool cannot_lock(int code) {
    return code == ENOLCK || code == ENOSYS || code == EOPNOTSUPP || code == EINVAL;
}

/* For file systems without locks: may the process in the lock's text still live? On another host it is taken
 * to. */
static bool may_be_alive(const struct run_lock_owner *owner) {
    char host[RUN_LOCK_HOST_SIZE];
    own_host(host);
    if (!owner->known)
        return false;
    return strcmp(owner->host, host) != 0 || kill((pid_t)owner->pid, 0) == 0 || errno == EPERM;
}

/* Refuses because OWNER works on the run. SURE false: files cannot be locked, so the sentence says how to
 * remove the lock. */
static int refuse(const char *folder, const char *path, const struct run_lock_owner *owner, bool sure,
                  struct failure *failure) {
    if (!owner->known)
        return failure_set_kind(failure, FAILURE_INPUT, -EBUSY, "another process works on the run '%s'",
                                folder);
    return failure_set_kind(
        failure, FAILURE_INPUT, -EBUSY,
        "process %" PRId64 " on host %s has been working on the run '%s' since %s%s%s%s", owner->pid,
        owner->host, folder, owner->since,
        sure ? "" : " (not certain: the file system has no locks; if the process has ended, remove '",
        sure ? "" : path, sure ? "" : "')");
}

static struct flock whole_file(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

/* Locks FILE. Where the file system cannot lock, it is enough that no owner is known to be alive. */
static int lock_file(int file, const char *folder, const char *path, struct failure *failure) {
    struct run_lock_owner owner = {0};
    struct flock lock = whole_file(F_WRLCK);
    if (fcntl(file, F_OFD_SETLK, &lock) == 0)
        return 0;
    int code = errno;
    read_text(file, &owner);
    if (code == EAGAIN || code == EACCES)
        return refuse(folder, path, &owner, true, failure);
    if (!cannot_lock(code))
        return failure_set(failure, -code, "cannot lock '%s': %s", path, strerror(code));
    return may_be_alive(&owner) ? refuse(folder, path, &owner, false, failure) : 0;
}

/* Locks the file .lock, which is made if it is missing, and writes host, process and time into it. */
int run_lock_take(const char *folder, struct run_lock **ret, struct failure *failure) {
    cleanup_free char *path = xformat("%s/.lock", folder);
    int r = path_check(folder, PATH_PLACE, failure);
    if (r < 0)
        return r;
    /* O_NONBLOCK: a FIFO in its place is refused and not waited for. */
    cleanup_close int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0)
        return failure_set(failure, -errno, "cannot open '%s': %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return failure_set(failure, -EINVAL, "'%s' is not a file", path);
    r = lock_file(file, folder, path, failure);
    if (r < 0)
        return r;
    r = write_text(file);
    if (r < 0)
        return failure_set(failure, r, "cannot write '%s': %s", path, strerror(-r));
    *ret = xmalloc(sizeof **ret);
    (*ret)->file = take_descriptor(file);
    return 0;
}

/* Unlocks. The text is emptied while the lock is still held: the next owner may have written its own
 * otherwise. */
void run_lock_free(struct run_lock *lock) {
    if (!lock)
        return;
    /* While it is still ours: who comes next has written already when it is not. */
    (void)!ftruncate(lock->file, 0);
    close(lock->file);
    free(lock);
}

void run_lock_cleanup(struct run_lock **lock) {
    run_lock_free(*lock);
}

/* Reads who has locked FOLDER. Where files cannot be locked, the owner in the text counts if it may be alive.
 */
int run_lock_read(const char *folder, struct run_lock_owner *ret, struct failure *failure) {
    cleanup_free char *path = xformat("%s/.lock", folder);
    struct run_lock_owner owner = {0};
    cleanup_close int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0 && errno != ENOENT && errno != ENOTDIR)
        return failure_set(failure, -errno, "cannot open '%s': %s", path, strerror(errno));
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        struct flock lock = whole_file(F_RDLCK); /* which a write lock is in the way of */
        int r = fcntl(file, F_OFD_GETLK, &lock) < 0 ? -errno : 0;
        read_text(file, &owner);
        owner.held = r == 0 ? lock.l_type != F_UNLCK : cannot_lock(-r) && may_be_alive(&owner);
    }
    *ret = owner;
    return 0;
}

/* ---- Its owner ---------------------------------------------------------------------------------- */

static void close_folder(DIR **folder) {
    if (*folder)
        closedir(*folder);
}

/* Does the process PID have FILE open? */
static bool has_open(int64_t pid, const struct stat *file) {
    cleanup_free char *path = xformat("/proc/%" PRId64 "/fd", pid);
    cleanup(close_folder) DIR *folder = opendir(path);
    const struct dirent *entry;
    struct stat status;
    while (folder && (entry = readdir(folder)))
        if (fstatat(dirfd(folder), entry->d_name, &status, 0) == 0 && status.st_dev == file->st_dev &&
            status.st_ino == file->st_ino)
            return true;
    return false;
}

/* Sends a signal to the process that works on the run. Its descriptor is opened before the check, so that
 * both are about one process. */
int run_lock_signal(const char *folder, int signal_number, struct run_lock_owner *ret,
                    struct failure *failure) {
    cleanup_free char *path = xformat("%s/.lock", folder);
    char host[RUN_LOCK_HOST_SIZE];
    struct stat file;
    int r = run_lock_read(folder, ret, failure);
    if (r < 0)
        return r;
    if (!ret->held || !ret->known)
        return failure_set_kind(failure, FAILURE_INPUT, -ESRCH, "no process works on the run '%s'", folder);
    own_host(host);
    if (strcmp(host, ret->host) != 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EREMOTE,
                                "process %" PRId64 " on host %s works on the run '%s'; expected 'assay stop' "
                                "to be called there",
                                ret->pid, ret->host, folder);
    /* The descriptor first: what it is about stays one process, and that is looked at then. */
    cleanup_close int process = pidfd_open((pid_t)ret->pid, 0);
    if (process < 0 || stat(path, &file) < 0 || !has_open(ret->pid, &file))
        return failure_set_kind(failure, FAILURE_INPUT, -ESRCH,
                                "cannot find the process that works on the run '%s': '%s' names process "
                                "%" PRId64 ", which has not opened that file; stop it where it runs",
                                folder, path, ret->pid);
    if (pidfd_send_signal(process, signal_number, NULL, 0) < 0)
        return failure_set(failure, -errno, "cannot signal process %" PRId64 ": %s", ret->pid,
                           strerror(errno));
    return 0;
}
