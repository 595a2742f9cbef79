/*
 * A command on all nodes of a run at once, to its end: logged, journalled for each node, and its output kept
 * in logs/commands/ where it matters. Private to this room.
 */
#ifndef ASSAY_NODES_COMMAND_H
#define ASSAY_NODES_COMMAND_H

#include "engine/run/nodes/nodes.h"

struct node_command {
    /* The command line, the same on every node. */
    const char *const *arguments;
    const char *const *environment; /* additions; NULL: none */
    const char *folder;             /* below the agent's own; NULL: that */
    /* Run it in RUN_WORK_FOLDER, with the experiment's software loaded, in its container. */
    bool in_software;
    /* When not NULL, asked for each node: sets the first three of these in *RET, to what stays until the next
     * call, or until the command is over. */
    int (*specify)(struct node_set *set, size_t node, struct remote_command_specification *ret, void *context,
                   struct failure *failure);
    void *context;
    const bool *nodes; /* which; NULL: all that are there */
    /* A word for what the command does, used in names of folders. The command may take a day and must exit
     * with 0 on every node; its output is kept in logs/commands/, once for all nodes on which it is the same.
     * NULL: a question about the node, which may take a minute and may fail. */
    const char *name;
    const char
        *shown;  /* read by people in place of the arguments; it may take a day too. NULL: the arguments */
    size_t kept; /* bytes of each stream that results have; 0: NODE_OUTPUT_KEPT */
};

/* RET (may be NULL): one result a node, for node_results_free(). A failure names the nodes, the command, how
 * it ended and the end of what it wrote; it is of kind FAILURE_EXPERIMENT unless a node was lost. */
int node_command_run(struct node_set *set, const struct node_command *command, struct node_result **ret,
                     struct failure *failure);

#endif
