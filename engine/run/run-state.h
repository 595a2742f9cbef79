/* What the phases of a run share. Private to this room. */
#ifndef ASSAY_RUN_RUN_STATE_H
#define ASSAY_RUN_RUN_STATE_H

#include "engine/documents/json.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/append-file.h"
#include "engine/foundation/text.h"
#include "engine/remote/link/link.h"
#include "engine/remote/nodes/facts.h"
#include "engine/remote/nodes/group.h"
#include "engine/run/campaign/copies.h"
#include "engine/run/campaign/inputs.h"
#include "engine/run/campaign/plan.h"
#include "engine/run/deadline.h"
#include "engine/run/measure/settling.h"
#include "engine/run/measure/unit-times.h"
#include "engine/run/record/files.h"
#include "engine/run/record/history.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/ledger.h"
#include "engine/run/record/lock.h"
#include "engine/run/run.h"
#include "engine/run/state/node-control.h"
#include "engine/run/state/watch.h"

/* Who ended the measurements although nothing failed. */
enum run_interruption {
    RUN_GOES_ON,
    RUN_INTERRUPTED, /* the user: SIGINT, SIGHUP */
    RUN_CHECKPOINT,  /* who manages the reservation: SIGUSR2, SIGTERM */
    RUN_DEADLINE,    /* the time is up (deadline.h) */
};

enum { RUN_SIGNALS = 4 };

enum run_clock { RUN_CLOCK_START, RUN_CLOCK_END, RUN_CLOCKS };

/* What part a node has in the run. */
enum node_state {
    NODE_IN,
    NODE_SPARE,       /* waits for another to be lost; it is not connected */
    NODE_LATE,        /* in; brought in when blocks had begun that it is to measure too */
    NODE_CATCHING_UP, /* in; it measures them now */
    NODE_OUT,         /* takes no part any more */
    NODE_REPLACED, /* the same, and it has no share: another has it, or it was a spare that never got one */
};

struct run_node {
    const char *name;                  /* the testbed's */
    size_t number;                     /* its place in run->nodes and in the group */
    struct agent_link *link;           /* the group's */
    const struct transport *transport; /* the link's first; looked at once, when it is ready; then NULL */
    char *agent_path;                  /* on the node; NULL: not known */
    bool agent_delivered, agent_built;
    unsigned breaks;   /* how often the link broke */
    int64_t broken_ns; /* monotonic: since when it is; 0: it is not */
    int64_t outage_ns; /* of the last break that ended */
    char *news;        /* what happened to its link, and run_tell_news() has not told yet; NULL: nothing */
    struct node_facts *facts;
    char *cpu_model;              /* NULL: the node does not say */
    const struct node_pu **cores; /* first usable PU of every physical core; into facts */
    size_t core_count;
    struct node_control_record control;    /* how it was found, and set */
    cJSON *warm_up;                        /* warm-up.json; NULL: it was not */
    double warm_temperature;               /* Cel, of its hottest package when it was warm; nan: not known */
    cJSON *software;                       /* what software/versions.json says of this node */
    char **environment;                    /* software_environment(); NULL: nothing is changed */
    struct agent_clock clocks[RUN_CLOCKS]; /* exchanges is 0: not known */

    enum node_state state; /* changed by run_node_enter() */
    const char *out;       /* in a word (out.h), why it takes no part any more; NULL: it does */
    char *out_sentence;    /* the same in a sentence; may be NULL */
    char *slow;            /* that it is slower than the others, in a sentence; NULL: it is not */
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
    unsigned part;           /* which of the run's parts this is, from 1 */
    struct run_history past; /* the parts before; zeroed in part 1 */
    bool only_seals;     /* all was measured before: nodes are only looked after, and the archive is made */
    bool nodes_given_up; /* it only seals, and they cannot be reached */
    struct run_lock *lock;
    size_t block_number; /* of the block that is being measured, or was last, from 1: blocks are counted as
                            they are measured, over all parts */

    struct plan *plan;
    struct event_loop *loop;
    struct event_source *signals[RUN_SIGNALS];
    struct testbed *testbed;
    struct run_node *nodes; /* in the order of the group's */
    size_t node_count;
    struct node_group *group;
    const struct run_node *newcomer; /* a spare that is being brought in; NULL: none */
    struct watch *watch;             /* of the nodes; NULL: they are not, or not yet */
    struct event_source *news_timer; /* gathers what happens to many nodes at once into one sentence */
    struct event_source *give_up;    /* deferred: run_give_up_broken() */
    unsigned commands_kept;          /* folders in logs/commands/ */

