/* A child process as a channel: the agent of this machine, or a program that runs a command on another
 * machine (ssh(1), srun). */
#ifndef ASSAY_CHANNEL_CHILD_H
#define ASSAY_CHANNEL_CHILD_H

#include "engine/remote/channel/channel.h"

struct child_channel_options {
    const char *const *arguments;   /* ended by NULL; [0] is looked up in PATH unless it has a slash */
    const char *const *environment; /* NULL: that of this process */
    /* remote_channel_free() closes the streams and waits up to 5 s for the child, before it kills its process
     * group by SIGKILL; false: SIGKILL at once. */
    bool ends_in_order;
};

/* Starts a child in a session of its own, so that Ctrl-C at the terminal reaches the engine only. Its stdin
 * and stdout are one socket. */
int child_channel_open(struct event_loop *loop, const struct child_channel_options *options,
                       const struct remote_channel_listener *listener, struct remote_channel **ret,
                       struct failure *failure);

#endif
