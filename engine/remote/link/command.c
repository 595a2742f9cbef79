#include "engine/remote/link/command.h"

#include "engine/foundation/list.h"
#include "engine/foundation/number.h"
#include "engine/remote/link/link-private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)REMOTE_COMMANDS_LIMIT == (int)PROTOCOL_COMMAND_LIMIT, "the agent's limit");

enum { KEEP_CAPACITY = 64 << 10 };

/* ---- memory: a command is freed when the caller has freed it and it has ended */

/* The index of command NUMBER in link->commands, or where it would be inserted. */
static size_t find_index(const struct agent_link *link, uint32_t number) {
    size_t low = 0, high = link->command_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (link->commands[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct remote_command *find_command(const struct agent_link *link, uint32_t number) {
    size_t at = find_index(link, number);
    return at < link->command_count && link->commands[at]->number == number ? link->commands[at] : NULL;
}

static void free_if_released(struct remote_command *command) {
    if (!command->released || !command->ended || command->busy)
        return;
    text_clear(&command->queue);
    free(command);
}

/* Removes the command from its link. */
static void remove_from_link(struct remote_command *command) {
    struct agent_link *link = command->link;
    size_t at = find_index(link, command->number);
    memmove(link->commands + at, link->commands + at + 1,
            (link->command_count - at - 1) * sizeof *link->commands);
    link->command_count--;
}

/* Ends a command with EXIT or FAILURE, one of them NULL, and calls back. */
static void end(struct remote_command *command, const struct remote_exit *exit,
                const struct failure *failure) {
    remove_from_link(command);
    command->ended = true;
    text_clear(&command->queue);
    command->taken = 0;
    command->busy++;
    if (!command->released && command->callbacks.on_exit)
        command->callbacks.on_exit(command, exit, failure, command->context);
    command->busy--;
    free_if_released(command);
}

void command_fail_all(struct agent_link *link, const struct failure *failure) {
    while (link->command_count)
        end(link->commands[0], NULL, failure);
}

void command_detach_all(struct agent_link *link) {
    while (link->command_count) {
        struct remote_command *command = link->commands[0];
        remove_from_link(command);
        command->ended = true;
        command->link = NULL;
        free_if_released(command);
    }
}

/* ---- starting */

static uint32_t count_strings(const char *const *strings) {
    uint32_t count = 0;
    while (strings && strings[count] && count < UINT32_MAX)
        count++;
    return count;
}

/* Checks the specification and sends it as RUN. FAILURE_EXPERIMENT beyond a limit. */
static int send_run(struct agent_link *link, uint32_t number,
                    const struct remote_command_specification *specification, struct failure *failure) {
    static const char *const nothing[] = {NULL};
    struct protocol_run run = {
        .command = number,
        .input = specification->input == REMOTE_INPUT_STREAM ? PROTOCOL_MODE_STREAM : PROTOCOL_MODE_NULL,
        .output = (uint8_t)specification->output,
        .error = (uint8_t)specification->error,
        .grace_ms = specification->grace_ms,
        .coalesce_ms = specification->coalesce_ms,
        .timeout_ms = specification->timeout_ms,
        .output_limit = specification->output_limit,
        .error_limit = specification->error_limit,
        .folder = specification->folder ? specification->folder : ".",
        .arguments = (const char **)specification->arguments,
        .argument_count = count_strings(specification->arguments),
        .environment = (const char **)(specification->environment ? specification->environment : nothing),
        .environment_count = count_strings(specification->environment),
        .pus = (uint32_t *)specification->pus,
        .pu_count = (uint32_t)(specification->pu_count < UINT32_MAX ? specification->pu_count : UINT32_MAX),
    };
    struct failure wrong;
    int r = protocol_check_run(&run, &wrong);
    if (r == 0 && run.timeout_ms > (uint64_t)INT64_MAX / 1000000)
        r = failure_set(&wrong, -EINVAL, "the time limit of '%.64s' is too long", run.arguments[0]);
    if (r < 0) {
        node_failure(failure, link->node, r, "%s", wrong.text);
        if (failure)
            failure->kind = FAILURE_EXPERIMENT;
        return r;
    }
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_RUN);
    protocol_put_message(&writer, &run);
    return link_send(link, &writer, failure);
}

_Static_assert(REMOTE_OUTPUT_STREAM == (int)PROTOCOL_MODE_STREAM &&
                   REMOTE_OUTPUT_NULL == (int)PROTOCOL_MODE_NULL &&
                   REMOTE_OUTPUT_MERGE == (int)PROTOCOL_MODE_MERGE && sizeof(unsigned) == sizeof(uint32_t),
               "a specification is handed on without translation");

/* How long the engine waits for a message about the command, ns; 0: without limit. */
static int64_t progress_limit(const struct remote_command_specification *specification) {
    uint64_t most_ms = specification->idle_limit_ms ? specification->idle_limit_ms
                                                    : specification->timeout_ms + specification->grace_ms;
    int64_t slack_ns = specification->idle_limit_ms ? 0 : LIMIT_ANSWER;
    if (most_ms == 0 || (!specification->idle_limit_ms && !specification->timeout_ms) ||
        most_ms > (uint64_t)INT64_MAX / 4000000)
        return 0;
    return (int64_t)most_ms * EVENT_MILLISECOND + slack_ns;
}

/* Queues RUN. RET: the command, which the callbacks tell of; -EBUSY: too many run. */
int remote_command_start(struct agent_link *link, const struct remote_command_specification *specification,
                         const struct remote_command_callbacks *callbacks, void *context,
                         struct remote_command **ret, struct failure *failure) {
    int r = link_check(link, failure);
    if (r < 0)
        return r;
    r = list_reserve(&link->commands, &link->command_capacity, link->command_count + 1,
                     sizeof *link->commands, LINK_COMMANDS_LIMIT);
    if (r == -EFBIG)
        return node_failure(failure, link->node, -EBUSY, "%d commands are running, the most allowed at once",
                            LINK_COMMANDS_LIMIT);
    struct remote_command *command = r < 0 ? NULL : calloc(1, sizeof *command);
    if (!command)
        return failure_memory(failure);
    command->link = link;
    command->number = link_next_number(link);
    command->callbacks = *callbacks;
    command->context = context;
    command->input_stream = specification->input == REMOTE_INPUT_STREAM;
    command->low_mark = specification->low_mark ? specification->low_mark : REMOTE_LOW_MARK;
    text_init(&command->queue, REMOTE_INPUT_LIMIT + KEEP_CAPACITY);
    r = send_run(link, command->number, specification, failure);
    if (r < 0) {
        free(command);
        return r;
    }
    link->commands[link->command_count++] = command; /* numbers only grow */
    command->idle_limit_ms = specification->idle_limit_ms;
    limit_begin(link, &command->limit, progress_limit(specification));
    *ret = command;
    return 0;
}

void remote_command_free(struct remote_command *command) {
    if (!command)
        return;
    if (!command->ended)
        (void)remote_command_kill(command, SIGKILL, NULL); /* without memory it ends with the link */
    command->released = true;
    text_clear(&command->queue);
    command->taken = 0;
    free_if_released(command);
}

/* Called when bytes of the command have moved: starts its idle limit anew. The limit of a command with a time
 * limit is postponed, because its output may come long after its end on a slow link. */
static void note_progress(struct agent_link *link, struct remote_command *command) {
    if (command->idle_limit_ms && !command->stalled_ms)
        limit_moved(link, &command->limit);
    else if (!command->idle_limit_ms)
        limit_postpone(link, &command->limit, LIMIT_ANSWER);
}

/* ---- stdin */

size_t remote_command_queued(const struct remote_command *command) {
    return command->queue.length - command->taken;
}

void remote_command_leave(struct remote_command *command) {
    if (!command)
        return;
    command->released = true;
    free_if_released(command);
}

/* Queues input. RET_QUEUED, which may be NULL: bytes that wait now. -EPIPE: the command has ended. */
int remote_command_write(struct remote_command *command, const void *bytes, size_t length, size_t *ret_queued,
                         struct failure *failure) {
    if (command->ended || command->end_asked || !command->link)
        return failure_set(failure, -EPIPE,
                           "the command takes no more input: it has ended, or its input was closed");
    if (!command->input_stream)
        return failure_set(failure, -EINVAL, "the command was started without an input");
    if (length > REMOTE_INPUT_LIMIT - remote_command_queued(command))
        return node_failure(failure, command->link->node, -ENOBUFS,
                            "more than %zu bytes of input wait for a command", REMOTE_INPUT_LIMIT);
    if (command->taken >= KEEP_CAPACITY && command->taken >= command->queue.length / 2) {
        text_consume(&command->queue, command->taken);
        command->taken = 0;
    }
    if (command->queue.length + length > command->queue.limit) {
        text_consume(&command->queue, command->taken);
        command->taken = 0;
    }
    if (text_append(&command->queue, bytes, length) < 0)
        return failure_memory(failure);
    size_t queued = remote_command_queued(command);
    command->above |= queued > command->low_mark;
    if (ret_queued)
        *ret_queued = queued;
    event_source_defer(command->link->pump);
    return 0;
}

int remote_command_close_input(struct remote_command *command, struct failure *failure) {
    if (!command->input_stream)
        return failure_set(failure, -EINVAL, "the command was started without an input");
    if (command->ended || command->end_asked)
        return 0;
    command->end_asked = true;
    event_source_defer(command->link->pump);
    return 0;
}

/* Sends at most one frame of input. True where one was sent, so that there may be more. */
static bool send_input(struct agent_link *link, struct remote_command *command) {
    size_t queued = remote_command_queued(command);
    uint64_t credit = command->credit - command->sent;
    size_t size = queued < credit ? queued : (size_t)credit;
    if (size > PROTOCOL_CHUNK)
        size = PROTOCOL_CHUNK;
    if (size == 0)
        return false;
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_INPUT);
    protocol_put_u32(&writer, command->number);
    protocol_put_bytes(&writer, command->queue.bytes + command->taken, size);
    if (link_send(link, &writer, NULL) < 0)
        return false;
    command->taken += size;
    command->sent += size;
    note_progress(link, command);
    if (remote_command_queued(command) == 0) {
        text_reset(&command->queue);
        command->taken = 0;
        if (command->queue.capacity > KEEP_CAPACITY)
            text_clear(&command->queue);
    }
    return true;
}

static void send_end(struct agent_link *link, struct remote_command *command) {
    if (!command->end_asked || command->end_sent || remote_command_queued(command) > 0)
        return;
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_INPUT_END);
    protocol_put_u32(&writer, command->number);
    command->end_sent = link_send(link, &writer, NULL) == 0;
}

