/*
 * Disks that fail: loaded with LD_PRELOAD, it makes calls on files of one folder fail as the environment
 * says. What libc does inside itself (stdio) is not reached; a device that is full in truth is a small tmpfs.
 *
 *   ASSAY_FAULT_FOLDER   the folder; what lies below it is meant
 *   ASSAY_FAULT_NAME     only files whose last name matches this (as a shell's)
 *   ASSAY_FAULT_CALL     write (write, writev, pwrite), sync (fsync, fdatasync, syncfs), rename, or any;
 * default: any ASSAY_FAULT_ERROR    EIO, ENOSPC, EDQUOT or EROFS; default: EIO ASSAY_FAULT_FROM     the call,
 * counted from 1, that fails first; default: 1 ASSAY_FAULT_TIMES    how many fail; default: all from there on
 *   ASSAY_FAULT_WHILE    they fail only while a file of this name is there
 *   ASSAY_FAULT_SHORT    the first write that is to fail writes half of its bytes instead, as one that fills
 * a disk does
 *
 * Children do without it. faults.sh has the shell's side.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    char folder[PATH_MAX];
    const char *name, *call, *trigger;
    int code;
    long from, times;
    bool is_short;
    long calls, failed;
} faults;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long number_of(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text ? strtol(text, NULL, 10) : otherwise;
}

/* strdup: setenv may move what getenv gave. */
static const char *kept(const char *variable) {
    const char *text = getenv(variable);
    return text ? strdup(text) : NULL;
}

__attribute__((constructor)) static void begin(void) {
    static const struct {
        const char *name;
        int code;
    } errors[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}};
    const char *folder = getenv("ASSAY_FAULT_FOLDER"), *error = getenv("ASSAY_FAULT_ERROR");
    if (!folder)
        return; /* a constructor can be early: nothing is meant for this process */
    if (!realpath(folder, faults.folder)) {
        fprintf(stderr, "disk-faults: ASSAY_FAULT_FOLDER '%s': %s\n", folder, strerror(errno));
        _exit(99);
    }
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(error ? error : "EIO", errors[i].name) == 0)
            faults.code = errors[i].code;
    if (faults.code == 0) {
        fprintf(stderr, "disk-faults: ASSAY_FAULT_ERROR '%s' is none of EIO, ENOSPC, EDQUOT, EROFS\n", error);
        _exit(99);
    }
    faults.name = kept("ASSAY_FAULT_NAME");
    faults.call = kept("ASSAY_FAULT_CALL");
    faults.trigger = kept("ASSAY_FAULT_WHILE");
    faults.from = number_of("ASSAY_FAULT_FROM", 1);
    faults.times = number_of("ASSAY_FAULT_TIMES", LONG_MAX);
    faults.is_short = getenv("ASSAY_FAULT_SHORT") != NULL;
    unsetenv("ASSAY_FAULT_FOLDER");
    unsetenv("LD_PRELOAD");
}

static bool is_below(const char *path) {
    size_t length = strlen(faults.folder);
    if (strncmp(path, faults.folder, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return false;
    const char *last = strrchr(path, '/');
    return !faults.name || fnmatch(faults.name, last ? last + 1 : path, 0) == 0;
}

static bool fails_path(const char *call, const char *path) {
    if (faults.code == 0 ||
        (faults.call && strcmp(faults.call, "any") != 0 && strcmp(faults.call, call) != 0) ||
        !is_below(path) || (faults.trigger && access(faults.trigger, F_OK) < 0))
        return false;
    pthread_mutex_lock(&lock);
    bool fails = ++faults.calls >= faults.from && faults.failed < faults.times;
    faults.failed += fails;
    pthread_mutex_unlock(&lock);
    if (fails)
        errno = faults.code;
    return fails;
}

static bool fails(const char *call, int descriptor) {
    char link[64], path[PATH_MAX];
    int before = errno;
    if (faults.code == 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) {
        errno = before;
        return false;
    }
    path[length] = '\0';
    char *deleted = strstr(path, " (deleted)");
    if (deleted)
        *deleted = '\0';
    if (fails_path(call, path))
        return true;
    errno = before;
    return false;
}

#define NEXT(name, ...)                                                                                      \
    static __typeof__(&name) next;                                                                           \
    if (!next)                                                                                               \
        next = (__typeof__(next))dlsym(RTLD_NEXT, #name);                                                    \
    return next(__VA_ARGS__)

static ssize_t next_write(int descriptor, const void *bytes, size_t length) {
    NEXT(write, descriptor, bytes, length);
}

static ssize_t next_pwrite(int descriptor, const void *bytes, size_t length, off_t at) {
    NEXT(pwrite, descriptor, bytes, length, at);
}

/* A full disk takes what it has room for and refuses the next call. */
ssize_t write(int descriptor, const void *bytes, size_t length) {
    if (!fails("write", descriptor))
        return next_write(descriptor, bytes, length);
    if (!faults.is_short || length < 2)
        return -1;
    pthread_mutex_lock(&lock);
    faults.is_short = false;
    faults.failed--;
    pthread_mutex_unlock(&lock);
    return next_write(descriptor, bytes, length / 2);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t at) {
    return fails("write", descriptor) ? -1 : next_pwrite(descriptor, bytes, length, at);
}

ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
    if (fails("write", descriptor))
        return -1;
    NEXT(writev, descriptor, pieces, count);
}

int fsync(int descriptor) {
    if (fails("sync", descriptor))
        return -1;
    NEXT(fsync, descriptor);
}

int fdatasync(int descriptor) {
    if (fails("sync", descriptor))
        return -1;
    NEXT(fdatasync, descriptor);
}

int syncfs(int descriptor) {
    if (fails("sync", descriptor))
        return -1;
    NEXT(syncfs, descriptor);
}

int rename(const char *from, const char *to) {
    char path[PATH_MAX];
    if (faults.code != 0 && realpath(from, path) && fails_path("rename", path))
        return -1;
    NEXT(rename, from, to);
}
