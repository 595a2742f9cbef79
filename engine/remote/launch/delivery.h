/*
 * Brings the agent to a node, if it is not there: finds a private folder that can be written and executed
 * from, copies the binary (or builds the sources with the node's cc, gcc or clang), checks its SHA-256 there,
 * sees that it runs, and names it by its hash. Needs of the node: sh, and what every system has beside it
 * (cat, chmod, dd, id, ls, mkdir, mv, rm, uname), and one of sha256sum, shasum and openssl. Where there is
 * sync, the bytes are on the disk before the name is.
 *
 * Folders, the first that will do: $XDG_CACHE_HOME/assay, ~/.cache/assay, /tmp/assay-UID, /var/tmp/assay-UID,
 * /dev/shm/assay-UID, /run/user/UID/assay. Private: a folder, not a link, ours, mode 0700. A home that is
 * read-only, a /tmp that is noexec, a disk that is full are reasons to try the next; if none will do, the
 * failure says what was wrong with each.
 *
 * The work is done by delivery.sh, on stdin of the node's sh; the command has nothing but assay's own
 * words. Several may deliver to one folder (a home that nodes share) at the same time: each writes under a
 * name of its own and renames. What deliveries that were cut off left is removed after a day. Agents stay,
 * for another node that shares the folder may be running one: each version of assay leaves one.
 */
#ifndef ASSAY_LAUNCH_DELIVERY_H
#define ASSAY_LAUNCH_DELIVERY_H

/* Bytes that login scripts may print before what is waited for. */
enum { AGENT_LOGIN_OUTPUT_MAX = 256 << 10 };

#include "engine/foundation/failure.h"
#include "engine/remote/launch/launcher.h"
#include "engine/remote/launch/package.h"

struct agent_delivery;

struct agent_delivered {
    const char *path;   /* of the agent on the node, absolute; valid during the callback */
    bool built;         /* from source, there */
    bool found;         /* it was there already, and its hash was checked */
    const char *hash;   /* SHA-256 of the file on the node, hex */
    const char *damage; /* what was wrong with one that was there, and is gone now; NULL: nothing */
};
typedef void agent_delivery_callback(const struct agent_delivered *delivered, const struct failure *failure,
                                     void *context);

/* Calls back once, never from within; PACKAGE and LAUNCHER must outlive it. Exactly one of DELIVERED and
 * FAILURE is not NULL. Failures, place "node NAME": -ENOEXEC when neither the binary nor the sources will do,
 * or nothing there computes a SHA-256, -EACCES when no folder will, -ETIMEDOUT, -EPROTO when the node's
 * answers make no sense, or what became of the connection. */
int agent_delivery_start(struct launcher *launcher, const struct agent_package *package,
                         agent_delivery_callback *callback, void *context, struct agent_delivery **ret,
                         struct failure *failure);
/* Before the callback: gives it up. NULL is fine. */
void agent_delivery_cancel(struct agent_delivery *delivery);

#endif
