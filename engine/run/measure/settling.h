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

/* Without `repeat` in the design the rule is NULL, and all functions here do nothing. */
struct settling {
    struct run_record *record;
    const struct plan *plan;
    struct stopping_rule *rule; /* owned */
};

void settling_init(struct settling *settling, struct run_record *record, const struct plan *plan);
void settling_clear(struct settling *settling);
/* Refuses `repeat` between nodes with only one node, or with too many rows and nodes. */
int settling_check_nodes(const struct node_set *set, struct failure *failure);

/* A unit was done at PLACE of the ledger. RESPONSES: one for each response, in the experiment's order. */
int settling_add(struct settling *settling, size_t place, size_t position, const double *responses,
                 struct failure *failure);

/* As settling_add() for a ROW of results.csv, which has picked the response. CONTEXT is a settling with a
 * rule. For run_history_read_units(): read in order, the rows of earlier parts restore the state that these
 * parts had. */
int settling_add_row(const struct results_row *row, void *context, struct failure *failure);

/* Is POSITION not needed any more, because its row is settled? */
bool settling_skips(const struct settling *settling, size_t position);

/* Rows that are settled, and their remaining positions, for one placement. */
struct settling_saving {
    uint64_t rows, positions;
};
/* The repetitions before BLOCK's are over, and the block's own if it HAS_ENDED: settles and journals the rows
 * of BLOCK that are known well enough. TIMES no longer counts their remaining units on LANES lanes. Returns
 * what is saved. */
struct settling_saving settling_apply(struct settling *settling, const struct design_block *block,
                                      bool has_ended, struct unit_times *times, size_t lanes);

/* Notes how many rows are settled. IS_WHOLE: no unit of the run is left. */
void settling_note(struct settling *settling, bool is_whole);
uint64_t settling_count(const struct settling *settling);
/* Writes results/repeat.csv. */
int settling_record(struct settling *settling, struct failure *failure);

#endif
