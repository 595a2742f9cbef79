/*
 * The pipes of a command. The agent must wake rarely, because it runs on the machine that is~~
 * measured. Without coalescing a pipe is read when it is ready. With coalescing the first byte of output
 * starts a timer, the tick, and each tick reads all output since the last. Ticks of one length coincide for
 * all commands. A tick that finds no output stops the timer until the next first byte. A pipe found half full
 * doubles the rate of its command's ticks, one found nearly empty halves it, so that no program waits for a
 * full pipe. stdin works the same way: each tick fills the pipe again.
 */
#include "engine/agent/serve/command.h"
#include "engine/agent/serve/spawn.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    READ_SIZE = 64 << 10,
    DEFAULT_CAPACITY = 64 << 10, /* bytes of a pipe as the kernel makes it */
    KEEP_CAPACITY = 64 << 10,    /* an empty queue with more memory than this is freed */
    TICK_SHIFT_MAX = 6,          /* ticks become at most 2^6 times as frequent */
};

#define SHORTEST_TICK EVENT_MILLISECOND

/* Enlarges PIPE and returns its capacity in bytes. An ordinary user may have 64 MiB in pipes
 * (pipe-user-pages-soft), after which new pipes are tiny. So the size falls with the memory used so far: 256
 * commands with two pipes each stay below the limit. */
static size_t widen_pipe(struct agent *agent, int pipe) {
    size_t size = agent->pipe_bytes < (size_t)16 << 20   ? (size_t)1 << 20
                  : agent->pipe_bytes < (size_t)32 << 20 ? (size_t)256 << 10
                                                         : (size_t)64 << 10;
    size_t granted = spawn_widen_pipe(pipe, size);
    agent->pipe_bytes += granted;
    return granted;
}

static void widen_output(struct command_output *output) {
    output->capacity = widen_pipe(output->command->agent, output->pipe);
    output->widened = true;
}

/* ---- the tick */

static void on_tick(struct event_source *self, void *context);

/* Starts the timer of the next tick, unless it runs. Ticks fall on multiples of the interval, so that those
 * of all commands coincide. */
static void arm_tick(struct command *command) {
    int64_t interval = command->coalesce_ns >> command->tick_shift;
    if (interval < SHORTEST_TICK)
        interval = SHORTEST_TICK;
    if (!event_source_timer_is_armed(command->tick))
        event_source_set_timer(command->tick, interval - clock_monotonic_ns() % interval, 0);
}

/* How full a pipe was, in sixteenths: BYTES moved through it of its CAPACITY. */
static size_t fullness(size_t bytes, size_t capacity) {
    return capacity ? bytes / (capacity / 16 + 1) : 0;
}

/* Doubles or halves the rate of ticks. FULLEST: the fullest pipe of the last tick, in sixteenths. */
static void adapt_tick_rate(struct command *command, size_t fullest) {
    if (fullest >= 8 && command->tick_shift < TICK_SHIFT_MAX)
        command->tick_shift++;
    else if (fullest < 1 && command->tick_shift > 0)
        command->tick_shift--;
}

/* ---- stdout and stderr */

static void close_output(struct command_output *output) {
    if (output->pipe < 0)
        return;
    event_source_remove(take_pointer(output->source));
    if (output->widened)
        output->command->agent->pipe_bytes -= output->capacity;
    cleanup_close_descriptor(&output->pipe);
    output->waiting = output->ticking = false;
}

/* Reads OUTPUT's pipe once and sends the bytes to the engine, up to the command's limit. Returns the bytes
 * read, 0 at the end of the stream, or a negative errno. */
static ssize_t forward_output(struct command_output *output) {
    struct agent *agent = output->command->agent;
    uint64_t left = output->limit ? output->limit - output->passed : UINT64_MAX;
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_OUTPUT);
    protocol_put_u32(&writer, output->command->number);
    protocol_put_u8(&writer, output->stream);
    char *space = protocol_put_space(&writer, READ_SIZE);
    if (!space) {
        protocol_cancel(&writer);
        return -ENOMEM;
    }
    ssize_t got = read(output->pipe, space, READ_SIZE);
    if (got <= 0) {
        int r = -errno;
        protocol_cancel(&writer);
        return got < 0 ? r : 0;
    }
    if (got == READ_SIZE && !output->widened) /* the pipe was full */
        widen_output(output);
    size_t passed = (uint64_t)got < left ? (size_t)got : (size_t)left;
    output->total += (uint64_t)got;
    output->passed += passed;
    output->cut |= passed < (size_t)got;
    if (passed == 0 || agent->state >= AGENT_LEAVING) {
        protocol_cancel(&writer);
        return got;
    }
    protocol_trim(&writer, READ_SIZE - passed);
    agent_end(agent, &writer);
    return got;
}

