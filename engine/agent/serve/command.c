#include "engine/agent/serve/command.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINGER (100 * EVENT_MILLISECOND)
#define DEFAULT_GRACE (2 * EVENT_SECOND)
#define AFTER_KILL                                                                                           \
    (5 * EVENT_SECOND) /* processes that live longer cannot be killed: state D, or of another user */

enum { ABANDONED_CODE = 255 };

/* ---- lifecycle */

/* Frees a command and removes it from its agent, which may be waiting for the last one to end. */
static void command_free(struct command *command) {
    struct agent *agent = command->agent;
    command_close_streams(command);
    event_source_remove(command->child_source);
    event_source_remove(command->timeout);
    event_source_remove(command->killer);
    event_source_remove(command->tick);
    text_clear(&command->input.queue);
    if (command->previous)
        command->previous->next = command->next;
    else
        agent->commands = command->next;
    if (command->next)
        command->next->previous = command->previous;
    agent->command_count--;
    free(command);
    if (agent->state == AGENT_LEAVING)
        event_source_defer(agent->settle);
}

static struct command *find_command(struct agent *agent, uint32_t number) {
    struct command *command = agent->commands;
    while (command && command->number != number)
        command = command->next;
    return command;
}

static void send_signal(struct command *command, int number) {
    if (command->state != COMMAND_DRAINING)
        (void)spawn_signal(command->pid, number);
}

/* Ends a command: SIGTERM to its process group now, SIGKILL after its grace. */
static void command_end(struct command *command) {
    if (command->terminated || command->state == COMMAND_DRAINING)
        return;
    command->terminated = true;
    send_signal(command, SIGTERM);
    event_source_set_timer(command->killer, command->grace_ns, 0);
}

/* Sends EXITED and frees the command. */
static void send_exited(struct command *command) {
    struct protocol_exited *exited = &command->exited;
    const struct command_output *output = &command->outputs[0], *error = &command->outputs[1];
    exited->command = command->number;
    exited->flags |= (command->timed_out ? PROTOCOL_EXIT_TIMED_OUT : 0u) |
                     (command->left_others ? PROTOCOL_EXIT_LEFT_OTHERS : 0u) |
                     (output->cut ? PROTOCOL_EXIT_OUTPUT_CUT : 0u) |
                     (error->cut ? PROTOCOL_EXIT_ERROR_CUT : 0u);
    exited->output_bytes = output->total;
    exited->error_bytes = error->total;
    exited->input_bytes = command->input.written;
    struct protocol_writer writer;
    agent_begin(command->agent, &writer, PROTOCOL_EXITED);
    protocol_put_message(&writer, exited);
    agent_end(command->agent, &writer);
    command_free(command);
}

/* The process group is empty: sends what the pipes still have, for at most LINGER, and then EXITED. */
static void drain_pipes(struct command *command) {
    if (command->state != COMMAND_DRAINING) {
        command->state = COMMAND_DRAINING;
        event_source_set_timer(command->timeout, -1, 0);
        event_source_set_timer(command->killer, LINGER, 0);
    }
    if (command_drain(command))
        send_exited(command);
}

/* Moves a command on whose first process has ended and is reaped. With an empty process group its pipes are
 * drained. Otherwise the remaining processes get LINGER to end by themselves, then command_end(). */
static void advance_ending(struct command *command) {
    if (command->state == COMMAND_DRAINING) {
        drain_pipes(command);
        return;
    }
    if (command->state != COMMAND_LINGERING)
        return;
    if (spawn_signal(command->pid, 0) == -ESRCH) {
        drain_pipes(command);
        return;
    }
    if (!command->left_others) {
        command->left_others = true;
        if (!command->terminated)
            event_source_set_timer(command->killer, LINGER, 0);
    }
}

/* Gives up a first process that SIGKILL does not end: it has another user (sudo, a set-user-id program), or
 * hangs in the kernel. EXITED then has PROTOCOL_EXIT_ABANDONED and a code that no one takes for success; the
 * process is reaped as an orphan. */
static void abandon(struct command *command) {
    event_source_remove(take_pointer(command->child_source));
    command->exited.wall_ns = clock_wall_ns();
    command->exited.monotonic_ns = clock_monotonic_ns();
    command->exited.flags = PROTOCOL_EXIT_ABANDONED;
    command->exited.code = ABANDONED_CODE;
    drain_pipes(command);
}

