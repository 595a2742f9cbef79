#include "engine/agent/agent.h"

#include "engine/agent/command.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef ASSAY_VERSION
#define ASSAY_VERSION "unversioned"
#endif

enum {
    OUTBOX_LIMIT = 32 << 20, /* an engine that leaves so much unacknowledged is not reading */
    READS_A_TURN = 8,
};

/* ---- sending */

void agent_begin(struct agent *agent, struct protocol_writer *writer, enum protocol_type type) {
    outbox_begin(&agent->outbox, writer, type);
}

void agent_end(struct agent *agent, struct protocol_writer *writer) {
    /* REFUSE is the last word, and a stream that has ended has no reader. */
    if (agent->state >= AGENT_LEAVING && writer->type != PROTOCOL_REFUSE) {
        protocol_cancel(writer);
        return;
    }
    int r = outbox_end(&agent->outbox, writer);
    if (r < 0)
        agent_leave(agent, NULL);
    else
        event_source_defer(agent->flush);
}

void agent_send_done(struct agent *agent, uint32_t request) {
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_DONE);
    protocol_put_number(&writer, request);
    agent_end(agent, &writer);
}

void agent_send_error(struct agent *agent, enum protocol_type type, uint32_t number,
                      const struct failure *failure) {
    struct protocol_writer writer;
    agent_begin(agent, &writer, type);
    protocol_put_error(&writer, &(struct protocol_error){number, failure->code, failure->text});
    agent_end(agent, &writer);
}

bool agent_may_send(struct agent *agent) {
    /* While leaving, data is read to be dropped: nobody waits for it. */
    bool may = agent->state >= AGENT_LEAVING || outbox_kept(&agent->outbox) < PROTOCOL_WINDOW;
    if (!may)
        agent->held_back = true;
    return may;
}

static void on_flush(struct event_source *self, void *context) {
    (void)self;
    struct agent *agent = context;
    if (inbox_owes(&agent->inbox) && outbox_put_acknowledgement(&agent->outbox) < 0)
        agent_leave(agent, NULL);
    const char *bytes;
    size_t length;
    while ((bytes = outbox_unsent(&agent->outbox, &length))) {
        ssize_t written = write(agent->output, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            break;
        if (written < 0) {
            /* Nobody reads any more. What is left is not worth keeping. */
            outbox_sent(&agent->outbox, length);
            agent_leave(agent, NULL);
            break;
        }
        outbox_sent(&agent->outbox, (size_t)written);
    }
    if (event_source_set_events(agent->output_source, bytes ? EVENT_WRITE : 0) < 0)
        agent_leave(agent, NULL);
}

static void on_writable(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)descriptor;
    (void)events;
    on_flush(self, context);
}

/* ---- leaving */

static void settle(struct agent *agent) {
    command_settle_all(agent);
    if (agent->state == AGENT_LEAVING && !agent->commands) {
        agent->state = AGENT_GONE;
        on_flush(agent->flush, agent);
        event_loop_stop(agent->loop);
    }
}

static void on_settle(struct event_source *self, void *context) {
    (void)self;
    settle(context);
}

void agent_leave(struct agent *agent, const char *sentence) {
    if (agent->state >= AGENT_LEAVING)
        return;
    agent->state = AGENT_LEAVING;
    if (sentence) {
        struct protocol_writer writer;
        agent_begin(agent, &writer, PROTOCOL_REFUSE);
        protocol_put_refuse(&writer, sentence);
        agent_end(agent, &writer);
    }
    event_source_set_events(agent->input_source, 0);
    transfer_clear(agent);
    command_end_all(agent);
    event_source_defer(agent->settle);
}

/* ---- receiving */