/* Reads and sends until the pipe is empty, the window is full, or one capacity of the pipe was read: a
 * program that writes faster than this loop reads must not block it. Returns the number of bytes. */
static size_t drain_output(struct command_output *output) {
    size_t bytes = 0;
    while (output->pipe >= 0 && bytes <= output->capacity) {
        if (!agent_may_send(output->command->agent)) {
            output->waiting = true;
            break;
        }
        ssize_t got = forward_output(output);
        if (got == -EINTR)
            continue;
        if (got == -EAGAIN)
            break;
        if (got <= 0) {
            close_output(output);
            break;
        }
        bytes += (size_t)got;
    }
    return bytes;
}

/* Chooses what wakes the agent for this pipe next: nothing while the window is full, else the tick or the
 * pipe itself. */
static void choose_wake(struct command_output *output) {
    if (output->pipe < 0)
        return;
    bool watch = !output->waiting && !output->ticking;
    if (event_source_set_events(output->source, watch ? EVENT_READ : 0) < 0)
        close_output(output);
    if (output->pipe >= 0 && output->ticking && !output->waiting)
        arm_tick(output->command);
}

/* The pipe is readable. With coalescing the timer starts, at whose ticks it is read; otherwise it is read
 * once. */
static void on_output(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    struct command_output *output = context;
    struct command *command = output->command;
    if (command->coalesce_ns > 0)
        output->ticking = true;
    else if (!agent_may_send(command->agent))
        output->waiting = true;
    else if (forward_output(output) == 0)
        close_output(output);
    choose_wake(output);
    if (output->pipe < 0 && command->state == COMMAND_DRAINING)
        event_source_defer(command->agent->settle);
}

bool command_drain(struct command *command) {
    for (int i = 0; i < 2; i++) {
        drain_output(&command->outputs[i]);
        choose_wake(&command->outputs[i]);
    }
    return command->outputs[0].pipe < 0 && command->outputs[1].pipe < 0;
}

bool command_is_held_back(const struct command *command) {
    return command->outputs[0].waiting || command->outputs[1].waiting;
}

/* ---- stdin */

/* Closes the pipe of stdin; bytes that are queued or still come are dropped, and count as consumed. */
static void close_input(struct command *command) {
    struct command_input *input = &command->input;
    input->consumed = input->received;
    text_clear(&input->queue);
    input->taken = 0;
    if (input->pipe < 0)
        return;
    event_source_remove(take_pointer(input->source));
    command->agent->pipe_bytes -= input->capacity;
    cleanup_close_descriptor(&input->pipe);
    input->closed = true;
}

/* Allows the engine to send more input: as much as fits into the queue. CREDIT is sent only when that has
 * grown by half a window. */
static void send_credit(struct command *command) {
    struct command_input *input = &command->input;
    uint64_t allowed = input->consumed + PROTOCOL_INPUT_WINDOW;
    if (input->ended || allowed - input->granted < PROTOCOL_INPUT_WINDOW / 2)
        return;
    input->granted = allowed;
    if (command->agent->state >= AGENT_LEAVING)
        return;
    struct protocol_writer writer;
    agent_begin(command->agent, &writer, PROTOCOL_CREDIT);
    protocol_put_message(&writer, &(struct protocol_amount){command->number, allowed});
    agent_end(command->agent, &writer);
}

/* Writes queued input into the pipe and returns the number of bytes. Sets `full` where some are left, and
 * closes the pipe after the last byte. */
