#include "engine/agent/machine/process.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads /proc/PID/stat. -ESRCH: there is no such process. */
int process_read(pid_t pid, struct process *ret) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    cleanup_close int file = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t length = file < 0 ? -1 : read(file, line, sizeof line - 1);
    if (length <= 0)
        return -ESRCH;
    line[length] = '\0';
    /* "12 (name) S 1 ...": the name may hold anything, parentheses too. */
    const char *rest = strrchr(line, ')');
    uint64_t user, system, children_user, children_system;
    if (!rest || sscanf(rest,
                        ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64
                        " %" SCNu64 " %*d %*d %ld %*d %" SCNu64,
                        &ret->state, &ret->parent, &user, &system, &children_user, &children_system,
                        &ret->threads, &ret->start) != 8)
        return -ESRCH;
    ret->own_ticks = user + system;
    ret->children_ticks = children_user + children_system;
    return 0;
}

/* ---- owners */

static uint64_t own_namespace(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) < 0 ? 0 : status.st_ino;
}

int owner_find(pid_t pid, struct owner *ret) {
    struct process process;
    if (process_read(pid, &process) < 0 || strchr("ZXx", process.state))
        return -ESRCH;
    *ret = (struct owner){.pid = pid, .start = process.start, .namespace = own_namespace()};
    return 0;
}

bool owner_is(const struct owner *a, const struct owner *b) {
    return a->pid == b->pid && a->start == b->start && a->namespace == b->namespace;
}

bool owner_is_alive(const struct owner *owner) {
    struct owner now;
    return owner->namespace != own_namespace() ||
           (owner_find(owner->pid, &now) == 0 && owner_is(owner, &now));
}
