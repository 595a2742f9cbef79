/*
 * The door of a daemon: a unix socket of an abstract name, so that it needs no file on any disk, and goes
 * when the daemon does, however that ends.
 *
 *     \0assay-agent-UID-SESSION          UID decimal, SESSION sixteen hexadecimal digits
 *
 * Such names have no permissions, and are known to all of a network namespace: each side asks the kernel who
 * the other one is (SO_PEERCRED), and speaks with its own user only. Messages are packets of one letter, a
 * text, and descriptors (SCM_RIGHTS).
 */
#ifndef ASSAY_DAEMON_DOOR_H
#define ASSAY_DAEMON_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum door_kind {
    /* to the daemon */
    DOOR_ATTACH = 'A', /* the stream's two descriptors: to read from, to write to */
    DOOR_LIST = 'L',
    DOOR_END = 'E',
    /* from the daemon */
    DOOR_ATTACHED = 'a', /* with `life`: a pipe that ends when all of the agent has gone */
    DOOR_DETACHED = 'd', /* the link is over, the agent is not */
    DOOR_LEAVING = 'l',  /* with `life`, unless the other side has it */
    DOOR_LINE = 'i',     /* text: the answer to LIST */
    DOOR_FAILED = 'f',   /* text: a sentence */
    DOOR_TAKEN = 't',    /* of one being started: the session has a daemon already */
};

enum { DOOR_TEXT_SIZE = 6144, DOOR_DESCRIPTORS = 2 };

struct door_message {
    enum door_kind kind;
    char text[DOOR_TEXT_SIZE];
    int descriptors[DOOR_DESCRIPTORS]; /* -1: none; the receiver's to close */
};

/* "0123456789abcdef": exactly sixteen hexadecimal digits, and not all 0. */
bool door_parse_session(const char *text, uint64_t *ret);

/* A socket that listens by SESSION's name, or a negative errno; -EADDRINUSE: there is a daemon already. */
int door_listen(uint64_t session);
/* A socket connected to SESSION's daemon, or a negative errno; -ECONNREFUSED: there is none; -EPERM: somebody
 * else has its name; -EAGAIN: nobody has come to the door for PATIENCE_MS, and whose it is is not known.
 * *RET_PID (may be NULL): the process that began to listen. */
int door_connect(uint64_t session, int patience_ms, pid_t *ret_pid);
/* The next connection by our own user, non-blocking, or -EAGAIN. Others are closed. */
int door_accept(int listener);

/* TEXT may be NULL. 0 or a negative errno. */
int door_send(int socket, enum door_kind kind, const char *text, const int *descriptors, size_t count);
/* 1: a message; 0: the other side is gone; or a negative errno. */
int door_receive(int socket, struct door_message *ret);
void door_message_clear(struct door_message *message);

#endif
