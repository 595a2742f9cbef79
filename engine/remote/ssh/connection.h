/*
 * One ssh connection, to a node or through gateways to a node, logged in.
 *
 *     idle -> waiting -> resolving -> connecting -> exchanging -> authenticating -> ready -> closed
 *               (a place in the client's window, and the gateway, if there is one)
 *
 * Gateways (jump hosts) are connections like any other, kept by the client, one each, however many nodes lie
 * behind: a node's stream is a direct-tcpip channel of its gateway, so a gateway that accepts few logins at
 * once sees one.
 *
 * Failures, place "node NAME": -ENOENT no such name; -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH, -ECONNRESET
 * (closed before the login: sshd does so beyond its MaxStartups) may pass; -EKEYREJECTED the host key is
 * unknown or has changed (the sentence has the fingerprint, the file, and what to do) and -EACCES the login
 * was refused (it says which keys were tried) will not.
 */
#ifndef ASSAY_SSH_CONNECTION_H
#define ASSAY_SSH_CONNECTION_H

#include "engine/foundation/failure.h"
#include "engine/remote/channel/channel.h"
#include "engine/remote/ssh/client.h"

struct ssh_connection;

struct ssh_connection_listener {
    void (*on_ready)(struct ssh_connection *connection, void *context);
    /* Once; also of a connection that was never ready. Its channels have been told before. */
    void (*on_closed)(struct ssh_connection *connection, const struct failure *why, void *context);
    void *context;
};

/* DESTINATION: [user@]host[:port], the host being a name of the ssh configuration or of the network. */
int ssh_connection_new(struct ssh_client *client, const char *destination,
                       const struct ssh_connection_listener *listener, struct ssh_connection **ret,
                       struct failure *failure);
/* Never calls back from within; fails at once only for want of memory. */
int ssh_connection_start(struct ssh_connection *connection, struct failure *failure);
/* Frees its channels too; calls no callback. From its own callbacks and those of its channels too. */
void ssh_connection_free(struct ssh_connection *connection);

/* A channel whose program is COMMAND, run by the login shell of the user there. Nothing but assay's own words
 * may be in COMMAND. It is freed with the connection, whose on_closed comes after those of its channels. */
int ssh_connection_open(struct ssh_connection *connection, const char *command,
                        const struct remote_channel_listener *listener, struct remote_channel **ret,
                        struct failure *failure);

#endif
