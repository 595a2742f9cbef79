/*
 * What sshd runs on the node: gives its stdin and stdout to a daemon and waits.
 *
 * It ends with status 0 when the link is over, or when the daemon, asked to leave, has gone with all that was
 * its own. Otherwise a sentence goes to stderr: status 69 (EX_UNAVAILABLE) when there is no such daemon, or
 * it has gone meanwhile, and 1 for everything else.
 */
#ifndef ASSAY_DAEMON_RELAY_H
#define ASSAY_DAEMON_RELAY_H

#include "engine/agent/daemon/daemon.h"

enum { RELAY_UNAVAILABLE = 69 };

/* Starts the daemon of OPTIONS if SESSION has none; NULL: starts none. Returns an exit status. */
int relay(uint64_t session, const struct daemon_options *options);

/* Waits for the end of all that holds the other end of LIFE, PATIENCE_MS at most (-1: no limit); its last
 * words go to stderr. 1: it came, in silence; 0: there were words; -ETIMEDOUT: it did not come. */
int relay_wait_for_end(int shutdown_fd, int patience_ms);

/* Prints that there is no such daemon. Returns RELAY_UNAVAILABLE. */
int relay_complain_of_absence(uint64_t session);

#endif
