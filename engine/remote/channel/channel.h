/*
 * A channel is a program that runs somewhere, with its three streams: a child process (child.h) or a command
 * over an ssh connection (engine/remote/ssh/connection.h).
 */
#ifndef ASSAY_CHANNEL_CHANNEL_H
#define ASSAY_CHANNEL_CHANNEL_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Fills FAILURE (may be NULL), its place being "node NODE", and returns CODE. */
int node_failure(struct failure *failure, const char *node, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

struct remote_channel;

struct remote_channel_end {
    bool exited; /* CODE is its exit status */
    int code;
    char signal[32]; /* "TERM"; "" when no signal ended it */
};
/* "was killed by signal TERM", "ended with exit status 3", for a sentence. */
const char *remote_channel_end_describe(const struct remote_channel_end *end, char *buffer, size_t size);

/* None of these is called from within a call of the channel's user. */
struct remote_channel_listener {
    void (*on_open)(struct remote_channel *channel, void *context); /* the program runs */
    /* EVENT_READ, EVENT_WRITE, of those wanted; again as long as there is something to read on stdout. For
     * stderr once each time that more has come: then it is to be read until -EAGAIN. */
    void (*on_ready)(struct remote_channel *channel, unsigned events, void *context);
    /* Once, when all that the program printed on both has been read and its exit is known, or when there is
     * no more to be known (END then has neither code nor signal). END is NULL and WHY says so if the program
     * could not be started or the way to it broke. */
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

/* How many bytes went, 0 at the end (reading only), -EAGAIN for "not now", or another negative errno. Writing
 * is -EAGAIN while bytes wait for the network: nothing piles up. */
ssize_t remote_channel_read(struct remote_channel *channel, void *bytes, size_t size);
ssize_t remote_channel_read_error(struct remote_channel *channel, void *bytes, size_t size); /* stderr */
ssize_t remote_channel_write(struct remote_channel *channel, const void *bytes, size_t length);
/* Which of EVENT_READ and EVENT_WRITE on_ready should be called for. */
void remote_channel_want(struct remote_channel *channel, unsigned events);
/* End of file on its stdin, after what was written. 0 or a negative errno. */
int remote_channel_end_input(struct remote_channel *channel);
/* Closes it, from its own callbacks too. NULL is fine. */
void remote_channel_free(struct remote_channel *channel);

#endif
