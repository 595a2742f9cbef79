/*
 * The deadline of a run: when what it has was only lent until, and how much of that must be left for ending
 * in good order. Pure arithmetic; who measures and who acts is reservation.c.
 *
 * The earliest counts of: `walltime: limit` from the run's beginning, --until, and what the testbed knows. It
 * is turned into monotonic time when it becomes known, so that a wall clock that is set later does not
 * matter.
 *
 * What must be left, the reserve, is a sum of what was measured, and of what is usual:
 *
 *   restore    putting the controls back takes about as long as setting them did: the longest of the control
 *              phase (without its proof) and of the blocks' states (without their warm-up)
 *   collect    three times as long as comparing the clocks took at the start: they are compared again, and
 *              the nodes are asked what software ran and what the agents cost
 *   teardown   as long as the setup commands took together; nothing where there is no teardown
 *   seal       what the run's folder has, at 20 MB/s and 1000 files/s, which is slow
 *   margin     what nobody can measure: the campaign's; else a tenth of the sum, and 5 s at least
 *
 * A unit that still runs when the reserve begins is asked to end, and gets half the margin to do so.
 */
#ifndef ASSAY_NODES_DEADLINE_H
#define ASSAY_NODES_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

enum deadline_source { DEADLINE_NONE, DEADLINE_WALLTIME, DEADLINE_UNTIL, DEADLINE_TESTBED, DEADLINE_SOURCES };
/* "none", "walltime", "until", "testbed" */
extern const char *const deadline_source_names[];

enum deadline_cost { DEADLINE_RESTORE, DEADLINE_COLLECT, DEADLINE_TEARDOWN, DEADLINE_SEAL, DEADLINE_COSTS };

struct deadline {
    enum deadline_source source;
    int64_t end_ns;    /* monotonic */
    int64_t wall_ns;   /* the same, for people and records */
    int64_t margin_ns; /* negative: the default */
    int64_t costs_ns[DEADLINE_COSTS];
    /* The end that each source names; wall_ns 0: none. */
    struct deadline_end {
        int64_t end_ns, wall_ns;
    } ends[DEADLINE_SOURCES];
};

/* SOURCE says that the end is at WALL_NS, whatever it said before: of all sources' ends the earliest counts.
 * NOW_*: the two clocks, read together. True if another end counts now than before. */
bool deadline_consider(struct deadline *deadline, enum deadline_source source, int64_t wall_ns,
                       int64_t now_wall_ns, int64_t now_monotonic_ns);
/* COST took TOOK_NS; the longest time counts. */
void deadline_took(struct deadline *deadline, enum deadline_cost cost, int64_t took_ns);
/* The run's folder has so many BYTES and FILES now, which sealing will have to read. */
void deadline_set_size(struct deadline *deadline, uint64_t bytes, uint64_t files);
/* The time that must be left for ending the run. */
int64_t deadline_reserve_ns(const struct deadline *deadline);
/* How long until the reserve begins; INT64_MAX without a deadline, negative when it has begun. */
int64_t deadline_left_ns(const struct deadline *deadline, int64_t now_ns);
/* How long a unit has that is asked to end; part of the reserve. */
int64_t deadline_grace_ns(const struct deadline *deadline);
/* The margin: that of the campaign, or the default. */
int64_t deadline_margin_ns(const struct deadline *deadline);

#endif
