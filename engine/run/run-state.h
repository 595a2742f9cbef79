/* What the phases of a run share. Private to this room. */
#ifndef ASSAY_RUN_RUN_STATE_H
#define ASSAY_RUN_RUN_STATE_H

#include "engine/documents/json.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/append-file.h"
#include "engine/foundation/text.h"
#include "engine/remote/agent-link.h"
#include "engine/remote/node-facts.h"
#include "engine/remote/node-group.h"
#include "engine/run/journal.h"
#include "engine/run/ledger.h"
#include "engine/run/node-control.h"
#include "engine/run/plan.h"
#include "engine/run/run.h"
#include "engine/run/watch.h"

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

enum {
    RUN_SIGNALS = 3,
    RUN_UNSYNCED_NAMES = 8,
};

struct run_phase_record {
    int64_t started_ns, ended_ns; /* 0: not begun, not ended */
    const char *status;           /* "done", "failed", "skipped", "interrupted" */
};

enum run_clock { RUN_CLOCK_START, RUN_CLOCK_END, RUN_CLOCKS };

/* What happened to a node's link and was not told yet. */
enum run_news { RUN_NEWS_NONE, RUN_NEWS_BROKEN, RUN_NEWS_RESUMED, RUN_NEWS_LOST };

struct run_node {
    const char *name;                  /* the testbed's */
    struct agent_link *link;           /* the group's */
    const struct transport *transport; /* the link's first; looked at once, when it is ready; then NULL */
    char *agent_path, *agent_hash;     /* on the node; NULL: not known */
    bool agent_delivered, agent_built;
    unsigned breaks;    /* how often the link broke */
    int64_t broken_ns;  /* monotonic: since when it is; 0: it is not */
    int64_t outage_ns;  /* of the last break that ended */
    enum run_news news; /* told by run_tell_news() */
    struct failure news_why;
    struct node_facts *facts;
    char *cpu_model;              /* NULL: the node does not say */
    const struct node_pu **cores; /* first usable PU of every physical core; into facts */
    size_t core_count;
    struct node_control_record control;    /* how it was found, and set */
    cJSON *warm_up;                        /* warm-up.json; NULL: it was not */
    double warm_temperature;               /* Cel, of its hottest package when it was warm; nan: not known */
    cJSON *software;                       /* what software/versions.json says of this node */
    struct agent_clock clocks[RUN_CLOCKS]; /* exchanges is 0: not known */
};

/* Where setup and run commands work, below the agent's folder. */
#define RUN_WORK_FOLDER "work"

struct run {
    const struct run_request *request;
    const struct campaign *campaign;
    const struct experiment *experiment;
    char id[40];   /* UUID */
    char *folder;  /* absolute: the staging area */
    char *archive; /* path of the archive, once its name is chosen */
    int64_t started_ns, ended_ns;
    unsigned part;       /* which of the run's parts this is, from 1 */
    size_t block_number; /* of the block that is being measured, or was last, from 1: blocks are counted as
                            they are measured, over all parts */

    struct plan *plan;
    struct event_loop *loop;
    struct event_source *signals[RUN_SIGNALS];
    struct testbed *testbed;
    struct run_node *nodes; /* in the order of the group's */
    size_t node_count;
    struct node_group *group;
    struct watch *watch;             /* of the nodes; NULL: they are not, or not yet */
    struct event_source *news_timer; /* gathers what happens to many nodes at once into one sentence */
    struct event_source *give_up;    /* deferred: run_give_up_broken() */
    unsigned commands_kept;          /* folders in logs/commands/ */

    struct journal *journal;
    struct append_file *results, *log;
    size_t unsynced;                          /* files that run_write_file() wrote since the last commit; */
    char *unsynced_paths[RUN_UNSYNCED_NAMES]; /* the first of them */
    struct run_phase_record phases[RUN_PHASES];
    enum run_phase phase;
    bool interrupted;      /* by a signal */
    bool restore_insisted; /* a signal has come while controls were put back */
    bool failed;           /* `why` is the first failure */
    struct failure why;
    struct failure seal_why;           /* .code is 0 unless the run could not be sealed */
    struct ledger *ledger;             /* of the units that have ended, in all parts of the run */
    const struct ledger_totals *units; /* its totals */
    uint64_t units_planned;
    char first_unit_failure[768]; /* a sentence, or empty */
};

extern const char *const run_phase_names[RUN_PHASES];

