/* The transport to an agent on another machine, by libssh or by a program; agent-transport.h describes it. */
#ifndef ASSAY_LAUNCH_TRANSPORT_SSH_H
#define ASSAY_LAUNCH_TRANSPORT_SSH_H

#include "engine/event-loop/event-loop.h"
#include "engine/remote/launch/agent-transport.h"
#include "engine/remote/launch/package.h"
#include "engine/remote/launch/transport.h"
#include "engine/remote/ssh/client.h"

struct transport_ssh_options {
    struct ssh_client *client;             /* borrowed; not used where `launcher` is set */
    const char *destination;               /* [user@]host[:port] */
    const char *node;                      /* the node's name in failures and results; NULL: destination */
    const struct launcher_words *launcher; /* the programs to use; NULL: libssh */
    struct agent_transport_options agent;
};

/* Makes a transport, not yet started. -EINVAL for a destination that is not valid. */
int transport_ssh_new(struct event_loop *loop, const struct transport_ssh_options *options,
                      struct transport **ret, struct failure *failure);

#endif
