/* What /proc/PID/stat says of a process (proc(5)). */
#ifndef ASSAY_MACHINE_PROCESS_H
#define ASSAY_MACHINE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t parent;
    char state;              /* 'R', 'S', ...; 'Z' when it is dead and only waits to be reaped */
    uint64_t own_ticks;      /* processor time of its threads, in clock ticks */
    uint64_t children_ticks; /* of its children that were waited for */
    long threads;
    uint64_t start; /* clock ticks from the boot to its start: that of a later one with its PID differs */
};

/* Reads the real /proc, also where a captured machine stands for "/". 0, or -ESRCH: there is no such process.
 */
int process_read(pid_t pid, struct process *ret);

/* A process that can be recognized later: its PID may be another's by then, its start is not. */
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
