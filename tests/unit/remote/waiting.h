/* Requests of a link, waited for: the loop is turned, serving everybody else, until the answer is there. When
 * the loop is stopped meanwhile, they give up with FAILURE_INTERRUPTED, -EINTR. */
#ifndef ASSAY_TESTS_UNIT_REMOTE_WAITING_H
#define ASSAY_TESTS_UNIT_REMOTE_WAITING_H

#include "engine/foundation/text.h"
#include "engine/remote/link/command.h"
#include "engine/remote/link/link-private.h"
#include "tests/test.h"

struct waiting {
    bool done;
    int code;
    struct failure failure;
    struct node_facts *facts;
    struct text *bytes;
    struct agent_statistics statistics;
    struct agent_clock clock;
};

static inline void wait_note(struct waiting *waiting, const struct failure *failure) {
    waiting->done = true;
    if (failure) {
        waiting->failure = *failure;
        waiting->code = failure->code;
    }
}

/* R is what the request returned. */
static inline int wait_for_answer(struct agent_link *link, int r, struct waiting *waiting,
                                  struct failure *failure) {
    if (r < 0)
        return r;
    while (!waiting->done) {
        r = event_loop_turn(link->loop, -1, failure);
        if (r < 0) {
            agent_link_forget(link, waiting);
            return r;
        }
    }
    if (waiting->code < 0 && failure)
        *failure = waiting->failure;
    return waiting->code;
}

