/*
 * The last unit of each node of a run that goes on, from the end of results.csv. Lines count up to where the
 * journal says that the results stand. What is read again goes on from the byte up to which it was read; of
 * results that are long when they are first read, the last LAST_UNITS_TAIL bytes are.
 */
#ifndef ASSAY_RECORD_LAST_UNITS_H
#define ASSAY_RECORD_LAST_UNITS_H

#include "engine/run/record/history.h"

enum { LAST_UNITS_TAIL = 1 << 18 };

/* Sets `unit` and `flags` of the nodes of HISTORY, that of the run in FOLDER. What cannot be read is ignored.
 */
void last_units_read(struct run_history *history, const char *folder);

#endif
