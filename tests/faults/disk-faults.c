/*
 * Disks that fail, and engines that die: loaded with LD_PRELOAD, it makes calls on files of one folder fail
 * as the environment says, and records them. What libc does inside itself (stdio) is not reached; a device
 * that is full in truth is a small tmpfs.
 *
 *   ASSAY_FAULT_FOLDER
 *       the folder; what lies below it is meant
 *   ASSAY_FAULT_NAME
 *       only files whose last name matches this (as a shell's)
 *   ASSAY_FAULT_CALL
 *       write (write, pwrite), sync (fsync, fdatasync, syncfs), rename, or any; default: any
 *   ASSAY_FAULT_ERROR
 *       EIO, ENOSPC, EDQUOT or EROFS; KILL: the process is killed instead; default: no call fails
 *   ASSAY_FAULT_FROM
 *       the call, counted from 1, from which on they fail; default: 1
 *   ASSAY_FAULT_SHORT
 *       the first write that is to fail writes half of its bytes instead, as one that fills a disk does
 *   ASSAY_FAULT_RECORD
 *       the calls that change what is in the folder are appended to this file, with what they write, and so
 *       is standard output, each where it comes; crash-states.c reads it
 *
 * Children do without it. faults.sh has the shell's side.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KILL = -1 };
static struct {
    char folder[PATH_MAX];
    const char *name, *call;
    int code; /* 0: none */
    long from;
    bool is_short;
    long calls;
    int record; /* -1: none */
    pid_t process;
} faults = {.record = -1};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- The record: lines "CALL INODE INODE OFFSET LENGTH NAME NAME", each followed by LENGTH bytes --------
 */

static void put(const void *bytes, size_t length) {
    if (syscall(SYS_write, faults.record, bytes, length) != (ssize_t)length)
        abort();
}

static void record(const char *call, ino_t one, ino_t other, off_t offset, const char *name,
                   const char *other_name, const void *bytes, size_t length) {
    char line[2 * NAME_MAX + 128];
    int before = errno;
    pthread_mutex_lock(&lock);
    put(line, (size_t)snprintf(line, sizeof line, "%s %ju %ju %jd %zu %s %s\n", call, (uintmax_t)one,
                               (uintmax_t)other, (intmax_t)offset, length, name, other_name));
    put(bytes, length);
    pthread_mutex_unlock(&lock);
    errno = before;
}

static ssize_t show(void *context, const char *bytes, size_t length) {
    (void)context;
    record("show", 0, 0, 0, "-", "-", bytes, length);
    return syscall(SYS_write, STDOUT_FILENO, bytes, length);
}

__attribute__((constructor)) static void begin(void) {
    static const struct {
        const char *name;
        int code;
    } errors[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}, {"KILL", KILL}};
    const char *folder = getenv("ASSAY_FAULT_FOLDER"), *error = getenv("ASSAY_FAULT_ERROR"),
               *from = getenv("ASSAY_FAULT_FROM"), *path = getenv("ASSAY_FAULT_RECORD");
    struct stat status;
    if (!folder)
        return; /* a constructor can be early: nothing is meant for this process */
    if (!realpath(folder, faults.folder) || stat(folder, &status) < 0) {
        fprintf(stderr, "disk-faults: ASSAY_FAULT_FOLDER '%s': %s\n", folder, strerror(errno));
        _exit(99);
    }
    for (size_t i = 0; error && i < sizeof errors / sizeof *errors; i++)
        if (strcmp(error, errors[i].name) == 0)
            faults.code = errors[i].code;
    if (error && faults.code == 0) {
        fprintf(stderr, "disk-faults: ASSAY_FAULT_ERROR '%s' is none that it knows\n", error);
        _exit(99);
    }
    /* strdup: setenv may move what getenv gave. */
    faults.name = getenv("ASSAY_FAULT_NAME") ? strdup(getenv("ASSAY_FAULT_NAME")) : NULL;
    faults.call = strdup(getenv("ASSAY_FAULT_CALL") ? getenv("ASSAY_FAULT_CALL") : "any");
    faults.from = from ? strtol(from, NULL, 10) : 1;
    faults.is_short = getenv("ASSAY_FAULT_SHORT") != NULL;
    faults.process = getpid();
    unsetenv("ASSAY_FAULT_FOLDER");
    unsetenv("LD_PRELOAD");
    if (!path)
        return;
    faults.record = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    stdout = fopencookie(NULL, "w", (cookie_io_functions_t){.write = show});
    record("root", status.st_ino, 0, 0, "-", "-", NULL, 0);
}

/* ---- What is meant --------------------------------------------------------------------------------------
 */

