/* The agent's tools (engine/agent/TOOLS.md), each a command that is the agent's own program. */
#ifndef ASSAY_LINK_TOOL_H
#define ASSAY_LINK_TOOL_H

#include "engine/remote/link/command.h"

/* How a tool is named on the node: the child of an agent is that agent's program until it executes another.
 */
#define NODE_TOOL_PROGRAM "/proc/self/exe"

/* 0 if a tool has ended with status 0; else a negative errno and what it said, ERRORS being its stderr (may
 * be NULL). */
int tool_failure(const struct remote_exit *exit, const char *errors, struct failure *failure);
/* The folder that PATH is in, "." if it names none. The caller frees. */
char *tool_folder_of(const char *path);

#endif
