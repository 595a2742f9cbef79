/* The waiting half of agent-link.h and remote-command.h: a request, and the loop turned until it is answered.
 */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/text.h"
#include "engine/remote/link/inside.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
    bool done;
    int code;
    struct failure failure;
    struct node_facts *facts;
    struct text *bytes;
    struct agent_statistics statistics;
    struct agent_clock clock;
    char hex[HASH_HEX_SIZE];
    uint64_t size;
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
            request_forget(link, waiting);
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
        return link_complain(link, failure, -ETIMEDOUT, "the agent has not left within %.3g s",
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

int agent_link_write_file_and_wait(struct agent_link *link, const char *path, const void *bytes,
                                   size_t length, unsigned mode, struct failure *failure) {
    struct waiting waiting = {0};
    int r = agent_link_write_file(link, path, bytes, length, mode, on_done, &waiting, failure);
    return wait_for(link, r, &waiting, failure);
}

int agent_link_send_file_and_wait(struct agent_link *link, const char *path, const char *local_path,
                                  unsigned mode, struct failure *failure) {
    struct waiting waiting = {0};
    int r = agent_link_send_file(link, path, local_path, mode, on_done, &waiting, failure);
    return wait_for(link, r, &waiting, failure);
}

int agent_link_make_folder_and_wait(struct agent_link *link, const char *path, struct failure *failure) {
    struct waiting waiting = {0};
    return wait_for(link, agent_link_make_folder(link, path, on_done, &waiting, failure), &waiting, failure);
}

int agent_link_remove_tree_and_wait(struct agent_link *link, const char *path, struct failure *failure) {
    struct waiting waiting = {0};
    return wait_for(link, agent_link_remove_tree(link, path, on_done, &waiting, failure), &waiting, failure);
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

static void on_hash(struct agent_link *link, const char *hex, uint64_t size, const struct failure *failure,
                    void *context) {
    (void)link;
    struct waiting *waiting = context;
    if (hex)
        memcpy(waiting->hex, hex, HASH_HEX_SIZE);
    waiting->size = size;
    note(waiting, failure);
}

int agent_link_hash_file_and_wait(struct agent_link *link, const char *path, char *hex, uint64_t *ret_size,
                                  struct failure *failure) {
    struct waiting waiting = {0};
    int r = wait_for(link, agent_link_hash_file(link, path, on_hash, &waiting, failure), &waiting, failure);
    if (r < 0)
        return r;
    memcpy(hex, waiting.hex, HASH_HEX_SIZE);
    if (ret_size)
        *ret_size = waiting.size;
    return 0;
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

/* What a program writes to one stream: its first bytes, and of those that come after them the last. */
struct capture {
    struct text head, tail;
    size_t head_size; /* bytes that the head takes */
    uint64_t past;    /* bytes that came after them */
};

enum { MARK_SIZE = 80 }; /* the line between head and tail */

/* LIMIT: what the agent passes on, so that nothing comes after the head; 0: all. */
static void capture_init(struct capture *capture, uint64_t limit) {
    *capture = (struct capture){.head_size = REMOTE_RESULT_HEAD};
    if (limit > 0)
        capture->head_size = limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2;
    text_init(&capture->head, capture->head_size + MARK_SIZE + REMOTE_RESULT_TAIL);
    text_init(&capture->tail, 2 * REMOTE_RESULT_TAIL + PROTOCOL_PAYLOAD_LIMIT);
}

static void capture_clear(struct capture *capture) {
    text_clear(&capture->head);
    text_clear(&capture->tail);
}

static int capture_add(struct capture *capture, const char *bytes, size_t length) {
    size_t room = capture->head_size - capture->head.length;
    size_t first = length < room ? length : room;
    int r = text_append(&capture->head, bytes, first);
    if (r == 0 && first < length)
        r = text_append(&capture->tail, bytes + first, length - first);
    capture->past += length - first;
    /* Cut back only when it has twice its size, so that each byte is moved once at most. */
    if (capture->tail.length >= 2 * REMOTE_RESULT_TAIL)
        text_consume(&capture->tail, capture->tail.length - REMOTE_RESULT_TAIL);
    return r;
}

/* All of it as one; *RET_CUT is set if bytes are missing in the middle. NULL: no memory. */
static char *capture_take(struct capture *capture, size_t *ret_length, bool *ret_cut) {
    struct text *head = &capture->head, *tail = &capture->tail;
    if (tail->length > REMOTE_RESULT_TAIL)
        text_consume(tail, tail->length - REMOTE_RESULT_TAIL);
    int r = 0;
    if (capture->past > tail->length) {
        *ret_cut = true;
        r = text_printf(head, "%s[... %" PRIu64 " bytes are left out here ...]\n",
                        head->bytes[head->length - 1] == '\n' ? "" : "\n", capture->past - tail->length);
    }
    if (r == 0)
        r = text_append(head, tail->bytes, tail->length);
    if (r < 0)
        return NULL;
    *ret_length = head->length;
    return text_take(head);
}

struct run {
    struct waiting waiting;
    struct remote_start start;
    struct remote_exit exit;
    struct capture streams[2];
    const char *input;
    size_t input_left;
};

static void run_clear(struct run *run) {
    capture_clear(&run->streams[0]);
    capture_clear(&run->streams[1]);
}

static void on_started(struct remote_command *command, const struct remote_start *start, void *context) {
    (void)command;
    struct run *run = context;
    run->start = *start;
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    struct run *run = context;
    int r = capture_add(&run->streams[stream == REMOTE_STDOUT ? 0 : 1], bytes, length);
    if (r < 0 && run->waiting.code == 0) {
        run->waiting.code =
            link_complain(command->link, &run->waiting.failure, r, "no memory for a command's output");
        (void)remote_command_kill(command, SIGKILL, NULL);
    }
}

static void feed(struct remote_command *command, struct run *run) {
    size_t queued = remote_command_queued(command);
    while (run->input_left > 0 && queued <= PROTOCOL_CHUNK) {
        size_t size = run->input_left < PROTOCOL_CHUNK ? run->input_left : PROTOCOL_CHUNK;
        if (remote_command_write(command, run->input, size, &queued, NULL) < 0)
            return; /* it ended, or there is no memory: its exit tells */
        run->input += size;
        run->input_left -= size;
    }
    if (run->input_left == 0)
        (void)remote_command_close_input(command, NULL);
}

static void on_drain(struct remote_command *command, void *context) {
    feed(command, context);
}

static void on_exit_of(struct remote_command *command, const struct remote_exit *exit,
                       const struct failure *failure, void *context) {
    (void)command;
    struct run *run = context;
    if (exit)
        run->exit = *exit;
    note(&run->waiting, run->waiting.code < 0 ? NULL : failure);
}

void remote_result_clear(struct remote_result *result) {
    free(result->output);
    free(result->error);
    *result = (struct remote_result){0};
}

static int fill_result(struct run *run, struct remote_result *ret, struct failure *failure) {
    struct remote_result result = {.start = run->start, .exit = run->exit};
    result.output = capture_take(&run->streams[0], &result.output_length, &result.exit.output_cut);
    result.error = capture_take(&run->streams[1], &result.error_length, &result.exit.error_cut);
    if (!result.output || !result.error) {
        remote_result_clear(&result);
        return failure_memory(failure);
    }
    *ret = result;
    return 0;
}

int agent_link_run_and_wait(struct agent_link *link, const struct remote_command_specification *specification,
                            const void *input, size_t input_length, struct remote_result *ret,
                            struct failure *failure) {
    static const struct remote_command_callbacks callbacks = {
        .on_started = on_started, .on_output = on_output, .on_drain = on_drain, .on_exit = on_exit_of};
    struct remote_command_specification complete = *specification;
    complete.input = input ? REMOTE_INPUT_STREAM : REMOTE_INPUT_NULL;
    cleanup(run_clear) struct run run = {.input = input, .input_left = input_length};
    capture_init(&run.streams[0], complete.output_limit);
    capture_init(&run.streams[1], complete.error_limit);
    struct remote_command *command = NULL;
    int r = remote_command_start(link, &complete, &callbacks, &run, &command, failure);
    if (r < 0)
        return r;
    if (input)
        feed(command, &run);
    r = wait_for(link, 0, &run.waiting, failure);
    remote_command_free(command);
    return r < 0 ? r : fill_result(&run, ret, failure);
}
