/*
 * The agent: serves one engine. An agent of session 0 has one link, over the pair of descriptors that it is
 * given, and ends with it. Any other agent is a daemon (daemon.h): it may have several links one after
 * another, and ends when it is asked to, or when its lease runs out.
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
    void (*on_detached)(struct agent *agent, void *context); /* the link has ended; the session goes on */
    void (*on_leaving)(struct agent *agent, void *context);  /* the agent begins to end */
    void *context;
};

struct agent_options {
    int directory;       /* descriptor of the run directory; the caller closes it */
    const char *root;    /* the folder that replaces "/" when files of the machine are read; NULL: "/" */
    bool leave_controls; /* do not restore controls that an agent which died has left changed */
    uint64_t session;    /* 0: the agent ends with its link */
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
    bool lease_over;            /* the lease had run out at the last look; the next one ends the agent */
    int64_t heard_ns;           /* when the engine was last heard, on the loop's clock */

    struct event_source *flush;  /* deferred: write the outbox to the link */
    bool about_to_flush;         /* the caller flushes soon, so that frames need not defer `flush` */
    struct event_source *idle;   /* timer: write the outbox, for frames that are not urgent */
    struct event_source *work;   /* deferred: continue with output that waited for the window */
    struct event_source *settle; /* deferred: move on commands whose first process has ended */
    bool held_back;              /* output waits, because the window is full */
    struct command *commands;
    unsigned command_count;
    size_t pipe_bytes;            /* capacity given to pipes so far */
    uint64_t wakeups;             /* turns of the loop */
    char note[FAILURE_TEXT_SIZE]; /* the controls that were restored at the start; "": none */
};

/* Makes an agent whose events are in LOOP, and makes this process reap orphans. Controls that an agent which
 * died has left changed are restored. AGENT must not move. Returns 0, or negative with nothing to clear. */
int agent_init(struct agent *agent, struct event_loop *loop, const struct agent_options *options,
               struct failure *failure);
void agent_clear(struct agent *agent);

/* Turns the loop until the agent has ended, then restores controls that were set and not restored. */
int agent_run(struct agent *agent, struct failure *failure);

/* Ends all commands, then stops the loop. SENTENCE, if any, is sent to the engine as REFUSE. */
void agent_leave(struct agent *agent, const char *sentence);

/* ---- link.c */

/* Begins a link, which replaces an earlier one. Both descriptors are taken over when it succeeds; they may be
 * one file, but not one number. */
int agent_attach(struct agent *agent, int input, int output, struct failure *failure);
/* Ends the link, if there is one. Frames that were not acknowledged are kept for the next link. */
void agent_detach(struct agent *agent);
bool agent_is_attached(const struct agent *agent);

/* ---- for the agent's own files */

/* Does what a frame of the engine asks for (agent.c). A negative return is a violation of the protocol. */
int agent_serve(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
/* Writes as much of the outbox to the link as it accepts (link.c). */
void agent_flush(struct agent *agent);

/* Send a frame to the engine: agent_begin(), protocol_put_...(), agent_end(). The agent ends where memory
 * runs out or the engine does not read. */
void agent_begin(struct agent *agent, struct protocol_writer *writer, enum protocol_type type);
void agent_end(struct agent *agent, struct protocol_writer *writer);
/* As agent_end() for a frame that is not urgent: it is sent with the next urgent frame, or AGENT_IDLE_NS
 * later. */
void agent_end_idly(struct agent *agent, struct protocol_writer *writer);
/* Sends ERROR or FAILED (TYPE) about request or command NUMBER, with the code and sentence of FAILURE. */
void agent_send_error(struct agent *agent, enum protocol_type type, uint32_t number,
                      const struct failure *failure);
/* Sends REFUSE with SENTENCE; nothing for NULL. */
void agent_refuse(struct agent *agent, const char *sentence);
/* True where output may be added to the outbox. If not, `work` is deferred when it may. */
bool agent_may_send(struct agent *agent);

/* Answers INSPECT, STATISTICS and CLOCK (request.c). A negative return is a malformed message. */
int request_answer(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);

#endif
