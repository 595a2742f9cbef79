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

struct lane {
    struct measurement *measurement;
    struct run_node *node;
    char core[16];       /* the PU's number, or "all" */
    const unsigned *pus; /* pinned to these; owned */
    size_t pu_count;
    struct remote_command *command;
    struct plan_values values;
    size_t next;   /* position of the next answer */
    bool finished; /* every position has its answer, and the command has ended */

    /* streamed */
    size_t sent;      /* positions written to the kernel */
    struct text line; /* the answer line that is not whole yet */
    bool header_seen;
    size_t *columns; /* for each response, which field of an answer it is */

    /* one command a unit */
    struct text output; /* of the unit that runs */
    int64_t unit_started_ns;
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
    bool ended; /* by a failure: why */
    struct failure why;
    struct event_source *commit_timer;
};

/* A unit's line in results.csv and in the journal. RESPONSES: one number a response, in the experiment's
 * order; NULL for a unit that failed, with WHY. */
void measurement_record(struct measurement *measurement, const struct lane *lane, size_t position,
                        int64_t start_ns, const double *responses, const char *why);
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
