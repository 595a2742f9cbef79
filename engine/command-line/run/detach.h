/*
 * Engines that outlive the command that began them: `--detach` makes a process in a session of its own, which
 * no terminal's end reaches, and `--detach=job` has the engine in the job that the testbed submits.
 *
 * What a detached engine prints is in the file RUN.out beside its run's folder.
 */
#ifndef ASSAY_COMMAND_LINE_RUN_DETACH_H
#define ASSAY_COMMAND_LINE_RUN_DETACH_H

#include "engine/command-line/run/execution.h"

/* Starts the engine of EXECUTION and returns when the run's folder is made, *RET_FOLDER (the caller frees),
 * and its journal has its name. NULL: the run was complete, and its archive's path was printed. After a
 * failure before that nothing is left behind. */
int detach_execution(const struct execution *execution, char **ret_folder, struct failure *failure);

#endif
