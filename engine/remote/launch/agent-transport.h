/*
 * The transport to an agent that a launcher starts: one channel, on it a relay that hands the channel's two
 * ends to the agent, which is a daemon. When the stream breaks the daemon goes on, and transport_renew()
 * reaches it again.
 *
 * Starting: connect; run the agent where it normally is; if that ends in any way but with the agent's own
 * word of what is wrong (it is not there, cannot be run, is damaged), deliver it and try again, once; wait
 * for the relay's line on stdout (what a login script prints before it is dropped); open. By a launcher that
 * has a step for it, the agent is run in the foreground of that step, the line is its own, and then a relay
 * is started beside it; the step is kept until the last transport to the agent is freed. A connection that
 * is refused for the moment (-ECONNREFUSED, -ECONNRESET before it is ready) is tried again, four times, after
 * 0.2 s, doubling, with some chance in it.
 *
 * A local agent has no package: the launcher runs it, and it ends with its stream. Nothing is delivered or
 * waited for but an image, which the launcher's other step brings, and the session is 0.
 */
#ifndef ASSAY_LAUNCH_AGENT_TRANSPORT_H
#define ASSAY_LAUNCH_AGENT_TRANSPORT_H

#include "engine/remote/launch/launcher.h"
#include "engine/remote/launch/package.h"
#include "engine/remote/launch/transport.h"

/* A root file system that agents are deployed in (engine/agent/daemon/deployed.h): as a tar, brought to each
 * node that has none of this name before the agent is started. The node needs tar, tee and sha256sum for it.
 */
struct agent_image {
    char name[HASH_HEX_SIZE], sha256[HASH_HEX_SIZE]; /* name: SHA-256 of what the tar was made of */
    const void *tar;
    size_t length;
};
/* What a shell of root's runs, with name and SHA-256 as its arguments, and the tar on stdin. */
extern const char agent_image_script[];

struct agent_transport_options {
    const struct agent_package *package; /* borrowed; NULL: a local agent */
    const struct agent_image *image;     /* borrowed; NULL: the agent is in the node's own system */
    const char *folder;    /* name of the run directory, which the agent makes: "assay-ID-NODE" */
    const char *workspace; /* the folder it is made in; NULL: TMPDIR, or else the first of /tmp, /var/tmp,
                              ~/.cache/assay and /dev/shm in which files can be written and executed */
    const char *label;     /* whose agent it is, for who finds it left over; one word of the characters of
                              agent_package_command() */
    const char *sudo; /* by which controls are set, words separated by commas; NULL: as the agent's user */
    bool remove_directory; /* when the agent leaves */
    bool leave_controls;   /* what an agent that is gone left changed stays so */
};

/* Takes the launcher over, also on failure. The rest is copied. */
int agent_transport_new(struct launcher *launcher, const struct agent_transport_options *options,
                        struct transport **ret, struct failure *failure);

/* How the agent came to be on the node; valid when the transport is open. NULL for other transports. */
struct agent_arrival {
    const char *path;
    bool delivered, built;
    const char *damage; /* of what was there and had to be replaced; NULL: nothing */
};
const struct agent_arrival *agent_transport_arrival(const struct transport *transport);

#endif