static int greet(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_hello hello;
    if (frame->type != PROTOCOL_HELLO)
        return failure_set(failure, -EPROTO, "a %s message came before HELLO",
                           protocol_type_name(frame->type));
    int r = protocol_get_hello(frame, &hello, failure);
    if (r < 0)
        return r;
    if (hello.version != PROTOCOL_VERSION)
        return failure_set(failure, -EPROTO,
                           "this agent (version %s) speaks protocol %d, the engine speaks protocol %u; "
                           "the agent on the node and the engine must come from the same release",
                           ASSAY_VERSION, PROTOCOL_VERSION, hello.version);
    if (hello.session != 0)
        return failure_set(failure, -EPROTO, "this agent has no session %llx to go on with",
                           (unsigned long long)hello.session);
    if (hello.payload_limit < PROTOCOL_PAYLOAD_LIMIT)
        return failure_set(failure, -EPROTO, "the engine takes payloads of %u bytes only; %d are needed",
                           hello.payload_limit, PROTOCOL_PAYLOAD_LIMIT);
    struct utsname name;
    uname(&name);
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_HELLO);
    protocol_put_hello(&writer, &(struct protocol_hello){.version = PROTOCOL_VERSION,
                                                         .capabilities = PROTOCOL_CAPABILITIES,
                                                         .payload_limit = PROTOCOL_PAYLOAD_LIMIT,
                                                         .pid = (uint32_t)getpid(),
                                                         .program = ASSAY_VERSION,
                                                         .host = name.nodename});
    agent_end(agent, &writer);
    agent->state = AGENT_SERVING;
    return 0;
}

static int serve(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    switch (frame->type) {
    case PROTOCOL_ACK:
        if (frame->length)
            return failure_set(failure, -EPROTO, "an ACK message with a payload");
        return 0;
    case PROTOCOL_INSPECT:
        return request_inspect(agent, frame, failure);
    case PROTOCOL_READ_FILE:
        return reading_begin(agent, frame, failure);
    case PROTOCOL_WRITE_BEGIN:
        return writing_begin(agent, frame, failure);
    case PROTOCOL_WRITE_DATA:
        return writing_data(agent, frame, failure);
    case PROTOCOL_WRITE_END:
        return writing_end(agent, frame, failure);
    case PROTOCOL_MAKE_FOLDER:
        return request_make_folder(agent, frame, failure);
    case PROTOCOL_REMOVE_TREE:
        return request_remove_tree(agent, frame, failure);
    case PROTOCOL_STATISTICS:
        return request_statistics(agent, frame, failure);
    case PROTOCOL_RUN:
        return command_run(agent, frame, failure);
    case PROTOCOL_INPUT:
        return command_input(agent, frame, failure);
    case PROTOCOL_INPUT_END:
        return command_input_end(agent, frame, failure);
    case PROTOCOL_KILL:
        return command_kill(agent, frame, failure);
    default:
        return failure_set(failure, -EPROTO, "a %s message came to the agent",
                           protocol_type_name(frame->type));
    }
}

static int take_frames(struct agent *agent, struct failure *failure) {
    struct protocol_frame frame;
    int r;
    while (agent->state < AGENT_LEAVING && (r = inbox_next(&agent->inbox, &frame, failure)) > 0) {
        r = outbox_acknowledge(&agent->outbox, frame.acknowledged, failure);
        if (r == 0 && frame.type == PROTOCOL_REFUSE) {
            agent_leave(agent, NULL);
            return 0;
        }
        if (r == 0)
            r = agent->state == AGENT_GREETING ? greet(agent, &frame, failure)
                                               : serve(agent, &frame, failure);
        if (r < 0)
            return r;
    }
    return agent->state < AGENT_LEAVING ? r : 0;
}

/* One read; 1 if there may be more. */
static int receive(struct agent *agent, struct failure *failure) {
    char *space;
    size_t size;
    if (inbox_reserve(&agent->inbox, &space, &size) < 0)
        return failure_memory(failure);
    ssize_t got = read(agent->input, space, size);
    if (got < 0)
        return errno == EAGAIN  ? 0
               : errno == EINTR ? 1
                                : failure_set(failure, -errno, "cannot read from the engine");
    if (got == 0) {
        agent_leave(agent, NULL);
        return 0;
    }
    inbox_fill(&agent->inbox, (size_t)got);
    int r = take_frames(agent, failure);
    return r < 0 ? r : (size_t)got == size;
}

