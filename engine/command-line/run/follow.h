/*
 * Shows runs that other processes work on, until all of them have ended. Only their folders are read: the
 * journals (status.h), from where the last reading ended. A single run also shows its phases, notes and
 * failures.
 */
#ifndef ASSAY_COMMAND_LINE_RUN_FOLLOW_H
#define ASSAY_COMMAND_LINE_RUN_FOLLOW_H

#include "engine/command-line/run/progress.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

/* Follows runs until all have ended. One run is shown as a screen (page.h) if PROGRESS has one, else as if it
 * were carried out here; several runs have a line each. The paths of archives go to standard output. Returns
 * 0, or the failure of the run that ended worst, of the kind that its engine exited with; the smallest number
 * is the worst. An engine that was killed is FAILURE_SYSTEM. SIGINT and SIGTERM end following, and not the
 * runs, with *RET_INTERRUPTED; ENDS_RUNS: they are sent to the runs, which are followed until they have
 * ended. */
int follow_runs(const char *const *folders, size_t count, struct progress *progress, bool ends_runs,
                bool *ret_interrupted, struct failure *failure);

/* Shows the run in FOLDER as a screen until it has ended or SIGTERM comes; SIGINT is left to the run's
 * engine. Afterwards only the folder and the last messages are printed. */
int follow_on_screen(const char *folder, struct progress *progress, struct failure *failure);

#endif
