/*
 * Delivers the agent to a node that does not have it: finds a private folder in which files can be written
 * and executed, copies the binary (or builds the sources with the node's cc, gcc or clang), checks its
 * SHA-256 there, runs it as a test, and names it by its hash. The node needs sh, the usual programs beside it
 * (cat, chmod, dd, id, ls, mkdir, mv, rm, uname), and one of sha256sum, shasum and openssl. Where the node
 * has sync, the bytes are on the disk before the name.
 *
 * The folder is the first suitable one of: $XDG_CACHE_HOME/assay, ~/.cache/assay, /tmp/assay-UID,
 * /var/tmp/assay-UID, /dev/shm/assay-UID, /run/user/UID/assay. It must be private: a folder of our user, no
 * link, mode 0700. A read-only home, a noexec /tmp or a full disk are reasons to try the next folder; if none
 * is suitable, the failure has the reason for each.
 *
 * The work is done by delivery.sh, which the node's sh reads from stdin; the command line contains fixed
 * words only. Several engines may deliver to one folder (a shared home) at the same time: each writes under a
 * name of its own and renames. Files of interrupted deliveries are removed after a day. Old agents stay, one
 * for each version of assay, since another node that shares the folder may run one.
 */
#ifndef ASSAY_LAUNCH_DELIVERY_H
#define ASSAY_LAUNCH_DELIVERY_H

/* Most bytes that login scripts may print before the expected line. */
enum { AGENT_LOGIN_OUTPUT_MAX = 256 << 10 };

#include "engine/foundation/failure.h"
#include "engine/remote/launch/launcher.h"
#include "engine/remote/launch/package.h"

struct agent_delivery;

struct agent_delivered {
    const char *path;   /* of the agent on the node, absolute; valid during the callback */
    bool built;         /* compiled on the node */
    bool found;         /* it was on the node already, and its hash is right */
    const char *hash;   /* SHA-256 of the file on the node, hex */
    const char *damage; /* why an earlier agent was removed; NULL: there was none */
};
typedef void agent_delivery_callback(const struct agent_delivered *delivered, const struct failure *failure,
                                     void *context);

/* Starts a delivery. CALLBACK is called once, never from within this call, with exactly one of DELIVERED and
 * FAILURE; PACKAGE and LAUNCHER must live until then. Failures, with the place "node NAME": -ENOEXEC when
 * neither the binary nor the sources work, or the node cannot compute a SHA-256; -EACCES when no folder is
 * suitable; -ETIMEDOUT; -EPROTO when the node's answers are not valid; or the failure of the connection. */
int agent_delivery_start(struct launcher *launcher, const struct agent_package *package,
                         agent_delivery_callback *callback, void *context, struct agent_delivery **ret,
                         struct failure *failure);
/* Cancels a delivery before its callback, which is then never called. NULL is fine. */
void agent_delivery_cancel(struct agent_delivery *delivery);

#endif
