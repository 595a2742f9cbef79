/*
 * A link: the engine's side of the protocol with one agent (engine/agent/PROTOCOL.md), over any transport.
 *
 *     struct transport *transport;
 *     struct agent_link *link;
 *     transport_local_new(loop, &(struct transport_local_options){.agent = path, .directory = folder},
 * &transport, failure); agent_link_new(loop, take_pointer(transport), NULL, &link, failure);
 *     agent_link_start(link, AGENT_LINK_HELLO_TIMEOUT, failure);
 *     event_loop_run(loop, failure);                      on_state() makes requests
 *
 * Every request either fails at once (negative, FAILURE filled, callback never called) or calls back exactly
 * once, and never from within the call that made it. When the link ends, for whatever reason, all pending
 * requests are called back with one failure, whose place is "node NAME". Callbacks may make requests, write,
 * kill and free commands; they must not turn the loop, or call agent_link_free() for the same link.
 *
 * The link to a daemon (transport.h: session) survives its stream. When the stream breaks, or when nothing
 * has come for longer than the policy's silence, the state is `broken`: new requests wait, the agent's
 * commands go on, and the link asks its transport for a new stream, at once, then after 0.5 s, doubling up to
 * 10 s, plus a random fifth at most. On the new stream both sides say what they have received, and the rest
 * is sent again: nothing is lost, nothing comes twice. The link fails when the lease has run out, because
 * then the agent has ended, or when the transport says that trying is no use (transport_renew()). A stream
 * that breaks before the agent's first HELLO is not replaced.
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
    AGENT_LINK_GREETING, /* our HELLO is sent, the agent's has not come; requests wait */
    AGENT_LINK_READY,
    AGENT_LINK_BROKEN,  /* the stream is lost; back to READY on a new one */
    AGENT_LINK_CLOSING, /* agent_link_close() was called; requests are refused */
    AGENT_LINK_CLOSED,  /* ended: as asked, or with a failure */
};

#define AGENT_LINK_HELLO_TIMEOUT (20 * EVENT_SECOND)

struct agent_link_callbacks {
    /* Called for READY; for BROKEN, with WHY, and READY again, as often as that happens; and once for CLOSED,
     * after the pending requests were called back. WHY is NULL where the end was asked for. */
    void (*on_state)(struct agent_link *link, enum agent_link_state state, const struct failure *why,
                     void *context);
    void *context;
};

/* Time-outs of links to daemons. A heartbeat is a CLOCK request of the link itself. It is sent when for
 * `heartbeat_ns` nothing was sent, or nothing was received after something was sent; while both sides send,
 * there is none. */
struct agent_link_policy {
    int64_t lease_ns;     /* the agent ends when nothing came from us for so long; 366 days at most */
    int64_t heartbeat_ns; /* cut to a third of the lease and half of the silence */
    int64_t silence_ns;   /* a stream on which a heartbeat is not answered for so long counts as broken */
};
#define AGENT_LINK_LEASE_NS (300 * EVENT_SECOND)
#define AGENT_LINK_HEARTBEAT_NS (5 * EVENT_SECOND)
#define AGENT_LINK_SILENCE_NS (15 * EVENT_SECOND)

/* Makes a link, not yet started. TRANSPORT is taken over, also on failure. CALLBACKS is copied; NULL, and any
 * member of it NULL, is fine. */
int agent_link_new(struct event_loop *loop, struct transport *transport,
                   const struct agent_link_callbacks *callbacks, struct agent_link **ret,
                   struct failure *failure);
/* Frees the link and its transport without calling back. The caller's commands must only be freed afterwards
 * (remote_command_free()). A daemon is told to end if the stream accepts that at once, and otherwise ends
 * with its lease; agent_link_close() waits for it. NULL is fine. */
void agent_link_free(struct agent_link *link);

/* Sets time-outs, before the start; for members that are 0 the definitions above are kept. */
void agent_link_set_policy(struct agent_link *link, const struct agent_link_policy *policy);
/* Starts the transport and sends HELLO; the agent must answer within TIMEOUT_NS after the transport is open.
 * The transport has its own limits for opening. */
int agent_link_start(struct agent_link *link, int64_t timeout_ns, struct failure *failure);
/* Tells the agent, a daemon too, to end: it ends its commands (SIGTERM, their grace, SIGKILL) and then
 * itself. Its run directory is removed, before the link is closed, if the transport was made so. May be
 * called in any state. While the transport starts and may have started the agent, the agent is told as soon
 * as the stream is open. When the stream is broken, or breaks before the agent was surely told, one attempt
 * is made to reach it and tell it. When the stream has accepted nothing for 5 s, or after 30 s, the link is
 * closed all the same, and the agent ends with its lease: agent_link_left_ns(). */
void agent_link_close(struct agent_link *link);
/* After agent_link_close(): the lease, in ns, of an agent that may still run because it was not told to end;
 * 0: it was told, or there is no agent. While the link is closing: the value if closing ended now. */
int64_t agent_link_left_ns(const struct agent_link *link);

