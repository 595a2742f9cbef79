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

/* A unit that was done or has failed. */
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

/* A measured unit that waits for samples of the state that it ran under. */
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
    bool has_monotonic;    /* the field after `start` is `start_monotonic` */
    size_t *columns;       /* owned; for each response, which field of an answer it is */
    struct text line;      /* the answer line that is not whole yet */
    int64_t ahead_ns;      /* with a deadline: how long the rows that were sent and not answered will take */
    int64_t last_begun_ns; /* monotonic: of the last answer's unit; negative: not known, or there is none */
    int64_t silent_since_ns; /* monotonic, of the engine: since when an answer is awaited */
    int64_t end_asked_ns; /* monotonic, of the engine: when a silent kernel was asked to end; 0: it was not */
};

/* The command of a lane that runs one a unit. */
struct lane_unit {
    size_t writes;          /* files for the unit that are being written */
    struct failure written; /* why a file could not be written; .code 0: none failed */
    struct text output;
    struct unit_start start;
    /* The files that it leaves and `keep` names. */
    bool fetching_files;     /* the unit has ended; `command` of the lane reads the files that it left */
    struct remote_exit exit; /* of the unit, if it has ended */
    size_t files_kept;       /* how many of the names in `keep` are done */
    struct text file;        /* the bytes of the next one */
    char *keep_error;        /* owned; why the unit fails for them, or NULL */
    /* For units with ranks (job.h). */
    struct experiment_shape shape;
    void (*after_sweep)(struct lane *lane); /* NULL: nothing is swept */
    uint64_t printed;                       /* bytes printed at the last check */
    int64_t idle_since_ns;                  /* monotonic; 0: not checked yet */
    bool stuck;                             /* it was idle for too long, and was asked to end */
};

struct lane {
    struct measurement *measurement;
    struct placement at; /* between blocks, freed but for the node and the core */
    size_t shares;       /* how many nodes of the placement the running unit uses, from the first on */
    size_t first, count; /* positions of this pass: COUNT from the first on, or those of the list */
    size_t *list;        /* owned; NULL: all positions from the first on */
    unsigned pass;       /* from 1; later passes measure again what a gate rejected */
    size_t next;         /* number of the position that is answered next, from 0: lane_position() */
    bool finished;       /* every position has its answer, and the command has ended */
    bool refused;        /* it ended before its next position, because time is short */

    struct pending_unit *pending, *last_pending; /* owned; a queue */
    int64_t turn_ns;   /* monotonic, of the engine: when the last unit ended and the next began */
    int64_t since_ns;  /* monotonic: no pending unit began before; INT64_MIN: not known */
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
/* Starts the kernel, or the first unit. The lane calls measurement_lane_finish() when it is over. */
int lane_start(struct lane *lane, struct failure *failure);
/* Kills what still runs and frees the lane. Its node, core and failures in a row can still be read. */
void lane_close(struct lane *lane);
/* The position that is number K of this pass. */
size_t lane_position(const struct lane *lane, size_t k);
/* Has POSITION measured again in the next pass. */
void lane_add_repeat(struct lane *lane, size_t position);
/* Begins the next pass over the positions that were added; LANE is to be started again. False: there are
 * none. */
bool lane_repeat(struct lane *lane);

/* True: position number K of this pass could not end in time if the lane is busy for BUSY_NS first; the lane
 * then ends before it. */
bool lane_out_of_time(struct lane *lane, size_t k, int64_t busy_ns);

/* The node of a unit of LANE, or, of a job, its first COUNT nodes, folded. The caller frees. */
char *lane_name_nodes(const struct lane *lane, size_t count);
/* The values of the next unit; of a streamed lane, of its block. The caller clears them. */
struct plan_values lane_values(const struct lane *lane);
/* Starts the experiment's run command with the lane's values, in its node's work folder, pinned to its PUs.
 * SPECIFICATION holds the rest. It is journalled; the first of a measurement is logged, too. */
int lane_launch(struct lane *lane, struct remote_command_specification *specification,
                const struct remote_command_callbacks *callbacks, struct failure *failure);

/* ---- How lanes end before their time */

/* Appends to WHY ": " and the line of ERRORS, a command's standard error, that has the reason
 * (text_reason()). With RULES, all lines are joined into one, without the lines of dashes that MPI libraries
 * draw around their messages. Of a text longer than MOST bytes the middle is cut. WHY must have room for MOST
 * + 2 bytes. */
enum { LANE_REASON_MAX = 280 }; /* of a unit */
void lane_append_errors(const char *errors, bool rules, size_t most, struct text *why);

/* A unit of LANE has failed. After `stop-after-failures` in a row the node is taken out, or the measurement
 * fails. */
void lane_note_failure(struct lane *lane, size_t position, const char *why);
/* WHY: why a command could not be started, or why its end is not known; may be NULL. True: its node is gone;
 * it was taken out and its lanes have ended, or the measurement has failed. */
bool lane_handle_loss(struct lane *lane, const struct failure *why);
/* WHAT ("unit 4") on LANE's node cannot be ended: takes the node out. */
void lane_end_hung_node(struct lane *lane, const char *what);

/* ---- The two kinds */

int lane_start_streamed(struct lane *lane, struct failure *failure);
int lane_start_commands(struct lane *lane, struct failure *failure);
/* Frees the kernel and its texts; a kernel that runs is killed. */
void lane_clear_kernel(struct lane *lane);
/* Ends a kernel that has not answered for the experiment's `timeout` while its node was reachable. Its unit
 * has failed then, and another kernel continues with the next one. */
void lane_check_streamed(struct lane *lane, int64_t now_ns);
/* Stops waiting for files of the next unit that are being written. */
void lane_forget_files(struct lane *lane);

#endif
