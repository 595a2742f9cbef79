#include "engine/agent/probes/foreign.h"

#include "engine/agent/machine/process.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTENT = 16 << 10, ANCESTORS = 8 };

struct family {
    pid_t *waiting; /* to be looked at */
    size_t count, capacity, seen;
    char *content;
};

static ssize_t read_file(const char *path, char *buffer, size_t size) {
    cleanup_close int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    while (file >= 0 && length < size - 1) {
        ssize_t got = read(file, buffer + length, size - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    buffer[length] = '\0';
    return file < 0 ? -errno : (ssize_t)length;
}

static bool is_same_program(pid_t pid) {
    struct stat own, other;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

pid_t foreign_find_family(void) {
    char path[64];
    pid_t family = getppid();
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (access(path, R_OK) < 0)
        return 0;
    for (int above = 0; above < ANCESTORS && is_same_program(family); above++) {
        struct process process;
        if (process_read(family, &process) < 0 || process.parent <= 1 || !is_same_program(process.parent))
            break;
        family = process.parent;
    }
    return family;
}

static bool add_children(struct family *family, pid_t pid, const char *thread) {
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, thread);
    ssize_t length = read_file(path, family->content, CONTENT);
    if (length >= CONTENT - 1)
        return false;
    char *at = family->content, *end;
    for (long child; length > 0 && (child = strtol(at, &end, 10)) > 0; at = end) {
        if (list_reserve(&family->waiting, &family->capacity, family->count + 1, sizeof *family->waiting,
                         FOREIGN_PROCESS_LIMIT) < 0)
            return false;
        family->waiting[family->count++] = (pid_t)child;
    }
    return true;
}

/* A child is a thread's. */
static bool add_children_of_threads(struct family *family, pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    bool whole = true;
    struct dirent *entry;
    while (threads && whole && (entry = readdir(threads)))
        if (entry->d_name[0] != '.')
            whole = add_children(family, pid, entry->d_name);
    if (threads)
        closedir(threads);
    return whole;
}

bool foreign_family_ticks(pid_t pid, uint64_t *ret) {
    cleanup_free char *content = malloc(CONTENT);
    struct family family = {.content = content};
    uint64_t ticks = 0;
    bool whole = content != NULL;
    for (bool more = true; whole && more;
         more = family.count > 0, pid = more ? family.waiting[--family.count] : 0) {
        struct process process;
        if (++family.seen > FOREIGN_PROCESS_LIMIT)
            whole = false;
        else if (process_read(pid, &process) == 0) {
            char thread[16];
            ticks += process.own_ticks + process.children_ticks;
            snprintf(thread, sizeof thread, "%d", (int)pid);
            whole = process.threads == 1 ? add_children(&family, pid, thread)
                                         : add_children_of_threads(&family, pid);
        }
    }
    free(family.waiting);
    if (whole)
        *ret = ticks;
    return whole;
}
