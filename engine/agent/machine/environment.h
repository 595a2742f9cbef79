/* The environment of the agent, and so of every command that it starts. */
#ifndef ASSAY_MACHINE_ENVIRONMENT_H
#define ASSAY_MACHINE_ENVIRONMENT_H

#include <stdbool.h>

/* Removes variables that make this process a rank of an MPI program or a task of a scheduler's step: MPI
 * programs that commands start would believe to be that rank. Sets LC_ALL to C.UTF-8 (or to C, where the
 * system lacks it), so that every program reads and writes 0.5 with a point. */
void environment_prepare(void);

/* True where "NAME=VALUE" is such a variable of a rank or a task; variables of the job or the allocation are
 * not. */
bool environment_is_of_rank(const char *variable);

#endif
