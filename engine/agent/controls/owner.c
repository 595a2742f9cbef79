#include "engine/agent/controls/owner.h"

#include "engine/agent/machine/process.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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
