/* What the phases of a run share. Private to this room. */
#ifndef ASSAY_RUN_RUN_STATE_H
#define ASSAY_RUN_RUN_STATE_H

#include "engine/documents/json.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/append-file.h"
#include "engine/foundation/text.h"
#include "engine/remote/agent-link.h"
#include "engine/remote/remote-command.h"
#include "engine/run/journal.h"
#include "engine/run/plan.h"
#include "engine/run/run.h"

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

enum { RUN_SIGNALS = 3 };

struct run_phase_record {
    int64_t started_ns, ended_ns; /* 0: not begun, not ended */
    const char *status;           /* "done", "failed", "skipped", "interrupted" */
};

struct run_node {
    const char *name; /* the testbed's */
    struct agent_link *link;
    struct node_facts *facts;
    char *work_folder; /* below the agent's folder: where setup and run commands work; "work" or "source" */
    const struct node_pu **cores; /* first usable PU of every physical core; into facts */
    size_t core_count;
    cJSON *software; /* what software/versions.json says of this node */
};

struct run {
    const struct run_request *request;
    const struct campaign *campaign;
    const struct experiment *experiment;
    char id[40];   /* UUID */
    char *folder;  /* absolute: the staging area */
    char *archive; /* path of the archive, once its name is chosen */
    int64_t started_ns, ended_ns;

    struct plan *plan;
    struct event_loop *loop;
    struct event_source *signals[RUN_SIGNALS];
    struct testbed *testbed;
    struct run_node *nodes;
    size_t node_count;

    struct journal *journal;
    struct append_file *results, *log;
    struct run_phase_record phases[RUN_PHASES];
    enum run_phase phase;
    bool interrupted; /* by a signal */
    bool failed;      /* `why` is the first failure */
    struct failure why;
    struct failure seal_why; /* .code is 0 unless the run could not be sealed */
    uint64_t units_planned, units_done, units_failed;
    char first_unit_failure[768]; /* a sentence, or empty */
};

extern const char *const run_phase_names[RUN_PHASES];

/* A line in logs/engine.log, with its time. Kept until the next commit; failures to write surface there. */
void run_log(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and told to the observer. */
void run_note(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Results first, then the journal that speaks of them, then the log. */
int run_commit(struct run *run, struct failure *failure);
void run_tell(const struct run *run, enum run_event_kind kind, const char *text);

/* PATH below the run's folder; the caller frees. NULL when out of memory. */
char *run_path(const struct run *run, const char *name);
/* Makes the folder NAME below the run's folder, and those above it. */
int run_make_folder(const struct run *run, const char *name, struct failure *failure);

/* Writes VALUE, pretty, as the whole of PATH (absolute). */
int run_write_json(const char *path, const cJSON *value, struct failure *failure);

/* Runs a command on a node to its end: journalled and logged. Its exit status is in *RET; what is not 0 is a
 * failure only when MUST_SUCCEED (a command that need not is ended after a minute), and then of kind
 * FAILURE_EXPERIMENT with the end of what it wrote. */
int run_command(struct run *run, struct run_node *node, const char *const *arguments,
                const char *const *environment, const char *folder, bool must_succeed,
                struct remote_result *ret, struct failure *failure);

/* The phases that are more than a few lines, one file each. */
int run_phase_inspect(struct run *run, struct failure *failure);
int run_phase_prepare(struct run *run, struct failure *failure);
int run_phase_measure(struct run *run, struct failure *failure);
int run_phase_seal(struct run *run, struct failure *failure);
/* The experiment's teardown commands; part of collect. */
int run_teardown(struct run *run, struct failure *failure);

/* Writes campaign.yaml, campaign.resolved.json, design.csv, experiment/ and datapackage.json: all that is
 * known before a node is touched. */
int run_record_inputs(struct run *run, struct failure *failure);
/* Asks the nodes what compiler, libc and libraries they have; part of collect, so that no measurement waits
 * for it. */
int run_inspect_software(struct run *run, struct failure *failure);
/* Writes software/versions.json. */
int run_record_software(struct run *run, struct failure *failure);
/* Writes run.json as things stand. */
int run_record_run(struct run *run, struct failure *failure);
const char *run_status(const struct run *run);

#endif
