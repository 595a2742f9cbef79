/*
 * The measure phase. It goes block by block (plan->order->blocks): the state of the nodes' controls is set,
 * lanes are opened on the cores that the nodes then have, every lane measures the block's positions, and when
 * all are done the next block begins. Private to this room.
 */
#ifndef ASSAY_MEASURE_MEASUREMENT_H
#define ASSAY_MEASURE_MEASUREMENT_H

#include "engine/design/labels.h"
#include "engine/run/campaign/pattern.h"
#include "engine/run/measure/job.h"
#include "engine/run/measure/lane.h"
#include "engine/run/measure/slow-nodes.h"
#include "engine/run/state/unit-state.h"

struct measurement {
    struct run *run;
    const struct design_block *block; /* the one that is being measured */
    struct lane *lanes;               /* of this block; between two, those of the last one, closed */
    size_t lane_count, lanes_open, lanes_counted; /* the last: as many as the totals below take for granted */
    regex_t *patterns;                            /* one a response, compiled; NULL when streamed */
    struct labels texts; /* of responses that are texts: such a response is the code of its label */

    /* Of all blocks and parts; the blocks to come are taken to have as many lanes as this one. */
    uint64_t units_total;
    uint64_t failed_here;             /* units that failed in this part */
    double weight_total, weight_done; /* of this part */
    size_t held;                      /* units of all lanes that wait for samples */
    int64_t looked_ns;                /* monotonic: at them, the last time */
    bool opened;                      /* the lanes are those of this block */
    bool noted;                       /* what there is to do was told */
    bool catching_up;                 /* the blocks are gone through again, for nodes that came late */
    bool cut_noted;                   /* a unit printed more than is kept, and that was said */
    bool refused;                     /* a lane was over before its next position, for want of time */

    int64_t started_ns,
        window_ns; /* monotonic: of the phase, and of the window that the rate is taken over */
    uint64_t window_units;
    double rate;
    size_t ahead_bytes; /* rows that wait on this side for one streamed kernel */
    bool ended;         /* by a failure: why */
    struct failure why;
    struct event_source *commit_timer;
    struct job *job;           /* owned; NULL: units start no ranks */
    size_t nodes_tried;        /* of a job, MPI was tried between so many; 0: not yet */
    bool trying;               /* it is being tried: whoever does that looks which nodes are there then */
    struct slow_nodes *speeds; /* owned; NULL: too few nodes to tell */
    int64_t speeds_looked_ns;  /* monotonic */
};

/* Every unit that ends, however it does, comes by here once. RESPONSES: one number a response, in the
 * experiment's order; NULL for a unit that failed, with WHY. While its node is watched, the unit is held
 * until samples tell what state it ran under (verdict.c). */
void measurement_record(struct measurement *measurement, struct lane *lane, const struct measured_unit *unit,
                        const double *responses, const char *why);

/* ---- verdict.c */

/* Judges held units whose state is known, writes their lines, and notes what is to be repeated. With ALL,
 * also those whose state is not. */
void verdict_release(struct measurement *measurement, bool all);
/* The same at once and with all, of a lane whose nodes will change. */
void verdict_release_lane(struct measurement *measurement, struct lane *lane);
/* At the end of a pass: waits for the samples of what is held, releases it, and says whether anything is to
 * be repeated. */
bool verdict_settle(struct measurement *measurement);

/* ---- node-speeds.c: is a node slower than the others? */

/* 0 or -ENOMEM. */
int node_speeds_start(struct measurement *measurement);
/* UNIT is done; how long it took is looked at where it is known. */
void node_speeds_add(struct measurement *measurement, const struct lane *lane,
                     const struct measured_unit *unit);
/* Every few seconds, or NOW. 0 or -ENOMEM. */
int node_speeds_look(struct measurement *measurement, bool now);

/* ---- measure.c, for verdict.c */

/* A unit's line in results.csv and in the journal. */
void measurement_write(struct measurement *measurement, const struct lane *lane,
                       const struct measured_unit *unit, const struct unit_state *state,
                       const double *responses, const char *why);
/* Ends all lanes, with the reason; the first reason counts. */
void measurement_fail(struct measurement *measurement, const struct failure *why);
/* LANE has answered for all its positions, or will not; the last of them ends the block. */
void measurement_lane_over(struct measurement *measurement, struct lane *lane);

/* NODE is out of the run (node-out.h), and all its lanes are over; or, when the run cannot go on without it,
 * the measurement has failed. */
void measurement_lose_node(struct measurement *measurement, struct run_node *node, const char *word,
                           const struct failure *why);

/* ---- spares.c */

/* Is a node out whose share a spare could measure? */
bool spares_are_wanted(const struct run *run);
/* Makes spares ready and gives them the shares of nodes that are out, as long as there are both; what runs on
 * other nodes goes on meanwhile. A spare that is no good is out itself. Not from a callback: it turns the
 * loop. 0 also when the measurement is ending meanwhile. */
int spares_bring_in(struct measurement *measurement, struct failure *failure);

/* ---- block.c */

/* Opens the lanes of a node that was brought in while a block is being measured, if that block is all there
 * is; else they come with the next, and what they missed at the end. */
int block_join(struct measurement *measurement, struct run_node *node, struct failure *failure);
/* Sets the state of BLOCK, opens its lanes and measures what is left of it. 0 also when the measurement was
 * ended by a failure that measurement_fail() took, or by a signal. Journals both ends. */
int block_measure(struct measurement *measurement, const struct design_block *block, struct failure *failure);
/* Frees the lanes. */
void block_clear(struct measurement *measurement);

#endif
