/*
 * The agent as a daemon: it outlives the links over which it is spoken to, and is found again by its session.
 *
 *     alone --ATTACH--> attached --the stream ends, or its relay does--> alone
 *         \                 |
 *          +----------------+--LEAVE, CONTROL_END, SIGTERM, the lease has run out--> leaving --> gone
 *
 * A relay (relay.h) connects a stream to the daemon: it passes on the two ends of its stream, which the
 * daemon then reads and writes itself. After that the relay only waits, so that its parent sees the end: that
 * of the link, and, when the agent leaves, for the end of all of the agent.
 *
 * That end is seen in a pipe, `shutdown_fd`: the worker and the guardian hold its one end, as their stderr,
 * so that the last messages of either reach the relay; the relay reads the other.
 */
#ifndef ASSAY_DAEMON_DAEMON_H
#define ASSAY_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

enum { DAEMON_LABEL_LIMIT = 128 };

struct daemon_options {
    uint64_t session;      /* 0: no daemon: stdin and stdout are its only link, and it ends with them */
    const char *directory; /* the run directory; made (mode 0700) if it is not there. NULL: */
    const char *folder;    /* its name, */
    const char *workspace; /* and where it is made; NULL: workspace.h */
    const char *root;      /* NULL: "/" */
    const char *image;     /* SHA-256 of the system that it is deployed in; NULL: the node's own */
    const char *label;     /* the owner, as --list shows it; "" for none */
    const char *sudo;      /* by which controls are set (elevation.h); NULL: as the agent's user */
    bool remove_directory;
    bool leave_controls; /* do not restore what an agent that is gone has left changed */
};

/* In a child of the relay, of which CONNECTION is the other end: becomes the daemon, and serves until the
 * end. CONNECTION gets CONTROL_FAILED or CONTROL_TAKEN if it cannot begin; otherwise its messages are served
 * as any other's. -1: there is no such relay, and the line "ASSAY-AGENT SERVING SESSION" on stdout says when
 * others can connect; of session 0 stdin and stdout are the link. Returns the exit status. */
int daemon_run(const struct daemon_options *options, int connection);

#endif
