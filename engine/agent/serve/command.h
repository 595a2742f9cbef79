/*
 * A program that runs for the engine.
 *
 *     running --its first process ends--> lingering --its group is empty--> draining --> (gone)
 *
 * lingering: processes of its group still run. They get LINGER to end by themselves, then SIGTERM, the
 * command's grace, and SIGKILL. draining: the output left in the pipes is sent; a process that has left the
 * group and has a pipe open is waited for during LINGER only. Then EXITED is sent.
 *
 * Processes that do not end even after SIGKILL are given up, while running or lingering, and EXITED says so.
 *
 * A command has the number that RUN gave it. Its files: command.c (states), command-stream.c (pipes),
 * spawn.c.
 */
#ifndef ASSAY_SERVE_COMMAND_H
#define ASSAY_SERVE_COMMAND_H

#include "engine/agent/serve/agent.h"
#include "engine/agent/serve/spawn.h"

#include <sys/types.h>

enum command_state { COMMAND_RUNNING, COMMAND_LINGERING, COMMAND_DRAINING };

/* stdout or stderr. */
struct command_output {
    struct command *command;
    uint8_t stream;
    int pipe; /* -1: closed, or never opened */
    struct event_source *source;
    size_t capacity;               /* of the pipe, bytes */
    bool widened;                  /* the pipe was enlarged */
    uint64_t limit, total, passed; /* bytes: most that are sent (0: no limit), read so far, sent so far */
    bool ticking;                  /* read on the tick, not when it is readable */
    bool waiting;                  /* not read, because the link's window is full */
    bool cut;                      /* bytes beyond the limit were dropped */
};

struct command_input {
    int pipe;
    struct event_source *source;
    size_t capacity;
    struct text queue;
    size_t taken;      /* bytes at the queue's beginning that are in the pipe already */
    uint64_t received; /* bytes, all since the start: from the engine; */
    uint64_t granted;  /* that the engine may send; */
    uint64_t consumed; /* written into the pipe or dropped; */
    uint64_t written;  /* written into the pipe */
    bool ended;        /* INPUT_END came */
    bool full;         /* the pipe is full, and bytes are queued */
    bool closed;       /* no more is written: the program closed it, or all is written */
};

struct command {
    struct agent *agent;
    struct command *next, *previous;
    uint32_t number;
    enum command_state state;
    pid_t pid;
    struct event_source *child_source;
    struct event_source *timeout, *killer, *tick; /* timers */
    int64_t grace_ns, coalesce_ns;
    unsigned tick_shift; /* the tick's interval is coalesce_ns >> tick_shift */
    bool terminated, killed, timed_out, left_others;
    struct protocol_exited exited;
    struct command_input input;
    struct command_output outputs[2];
};

/* Handle the messages RUN, and INPUT, INPUT_END and KILL. A negative return is a violation of the protocol; a
 * program that cannot be started is answered with FAILED and returns 0. */
int command_run(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
int command_message(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);

/* Ends all commands: SIGTERM, after each command's grace SIGKILL. */
void command_end_all(struct agent *agent);
/* Moves on all commands whose first process has ended: are their process groups empty? */
void command_settle_all(struct agent *agent);
/* Called when the link's window has room again: continues with output that waited for it. */
void command_continue_all(struct agent *agent);
/* Kills all commands by SIGKILL and frees them without waiting. */
void command_clear_all(struct agent *agent);

/* ---- command-stream.c, for command.c */

/* Takes over and watches the pipes of SPAWNED; streams without a pipe are left out. 0 or a negative errno. */
int command_open_streams(struct command *command, struct spawned *spawned);
void command_close_streams(struct command *command);
/* Reads and sends output, as far as the window allows. True when both outputs are at their end. */
bool command_drain(struct command *command);
/* True where output waits for room in the link's window. */
bool command_is_held_back(const struct command *command);
/* Queues LENGTH bytes for stdin, or drops them where stdin is closed. */
void command_feed(struct command *command, const char *bytes, size_t length);
/* Closes stdin after the bytes that are queued. */
void command_end_input(struct command *command);
/* Continues with output that waited for the window. */
void command_continue(struct command *command);

#endif
