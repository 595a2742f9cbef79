/*
 * The CPU time of assay's own processes on a node, the family: the agent that started this sampler, and all
 * its descendants. Other CPU time of the machine is used by foreign processes.
 *
 * The family begins with our parent, or its ancestors as long as they run the same program (the worker's
 * guardian, which adopts orphans). A child's time is added to its parent's when it is waited for, so that the
 * sum hardly ever falls.
 */
#ifndef ASSAY_PROBES_FOREIGN_H
#define ASSAY_PROBES_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FOREIGN_PROCESS_LIMIT = 16384 };

/* The first process of the family; 0: not known, on a kernel without CONFIG_PROC_CHILDREN. */
pid_t foreign_find_family(void);
/* The CPU time of FAMILY so far, in clock ticks; false: not known (too many processes, no memory). */
bool foreign_family_ticks(pid_t family, uint64_t *ret);

#endif
