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
    struct ssh_client *client;           /* borrowed, as is */
    const struct agent_package *package; /* this */
    const char *destination;             /* [user@]host[:port] */
    const char *node;                    /* the name for failures and results; NULL: the destination */
    /* The rest as in agent-transport.h. */
    const char *folder, *workspace, *label;
    bool remove_directory, leave_controls;
    const struct launcher_words *launcher; /* in place of libssh, programs; NULL: libssh */
};

int transport_ssh_new(struct event_loop *loop, const struct transport_ssh_options *options,
                      struct transport **ret, struct failure *failure);

#endif
