/*
 * Threads of this process, each pinned to a PU of its own: those that the process may run on, in their order.
 * While they have nothing to do they sleep, so that what some of them do is not disturbed by the others.
 */
#ifndef ASSAY_KERNELS_TEAM_H
#define ASSAY_KERNELS_TEAM_H

#include "rows.h"

/* COUNT threads, the caller being the first; refused: more than there are PUs. They stay until the program
 * ends. */
void team_start(unsigned count);

/* The first ACTIVE of them do WORK, each with its index. WATCH, which may be NULL, runs from the moment when
 * all of them are awake on their PUs until the last one is done. */
void team_run(unsigned active, void (*work)(unsigned index, void *context), void *context,
              struct stopwatch *watch);

#endif
