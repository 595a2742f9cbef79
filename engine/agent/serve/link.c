/*
 * The agent's end of a link: frames in and out, the greeting, and links that replace broken ones.
 *
 * While there is no link, or no HELLO has come on it yet, the outbox sends nothing: frames gather in it. The
 * engine's HELLO says which frames it has, and the others are sent. When too many frames gather, the commands
 * that produce them wait.
 */
#include "engine/agent/serve/agent.h"
#include "engine/agent/serve/program.h"
#include "engine/agent/serve/spawn.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef ASSAY_VERSION
#define ASSAY_VERSION "unversioned"
#endif

enum {
    READS_A_TURN = 8,
    ALONE_WINDOW = 16 << 20, /* unacknowledged bytes at which programs wait, while there is no link */
    NARROW_PIPE = 4 << 10,   /* capacity of a link's pipe, bytes */
    WIDE_PIPE = 64 << 10,    /* its capacity once WIDE_AT bytes wait to be sent */
    WIDE_AT = 256 << 10,
};

/* ---- sending */

void agent_begin(struct agent *agent, struct protocol_writer *writer, enum protocol_type type) {
    outbox_begin(&agent->outbox, writer, type);
}

/* Adds a finished frame to the outbox. True where there is a link to send it on; while leaving only REFUSE is
 * sent, and other frames are dropped. */
static bool end_frame(struct agent *agent, struct protocol_writer *writer) {
    /* REFUSE is the last frame of a link. */
    if (agent->state >= AGENT_LEAVING && writer->type != PROTOCOL_REFUSE) {
        protocol_cancel(writer);
        return false;
    }
    int r = outbox_end(&agent->outbox, writer);
    if (r < 0)
        agent_leave(agent, NULL);
    return r == 0 && agent_is_attached(agent);
}

void agent_end(struct agent *agent, struct protocol_writer *writer) {
    if (end_frame(agent, writer) && !agent->about_to_flush)
        event_source_defer(agent->flush);
}

void agent_end_idly(struct agent *agent, struct protocol_writer *writer) {
    if (end_frame(agent, writer) && !event_source_timer_is_armed(agent->idle))
        event_source_set_timer(agent->idle, AGENT_IDLE_NS, 0);
}

void agent_send_error(struct agent *agent, enum protocol_type type, uint32_t number,
                      const struct failure *failure) {
    struct protocol_writer writer;
    agent_begin(agent, &writer, type);
    protocol_put_message(&writer, &(struct protocol_error){number, failure->code, failure->text});
    agent_end(agent, &writer);
}

void agent_refuse(struct agent *agent, const char *sentence) {
    struct protocol_writer writer;
    if (!sentence)
        return;
    agent_begin(agent, &writer, PROTOCOL_REFUSE);
    protocol_put_message(&writer, &sentence);
    agent_end(agent, &writer);
}

bool agent_may_send(struct agent *agent) {
    bool alone = agent->session != 0 && !agent->greeted;
    /* While leaving, data is read and dropped. */
    bool may = agent->state >= AGENT_LEAVING ||
               outbox_kept(&agent->outbox) < (alone ? ALONE_WINDOW : PROTOCOL_WINDOW);
    if (!may)
        agent->held_back = true;
    return may;
}

/* The engine's end of the link is closed. An agent of session 0 ends with it; a daemon waits for the next
 * link. */
static void on_stream_end(struct agent *agent) {
    if (agent->session == 0 || agent->state >= AGENT_LEAVING) {
        agent_leave(agent, NULL);
        return;
    }
    agent_detach(agent);
    if (agent->listener.on_detached)
        agent->listener.on_detached(agent, agent->listener.context);
}

