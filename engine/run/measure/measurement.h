/*
 * The measure phase. It goes block by block (plan->order->blocks): the state of the nodes' controls is set,
 * lanes are opened on the cores that the nodes then have, every lane measures the block's positions, and when
 * all are done the next block begins. Private to this room.
 */
#ifndef ASSAY_MEASURE_MEASUREMENT_H
#define ASSAY_MEASURE_MEASUREMENT_H

#include "engine/foundation/text-set.h"
#include "engine/run/campaign/pattern.h"
#include "engine/run/measure/job.h"
#include "engine/run/measure/lane.h"
#include "engine/run/measure/measure.h"
#include "engine/run/measure/slow-nodes.h"
#include "engine/run/measure/unit-times.h"

struct measurement {
    struct node_set *set;
    struct watch *watch;
    struct run_progress *progress;
    const struct design_block *block; /* the one that is being measured */
    struct lane *lanes;               /* of this block; between two, those of the last one, closed */
    size_t lane_count, lanes_open, lanes_counted; /* lanes_counted: those that units_total assumes */
    regex_t *patterns;                            /* one a response, compiled; NULL when streamed */
    struct text_set texts; /* of responses that are texts: such a response is the code of its label */

    /* Over all blocks and parts; later blocks are taken to have as many lanes as this one. */
    uint64_t units_total;
    uint64_t failed_in_part; /* units that failed in this part */
    bool opened;             /* the lanes are those of this block */
    bool noted;              /* the number of units was noted */
    bool catching_up;        /* the blocks are measured again on nodes that were brought in late */
    bool cut_noted;          /* a unit printed more than is kept, and that was noted */
    bool refused;            /* a lane has ended before its next position because time is short */

    int64_t started_ns;    /* monotonic: of the phase */
    uint64_t units_before; /* that had ended by then */
    size_t ahead_bytes;    /* rows that wait on this side for one streamed kernel */
    bool ended;            /* by a failure: why */
    struct failure why;
    struct event_source *commit_timer;
    struct job *job;           /* owned; NULL: units start no ranks */
    size_t mpi_nodes_tested;   /* of a job: the number of nodes that MPI was tried between; 0: none yet */
    bool testing_mpi;          /* MPI is being tried: losing a node does not stop the loop then */
    struct slow_nodes *speeds; /* owned; NULL: too few nodes to compare */
    struct unit_times *times;  /* owned */
    char first_failure[768];   /* of a unit, in a sentence; "": none has failed */
};

/* ---- measure.c */

/* Has a failure ended the measurement, or is the run ending? */
bool measurement_is_over(const struct measurement *measurement);
/* Ends all lanes. Of several failures the first is kept. */
void measurement_fail(struct measurement *measurement, const struct failure *why);

/* How long the unit of POSITION will take, ns; negative: not known. */
int64_t measurement_expect_ns(const struct measurement *measurement, size_t position);
/* Could the unit of POSITION end before the deadline if it began BUSY_NS from now? */
bool measurement_has_time(const struct measurement *measurement, size_t position, int64_t busy_ns);
/* The unit of POSITION was done from BEGUN_NS to END_NS, monotonic; negative: not known. */
void measurement_add_time(struct measurement *measurement, size_t position, int64_t begun_ns, int64_t end_ns);

/* ---- results.c */

/* UNIT of LANE has ended; called once for every unit. While its node is watched the unit is pending until
 * samples show the state that it ran under. */
void results_add(struct lane *lane, const struct measured_unit *unit);
/* Sets the end of the unit that was added last, if that unit is pending and its end is not known. */
void results_end_last(struct lane *lane, int64_t end_ns);
/* Writes pending units whose state is known, and applies the gates. ALL: those whose state is not known, too.
 * True: some are still pending. */
bool results_release(struct measurement *measurement, bool all);
/* As results_release() for one lane, whose nodes will change. */
void results_release_lane(struct lane *lane, bool all);
/* At the end of a pass: waits for the samples of pending units, and writes them. */
void results_wait(struct measurement *measurement);
/* Frees pending units without writing them. */
void results_drop(struct lane *lane);

/* ---- block.c */

/* LANE has answers for all its positions, or will get no more; the last such lane ends the block. */
void measurement_lane_finish(struct measurement *measurement, struct lane *lane);

/* ---- lane.c */

/* Takes NODE out of the run for the reason WORD (nodes.h) and ends its lanes. When the run cannot continue
 * without it, the measurement has failed. */
void measurement_lose_node(struct measurement *measurement, struct run_node *node, const char *word,
                           const struct failure *why);

/* ---- spares.c */

/* Are there both a spare and a node that is out and has units left? */
bool spares_are_wanted(const struct node_set *set);
/* Makes spares ready and lets them replace nodes that are out. Other nodes continue meanwhile. A spare that
 * is not fit is taken out itself. Turns the loop, so not to be called from a callback. 0 also when the
 * measurement is ending meanwhile. */
int spares_bring_in(struct measurement *measurement, struct failure *failure);

/* ---- block.c */

/* Opens lanes for NODE, which joined while a block is measured, if that block is the only one. Otherwise it
 * measures from the next block on, and catches up at the end. */
int block_join(struct measurement *measurement, struct run_node *node, struct failure *failure);
/* Sets the state of BLOCK, opens its lanes and measures what is left of it; both ends are journalled. 0 also
 * when a failure (measurement_fail()) or a signal has ended the measurement. */
int block_measure(struct measurement *measurement, const struct design_block *block, struct failure *failure);
/* Closes and frees the lanes. */
void block_clear(struct measurement *measurement);

#endif
