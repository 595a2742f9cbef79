/*
 * The agent's tools (engine/agent/TOOLS.md) on many nodes: each is a command that runs the program of the
 * agent, and its output is read line by line.
 */
#ifndef ASSAY_NODES_TOOLS_H
#define ASSAY_NODES_TOOLS_H

#include "engine/remote/link/tool.h"
#include "engine/remote/nodes/group.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NODE_TOOL_OUTPUT_MAX = 16 << 20 }; /* bytes that a tool may print on one node */

/* ---- lines */

/* The line at *AT, its newline replaced by NUL; moves *AT to the next. NULL at the end. */
char *tool_line_next(char **at);
/* The field at *AT, up to a tab, unescaped in place; moves *AT to the next, or to NULL after the last. ""
 * when *AT is NULL. */
char *tool_field_next(char **at);

/* ---- on many nodes */

struct node_tool {
    const char *const *arguments; /* begin with the name of the tool: {"--controls", NULL} */
    /* When not NULL, gives the arguments of each node instead. They must stay until the call for the next
     * node. */
    const char *const *(*arguments_of)(size_t node, void *context);
    const bool *nodes;   /* one a node: does it run the tool? NULL: all do */
    uint64_t timeout_ms; /* 0: none */
    /* Called for each line of each node as it comes: KIND is its first field, AT the rest (tool_field_next).
     * Negative, with FAILURE: the node has failed, and its other lines are ignored. A tool may fail after its
     * lines were passed on. NULL: the lines do not matter. */
    int (*take)(size_t node, const char *kind, char *at, void *context, struct failure *failure);
    /* Called after the last line of a node, with the STATUS of the tool, 0 or 1. True: the lines say all that
     * was asked for, or what failed. False: the node has failed, for what the tool wrote on stderr. NULL:
     * true for status 0. */
    bool (*is_told)(size_t node, int status, void *context);
    void *context;
};

/* Runs TOOL on all nodes at once and waits. RET_FAILURES: one a node, owned by the caller (free); code 0
 * where the tool ended with status 0 or 1, TAKE returned 0 for all its lines, and IS_TOLD is true. Negative
 * when the call is interrupted. The arguments may have 256 KiB in all, as those of every command. */
int node_group_run_tool(struct node_group *group, const struct node_tool *tool, struct failure **ret_failures,
                        struct failure *failure);

#endif