enum agent_link_state agent_link_state(const struct agent_link *link);
/* Why the link ended; NULL: it has not ended, or was asked to. */
const struct failure *agent_link_failure(const struct agent_link *link);
const char *agent_link_node(const struct agent_link *link);
/* The present transport, for functions of its kind (agent_transport_arrival()); NULL: none. Must not be
 * stored, because a broken link gets another one. */
const struct transport *agent_link_transport(const struct agent_link *link);

/* The content of the agent's HELLO; valid from READY until the link is freed. */
struct agent_greeting {
    unsigned protocol;     /* protocol version */
    uint64_t capabilities; /* PROTOCOL_CAPABILITY_* of protocol.h */
    const char *version;   /* "0.1.0" */
    const char *host_name;
    char sha256[HASH_HEX_SIZE]; /* of its program, hex; "": not known */
    pid_t pid;
    unsigned resumed; /* how often the link was broken and ready again */
};
const struct agent_greeting *agent_link_greeting(const struct agent_link *link);

/* ---- requests. The callback's FAILURE is NULL on success. */

/* FACTS, NULL on failure, belongs to the callback, which frees it. */
typedef void agent_facts_callback(struct agent_link *link, struct node_facts *facts,
                                  const struct failure *failure, void *context);
int agent_link_inspect(struct agent_link *link, agent_facts_callback *callback, void *context,
                       struct failure *failure);

/* Files. Each call runs a command on the node, the agent's tool that packs or unpacks a tar. PATH is relative
 * to the agent's run directory, or absolute. */

typedef void agent_done_callback(struct agent_link *link, const struct failure *failure, void *context);
/* Reads the files of PATHS, ended by NULL; no two of them may end in the same name. FILE is called for each
 * file that could be read, with its number in PATHS and its bytes, valid during the call; then DONE, with the
 * failure of the first that could not. More than LIMIT bytes in all (at most AGENT_FILE_LIMIT) are refused.
 * Files of /proc and /sys can be read, too. */
#define AGENT_FILE_LIMIT (UINT64_C(1) << 26)
typedef void agent_file_callback(struct agent_link *link, size_t path, const char *bytes, size_t length,
                                 void *context);
int agent_link_read_files(struct agent_link *link, const char *const *paths, uint64_t limit,
                          agent_file_callback *file, agent_done_callback *done, void *context,
                          struct failure *failure);

/* Writes a file durably: PATH then has exactly these bytes, or on failure its old content. Its folder is
 * made. BYTES are copied (at most AGENT_FILE_LIMIT). MODE as for open(2). */
int agent_link_write_file(struct agent_link *link, const char *path, const void *bytes, size_t length,
                          unsigned mode, agent_done_callback *callback, void *context,
                          struct failure *failure);
/* As agent_link_write_file(), but turns the loop until the file is written; must not be called within a
 * callback of this link. FAILURE_INTERRUPTED, -EINTR, when the loop is stopped meanwhile (event_loop_stop()).
 */
int agent_link_write_file_and_wait(struct agent_link *link, const char *path, const void *bytes,
                                   size_t length, unsigned mode, struct failure *failure);
/* Makes a folder as mkdir -p, with mode 0777 less the umask of the agent. */
int agent_link_make_folder(struct agent_link *link, const char *path, agent_done_callback *callback,
                           void *context, struct failure *failure);

/* The node's clocks beside the engine's. Of EXCHANGES exchanges (at most 1,000; 0: AGENT_CLOCK_EXCHANGES) the
 * one with the shortest round trip is used: offset = node_wall - engine_wall, with an error of at most half
 * the round trip. The engine's times are those of the middle of the round trip. */
struct agent_clock {
    int64_t engine_wall_ns, engine_monotonic_ns;
    int64_t node_wall_ns, node_monotonic_ns;
    int64_t round_trip_ns;
    unsigned exchanges; /* number of exchanges, of which this is the best */
};
enum { AGENT_CLOCK_EXCHANGES = 5 };
typedef void agent_clock_callback(struct agent_link *link, const struct agent_clock *clock,
                                  const struct failure *failure, void *context);
int agent_link_measure_clock(struct agent_link *link, unsigned exchanges, agent_clock_callback *callback,
                             void *context, struct failure *failure);

struct agent_statistics {
    int64_t user_us, system_us; /* CPU time of the agent itself since it started */
    uint64_t rss_bytes;         /* its resident memory now */
    uint64_t rss_peak_bytes;    /* its highest resident memory */
    uint64_t frames_received, frames_sent;
    uint64_t bytes_received, bytes_sent;
    uint64_t wakeups; /* turns of its event loop */
    unsigned commands_running;
};
typedef void agent_statistics_callback(struct agent_link *link, const struct agent_statistics *statistics,
                                       const struct failure *failure, void *context);
int agent_link_statistics(struct agent_link *link, agent_statistics_callback *callback, void *context,
                          struct failure *failure);

/* Drops the answers to all pending requests that were made with CONTEXT: their callbacks are never called. */
void agent_link_forget(struct agent_link *link, const void *context);

#endif
