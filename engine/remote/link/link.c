#include "engine/remote/link/link.h"

#include "engine/foundation/memory.h"
#include "engine/remote/link/link-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ASSAY_VERSION
#define ASSAY_VERSION "unversioned"
#endif

enum { OUTBOX_LIMIT = 64 << 20, READS_A_TURN = 16 };

/* ---- for the other files */

int link_check(const struct agent_link *link, struct failure *failure) {
    if (link->state > AGENT_LINK_IDLE && link->state < AGENT_LINK_CLOSING)
        return 0;
    if (link->failed)
        return node_failure(failure, link->node, -ENOTCONN, "there is no connection: %s", link->failure.text);
    return node_failure(failure, link->node, -ENOTCONN, "there is no connection: it %s",
                        link->state == AGENT_LINK_IDLE ? "was not started" : "was closed");
}

uint32_t link_next_number(struct agent_link *link) {
    return ++link->next_number;
}

void link_begin(struct agent_link *link, struct protocol_writer *writer, enum protocol_type type) {
    outbox_begin(&link->outbox, writer, type);
}

/* Ends the frame of WRITER and queues it. Fails when the frame, or what waits already, is too large. */
int link_send(struct agent_link *link, struct protocol_writer *writer, struct failure *failure) {
    int r = outbox_end(&link->outbox, writer);
    if (r == -ENOMEM)
        return failure_memory(failure);
    if (r == -EMSGSIZE)
        return node_failure(failure, link->node, r, "a %s message would have more than %d bytes",
                            protocol_type_name(writer->type), PROTOCOL_PAYLOAD_LIMIT);
    if (r < 0)
        return node_failure(failure, link->node, r, "more than %d bytes of requests wait for the agent",
                            OUTBOX_LIMIT);
    event_source_defer(link->pump);
    return 0;
}

bool link_has_window(const struct agent_link *link) {
    return outbox_kept(&link->outbox) < PROTOCOL_WINDOW;
}

/* ---- states */

static void tell_state(struct agent_link *link, const struct failure *why) {
    if (link->callbacks.on_state)
        link->callbacks.on_state(link, link->state, why, link->callbacks.context);
}

/* Ends all pending requests and commands with the failure WHY (NULL: the connection was closed), and tells
 * the caller. */
static void tell_closed(struct agent_link *link, const struct failure *why) {
    struct failure reason;
    if (why) {
        link->failed = true;
        link->failure = reason = *why;
    } else {
        node_failure(&reason, link->node, -ENOTCONN, "the connection was closed");
    }
    request_fail_all(link, &reason);
    command_fail_all(link, &reason);
    tell_state(link, why ? &link->failure : NULL);
}

/* States only go forward, except that a broken link may be ready again. */
void link_set_state(struct agent_link *link, enum agent_link_state state, const struct failure *why) {
    enum agent_link_state before = link->state;
    bool resumed = before == AGENT_LINK_BROKEN && state == AGENT_LINK_READY;
    if (state <= before && !resumed)
        return;
    link->state = state;
    if (state != AGENT_LINK_GREETING)
        event_source_set_timer(link->hello_timeout, -1, 0);
    if (state == AGENT_LINK_READY || state == AGENT_LINK_BROKEN)
        tell_state(link, state == AGENT_LINK_BROKEN ? &link->failure : NULL);
    if (state != AGENT_LINK_CLOSED)
        return;
    session_stop(link);
    event_source_set_timer(link->limit_timer, -1, 0);
    (void)transport_want(link->transport, 0); /* unread bytes would wake the loop all the time */
    tell_closed(link, why);
}

void link_fail(struct agent_link *link, const struct failure *why) {
    if (link->state == AGENT_LINK_CLOSED)
        return;
    /* In CLOSING the end was asked for, whatever the reason. */
    bool asked = link->state == AGENT_LINK_CLOSING;
    transport_close(link->transport);
    link_set_state(link, AGENT_LINK_CLOSED, asked ? NULL : why);
}

/* The stream has ended: the link ends with it unless it can reconnect. */
static void on_stream_end(struct agent_link *link, const struct failure *why) {
    if (link->state == AGENT_LINK_CLOSING && session_is_over(link, why))
        link_set_state(link, AGENT_LINK_CLOSED, NULL);
    else if (!session_stream_ended(link, why) && why)
        link_fail(link, why);
}