/* Writes as much of the outbox as the stream accepts, and waits until it accepts more. */
void agent_flush(struct agent *agent) {
    event_source_set_timer(agent->idle, -1, 0); /* frames that are not urgent are sent now, too */
    if (!agent_is_attached(agent))
        return;
    if (agent->greeted && inbox_owes(&agent->inbox) && outbox_put_acknowledgement(&agent->outbox) < 0)
        agent_leave(agent, NULL);
    const char *bytes;
    size_t length;
    while ((bytes = outbox_unsent(&agent->outbox, &length))) {
        ssize_t written = write(agent->output, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN) {
            if (length >= WIDE_AT)
                (void)spawn_widen_pipe(agent->output, WIDE_PIPE);
            break;
        }
        if (written < 0) {
            event_source_set_events(agent->output_source, 0);
            on_stream_end(agent);
            return;
        }
        outbox_sent(&agent->outbox, (size_t)written);
    }
    if (event_source_set_events(agent->output_source, bytes ? EVENT_WRITE : 0) < 0)
        agent_leave(agent, NULL);
}

static void on_writable(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    agent_flush(context);
}

/* ---- the greeting */

/* Sends SENTENCE to the engine, unless it is NULL, and ends the link or the agent. Before the greeting only
 * the new link of a daemon ends, since the session may belong to another engine; otherwise the agent ends. */
static void refuse_link(struct agent *agent, const char *sentence) {
    if (agent->session == 0 || agent->state != AGENT_SERVING || agent->greeted) {
        agent_leave(agent, sentence);
        return;
    }
    agent_refuse(agent, sentence);
    agent_flush(agent); /* sent at once: the pipe of a new link has room */
    if (agent_is_attached(agent))
        on_stream_end(agent);
}

/* Refuses a HELLO of another protocol version or session, and that of an engine that does not own the
 * session: it has acknowledged no frame, but an earlier engine has. */
static int check_hello(const struct agent *agent, const struct protocol_frame *frame,
                       const struct protocol_hello *hello, struct failure *failure) {
    if (hello->version != PROTOCOL_VERSION)
        return failure_set(failure, -EPROTO,
                           "this agent (version %s) speaks protocol %d, the engine speaks protocol %u; "
                           "the agent on the node and the engine must come from the same release",
                           ASSAY_VERSION, PROTOCOL_VERSION, hello->version);
    if (hello->session != agent->session)
        return failure_set(failure, -EPROTO, "this agent does not serve session %llx",
                           (unsigned long long)hello->session);
    if (hello->payload_limit < PROTOCOL_PAYLOAD_LIMIT)
        return failure_set(failure, -EPROTO, "the engine takes payloads of %u bytes only; %d are needed",
                           hello->payload_limit, PROTOCOL_PAYLOAD_LIMIT);
    if (frame->acknowledged == 0 && agent->outbox.acknowledged > 0)
        return failure_set(failure, -EPROTO,
                           "another engine uses session %llx: it acknowledged %llu frames, and "
                           "this engine none",
                           (unsigned long long)agent->session,
                           (unsigned long long)agent->outbox.acknowledged);
    return 0;
}

/* Handles the first frame of a link, which must be HELLO: answers with HELLO and resends what the engine
 * lacks. */
static int handle_hello(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_hello hello;
    if (frame->type != PROTOCOL_HELLO)
        return failure_set(failure, -EPROTO, "a %s message came before HELLO",
                           protocol_type_name(frame->type));
    int r = protocol_get_message(frame, &hello, failure);
    if (r == 0)
        r = check_hello(agent, frame, &hello, failure);
    if (r < 0)
        return r;
    struct utsname name;
    uname(&name);
    struct protocol_hello ours = {.version = PROTOCOL_VERSION,
                                  .capabilities = PROTOCOL_CAPABILITIES,
                                  .session = agent->session,
                                  .payload_limit = PROTOCOL_PAYLOAD_LIMIT,
                                  .pid = (uint32_t)getpid(),
                                  .program = ASSAY_VERSION,
                                  .host = name.nodename};
    memcpy(ours.sha256, program_sha256(), sizeof ours.sha256);
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_HELLO);
    protocol_put_message(&writer, &ours);
    agent_end(agent, &writer);
    r = outbox_resume(&agent->outbox, frame->acknowledged, failure);
    if (r < 0) {
        outbox_restart(&agent->outbox); /* removes our HELLO: the answer is REFUSE */
        return r;
    }
    agent->greeted = true;
    if (agent->state == AGENT_GREETING)
        agent->state = AGENT_SERVING;
    event_source_defer(agent->work); /* output that waited for a link */
    return 0;
}

/* ---- receiving */