    struct journal *journal;
    struct append_file *results, *log;
    struct run_files files;
    bool began[RUN_PHASES];
    enum run_phase phase;
    enum run_interruption interrupted; /* changed by run_interrupt() */
    bool restore_insisted;             /* a signal has come while controls were put back */
    bool failed;                       /* `why` is the first failure */
    struct failure why;
    struct failure loss;     /* why the run cannot continue without a node; .code is 0 while it can */
    struct failure seal_why; /* .code is 0 unless the run could not be sealed */
    struct ledger *ledger;   /* of the units that have ended, in all parts of the run */
    const struct ledger_totals *units; /* its totals */
    struct ledger_totals committed;    /* those that the journal has */
    uint64_t units_planned;
    uint64_t units_before;        /* done in the parts before */
    struct settling *settling;    /* rows that are known well enough; NULL: all have the same repetitions */
    char first_unit_failure[768]; /* a sentence, or empty */

    struct deadline deadline;
    struct event_source *deadline_timer; /* NULL: no deadline */
    double *expected_seconds;            /* of a unit of each row, by a model; NULL: none was named */
    struct unit_times *times;            /* NULL: nobody will ask, without a deadline */
    int64_t state_ns;                    /* the longest that bringing the nodes into a block's state took */
    size_t reached;                      /* the first position of the last block that was begun */
};

