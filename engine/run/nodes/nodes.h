/*
 * The nodes of a run: what is known of each, which take part, and the phases that only nodes have to do with.
 *
 * A node that takes no part any more was taken out, and why is a word. It is asked nothing from then on, and
 * its lanes end; what it had answered is kept.
 *
 *     lost          its link has ended: it died, was restarted, or was silent until its lease was over
 *     unreachable   it could not be connected to begin with
 *     hung          something runs there that cannot be ended
 *     failing       its units fail, and those of other nodes do not
 *     replaced      in an earlier part of the run; a spare has its share
 *     unfit         a command that prepares the node, or sets the state of a block, failed on it or ran
 *                   past its time limit
 *     throttle...   a gate whose action is `drop`: the gate's name
 *
 * What is still there of it is left to itself, except that a node whose agent answers is restored and
 * released with the others. One that does not is restored by its agent, when the lease is over.
 */
#ifndef ASSAY_NODES_NODES_H
#define ASSAY_NODES_NODES_H

#include "engine/documents/json.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/installation.h"
#include "engine/remote/link/facts.h"
#include "engine/remote/link/link.h"
#include "engine/remote/nodes/group.h"
#include "engine/run/campaign/copies.h"
#include "engine/run/campaign/plan.h"
#include "engine/run/nodes/deadline.h"
#include "engine/run/record/history.h"
#include "engine/run/record/run-record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum run_clock { RUN_CLOCK_START, RUN_CLOCK_END, RUN_CLOCKS };

/* The part that a node has in the run. */
enum node_state {
    NODE_IN,
    NODE_SPARE,       /* not connected; replaces a node that is lost */
    NODE_LATE,        /* takes part since some block; the blocks before it are still to be measured */
    NODE_CATCHING_UP, /* takes part; measures those earlier blocks now */
    NODE_OUT,         /* taken out; takes no part any more */
    NODE_REPLACED,    /* out, and another node measures its units; or a spare that was never used */
};

/* The controls of a node, as far as they are known. Zeroed memory: not at all. */
struct node_control_record {
    bool kept;                           /* the values found are saved on the node, for restoring */
    double target_min_hz, target_max_hz; /* of a busy PU; 0: not known */
    const char **expectations; /* "PATH=VALUE" of the files that were set; the texts are the group's */
    size_t expectation_count;
    cJSON *json; /* owned; controls.json: FORMAT.md, "nodes/NODE/controls.json" */
};

struct run_node {
    const char *name;                  /* owned: it outlives the testbed */
    size_t number;                     /* its place in the set and in the group */
    struct agent_link *link;           /* the group's */
    const struct transport *transport; /* the link's first one, until the agent is recorded; then NULL */
    char *agent_path;                  /* on the node; NULL: not known */
    bool agent_delivered, agent_built;
    unsigned breaks;   /* how often the link broke */
    int64_t broken_ns; /* monotonic: since when it is; 0: it is not */
    int64_t outage_ns; /* of the last break that ended */
    char *news;        /* a sentence about its link that is not reported yet; NULL: none */
    struct node_facts *facts;
    char *cpu_model;              /* NULL: the node does not say */
    const struct node_pu **cores; /* first usable PU of every physical core; into facts */
    size_t core_count;
    struct node_control_record control;    /* how it was found, and set */
    cJSON *warm_up;                        /* warm-up.json; NULL: it was not warmed up */
    double warm_temperature;               /* Cel, of its hottest package when it was warm; nan: not known */
    cJSON *software;                       /* what software/versions.json says of this node */
    char **environment;                    /* software_environment(); NULL: nothing is changed */
    struct agent_clock clocks[RUN_CLOCKS]; /* exchanges is 0: not known */
    char last_arguments[HASH_HEX_SIZE], last_environment[HASH_HEX_SIZE]; /* of entries `unit-command` */

    enum node_state state;   /* changed by node_set_enter() */
    const char *left_reason; /* why it takes no part any more: NODE_OUT_...; NULL: it takes part */
    char *out_sentence;      /* left_reason in a sentence; may be NULL */
    char *slow;              /* a sentence: slower than equal nodes; NULL: it is not */
};

#define NODE_OUT_LOST "lost"
#define NODE_OUT_UNREACHABLE "unreachable"
#define NODE_OUT_HUNG "hung"
#define NODE_OUT_FAILING "failing"
#define NODE_OUT_UNFIT "unfit"
#define NODE_OUT_REPLACED "replaced"
/* The note about nodes (%s) whose controls could not be restored by the run. */
#define NODE_SET_UNREACHABLE_SENTENCE                                                                        \
    "%s: unreachable; an agent on it restores the controls when its lease expires; check with "              \
    "'assay nodes restore -w NODE'"

