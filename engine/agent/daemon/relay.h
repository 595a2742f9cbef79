/*
 * The process that sshd starts on the node: gives its stdin and stdout to a daemon and waits.
 *
 * It ends with status 0 when the link has ended, or when the daemon was asked to end and worker and guardian
 * have ended. Otherwise a sentence goes to stderr: status 69 (EX_UNAVAILABLE) when there is no such daemon,
 * or it has ended meanwhile, and 1 for everything else.
 */
#ifndef ASSAY_DAEMON_RELAY_H
#define ASSAY_DAEMON_RELAY_H

#include "engine/agent/daemon/daemon.h"

enum { RELAY_UNAVAILABLE = 69 };

/* Attaches stdin and stdout to SESSION's daemon and waits for the end of the link. A missing daemon is
 * started with OPTIONS; NULL: none is started. Returns an exit status. */
int relay(uint64_t session, const struct daemon_options *options);

/* Waits, for at most TIMEOUT_MS (-1: no limit), until worker and guardian have closed the other end of
 * SHUTDOWN_FD, and copies their messages to stderr. Returns 1: they ended without a message; 0: with
 * messages; -ETIMEDOUT. */
int relay_wait_for_end(int shutdown_fd, int timeout_ms);

/* Prints that there is no such daemon. Returns RELAY_UNAVAILABLE. */
int relay_complain_of_absence(uint64_t session);

#endif
