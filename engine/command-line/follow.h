/*
 * Shows runs that other processes work on, until all of them have ended: from their folders alone, by their
 * journals (status.h) and, of one run, the sentences that its log gets meanwhile.
 */
#ifndef ASSAY_COMMAND_LINE_FOLLOW_H
#define ASSAY_COMMAND_LINE_FOLLOW_H

#include "engine/command-line/progress.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

/* What SIGINT and SIGTERM mean while runs are followed. */
enum follow_signals {
    FOLLOW_LEAVES_RUNS, /* following ends, and the runs continue */
    FOLLOW_ENDS_RUNS,   /* the runs are asked to end, and followed until they have */
};

/* One run is shown by PROGRESS as if it were carried out here, several with a line each; archives' paths go
 * to standard output. When all have ended, 0 or the failure of the one that ended worst, of the kind that its
 * engine exited with: the smallest number is the worst. An engine that was killed is FAILURE_SYSTEM.
 * *RET_INTERRUPTED: FOLLOW_LEAVES_RUNS, and a signal came. */
int follow_runs(const char *const *folders, size_t count, struct progress *progress,
                enum follow_signals signals, bool *ret_interrupted, struct failure *failure);

#endif
