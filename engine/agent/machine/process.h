/* What /proc/PID/stat says of a process (proc(5)). */
#ifndef ASSAY_MACHINE_PROCESS_H
#define ASSAY_MACHINE_PROCESS_H

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

#endif