static inline int agent_link_wait_ready(struct agent_link *link, struct failure *failure) {
    while (agent_link_state(link) != AGENT_LINK_READY) {
        const struct failure *why = agent_link_failure(link);
        if (why) {
            *failure = *why;
            return why->code;
        }
        if (agent_link_state(link) == AGENT_LINK_IDLE || agent_link_state(link) >= AGENT_LINK_CLOSING)
            return failure_set(failure, -ENOTCONN, "there is no connection");
        int r = event_loop_turn(link->loop, -1, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

static inline void wait_on_too_long(struct event_source *self, void *context) {
    (void)self;
    bool *too_long = context;
    *too_long = true;
}

static inline int agent_link_close_and_wait(struct agent_link *link, int64_t timeout_ns,
                                            struct failure *failure) {
    bool too_long = false;
    struct event_source *timer = event_loop_add_timer(link->loop, timeout_ns, 0, wait_on_too_long, &too_long);
    if (!timer)
        return failure_memory(failure);
    agent_link_close(link);
    int r = 0;
    while (r >= 0 && agent_link_state(link) != AGENT_LINK_CLOSED && !too_long)
        r = event_loop_turn(link->loop, -1, failure);
    event_source_remove(timer);
    if (r < 0)
        return r;
    if (agent_link_state(link) != AGENT_LINK_CLOSED)
        return failure_set(failure, -ETIMEDOUT, "the agent has not left within %.3g s",
                           (double)timeout_ns / (double)EVENT_SECOND);
    const struct failure *why = agent_link_failure(link);
    if (why && failure)
        *failure = *why;
    return why ? why->code : 0;
}

static inline void wait_on_facts(struct agent_link *link, struct node_facts *facts,
                                 const struct failure *failure, void *context) {
    (void)link;
    struct waiting *waiting = context;
    waiting->facts = facts;
    wait_note(waiting, failure);
}

static inline int agent_link_inspect_and_wait(struct agent_link *link, struct node_facts **ret,
                                              struct failure *failure) {
    struct waiting waiting = {0};
    int r =
        wait_for_answer(link, agent_link_inspect(link, wait_on_facts, &waiting, failure), &waiting, failure);
    if (r == 0)
        *ret = waiting.facts;
    return r;
}

static inline void wait_on_done(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    wait_note(context, failure);
}

static inline void wait_on_file(struct agent_link *link, size_t path, const char *bytes, size_t length,
                                void *context) {
    (void)link;
    struct waiting *waiting = context;
    assert_int_equal(path, 0);
    assert_int_equal(text_append(waiting->bytes, bytes, length), 0);
}

static inline int agent_link_read_file_and_wait(struct agent_link *link, const char *path, struct text *ret,
                                                struct failure *failure) {
    struct waiting waiting = {.bytes = ret};
    int r = agent_link_read_files(link, (const char *const[]){path, NULL}, ret->limit - ret->length,
                                  wait_on_file, wait_on_done, &waiting, failure);
    return wait_for_answer(link, r, &waiting, failure);
}

static inline void wait_on_statistics(struct agent_link *link, const struct agent_statistics *statistics,
                                      const struct failure *failure, void *context) {
    (void)link;
    struct waiting *waiting = context;
    if (statistics)
        waiting->statistics = *statistics;
    wait_note(waiting, failure);
}

static inline int agent_link_statistics_and_wait(struct agent_link *link, struct agent_statistics *ret,
                                                 struct failure *failure) {
    struct waiting waiting = {0};
    int r = wait_for_answer(link, agent_link_statistics(link, wait_on_statistics, &waiting, failure),
                            &waiting, failure);
    if (r == 0)
        *ret = waiting.statistics;
    return r;
}

static inline void wait_on_clock(struct agent_link *link, const struct agent_clock *clock,
                                 const struct failure *failure, void *context) {
    (void)link;
    struct waiting *waiting = context;
    if (clock)
        waiting->clock = *clock;
    wait_note(waiting, failure);
}

static inline int agent_link_measure_clock_and_wait(struct agent_link *link, unsigned exchanges,
                                                    struct agent_clock *ret, struct failure *failure) {
    struct waiting waiting = {0};
    int r = wait_for_answer(link, agent_link_measure_clock(link, exchanges, wait_on_clock, &waiting, failure),
                            &waiting, failure);
    if (r == 0)
        *ret = waiting.clock;
    return r;
}

/* ---- a command */

struct remote_result {
    struct remote_start start;
    struct remote_exit exit;
    char *output, *error; /* owned; a NUL after the last byte */
    size_t output_length, error_length;
};

struct waited_run {
    struct waiting waiting;
    struct remote_start start;
    struct remote_exit exit;
    struct text streams[2];
    const char *input;
    size_t input_left;
};

static inline void on_started_run(struct remote_command *command, const struct remote_start *start,
                                  void *context) {
    (void)command;
    struct waited_run *run = context;
    run->start = *start;
}

static inline void on_output_of_run(struct remote_command *command, enum remote_stream stream,
                                    const char *bytes, size_t length, void *context) {
    (void)command;
    struct waited_run *run = context;
    assert_int_equal(text_append(&run->streams[stream == REMOTE_STDOUT ? 0 : 1], bytes, length), 0);
}

static inline void feed_run(struct remote_command *command, struct waited_run *run) {
    enum { PIECE = 64 << 10 };
    size_t queued = remote_command_queued(command);
    while (run->input_left > 0 && queued <= PIECE) {
        size_t size = run->input_left < PIECE ? run->input_left : PIECE;
        if (remote_command_write(command, run->input, size, &queued, NULL) < 0)
            return;
        run->input += size;
        run->input_left -= size;
    }
    if (run->input_left == 0)
        (void)remote_command_close_input(command, NULL);
}

static inline void on_drained_run(struct remote_command *command, void *context) {
    feed_run(command, context);
}

static inline void on_exit_of_run(struct remote_command *command, const struct remote_exit *exit,
                                  const struct failure *failure, void *context) {
    (void)command;
    struct waited_run *run = context;
    if (exit)
        run->exit = *exit;
    wait_note(&run->waiting, failure);
}

static inline void remote_result_clear(struct remote_result *result) {
    free(result->output);
    free(result->error);
    *result = (struct remote_result){0};
}

/* Runs it to its end; its stdin gets INPUT (NULL: nothing). */
static inline int agent_link_run_and_wait(struct agent_link *link,
                                          const struct remote_command_specification *specification,
                                          const void *input, size_t input_length, struct remote_result *ret,
                                          struct failure *failure) {
    static const struct remote_command_callbacks callbacks = {.on_started = on_started_run,
                                                              .on_output = on_output_of_run,
                                                              .on_drain = on_drained_run,
                                                              .on_exit = on_exit_of_run};
    struct remote_command_specification complete = *specification;
    complete.input = input ? REMOTE_INPUT_STREAM : REMOTE_INPUT_NULL;
    struct waited_run run = {.input = input, .input_left = input_length};
    text_init(&run.streams[0], 256 << 20);
    text_init(&run.streams[1], 256 << 20);
    struct remote_command *command = NULL;
    int r = remote_command_start(link, &complete, &callbacks, &run, &command, failure);
    if (r == 0 && input)
        feed_run(command, &run);
    r = wait_for_answer(link, r, &run.waiting, failure);
    remote_command_free(command);
    if (r == 0) {
        *ret = (struct remote_result){.start = run.start,
                                      .exit = run.exit,
                                      .output_length = run.streams[0].length,
                                      .error_length = run.streams[1].length};
        ret->output = text_take(&run.streams[0]);
        ret->error = text_take(&run.streams[1]);
    }
    text_clear(&run.streams[0]);
    text_clear(&run.streams[1]);
    return r;
}

#endif
