/* What the files of this folder share: the options of `assay nodes`, the nodes while one of its actions uses
 * them, and what they answered. */
#ifndef ASSAY_COMMAND_LINE_NODES_NODES_H
#define ASSAY_COMMAND_LINE_NODES_NODES_H

#include "engine/command-line/verb.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/host-list.h"
#include "engine/remote/nodes/group.h"
#include "engine/remote/nodes/ssh-nodes.h"
#include "engine/report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nodes, connected. */
struct nodes {
    struct host_list list; /* as given */
    struct event_loop *loop;
    struct ssh_nodes *ssh;     /* NULL: they are a run's, of */
    struct reserved *reserved; /* reserved.c */
    struct node_group *group;
    int64_t connect_ns; /* how long it took until each was there or had failed */
    /* The answers, printed when the action is over: a list with a section for each node. */
    struct report *report;
    struct report_section *answers, **sections;
    struct failure *failures; /* one a node, or NULL: what could not be done there */
    /* A line on stderr about what is being waited for. */
    const char *doing; /* "connecting"; NULL: nothing */
    bool quiet, is_terminal, is_line_drawn;
    int64_t last_shown_ns;
};

/* Connects to the nodes of ARGUMENTS, or to those in NODES' list if it has some; otherwise NODES is zeroed.
 * Nodes that cannot be reached are left out (node_group_is_there) and fail the action at its end. This
 * function only fails if the arguments are wrong or no node can be reached. LEAVE_CONTROLS: agents do not
 * restore what others have left changed. To be closed after failures too. */
int nodes_open(struct nodes *nodes, const struct verb_arguments *arguments, bool leave_controls,
               struct failure *failure);
/* Asks the agents to leave, waits for them and frees everything. R is the result of the action, which is
 * returned; if it is 0, a failure to leave is. */
int nodes_close(struct nodes *nodes, int r, struct failure *failure);

/* ---- reserved.c: the nodes of a run, as its testbed reaches them (--run) */

/* Finds the nodes that the run of --run has reserved, and waits until they can be used. --run names the run's
 * folder or an archive beside it. FAILURE_INPUT: nothing is reserved. To be closed after failures too. */
int reserved_open(const struct nodes *nodes, const struct verb_arguments *arguments, bool leave_controls,
                  struct reserved **ret, struct failure *failure);
/* Adds the reserved nodes to GROUP. */
int reserved_add(struct reserved *reserved, struct node_group *group, struct failure *failure);
/* Frees RESERVED; the reservation stays. To be called after the group is freed. NULL is fine. */
void reserved_close(struct reserved *reserved);

/* Sets the text of the progress line; NULL removes the line. */
void nodes_doing(struct nodes *nodes, const char *doing);

/* The names of the COUNT nodes NUMBERS, folded, as text. The caller frees. */
char *nodes_fold(const struct nodes *nodes, const size_t *numbers, size_t count);

/* ---- answers */

/* Makes a section for each node, with its name. */
void nodes_report_sections(struct nodes *nodes);
/* As nodes_report_sections(), with whether each node answered (`known`), and for people a line with those
 * that did. */
void nodes_report_known(struct nodes *nodes);
/* Keeps the first failure of each node. FAILURES may be NULL. */
void nodes_add_failures(struct nodes *nodes, const struct failure *failures);
/* The number of nodes without a failure. */
size_t nodes_count_good(const struct nodes *nodes);

/* ---- options */

/* Values of options as numbers; *RET is untouched where the option is not given. */
int nodes_time_option(const struct verb_arguments *arguments, const char *name, int64_t *ret_ns,
                      struct failure *failure);
int nodes_size_option(const struct verb_arguments *arguments, const char *name, uint64_t *ret,
                      struct failure *failure);

/* ---- actions, on nodes that are connected. Each leaves what there is to say in NODES' report and failures;
 * a negative return is about all of it. */

int nodes_put_check(const struct verb_arguments *arguments, struct failure *failure);
int nodes_put(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);
int nodes_get_check(const struct verb_arguments *arguments, struct failure *failure);
int nodes_get(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);
int nodes_show(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);
int nodes_clean(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);
int nodes_controls(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);
int nodes_restore(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);
int nodes_capture_check(const struct verb_arguments *arguments, struct failure *failure);
int nodes_capture(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);

/* Prints while it runs: connects and leaves by itself. */
int nodes_run(const struct verb_arguments *arguments, struct failure *failure);

#endif
