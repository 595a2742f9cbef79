/*
 * The history of a run: its journal, folded. All that must be known of what has
 * happened to a run is read here: by `assay resume` to continue it, by `assay status`, `list` and `watch` to
 * show it, by `assay report` to count units. A history goes on from where the journal ended when it was read.
 *
 * The journal is the truth. An entry `results` says that results.csv stands up to a byte, has the checksum of
 * what was added to it since the entry before, and counts the units; units that failed have entries of their
 * own. Lines of the results behind the last such byte were never shown to anybody and are cut off. Where the
 * results are not what an entry says (a file system that lost what it had promised to keep), they count up to
 * there, and the units of what follows are measured again.
 *
 * Journals may come from strangers: every text in here can hold anything.
 */
#ifndef ASSAY_RECORD_HISTORY_H
#define ASSAY_RECORD_HISTORY_H

#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/text-set.h"
#include "engine/run/record/journal-read.h"
#include "engine/run/record/ledger.h"
#include "engine/run/record/observer.h"
#include "engine/run/record/results-row.h"
#include "engine/run/record/samples.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The phases of a part, in their order. */
enum run_phase {
    RUN_RESERVE,
    RUN_DEPLOY,
    RUN_CONNECT,
    RUN_INSPECT,
    RUN_PREPARE,
    RUN_CONTROL,
    RUN_WARM_UP,
    RUN_MEASURE,
    RUN_COLLECT,
    RUN_RESTORE,
    RUN_SEAL,
    RUN_RELEASE,
    RUN_PHASES,
};
extern const char *const run_phase_names[RUN_PHASES];

struct run_history_phase {
    int64_t started_ns, ended_ns; /* wall; 0: it did not start, or end */
    char status[16];              /* "done", "failed" or "interrupted", once it has ended */
};

/* One part of the run. */
struct run_history_part {
    int64_t started_ns, ended_ns; /* wall; ended_ns: of its last entry */
    uint64_t units_done;          /* in this part */
    char status[16];              /* the status that it was sealed with; "stopped": it was not sealed */
    char engine[32];              /* its version; "": not known */
};

enum run_node_condition { RUN_NODE_IN, RUN_NODE_OUT_OF_REACH, RUN_NODE_LOST, RUN_NODE_OUT };

struct run_history_node {
    char *name;  /* of node_names */
    bool given;  /* the testbed gave it; else it was a spare */
    size_t part; /* the last part that had it; the members below are of that part */
    enum run_node_condition condition;
    char *sentence;         /* why it is not RUN_NODE_IN; NULL: it is */
    char *slow;             /* a sentence: slower than equal nodes; NULL: it is not */
    char out[32];           /* why it was taken out, in a word (nodes.h); "": it was not */
    bool replaced;          /* another node measures its units, or it had none */
    struct samples samples; /* of run_status_read_samples() */
    int64_t unit;   /* of last_units_read(): in the plan's order, the last that it has measured; 0: none */
    char flags[64]; /* likewise: of its line in the results */
};

/* A note or a failure. */
enum { RUN_HISTORY_MESSAGES = 8 };
struct run_history_message {
    int64_t wall_ns;
    bool is_failure;
    char text[512]; /* cut */
};

/* An agent that may still run: it ends when it is asked to, or when its lease expires. */
struct run_history_agent {
    const char *node; /* a name of the nodes' */
    char session[17];
};

/* BY measures all units of NODE, which was lost. */
struct run_history_replacement {
    const char *node, *by; /* names of the nodes' */
};

/* An estimate of the time until all units have ended. */
struct run_left {
    int64_t estimate_ns; /* negative: not known */
    int64_t at_ns;       /* monotonic, of the engine */
};

/* The content of an entry `results`. */
struct run_history_commit {
    uint64_t bytes;       /* results.csv is durable up to here */
    uint32_t crc;         /* CRC-32C of what was added since the entry before */
    int64_t monotonic_ns; /* when it was written */
    int64_t units;        /* units that had ended by then */
    int64_t left_ns;      /* the estimate of run_left */
};

/* The reservation of a run: granted, or asked for. */
struct run_history_reservation {
    char testbed[32], id[64];
    int64_t since_ns, until_ns; /* wall; when it was asked for; when it ends, 0: not known */
    bool is_held;               /* it has been neither given back nor taken away */
    bool is_kept;               /* the last part kept it on purpose: 'assay reserve' */
};

/* Zeroed memory is the history of a run that has not begun. */
struct run_history {
    const struct run_observer *observer; /* gets phases, notes and failures as they are read; or NULL */
    char run_id[64], campaign[256];      /* "": not known */
    /* As in struct archive_origin; "": this run repeats no other. */
    char based_on[64], based_on_archive[256], based_on_sha256[HASH_HEX_SIZE];
    struct run_history_part *parts;
    size_t part_count;
    struct run_history_node **nodes; /* of all parts */
    size_t node_count;
    struct text_set node_names; /* their names, by the same numbers */
    struct run_history_agent *agents;
    size_t agent_count;
    struct run_history_replacement *replacements;
    size_t replacement_count;
    int64_t planned;                                     /* units, in all; 0: not known */
    int64_t units_done, units_failed;                    /* as the last commit counted them */
    int64_t lines_flagged, units_repeated, units_before; /* the last: done when the last part began */
    int64_t last_block, blocks_done;     /* the highest number; how many were measured to their ends */
    unsigned commands_kept;              /* folders in logs/commands/ */
    bool lacks_node;                     /* a node was taken out in the last part */
    struct run_history_reservation held; /* the last reservation */
    bool measured;                       /* the last measure phase was done, and no node was out */

