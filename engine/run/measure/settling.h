/*
 * Rows that are measured until they are known well enough (`repeat:` of a design; stopping-rule.h decides):
 * what the measure phase leaves out, and what the archive says. Private to this room.
 */
#ifndef ASSAY_MEASURE_SETTLING_H
#define ASSAY_MEASURE_SETTLING_H

#include "engine/design/order.h"
#include "engine/foundation/failure.h"
#include "engine/run/measure/unit-times.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/record/results-row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a design does not say `repeat`, there is no rule, and none of this does anything. */
struct settling {
    struct run_record *record;
    const struct plan *plan;
    struct stopping_rule *rule; /* owned */
};

void settling_init(struct settling *settling, struct run_record *record, const struct plan *plan);
void settling_clear(struct settling *settling);
/* Can the nodes that there are settle anything, and are rows and nodes not too many? */
int settling_check_nodes(const struct node_set *set, struct failure *failure);

/* A unit that was done. PLACE: of the ledger. RESPONSES: one a response, in the experiment's order. */
int settling_take(struct settling *settling, size_t place, size_t position, const double *responses,
                  struct failure *failure);

/* The same from a ROW of results.csv, which has picked the response; CONTEXT is the settling, which has a
 * rule. For run_history_read_units(): rows of the parts that are over, in their order, make the state that
 * these had.
 */
int settling_take_row(const struct results_row *row, void *context, struct failure *failure);

/* Is POSITION not needed any more? */
bool settling_leaves_out(const struct settling *settling, size_t position);

/* What is not needed any more, of one placement. */
struct settling_saving {
    uint64_t rows, positions;
};
/* The repetitions of BLOCK's rows are over, that of the block too if it HAS_ENDED: those that are known well
 * enough are settled, and journalled. TIMES no longer has what these would still have had on LANES lanes. */
struct settling_saving settling_apply(struct settling *settling, const struct design_block *block,
                                      bool has_ended, struct unit_times *times, size_t lanes);

/* The measurements are over; IS_WHOLE: nothing is left of them. Notes how many rows are settled. */
void settling_note(struct settling *settling, bool is_whole);
uint64_t settling_count(const struct settling *settling);
/* Writes results/repeat.csv. */
int settling_record(struct settling *settling, struct failure *failure);

#endif