/* Calls on_drain where the queue has fallen to the low mark. */
static void tell_drain(struct remote_command *command) {
    if (!command->above || remote_command_queued(command) > command->low_mark)
        return;
    command->above = false;
    if (command->released || !command->callbacks.on_drain)
        return;
    command->busy++;
    command->callbacks.on_drain(command, command->context);
    command->busy--;
    free_if_released(command); /* the callback may have ended the link, and so the command */
}

/* Sends the input of all commands, one frame each in turn, so that no command uses up the window alone.
 * Callbacks may start commands, which are appended to the array; none is removed from it meanwhile, unless
 * the link ends. */
void command_pump(struct agent_link *link) {
    bool more = true;
    while (more && link_has_window(link)) {
        more = false;
        for (size_t i = 0; i < link->command_count && link_has_window(link); i++)
            more |= send_input(link, link->commands[i]);
    }
    for (size_t i = 0; i < link->command_count; i++) {
        send_end(link, link->commands[i]);
        tell_drain(link->commands[i]);
    }
}

int remote_command_kill(struct remote_command *command, int signal_number, struct failure *failure) {
    if (command->ended)
        return 0;
    if (signal_number < 1 || signal_number > 64)
        return failure_set(failure, -EINVAL, "%d is not the number of a signal", signal_number);
    struct protocol_writer writer;
    link_begin(command->link, &writer, PROTOCOL_KILL);
    protocol_put_message(&writer, &(struct protocol_amount){command->number, (uint64_t)signal_number});
    return link_send(command->link, &writer, failure);
}

