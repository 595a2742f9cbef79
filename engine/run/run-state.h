/* What the phases of a run share, as its own files see it. Private to this room. */
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
    bool only_seals;    /* all was measured before: nodes are only looked after, and the archive is made */
    bool only_reserves; /* run_reserve(): there is nothing to seal */
    bool began[RUN_PHASES];
    bool refused;            /* before anything was measured, by what the user gave: no folder is left */
    bool restore_insisted;   /* a signal has come while controls were put back */
    struct failure why;      /* the first failure, when record.failed is set */
    struct failure seal_why; /* .code is 0 unless the run could not be sealed */
};

/* ---- resume.c */

/* Opens the run in the folder of INPUTS for another part, and journals that. When it was completed and sealed
 * before, *RET_SEALED is its archive, the caller's, and nothing was opened. */
int run_reopen(struct run *run, const struct inputs *inputs, char **ret_sealed, struct failure *failure);
/* Makes or opens the journal, the results and the log; what earlier parts have not committed is cut off. */
int run_open_records(struct run *run, struct failure *failure);

/* ---- adopt-plan.c */

/* Makes the plan from what is guessed of the nodes, or with the FACTS that the parts before have measured
 * with, and all that its rows and positions decide. */
int run_make_plan(struct run *run, const struct plan_facts *facts, struct failure *failure);
/* Makes it anew, with what the nodes are, where it was made with guesses and depends on them; and writes what
 * depends on it. inputs.json comes first: its facts are enough to make the plan again. */
int run_plan_for_facts(struct run *run, struct failure *failure);

/* ---- seal.c, missing.c */

/* Writes campaign.yaml, campaign.resolved.json, design.csv, experiment/ and datapackage.json: all that is
 * known before a node is touched. */
int run_record_inputs(struct run *run, struct failure *failure);
/* Writes campaign.resolved.json and design.csv, by the plan. */
int run_record_design(struct run *run, struct failure *failure);
/* The same, and the facts that the plan was made with, of a plan that was made anew. */
int run_record_plan(struct run *run, struct failure *failure);
/* Writes run.json, by the committed journal. */
int run_record_run(struct run *run, struct failure *failure);
/* Writes results/missing.csv, or removes it where nothing is missing. *RET: how many lines. */
int run_record_missing(struct run *run, uint64_t *ret, struct failure *failure);
/* The run that this one repeats, borrowed; its run_id is "" where there is none. The command line of the
 * first part named it, and the journal has it. */
struct archive_origin run_origin(struct run *run);
/* The seal phase. */
int run_seal(struct run *run, struct failure *failure);

/* ---- ending.c: how a run ends, and what that is called. */

/* Begins to watch the signals that end a run. */
int run_watch_signals(struct run *run, struct failure *failure);
const char *run_end_word(const struct run *run);
/* 0 for a run that is complete, or what its caller gets, FAILURE_INTERRUPTED or _PARTIAL. */
int run_judge_ending(const struct run *run, struct failure *failure);
/* What the run's status says for itself; an empty sentence for a run that is complete, or still runs. */
const char *run_describe_ending(const struct run *run, char *buffer, size_t size);

#endif