/* The timer of the next step of ending: SIGTERM, SIGKILL, giving up; or the end of draining. */
static void on_killer(struct event_source *self, void *context) {
    struct command *command = context;
    if (command->state == COMMAND_DRAINING) {
        /* While the window is full, draining waits until it opens, and LINGER starts again then. */
        if (command_drain(command) || !command_is_held_back(command))
            send_exited(command); /* a process outside the group has a pipe open: not waited for */
        return;
    }
    if (!command->terminated) {
        command_end(command);
    } else if (!command->killed) {
        command->killed = true;
        send_signal(command, SIGKILL);
        event_source_set_timer(self, AFTER_KILL, 0);
    } else if (command->state == COMMAND_RUNNING) {
        abandon(command);
        return;
    } else {
        drain_pipes(command);
        return;
    }
    advance_ending(command);
}

static void on_timeout(struct event_source *self, void *context) {
    (void)self;
    struct command *command = context;
    command->timed_out = true;
    command_end(command);
}

/* ---- messages about its start and its end */

/* Sends STARTED. It is batched with later messages, for a short command even with EXITED, unless the engine
 * waits for it to send input. */
static void send_started(struct command *command, const struct spawned *spawned) {
    struct protocol_writer writer;
    agent_begin(command->agent, &writer, PROTOCOL_STARTED);
    protocol_put_message(&writer, &(struct protocol_started){.command = command->number,
                                                             .pid = (uint32_t)spawned->pid,
                                                             .wall_ns = spawned->wall_ns,
                                                             .monotonic_ns = spawned->monotonic_ns,
                                                             .credit = command->input.granted});
    if (command->input.granted > 0)
        agent_end(command->agent, &writer);
    else
        agent_end_idly(command->agent, &writer);
}

