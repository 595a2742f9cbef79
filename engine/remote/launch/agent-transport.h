/*
 * The transport to an agent that a launcher starts: one channel, in which a relay passes the channel's
 * streams to the agent, which is a daemon. When the stream breaks the daemon goes on, and transport_renew()
 * reaches it again.
 *
 * Starting: (1) connect; (2) run the agent at its usual path; (3) if it is missing, damaged or cannot be run,
 * deliver it and go to 2, once (a failure that the agent itself explains is final); (4) wait for the relay's
 * line on stdout, dropping what login scripts print before it; the transport is then open. A launcher with a
 * step for the agent (srun) runs it in the foreground of that step, where it prints the line itself, and then
 * runs a relay beside it; the step is kept until the last transport to the agent is freed. A connection that
 * is refused temporarily (-ECONNREFUSED, or -ECONNRESET before it is ready) is tried four times more, after
 * 0.2 s, doubling, with a random part.
 *
 * A local agent has no package: the launcher runs it, and it ends with its stream, with session 0. Nothing is
 * delivered but an image, by the launcher's other step.
 */
#ifndef ASSAY_LAUNCH_AGENT_TRANSPORT_H
#define ASSAY_LAUNCH_AGENT_TRANSPORT_H

#include "engine/remote/launch/launcher.h"
#include "engine/remote/launch/package.h"
#include "engine/remote/launch/transport.h"

/* A root file system in which agents are deployed (engine/agent/daemon/deployed.h), as a tar. It is copied to
 * each node that has no image of this name, before the agent is started; the node needs tar, tee and
 * sha256sum. */
struct agent_image {
    char name[HASH_HEX_SIZE];   /* SHA-256 of the file that the tar was made of */
    char sha256[HASH_HEX_SIZE]; /* of the tar */
    const void *tar;
    size_t length;
};
/* The script that unpacks an image: run by root's shell, with name and SHA-256 as its arguments and the tar
 * on stdin. */
extern const char agent_image_script[];

struct agent_transport_options {
    const struct agent_package *package; /* borrowed; NULL: a local agent */
    const struct agent_image *image;     /* borrowed; NULL: the agent is in the node's own system */
    const char *folder; /* name of the run directory, which the agent makes: "assay-ID-NODE" */
    /* Folder that it is made in; NULL: the first of TMPDIR, /tmp, /var/tmp, ~/.cache/assay and /dev/shm in
     * which files can be written and executed. */
    const char *workspace;
    const char *label;     /* the owner, for people who find the agent; one word of plain characters */
    const char *sudo;      /* command that sets controls as root, words separated by commas; NULL: none */
    bool remove_directory; /* remove the run directory when the agent ends */
    bool leave_controls;   /* do not restore controls that an agent which died has left changed */
};

/* Makes a transport, not yet started. LAUNCHER is taken over, also on failure; the options are copied. */
int agent_transport_new(struct launcher *launcher, const struct agent_transport_options *options,
                        struct transport **ret, struct failure *failure);

/* How the agent got onto the node; valid when the transport is open. NULL for other kinds of transports. */
struct agent_arrival {
    const char *path;   /* of the agent's program */
    bool delivered;     /* copied to the node now */
    bool built;         /* compiled on the node now */
    const char *damage; /* why an earlier program had to be replaced; NULL: it had not */
};
const struct agent_arrival *agent_transport_arrival(const struct transport *transport);

#endif
