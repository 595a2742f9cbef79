/*
 * The agent: serves one engine over one pair of descriptors until the stream ends.
 *
 *     greeting --HELLO--> serving --end of the stream, REFUSE, SIGTERM--> leaving --no command is left-->
 * gone
 *
 * agent.c has the link and hands messages on; request.c answers those that need no state; transfer.c moves
 * files; command.c runs programs.
 */
#ifndef ASSAY_AGENT_AGENT_H
#define ASSAY_AGENT_AGENT_H

#include "engine/agent/mailbox.h"
#include "engine/agent/protocol.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agent_state { AGENT_GREETING, AGENT_SERVING, AGENT_LEAVING, AGENT_GONE };

struct agent_options {
    int directory;     /* descriptor of the run directory; not to be closed by the agent */
    const char *root;  /* what stands for "/" when files of the machine are read; NULL: "/" */
    int input, output; /* the stream; not to be closed by the agent */
};

struct command;
struct reading;
struct writing;

struct agent {
    struct event_loop *loop;
    enum agent_state state;
    int directory, root, null; /* descriptors: the run directory, the root, /dev/null */
    bool captured;             /* the root is not "/": ask files only, never the kernel */
    int input, output;
    struct event_source *input_source, *output_source;
    struct inbox inbox;
    struct outbox outbox;
    struct event_source *flush;  /* deferred: give the stream what is in the outbox */
    struct event_source *work;   /* deferred: go on with files, and with output that the window held back */
    struct event_source *settle; /* deferred: look at the commands whose first process has ended */
    bool held_back;              /* somebody wants to send data and the window is full */
    struct command *commands;
    unsigned command_count;
    size_t pipe_bytes; /* capacity given to pipes so far */
    struct reading *readings;
    struct writing *writings;
    uint64_t wakeups; /* turns of the loop */
};

/* The agent lives in LOOP, which adopts orphans. The struct must not move. 0, or negative with nothing to
 * clear. */
int agent_init(struct agent *agent, struct event_loop *loop, const struct agent_options *options,
               struct failure *failure);
void agent_clear(struct agent *agent);

/* Ends all commands, then stops the loop. SENTENCE, if any, is told to the engine as REFUSE. */
void agent_leave(struct agent *agent, const char *sentence);

/* ---- for the agent's own files */

/* A frame to the engine: agent_begin, protocol_put_..., agent_end. Memory that runs out or an engine that
 * does not read ends the link: there is nobody left to tell. */
void agent_begin(struct agent *agent, struct protocol_writer *writer, enum protocol_type type);
void agent_end(struct agent *agent, struct protocol_writer *writer);
void agent_send_done(struct agent *agent, uint32_t request);
/* ERROR or FAILED, from what FAILURE says. */
void agent_send_error(struct agent *agent, enum protocol_type type, uint32_t number,
                      const struct failure *failure);
/* May data be added to the outbox? If not, agent_work will come round when it may. */
bool agent_may_send(struct agent *agent);

/* request.c; each answers by itself. A negative return is a malformed message. */
int request_inspect(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
int request_make_folder(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
int request_remove_tree(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
int request_statistics(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);

/* transfer.c */
int reading_begin(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
int writing_begin(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
int writing_data(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
int writing_end(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
/* Goes on with the files being read, as far as the window allows. */
void reading_continue(struct agent *agent);
/* Forgets the files being read, and removes what is half written. */
void transfer_clear(struct agent *agent);

#endif
