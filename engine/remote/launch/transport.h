/*
 * A transport is a byte stream to the agent of one node, with the child process or the ssh channel that
 * carries it. It does not interpret the bytes.
 *
 *     idle --start--> starting --> open --close--> closing --> closed
 *                        |          |                            ^
 *                        +----------+------- failure ------------+
 *
 * start() and close() return at once, and the listener is told of their result. It is told of `closed`
 * exactly once, with the reason unless the caller asked for the end, and never called after that.
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
    /* The state is OPEN or CLOSED. WHY is NULL where transport_close() asked for the end; otherwise it is a
     * sentence with the reason (the agent's exit status or signal, and its last line of stderr) and the place
     * "node NAME". */
    void (*on_state)(struct transport *transport, enum transport_state state, const struct failure *why,
                     void *context);
    /* Reading or writing may succeed now: those of EVENT_READ and EVENT_WRITE that transport_want() asked
     * for. */
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
    /* Makes another transport, not yet started, to the agent of OLD, whose stream has broken. NULL: agents of
     * this kind end with their stream. */
    int (*renew)(struct transport *old, struct transport **ret, struct failure *failure);
};

/* The first member of the struct of every kind of transport. */
struct transport {
    const struct transport_operations *operations;
    struct event_loop *loop;
    char *node; /* the node's name, for failures */
    enum transport_state state;
    struct transport_listener listener;
    /* Random number, not 0, that identifies an agent which is a daemon: it outlives its streams, and must be
     * told to end. 0: the agent ends with its stream. */
    uint64_t session;
    bool resumed; /* made by renew(): the agent must run already */
    bool begun;   /* set for daemons: the agent may have been started, although the stream is not open yet */
};

/* Begins to open the stream. The listener is copied. Either fails at once (FAILURE filled, state closed,
 * listener not called), or returns 0 and later calls on_state, never from within this call. */
int transport_start(struct transport *transport, const struct transport_listener *listener,
                    struct failure *failure);

/* Return the number of bytes; 0 at the end of the stream (reading only); -EAGAIN: not possible now; or
 * another negative errno. After 0 or an error the caller calls transport_want() with 0 and waits for
 * on_state(CLOSED), which has the reason. */
ssize_t transport_read(struct transport *transport, void *bytes, size_t size);
ssize_t transport_write(struct transport *transport, const void *bytes, size_t length);

/* Sets for which of EVENT_READ and EVENT_WRITE on_ready is called. 0 or a negative errno. */
int transport_want(struct transport *transport, unsigned events);

/* Ends the stream in order: the agent sees its end, cleans up and ends; then on_state(CLOSED, NULL) is
 * called. A daemon must have been told to end by the last bytes that were written; until it has ended,
 * further output is dropped. When the stream breaks before that, or nothing happens for two minutes, it is
 * on_state(CLOSED, why). Also called on a broken stream that is to be replaced. */
void transport_close(struct transport *transport);

/* Makes a new transport to the same agent; -ENOTSUP where the agent ends with its stream. OLD may be in any
 * state but idle; the caller frees it before it starts the new one. Failures of a renewed transport for which
 * trying again is no use: -ESTALE (the agent has ended), -EACCES (the login was refused), -EKEYREJECTED (the
 * node's host key). */
int transport_renew(struct transport *old, struct transport **ret, struct failure *failure);

/* Frees without calling the listener. A child that still runs is ended: in order within 5 s, otherwise by
 * SIGKILL. A daemon is not waited for. NULL is fine. */
void transport_free(struct transport *transport);

/* For the kinds of transports: changes the state, in this function only, and tells the listener of OPEN and
 * CLOSED. */
void transport_set_state(struct transport *transport, enum transport_state state, const struct failure *why);

#endif
