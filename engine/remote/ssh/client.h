/*
 * What all ssh connections of an engine share: who the user is and which keys he has, which host keys are
 * known, names already looked up, gateways already reached, and the window: how many connections are being
 * set up at once.
 *
 * All of it is libssh, non-blocking, in one thread; nothing outside engine/remote sees libssh.
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

/* What the user says; NULL or 0 leaves it to the configuration files and then to the default. Copied. */
struct ssh_client_options {
    const char *user;
    unsigned port;
    const char *const *identities; /* private key files, tried before all others, in this order */
    size_t identity_count;
    const char *jump;        /* "[user@]host[:port],...": through these, the first first; "none" */
    const char *config;      /* instead of ~/.ssh/config and /etc/ssh/ssh_config; "none" */
    const char *known_hosts; /* instead of ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts */
    /* A file of this run, in which unknown host keys are recorded and then expected, for nodes that
     * were deployed a moment ago. NULL: a host whose key is unknown is refused. A key that has changed always
     * is. Keys noted there count beside those of known_hosts. */
    const char *accepted_hosts;
    bool accepts_no_more; /* nothing is added to that file: a host that is in none is refused */
    unsigned window;      /* connections being set up at once, SSH_WINDOW_MAX at most */
    int64_t timeout_ns;   /* for each step: name, TCP, key exchange, login */
};

int ssh_client_new(struct event_loop *loop, const struct ssh_client_options *options, struct ssh_client **ret,
                   struct failure *failure);
/* All connections must be gone. NULL is fine. */
void ssh_client_free(struct ssh_client *client);

#endif
