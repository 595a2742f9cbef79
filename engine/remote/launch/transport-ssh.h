/* The transport to an agent on another machine, by libssh or by programs: agent-transport.h has what it does.
 */
#ifndef ASSAY_LAUNCH_TRANSPORT_SSH_H
#define ASSAY_LAUNCH_TRANSPORT_SSH_H

#include "engine/event-loop/event-loop.h"
#include "engine/remote/launch/agent-transport.h"
#include "engine/remote/launch/package.h"
#include "engine/remote/launch/transport.h"
#include "engine/remote/ssh/client.h"

struct transport_ssh_options {
    struct ssh_client *client;             /* borrowed; not used by programs */
    const char *destination;               /* [user@]host[:port] */
    const char *node;                      /* the name for failures and results; NULL: the destination */
    const struct launcher_words *launcher; /* in place of libssh, programs; NULL: libssh */
    struct agent_transport_options agent;
};

int transport_ssh_new(struct event_loop *loop, const struct transport_ssh_options *options,
                      struct transport **ret, struct failure *failure);

#endif
