/*
 * A lane: one placement (a core, or a whole node) on which a block's positions are measured one after
 * another. A streamed experiment has one kernel a lane and block, which takes all rows on its input; any
 * other runs one command a unit. Private to this room.
 */
#ifndef ASSAY_RUN_LANE_H
#define ASSAY_RUN_LANE_H

#include "engine/run/run-state.h"

enum { LANE_OUTPUT_MOST = 16 << 20 }; /* bytes of one unit's stdout; what is more is cut */

struct measurement;

/* When a unit began, by the node's two clocks. */
struct lane_start {
    int64_t wall_ns;
    int64_t monotonic_ns; /* negative: not known */
};

struct lane {
    struct measurement *measurement;
    struct run_node *node;
    char core[16];       /* the PU's number, or "all" */
    const unsigned *pus; /* pinned to these; owned */
    size_t pu_count;
    size_t first, end; /* its positions: from the first up to the end, which is the next block's */
    struct remote_command *command;
    size_t next;   /* position of the next answer */
    bool finished; /* every position has its answer, and the command has ended */

    /* streamed */
    size_t sent;      /* positions below this one were written to the kernel */
    struct text line; /* the answer line that is not whole yet */
    bool header_seen;
    bool tells_monotonic; /* the field after `start` is `start_monotonic` */
    size_t *columns;      /* for each response, which field of an answer it is */

    /* one command a unit */
    struct text output; /* of the unit that runs */
    struct lane_start unit_start;
    unsigned failures_in_a_row; /* over the end of a block, too */

    struct text errors; /* what was written to stderr: by the unit, or the last of it by a streamed kernel */
};

/* A lane on core number CORE of NODE, of its list, for the positions of BLOCK; on the whole node when the
 * experiment is placed so, and then CORE is 0. LANE is overwritten; on failure it can be closed. */
int lane_open(struct lane *lane, struct measurement *measurement, struct run_node *node, size_t core,
              const struct design_block *block, struct failure *failure);
/* Kills what still runs, and frees all; node, core and failures in a row stay to be read. */
void lane_close(struct lane *lane);

/* Starts the experiment's run command with the lane's values, in its node's work folder, pinned to its PUs.
 * SPECIFICATION holds the rest. The first of a measurement is logged. */
int lane_launch(struct lane *lane, struct remote_command_specification *specification,
                const struct remote_command_callbacks *callbacks, struct failure *failure);

/* Starts a lane. When it is over it calls measurement_lane_over. */
int lane_start_streamed(struct lane *lane, struct failure *failure);
int lane_start_commands(struct lane *lane, struct failure *failure);

#endif
