/*
 * A lane: one placement (a core, a whole node, or the job) on which a block's positions are measured one
 * after another. A streamed experiment has one kernel a lane and block, which takes all rows on its input
 * (lane-streamed.c); any other runs one command a unit (lane-commands.c). Private to this room.
 */
#ifndef ASSAY_MEASURE_LANE_H
#define ASSAY_MEASURE_LANE_H

#include "engine/run/campaign/experiment-job.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/nodes/placement.h"
#include "engine/run/state/unit-state.h"

/* Bytes of what one unit writes that are kept; what is more is counted, noted and dropped. */
enum { LANE_OUTPUT_MAX = 16 << 20, LANE_ERRORS_MAX = 64 << 10 };

struct lane;
struct measurement;

/* When a unit began, by the node's two clocks, as the kernel or the agent says. */
struct unit_start {
    int64_t wall_ns;
    int64_t monotonic_ns; /* negative: not known */
};

/* A unit that is done or has failed. */
struct measured_unit {
    size_t position;         /* in the plan's order */
    const double *responses; /* one a response, in the experiment's order; NULL: it failed */
    const char *why;         /* it failed; else NULL */
    struct unit_start start;
    int64_t begun_ns; /* monotonic, worked out where `start` lacks it; negative: not known */
    int64_t end_ns;   /* monotonic; negative: not known yet */
    uint64_t output_bytes, error_bytes; /* of a command: all that it wrote, also what was not kept */
    /* Filled in by results_add(). */
    unsigned attempt;  /* from 1 */
    size_t node_count; /* it ran on so many nodes, the first of its placement */
};

/* One that waits for the samples that say what state it ran under. */
struct pending_unit {
    struct pending_unit *next;
    struct measured_unit unit; /* its responses are those below */
    int64_t since_ns;          /* monotonic, of the engine */
    double responses[];
};

/* The kernel of a streamed lane. */
struct lane_kernel {
    size_t sent; /* so many of the lane's positions were written to it */
    bool header_sent, header_seen, input_closed;
    bool has_monotonic; /* the field after `start` is `start_monotonic` */
    size_t *columns;    /* owned; for each response, which field of an answer it is */
    struct text line;   /* the answer line that is not whole yet */
    int64_t ahead_ns;   /* how long the rows that were sent, and not answered, will take; with a deadline */
    int64_t last_begun_ns; /* monotonic: of the last answer's unit; negative: not known, or there is none */
    int64_t heard_ns;      /* monotonic, of the engine: since when an answer is waited for */
    int64_t asked_ns;      /* the same: when it was asked to end, having been silent for too long; 0: not */
};

/* The command of a lane that runs one a unit. */
struct lane_unit {
    size_t writes;          /* of files that it finds in its folder, under way */
    struct failure written; /* what went wrong with them; .code is 0: nothing */
    struct text output;
    struct unit_start start;
    /* Of files that it leaves and `keep` names. */
    struct remote_exit exit; /* of the unit, while they are brought home */
    size_t kept;             /* so many of the names are done */
    struct text file;        /* the bytes of the next one */
    char *not_kept;          /* owned; why the unit fails for them, or NULL */
    /* Of units that have ranks (job.h). */
    struct experiment_shape shape;
    void (*after_sweep)(struct lane *lane); /* NULL: nothing is swept */
    uint64_t printed;                       /* bytes, when the ranks were last looked at */
    int64_t idle_since_ns;                  /* monotonic; 0: not looked at */
    bool stuck;                             /* and so it was asked to end */
};

struct lane {
    struct measurement *measurement;
    struct placement at; /* between blocks, freed but for the node and the core */
    size_t shares;       /* of it, so many have a part in the unit that runs */
    size_t first, count; /* its positions in this pass: COUNT from the first on, or of the list */
    size_t *list;        /* owned; NULL: all from the first on */
    unsigned pass;       /* from 1; later ones measure again what a gate did not like */
    size_t next;         /* which of its positions is answered next, from 0: lane_position() */
    bool finished;       /* every position has its answer, and the command has ended */
    bool refused;        /* there is no time for its next position, so that it ends before it */

