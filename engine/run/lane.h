/*
 * A lane: one placement (a core, or a whole node) on which the plan's positions are measured one after
 * another. A streamed experiment has one kernel a lane, which takes all rows on its input; any other runs one
 * command a unit. Private to this room.
 */
#ifndef ASSAY_RUN_LANE_H
#define ASSAY_RUN_LANE_H

#include "engine/run/run-state.h"

#include <regex.h>

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
    struct remote_command *command;
    size_t next;   /* position of the next answer */
    bool finished; /* every position has its answer, and the command has ended */

    /* streamed */
    size_t sent;      /* positions written to the kernel */
    struct text line; /* the answer line that is not whole yet */
    bool header_seen;
    bool tells_monotonic; /* the field after `start` is `start_monotonic` */
    size_t *columns;      /* for each response, which field of an answer it is */

    /* one command a unit */
    struct text output; /* of the unit that runs */
    struct lane_start unit_start;
    unsigned failures_in_a_row;

    struct text errors; /* what was written to stderr: by the unit, or the last of it by a streamed kernel */
};

/* All lanes of the measure phase. */
struct measurement {
    struct run *run;
    struct lane *lanes;
    size_t lane_count, lanes_open;
    regex_t *patterns; /* one a response, compiled; NULL when streamed */
    uint64_t units_total;
    double weight_total, weight_done;
    int64_t started_ns,
        window_ns; /* monotonic: of the phase, and of the window that the rate is taken over */
    uint64_t window_units;
    double rate;
    size_t ahead_bytes; /* rows that wait on this side for one streamed kernel */
    bool ended;         /* by a failure: why */
    struct failure why;
    struct event_source *commit_timer;
};

/* A unit's line in results.csv and in the journal. RESPONSES: one number a response, in the experiment's
 * order; NULL for a unit that failed, with WHY. */
void measurement_record(struct measurement *measurement, const struct lane *lane, size_t position,
                        const struct lane_start *start, const double *responses, const char *why);
/* Ends all lanes, with the reason; the first reason counts. */
void measurement_fail(struct measurement *measurement, const struct failure *why);

/* Starts the experiment's run command with the lane's values, in its node's work folder, pinned to its PUs.
 * SPECIFICATION holds the rest. The first of a lane is logged. */
int lane_launch(struct lane *lane, struct remote_command_specification *specification,
                const struct remote_command_callbacks *callbacks, struct failure *failure);

/* Starts a lane. When it is over it calls measurement_lane_over. */
int lane_start_streamed(struct lane *lane, struct failure *failure);
int lane_start_commands(struct lane *lane, struct failure *failure);
void measurement_lane_over(struct measurement *measurement, struct lane *lane);

#endif
