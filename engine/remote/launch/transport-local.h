/* The transport to an agent on this machine: a child process on a socket pair, in a session of its own, so
 * that Ctrl-C at the terminal reaches the engine only. The agent's stderr is quoted in the reason of its end.
 */
#ifndef ASSAY_LAUNCH_TRANSPORT_LOCAL_H
#define ASSAY_LAUNCH_TRANSPORT_LOCAL_H

#include "engine/remote/launch/agent-transport.h"
#include "engine/remote/launch/transport.h"

#include <stdbool.h>

struct transport_local_options {
    const char *agent;     /* path of the agent program (libexec/assay/assay-agent) */
    const char *directory; /* its run directory, absolute; made, mode 0700, if it is missing */
    /* The agent removes the run directory at its end, unless it existed and was not empty
     * (engine/agent/PROTOCOL.md, "The end"). */
    bool remove_directory;
    const char *root;                /* a captured machine, which the agent reads instead of "/"; or NULL */
    const struct agent_image *image; /* the system to deploy, borrowed; NULL: the machine's own */
    const char *node;                /* the node's name in failures; NULL: "localhost" */
};

/* Makes a transport, not yet started; the options are copied. The caller frees it with transport_free(), or
 * passes it to agent_link_new(). */
int transport_local_new(struct event_loop *loop, const struct transport_local_options *options,
                        struct transport **ret, struct failure *failure);

#endif
