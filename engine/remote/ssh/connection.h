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
#include "engine/remote/ssh/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ssh_connection;
struct ssh_stream;

struct ssh_connection_listener {
    void (*on_ready)(struct ssh_connection *connection, void *context);
    /* Once; also of a connection that was never ready. Streams have been told before. */
    void (*on_closed)(struct ssh_connection *connection, const struct failure *why, void *context);
    void *context;
};

/* DESTINATION: [user@]host[:port], the host being a name of the ssh configuration or of the network. */
int ssh_connection_new(struct ssh_client *client, const char *destination,
                       const struct ssh_connection_listener *listener, struct ssh_connection **ret,
                       struct failure *failure);
/* Never calls back from within; fails at once only for want of memory. */
int ssh_connection_start(struct ssh_connection *connection, struct failure *failure);
/* Frees its streams too; calls nobody. From its own callbacks and those of its streams too. */
void ssh_connection_free(struct ssh_connection *connection);
const char *ssh_connection_name(const struct ssh_connection *connection); /* the destination */
struct event_loop *ssh_connection_loop(const struct ssh_connection *connection);

/* ---- a program on the other side */

struct ssh_stream_end {
    bool exited; /* CODE is its exit status */
    int code;
    char signal[32]; /* "TERM"; "" when it was not ended by one */
};

struct ssh_stream_listener {
    void (*on_open)(struct ssh_stream *stream, void *context); /* the request was accepted */
    /* EVENT_READ, EVENT_WRITE, of those wanted; again as long as there is something to read on stdout. Of
     * stderr once each time that more has come: then it is to be read until -EAGAIN. */
    void (*on_ready)(struct ssh_stream *stream, unsigned events, void *context);
    /* Once, when all that it said on both has been read and its exit is known, or when there is no more to be
     * known (END then has neither code nor signal). END is NULL and WHY says so if the connection broke or
     * the server refused. */
    void (*on_closed)(struct ssh_stream *stream, const struct ssh_stream_end *end, const struct failure *why,
                      void *context);
    void *context;
};

/* Runs COMMAND by the login shell of the user there. Nothing but assay's own words may be in COMMAND. */
int ssh_stream_open(struct ssh_connection *connection, const char *command,
                    const struct ssh_stream_listener *listener, struct ssh_stream **ret,
                    struct failure *failure);
/* As transport_read() and transport_write(): bytes, 0 at the end, -EAGAIN, or another negative errno. Writing
 * is -EAGAIN while the connection still has bytes that the network has not taken: nothing piles up. */
ssize_t ssh_stream_read(struct ssh_stream *stream, void *bytes, size_t size);
ssize_t ssh_stream_read_error(struct ssh_stream *stream, void *bytes, size_t size); /* stderr */
ssize_t ssh_stream_write(struct ssh_stream *stream, const void *bytes, size_t length);
int ssh_stream_want(struct ssh_stream *stream, unsigned events);
/* End of file on its stdin, after what was written. */
int ssh_stream_end_input(struct ssh_stream *stream);
/* Closes it; from its own callbacks too. NULL is fine. */
void ssh_stream_free(struct ssh_stream *stream);

/* ---- the same, whole: INPUT in, what it prints out (at most LIMIT bytes of each; the rest is dropped) */

struct ssh_run;
struct ssh_run_result {
    struct ssh_stream_end end;
    const char *output, *error; /* valid during the callback; a NUL after the last byte */
    size_t output_length, error_length;
};
typedef void ssh_run_callback(const struct ssh_run_result *result, const struct failure *failure,
                              void *context);
/* INPUT (may be NULL) is borrowed until the callback. Calls back once, never from within. */
int ssh_run_start(struct ssh_connection *connection, const char *command, const void *input,
                  size_t input_length, size_t limit, ssh_run_callback *callback, void *context,
                  struct ssh_run **ret, struct failure *failure);
/* Before its callback, and before its connection is freed: gives it up. After its callback it has freed
 * itself. NULL is fine. */
void ssh_run_cancel(struct ssh_run *run);

#endif
