/*
 * Which units of a run have ended, and how: what a resumed run must not measure again. Filled as units end,
 * and from the results and the journal when a run is resumed (history.h).
 *
 * A unit is a position of the plan's order in one place (a node's core, or all of a node). It may have
 * several attempts: what failed in an earlier part of the run is tried again in the next, what a gate did not
 * like is repeated. A unit is done when one of its attempts is; it has failed when it ended and none was.
 *
 * Memory: 4 bytes a unit.
 */
#ifndef ASSAY_RECORD_LEDGER_H
#define ASSAY_RECORD_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEDGER_FLAGS = 8, LEDGER_ATTEMPTS_MAX = UINT16_MAX };

struct ledger;

struct ledger_totals {
    uint64_t done, failed;             /* units */
    uint64_t flagged;                  /* lines of the results with flags */
    uint64_t flagged_by[LEDGER_FLAGS]; /* the same, by flag */
    uint64_t repeated, repeats_failed; /* attempts at units that were done before */
};

/* An attempt at a unit that has ended. */
struct ledger_attempt {
    size_t place, position;
    unsigned attempt; /* from 1 to LEDGER_ATTEMPTS_MAX */
    bool done;
    unsigned flags; /* of LEDGER_FLAGS bits: 1 << enum gate_kind */
};

struct ledger *ledger_new(size_t positions); /* of the plan's order */
void ledger_free(struct ledger *ledger);     /* NULL is fine */

/* The number of the place CORE of NODE, which is made if it is new. */
size_t ledger_place(struct ledger *ledger, const char *node, const char *core);
size_t ledger_place_count(const struct ledger *ledger);
const char *ledger_place_node(const struct ledger *ledger, size_t place);
const char *ledger_place_core(const struct ledger *ledger, size_t place);

/* The units of NODE are another node's from now on: those that failed there do not count. */
void ledger_replace_node(struct ledger *ledger, const char *node);

/* Counts an attempt that has ended. Its place and position must be in the ledger. */
void ledger_add_attempt(struct ledger *ledger, const struct ledger_attempt *attempt);

bool ledger_is_done(const struct ledger *ledger, size_t place, size_t position);
/* Has the unit ended without ever being done, on a node that was not replaced? */
bool ledger_has_failed(const struct ledger *ledger, size_t place, size_t position);
/* ledger_attempts(): how many attempts have ended; ledger_flags(): the flags of the last one that was done.
 */
unsigned ledger_attempts(const struct ledger *ledger, size_t place, size_t position);
unsigned ledger_flags(const struct ledger *ledger, size_t place, size_t position);
/* Units of PLACE that are done, from position FIRST on, COUNT of them. */
uint64_t ledger_count_done(const struct ledger *ledger, size_t place, size_t first, size_t count);
const struct ledger_totals *ledger_totals(const struct ledger *ledger);

#endif
