/*
 * The agent: serves one engine. An agent of session 0 has one link, over the pair of descriptors that it is
 * given, and leaves when that ends. Any other is a daemon (daemon.h): links come and go, and it leaves when
 * it is asked to, or when its lease runs out.
 *
 *     greeting --HELLO--> serving --(the end)--> leaving --no command is left--> gone
 *
 * The end: LEAVE, a lease that has run out, SIGTERM, REFUSE; for session 0 also the end of the stream.
 *
 * agent.c has the states and dispatches messages; link.c has frames in and out, and links that are replaced;
 * request.c answers requests; command.c runs programs, among them the agent's own tools (tool.h), which move
 * files.
 */
#ifndef ASSAY_SERVE_AGENT_H
#define ASSAY_SERVE_AGENT_H

#include "engine/agent/machine/machine.h"
#include "engine/agent/wire/mailbox.h"
#include "engine/agent/wire/protocol.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agent_state { AGENT_GREETING, AGENT_SERVING, AGENT_LEAVING, AGENT_GONE };

struct agent;

/* How a daemon learns about its agent; not called within agent_attach() and agent_detach(). */
struct agent_listener {
    void (*on_detached)(struct agent *agent, void *context); /* the link is over; the session is not */
    void (*on_leaving)(struct agent *agent, void *context);
    void *context;
};

struct agent_options {
    int directory;       /* descriptor of the run directory; not to be closed by the agent */
    const char *root;    /* what stands for "/" when files of the machine are read; NULL: "/" */
    bool leave_controls; /* what an agent that is gone has left changed */
    uint64_t session;    /* 0: it leaves when its link ends */
    struct agent_listener listener;
};

#define AGENT_FIRST_LEASE (60 * EVENT_SECOND) /* of a daemon, until LEASE says otherwise */

#define AGENT_IDLE_NS (20 * EVENT_MILLISECOND)

struct command;

struct agent {
    struct event_loop *loop;
    enum agent_state state;
    uint64_t session;
    struct agent_listener listener;
    int directory, null; /* descriptors: the run directory, /dev/null */
    struct machine machine;

    int input, output; /* the link's; -1 without a link */
    struct event_source *input_source, *output_source;
    bool greeted; /* HELLO has come and was answered on this link */
    struct inbox inbox;
    struct outbox outbox;
    struct event_source *lease; /* timer */
    int64_t lease_ns;           /* 0: no limit */
    bool lease_over;            /* as of the last turn; the next one decides */
    int64_t heard_ns;           /* when the engine was last heard, on the loop's clock */

    struct event_source *flush;  /* deferred: give the stream what is in the outbox */
    bool about_to_flush;         /* and so need not defer it */
    struct event_source *idle;   /* timer: the same, for what is not urgent */
    struct event_source *work;   /* deferred: continue with output that the full window held back */
    struct event_source *settle; /* deferred: look at the commands whose first process has ended */
    bool held_back;              /* data waits to be sent, and the window is full */
    struct command *commands;
    unsigned command_count;
    size_t pipe_bytes;            /* capacity given to pipes so far */
    uint64_t wakeups;             /* turns of the loop */
    char note[FAILURE_TEXT_SIZE]; /* what it restored before it served; "" for nothing */
};

/* The agent lives in LOOP, which adopts orphans. The struct must not move. 0, or negative with nothing to
 * clear. */
int agent_init(struct agent *agent, struct event_loop *loop, const struct agent_options *options,
               struct failure *failure);
void agent_clear(struct agent *agent);

/* Turns the loop until the agent has gone, then restores controls that were set and not restored. */
int agent_run(struct agent *agent, struct failure *failure);

/* Ends all commands, then stops the loop. SENTENCE, if any, is sent to the engine as REFUSE. */
void agent_leave(struct agent *agent, const char *sentence);

/* ---- link.c */

/* A link begins, in place of the one that there may be. Takes both descriptors over when it succeeds; they
 * may be the same file, but not the same number. */
int agent_attach(struct agent *agent, int input, int output, struct failure *failure);
/* Ends the link: what was not acknowledged is kept for the next one. */
void agent_detach(struct agent *agent);
bool agent_is_attached(const struct agent *agent);

/* ---- for the agent's own files */

/* What a whole frame of the engine asks for (agent.c). A negative return is a violation of the protocol. */
int agent_serve(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
/* Gives the stream what it takes (link.c). */
void agent_flush(struct agent *agent);

/* A frame to the engine: agent_begin, protocol_put_..., agent_end. Memory that runs out or an engine that
 * does not read ends the link. */
void agent_begin(struct agent *agent, struct protocol_writer *writer, enum protocol_type type);
void agent_end(struct agent *agent, struct protocol_writer *writer);
/* The same for a frame that is not urgent: it is sent with the next urgent one, or
 * AGENT_IDLE_NS later. */
void agent_end_idly(struct agent *agent, struct protocol_writer *writer);
/* ERROR or FAILED, from what FAILURE says. */
void agent_send_error(struct agent *agent, enum protocol_type type, uint32_t number,
                      const struct failure *failure);
/* REFUSE with SENTENCE; nothing for NULL. */
void agent_refuse(struct agent *agent, const char *sentence);
/* May data be added to the outbox? If not, `work` will come round when it may. */
bool agent_may_send(struct agent *agent);

/* request.c: INSPECT, STATISTICS and CLOCK, answered at once. A negative return is a malformed message. */
int request_answer(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);

#endif