/* Ends the link because the agent violated the protocol; tells it the reason, if the stream accepts that. */
static void fail_protocol(struct agent_link *link, const struct failure *wrong) {
    struct failure why;
    node_failure(&why, link->node, -EPROTO, "the agent broke the protocol: %s", wrong->text);
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_REFUSE);
    protocol_put_string(&writer, wrong->text, PROTOCOL_SENTENCE_LIMIT);
    size_t length;
    const char *bytes;
    if (outbox_end(&link->outbox, &writer) == 0 && (bytes = outbox_unsent(&link->outbox, &length)))
        (void)transport_write(link->transport, bytes, length); /* one try is enough */
    link_fail(link, &why);
}

static void on_hello_timeout(struct event_source *self, void *context) {
    (void)self;
    struct agent_link *link = context;
    struct failure why;
    node_failure(&why, link->node, -ETIMEDOUT, "the agent did not answer within %.3g s",
                 (double)link->hello_timeout_ns / (double)EVENT_SECOND);
    on_stream_end(link, &why);
}

/* ---- sending */

/* True where frames from the agent are handled in this state. */
static bool is_listening(const struct agent_link *link) {
    return link->state == AGENT_LINK_GREETING || link->state == AGENT_LINK_READY ||
           session_is_reconnecting(link);
}

/* Writes the outbox, as much as the stream accepts now. */
static void write_outbox(struct agent_link *link) {
    const char *bytes;
    size_t length;
    bool is_open = link->transport->state == TRANSPORT_OPEN; /* a new stream may still be starting */
    while (is_open && !link->write_ended && (bytes = outbox_unsent(&link->outbox, &length))) {
        ssize_t sent = transport_write(link->transport, bytes, length);
        if (sent == -EAGAIN)
            break;
        if (sent < 0) {
            /* The reason will be read, or told by the transport. */
            link->write_ended = true;
            break;
        }
        session_note_sent(link);
        outbox_sent(&link->outbox, (size_t)sent);
    }
}

/* Writes the outbox, and sets which events of the transport are wanted. */
static void flush(struct agent_link *link) {
    size_t length;
    write_outbox(link);
    unsigned read = is_listening(link) && !link->read_ended ? EVENT_READ : 0u;
    unsigned write = !link->write_ended && outbox_unsent(&link->outbox, &length) ? EVENT_WRITE : 0u;
    int r = transport_want(link->transport, read | write);
    if (r < 0) {
        struct failure why;
        node_failure(&why, link->node, r, "cannot wait for the agent: %s", strerror(-r));
        on_stream_end(link, &why);
    }
}

/* Deferred: fills the outbox from requests and commands, and writes it; while closing, sends LEAVE. */
static void on_pump(struct event_source *self, void *context) {
    (void)self;
    struct agent_link *link = context;
    if (link->state == AGENT_LINK_GREETING || link->state == AGENT_LINK_READY) {
        request_pump(link);
        command_pump(link);
        if (inbox_owes(&link->inbox))
            (void)outbox_put_acknowledgement(&link->outbox); /* without memory it is tried again later */
    }
    bool leaving = link->state == AGENT_LINK_CLOSING && link->session.number && !link->session.leave_sent;
    if (is_listening(link) || leaving)
        flush(link);
    if (leaving)
        session_send_leave(link);
}

int link_send_hello(struct agent_link *link, struct failure *failure) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_HELLO);
    protocol_put_message(&writer, &(struct protocol_hello){.version = PROTOCOL_VERSION,
                                                           .capabilities = PROTOCOL_CAPABILITIES,
                                                           .session = link->session.number,
                                                           .payload_limit = PROTOCOL_PAYLOAD_LIMIT,
                                                           .pid = (uint32_t)getpid(),
                                                           .program = ASSAY_VERSION,
                                                           .host = host});
    return link_send(link, &writer, failure);
}

/* ---- receiving */

/* Copies the agent's HELLO. */
static void store_greeting(struct agent_link *link, const struct protocol_hello *hello) {
    link->greeting_version = xstrdup(hello->program);
    link->greeting_host = xstrdup(hello->host);
    link->greeting = (struct agent_greeting){.protocol = hello->version,
                                             .capabilities = hello->capabilities,
                                             .version = link->greeting_version,
                                             .host_name = link->greeting_host,
                                             .pid = (pid_t)hello->pid};
    static const unsigned char unknown[PROTOCOL_HASH_SIZE];
    if (memcmp(hello->sha256, unknown, sizeof unknown) != 0)
        for (int i = 0; i < PROTOCOL_HASH_SIZE; i++)
            snprintf(link->greeting.sha256 + 2 * i, 3, "%02x", hello->sha256[i]);
}

/* Handles the agent's HELLO: the link is ready, for the first time or again. Another protocol version fails
 * the link. */