    struct run_history_message messages[RUN_HISTORY_MESSAGES]; /* a ring of the last ones: K % its size */
    size_t message_count;                                      /* all notes and failures, also older ones */
    uint64_t tail_bytes; /* last_units_read() has read the results up to here */

    /* The last part. */
    char phase[32];                     /* the last phase that began; "": none */
    char sealed_as[16];                 /* the status that it was sealed with; "": it was not */
    char archive[256];                  /* the file name of its archive; "": not known */
    char archive_sha256[HASH_HEX_SIZE]; /* of the archive; "": it was not completely written */
    int64_t archive_bytes;              /* size of the archive; 0: as above */
    char outcome[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE]; /* why it is not completed; "": it is */
    int64_t units_missing, rows_settled; /* when it was sealed; rows_settled -1: the design has no `repeat` */
    int64_t exit_code;                   /* the engine's when it was sealed (enum failure_kind) */
    bool submitted;                      /* an engine was submitted as a job since, and has not begun yet */
    struct run_history_phase phases[RUN_PHASES];
    int64_t deadline_ns;                 /* wall; 0: it has none */
    char reservation[FAILURE_TEXT_SIZE]; /* the testbed's last sentence while nodes were waited for; "": none
                                          */
    char error[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE]; /* the last failure; "": none */
    int64_t block;                                      /* the block that is being measured; 0: none */
    bool measuring;
    size_t first_commit; /* the first commit that run_history_rate() counts */

    struct journal_end journal;
    struct run_history_commit *commits;
    size_t commit_count;

    /* Set by run_history_read_units(). */
    uint64_t results_bytes, results_end; /* results.csv is intact up to here; its size */
    uint64_t lost;                       /* units that were done, but have no intact line */
};

/* Called with each committed line of the results, in order. Returns -EBADMSG for a line that the run cannot
 * have. */
typedef int run_history_row_handler(const struct results_row *row, void *context, struct failure *failure);

/* Where the units of a history go, and how their lines are read. */
struct run_history_units {
    struct ledger *ledger;
    size_t positions;   /* of the plan's order, as the ledger has them */
    const char *header; /* the first line of the results, with its newline */
    size_t columns;     /* of the plan, in the results */
    size_t picked;      /* which of these columns add_row needs */
    const char *node;   /* the node that all units have in the ledger; NULL: the one in the results */
    unsigned (*parse_flags)(const char *text);
    run_history_row_handler *add_row; /* NULL: not wanted */
    void *context;
};

/* Folds the journal of the run in FOLDER into HISTORY: all of it if that is zeroed, else what was added since
 * it was read. UNITS, unless NULL, gets those that failed. After a failure HISTORY can only be cleared. */
int run_history_read(const char *folder, const struct run_history_units *units, struct run_history *history,
                     struct failure *failure);
/* As run_history_read() for a journal from any source. */
int run_history_read_from(const struct journal_source *source, struct run_history *ret,
                          struct failure *failure);
/* After run_history_read(): adds the units that are done, from the results, to the ledger of UNITS. Refused:
 * results with another header, and lines or units that the run cannot have. */
int run_history_read_units(const char *folder, const struct run_history_units *units,
                           struct run_history *history, struct failure *failure);
void run_history_clear(struct run_history *history);

enum run_archive_check { RUN_ARCHIVE_SIZE, RUN_ARCHIVE_HASH /* the size, too; reads the whole archive */ };
/* Checks the archive beside FOLDER that the last part was sealed in. *RET is its path if it is as the journal
 * says; else NULL, and *RET_PROBLEM says in a sentence what is wrong with it, or is NULL if the part was not
 * sealed. The caller frees both. */
void run_history_find_archive(const struct run_history *history, const char *folder,
                              enum run_archive_check check, char **ret, char **ret_problem);

/* The node NAME, which is made if it is new. */
struct run_history_node *run_history_find_node(struct run_history *history, const char *name);
/* Does the run have nodes reserved at WALL_NS? */
bool run_history_is_reserved(const struct run_history *history, int64_t wall_ns);
/* The number, from 1, of the part that an engine begins after HISTORY. A part that only submitted its engine
 * as a job goes on when that engine begins. */
size_t run_history_next_part(const struct run_history *history);
/* Units per second that the last part has measured lately; nan: not known. By the monotonic clock, so that
 * setting the wall clock does no harm. */
double run_history_rate(const struct run_history *history);
/* The time that is left at NOW_NS, on the engine's monotonic clock; negative: not known. The run itself shows
 * it, and status, list and watch do. */
int64_t run_left_ns(const struct run_left *left, int64_t now_ns);

#endif
