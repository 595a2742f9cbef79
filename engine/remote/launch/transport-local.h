/* The transport to this very machine: the agent as a child process on a socket pair, in a session of its own,
 * so that Ctrl-C at the terminal reaches the engine only. What the agent says on stderr goes into the reason
 * of its end. */
#ifndef ASSAY_LAUNCH_TRANSPORT_LOCAL_H
#define ASSAY_LAUNCH_TRANSPORT_LOCAL_H

#include "engine/remote/launch/agent-transport.h"
#include "engine/remote/launch/transport.h"

#include <stdbool.h>

struct transport_local_options {
    const char *agent;     /* path of the agent program (libexec/assay/assay-agent) */
    const char *directory; /* its run directory, absolute; made, mode 0700, if it is not there */
    bool remove_directory; /* the agent removes it when it leaves, however its link ended, unless it was there
                              before with something in it (engine/agent/PROTOCOL.md, "The end") */
    const char *root;      /* a captured tree in place of "/" for what the agent reads, or NULL */
    const struct agent_image *image; /* what it is deployed in, borrowed; NULL: nothing */
    const char *node;                /* the name that failures use, or NULL for "localhost" */
};

/* The options are copied. The caller frees with transport_free(), or gives it to an agent link. */
int transport_local_new(struct event_loop *loop, const struct transport_local_options *options,
                        struct transport **ret, struct failure *failure);

#endif