    struct pending_unit *held, *last_held; /* owned; a queue */
    int64_t turn_ns;   /* monotonic, of the engine: since when the unit after the last that ended runs */
    int64_t since_ns;  /* monotonic: no unit that is not judged began before; INT64_MIN: not known */
    size_t *to_repeat; /* owned; positions that the next pass measures again */
    size_t repeat_count;

    struct remote_command *command;
    struct text errors; /* what was written to stderr: by the unit, or the last of it by a streamed kernel */
    struct lane_kernel kernel;
    struct lane_unit unit;
    unsigned failures_in_a_row; /* over the end of a block, too */
};

/* A lane on the placement that is number I of NODE's, for the positions of BLOCK. What the ledger has as done
 * is left out; what a gate wanted again is for the second pass. LANE is overwritten. */
void lane_open(struct lane *lane, struct measurement *measurement, struct run_node *node, size_t i,
               const struct design_block *block);
/* Starts it, when it has no command. When it is over it calls measurement_lane_finish(). */
int lane_start(struct lane *lane, struct failure *failure);
/* Kills what still runs, and frees all; node, core and failures in a row stay to be read. */
void lane_close(struct lane *lane);
/* The position that is number K of this pass. */
size_t lane_position(const struct lane *lane, size_t k);
/* POSITION is to be measured again in the next pass. */
void lane_add_repeat(struct lane *lane, size_t position);
/* The next pass begins, over what was added; LANE is to be started again. False if there is nothing. */
bool lane_repeat(struct lane *lane);

/* Could the position that is number K of this pass not end in time, when the lane is busy for BUSY_NS before
 * it? Then the lane is over before it. */
bool lane_out_of_time(struct lane *lane, size_t k, int64_t busy_ns);

/* The values of the next unit; of a streamed lane, of its block. The caller clears them. */
struct plan_values lane_values(const struct lane *lane);
/* Starts the experiment's run command with the lane's values, in its node's work folder, pinned to its PUs.
 * SPECIFICATION holds the rest. The first of a measurement is logged. */
int lane_launch(struct lane *lane, struct remote_command_specification *specification,
                const struct remote_command_callbacks *callbacks, struct failure *failure);

/* ---- How lanes end before their time */

/* Appends to WHY ": " and the line of ERRORS, a command's standard error, that has the reason
 * (text_reason()). With RULES, all lines are joined into one, without the lines of dashes that MPI libraries
 * draw around their messages. Of a text longer than MOST bytes the middle is cut. WHY must have room for MOST
 * + 2 bytes. */
enum { LANE_REASON_MAX = 280 }; /* of a unit */
void lane_append_errors(const char *errors, bool rules, size_t most, struct text *why);

/* A unit of LANE has failed; after three in a row the measurement has. */
void lane_note_failure(struct lane *lane, size_t position, const char *why);
/* WHY: why a command could not be started or how its end is not known; may be NULL. When that is because the
 * node is gone, its lanes have ended and it is out of the run, or the measurement has failed. */
bool lane_handle_loss(struct lane *lane, const struct failure *why);
/* WHAT ("unit 4") runs on LANE's node and cannot be ended: the node is out. */
void lane_hang(struct lane *lane, const char *what);

/* ---- The two kinds */

int lane_start_streamed(struct lane *lane, struct failure *failure);
int lane_start_commands(struct lane *lane, struct failure *failure);
/* The kernel and its text are gone. */
void lane_clear_kernel(struct lane *lane);
/* Of a lane that runs: a kernel that has not answered for the experiment's `timeout`, while its node could be
 * heard, is killed. Its unit has failed then, and another kernel continues with the next. */
void lane_check_streamed(struct lane *lane, int64_t now_ns);
/* Files of the next unit that are being written are waited for no more. */
void lane_forget_files(struct lane *lane);

#endif
