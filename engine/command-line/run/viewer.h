/*
 * The screen of a run that this process carries out: another process, `assay watch RUN --screen`, draws it
 * from the run's folder, so that neither the drawing nor a terminal that is slow or stopped holds the run up.
 */
#ifndef ASSAY_COMMAND_LINE_RUN_VIEWER_H
#define ASSAY_COMMAND_LINE_RUN_VIEWER_H

#include <sys/types.h>

/* The process that shows the run in FOLDER; 0: it could not be started. */
pid_t viewer_start(const char *folder);
/* Ends VIEWER, and returns when the terminal is as it was before. 0: there is none. */
void viewer_stop(pid_t viewer);

#endif
