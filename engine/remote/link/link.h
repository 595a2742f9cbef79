/*
 * The engine's end of the conversation with one agent (engine/agent/PROTOCOL.md), over any transport.
 *
 *     struct transport *transport;
 *     struct agent_link *link;
 *     transport_local_new(loop, &(struct transport_local_options){.agent = path, .directory = folder},
 * &transport, failure); agent_link_new(loop, take_pointer(transport), NULL, &link, failure);
 *     agent_link_start(link, AGENT_LINK_HELLO_TIMEOUT, failure);
 *     event_loop_run(loop, failure);                      on_state() makes requests
 *
 * Every request either fails at once (negative, FAILURE filled, callback never called) or calls back exactly
 * once, and never from within the call that made it. When the link ends, for whatever reason, all that is
 * pending is called back with one failure, whose place is "node NAME". Callbacks may make requests, write,
 * kill and free commands; but none turns the loop, and agent_link_free() is not for callbacks of the same
 * link.
 *
 * A daemon's link (transport.h: session) survives its stream. When the stream breaks, or when nothing has
 * been heard for longer than the policy's silence, the state is `broken`: requests are still taken and wait,
 * the agent's commands go on, and the link asks its transport for a new stream, at once, then after 0.5 s,
 * doubling up to 10 s, and a fifth more by chance. On the new stream both sides say what they have received,
 * and the rest is sent again: nothing is lost, nothing comes twice. It gives up when the lease has run out,
 * for then the agent has left, or when the transport says that trying is no use (transport_renew()). A stream
 * that breaks before the agent has first greeted is not mended.
 *
 * Limits: a path of 4,095 bytes, a program's arguments and its environment 256 KiB each (PROTOCOL.md has them
 * all).
 */
#ifndef ASSAY_LINK_LINK_H
#define ASSAY_LINK_LINK_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"
#include "engine/remote/launch/transport.h"
#include "engine/remote/link/facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agent_link;

enum agent_link_state {
    AGENT_LINK_IDLE,     /* new; requests are refused */
    AGENT_LINK_OPENING,  /* the transport is being started; requests wait */
    AGENT_LINK_GREETING, /* our HELLO is out; requests wait */
    AGENT_LINK_READY,
    AGENT_LINK_BROKEN,  /* the stream is gone, another is being sought; back to READY when it is there */
    AGENT_LINK_CLOSING, /* agent_link_close() was called; requests are refused */
    AGENT_LINK_CLOSED,  /* over: as asked, or with a failure */
};

#define AGENT_LINK_HELLO_TIMEOUT (20 * EVENT_SECOND)

struct agent_link_callbacks {
    /* READY the first time; BROKEN, and WHY, and READY again, both as often as it happens; CLOSED once, after
     * the pending requests were told, when WHY is NULL if the end was asked for. */
    void (*on_state)(struct agent_link *link, enum agent_link_state state, const struct failure *why,
                     void *context);
    void *context;
};

/* How long to wait for what; of daemons only. A beat is a CLOCK request of the link's own, sent when nothing
 * was sent, or nothing heard after something was, for the heartbeat; while both sides speak there is none. */
struct agent_link_policy {
    int64_t lease_ns;     /* the agent leaves when it has not heard from us for so long; 366 days at most */
    int64_t heartbeat_ns; /* at most a third of the lease and half of the silence: more is cut to that */
    int64_t silence_ns;   /* when a beat is out and nothing was heard for so long, the stream is given up */
};
#define AGENT_LINK_LEASE_NS (300 * EVENT_SECOND)
#define AGENT_LINK_HEARTBEAT_NS (5 * EVENT_SECOND)
#define AGENT_LINK_SILENCE_NS (15 * EVENT_SECOND)

/* Takes TRANSPORT over, also on failure. CALLBACKS is copied; NULL, and any member of it NULL, is fine. */
int agent_link_new(struct event_loop *loop, struct transport *transport,
                   const struct agent_link_callbacks *callbacks, struct agent_link **ret,
                   struct failure *failure);
/* Ends what is running (transport_free) without calling back. Commands that the caller still holds are dead:
 * all that can be done with them is remote_command_free(). A daemon is told to leave if its stream takes that
 * at once, and otherwise left to its lease: agent_link_close() makes sure. NULL is fine. */
void agent_link_free(struct agent_link *link);

/* Before the start; members that are 0 keep what the definitions above say. */
void agent_link_set_policy(struct agent_link *link, const struct agent_link_policy *policy);
/* Starts the transport and greets; the agent must have answered within TIMEOUT_NS of the transport's being
 * open. How long that may take is the transport's business. */
int agent_link_start(struct agent_link *link, int64_t timeout_ns, struct failure *failure);
/* Tells the agent to go, a daemon too: it ends its commands (SIGTERM, their grace, SIGKILL) and leaves. Its
 * run directory stays, unless the transport had the agent remove it: then it is gone when the link is closed.
 * In any state. While the transport is being started and may have started the agent, it is told as soon as
 * the stream is open. When the stream is broken, or breaks before the agent is known to have been told,
 * one attempt is made to reach the agent and tell it. When the stream has taken nothing for 5 s, or after 30
 * s, the link is closed all the same, and the agent is left to its lease: agent_link_left_ns(). */
