/* What the files nodes*.c share: the options of `assay nodes`, and the nodes while one of its actions uses
 * them. */
#ifndef ASSAY_COMMAND_LINE_NODES_H
#define ASSAY_COMMAND_LINE_NODES_H

#include "engine/command-line/verb.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/text.h"
#include "engine/remote/nodes/group.h"
#include "engine/remote/nodes/ssh-nodes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nodes, connected. */
struct nodes {
    struct host_list list; /* as given */
    struct event_loop *loop;
    struct event_source *signals[3];
    struct ssh_nodes *ssh;
    struct node_group *group;
    int64_t connect_ns; /* how long it took until each was there or had failed */
    /* A line on stderr about what is being waited for. */
    const char *doing; /* "connecting"; NULL: nothing */
    bool quiet, terminal, line_drawn;
    int64_t last_shown_ns;
};

/* What the agents may do. */
enum { NODES_LEAVE_CONTROLS = 1 };

/* Connects to the nodes that ARGUMENTS name. Those that cannot be reached are left out (node_group_is_there),
 * and fail the action at its end; the first failure of this function is that none is there, or that the
 * arguments are wrong. NODES is zeroed before, and to be closed after failures too. */
int nodes_open(struct nodes *nodes, const struct verb_arguments *arguments, unsigned flags,
               struct failure *failure);
/* Tells the agents to leave, waits for them and frees all. R is what the action came to; the result is R, or
 * the failure to leave in order if R was 0. */
int nodes_close(struct nodes *nodes, int r, struct failure *failure);
void nodes_clear(struct nodes *nodes); /* without waiting; for the cleanup attribute */

/* What the progress line says from now on; NULL: nothing, and the line is taken away. */
void nodes_doing(struct nodes *nodes, const char *doing);

/* The names of the COUNT nodes NODES, folded, as text. NULL when out of memory; the caller frees. */
char *nodes_fold(const struct nodes *nodes, const size_t *numbers, size_t count);

/* One failure about all nodes that FAILURES names (WHAT failed on K of N nodes: ...), its kind FAILURE_SYSTEM
 * and so exit code 1; 0 if there is none. */
int nodes_failures(const struct nodes *nodes, const struct failure *failures, const char *what,
                   struct failure *failure);

/* ---- options */

/* Values of options as numbers; *RET is untouched where the option is not given. */
int nodes_time_option(const struct verb_arguments *arguments, const char *name, int64_t *ret_ns,
                      struct failure *failure);
int nodes_size_option(const struct verb_arguments *arguments, const char *name, uint64_t *ret,
                      struct failure *failure);
int nodes_count_option(const struct verb_arguments *arguments, const char *name, uint64_t least,
                       uint64_t most, uint64_t *ret, struct failure *failure);

/* ---- actions */

int nodes_run(const struct verb_arguments *arguments, struct failure *failure);
int nodes_put(const struct verb_arguments *arguments, struct failure *failure);
int nodes_get(const struct verb_arguments *arguments, struct failure *failure);
int nodes_show(const struct verb_arguments *arguments, struct failure *failure);
int nodes_clean(const struct verb_arguments *arguments, struct failure *failure);
int nodes_controls(const struct verb_arguments *arguments, struct failure *failure);
int nodes_restore(const struct verb_arguments *arguments, struct failure *failure);
int nodes_capture(const struct verb_arguments *arguments, struct failure *failure);

#endif
