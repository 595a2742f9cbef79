/*
 * One ssh connection, to a node or through gateways to a node, logged in.
 *
 *     idle -> waiting -> resolving -> connecting -> exchanging -> authenticating -> ready -> closed
 *               (a place in the client's window, and the gateway, if there is one)
 *
 * Gateways (jump hosts) are connections like any other, owned by the client. There is one for each gateway,
 * however many nodes are behind it: the connection to a node is a direct-tcpip channel of its gateway, so
 * that a gateway which accepts few logins at once sees one login.
 *
 * Failures, place "node NAME": -ENOENT no such name. Temporary: -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH,
 * -ECONNRESET (closed before the login, as sshd does beyond its MaxStartups). Permanent: -EKEYREJECTED the
 * host key is unknown or has changed (with the fingerprint, the file, and what to do); -EACCES the login was
 * refused (with the keys that were tried).
 */
#ifndef ASSAY_SSH_CONNECTION_H
#define ASSAY_SSH_CONNECTION_H

#include "engine/foundation/failure.h"
#include "engine/remote/channel/channel.h"
#include "engine/remote/ssh/client.h"

struct ssh_connection;

struct ssh_connection_listener {
    void (*on_ready)(struct ssh_connection *connection, void *context);
    /* Called once, also for a connection that was never ready, after the on_closed of its channels. */
    void (*on_closed)(struct ssh_connection *connection, const struct failure *why, void *context);
    void *context;
};

/* Makes a connection, not yet started. DESTINATION: [user@]host[:port], with a host name of the ssh
 * configuration or of the network. */
int ssh_connection_new(struct ssh_client *client, const char *destination,
                       const struct ssh_connection_listener *listener, struct ssh_connection **ret,
                       struct failure *failure);
/* Starts to connect. Never calls back from within; fails at once only without memory. */
int ssh_connection_start(struct ssh_connection *connection, struct failure *failure);
/* Frees the connection and its channels without calling back. May be called within their callbacks. */
void ssh_connection_free(struct ssh_connection *connection);

/* Opens a channel in which the user's login shell runs COMMAND, which must contain no text from outside of
 * assay. The channel is freed with the connection at the latest. */
int ssh_connection_open(struct ssh_connection *connection, const char *command,
                        const struct remote_channel_listener *listener, struct remote_channel **ret,
                        struct failure *failure);

#endif
