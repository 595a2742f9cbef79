/*
 * A program that runs for the engine.
 *
 *     running --its first process ends--> lingering --its group is empty--> draining --> (gone)
 *
 * lingering: processes of its group are still there. They get LINGER to end by themselves, then SIGTERM, the
 * command's grace, and SIGKILL. draining: what is in the pipes goes out; who has left the group and holds a
 * pipe open is waited for during LINGER only. Then EXITED is sent.
 *
 * Whom even SIGKILL has not ended after a while is given up, from either state, and EXITED says so.
 *
 * Its number is the one that RUN gave. The command's files: command.c (life), command-stream.c (pipes),
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
    int pipe; /* -1: closed, or never there */
    struct event_source *source;
    size_t capacity;               /* of the pipe */
    bool widened;                  /* and whether it has been asked for more */
    uint64_t limit, total, passed; /* bytes; limit 0: none */
    bool ticking;                  /* read by the tick, not when there is something */
    bool waiting;                  /* the window is full */
    bool cut;
};

struct command_input {
    int pipe;
    struct event_source *source;
    size_t capacity;
    struct text queue;
    size_t taken; /* bytes of the queue that the pipe has taken */
    uint64_t received, granted, consumed;
    uint64_t written; /* what the pipe took; `consumed` counts what was dropped too */
    bool ended;       /* INPUT_END came */
    bool full;        /* the pipe took less than there was */
    bool closed;      /* by the program, or by us */
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

/* RUN; and INPUT, INPUT_END and KILL. A negative return is a violation of the protocol. */
int command_run(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);
int command_message(struct agent *agent, const struct protocol_frame *frame, struct failure *failure);

/* SIGTERM to all, then each one's grace, then SIGKILL. */
void command_end_all(struct agent *agent);
/* Looks at the process groups whose first process has ended. */
void command_settle_all(struct agent *agent);
/* The window is open again. */
void command_continue_all(struct agent *agent);
/* SIGKILL to all, and forget them. */
void command_clear_all(struct agent *agent);

/* ---- command-stream.c, for command.c */

/* Takes the pipes over, those that are there. 0 or a negative errno. */
int command_open_streams(struct command *command, struct spawned *spawned);
void command_close_streams(struct command *command);
/* Reads what is there, as far as the window allows. True when both outputs are at their end. */
bool command_drain(struct command *command);
bool command_is_held_back(const struct command *command);
void command_feed(struct command *command, const char *bytes, size_t length);
void command_end_input(struct command *command);
/* Goes on after the window was full. */
void command_continue(struct command *command);

#endif
