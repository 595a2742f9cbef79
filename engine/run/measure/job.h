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

/* Does the experiment have units that start ranks, or that are placed on a job? */
bool job_is_wanted(const struct measurement *measurement);
/* Finds the MPI library of the nodes, if units have ranks. *RET is to be freed by the caller also after a
 * failure. */
int job_new(struct measurement *measurement, struct job **ret, struct failure *failure);
/* Ends everything that is left on all nodes and the tools, for which it waits. NULL is fine. */
void job_free(struct job *job);

/* Waits until the tool of every node that takes part is ready and no unit is left there. Turns the loop. 0
 * also when the measurement is ending meanwhile, or has lost a node. */
int job_make_ready(struct job *job, struct failure *failure);

/* Tests whether MPI works between all nodes of LANE. Turns the loop. The failure names a pair that cannot
 * exchange a byte. If the test cannot be built, for want of a compiler, that is noted. */
int job_preflight(struct lane *lane, struct failure *failure);

/* The shape of the unit that LANE starts next. */
int job_shape(const struct lane *lane, struct experiment_shape *ret, struct failure *failure);
/* Appends the content of a unit's host file. */
void job_append_hosts(const struct lane *lane, const struct experiment_shape *shape, struct text *text);
/* Makes *ARGUMENTS and *ENVIRONMENT (both owned, NULL-ended) of a unit those of the mpirun that starts its
 * ranks. */
int job_adapt(const struct lane *lane, const struct experiment_shape *shape,
              const struct experiment_values *values, char ***arguments, char ***environment,
              struct failure *failure);

/* The command of LANE's unit has ended, or was killed. Ends what is left of it on its nodes if GOOD is false
 * or something was launched and has not ended, then calls THEN, perhaps at once. */
void job_end_unit(struct lane *lane, bool good, void (*then)(struct lane *lane));
/* Are the links to all nodes of LANE's unit ready? */
bool job_nodes_are_reachable(const struct lane *lane);
/* Ends units whose ranks have used no processor and that have printed nothing for the experiment's
 * `idle-timeout`. To be called often; it asks the tools every few seconds. */
void job_end_stuck_units(struct job *job);

#endif
