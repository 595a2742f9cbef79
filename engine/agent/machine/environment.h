/* The environment that the agent, and so every command that it starts, has. */
#ifndef ASSAY_MACHINE_ENVIRONMENT_H
#define ASSAY_MACHINE_ENVIRONMENT_H

#include <stdbool.h>

/* Removes from this process's environment whatever says that it is a rank of an MPI program or a task of a
 * step, so that ranks which commands start do not take themselves for that rank, and sets LC_ALL to C.UTF-8
 * (C, where the system does not have that), so that every program reads and writes 0.5 with a point. */
void environment_prepare(void);

/* Is "NAME=VALUE" such a variable of a rank or a task? Variables of the job or the allocation are none. */
bool environment_is_of_rank(const char *variable);

#endif