/* A line in logs/engine.log, with its time. Kept until the next commit; failures to write surface there. */
void run_log(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and reported to the observer. */
void run_note(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What run_files_write() wrote first, then results, then the journal that speaks of them, then the log. */
int run_commit(struct run *run, struct failure *failure);
/* Adds the totals of the units to an entry of the journal. */
void run_journal_counts(struct run *run);
void run_tell(const struct run *run, enum run_event_kind kind, const char *text);

/* PATH below the run's folder; the caller frees. */
char *run_path(const struct run *run, const char *name);
/* Makes the folder NAME below the run's folder, and those above it. */
int run_make_folder(const struct run *run, const char *name, struct failure *failure);

/* "nodes/NAME", where the files of a node are; from part 2 on "nodes/NAME/part-K". The caller frees. */
char *run_node_folder(const struct run *run, const struct run_node *node);
char *run_node_folder_of(const struct run_node *node, unsigned part);

/* run_files_write() of VALUE, pretty, as FILE in the node's folder. */
int run_write_node_json(struct run *run, const struct run_node *node, const char *file, const cJSON *value,
                        struct failure *failure);
/* "node a", "nodes a-[1-3]": COUNT of the run's nodes, in a sentence; the caller frees. */
char *run_nodes_in_words(const struct run *run, const size_t *nodes, size_t count);
/* The same without the word before it. */
char *run_fold_nodes(const struct run *run, const size_t *nodes, size_t count);
/* Notes WORDS (kinds.h), once for all nodes of which the same is to be said: "nodes a-[1-3]: ...". */
struct node_texts;
void run_note_kinds(struct run *run, const struct node_texts *words);
/* Nodes whose links broke, came back or were lost since the last call are told of. */
void run_tell_news(struct run *run);
/* Of a run that goes on: which spares have taken whose places, so far. Once the nodes are known. */
void spares_recall(struct run *run, const struct run_history *past);
/* What there is to tell of NODE, with that of others; the last counts. */
void run_add_news(struct run *run, struct run_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A run that has ended badly does not wait for nodes that are out of reach, from its collect phase on: they
 * are told to leave if they are found again at once, or leave by themselves. Called when collect begins, and
 * whenever a link turns out to be broken after that. */
void run_give_up_broken(struct run *run);
/* 0, or why a node that the run needs is not there any more. */
int run_check_nodes(struct run *run, struct failure *failure);
/* node_failures_merge() of the nodes that are in: what one that was taken out meanwhile could not do is
 * forgotten. When the run cannot continue without a node, that is the failure. */
int run_merge_failures(struct run *run, struct failure *failures, const char *what, struct failure *failure);

/* resume.c: opens the run in the folder of INPUTS for another part, and journals that. When it was completed
 * and sealed before, *RET_SEALED is its archive, the caller's, and nothing was opened. */
int run_reopen(struct run *run, const struct inputs *inputs, char **ret_sealed, struct failure *failure);
/* Makes or opens the journal, the results and the log; what earlier parts have not committed is cut off. */
int run_open_records(struct run *run, struct failure *failure);
/* Of a run that is resumed: ends the agents of its earlier parts; refuses nodes that it did not have; and
 * nodes that are not the machines that they were. */
int run_end_old_agents(struct run *run, struct failure *failure);
int run_check_node_names(const struct run *run, struct failure *failure);
int run_check_same_nodes(struct run *run, struct failure *failure);

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
void run_note_differences(struct run *run);
/* The same of WHAT alone. */
void run_note_difference(struct run *run, const char *what, const struct node_texts *values);
/* What the agents cost, into the journal. */
void run_record_agent_costs(struct run *run);

/* What the nodes are and which cores they have, asked anew: a control may have changed it. */
int run_take_facts(struct run *run, struct failure *failure);

/* Keeps the nodes busy as the campaign says. BLOCK: 0, or the number of the block that it is for. */
int run_warm_up(struct run *run, size_t block, struct failure *failure);
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
/* Writes campaign.resolved.json and design.csv, by the plan. */
int run_record_design(struct run *run, struct failure *failure);
/* Makes the plan anew, with what the nodes are, where it was made with guesses and depends on them; and
 * writes what depends on it. inputs.json comes first: its facts are enough to make the plan again. */
int run_plan_for_facts(struct run *run, struct failure *failure);
int run_record_plan(struct run *run, struct failure *failure);
/* Bytes that the agent and what it starts may still use. */
uint64_t run_available_memory(const struct run_node *node);
/* Writes run.json, by the committed journal. */
int run_record_run(struct run *run, struct failure *failure);

/* ---- reservation.c: how much time there is, and who may use it. Without a deadline there is always enough.
 */

/* What a unit of each row will take by the model that the campaign names, if it names one. */
int run_read_expectations(struct run *run, struct failure *failure);
/* The time that this part of the run has, as far as the campaign and the command line say it. */
int run_begin_reservation(struct run *run, struct failure *failure);
/* What the testbed says, now that nodes are reserved. */
int run_meet_reservation(struct run *run, struct failure *failure);
/* Just before the measurements: finds out, with a deadline, what the end of the run will take. */
int run_rehearse_ending(struct run *run, struct failure *failure);
/* Until all that is left is needed for ending; INT64_MAX without a deadline. */
int64_t run_time_left_ns(const struct run *run);
/* Could a unit of POSITION still end in time, if it began in BUSY_NS? */
bool run_has_time(const struct run *run, size_t position, int64_t busy_ns);
/* How long that unit will take; negative: not known. */
int64_t run_expect_ns(const struct run *run, size_t position);
/* A unit of POSITION was done from BEGUN_NS to END_NS, monotonic; negative: not known. */
void run_take_unit_time(struct run *run, size_t position, int64_t begun_ns, int64_t end_ns);
/* Could the nodes still be brought into the state of a block? If not, the run is interrupted. */
bool run_has_time_for_state(struct run *run);
/* They were, in so long, of which so long was the setting of the controls. */
void run_take_state_time(struct run *run, int64_t took_ns, int64_t setting_ns);
/* Interrupts the run, because nothing more of it could end in time. */
void run_reach_deadline(struct run *run, const char *why);
/* How long commands have between SIGTERM and SIGKILL. */
int64_t run_grace_ns(const struct run *run);

/* ---- missing.c */

/* Writes results/missing.csv, or removes it where nothing is missing. *RET: how many lines. */
int run_record_missing(struct run *run, uint64_t *ret, struct failure *failure);

/* ---- ending.c: how a run ends, and what that is called. */

/* Begins to watch the signals that end a run. */
int run_watch_signals(struct run *run, struct failure *failure);
/* The measurements, or whatever comes before them, end now: nothing waits any longer. SENTENCE is reported.
 * Does nothing when the run is ending already. */
void run_interrupt(struct run *run, enum run_interruption by, const char *sentence);
const char *run_status(const struct run *run);
/* 0 for a run that is complete, or what its caller gets, FAILURE_INTERRUPTED or _PARTIAL. */
int run_judge_ending(const struct run *run, struct failure *failure);
/* What the run's status says for itself; an empty sentence for a run that is complete, or still runs. */
const char *run_describe_ending(const struct run *run, char *buffer, size_t size);

#endif
