/*
 * The results of many runs in one file, so that a machine can be compared with its own past: an SQLite
 * database (README.md has its tables). An archive gives, for each setting of its design, node and response,
 * the mean over its rows; and of each node what may change it: kernel, microcode, BIOS, compiler, libraries.
 * A log beside it says what people know: changes, and runs that are wrong.
 *
 *     history_store_open(path) ; history_store_add(archive) ... ; history_store_read(filter) -> series
 */
#ifndef ASSAY_HISTORY_STORE_H
#define ASSAY_HISTORY_STORE_H

#include "engine/foundation/failure.h"
#include "engine/report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history_store;

/* Opens the history in the file PATH; CREATE makes the file if it does not exist. FAILURE_INPUT: the file
 * does not exist and CREATE is false, it is not a history of assay, or a later version of assay made it. */
int history_store_open(const char *path, bool create, struct history_store **ret, struct failure *failure);
void history_store_close(struct history_store *store); /* NULL is fine */
void history_store_cleanup(struct history_store **store);

/* Begins a transaction: what is added then is in the file after history_store_commit(), or nothing is. Other
 * processes that write wait for it, at most 60 s. */
int history_store_begin(struct history_store *store, struct failure *failure);
int history_store_commit(struct history_store *store, struct failure *failure);

/* What was added from one archive. */
struct history_addition {
    bool was_there; /* the same archive; nothing was done */
    uint64_t values;
    uint64_t flagged; /* rows that a gate flagged, which are not in the values */
    bool all_flagged; /* every row was flagged: nothing was added but the archive's name */
};

/* Adds the sealed archive PATH as a whole, or not at all, within a transaction. WITH_FLAGGED: rows that a
 * gate flagged count, too. An earlier part of the same run is replaced; if the store has a later part nothing
 * is done. FAILURE_INPUT: PATH is no archive of a run; FAILURE_VERIFICATION: it is damaged. */
int history_store_add(struct history_store *store, const char *path, bool with_flagged,
                      struct history_addition *ret, struct failure *failure);

enum history_kind {
    HISTORY_CHANGE,  /* rows before it say nothing about rows after it */
    HISTORY_OUTLIER, /* a run that is wrong on these nodes: later rows are not compared with it */
};

/* A line of the log. Texts are borrowed. */
struct history_note {
    enum history_kind kind;
    const char *time;  /* of a change: "2026-10-12" or "2026-10-12T08:30", UTC */
    const char *run;   /* of an outlier: a run's id, or the beginning of it that only one run has */
    const char *nodes; /* a host list: "dahu-[1-4]"; NULL: all */
    const char *author, *reason;
};

/* Adds NOTE to the log. FAILURE_INPUT: its time, run or nodes are not valid. */
int history_store_note(struct history_store *store, const struct history_note *note, struct failure *failure);

/* Adds tables to IN: the archives; the log; the facts and values of the nodes of the run whose id begins with
 * RUN, which only the last of these functions uses. */
typedef int history_store_reporter(struct history_store *store, const char *run, struct report_section *in,
                                   struct failure *failure);
history_store_reporter history_store_report_archives, history_store_report_log, history_store_report_run;

/* A series: one response of one setting on one node, over time. */
struct history_series {
    const char *campaign, *experiment, *response, *unit, *setting, *node; /* unit: UCUM, or "" */
    size_t count;
    const double *times; /* when each run began, s since 1970, in order; NaN: not known */
    const double *values;
    const int64_t *archives; /* of history_store_report_archives() */
    const bool *is_cut;      /* a change of the log came between the run before and this one */
    const bool *is_outlier;  /* by the log */
};

/* Names that series have; NULL: any. */
enum { HISTORY_CAMPAIGN, HISTORY_RESPONSE, HISTORY_NODE, HISTORY_FILTERS };
struct history_filter {
    const char *names[HISTORY_FILTERS];
};

typedef int history_series_handler(void *context, const struct history_series *series);

/* Calls HANDLE for each series in order of campaign, response, setting and node, until it returns other than
 * 0, which is returned. FAILURE_INPUT: no series has a name of FILTER; the message lists the names that
 * exist. */
int history_store_read(struct history_store *store, const struct history_filter *filter,
                       history_series_handler *handle, void *context, struct failure *failure);

/* Appends how the facts of NODE in archive NOW differ from those in BEFORE: "microcode changed from 0x1 to
 * 0x2". */
int history_store_describe_changes(struct history_store *store, const char *node, int64_t before, int64_t now,
                                   struct text *ret, struct failure *failure);

#endif