static void on_readable(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    struct agent *agent = context;
    struct failure failure;
    int r = 1;
    for (int i = 0; r > 0 && i < READS_A_TURN && agent->state < AGENT_LEAVING; i++)
        r = receive(agent, &failure);
    if (r < 0)
        agent_leave(agent, failure.text);
    if (inbox_owes(&agent->inbox))
        event_source_defer(agent->flush);
    if (agent->held_back && outbox_kept(&agent->outbox) < PROTOCOL_WINDOW / 2)
        event_source_defer(agent->work);
}

static void on_work(struct event_source *self, void *context) {
    (void)self;
    struct agent *agent = context;
    agent->held_back = false;
    command_continue_all(agent);
    reading_continue(agent);
}

static void on_orphan(struct event_source *self, const struct event_child_exit *exit, void *context) {
    (void)self;
    (void)exit;
    struct agent *agent = context;
    event_source_defer(agent->settle);
}

/* ---- life */

static int open_folders(struct agent *agent, const struct agent_options *options, struct failure *failure) {
    const char *root = options->root ? options->root : "/";
    agent->captured = strcmp(root, "/") != 0;
    agent->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (agent->root < 0)
        return failure_set(failure, -errno, "cannot open the root '%s': %s", root, strerror(errno));
    agent->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (agent->null < 0)
        return failure_set(failure, -errno, "cannot open '/dev/null': %s", strerror(errno));
    return 0;
}

static int make_non_blocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static int add_sources(struct agent *agent, struct failure *failure) {
    struct event_loop *loop = agent->loop;
    agent->flush = event_loop_add_deferred(loop, on_flush, agent);
    agent->work = event_loop_add_deferred(loop, on_work, agent);
    agent->settle = event_loop_add_deferred(loop, on_settle, agent);
    if (!agent->flush || !agent->work || !agent->settle)
        return failure_memory(failure);
    int r = event_loop_reap_orphans(loop, on_orphan, agent);
    if (r < 0)
        return failure_set(failure, r, "cannot watch child processes: %s", strerror(-r));
    if (make_non_blocking(agent->input) < 0 || make_non_blocking(agent->output) < 0)
        return failure_set(failure, -EBADF, "stdin and stdout must be open");
    agent->input_source = event_loop_add_descriptor(loop, agent->input, EVENT_READ, on_readable, agent);
    if (!agent->input_source)
        return failure_set(failure, -errno, "stdin cannot be waited for: it must be a pipe or a socket");
    agent->output_source = event_loop_add_descriptor(loop, agent->output, 0, on_writable, agent);
    return agent->output_source ? 0 : failure_memory(failure);
}

int agent_init(struct agent *agent, struct event_loop *loop, const struct agent_options *options,
               struct failure *failure) {
    *agent = (struct agent){.loop = loop,
                            .directory = options->directory,
                            .root = -1,
                            .null = -1,
                            .input = options->input,
                            .output = options->output};
    inbox_init(&agent->inbox);
    outbox_init(&agent->outbox, &agent->inbox, OUTBOX_LIMIT);
    int r = open_folders(agent, options, failure);
    if (r == 0)
        r = add_sources(agent, failure);
    if (r < 0)
        agent_clear(agent);
    return r;
}

void agent_clear(struct agent *agent) {
    transfer_clear(agent);
    command_clear_all(agent);
    event_source_remove(agent->flush);
    event_source_remove(agent->work);
    event_source_remove(agent->settle);
    event_source_remove(agent->input_source);
    event_source_remove(agent->output_source);
    inbox_clear(&agent->inbox);
    outbox_clear(&agent->outbox);
    cleanup_close_descriptor(&agent->root);
    cleanup_close_descriptor(&agent->null);
}