/* Of the arguments of a command, and of its environment, that are journalled; a line has 1 MiB. */
enum { NODE_CALL_BYTES_MAX = 64 << 10 };

/* The working folder of setup and run commands, below the agent's folder. */
#define RUN_WORK_FOLDER "work"

struct node_set {
    struct run_record *record;
    const struct installation *installation;
    const struct campaign *campaign;
    const struct experiment *experiment; /* the campaign's */
    struct plan *plan;                   /* made anew, at the same address, when it depends on the nodes */
    const struct run_history *past;      /* of the parts before; empty in part 1 */
    struct event_loop *loop;
    struct testbed *testbed;
    struct node_group *group;
    struct run_node *items; /* in the order of the group's */
    size_t count;
    const struct run_node *joining;  /* a spare that is being brought in: it alone is asked; NULL: none */
    struct event_source *news_timer; /* delays news, so that equal news of many nodes is one sentence */
    struct event_source *give_up;    /* deferred call of node_set_give_up_broken() */
    struct failure loss;             /* why the run cannot continue without a node; .code is 0 while it can */
    bool unreachable_at_seal;        /* the run only seals, and the nodes cannot be reached */
    bool old_agents_asked;           /* agents of earlier parts were asked to leave */

    struct deadline deadline;            /* reservation.h */
    struct event_source *deadline_timer; /* NULL: no deadline */
    int64_t state_ns;                    /* the longest that bringing the nodes into a block's state took */
};

void node_set_clear(struct node_set *set);

/* ---- out.c: which take part */

/* Sets NODE's state, and whether the group asks it. The only function that changes the state. */
void node_set_enter(const struct node_set *set, struct run_node *node, enum node_state state);
/* Does NODE take part: neither out, nor replaced, nor a spare? */
bool run_node_is_in(const struct run_node *node);
/* The node called NAME; NULL: there is none. */
struct run_node *node_set_find(const struct node_set *set, const char *name);
/* Is NODE, a number, being asked? All nodes that take part are; while a spare is brought in, it alone is. */
bool node_set_has(const struct node_set *set, size_t node);
/* The next node after NODE that is being asked; the first when NODE is NULL; NULL after the last.
 *
 *     for (struct run_node *node = NULL; (node = node_set_next(set, node));) */
struct run_node *node_set_next(const struct node_set *set, const struct run_node *node);
size_t node_set_count_in(const struct node_set *set);
/* Begins an entry of the journal about NODE; journal_end() ends it. */
struct journal *node_set_begin_entry(const struct node_set *set, const char *event,
                                     const struct run_node *node);
/* Journals an entry about NODE with the single member KEY. */
void node_set_note_entry(const struct node_set *set, const char *event, const struct run_node *node,
                         const char *key, const char *value);
/* Journals that BY now measures the units of LOST. Units that failed on LOST are no longer counted. */
void node_set_note_replacement(const struct node_set *set, const struct run_node *lost,
                               const struct run_node *by);
/* The path of FILE in NODE's folder, relative to the run's; the caller frees. */
char *node_set_path(const struct node_set *set, const struct run_node *node, const char *file);

/* Takes NODE out of the run; journalled and reported. 0: it is out, perhaps since before. Negative: FAILURE
 * says why the run cannot continue without it: the campaign wants it to end, or too few nodes are left. From
 * the collect phase on, any number is enough. WORD: NODE_OUT_... or a gate's name, not copied. */
int node_set_take_out(struct node_set *set, struct run_node *node, const char *word,
                      const struct failure *why, struct failure *failure);
/* Takes out NODE, which is not ready to measure because the step WHAT failed with WHY. 1: it is out. 0: the
 * campaign does not continue without nodes, and WHY fails the run. Negative: FAILURE says why the run cannot
 * continue without it. */
int node_set_take_out_unfit(struct node_set *set, size_t node, const char *what, struct failure *why,
                            struct failure *failure);
/* Takes out the nodes that could not be connected. False: the run cannot continue without them. */
bool node_set_take_out_unreachable(struct node_set *set);
/* For a run that is resumed, once its nodes are known: lets the spares of earlier parts replace the nodes
 * that they replaced then. */
void node_set_recall_spares(struct node_set *set);
/* Ends the current phase: waiting stops, and the run goes on with collect. SENTENCE is reported. Does nothing
 * when the run is ending already. */
void node_set_interrupt(struct node_set *set, enum run_interruption by, const char *sentence);

/* Is every unit of NODE's share done? */
bool node_set_has_all_units(const struct node_set *set, const struct run_node *node);
/* Are there units that a node was to measure when it was taken out, and that nobody measured? */
bool node_set_lacks_units(const struct node_set *set);
/* "without nodes a-[2-3] (lost)"; the caller frees. NULL when no node is out. */
char *node_set_describe_out(const struct node_set *set);