static size_t fill_pipe(struct command *command) {
    struct command_input *input = &command->input;
    size_t bytes = 0;
    input->full = false;
    while (input->pipe >= 0 && input->taken < input->queue.length) {
        ssize_t written =
            write(input->pipe, input->queue.bytes + input->taken, input->queue.length - input->taken);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN) {
            input->full = true;
            break;
        }
        if (written < 0) { /* EPIPE: the program reads no more */
            close_input(command);
            break;
        }
        input->taken += (size_t)written;
        input->consumed += (uint64_t)written;
        input->written += (uint64_t)written;
        bytes += (size_t)written;
    }
    if (input->taken >= input->queue.length - input->taken) {
        text_consume(&input->queue, input->taken);
        input->taken = 0;
        if (input->queue.length == 0 && input->queue.capacity > KEEP_CAPACITY)
            text_clear(&input->queue);
    }
    if (input->ended && input->queue.length == 0)
        close_input(command);
    send_credit(command);
    if (input->pipe >= 0 && command->coalesce_ns == 0 &&
        event_source_set_events(input->source, input->full ? EVENT_WRITE : 0) < 0)
        close_input(command);
    if (input->full && command->coalesce_ns > 0)
        arm_tick(command);
    return bytes;
}

static void on_input(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    fill_pipe(context);
}

/* Queues input of the command and writes it to the pipe. Input for a closed pipe is dropped, and credited. */
void command_feed(struct command *command, const char *bytes, size_t length) {
    struct command_input *input = &command->input;
    input->received += length;
    if (input->closed) {
        input->consumed = input->received;
        send_credit(command);
        return;
    }
    /* The queue's limit is the window, which the caller has checked, once the written bytes are removed. */
    if (input->taken) {
        text_consume(&input->queue, input->taken);
        input->taken = 0;
    }
    if (text_append(&input->queue, bytes, length) < 0) {
        agent_leave(command->agent, "the agent is out of memory");
        return;
    }
    if (!input->full)
        fill_pipe(command);
}

void command_end_input(struct command *command) {
    command->input.ended = true;
    if (!command->input.full)
        fill_pipe(command);
}

/* ---- both */

/* The timer of coalesced pipes: moves what has gathered since the last tick. */
static void on_tick(struct event_source *self, void *context) {
    (void)self;
    struct command *command = context;
    size_t fullest = 0;
    if (command->input.full)
        fullest = fullness(fill_pipe(command), command->input.capacity);
    for (int i = 0; i < 2; i++) {
        struct command_output *output = &command->outputs[i];
        if (!output->ticking || output->waiting || output->pipe < 0)
            continue;
        size_t bytes = drain_output(output), full = fullness(bytes, output->capacity);
        fullest = full > fullest ? full : fullest;
        output->ticking = bytes > 0;
        choose_wake(output);
    }
    adapt_tick_rate(command, fullest);
    if (command->state == COMMAND_DRAINING)
        event_source_defer(command->agent->settle);
}

void command_continue(struct command *command) {
    for (int i = 0; i < 2; i++) {
        struct command_output *output = &command->outputs[i];
        if (!output->waiting)
            continue;
        output->waiting = false;
        drain_output(output);
        choose_wake(output);
    }
}

/* Watches a pipe of the command's output, if it has one, and owns it from now on. 0 or a negative errno. */
static int open_output(struct command *command, int which, int *pipe) {
    struct command_output *output = &command->outputs[which];
    output->command = command;
    output->stream = (uint8_t)(which + 1);
    if (*pipe < 0)
        return 0;
    output->pipe = take_descriptor(*pipe);
    output->capacity = DEFAULT_CAPACITY;
    if (command->coalesce_ns > 0) /* output gathers in the pipe between ticks */
        widen_output(output);
    struct event_loop *loop = command->agent->loop;
    output->source = event_loop_add_descriptor(loop, output->pipe, EVENT_READ, on_output, output);
    return output->source ? 0 : -errno;
}

static int open_input(struct command *command, int *pipe) {
    struct command_input *input = &command->input;
    input->closed = *pipe < 0;
    if (input->closed)
        return 0;
    input->pipe = take_descriptor(*pipe);
    input->capacity = widen_pipe(command->agent, input->pipe);
    input->granted = PROTOCOL_INPUT_WINDOW;
    input->source = event_loop_add_descriptor(command->agent->loop, input->pipe, 0, on_input, command);
    return input->source ? 0 : -errno;
}

int command_open_streams(struct command *command, struct spawned *spawned) {
    command->tick = event_loop_add_timer(command->agent->loop, -1, 0, on_tick, command);
    int r = command->tick ? 0 : -errno;
    if (r == 0)
        r = open_input(command, &spawned->input);
    if (r == 0)
        r = open_output(command, 0, &spawned->output);
    return r < 0 ? r : open_output(command, 1, &spawned->error);
}

void command_close_streams(struct command *command) {
    close_input(command);
    close_output(&command->outputs[0]);
    close_output(&command->outputs[1]);
}
