/*
 * How a run stands, from its folder or its archive alone: while it runs, after it died, and where it was
 * copied to. The journal says what happened, and in which archive it was sealed; the lock says whether
 * somebody works on it now. The archive's size is compared with the journal, its contents are not read: that
 * is done by run_resume(). Nothing is changed.
 *
 *     cleanup(run_status_cleanup) struct run_status *status = NULL;
 *     r = run_status_read("runs/dgemm-20261120T100203Z-d6a781f2", &status, failure);
 *
 * Journals may come from strangers: every text in here can hold anything (shown.h).
 */
#ifndef ASSAY_RECORD_STATUS_H
#define ASSAY_RECORD_STATUS_H

#include "engine/foundation/clock.h"
#include "engine/foundation/failure.h"
#include "engine/run/record/history.h"
#include "engine/run/record/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum run_condition {
    RUN_IS_RUNNING,  /* somebody holds its lock */
    RUN_IS_QUEUED,   /* its engine waits in a job, as far as the journal knows */
    RUN_IS_STOPPED,  /* it died before it was sealed */
    RUN_IS_RESERVED, /* its nodes are reserved, and nothing is measured on them yet */
    RUN_IS_COMPLETED,
    RUN_IS_FAILED,
    RUN_IS_PARTIAL,
    RUN_IS_INTERRUPTED,
    RUN_IS_UNKNOWN, /* its archive says something else */
    RUN_CONDITIONS,
};

/* "running", "stopped", ...; the last four that are known are what archives say, too. */
const char *run_condition_name(enum run_condition condition);

struct run_status {
    char *path;      /* as it was asked for, without slashes at its end */
    char *folder;    /* of the run; NULL: there is only an archive */
    char *archive;   /* of the last part; NULL: there is none that is as it was sealed */
    char *damage;    /* what is wrong with the archive that the last part was sealed in; NULL: nothing */
    char name[256];  /* the campaign's */
    char run_id[64]; /* "" for what an archive does not say; so for the three times */
    char started[CLOCK_TEXT_SIZE];
    char ended[CLOCK_TEXT_SIZE];      /* "" unless it was sealed */
    char last_entry[CLOCK_TEXT_SIZE]; /* when the journal was last added to */
    int64_t part;                     /* 1, or higher after it was resumed */
    enum run_condition condition;
    bool is_prediction; /* it is the archive of a prediction: its units are scenarios */
    struct run_lock_owner owner;
    char phase[32]; /* the one that it is in, or died in; "": none yet, or it is sealed */

    /* A unit may have several attempts: it counts once, and is done if one of them is. */
    bool is_planned; /* planned and left are known */
    uint64_t planned, done, failed, left;
    uint64_t flagged;  /* lines of the results with flags */
    uint64_t repeated; /* attempts at units that were done before */

    uint64_t blocks_done, block;     /* the block that is being measured; 0: none */
    struct run_history_node **nodes; /* of the part that ran last */
    size_t node_count;
    size_t nodes_out_of_reach, nodes_lost, nodes_out, nodes_slow;

    /* The rate and time left of the last part, by the monotonic clock, so that setting the wall clock does no
     * harm. */
    double rate;         /* units a second; nan: not known */
    double seconds_left; /* until all units have ended; negative: not known */

    char last_error[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE]; /* ""; of the last part */
    char deadline[CLOCK_TEXT_SIZE];                          /* by which it wants to have ended; "": none */
    uint64_t journal_bytes;                                  /* whole lines of the journal; 0: none there */
    uint64_t journal_torn_bytes, journal_whole_after;        /* struct journal_end */

    char *next;    /* what to do now: a sentence */
    char *command; /* the command in it; NULL: none */

    struct run_history history; /* which the nodes are of */
};

/* Reads the status of PATH, a run's folder or an archive. If the archive's run has its folder beside it, the
 * folder is read. Any other path is FAILURE_INPUT. */
int run_status_read(const char *path, struct run_status **ret, struct failure *failure);
/* Reads the folder of *STATUS again: only the part of the journal that was appended since. The observer of
 * its history gets the new entries. After a failure *STATUS is NULL. */
int run_status_update(struct run_status **status, struct failure *failure);
/* For a run that is running: reads the last samples of its nodes, each time on from where the last call
 * ended. */
void run_status_read_samples(struct run_status *status);
/* As run_status_read(), but the archive of a folder is checked by its hash, not only by its size. */
int run_status_read_whole(const char *path, struct run_status **ret, struct failure *failure);
/* Reads an archive's run.json alone: without the condition of nodes, blocks and part. */
int run_status_read_archive(const char *path, struct run_status **ret, struct failure *failure);
void run_status_free(struct run_status *status); /* NULL is fine */
void run_status_cleanup(struct run_status **status);

/* Does the run change by itself: is it running, or queued? */
bool run_status_is_under_way(const struct run_status *status);

/* Is FOLDER a run's: does it have a journal? */
bool run_status_is_run(const char *folder);
/* When the run in FOLDER began: the time of the journal's first entry; 0: not known. Fast for long journals.
 */
int64_t run_status_begun_ns(const char *folder);
/* The folder that the run of the archive PATH has beside it, whether it is there or not: "runs/x" for
 * "runs/x.zip", and for "runs/x-2.zip" if that is there. The caller frees; NULL when PATH does not end in
 * ".zip". */
char *run_status_folder_of(const char *path);
/* *RET is the folder of RUN, which names the folder or an archive beside it; the caller frees. FAILURE_INPUT:
 * it is neither. */
int run_status_find_folder(const char *run, char **ret, struct failure *failure);

#endif
