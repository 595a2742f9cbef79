/* The state of a run that its phases share. Private to the .c files of this folder. */
#ifndef ASSAY_RUN_RUN_STATE_H
#define ASSAY_RUN_RUN_STATE_H

#include "engine/run/campaign/inputs.h"
#include "engine/run/measure/measure.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/record/lock.h"
#include "engine/run/run.h"
#include "engine/run/state/watch.h"

enum { RUN_SIGNALS = 4 };

struct run {
    const struct run_request *request;
    struct run_record record;
    struct node_set set;
    struct watch watch;
    struct run_progress progress;

    char *archive; /* path of the archive, once its name is chosen */
    int64_t started_ns, ended_ns;
    struct run_history past; /* the parts before; zeroed in part 1 */
    uint64_t units_before;   /* done in the parts before */
    struct run_lock *lock;
    struct event_source *signals[RUN_SIGNALS];
    bool only_seals;    /* earlier parts have measured all units; this one restores nodes and seals */
    bool only_reserves; /* run_reserve(): there is nothing to seal */
    bool began[RUN_PHASES];
    bool refused;            /* the user's input is wrong and nothing was measured: no folder is left */
    bool restore_signalled;  /* a signal has come while controls were restored */
    struct failure why;      /* the first failure, when record.failed is set */
    struct failure seal_why; /* .code is 0 unless the run could not be sealed */
};

/* ---- resume.c */

/* Locks and opens the folder of INPUTS for another part, and journals "run-resumed". If the run was completed
 * and sealed, nothing is opened, and *RET_SEALED is the archive's path, which the caller frees; otherwise it
 * is NULL. */
int run_reopen(struct run *run, const struct inputs *inputs, char **ret_sealed, struct failure *failure);
/* Makes or opens the journal, the results and the log. What earlier parts wrote but never committed is cut
 * off, and kept in logs/cut/. */
int run_open_records(struct run *run, struct failure *failure);

/* ---- adopt-plan.c */

/* Makes the plan and everything that is indexed by its rows and positions. FACTS: of the nodes that earlier
 * parts have measured on; NULL: they are guessed, since no node is known yet. */
int run_make_plan(struct run *run, const struct plan_facts *facts, struct failure *failure);
/* Makes the plan again with the facts of the connected nodes, and records it. Does nothing when the design
 * does not depend on facts, or when they were known before. inputs.json is written first: its facts are
 * enough to make the plan again. */
int run_plan_for_facts(struct run *run, struct failure *failure);

/* ---- seal.c, missing.c */

/* Writes all files that are known before a node is touched: campaign.yaml, campaign.resolved.json,
 * design.csv, experiment/, inputs.json, datapackage.json and run.json. */
int run_record_inputs(struct run *run, struct failure *failure);
/* Writes design.csv, and campaign.resolved.json, from the plan. */
int run_record_design(struct run *run, struct failure *failure);
/* Writes the facts that the plan was made with into inputs.json, then design.csv and campaign.resolved.json.
 */
int run_record_plan(struct run *run, struct failure *failure);
/* Writes run.json from the committed journal and the plan. */
int run_record_run(struct run *run, struct failure *failure);
/* Writes results/missing.csv, or removes it if no unit is missing. *RET: the number of its lines. */
int run_record_missing(struct run *run, uint64_t *ret, struct failure *failure);
/* The archive that this run repeats; its texts are borrowed, and its run_id is "" if the run repeats none.
 * Part 1 has it from the command line, later parts have it from the journal. */
struct archive_origin run_origin(struct run *run);
/* The seal phase: writes the files that are made at the end, packs the archive and reports it. */
int run_seal(struct run *run, struct failure *failure);

/* ---- ending.c: the signals that end a run, and the status that it ends with. */

/* Starts handling the signals that end a run: SIGINT, SIGTERM, SIGHUP and SIGUSR2. */
int run_watch_signals(struct run *run, struct failure *failure);
/* The run's status: "running", "completed", "partial", "interrupted" or "failed". */
const char *run_end_word(const struct run *run);
/* 0 for a run that is complete. Otherwise negative, and FAILURE is of kind FAILURE_INTERRUPTED or
 * FAILURE_PARTIAL. */
int run_ending_failure(const struct run *run, struct failure *failure);
/* Writes how an incomplete run ended into BUFFER, for its status; "" for a run that is complete or still
 * runs. */
const char *run_describe_ending(const struct run *run, char *buffer, size_t size);

#endif
