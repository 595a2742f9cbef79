/*
 * The ssh client, shared by all ssh connections of an engine: the user's options and keys, known host keys,
 * name look-ups, gateways, and the window, the number of connections that are set up at once.
 *
 * It uses libssh, non-blocking, in one thread; nothing outside engine/remote sees libssh.
 */
#ifndef ASSAY_SSH_CLIENT_H
#define ASSAY_SSH_CLIENT_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ssh_client;

enum { SSH_WINDOW_DEFAULT = 64, SSH_WINDOW_MAX = 1024 };
#define SSH_TIMEOUT_DEFAULT_NS (20 * EVENT_SECOND)

/* The user's options; NULL or 0: as the configuration files say, or the default. Copied. */
struct ssh_client_options {
    const char *user;
    unsigned port;
    const char *const *identities; /* private key files, tried before all others, in this order */
    size_t identity_count;
    const char *jump;        /* gateways on the way, "[user@]host[:port],..."; or "none" */
    const char *config;      /* instead of ~/.ssh/config and /etc/ssh/ssh_config; "none" */
    const char *known_hosts; /* instead of ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts */
    /* A file of this run to which unknown host keys are added, for nodes that were deployed a moment ago;
     * later they must show the same key. Its keys are used beside those of known_hosts. NULL: a host with an
     * unknown key is refused. A changed key is always refused. */
    const char *accepted_hosts;
    bool accepts_no_more; /* no keys are added to that file: unknown keys are refused */
    unsigned window;      /* connections being set up at once, SSH_WINDOW_MAX at most */
    int64_t timeout_ns;   /* for each step: name, TCP, key exchange, login */
};

int ssh_client_new(struct event_loop *loop, const struct ssh_client_options *options, struct ssh_client **ret,
                   struct failure *failure);
/* All connections must be freed before. NULL is fine. */
void ssh_client_free(struct ssh_client *client);

#endif
