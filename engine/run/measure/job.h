/*
 * Units whose ranks assay starts, on one node or on several. On each node the agent's --job tool runs as long
 * as units are measured (engine/agent/TOOLS.md): it gives the working folders one path, hands us what mpirun
 * wants started on other nodes, and ends what is left of a unit when its command has ended badly, whatever
 * sessions and daemons its processes have made. So nodes need no ssh to each other, and no rank outlives its
 * unit. Private to this room.
 */
#ifndef ASSAY_MEASURE_JOB_H
#define ASSAY_MEASURE_JOB_H

#include "engine/foundation/failure.h"
#include "engine/run/campaign/experiment-job.h"
#include "engine/run/campaign/plan.h"

#include <stdbool.h>

struct job;
struct lane;
struct measurement;
struct run_node;

/* experiment_arguments_free() for the cleanup attribute. */
void job_free_words(char ***words);

/* Does the experiment have such units? */
bool job_is_wanted(const struct measurement *measurement);
/* *RET is the caller's also on failure. */
int job_new(struct measurement *measurement, struct job **ret, struct failure *failure);
/* Ends all that is left on all nodes, and the tools, which it waits for. NULL is fine. */
void job_free(struct job *job);

/* Waits until every node that is in serves and has nothing left of units before. Turns the loop. 0 also when
 * the measurement is ending meanwhile, or lost a node. */
int job_make_ready(struct job *job, struct failure *failure);

/* Does MPI work between all nodes of LANE? Turns the loop. A pair that cannot is named in the failure; that
 * it cannot be tried, for want of a compiler, is noted. */
int job_preflight(struct lane *lane, struct failure *failure);

/* The shape of the unit that LANE starts next. */
int job_shape(const struct lane *lane, struct experiment_shape *ret, struct failure *failure);
/* Appends what the host file of a unit has. */
void job_append_hosts(const struct lane *lane, const struct experiment_shape *shape, struct text *text);
/* Makes the command of a unit one that starts its ranks: *ARGUMENTS and *ENVIRONMENT (both owned and
 * NULL-ended) get what it takes. */
int job_adapt(const struct lane *lane, const struct experiment_shape *shape,
              const struct experiment_values *values, char ***arguments, char ***environment,
              struct failure *failure);

/* The command of LANE's unit has ended, or was killed. Ends what is left of it on its nodes if GOOD is false
 * or something was launched and has not ended, then calls THEN, perhaps at once. */
void job_end_unit(struct lane *lane, bool good, void (*then)(struct lane *lane));
/* Can all nodes of LANE's unit be heard? */
bool job_is_heard(const struct lane *lane);
/* Ends the units that are stuck: whose ranks have used no processor, and that have printed nothing, for the
 * experiment's `idle-timeout`. For now and then; the tools are asked every few seconds. */
void job_look(struct job *job);

#endif
