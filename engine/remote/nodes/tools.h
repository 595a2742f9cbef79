/*
 * The agent's tools (engine/agent/TOOLS.md) on many nodes: each is started as a command, the agent's own
 * program, and what it prints comes back line by line.
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

/* The next line at *AT, which is NUL-ended in place; NULL at the end. */
char *tool_line_next(char **at);
/* The next field of a line, unescaped in place; "" and *AT NULL when there is none. */
char *tool_field_next(char **at);

/* ---- on many nodes */

struct node_tool {
    const char *const *arguments; /* from the tool's name on: {"--controls", NULL} */
    /* When not NULL, asked for each node instead; what *RET points to must stay until the end of the call. */
    const char *const *(*arguments_of)(size_t node, void *context);
    const bool *nodes;   /* which; NULL: all */
    uint64_t timeout_ms; /* 0: none */
    /* For each line of each node, as it comes: KIND is its first field, *AT the rest (tool_field_next). A
     * negative return, with its failure, is that node's, of which no more lines are taken.
     * The lines of a tool that fails at its end have been taken by then. NULL: they do not matter. */
    int (*take)(size_t node, const char *kind, char *at, void *context, struct failure *failure);
    /* Asked after a node's last line: do they say all that was asked for, or all that its STATUS, 0 or 1,
     * means? If not, the node's failure is what the tool said on stderr. NULL: 0 is good, and 1 is not. */
    bool (*is_told)(size_t node, int status, void *context);
    void *context;
};

/* Runs it on all at once. RET_FAILURES: one a node, code 0 where the tool ended with status 0 or 1, TAKE took
 * all its lines, and they say enough; owned by the caller. Negative when the whole
 * cannot go on. Arguments of 256 KiB in all, as for every command. */
int node_group_run_tool(struct node_group *group, const struct node_tool *tool, struct failure **ret_failures,
                        struct failure *failure);

#endif