static bool is_below(const char *path) {
    size_t length = strlen(faults.folder);
    return strncmp(path, faults.folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* The path of a descriptor, or of NAME in the folder that it is; false when that is not below ours. */
static bool find_path(int descriptor, const char *name, char path[static PATH_MAX]) {
    char link[64];
    int before = errno;
    ssize_t length = 0;
    snprintf(link, sizeof link, descriptor == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", descriptor);
    if (name[0] != '/' && (length = readlink(link, path, PATH_MAX - 1)) < 0)
        length = 0;
    snprintf(path + length, (size_t)(PATH_MAX - length), "%s%s", length && name[0] ? "/" : "", name);
    char *deleted = strstr(path, " (deleted)");
    if (deleted)
        *deleted = '\0';
    errno = before;
    return faults.process == getpid() && is_below(path);
}

static bool fails_at(const char *call, const char *path) {
    if (faults.code == 0 || (strcmp(faults.call, "any") != 0 && strcmp(faults.call, call) != 0) ||
        (faults.name && fnmatch(faults.name, strrchr(path, '/') + 1, 0) != 0))
        return false;
    pthread_mutex_lock(&lock);
    bool fails = ++faults.calls >= faults.from;
    pthread_mutex_unlock(&lock);
    if (fails && faults.code == KILL)
        kill(getpid(), SIGKILL);
    if (fails)
        errno = faults.code;
    return fails;
}

static ino_t inode_of(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

/* The folder that PATH, below ours, is in. */
static ino_t folder_of(const char *path) {
    char folder[PATH_MAX];
    struct stat status;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return stat(folder, &status) == 0 ? status.st_ino : 0;
}

/* A call that changed the names in folders. */
static void record_names(const char *call, const char *path, const char *to) {
    struct stat status = {0};
    if (faults.record < 0)
        return;
    if (!to && lstat(path, &status) < 0)
        status.st_ino = 0;
    record(call, folder_of(path), to ? folder_of(to) : status.st_ino, 0, strrchr(path, '/') + 1,
           to ? strrchr(to, '/') + 1 : "-", NULL, 0);
}

/* ---- The calls ------------------------------------------------------------------------------------------
 */

#define NEXT(name, ...)                                                                                      \
    ({                                                                                                       \
        static __typeof__(&name) next;                                                                       \
        if (!next)                                                                                           \
            next = (__typeof__(next))dlsym(RTLD_NEXT, #name);                                                \
        next(__VA_ARGS__);                                                                                   \
    })

/* A full disk takes what it has room for and refuses the next call. */
ssize_t write(int descriptor, const void *bytes, size_t length) {
    char path[PATH_MAX];
    bool ours = find_path(descriptor, "", path);
    if (ours && fails_at("write", path)) {
        if (!faults.is_short || length < 2)
            return -1;
        faults.is_short = false;
        faults.from = faults.calls + 1;
        length /= 2;
    }
    ssize_t written = NEXT(write, descriptor, bytes, length);
    if (ours && faults.record >= 0 && written > 0)
        record("write", inode_of(descriptor), 0, lseek(descriptor, 0, SEEK_CUR) - written, "-", "-", bytes,
               (size_t)written);
    return written;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t at) {
    char path[PATH_MAX];
    bool ours = find_path(descriptor, "", path);
    if (ours && fails_at("write", path))
        return -1;
    ssize_t written = NEXT(pwrite, descriptor, bytes, length, at);
    if (ours && faults.record >= 0 && written > 0)
        record("write", inode_of(descriptor), 0, at, "-", "-", bytes, (size_t)written);
    return written;
}

int ftruncate(int descriptor, off_t length) {
    char path[PATH_MAX];
    int r = NEXT(ftruncate, descriptor, length);
    if (r == 0 && faults.record >= 0 && find_path(descriptor, "", path))
        record("cut", inode_of(descriptor), 0, length, "-", "-", NULL, 0);
    return r;
}

#define SYNC(name)                                                                                           \
    int name(int descriptor) {                                                                               \
        char path[PATH_MAX];                                                                                 \
        bool ours = find_path(descriptor, "", path);                                                         \
        if (ours && fails_at("sync", path))                                                                  \
            return -1;                                                                                       \
        int r = NEXT(name, descriptor);                                                                      \
        if (r == 0 && ours && faults.record >= 0)                                                            \
            record(#name, inode_of(descriptor), 0, 0, "-", "-", NULL, 0);                                    \
        return r;                                                                                            \
    }
SYNC(fsync)
SYNC(fdatasync)
SYNC(syncfs)

int openat(int folder, const char *name, int flags, ...) {
    char path[PATH_MAX];
    struct stat status;
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    bool ours = faults.record >= 0 && flags & (O_CREAT | O_TRUNC) && find_path(folder, name, path);
    bool exists = ours && lstat(path, &status) == 0;
    int descriptor = NEXT(openat, folder, name, flags, mode);
    if (ours && descriptor >= 0 && !exists)
        record_names("make", path, NULL);
    else if (ours && descriptor >= 0 && flags & O_TRUNC)
        record("cut", inode_of(descriptor), 0, 0, "-", "-", NULL, 0);
    return descriptor;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return openat(AT_FDCWD, path, flags, mode);
}

int mkdirat(int folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    int r = NEXT(mkdirat, folder, name, mode);
    if (r == 0 && find_path(folder, name, path))
        record_names("folder", path, NULL);
    return r;
}

int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    int r = NEXT(unlinkat, folder, name, flags);
    if (r == 0 && find_path(folder, name, path))
        record_names("remove", path, NULL);
    return r;
}

int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int renameat2(int from, const char *name, int to, const char *other, unsigned flags) {
    char path[PATH_MAX], target[PATH_MAX];
    bool ours = find_path(from, name, path) && find_path(to, other, target);
    if (ours && fails_at("rename", path))
        return -1;
    int r = NEXT(renameat2, from, name, to, other, flags);
    if (r == 0 && ours)
        record_names("rename", path, target);
    return r;
}

int renameat(int from, const char *name, int to, const char *other) {
    return renameat2(from, name, to, other, 0);
}

int rename(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}
