/* Running the agent's tools (engine/agent/TOOLS.md): commands of the agent's own program. */
#ifndef ASSAY_LINK_TOOL_H
#define ASSAY_LINK_TOOL_H

#include "engine/remote/link/command.h"

/* The program of a tool on the node: the agent's child is still the agent's program when it executes this
 * path. */
#define NODE_TOOL_PROGRAM "/proc/self/exe"

/* Returns 0 if a tool has ended with status 0; otherwise a negative errno with its first line of stderr,
 * ERRORS (may be NULL), as the sentence. */
int tool_failure(const struct remote_exit *exit, const char *errors, struct failure *failure);
/* The folder of PATH; ".": PATH has no slash. The caller frees. */
char *tool_folder_of(const char *path);

#endif
