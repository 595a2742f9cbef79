/*
 * The socket at which a daemon is found by its session: a unix socket of an abstract name, which needs no
 * file on any disk, and is gone when the daemon is, however that ends.
 *
 *     \0assay-agent-UID-SESSION          UID decimal, SESSION sixteen hexadecimal digits
 *
 * Such names have no permissions, and are known to all of a network namespace: each side asks the kernel who
 * the other one is (SO_PEERCRED), and speaks with its own user only. Messages are packets of one letter, a
 * text, and descriptors (SCM_RIGHTS).
 */
#ifndef ASSAY_DAEMON_CONTROL_SOCKET_H
#define ASSAY_DAEMON_CONTROL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum control_kind {
    /* to the daemon */
    CONTROL_ATTACH = 'A', /* the stream's two descriptors: to read from, to write to */
    CONTROL_LIST = 'L',
    CONTROL_END = 'E',
    /* from the daemon */
    CONTROL_ATTACHED = 'a', /* with `shutdown_fd`: a pipe that ends when all of the agent has gone */
    CONTROL_DETACHED = 'd', /* the link is over, the agent is not */
    CONTROL_LEAVING = 'l',  /* with `shutdown_fd`, unless the other side has it */
    CONTROL_LINE = 'i',     /* text: the answer to LIST */
    CONTROL_FAILED = 'f',   /* text: a sentence */
    CONTROL_TAKEN = 't',    /* of one being started: the session has a daemon already */
};

enum { CONTROL_TEXT_SIZE = 6144, CONTROL_DESCRIPTORS = 2 };

struct control_message {
    enum control_kind kind;
    char text[CONTROL_TEXT_SIZE];
    int descriptors[CONTROL_DESCRIPTORS]; /* -1: none; the receiver's to close */
};

/* "0123456789abcdef": exactly sixteen hexadecimal digits, and not all 0. */
bool control_socket_parse_session(const char *text, uint64_t *ret);

/* A socket that listens by SESSION's name, or a negative errno; -EADDRINUSE: there is a daemon already. */
int control_socket_listen(uint64_t session);
/* A socket connected to SESSION's daemon, or a negative errno; -ECONNREFUSED: there is none; -EPERM: another
 * user has its name; -EAGAIN: the connection was not accepted for PATIENCE_MS, so that the owner of the
 * socket is not known.
 * *RET_PID (may be NULL): the process that began to listen. */
int control_socket_connect(uint64_t session, int patience_ms, pid_t *ret_pid);
/* The next connection, non-blocking, or -EAGAIN: there is none, or it was by another user and has been
 * closed. */
int control_socket_accept(int listener);

/* TEXT may be NULL. 0 or a negative errno. */
int control_socket_send(int socket, enum control_kind kind, const char *text, const int *descriptors,
                        size_t count);
/* 1: a message; 0: the other side is gone; or a negative errno. */
int control_socket_receive(int socket, struct control_message *ret);
void control_message_clear(struct control_message *message);

#endif
