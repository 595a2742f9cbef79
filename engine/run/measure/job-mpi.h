/* How the MPI library of a job is told where its ranks are to run, and by what to start them. Private to this
 * room. */
#ifndef ASSAY_MEASURE_JOB_MPI_H
#define ASSAY_MEASURE_JOB_MPI_H

#include "engine/foundation/failure.h"
#include "engine/run/campaign/experiment-job.h"
#include "engine/run/campaign/placement.h"

struct run;

enum mpi_kind { MPI_UNKNOWN, MPI_OPEN_MPI, MPI_MPICH, MPI_INTEL };

/* The program that starts ranks, and what it is told besides; the caller frees (job_free_words). */
int mpi_program(const struct run *run, char ***ret, struct failure *failure);
/* Asks all nodes; they must have the same, and one of those above. Recorded with the node's software. */
int mpi_find(struct run *run, enum mpi_kind *ret, struct failure *failure);

/* Appends the host file of a unit of SHAPE at AT. */
void mpi_append_hosts(enum mpi_kind kind, const struct placement *at, const struct experiment_shape *shape,
                      struct text *text);
/* *ARGUMENTS is what a rank does; mpirun, and what it has to be told, come in front of it. *ENVIRONMENT gets
 * what has MPI start its daemons by the job's launcher. Both are owned and NULL-ended. VALUES: environment
 * that the ranks are to have. FOLDER: the working folder on all nodes, with the host file in it. */
int mpi_adapt(const struct run *run, enum mpi_kind kind, const char *folder,
              const struct experiment_shape *shape, const struct experiment_values *values, char ***arguments,
              char ***environment, struct failure *failure);

#endif