/* A line in logs/engine.log, with its time. Kept until the next commit; failures to write surface there. */
void run_log(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and told to the observer. */
void run_note(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What run_write_file() wrote first, then results, then the journal that speaks of them, then the log. */
int run_commit(struct run *run, struct failure *failure);
void run_tell(const struct run *run, enum run_event_kind kind, const char *text);

/* PATH below the run's folder; the caller frees. NULL when out of memory. */
char *run_path(const struct run *run, const char *name);
/* Makes the folder NAME below the run's folder, and those above it. */
int run_make_folder(const struct run *run, const char *name, struct failure *failure);

/* NAME, below the run's folder, has these bytes; after the next commit it does so durably. For what is
 * written once: a crash before that may leave any part of it. */
int run_write_file(struct run *run, const char *name, const void *bytes, size_t length,
                   struct failure *failure);
/* The same for VALUE, pretty, as nodes/NODE/FILE. */
int run_write_node_json(struct run *run, const struct run_node *node, const char *file, const cJSON *value,
                        struct failure *failure);
/* Part of run_commit(). On failure all is kept for another try. */
int run_sync_files(struct run *run, struct failure *failure);
void run_forget_files(struct run *run);

/* Appends to NAME, which is made if it is not there; after the next commit it is durable. */
int run_append_file(struct run *run, const char *name, const void *bytes, size_t length,
                    struct failure *failure);

/* Writes VALUE, pretty, as the whole of PATH (absolute), durably and at once. */
int run_write_json(const char *path, const cJSON *value, struct failure *failure);

/* "node a", "nodes a-[1-3]": COUNT of the run's nodes, in a sentence; the caller frees. NULL when out of
 * memory. */
char *run_nodes_in_words(const struct run *run, const size_t *nodes, size_t count);
/* The same without the word before it. */
char *run_fold_nodes(const struct run *run, const size_t *nodes, size_t count);
/* Notes WORDS, one a node or NULL, once for all nodes of which the same is to be said: "nodes a-[1-3]: ...".
 * 0 or -ENOMEM. */
int run_note_kinds(struct run *run, const char *const *words);
/* Nodes whose links broke, came back or were lost since the last call are told of. */
void run_tell_news(struct run *run);
/* A run that has ended badly does not wait for nodes that are out of reach, from its collect phase on: they
 * are told to leave if they are found again at once, or leave by themselves. Called when collect begins, and
 * whenever a link turns out to be broken after that. */
void run_give_up_broken(struct run *run);
/* 0, or why a node that the run needs is not there any more. */
int run_check_nodes(const struct run *run, struct failure *failure);

/* Each node's clocks against ours, journalled, and kept in nodes/NAME/clock.json. */
int run_measure_clocks(struct run *run, enum run_clock which, struct failure *failure);
/* Brings all nodes into the state that a block of the design wants (plan->order->blocks[BLOCK]), which is
 * number RUN->block_number of those that are measured, before its lanes are opened. Nodes may have other
 * cores afterwards: node->cores and core_count are those of this state. When the loop is stopped meanwhile,
 * by a signal or a failure to commit, it gives up. */
int run_set_block(struct run *run, size_t block, struct failure *failure);
/* Would the units of so many lanes fit into an archive? */
int run_check_units(const struct run *run, uint64_t lanes, struct failure *failure);
/* What differs between the nodes is told and journalled: their results will be compared. */
int run_note_differences(struct run *run, struct failure *failure);
/* What the agents cost, into the journal. */
void run_record_agent_costs(struct run *run);

/* What the nodes are and which cores they have, asked anew: a control may have changed it. */
int run_take_facts(struct run *run, struct failure *failure);

/* Sets "NAME=VALUE"... on all nodes, reads back, and judges by what the campaign says of mismatches. BLOCK:
 * 0, or the number of the block that it is for. */
int run_set_controls(struct run *run, const char *const *assignments, size_t block, struct failure *failure);
/* Appends what the campaign wants for all of the run: "NAME=VALUE" each, the caller's to free, CONTROL_KINDS
 * at most. 0 or -ENOMEM. */
int run_assign_controls(const struct run *run, char **assignments, size_t *count);
/* All PUs are busy for a moment: are they as fast as was asked? */
int run_prove_controls(struct run *run, size_t block, struct failure *failure);
/* Keeps the nodes busy as the campaign says. BLOCK: 0, or the number of the block that it is for. */
int run_warm_up(struct run *run, size_t block, struct failure *failure);
/* Does this column of the probe `temperature` belong to a whole package? */
bool run_is_package_temperature(const char *column);
/* Does the design have columns of controls? */
bool run_controls_vary(const struct run *run);

/* The phases that are more than a few lines, one file each. */
int run_phase_deploy(struct run *run, struct failure *failure);
int run_phase_connect(struct run *run, struct failure *failure);
int run_phase_release(struct run *run, struct failure *failure);
int run_phase_inspect(struct run *run, struct failure *failure);
int run_phase_prepare(struct run *run, struct failure *failure);
int run_phase_control(struct run *run, struct failure *failure);
int run_phase_warm_up(struct run *run, struct failure *failure);
int run_phase_measure(struct run *run, struct failure *failure);
int run_phase_restore(struct run *run, struct failure *failure);
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