static int handle_hello(struct agent_link *link, const struct protocol_frame *frame,
                        struct failure *failure) {
    struct protocol_hello hello;
    int r = protocol_get_message(frame, &hello, failure);
    if (r < 0)
        return r;
    if (hello.version != PROTOCOL_VERSION || hello.payload_limit < PROTOCOL_PAYLOAD_LIMIT) {
        struct failure why;
        node_failure(
            &why, link->node, -EPROTO,
            "the agent speaks protocol %u, with payloads of %u bytes; this engine (version %s) speaks "
            "protocol %d, with %d",
            hello.version, hello.payload_limit, ASSAY_VERSION, PROTOCOL_VERSION, PROTOCOL_PAYLOAD_LIMIT);
        link_fail(link, &why);
        return 0;
    }
    if (hello.session != link->session.number)
        return failure_set(failure, -EPROTO, "it has session %llx, expected %llx",
                           (unsigned long long)hello.session, (unsigned long long)link->session.number);
    if (link->state == AGENT_LINK_GREETING) {
        store_greeting(link, &hello);
    } else {
        r = outbox_resume(&link->outbox, frame->acknowledged, failure);
        link->greeting.resumed += r == 0;
    }
    if (r < 0)
        return r;
    session_stream_ready(link);
    limit_resume_all(link);
    link_set_state(link, AGENT_LINK_READY, NULL); /* without effect in CLOSING */
    return 0;
}

/* Handles one frame. A negative return is a violation of the protocol. */
static int dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    if (frame->type == PROTOCOL_REFUSE) {
        const char *sentence;
        int r = protocol_get_message(frame, &sentence, failure);
        if (r < 0)
            return r;
        struct failure why;
        node_failure(&why, link->node, -ECONNREFUSED, "%s", sentence);
        link_fail(link, &why);
        return 0;
    }
    if (link->state != AGENT_LINK_READY && frame->type == PROTOCOL_HELLO)
        return handle_hello(link, frame, failure);
    if (link->state != AGENT_LINK_READY)
        return failure_set(failure, -EPROTO, "a %s message came before HELLO",
                           protocol_type_name(frame->type));
    switch (frame->type) {
    case PROTOCOL_ACK:
        return 0;
    case PROTOCOL_FACTS:
    case PROTOCOL_ERROR:
    case PROTOCOL_STATISTICS_REPLY:
    case PROTOCOL_CLOCK_REPLY:
        return request_dispatch(link, frame, failure);
    case PROTOCOL_STARTED:
    case PROTOCOL_FAILED:
    case PROTOCOL_OUTPUT:
    case PROTOCOL_CREDIT:
    case PROTOCOL_EXITED:
        return command_dispatch(link, frame, failure);
    default:
        return failure_set(failure, -EPROTO, "a %s message came to the engine",
                           protocol_type_name(frame->type));
    }
}