void agent_link_close(struct agent_link *link);
/* After agent_link_close(): how long the agent may stay because it has not been told to leave, in ns: its
 * lease. 0: it was told, or there is none. While the link is closing: if it were given up now. */
int64_t agent_link_left_ns(const struct agent_link *link);

enum agent_link_state agent_link_state(const struct agent_link *link);
/* Why it ended; NULL while it has not, or when it was asked to. */
const struct failure *agent_link_failure(const struct agent_link *link);
const char *agent_link_node(const struct agent_link *link);
/* The stream of the moment, for what only its kind knows (agent_transport_arrival()); NULL while there is
 * none. It is another one after the link was broken: not to be kept. */
const struct transport *agent_link_transport(const struct agent_link *link);

/* What the agent said of itself in its HELLO; valid from `ready` until the link is freed. */
struct agent_greeting {
    unsigned protocol;     /* protocol version */
    uint64_t capabilities; /* PROTOCOL_CAPABILITY_* of protocol.h */
    const char *version;   /* "0.1.0" */
    const char *host_name;
    char sha256[HASH_HEX_SIZE]; /* of its program, hex; "": it could not tell */
    pid_t pid;
    unsigned resumed; /* how often the link was broken and found again */
};
const struct agent_greeting *agent_link_greeting(const struct agent_link *link);

/* ---- requests. FAILURE (the callback's) is NULL on success. */

/* FACTS is the callback's own: it frees it. NULL on failure. */
typedef void agent_facts_callback(struct agent_link *link, struct node_facts *facts,
                                  const struct failure *failure, void *context);
int agent_link_inspect(struct agent_link *link, agent_facts_callback *callback, void *context,
                       struct failure *failure);

/* Files. Each call is a command of its own on the node: the agent's tool that packs or unpacks a tar. PATH is
 * relative to the agent's run directory, or absolute. */

typedef void agent_done_callback(struct agent_link *link, const struct failure *failure, void *context);
/* The files of PATHS, of which the last is NULL; no two of them end in the same name. FILE is called for each
 * that could be read, by its number in PATHS, with its bytes, which are valid until it returns; then DONE,
 * with the first that could not. More than LIMIT bytes in all (at most AGENT_FILE_LIMIT) are refused. /proc
 * and /sys can be read too. */
#define AGENT_FILE_LIMIT (UINT64_C(1) << 26)
typedef void agent_file_callback(struct agent_link *link, size_t path, const char *bytes, size_t length,
                                 void *context);
int agent_link_read_files(struct agent_link *link, const char *const *paths, uint64_t limit,
                          agent_file_callback *file, agent_done_callback *done, void *context,
                          struct failure *failure);

/* PATH has exactly these bytes afterwards, durably, or what it had before. Its folder is made. BYTES are
 * copied (AGENT_FILE_LIMIT at most). MODE as for open(2). */
int agent_link_write_file(struct agent_link *link, const char *path, const void *bytes, size_t length,
                          unsigned mode, agent_done_callback *callback, void *context,
                          struct failure *failure);
/* The same, waiting: it turns the loop, serving everybody else, until the file is there; not from a callback
 * of this link. When the loop is stopped meanwhile (event_loop_stop), it gives up with FAILURE_INTERRUPTED,
 * -EINTR. */
int agent_link_write_file_and_wait(struct agent_link *link, const char *path, const void *bytes,
                                   size_t length, unsigned mode, struct failure *failure);

/* How the node's clocks stand to the engine's: of several exchanges, that with the least round trip, which
 * bounds the error: offset = node_wall - engine_wall, give or take half the round trip. The engine's stamps
 * are of the middle of the round trip. EXCHANGES: at most 1,000; 0: AGENT_CLOCK_EXCHANGES. */
struct agent_clock {
    int64_t engine_wall_ns, engine_monotonic_ns;
    int64_t node_wall_ns, node_monotonic_ns;
    int64_t round_trip_ns;
    unsigned exchanges; /* of which this is the best */
};
enum { AGENT_CLOCK_EXCHANGES = 5 };
typedef void agent_clock_callback(struct agent_link *link, const struct agent_clock *clock,
                                  const struct failure *failure, void *context);
int agent_link_measure_clock(struct agent_link *link, unsigned exchanges, agent_clock_callback *callback,
                             void *context, struct failure *failure);

struct agent_statistics {
    int64_t user_us, system_us; /* CPU time of the agent itself since it started */
    uint64_t rss_bytes;         /* its resident memory now; */
    uint64_t rss_peak_bytes;    /* and at its highest */
    uint64_t frames_received, frames_sent;
    uint64_t bytes_received, bytes_sent;
    uint64_t wakeups; /* turns of its event loop */
    unsigned commands_running;
};
typedef void agent_statistics_callback(struct agent_link *link, const struct agent_statistics *statistics,
                                       const struct failure *failure, void *context);
int agent_link_statistics(struct agent_link *link, agent_statistics_callback *callback, void *context,
                          struct failure *failure);

/* Whoever asked with CONTEXT wants no answers any more: those that are still to come go nowhere. */
void agent_link_forget(struct agent_link *link, const void *context);

#endif
