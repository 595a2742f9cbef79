/*
 * Threads of this process, each pinned to a PU of its own: those that the process may run on, in their order.
 * While they have nothing to do they sleep, so that what some of them do is not disturbed by the others.
 */
#ifndef ASSAY_KERNELS_TEAM_H
#define ASSAY_KERNELS_TEAM_H

#include "rows.h"

/* Starts a team of COUNT threads, of which the caller is the first; ends the program if there are fewer PUs.
 * The threads exist until the program ends. */
void team_start(unsigned count);

/* Runs WORK in the first ACTIVE threads, each with its index, and returns when all are done. WATCH, which may
 * be NULL, runs from the moment when all of them are awake until the last one is done. */
void team_run(unsigned active, void (*work)(unsigned index, void *context), void *context,
              struct stopwatch *watch);

#endif