/* ---- messages of the agent */

/* STARTED: the command runs. -EPROTO: it had started already. */
static int handle_started(struct remote_command *command, const struct protocol_frame *frame,
                          struct failure *failure) {
    struct protocol_started started;
    int r = protocol_get_message(frame, &started, failure);
    if (r < 0)
        return r;
    if (command->started)
        return failure_set(failure, -EPROTO, "command %u started twice", command->number);
    command->started = true;
    command->credit = started.credit;
    note_progress(command->link, command);
    command->start = (struct remote_start){
        .pid = (pid_t)started.pid, .wall_ns = started.wall_ns, .monotonic_ns = started.monotonic_ns};
    command->busy++;
    if (!command->released && command->callbacks.on_started)
        command->callbacks.on_started(command, &command->start, command->context);
    command->busy--;
    free_if_released(command); /* the callback may have freed it and ended the link */
    return 0;
}

/* OUTPUT: passes bytes of stdout or stderr to the callback. */
static int handle_output(struct remote_command *command, const struct protocol_frame *frame,
                         struct failure *failure) {
    struct protocol_data data;
    int r = protocol_get_message(frame, &data, failure);
    if (r < 0)
        return r;
    note_progress(command->link, command);
    command->busy++;
    if (!command->released && command->callbacks.on_output)
        command->callbacks.on_output(command, data.stream == 1 ? REMOTE_STDOUT : REMOTE_STDERR, data.bytes,
                                     data.length, command->context);
    command->busy--;
    free_if_released(command);
    return 0;
}

