/*
 * The socket by which a daemon is found: a unix socket whose abstract name contains the session. It needs no
 * file on any disk, and disappears with the daemon, however that ends.
 *
 *     \0assay-agent-UID-SESSION          UID decimal, SESSION sixteen hexadecimal digits
 *
 * Abstract names have no permissions and are visible in the whole network namespace. So each side asks the
 * kernel for the other side's user (SO_PEERCRED), and accepts its own user only. Messages are packets of one
 * letter, a text, and descriptors (SCM_RIGHTS).
 */
#ifndef ASSAY_DAEMON_CONTROL_SOCKET_H
#define ASSAY_DAEMON_CONTROL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum control_kind {
    /* to the daemon */
    CONTROL_ATTACH = 'A', /* with two descriptors, of a new link: to read from, to write to */
    CONTROL_LIST = 'L',   /* asks for a line about the agent */
    CONTROL_END = 'E',    /* asks the agent to end */
    /* from the daemon */
    CONTROL_ATTACHED = 'a', /* with `shutdown_fd`, a pipe that closes when worker and guardian have ended */
    CONTROL_DETACHED = 'd', /* the link has ended, the agent has not */
    CONTROL_LEAVING = 'l',  /* the agent ends; with `shutdown_fd`, unless the other side has it */
    CONTROL_LINE = 'i',     /* text: the answer to LIST */
    CONTROL_FAILED = 'f',   /* text: a sentence */
    CONTROL_TAKEN = 't',    /* from a daemon being started: the session has a daemon already */
};

enum { CONTROL_TEXT_SIZE = 6144, CONTROL_DESCRIPTORS = 2 };

struct control_message {
    enum control_kind kind;
    char text[CONTROL_TEXT_SIZE];
    int descriptors[CONTROL_DESCRIPTORS]; /* -1: none; the receiver closes them */
};

/* Reads a session, "0123456789abcdef". False: TEXT is not exactly sixteen hexadecimal digits, or all are 0.
 */
bool control_socket_parse_session(const char *text, uint64_t *ret);

/* Returns a socket that listens by SESSION's name, or a negative errno; -EADDRINUSE: the session has a daemon
 * already. */
int control_socket_listen(uint64_t session);
/* Returns a socket connected to SESSION's daemon, or a negative errno. -ECONNREFUSED: the session has no
 * daemon; -EPERM: another user listens by its name; -EAGAIN: the connection was not accepted within
 * TIMEOUT_MS, and the owner of the socket is not known. *RET_PID (may be NULL): the process that began to
 * listen. */
int control_socket_connect(uint64_t session, int timeout_ms, pid_t *ret_pid);
/* Returns the next connection, non-blocking; -EAGAIN: there is none, or it was another user's and is closed.
 */
int control_socket_accept(int listener);

/* Sends a message; TEXT may be NULL, and COUNT descriptors are copied to the other process. 0 or a negative
 * errno. */
int control_socket_send(int socket, enum control_kind kind, const char *text, const int *descriptors,
                        size_t count);
/* Returns 1 with a message; 0: the other side has closed; or a negative errno. The caller clears *RET. */
int control_socket_receive(int socket, struct control_message *ret);
void control_message_clear(struct control_message *message);

#endif
