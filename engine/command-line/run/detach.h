/*
 * Engines that outlive the command that began them: `--detach` makes a process in a session of its own, which
 * no terminal's end reaches, and `--detach=job` has the engine in the job that the testbed submits.
 *
 * What a detached engine prints is in the file RUN.out beside its run's folder.
 */
#ifndef ASSAY_COMMAND_LINE_RUN_DETACH_H
#define ASSAY_COMMAND_LINE_RUN_DETACH_H

#include "engine/command-line/run/execution.h"

/* Begins EXECUTION so, and returns when the run has its folder, *RET_FOLDER (the caller's), and its journal
 * has its name. What fails before that is this function's failure, and nothing is left behind. NULL: the run
 * was complete, and its archive's path has been printed. */
int detach_execution(const struct execution *execution, char **ret_folder, struct failure *failure);

#endif
