/*
 * An agent in a fresh system: the root of its worker, and of all processes that the worker starts, is the
 * image (a root file system) that the engine has copied to ~/.cache/assay/image-SHA256. The image is not
 * changed: all writes go into a layer above it.
 *
 *     RUN-DIRECTORY/.assay-layer  work     the layer, of an overlay file system
 *                   root                   where it is mounted, in the worker's own mount namespace only
 *                   run                    the run directory as the worker has it, at the same path
 *
 * Shared with the node are its kernel, network, host name and processes; /proc, /sys, /dev without /dev/shm,
 * /etc/hosts, /etc/resolv.conf, and the agent's own program. The node's /run, with the snapshot of its
 * controls, is at MACHINE_NODE_RUN. The mounts disappear with the last process of the namespace, and the
 * guardian, which stays outside, removes the run directory. Where both processes were killed, the next agent
 * that is deployed in the same workspace removes it, or `assay nodes clean`. It is no jail: root in it can do
 * to the node what root can.
 */
#ifndef ASSAY_DAEMON_DEPLOYED_H
#define ASSAY_DAEMON_DEPLOYED_H

#include "engine/agent/machine/run-directory.h"
#include "engine/foundation/failure.h"

enum { DEPLOYED_ABSENT = 79 }; /* exit status of an agent whose image is missing: the engine copies it */

/* Returns a descriptor of the image's root; -ENOENT: the image is not on this node. */
int deployed_open_image(const char *sha256, struct failure *failure);

/* Moves the worker into the image, before it has opened any file of the machine. DIRECTORY, the run
 * directory, which must be empty, then is the one inside the system, at the same path. */
int deployed_enter(struct run_directory *directory, const char *sha256, struct failure *failure);

#endif
