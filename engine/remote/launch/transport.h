/*
 * A transport is a byte stream to the agent of one node, and whatever had to be started to have it: a child
 * process here, an ssh channel there. It knows nothing of what the bytes mean.
 *
 *     idle --start--> starting --> open --close--> closing --> closed
 *                        |          |                            ^
 *                        +----------+------- failure ------------+
 *
 * start() and close() return at once; the listener hears what comes of them. It hears of `closed` exactly
 * once, with the reason when it was not asked for, and after that of nothing.
 */
#ifndef ASSAY_LAUNCH_TRANSPORT_H
#define ASSAY_LAUNCH_TRANSPORT_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum transport_state {
    TRANSPORT_IDLE,
    TRANSPORT_STARTING,
    TRANSPORT_OPEN,
    TRANSPORT_CLOSING,
    TRANSPORT_CLOSED,
};

struct transport;

struct transport_listener {
    /* The state is OPEN or CLOSED. WHY is NULL unless the stream ended without being asked to: one sentence
     * that says how (the agent's exit status or signal, and what it last said on stderr), its place being
     * "node NAME". */
    void (*on_state)(struct transport *transport, enum transport_state state, const struct failure *why,
                     void *context);
    /* Reading or writing may succeed now; only what transport_want() asked for (EVENT_READ, EVENT_WRITE). */
    void (*on_ready)(struct transport *transport, unsigned events, void *context);
    void *context;
};

struct transport_operations {
    const char *name; /* "local" */
    int (*start)(struct transport *transport, struct failure *failure);
    ssize_t (*read)(struct transport *transport, void *bytes, size_t size);
    ssize_t (*write)(struct transport *transport, const void *bytes, size_t length);
    int (*want)(struct transport *transport, unsigned events);
    void (*close)(struct transport *transport);
    void (*free)(struct transport *transport);
    /* Another transport, not yet started, to the agent that OLD reached, whose stream has broken. NULL: an
     * agent of this kind ends with its stream. */
    int (*renew)(struct transport *old, struct transport **ret, struct failure *failure);
};

/* The head of every transport; the file of each kind has the rest. */
struct transport {
    const struct transport_operations *operations;
    struct event_loop *loop;
    char *node; /* the name that failures use */
    enum transport_state state;
    struct transport_listener listener;
    /* Names the agent among those of a node, when it is a daemon that outlives its streams and is to be told
     * to leave; 0: it leaves when the stream ends. Random, never 0 by chance. */
    uint64_t session;
    bool resumed; /* renew() made it: the agent must be there already */
    bool begun;   /* set by the kinds of sessions: an agent may have been started, although the stream is not
                     open */
};

/* Begins to open the stream. The listener is copied. Fails at once (FAILURE filled, state closed, listener
 * not called) or goes on to on_state, never from within this call. */
int transport_start(struct transport *transport, const struct transport_listener *listener,
                    struct failure *failure);

/* How many bytes went, 0 at the end of the stream (read only), -EAGAIN for "not now", or another negative
 * errno. After 0 or an error the caller stops wanting and waits for on_state(CLOSED), which has the reason.
 */
ssize_t transport_read(struct transport *transport, void *bytes, size_t size);
ssize_t transport_write(struct transport *transport, const void *bytes, size_t length);

/* Which of EVENT_READ and EVENT_WRITE on_ready should be called for. 0 or a negative errno. */
int transport_want(struct transport *transport, unsigned events);

/* Ends the stream in order: the agent sees its end, cleans up and leaves; then on_state(CLOSED, NULL). An
 * agent of a session is told to leave by the last bytes that were written: until it has gone, what still
 * comes is dropped; when the stream breaks before that, or nothing moves, it is on_state(CLOSED, why). Also
 * called on a stream that is dead and is to be replaced. */
void transport_close(struct transport *transport);

/* A new transport to the same agent; -ENOTSUP where there is no such thing. OLD may be in any state but idle,
 * and is freed before the new one is started. Failures of a renewed transport
 * that trying again will not mend: -ESTALE (the agent is not there any more), -EACCES (the login was
 * refused), -EKEYREJECTED (the node's host key). */
int transport_renew(struct transport *old, struct transport **ret, struct failure *failure);

/* Calls no listener. What is still running is ended, in order if it does so within 5 s, by force if not; a
 * session's agent is not waited for. NULL is fine. */
void transport_free(struct transport *transport);

/* For the kinds: the one place where the state changes. Tells the listener of OPEN and CLOSED. */
void transport_set_state(struct transport *transport, enum transport_state state, const struct failure *why);

#endif