/* ---- connect.c: their links */

/* "node a" or "nodes a-[1-3]": NODES, COUNT numbers, for a sentence; the caller frees. */
char *node_set_describe(const struct node_set *set, const size_t *nodes, size_t count);
/* As node_set_describe() without the word: "a-[1-3]"; the caller frees. */
char *node_set_fold(const struct node_set *set, const size_t *nodes, size_t count);
/* Notes WORDS, a sentence or NULL for each node; nodes with the same one share a note: "nodes a-[1-3]: ...".
 */
struct node_texts;
void node_set_note_grouped(struct node_set *set, const struct node_texts *words);
/* Notes which links broke, came back or were lost since the last call. */
void node_set_report_news(struct node_set *set);
/* Sets the news of NODE, reported with that of other nodes a moment later. Earlier news is replaced. */
void node_set_add_news(struct node_set *set, struct run_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Closes broken links from the collect phase on, if the run has failed or was interrupted: it does not wait
 * for unreachable nodes, whose agents end by themselves. Called when collect begins, and whenever a link
 * breaks after that. */
void node_set_give_up_broken(struct node_set *set);
/* 0, or negative and why a node that the run needs is not connected any more. */
int node_set_check(struct node_set *set, struct failure *failure);
/* Merges FAILURES, one for each node, of the step WHAT (node_failures_merge()). Nodes that are out do not
 * count. A node that failed by itself, while others did not, is taken out (node_set_take_out_unfit()), unless
 * the campaign or the experiment is to blame. 0: no failure is left. */
int node_set_merge_failures(struct node_set *set, struct failure *failures, const char *what,
                            struct failure *failure);
/* The reserve, deploy, connect and release phases. */
int node_set_reserve(struct node_set *set, struct failure *failure);
int node_set_deploy(struct node_set *set, struct failure *failure);
int node_set_connect(struct node_set *set, struct failure *failure);
int node_set_release(struct node_set *set, struct failure *failure);
/* Journals the processor time and memory of each agent. */
void node_set_record_costs(struct node_set *set);

/* ---- old-agents.c, same-nodes.c: of a run that is resumed */

/* Ends the agents of earlier parts. */
int node_set_end_old_agents(struct node_set *set, struct failure *failure);
/* Part of restore: ends the agents of earlier parts that have not been asked to, as when the run ended early.
 * Nodes that are not connected are not waited for. */
int node_set_end_old_agents_before_seal(struct node_set *set, struct failure *failure);
/* For testbeds with reservations: notes that nodes of earlier parts which are not given again are left as
 * they are. */
void node_set_leave_old_nodes(struct node_set *set);
/* node_set_check_names() refuses nodes that the run did not have in its first part; node_set_check_same()
 * refuses nodes whose hardware is not what it was. */
int node_set_check_names(const struct node_set *set, struct failure *failure);
int node_set_check_same(struct node_set *set, struct failure *failure);

/* ---- clocks.c, inspect.c, differences.c: what they are */

/* Measures each node's clocks against the engine's; journalled, and kept in nodes/NAME/clock.json. */
int node_set_measure_clocks(struct node_set *set, enum run_clock which, struct failure *failure);
/* Reads the facts of all nodes (node->facts, cores), again after a control may have changed them. */
int node_set_read_facts(struct node_set *set, struct failure *failure);
/* The inspect phase without the plan: reads facts and raw files, and notes how the nodes differ. */
int node_set_inspect(struct node_set *set, struct failure *failure);
/* Refuses, before hours of preparation, what the nodes cannot measure: more processes than an agent starts,
 * sizes that do not fit into their memory, more units than an archive has room for. */
int node_set_check_fit(struct node_set *set, struct failure *failure);
/* Refuses a plan that has, with LANES lanes, more units than an archive has room for. */
int node_set_check_units(const struct node_set *set, uint64_t lanes, struct failure *failure);
/* Bytes that the agent and what it starts may still use. */
uint64_t run_node_available_memory(const struct run_node *node);
/* Notes and journals how the nodes differ, since their results will be compared. */
void node_set_note_differences(struct node_set *set);
/* Notes and journals WHAT if its VALUES, one for each node, are not all the same. */
void node_set_note_difference(struct node_set *set, const char *what, const struct node_texts *values);

/* ---- prepare.c */

/* The prepare phase. */
int node_set_prepare(struct node_set *set, struct failure *failure);
/* The experiment's teardown commands; part of collect. */
int node_set_tear_down(struct node_set *set, struct failure *failure);

#endif
