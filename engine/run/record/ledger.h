/*
 * Which units of a run have ended, and how: what a resumed run must not measure again. Filled as units end,
 * and from the journal when a run goes on.
 *
 * A unit is a position of the plan's order in one place (a node's core, or all of a node). It may have
 * several attempts: what failed in an earlier part of the run is tried again in the next, what a gate did not
 * like is repeated. A unit is done when one of its attempts is; it has failed when it ended and none was.
 *
 * Memory: a bit a unit, and some 24 bytes for each whose story is longer than one good attempt without flags.
 */
#ifndef ASSAY_RECORD_LEDGER_H
#define ASSAY_RECORD_LEDGER_H

#include "engine/run/campaign/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;

struct ledger_totals {
    uint64_t done, failed;             /* units */
    uint64_t flagged;                  /* lines of the results with flags */
    uint64_t flagged_by[GATE_KINDS];   /* the same, by gate */
    uint64_t repeated, repeats_failed; /* attempts at units that were done before */
    uint64_t lines;                    /* of the results: attempts that were done */
};

/* One attempt that has ended. */
struct ledger_attempt {
    size_t place, position;
    unsigned attempt; /* from 1 */
    bool done;
    unsigned flags; /* 1 << enum gate_kind */
};

enum { LEDGER_PLACES_MOST = 1 << 20 };

/* POSITIONS: of the plan's order. 0 or -ENOMEM. */
int ledger_new(size_t positions, struct ledger **ret);
void ledger_free(struct ledger *ledger); /* NULL is fine */

/* The number of the place CORE of NODE, which is made if it is new; SIZE_MAX when out of memory or of places.
 */
size_t ledger_place(struct ledger *ledger, const char *node, const char *core);
size_t ledger_place_count(const struct ledger *ledger);
const char *ledger_place_node(const struct ledger *ledger, size_t place);
const char *ledger_place_core(const struct ledger *ledger, size_t place);

/* 0, -ENOMEM, or -ERANGE for a position or place that is not there. */
int ledger_take(struct ledger *ledger, const struct ledger_attempt *attempt);

bool ledger_is_done(const struct ledger *ledger, size_t place, size_t position);
/* Has it ended, without ever being done? */
bool ledger_has_failed(const struct ledger *ledger, size_t place, size_t position);
/* How many attempts have ended; the flags of the last one that was done. */
unsigned ledger_attempts(const struct ledger *ledger, size_t place, size_t position);
unsigned ledger_flags(const struct ledger *ledger, size_t place, size_t position);
/* Units of PLACE that are done, from position FIRST on, COUNT of them; of all places with SIZE_MAX. */
uint64_t ledger_count_done(const struct ledger *ledger, size_t place, size_t first, size_t count);
const struct ledger_totals *ledger_totals(const struct ledger *ledger);

#endif
