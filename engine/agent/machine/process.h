/* Processes by /proc/PID/stat (proc(5)). */
#ifndef ASSAY_MACHINE_PROCESS_H
#define ASSAY_MACHINE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t parent;
    char state;              /* 'R', 'S', ...; 'Z': dead and not reaped */
    uint64_t own_ticks;      /* CPU time of its threads, in clock ticks */
    uint64_t children_ticks; /* CPU time of its children that were waited for */
    long threads;
    uint64_t start; /* clock ticks from the boot to its start */
};

/* Reads a process from the real /proc, also where a captured machine is used. 0, or -ESRCH: there is no such
 * process. */
int process_read(pid_t pid, struct process *ret);

/* Identifies a process for later: its PID may be used again by then, but not with the same start. */
struct owner {
    pid_t pid;
    uint64_t start;     /* field 22 of /proc/PID/stat: ticks since the boot */
    uint64_t namespace; /* the PID namespace in which that is its PID: inode of /proc/self/ns/pid; 0: unknown
                         */
};

/* Identifies process PID of our namespace. 0, or -ESRCH: it has ended. */
int owner_find(pid_t pid, struct owner *ret);
/* True where the process still runs. A process of another PID namespace (a container's) cannot be checked,
 * and counts as alive. */
bool owner_is_alive(const struct owner *owner);
bool owner_is(const struct owner *a, const struct owner *b);

#endif