static int64_t microseconds(struct timeval time) {
    return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

/* The first process has ended: notes its status and usage. */
static void on_first_process_exit(struct event_source *self, const struct event_child_exit *exit,
                                  void *context) {
    (void)self;
    struct command *command = context;
    command->child_source = NULL;
    struct protocol_exited *exited = &command->exited;
    exited->wall_ns = clock_wall_ns();
    exited->monotonic_ns = clock_monotonic_ns();
    exited->flags =
        (exit->signalled ? PROTOCOL_EXIT_SIGNALLED : 0u) | (exit->core_dumped ? PROTOCOL_EXIT_CORE : 0u);
    exited->code = (uint32_t)exit->code & 0xff;
    exited->user_us = microseconds(exit->usage.ru_utime);
    exited->system_us = microseconds(exit->usage.ru_stime);
    exited->rss_peak_bytes = (uint64_t)exit->usage.ru_maxrss * 1024;
    command->state = COMMAND_LINGERING;
    /* Deferred: the process is a zombie until this returns, and would count as a member of its group. */
    event_source_defer(command->agent->settle);
}

/* ---- messages */

/* Starts the program of RUN with its timers and pipes. On failure no process is left; the caller frees
 * COMMAND. */
static int start_program(struct command *command, const struct protocol_run *run, struct failure *failure) {
    struct event_loop *loop = command->agent->loop;
    command->timeout = event_loop_add_timer(loop, -1, 0, on_timeout, command);
    command->killer = event_loop_add_timer(loop, -1, 0, on_killer, command);
    if (!command->timeout || !command->killer)
        return failure_memory(failure);
    if (run->timeout_ms > 0) /* counted from before the start, which may take long on a busy node */
        event_source_set_timer(command->timeout, (int64_t)run->timeout_ms * EVENT_MILLISECOND, 0);
    struct spawn_folders folders = {.directory = command->agent->directory, .null = command->agent->null};
    struct spawned spawned;
    int r = spawn(run, &folders, &spawned, failure);
    if (r < 0)
        return r;
    command->pid = spawned.pid;
    command->child_source = spawn_watch(loop, command->pid, on_first_process_exit, command);
    r = command->child_source ? 0 : -errno;
    if (r == 0)
        r = command_open_streams(command, &spawned);
    if (r == 0)
        send_started(command, &spawned);
    spawned_clear(&spawned); /* what was not taken over */
    if (r < 0) {
        (void)spawn_signal(command->pid, SIGKILL); /* reaped as an orphan */
        return failure_set(failure, r, "cannot watch '%.64s': %s", run->arguments[0], strerror(-r));
    }
    return 0;
}

/* A command without process, in the list of its agent; NULL: no memory. */
static struct command *command_new(struct agent *agent, uint32_t number) {
    struct command *command = calloc(1, sizeof *command);
    if (!command)
        return NULL;
    command->agent = agent;
    command->number = number;
    text_init(&command->input.queue, PROTOCOL_INPUT_WINDOW);
    command->input.pipe = command->outputs[0].pipe = command->outputs[1].pipe = -1;
    command->next = agent->commands;
    if (command->next)
        command->next->previous = command;
    agent->commands = command;
    agent->command_count++;
    return command;
}

/* Starts COMMAND, or sends FAILED and frees it. */
static void start(struct agent *agent, struct command *command, const struct protocol_run *run) {
    command->grace_ns = run->grace_ms ? run->grace_ms * EVENT_MILLISECOND : DEFAULT_GRACE;
    command->coalesce_ns = run->coalesce_ms * EVENT_MILLISECOND;
    command->outputs[0].limit = run->output_limit;
    command->outputs[1].limit = run->error_limit;
    struct failure own = {0};
    int r = protocol_check_run(run, &own);
    if (r == 0)
        r = start_program(command, run, &own);
    if (r < 0) {
        agent_send_error(agent, PROTOCOL_FAILED, command->number, &own);
        command_free(command);
    }
}

/* RUN: starts a command. -EPROTO: its number is in use, or too many run; a program that cannot be started is
 * answered with FAILED. */
int command_run(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_run run;
    int r = protocol_get_message(frame, &run, failure);
    if (r < 0)
        return r;
    struct command *command = NULL;
    if (find_command(agent, run.command))
        r = failure_set(failure, -EPROTO, "a RUN message with number %u, which is running", run.command);
    else if (agent->command_count >= PROTOCOL_COMMAND_LIMIT)
        r = failure_set(failure, -EPROTO, "more than %d commands at once", PROTOCOL_COMMAND_LIMIT);
    else if (run.timeout_ms > INT64_MAX / EVENT_MILLISECOND)
        r = failure_set(failure, -EPROTO, "a RUN message with a timeout of %llu ms",
                        (unsigned long long)run.timeout_ms);
    else if (!(command = command_new(agent, run.command)))
        r = failure_memory(failure);
    if (r == 0)
        start(agent, command, &run);
    protocol_run_clear(&run);
    return r;
}

static int receive_input(struct command *command, const struct protocol_data *data, struct failure *failure) {
    if (data->length > command->input.granted - command->input.received || command->input.ended)
        return failure_set(failure, -EPROTO, "INPUT for command %u %s", data->number,
                           command->input.ended ? "comes after its end"
                                                : "has more bytes than its credit allows");
    command_feed(command, data->bytes, data->length);
    return 0;
}

/* Handles INPUT, INPUT_END or KILL. One for a command that has ended meanwhile is ignored. */
int command_message(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    union {
        uint32_t number; /* the first member of each */
        struct protocol_data data;
        struct protocol_amount amount;
    } message;
    int r = protocol_get_message(frame, &message, failure);
    struct command *command = r < 0 ? NULL : find_command(agent, message.number);
    if (!command)
        return r; /* the command ended while the message was on its way */
    if (frame->type == PROTOCOL_INPUT)
        return receive_input(command, &message.data, failure);
    if (frame->type == PROTOCOL_INPUT_END)
        command_end_input(command);
    else
        send_signal(command, (int)message.amount.amount);
    return 0;
}

/* ---- all commands */

void command_end_all(struct agent *agent) {
    for (struct command *command = agent->commands; command; command = command->next)
        command_end(command);
}

void command_settle_all(struct agent *agent) {
    for (struct command *command = agent->commands, *next; command; command = next) {
        next = command->next;
        advance_ending(command);
    }
}

void command_continue_all(struct agent *agent) {
    for (struct command *command = agent->commands, *next; command; command = next) {
        next = command->next;
        command_continue(command);
        if (command->state != COMMAND_DRAINING)
            continue;
        event_source_set_timer(command->killer, LINGER, 0);
        drain_pipes(command);
    }
}

void command_clear_all(struct agent *agent) {
    while (agent->commands) {
        send_signal(agent->commands, SIGKILL);
        command_free(agent->commands);
    }
}
