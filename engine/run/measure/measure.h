/* The measure phase. */
#ifndef ASSAY_MEASURE_MEASURE_H
#define ASSAY_MEASURE_MEASURE_H

#include "engine/run/measure/settling.h"
#include "engine/run/state/watch.h"

/* The progress of the measurements, over all parts of a run. */
struct run_progress {
    struct settling settling;
    double *expected_seconds; /* owned; of a unit of each row, by a model; NULL: none was named */
    size_t block_number;      /* of the block that is being measured, or was last, from 1: blocks are counted
                                 as they are measured */
    size_t reached;           /* the first position of the last block that was begun */
};

void run_progress_clear(struct run_progress *progress);

/* Measures all units that are not done, on the nodes of WATCH. */
int measure(struct watch *watch, struct run_progress *progress, struct failure *failure);
/* Are there units among COUNT positions from FIRST on that a gate wants measured again? A part of a run may
 * have ended between a unit and its repetition. False in the first part. */
bool measure_wants_repeats(const struct node_set *set, size_t first, size_t count);

#endif