static int handle_credit(struct remote_command *command, const struct protocol_frame *frame,
                         struct failure *failure) {
    struct protocol_amount amount;
    int r = protocol_get_message(frame, &amount, failure);
    if (r < 0)
        return r;
    if (amount.amount < command->credit)
        return failure_set(failure, -EPROTO,
                           "the agent lowered the number of bytes that command %u may send to its stdin, "
                           "which may only rise",
                           command->number);
    command->credit = amount.amount;
    note_progress(command->link, command);
    return 0;
}

/* FAILED: the command could not be started; it ends with the agent's sentence. -EPROTO: it had started. */
static int handle_failed(struct remote_command *command, const struct protocol_frame *frame,
                         struct failure *failure) {
    struct protocol_error error;
    int r = protocol_get_message(frame, &error, failure);
    if (r < 0)
        return r;
    if (command->started)
        return failure_set(failure, -EPROTO, "command %u failed to start after it had started",
                           command->number);
    struct failure why;
    node_failure(&why, command->link->node, error.code, "%s", error.sentence);
    why.kind = FAILURE_EXPERIMENT;
    end(command, NULL, &why);
    return 0;
}

/* EXITED: the command ends with what the agent says of its exit. -EPROTO: it had not started. */
static int handle_exited(struct remote_command *command, const struct protocol_frame *frame,
                         struct failure *failure) {
    struct protocol_exited got;
    int r = protocol_get_message(frame, &got, failure);
    if (r < 0)
        return r;
    if (!command->started)
        return failure_set(failure, -EPROTO, "command %u ended before it started", command->number);
    struct remote_exit exit = {
        .signalled = got.flags & PROTOCOL_EXIT_SIGNALLED,
        .core_dumped = got.flags & PROTOCOL_EXIT_CORE,
        .code = (int)got.code,
        .timed_out = got.flags & PROTOCOL_EXIT_TIMED_OUT || command->stalled_ms,
        .stalled_ms = command->stalled_ms,
        .abandoned = got.flags & PROTOCOL_EXIT_ABANDONED,
        .left_others = got.flags & PROTOCOL_EXIT_LEFT_OTHERS,
        .output_cut = got.flags & PROTOCOL_EXIT_OUTPUT_CUT,
        .error_cut = got.flags & PROTOCOL_EXIT_ERROR_CUT,
        .output_bytes = got.output_bytes,
        .error_bytes = got.error_bytes,
        .input_bytes = got.input_bytes,
        .wall_ns = got.wall_ns,
        .monotonic_ns = got.monotonic_ns,
        .user_us = got.user_us,
        .system_us = got.system_us,
        .rss_peak_bytes = got.rss_peak_bytes,
    };
    end(command, &exit, NULL);
    return 0;
}

int command_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    uint32_t number = protocol_get_u32(&reader);
    struct remote_command *command = find_command(link, number);
    if (reader.wrong || !command)
        return failure_set(failure, -EPROTO, "a %s message for command %u, which is not running",
                           protocol_type_name(frame->type), number);
    switch (frame->type) {
    case PROTOCOL_STARTED:
        return handle_started(command, frame, failure);
    case PROTOCOL_FAILED:
        return handle_failed(command, frame, failure);
    case PROTOCOL_OUTPUT:
        return handle_output(command, frame, failure);
    case PROTOCOL_CREDIT:
        return handle_credit(command, frame, failure);
    default:
        return handle_exited(command, frame, failure);
    }
}

/* ---- queries */

pid_t remote_command_pid(const struct remote_command *command) {
    return command->start.pid;
}

bool remote_command_ended(const struct remote_command *command) {
    return command->ended;
}

const char *remote_exit_describe(const struct remote_exit *exit, char *buffer, size_t size) {
    const char *why = exit->timed_out ? "ran past its time limit and " : "";
    if (exit->stalled_ms) {
        char most[NUMBER_TEXT_SIZE];
        snprintf(buffer, size, "made no progress for %s and was killed",
                 number_describe_duration((double)exit->stalled_ms * 1e-3, most));
        return buffer;
    }
    if (exit->abandoned)
        snprintf(buffer, size, "%scould not be killed: it runs as another user, or hangs in the kernel", why);
    else if (exit->signalled)
        snprintf(buffer, size, "%swas killed by signal %d (%s)", why, exit->code, strsignal(exit->code));
    else
        snprintf(buffer, size, "%sexited with status %d", why, exit->code);
    return buffer;
}
