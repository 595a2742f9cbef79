/*
 * The transport to an agent over ssh: one connection, one channel, on it a relay that hands the channel's two
 * ends to the agent, which is a daemon. When the stream breaks the daemon goes on, and transport_renew()
 * reaches it again.
 *
 * Starting: connect and log in; run the agent where it normally is; if that ends in any way but with the
 * agent's own word of what is wrong (it is not there, cannot be run, is damaged), deliver it and try again,
 * once; wait for the relay's line on stdout (what a login script prints before it is dropped); open. A login
 * that is refused for the moment (-ECONNREFUSED, -ECONNRESET before the login) is tried again, four times,
 * after 0.2 s, doubling, with some chance in it.
 */
#ifndef ASSAY_LAUNCH_TRANSPORT_SSH_H
#define ASSAY_LAUNCH_TRANSPORT_SSH_H

#include "engine/event-loop/event-loop.h"
#include "engine/remote/launch/package.h"
#include "engine/remote/launch/transport.h"
#include "engine/remote/ssh/client.h"

struct transport_ssh_options {
    struct ssh_client *client;           /* borrowed, as is */
    const struct agent_package *package; /* this */
    const char *destination;             /* [user@]host[:port] */
    const char *node;                    /* the name for failures and results; NULL: the destination */
    const char *folder;    /* name of the run directory, which the agent makes: "assay-ID-NODE" */
    const char *workspace; /* the folder it is made in; NULL: TMPDIR, or else the first of /tmp, /var/tmp,
                              ~/.cache/assay and /dev/shm in which files can be written and executed */
    const char *label;     /* whose agent it is, for who finds it left over; one word of the characters of
                              agent_package_command() */
    bool remove_directory; /* when the agent leaves */
    bool write_anywhere;   /* absolute paths may be written to */
    bool leave_controls;   /* what an agent that is gone left changed stays so */
};

int transport_ssh_new(struct event_loop *loop, const struct transport_ssh_options *options,
                      struct transport **ret, struct failure *failure);

/* How the agent came to be on the node; valid when the transport is open. NULL for transports of other kinds.
 */
struct transport_ssh_agent {
    const char *path;
    bool delivered, built;
    const char *damage; /* of what was there and had to be replaced; NULL: nothing */
};
const struct transport_ssh_agent *transport_ssh_agent(const struct transport *transport);

#endif
