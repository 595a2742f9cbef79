/*
 * A lane: one placement (a core, a whole node, or the job) on which a block's positions are measured one
 * after another. A streamed experiment has one kernel a lane and block, which takes all rows on its input;
 * any other runs one command a unit. Private to this room.
 */
#ifndef ASSAY_MEASURE_LANE_H
#define ASSAY_MEASURE_LANE_H

#include "engine/run/campaign/experiment-job.h"
#include "engine/run/campaign/placement.h"
#include "engine/run/measure/held-units.h"
#include "engine/run/run-state.h"
#include "engine/run/state/unit-state.h"

/* Bytes of what one unit writes that are kept; what is more is counted, noted and dropped. */
enum { LANE_OUTPUT_MOST = 16 << 20, LANE_ERRORS_MOST = 64 << 10 };

struct measurement;

struct lane {
    struct measurement *measurement;
    struct placement at; /* between blocks, freed but for the node and the core */
    size_t shares;       /* of it, so many have a part in the unit that runs */
    size_t first, count; /* its positions in this pass: COUNT from the first on, or of the list */
    size_t *list;        /* owned; NULL: all from the first on */
    unsigned pass;       /* from 1; later ones measure again what a gate did not like */
    struct remote_command *command;
    size_t next;   /* which of its positions is answered next, from 0: lane_position() */
    bool finished; /* every position has its answer, and the command has ended */
    bool refused;  /* there is no time for its next position, so that it ends before it */

    struct held_units held; /* answered, and waiting for the samples of their node */
    int64_t since_ns;       /* monotonic: no unit that is not judged began before; INT64_MIN: not known */
    size_t *to_repeat;      /* owned; positions that the next pass measures again */
    size_t repeat_count;

    /* streamed */
    size_t sent; /* so many of its positions were written to the kernel */
    bool input_closed;
    struct text line; /* the answer line that is not whole yet */
    int64_t ahead_ns; /* how long the rows that were sent, and not answered, will take; with a deadline */
    int64_t last_begun_ns; /* monotonic: of the last answer's unit; negative: not known, or there is none */
    bool header_seen;
    bool tells_monotonic; /* the field after `start` is `start_monotonic` */
    size_t *columns;      /* for each response, which field of an answer it is */
    bool header_sent;
    int64_t heard_ns; /* monotonic, of the engine: since when an answer is waited for */
    int64_t
        asked_ns; /* the same: when a kernel that was silent for too long was asked to end; 0: it was not */

    /* one command a unit */
    size_t writes;          /* of files that it finds in its folder, under way */
    struct failure written; /* what went wrong with them; .code is 0: nothing */
    void (*after_writes)(struct lane *lane, const struct failure *why);
    struct text output; /* of the unit that runs */
    struct unit_start unit_start;

    /* of units that have ranks (job.h) */
    struct experiment_shape shape;
    void (*after_sweep)(struct lane *lane); /* NULL: nothing is swept */
    uint64_t busy_us, printed;              /* when they were last looked at */
    int64_t idle_since_ns;                  /* monotonic; 0: not looked at */
    bool stuck;                             /* and so it was told to end */

    unsigned failures_in_a_row; /* over the end of a block, too */
    struct text errors; /* what was written to stderr: by the unit, or the last of it by a streamed kernel */
};

/* A lane on the placement that is number I of NODE's, for the positions of BLOCK. What the ledger has as done
 * is left out; what a gate wanted again is for the second pass. LANE is overwritten; on failure it can be
 * closed. */
int lane_open(struct lane *lane, struct measurement *measurement, struct run_node *node, size_t i,
              const struct design_block *block, struct failure *failure);
/* Kills what still runs, and frees all; node, core and failures in a row stay to be read. */
void lane_close(struct lane *lane);
/* The position that is number K of this pass. */
size_t lane_position(const struct lane *lane, size_t k);
/* Which attempt at a position the next one is, from 1. */
unsigned lane_attempt(const struct lane *lane, size_t position);
/* Of a unit that is done: would a gate have it measured again, and was it not yet? */
bool lane_wants_repeat(const struct run *run, size_t place, size_t position);
/* The same of any place, at positions from FIRST on, COUNT of them: a part of a run may have ended between a
 * unit and its repetition. False in the first part. */
bool lane_want_repeats(const struct run *run, size_t first, size_t count);
/* POSITION is to be measured again in the next pass. 0 or -ENOMEM. */
int lane_add_repeat(struct lane *lane, size_t position);
/* The next pass begins, over what was added; LANE is to be started again. False if there is nothing. */
bool lane_repeat(struct lane *lane);

/* Could the position that is number K of this pass not end in time, when the lane is busy for BUSY_NS before
 * it? Then the lane is over before it. */
bool lane_refuse(struct lane *lane, size_t k, int64_t busy_ns);

/* Starts the experiment's run command with the lane's values, in its node's work folder, pinned to its PUs.
 * SPECIFICATION holds the rest. The first of a measurement is logged. */
int lane_launch(struct lane *lane, struct remote_command_specification *specification,
                const struct remote_command_callbacks *callbacks, struct failure *failure);

/* ---- unit-files.c */

/* Writes what the next unit finds in its working folder, then calls THEN, perhaps at once: with a failure, of
 * which lane_is_lost() knows more. */
int lane_write_files(struct lane *lane, void (*then)(struct lane *lane, const struct failure *why),
                     struct failure *failure);

/* Those that are being written are waited for no more. */
void lane_forget_files(struct lane *lane);

/* Starts a lane. When it is over it calls measurement_lane_over. */
int lane_start_streamed(struct lane *lane, struct failure *failure);
int lane_start_commands(struct lane *lane, struct failure *failure);
/* Of a lane that runs: a kernel that has not answered for the experiment's `timeout`, while its node could be
 * heard, is killed. Its unit has failed then, and another kernel goes on with the next. */
void lane_check_streamed(struct lane *lane, int64_t now_ns);

/* ---- lane-ends.c */

/* A unit of LANE has failed; after three in a row the measurement has. */
void lane_note_failure(struct lane *lane, size_t position, const char *why);
/* WHY: why a command could not be started or how its end is not known; may be NULL. When that is because the
 * node is gone, its lanes have ended and it is out of the run, or the measurement has failed. */
bool lane_is_lost(struct lane *lane, const struct failure *why);
/* WHAT ("unit 4") runs on LANE's node and cannot be ended: the node is out. */
void lane_hang(struct lane *lane, const char *what);

#endif
