/*
 * The agent as a daemon: it outlives its links to the engine, and is found again by its session.
 *
 *     alone --ATTACH--> attached --the stream ends, or its relay does--> alone
 *         \                 |
 *          +----------------+--LEAVE, CONTROL_END, SIGTERM, the lease has run out--> leaving --> gone
 *
 * A relay (relay.h) connects a stream to the daemon: it passes its stdin and stdout to the daemon, which then
 * reads and writes them itself. After that the relay only waits, so that its parent sees its end: the end of
 * the link or, when the agent ends, that of both its processes.
 *
 * The relay sees the end of the processes in a pipe, `shutdown_fd`: its writing end is the stderr of worker
 * and guardian, so that their last messages reach the relay, which reads the other end.
 */
#ifndef ASSAY_DAEMON_DAEMON_H
#define ASSAY_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

enum { DAEMON_LABEL_LIMIT = 128 };

struct daemon_options {
    uint64_t session;      /* 0: no daemon: stdin and stdout are its only link, and it ends with them */
    const char *directory; /* path of the run directory, made (mode 0700) if missing; NULL: made of */
    const char *folder;    /* its name and */
    const char *workspace; /* the folder that it is made in; NULL: chosen by workspace.h */
    const char *root;      /* NULL: "/" */
    const char *image;     /* SHA-256 of the system to deploy (deployed.h); NULL: the node's own system */
    const char *label;     /* the owner, as --list shows it; "": none */
    const char *sudo;      /* command that sets controls as root (elevation.h); NULL: the agent's user */
    bool remove_directory; /* remove the run directory at the end */
    bool leave_controls;   /* do not restore controls that an agent which died has left changed */
};

/* Makes this process the daemon, serves until it ends, and returns the exit status. CONNECTION leads to the
 * relay that started it: it gets CONTROL_FAILED or CONTROL_TAKEN if the daemon cannot begin, and its messages
 * are served as those of others. With -1 there is no such relay: the line "ASSAY-AGENT SERVING SESSION" on
 * stdout says when relays can connect, or, for session 0, stdin and stdout are the link. */
int daemon_run(const struct daemon_options *options, int connection);

#endif
