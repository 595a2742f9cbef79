/* How the MPI library of a job learns where its ranks run, and what starts them there. Private to this
 * room. */
#ifndef ASSAY_MEASURE_JOB_MPI_H
#define ASSAY_MEASURE_JOB_MPI_H

#include "engine/foundation/failure.h"
#include "engine/run/campaign/experiment-job.h"
#include "engine/run/nodes/placement.h"

struct node_result;
struct node_set;

enum mpi_kind { MPI_UNKNOWN, MPI_OPEN_MPI, MPI_MPICH, MPI_INTEL };

/* Runs a short command of the library's in the work folder of all nodes, with the software of the experiment;
 * as node_command_run(). */
int mpi_run(struct node_set *set, const char **arguments, struct node_result **ret, struct failure *failure);
/* Asks all nodes; they must have the same, and one of those above. Recorded with the node's software. */
int mpi_find(struct node_set *set, enum mpi_kind *ret, struct failure *failure);

/* Appends the host file of a unit of SHAPE at AT. */
void mpi_append_hosts(enum mpi_kind kind, const struct placement *at, const struct experiment_shape *shape,
                      struct text *text);
/* *ARGUMENTS is what a rank does; mpirun and its options are put before it. *ENVIRONMENT gets
 * what has MPI start its daemons by the job's launcher. Both are owned and NULL-ended. VALUES: environment
 * that the ranks are to have. FOLDER: the working folder on all nodes, with the host file in it. */
int mpi_adapt(const struct node_set *set, enum mpi_kind kind, const char *folder,
              const struct experiment_shape *shape, const struct experiment_values *values, char ***arguments,
              char ***environment, struct failure *failure);

#endif