static int handle_frames(struct agent_link *link, struct failure *failure) {
    struct protocol_frame frame;
    int r = 0;
    while (is_listening(link) && (r = inbox_next(&link->inbox, &frame, failure)) > 0) {
        r = outbox_acknowledge(&link->outbox, frame.acknowledged, failure);
        if (r == 0)
            r = dispatch(link, &frame, failure);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : 0;
}

/* Reads what the transport has, a bounded number of times, and handles the frames. A frame that breaks the
 * protocol ends the link. */
static void receive(struct agent_link *link) {
    struct failure failure;
    for (int i = 0; i < READS_A_TURN && is_listening(link); i++) {
        char *space;
        size_t size;
        if (inbox_reserve(&link->inbox, &space, &size) < 0)
            return; /* the bytes stay in the transport until there is memory */
        ssize_t got = transport_read(link->transport, space, size);
        if (got == -EAGAIN)
            break;
        if (got <= 0) {
            /* The transport will tell the reason. */
            link->read_ended = true;
            break;
        }
        session_note_heard(link);
        inbox_fill(&link->inbox, (size_t)got);
        if (handle_frames(link, &failure) < 0) {
            fail_protocol(link, &failure);
            return;
        }
        if ((size_t)got < size)
            break;
    }
    inbox_free_idle(&link->inbox); /* saves a hundred MiB for a thousand links */
    /* Acknowledgements, credit and answers may have made room. */
    event_source_defer(link->pump);
}

static void on_ready(struct transport *transport, unsigned events, void *context) {
    (void)transport;
    struct agent_link *link = context;
    if (events & EVENT_READ && is_listening(link))
        receive(link);
    if (events & EVENT_WRITE)
        event_source_defer(link->pump);
}

/* The transport is open or closed. */
static void on_state(struct transport *transport, enum transport_state state, const struct failure *why,
                     void *context) {
    (void)transport;
    struct agent_link *link = context;
    if (state == TRANSPORT_OPEN) {
        if (link->state == AGENT_LINK_OPENING)
            link_set_state(link, AGENT_LINK_GREETING, NULL);
        /* An agent that is told to end before the stream was open need not answer HELLO. */
        if (link->state != AGENT_LINK_CLOSING || session_is_reconnecting(link))
            event_source_set_timer(link->hello_timeout, link->hello_timeout_ns, 0);
        event_source_defer(link->pump);
    } else if (link->state != AGENT_LINK_CLOSED) {
        on_stream_end(link, why);
    }
}

/* ---- making, starting, closing */

int agent_link_new(struct event_loop *loop, struct transport *transport,
                   const struct agent_link_callbacks *callbacks, struct agent_link **ret,
                   struct failure *failure) {
    struct agent_link *link = xcalloc(1, sizeof *link);
    link->loop = loop;
    link->transport = transport;
    session_init(link, transport->session);
    if (callbacks)
        link->callbacks = *callbacks;
    inbox_init(&link->inbox);
    outbox_init(&link->outbox, &link->inbox, OUTBOX_LIMIT);
    link->node = xstrdup(transport->node);
    link->pump = event_loop_add_deferred(loop, on_pump, link);
    link->hello_timeout = event_loop_add_timer(loop, -1, 0, on_hello_timeout, link);
    link->limit_timer = event_loop_add_timer(loop, -1, 0, limit_on_timer, link);
    if (!link->pump || !link->hello_timeout || !link->limit_timer || session_add_sources(link) < 0) {
        agent_link_free(link);
        return failure_memory(failure);
    }
    *ret = link;
    return 0;
}

void agent_link_free(struct agent_link *link) {
    if (!link)
        return;
    /* A daemon does not end with its stream: it is told to, if the stream accepts that now. */
    if ((session_begin_leave(link) || link->state == AGENT_LINK_CLOSING) && !link->outbox.held)
        write_outbox(link);
    transport_free(link->transport);
    event_source_remove(link->pump);
    event_source_remove(link->hello_timeout);
    event_source_remove(link->limit_timer);
    session_clear(link);
    request_free_all(link);
    file_request_free_all(link);
    command_detach_all(link);
    free(link->commands);
    free(link->greeting_version);
    free(link->greeting_host);
    free(link->node);
    inbox_clear(&link->inbox);
    outbox_clear(&link->outbox);
    free(link);
}

int link_start_transport(struct agent_link *link, struct failure *failure) {
    struct transport_listener listener = {.on_state = on_state, .on_ready = on_ready, .context = link};
    return transport_start(link->transport, &listener, failure);
}

int agent_link_start(struct agent_link *link, int64_t timeout_ns, struct failure *failure) {
    if (link->state != AGENT_LINK_IDLE)
        return node_failure(failure, link->node, -EALREADY, "the connection was started before");
    int r = link_send_hello(link, failure);
    if (r == 0)
        r = session_begin(link, failure);
    if (r < 0)
        return r;
    link->hello_timeout_ns = timeout_ns;
    link_set_state(link, AGENT_LINK_OPENING, NULL);
    struct failure own = {0};
    r = link_start_transport(link, &own);
    if (r < 0) {
        node_failure(&link->failure, link->node, r, "%s", own.text);
        link->failed = true;
        link->state = AGENT_LINK_CLOSED; /* no request waits yet, so the failure is the caller's alone */
        if (failure)
            *failure = link->failure;
    }
    return r;
}

/* Asks the agent to end and closes the stream after that. Earlier requests are still sent. */
void agent_link_close(struct agent_link *link) {
    if (link->state == AGENT_LINK_IDLE) {
        link_set_state(link, AGENT_LINK_CLOSED, NULL);
        return;
    }
    if (link->state >= AGENT_LINK_CLOSING)
        return;
    if (session_begin_leave(link)) {
        link_set_state(link, AGENT_LINK_CLOSING, NULL);
        flush(link);
        session_send_leave(link);
        return;
    }
    if (is_listening(link))
        flush(link); /* earlier requests are sent, as much as the stream accepts now */
    if (link->state >= AGENT_LINK_CLOSING)
        return;
    link->session.leave_sent = true; /* no agent is waited for */
    link_set_state(link, AGENT_LINK_CLOSING, NULL);
    transport_close(link->transport);
}

enum agent_link_state agent_link_state(const struct agent_link *link) {
    return link->state;
}

const struct failure *agent_link_failure(const struct agent_link *link) {
    return link->failed ? &link->failure : NULL;
}

const char *agent_link_node(const struct agent_link *link) {
    return link->node;
}

const struct transport *agent_link_transport(const struct agent_link *link) {
    return link->transport;
}

const struct agent_greeting *agent_link_greeting(const struct agent_link *link) {
    return &link->greeting;
}
