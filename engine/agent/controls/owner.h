/* A process that can be known again: its number may have gone to another, its start may not. */
#ifndef ASSAY_CONTROLS_OWNER_H
#define ASSAY_CONTROLS_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct owner {
    pid_t pid;
    uint64_t start; /* field 22 of /proc/PID/stat: ticks since the boot */
};

/* Process PID. 0, or -ESRCH: it is gone, or dead and only waits to be reaped. */
int owner_find(pid_t pid, struct owner *ret);
/* Whether the process still is that process, and runs. */
bool owner_is_alive(const struct owner *owner);
bool owner_is(const struct owner *a, const struct owner *b);

#endif
