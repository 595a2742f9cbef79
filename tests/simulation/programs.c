/* In place of engine/agent/serve/spawn.c: programs that print and read what is known beforehand, at times
 * drawn from the seed. */
#include "tests/simulation/world.h"

#include "engine/agent/serve/command.h"
#include "engine/agent/serve/spawn.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_PID = 1000000 };

static size_t number_of(const struct program *program) {
    return (size_t)(program - world.programs);
}

char program_byte(size_t number, size_t index) {
    return (char)((number + 1) * 37 + index * 7 + (index >> 8) * 3 + (index >> 16));
}

/* ---- on the node */

static void close_pipes(struct program *program) {
    cleanup_close_descriptor(&program->in);
    if (!program->others) {
        cleanup_close_descriptor(&program->out);
        program->out = -1;
    }
    program->in = -1;
}

static void program_end(struct program *program, bool killed) {
    trace("program %zu of agent %zu %s", number_of(program), program->node->number,
          killed ? "is killed" : "ends");
    program->alive = false;
    program->killed = killed;
    program->others = program->leaves_others && !killed;
    close_pipes(program);
    event_source_set_timer(program->step, -1, 0);
    if (program->end)
        event_source_defer(program->end);
}

static void read_input(struct program *program) {
    char bytes[4096];
    ssize_t got;
    while ((got = read(program->in, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < got; i++, program->taken++)
            must(bytes[i] == program_byte(number_of(program), program->taken),
                 "byte %zu of the input of program %zu is wrong", program->taken, number_of(program));
    if (got == 0) {
        must(program->taken == program->input, "program %zu got %zu of %zu bytes", number_of(program),
             program->taken, program->input);
        cleanup_close_descriptor(&program->in);
        program->in = -1;
    }
}

static void on_step(struct event_source *self, void *context) {
    struct program *program = context;
    char bytes[65536];
    if (program->in >= 0)
        read_input(program);
    size_t left = program->size - program->printed, length = left < program->piece ? left : program->piece;
    for (size_t i = 0; i < length; i++)
        bytes[i] = program_byte(number_of(program), program->printed + i);
    ssize_t written = length ? write(program->out, bytes, length) : 0;
    program->printed += written > 0 ? (size_t)written : 0;
    if (written < 0 && errno == EPIPE)
        program_end(program, true);
    else if (program->printed == program->size && program->in < 0)
        program_end(program, false);
    else
        event_source_set_timer(self, program->pause_ns, 0);
}

int spawn(const struct protocol_run *run, const struct spawn_folders *folders, struct spawned *ret,
          struct failure *failure) {
    struct program *program = &world.programs[strtoul(run->arguments[1], NULL, 10)];
    trace("program %zu begins", number_of(program));
    must(++program->spawned == 1, "program %zu begins a second time", number_of(program));
    if (program->failed)
        return failure_set(failure, -ENOENT, "there is no such program");
    int out[2], in[2] = {-1, -1};
    must(pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0 &&
             (!program->reads || pipe2(in, O_CLOEXEC | O_NONBLOCK) == 0),
         "no pipes are left");
    spawned_init(ret);
    *ret = (struct spawned){.pid = FIRST_PID + (pid_t)number_of(program),
                            .wall_ns = now(),
                            .monotonic_ns = now(),
                            .input = in[1],
                            .output = out[0],
                            .error = -1};
    program->out = out[1];
    program->in = in[0];
    program->alive = true;
    program->step = event_loop_add_timer(world.actors[NETWORK].loop, program->pause_ns, 0, on_step, program);
    return 0;
}

static void on_end(struct event_source *self, void *context) {
    struct program *program = context;
    event_source_remove(self);
    program->end = NULL;
    program->callback(NULL,
                      &(struct event_child_exit){.pid = FIRST_PID + (pid_t)number_of(program),
                                                 .signalled = program->killed,
                                                 .code = program->killed ? SIGKILL : program->code},
                      program->context);
}

struct event_source *spawn_watch(struct event_loop *loop, pid_t pid, event_child_callback *callback,
                                 void *context) {
    struct program *program = &world.programs[pid - FIRST_PID];
    program->callback = callback;
    program->context = context;
    return program->end = event_loop_add_deferred(loop, on_end, program);
}

int spawn_signal(pid_t pid, int number) {
    struct program *program = &world.programs[pid - FIRST_PID];
    if (!program->alive && !program->others)
        return -ESRCH;
    if (number == 0 || (number == SIGTERM && program->stubborn))
        return 0;
    program->others = false;
    if (program->alive)
        program_end(program, true);
    else
        close_pipes(program);
    return 0;
}

/* Its agent has gone: so must they. */
void programs_are_gone(const struct node *node) {
    for (size_t i = 0; i < world.program_count; i++) {
        struct program *program = &world.programs[i];
        if (program->node != node)
            continue;
        program->end = NULL; /* the agent has removed it */
        must(!program->alive && !program->others, "program %zu outlives its agent", i);
    }
}

/* ---- the engine */

static void on_started(struct remote_command *command, const struct remote_start *start, void *context) {
    struct program *program = context;
    must(++program->started == 1, "program %zu starts twice", number_of(program));
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    struct program *program = context;
    must(program->exits == 0, "program %zu prints after its end", number_of(program));
    for (size_t i = 0; i < length; i++, program->got++)
        must(bytes[i] == program_byte(number_of(program), program->got),
             "byte %zu of the output of program %zu is wrong", program->got, number_of(program));
}

static void on_exit_of(struct remote_command *command, const struct remote_exit *end,
                       const struct failure *failure, void *context) {
    struct program *program = context;
    size_t number = number_of(program);
    trace("the engine hears of the end of program %zu: %s", number, failure ? failure->text : "exit");
    must(++program->exits == 1, "program %zu ends twice", number);
    if (failure && failure->kind == FAILURE_EXPERIMENT) {
        must(program->failed, "program %zu is said not to have begun: %s", number, failure->text);
        counters.failed_programs++;
        return;
    }
    if (failure) {
        enum agent_link_state state = agent_link_state(program->node->link);
        must(state == AGENT_LINK_CLOSED, "program %zu ends with the link, which has not ended: %s", number,
             failure->text);
        return;
    }
    counters.exits++;
    must(!program->alive && program->spawned == 1, "program %zu ends before its end", number);
    must(program->got == end->output_bytes && program->got == program->printed,
         "%zu of %zu bytes of program %zu have come when it ends", program->got, program->printed, number);
    if (!program->killed)
        must(!end->signalled && end->code == program->code && program->got == program->size,
             "program %zu ends with code %d instead of %d", number, end->code, program->code);
    else
        must(end->signalled || end->abandoned || end->timed_out,
             "program %zu was killed, and no reason is given", number);
}

static void on_drain(struct remote_command *command, void *context) {
    struct program *program = context;
    char bytes[5000];
    while (program->given < program->input) {
        size_t left = program->input - program->given, queued,
               length = left < sizeof bytes ? left : sizeof bytes;
        for (size_t i = 0; i < length; i++)
            bytes[i] = program_byte(number_of(program), program->given + i);
        if (remote_command_write(command, bytes, length, &queued, NULL) < 0)
            return;
        program->given += length;
        if (queued > REMOTE_LOW_MARK)
            return;
    }
    (void)remote_command_close_input(command, NULL);
}

void program_start(void *context, int64_t argument) {
    struct program *program = context;
    char number[24];
    snprintf(number, sizeof number, "%zu", number_of(program));
    const char *const arguments[] = {"program", number, NULL};
    if (!program->node->link || agent_link_state(program->node->link) >= AGENT_LINK_CLOSING)
        return;
    static const struct remote_command_callbacks callbacks = {
        .on_started = on_started, .on_output = on_output, .on_drain = on_drain, .on_exit = on_exit_of};
    struct remote_command_specification specification = {.arguments = arguments,
                                                         .input = program->reads ? REMOTE_INPUT_STREAM
                                                                                 : REMOTE_INPUT_NULL,
                                                         .error = REMOTE_OUTPUT_NULL,
                                                         .grace_ms = 200,
                                                         .coalesce_ms = happens(50) ? 50 : 0,
                                                         .timeout_ms = happens(10) ? 1 + draw(20000) : 0};
    must(remote_command_start(program->node->link, &specification, &callbacks, program, &program->command,
                              NULL) == 0,
         "program %zu cannot be asked for", number_of(program));
    if (program->reads)
        on_drain(program->command, program);
}

void programs_clear(void) {
    for (size_t i = 0; i < world.program_count; i++) {
        struct program *program = &world.programs[i];
        remote_command_free(program->command);
        event_source_remove(program->step);
        program->others = false;
        if (program->spawned)
            close_pipes(program);
    }
}
