/* A process that can be recognized later: its PID may be another's by then, its start is not. */
#ifndef ASSAY_CONTROLS_OWNER_H
#define ASSAY_CONTROLS_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct owner {
    pid_t pid;
    uint64_t start;     /* field 22 of /proc/PID/stat: ticks since the boot */
    uint64_t namespace; /* the PID namespace in which that is its PID: inode of /proc/self/ns/pid; 0: unknown
                         */
};

/* Process PID of our namespace. 0, or -ESRCH: it is gone, or dead and only waits to be reaped. */
int owner_find(pid_t pid, struct owner *ret);
/* Whether that process still runs. One of another PID namespace, a container's, cannot be looked at: it
 * counts as alive. */
bool owner_is_alive(const struct owner *owner);
bool owner_is(const struct owner *a, const struct owner *b);

#endif
