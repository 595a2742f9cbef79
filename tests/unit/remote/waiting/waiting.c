#include "tests/unit/remote/waiting/waiting.h"

#include "engine/foundation/text.h"
#include "engine/remote/link/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RESULT_BYTES_MAX = 64 << 20 };

struct waiting {
    bool done;
    int code;
    struct failure failure;
    struct node_facts *facts;
    struct text *bytes;
    struct agent_statistics statistics;
    struct agent_clock clock;
};

static int interrupted(struct failure *failure) {
    return failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted");
}

static void note(struct waiting *waiting, const struct failure *failure) {
    waiting->done = true;
    if (failure) {
        waiting->failure = *failure;
        waiting->code = failure->code;
    }
}

/* R is what the request returned. */
static int wait_for(struct agent_link *link, int r, struct waiting *waiting, struct failure *failure) {
    if (r < 0)
        return r;
    while (!waiting->done) {
        r = event_loop_is_stopped(link->loop) ? interrupted(failure)
                                              : event_loop_run_once(link->loop, -1, failure);
        if (r < 0) {
            agent_link_forget(link, waiting);
            return r;
        }
    }
    if (waiting->code < 0 && failure)
        *failure = waiting->failure;
    return waiting->code;
}

int agent_link_wait_ready(struct agent_link *link, struct failure *failure) {
    while (link->state != AGENT_LINK_READY) {
        if (link->failed) {
            if (failure)
                *failure = link->failure;
            return link->failure.code;
        }
        int r = link_check(link, failure);
        if (r < 0)
            return r;
        r = event_loop_is_stopped(link->loop) ? interrupted(failure)
                                              : event_loop_run_once(link->loop, -1, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

static void on_too_long(struct event_source *self, void *context) {
    (void)self;
    bool *too_long = context;
    *too_long = true;
}

int agent_link_close_and_wait(struct agent_link *link, int64_t timeout_ns, struct failure *failure) {
    bool too_long = false;
    struct event_source *timer = event_loop_add_timer(link->loop, timeout_ns, 0, on_too_long, &too_long);
    if (!timer)
        return failure_memory(failure);
    agent_link_close(link);
    int r = 0;
    while (r >= 0 && link->state != AGENT_LINK_CLOSED && !too_long)
        r = event_loop_is_stopped(link->loop) ? interrupted(failure)
                                              : event_loop_run_once(link->loop, -1, failure);
    event_source_remove(timer);
    if (r < 0)
        return r;
    if (link->state != AGENT_LINK_CLOSED)
        return failure_set(failure, -ETIMEDOUT, "the agent has not left within %.3g s",
                           (double)timeout_ns / (double)EVENT_SECOND);
    if (link->failed && failure)
        *failure = link->failure;
    return link->failed ? link->failure.code : 0;
}

static void on_facts(struct agent_link *link, struct node_facts *facts, const struct failure *failure,
                     void *context) {
    (void)link;
    struct waiting *waiting = context;
    waiting->facts = facts;
    note(waiting, failure);
}

int agent_link_inspect_and_wait(struct agent_link *link, struct node_facts **ret, struct failure *failure) {
    struct waiting waiting = {0};
    int r = wait_for(link, agent_link_inspect(link, on_facts, &waiting, failure), &waiting, failure);
    if (r == 0)
        *ret = waiting.facts;
    return r;
}

static void on_bytes(struct agent_link *link, const char *bytes, size_t length, const struct failure *failure,
                     void *context) {
    (void)link;
    struct waiting *waiting = context;
    note(waiting, failure);
    if (!failure && text_append(waiting->bytes, bytes, length) < 0)
        waiting->code = failure_memory(&waiting->failure);
}

int agent_link_read_file_and_wait(struct agent_link *link, const char *path, struct text *ret,
                                  struct failure *failure) {
    struct waiting waiting = {.bytes = ret};
    uint64_t limit = ret->limit - ret->length;
    return wait_for(link, agent_link_read_file(link, path, limit, on_bytes, &waiting, failure), &waiting,
                    failure);
}

static void on_done(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    note(context, failure);
}

int agent_link_make_folder_and_wait(struct agent_link *link, const char *path, struct failure *failure) {
    struct waiting waiting = {0};
    return wait_for(link, agent_link_make_folder(link, path, on_done, &waiting, failure), &waiting, failure);
}

static void on_statistics(struct agent_link *link, const struct agent_statistics *statistics,
                          const struct failure *failure, void *context) {
    (void)link;
    struct waiting *waiting = context;
    if (statistics)
        waiting->statistics = *statistics;
    note(waiting, failure);
}

int agent_link_statistics_and_wait(struct agent_link *link, struct agent_statistics *ret,
                                   struct failure *failure) {
    struct waiting waiting = {0};
    int r = wait_for(link, agent_link_statistics(link, on_statistics, &waiting, failure), &waiting, failure);
    if (r == 0)
        *ret = waiting.statistics;
    return r;
}

static void on_clock(struct agent_link *link, const struct agent_clock *clock, const struct failure *failure,
                     void *context) {
    (void)link;
    struct waiting *waiting = context;
    if (clock)
        waiting->clock = *clock;
    note(waiting, failure);
}

int agent_link_measure_clock_and_wait(struct agent_link *link, unsigned exchanges, struct agent_clock *ret,
                                      struct failure *failure) {
    struct waiting waiting = {0};
    int r = wait_for(link, agent_link_measure_clock(link, exchanges, on_clock, &waiting, failure), &waiting,
                     failure);
    if (r == 0)
        *ret = waiting.clock;
    return r;
}

/* ---- a command */

struct run {
    struct waiting waiting;
    struct remote_result result;
    struct text streams[2];
};

static void on_started(struct remote_command *command, const struct remote_start *start, void *context) {
    (void)command;
    struct run *run = context;
    run->result.start = *start;
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct run *run = context;
    if (text_append(&run->streams[stream == REMOTE_STDOUT ? 0 : 1], bytes, length) < 0)
        abort();
}

static void on_exit_of(struct remote_command *command, const struct remote_exit *exit,
                       const struct failure *failure, void *context) {
    (void)command;
    struct run *run = context;
    if (exit)
        run->result.exit = *exit;
    note(&run->waiting, failure);
}

void remote_result_clear(struct remote_result *result) {
    free(result->output);
    free(result->error);
    *result = (struct remote_result){0};
}

int agent_link_run_and_wait(struct agent_link *link, const struct remote_command_specification *specification,
                            const void *input, size_t input_length, struct remote_result *ret,
                            struct failure *failure) {
    static const struct remote_command_callbacks callbacks = {
        .on_started = on_started, .on_output = on_output, .on_exit = on_exit_of};
    struct remote_command_specification complete = *specification;
    complete.input = input ? REMOTE_INPUT_STREAM : REMOTE_INPUT_NULL;
    struct run run = {0};
    for (int i = 0; i < 2; i++)
        text_init(&run.streams[i], RESULT_BYTES_MAX);
    struct remote_command *command = NULL;
    int r = remote_command_start(link, &complete, &callbacks, &run, &command, failure);
    if (r == 0 && input)
        r = remote_command_write(command, input, input_length, NULL, failure);
    if (r == 0 && input)
        r = remote_command_close_input(command, failure);
    if (r == 0)
        r = wait_for(link, 0, &run.waiting, failure);
    remote_command_free(command);
    run.result.output_length = run.streams[0].length;
    run.result.error_length = run.streams[1].length;
    run.result.output = text_take(&run.streams[0]);
    run.result.error = text_take(&run.streams[1]);
    if (r == 0)
        *ret = run.result;
    else
        remote_result_clear(&run.result);
    return r;
}
