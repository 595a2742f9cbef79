/*
 * The CPU time of our own family: the agent that started this sampler, and all that descends from it. What
 * the machine is busy with beyond that is somebody else's.
 *
 * Whom we descend from: our parent, and above it as many as run the same program (the worker's guardian,
 * which adopts what loses its parent). A child's time goes over to its parent when it is waited for, so the
 * sum hardly ever falls.
 */
#ifndef ASSAY_PROBES_FOREIGN_H
#define ASSAY_PROBES_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FOREIGN_PROCESS_LIMIT = 16384 };

/* 0 if it cannot be known: a kernel without CONFIG_PROC_CHILDREN. */
pid_t foreign_find_family(void);
/* The time of FAMILY so far in clock ticks; false if it cannot be known (too many processes, no memory). */
bool foreign_family_ticks(pid_t family, uint64_t *ret);

#endif
