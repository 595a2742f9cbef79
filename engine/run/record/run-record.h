/*
 * What a run writes while it lasts: its folder, journal, results and log, and how far it has come. All phases
 * have it. What it shows was committed before.
 */
#ifndef ASSAY_RECORD_RUN_RECORD_H
#define ASSAY_RECORD_RUN_RECORD_H

#include "archive-format/layout.h"
#include "engine/documents/json.h"
#include "engine/foundation/append-file.h"
#include "engine/foundation/failure.h"
#include "engine/run/record/files.h"
#include "engine/run/record/history.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/ledger.h"
#include "engine/run/record/observer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who ended the measurements although nothing failed. */
enum run_interruption {
    RUN_NOT_INTERRUPTED,
    RUN_INTERRUPTED, /* the user: SIGINT, SIGHUP */
    RUN_CHECKPOINT,  /* who manages the reservation: SIGUSR2, SIGTERM */
    RUN_DEADLINE,    /* the time is up (deadline.h) */
    RUN_REVOKED,     /* the testbed: the nodes are no longer ours */
};

/* Bytes of the file .reserve in the run's folder, which keep room on the disk. When it is full, the first are
 * given up so that what was measured is committed, and the archive is made if there is room; the last, so
 * that the journal can say how the run has ended. */
enum { RECORD_RESERVE = 128 << 10, RECORD_RESERVE_LAST = 32 << 10 };

struct redaction;

struct run_record {
    struct run_observer observer;
    char id[40];   /* UUID */
    char *folder;  /* absolute: the staging area of the archive */
    char *made;    /* the last folder that record_make_folder() made; NULL: none yet */
    unsigned part; /* which of the run's parts this is, from 1 */
    struct journal *journal;
    struct append_file *results, *log;
    struct run_files files;
    struct redaction *redaction; /* of what nodes say of themselves; owned; NULL until it is needed */
    unsigned commands_kept;      /* folders in logs/commands/ */

    enum run_phase phase;
    enum run_interruption interrupted;
    bool failed; /* by a phase */

    struct ledger *ledger;             /* of the units that have ended, in all parts of the run */
    const struct ledger_totals *units; /* its totals */
    struct ledger_totals committed;    /* those that the journal has */
    uint64_t units_planned;
    int64_t estimated_ns; /* until all units will have ended, from now on; negative: not known */
    struct run_left left; /* what the journal has of it */
    size_t reserved;      /* bytes of .reserve */
};

void record_clear(struct run_record *record);

/* Adds a line with its time to logs/engine.log. It is pending until the next commit, which also fails if it
 * cannot be written. */
void record_log(struct run_record *record, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As record_log(); the sentence is also journalled and reported to the observer. Not between journal_begin()
 * and journal_end(). */
void record_note(struct run_record *record, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reports EVENT to the observer, if there is one; an event of KIND that has nothing but TEXT. */
void record_report_event(const struct run_record *record, const struct run_event *event);
void record_report_text(const struct run_record *record, enum run_event_kind kind, const char *text);
/* Makes the file .reserve. -ENOSPC: the disk has less room. */
int record_make_reserve(struct run_record *record, struct failure *failure);
/* Cuts the reserve to KEEP bytes if it is larger. */
void record_release_reserve(struct run_record *record, size_t keep);
/* Makes all pending records durable, in order: files of run_files_write(), results, the journal that speaks
 * of them, the log. On a full disk it fails; the first time, the reserve is given up and all is durable
 * nevertheless, so that a second call returns 0. */
int record_commit(struct run_record *record, struct failure *failure);
/* Have units ended since the last commit? */
bool record_has_ended_units(const struct run_record *record);
/* Adds the totals of units to the current entry of the journal. */
void record_journal_counts(struct run_record *record);

/* The path of NAME below the run's folder; the caller frees. */
char *record_path(const struct run_record *record, const char *name);
/* Makes the folder NAME below the run's folder, and those above it; nothing is done if NAME was the last one
 * made. */
int record_make_folder(struct run_record *record, const char *name, struct failure *failure);
/* Writes VALUE, pretty-printed, to FILE in the folder of NODE (run_files_write()). */
int record_write_node_json(struct run_record *record, const char *node, const char *file, const cJSON *value,
                           struct failure *failure);

#endif
