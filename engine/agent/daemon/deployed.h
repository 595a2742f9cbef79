/*
 * An agent in a fresh system: the root of its worker, and of all that the worker starts, is a root file
 * system that the engine has put into ~/.cache/assay/image-SHA256, under a layer of its own, in which
 * everything lies that is written.
 *
 *     RUN-DIRECTORY/.assay-layer  work     the layer, of an overlay file system
 *                   root                   where it is mounted, in the worker's own mount namespace only
 *                   run                    the run directory as the worker has it, at the same path
 *
 * Shared with the node are its kernel, network, host name and processes; /proc, /sys, /dev without /dev/shm,
 * /etc/hosts, /etc/resolv.conf, and the agent's own program. The node's /run is at MACHINE_NODE_RUN, where
 * the snapshot of its controls lies. Mounts go with the last process of the namespace, and the guardian,
 * which stays outside, removes the folder. One that was left, because both were killed, is removed by the
 * next agent that is deployed from the same workspace, or by `assay nodes clean`. It is no jail: root in it
 * can do to the node what root can.
 */
#ifndef ASSAY_DAEMON_DEPLOYED_H
#define ASSAY_DAEMON_DEPLOYED_H

#include "engine/agent/machine/run-directory.h"
#include "engine/foundation/failure.h"

enum { DEPLOYED_ABSENT = 79 }; /* exit status of an agent whose image is not there: the engine brings it */

/* A descriptor of the image's root; -ENOENT: it was not brought. */
int deployed_open_image(const char *sha256, struct failure *failure);

/* In the worker, before it has opened anything of the machine. DIRECTORY, which must be empty, becomes the
 * one within. */
int deployed_enter(struct run_directory *directory, const char *sha256, struct failure *failure);

#endif