/* Handles all complete frames of the inbox. A negative return is a violation of the protocol. */
static int handle_frames(struct agent *agent, struct failure *failure) {
    struct protocol_frame frame;
    int r = 0;
    while (agent->state < AGENT_LEAVING && agent_is_attached(agent) &&
           (r = inbox_next(&agent->inbox, &frame, failure)) > 0) {
        if (frame.type == PROTOCOL_REFUSE) {
            refuse_link(agent, NULL);
            return 0;
        }
        if (agent->greeted) {
            r = outbox_acknowledge(&agent->outbox, frame.acknowledged, failure);
            if (r == 0)
                r = agent_serve(agent, &frame, failure);
        } else {
            r = handle_hello(agent, &frame, failure);
        }
        if (r < 0)
            return r;
    }
    return r;
}

/* Reads from the link once and handles the frames. Returns 1 if there may be more to read, 0 if not. */
static int receive(struct agent *agent, struct failure *failure) {
    char *space;
    size_t size;
    if (inbox_reserve(&agent->inbox, &space, &size) < 0)
        return failure_memory(failure);
    ssize_t got = read(agent->input, space, size);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (got <= 0) {
        on_stream_end(agent);
        return 0;
    }
    agent->heard_ns = event_loop_now(agent->loop);
    inbox_fill(&agent->inbox, (size_t)got);
    int r = handle_frames(agent, failure);
    return r < 0 ? r : (size_t)got == size;
}

/* Reads and handles frames from the connection. A frame that breaks the protocol ends the connection. */
static void on_readable(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    struct agent *agent = context;
    struct failure failure;
    int r = 1;
    for (int i = 0; r > 0 && i < READS_A_TURN && agent->state < AGENT_LEAVING && agent_is_attached(agent);
         i++)
        r = receive(agent, &failure);
    if (r < 0)
        refuse_link(agent, failure.text);
    if (!agent_is_attached(agent))
        return;
    if (inbox_owes(&agent->inbox))
        event_source_defer(agent->flush);
    if (agent->held_back && outbox_kept(&agent->outbox) < PROTOCOL_WINDOW / 2)
        event_source_defer(agent->work);
}

/* ---- attaching and detaching links */

bool agent_is_attached(const struct agent *agent) {
    return agent->input_source != NULL;
}

static int make_non_blocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* Serves the connection INPUT and OUTPUT, in place of an earlier one, and owns both. On failure the caller
 * does. */
int agent_attach(struct agent *agent, int input, int output, struct failure *failure) {
    if (make_non_blocking(input) < 0 || make_non_blocking(output) < 0)
        return failure_set(failure, -EBADF, "stdin and stdout must be open");
    struct event_source *reader =
        event_loop_add_descriptor(agent->loop, input, EVENT_READ, on_readable, agent);
    if (!reader)
        return failure_set(
            failure, -errno,
            "stdin is not a pipe or a socket; the agent is started by assay, over ssh or as its child");
    struct event_source *writer = event_loop_add_descriptor(agent->loop, output, 0, on_writable, agent);
    if (!writer) {
        event_source_remove(reader);
        return failure_memory(failure);
    }
    agent_detach(agent);
    /* sshd sends the content of the pipe as one packet, and libssh keeps three buffers as large as the
     * largest packet: with a small pipe 96 KiB are saved for each of a thousand nodes. Sockets are unchanged.
     */
    (void)fcntl(output, F_SETPIPE_SZ, NARROW_PIPE);
    agent->input = input;
    agent->output = output;
    agent->input_source = reader;
    agent->output_source = writer;
    return 0;
}

/* Closes the connection. Frames that were not acknowledged are sent again on the next one. */
void agent_detach(struct agent *agent) {
    if (!agent_is_attached(agent))
        return;
    event_source_remove(take_pointer(agent->input_source));
    event_source_remove(take_pointer(agent->output_source));
    cleanup_close_descriptor(&agent->input);
    cleanup_close_descriptor(&agent->output);
    agent->greeted = false;
    inbox_restart(&agent->inbox);
    outbox_restart(&agent->outbox);
    if (agent->held_back)
        event_source_defer(agent->work); /* the window is larger without a link */
}
