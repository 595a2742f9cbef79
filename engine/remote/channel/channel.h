/*
 * A channel is a running program with its three streams: a child process (child.h), or a command over an ssh
 * connection (engine/remote/ssh/connection.h).
 */
#ifndef ASSAY_CHANNEL_CHANNEL_H
#define ASSAY_CHANNEL_CHANNEL_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Fills FAILURE (may be NULL) with a sentence and the place "node NODE", and returns CODE. */
int node_failure(struct failure *failure, const char *node, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

struct remote_channel;

/* How a program has ended; neither exited nor a signal: not known. */
struct remote_channel_end {
    bool exited; /* `code` is its exit status */
    int code;
    char signal[32]; /* "TERM"; "": no signal ended it */
};
/* Describes END for a sentence, "was killed by signal TERM", "ended with exit status 3"; returns BUFFER. */
const char *remote_channel_end_describe(const struct remote_channel_end *end, char *buffer, size_t size);

/* The functions are never called from within a function below. */
struct remote_channel_listener {
    void (*on_open)(struct remote_channel *channel, void *context); /* the program runs */
    /* Called with those of EVENT_READ and EVENT_WRITE that are wanted. EVENT_READ is repeated as long as
     * stdout has bytes. For stderr it comes once for new bytes, which must then be read until -EAGAIN. */
    void (*on_ready)(struct remote_channel *channel, unsigned events, void *context);
    /* Called once, when all output has been read and the program's end is known, or will never be (END then
     * has neither code nor signal). END is NULL, with the reason in WHY, if the program could not be started
     * or the connection broke. */
    void (*on_closed)(struct remote_channel *channel, const struct remote_channel_end *end,
                      const struct failure *why, void *context);
    void *context;
};

struct remote_channel_operations {
    ssize_t (*read)(struct remote_channel *channel, void *bytes, size_t size);
    ssize_t (*read_error)(struct remote_channel *channel, void *bytes, size_t size);
    ssize_t (*write)(struct remote_channel *channel, const void *bytes, size_t length);
    void (*want)(struct remote_channel *channel, unsigned events);
    int (*end_input)(struct remote_channel *channel);
    void (*free)(struct remote_channel *channel);
};

/* The first member of each kind of channel. */
struct remote_channel {
    const struct remote_channel_operations *operations;
    struct remote_channel_listener listener;
};

/* Return the number of bytes; 0 at the end (reading only); -EAGAIN: not possible now; or another negative
 * errno. Writing is -EAGAIN while earlier bytes wait for the network, so that no queue grows. */
ssize_t remote_channel_read(struct remote_channel *channel, void *bytes, size_t size);
ssize_t remote_channel_read_error(struct remote_channel *channel, void *bytes, size_t size); /* stderr */
ssize_t remote_channel_write(struct remote_channel *channel, const void *bytes, size_t length);
/* Sets for which of EVENT_READ and EVENT_WRITE on_ready is called. */
void remote_channel_want(struct remote_channel *channel, unsigned events);
/* Closes the program's stdin, after the bytes written so far. 0 or a negative errno. */
int remote_channel_end_input(struct remote_channel *channel);
/* Closes and frees the channel; may be called within its callbacks. NULL is fine. */
void remote_channel_free(struct remote_channel *channel);

#endif
