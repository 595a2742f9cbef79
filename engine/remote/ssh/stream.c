#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/connection-private.h"

#include <errno.h>
#include <libssh/server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WRITE_MAX = 64 << 10, /* most bytes passed to libssh at once, which stores them until they are sent */
    HELD_LIMIT = 8 << 20, /* bytes; more than any window of libssh */
};

enum stream_state {
    STREAM_OPENING,    /* the channel is being opened */
    STREAM_REQUESTING, /* the program is being started */
    STREAM_OPEN,
    STREAM_CLOSED,
    STREAM_ABANDONED, /* freed while OPENING: a channel that the server opens nevertheless is closed */
};

/* A channel of an ssh connection: a command, or a connection that the server forwards to HOST and PORT. */
struct ssh_stream {
    struct remote_channel head;
    struct ssh_connection *connection;
    struct ssh_stream *next, **previous;
    char *command; /* NULL: forwarded to */
    char *host;
    unsigned port;
    enum stream_state state;
    struct event_source *timeout; /* time-out of opening */
    bool probed;                  /* the gateway was sent a keepalive, because a forward was not opened */
    uint64_t heard;               /* bytes that had come from the gateway before that */

    ssh_channel channel; /* NULL: closed */
    struct ssh_channel_callbacks_struct callbacks;
    size_t available[2];       /* bytes of stdout and stderr in libssh's buffers */
    struct text held[2];       /* bytes taken from libssh, which are read first */
    size_t held_at[2];         /* bytes of `held` that were read */
    bool at_end, remote_close; /* the server sent EOF; the server closed the channel */
    bool has_end;              /* `end` is known */
    struct remote_channel_end end;

    unsigned wanted;  /* events that the listener wants */
    bool told_of_end; /* reading has returned 0 */
    bool more_error;  /* stderr has bytes that the listener was not told of */
    bool input_ended; /* stdin was closed */
};

static struct ssh_stream *stream_of(struct remote_channel *channel) {
    return (struct ssh_stream *)channel; /* the head is the first member */
}

/* ---- callbacks of libssh: they only note what has come; it is handled after libssh has returned */

static int on_data(ssh_session session, ssh_channel channel, void *bytes, uint32_t length, int is_error,
                   void *context) {
    (void)session;
    (void)channel;
    (void)bytes;
    struct ssh_stream *stream = context;
    stream->available[is_error ? 1 : 0] = length; /* all bytes in libssh's buffer */
    stream->more_error |= is_error != 0;
    stream->connection->news = true;
    return 0; /* libssh stores them: the window closes while the listener does not read */
}

static void on_eof(ssh_session session, ssh_channel channel, void *context) {
    (void)session;
    (void)channel;
    struct ssh_stream *stream = context;
    stream->at_end = true;
    stream->connection->news = true;
}

static void on_close(ssh_session session, ssh_channel channel, void *context) {
    on_eof(session, channel, context);
    ((struct ssh_stream *)context)->remote_close = true;
}

static void on_exit_status(ssh_session session, ssh_channel channel, int status, void *context) {
    (void)session;
    (void)channel;
    struct ssh_stream *stream = context;
    stream->has_end = true;
    stream->end.exited = true;
    stream->end.code = status;
    stream->connection->news = true;
}

static void on_exit_signal(ssh_session session, ssh_channel channel, const char *signal, int core,
                           const char *message, const char *language, void *context) {
    (void)session;
    (void)channel;
    (void)core;
    (void)message;
    (void)language;
    struct ssh_stream *stream = context;
    stream->has_end = true;
    snprintf(stream->end.signal, sizeof stream->end.signal, "%s", signal);
    stream->connection->news = true;
}

/* ---- the channel */

static void set_state(struct ssh_stream *stream, enum stream_state state) {
    stream->state = state;
    if (state >= STREAM_OPEN && stream->timeout)
        event_source_set_timer(stream->timeout, -1, 0);
}

/* Closes the channel, at the server too if the connection still works. */
static void close_channel(struct ssh_stream *stream) {
    ssh_channel channel = take_pointer(stream->channel);
    if (!channel)
        return;
    /* libssh keeps the channel until the server has closed it, too, and would call back until then. */
    (void)ssh_remove_channel_callbacks(channel, &stream->callbacks);
    bool bound = ssh_channel_is_open(channel) ||
                 (stream->remote_close && ssh_is_connected(stream->connection->session));
    /* When the network is slow, the first call may only send the end of the input. */
    if (bound && ssh_channel_close(channel) == SSH_AGAIN)
        (void)ssh_channel_close(channel);
    ssh_channel_free(channel);
    ssh_connection_check_socket(stream->connection);
}

static void unlink_stream(struct ssh_stream *stream) {
    struct ssh_connection *connection = stream->connection;
    if (connection->cursor == stream)
        connection->cursor = stream->next;
    if (connection->current == stream)
        connection->current = NULL;
    *stream->previous = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    else
        connection->streams_end = stream->previous;
}

static void link_stream(struct ssh_stream *stream) {
    struct ssh_connection *connection = stream->connection;
    stream->next = NULL;
    stream->previous = connection->streams_end;
    *connection->streams_end = stream;
    connection->streams_end = &stream->next;
}

static void free_memory(struct ssh_stream *stream) {
    event_source_remove(stream->timeout);
    text_clear(&stream->held[0]);
    text_clear(&stream->held[1]);
    free(stream->command);
    free(stream->host);
    free(stream);
}

/* Frees the stream; one that is being opened stays, abandoned, until the server has answered. */
static void stream_free(struct remote_channel *channel) {
    struct ssh_stream *stream = stream_of(channel);
    if (stream->state == STREAM_OPENING && stream->channel) {
        set_state(stream, STREAM_ABANDONED);
        stream->head.listener = (struct remote_channel_listener){0};
        if (stream->connection->current == stream)
            stream->connection->current = NULL;
        return;
    }
    close_channel(stream);
    unlink_stream(stream);
    free_memory(stream);
}

/* ---- the end */

static void tell_closed(struct ssh_stream *stream, const struct remote_channel_end *end,
                        const struct failure *why) {
    set_state(stream, STREAM_CLOSED);
    close_channel(stream);
    if (stream->head.listener.on_closed)
        stream->head.listener.on_closed(&stream->head, end, why, stream->head.listener.context);
}

/* libssh only gives the text "Channel opening failure: channel 43 error (2) Connection refused", with the
 * reason of RFC 4254, 5.1, and the server's words. When several channels are refused at once, all get the
 * words of the last. */
enum { OPEN_PROHIBITED = 1 };

/* Returns the reason in libssh's TEXT, or 0, and the server's words in *RET_WORDS. */
static unsigned parse_refusal(const char *text, const char **ret_words) {
    static const char mark[] = "error (";
    const char *error = strstr(text, mark);
    char *end;
    *ret_words = text;
    if (!error)
        return 0;
    unsigned reason = (unsigned)strtoul(error + sizeof mark - 1, &end, 10);
    *ret_words = end + strspn(end, ") ");
    return reason;
}

/* The errno for a refusal, by the server's words or the reason. */
static int refusal_code(unsigned reason, const char *words) {
    static const struct {
        const char *words;
        int code;
    } known[] = {{"onnection refused", -ECONNREFUSED},
                 {"timed out", -ETIMEDOUT},
                 {"No route to host", -EHOSTUNREACH},
                 {"unreachable", -EHOSTUNREACH},
                 {"not known", -ENOENT}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strstr(words, known[i].words))
            return known[i].code;
    return reason == OPEN_PROHIBITED ? -EACCES : -ECONNABORTED;
}

/* Ends a stream that the server has refused to open, with its words. */
static void tell_refused(struct ssh_stream *stream) {
    struct ssh_connection *connection = stream->connection;
    const char *words;
    unsigned reason = parse_refusal(ssh_get_error(connection->session), &words);
    struct failure why;
    if (!stream->command)
        node_failure(&why, connection->name, refusal_code(reason, words),
                     reason == OPEN_PROHIBITED
                         ? "it does not allow connections to '%s' port %u: %s (AllowTcpForwarding "
                           "in its sshd_config)"
                         : "cannot connect to '%s' port %u: %s",
                     stream->host, stream->port, words);
    else
        node_failure(&why, connection->name, -ECONNABORTED, "the server %s: %s",
                     stream->state == STREAM_OPENING ? "opens no more channels" : "does not run commands",
                     words);
    tell_closed(stream, NULL, &why);
}

/* Sends a keepalive to a gateway that does not open a forward. A gateway that still waits for the node
 * answers it; from one that is dead no byte comes. */
static void send_probe(struct ssh_stream *stream) {
    struct ssh_connection *connection = stream->connection;
    stream->probed = true;
    stream->heard = connection->counter.in_bytes;
    (void)ssh_send_keepalive(connection->session); /* returns at once: the session is non-blocking */
    event_source_set_timer(stream->timeout, connection->target.timeout_ns / 2, 0);
    ssh_connection_check_socket(connection);
}

/* The stream was not opened in time: it fails, or the whole connection of a gateway that does not answer. */
static void on_timeout(struct event_source *self, void *context) {
    (void)self;
    struct ssh_stream *stream = context;
    struct ssh_connection *connection = stream->connection;
    if (!stream->command && !stream->probed) {
        send_probe(stream);
        return;
    }
    if (stream->probed && connection->counter.in_bytes == stream->heard) {
        struct failure gone;
        node_failure(&gone, connection->name, -ETIMEDOUT, "it stopped answering");
        ssh_connection_fail(connection, &gone);
        return;
    }
    struct failure why;
    double seconds = (double)connection->target.timeout_ns / (double)EVENT_SECOND;
    if (!stream->command)
        node_failure(&why, connection->name, -ETIMEDOUT, "it did not connect to '%s' port %u within %.3g s",
                     stream->host, stream->port, seconds);
    else
        node_failure(&why, connection->name, -ETIMEDOUT, "the server did not %s within %.3g s",
                     stream->state == STREAM_REQUESTING ? "start the command" : "open a channel", seconds);
    if (stream->state != STREAM_OPENING) {
        tell_closed(stream, NULL, &why);
        return;
    }
    /* The user frees the stream now; its channel stays, abandoned, and is closed when the server opens it. */
    struct remote_channel_listener listener = stream->head.listener;
    stream->head.listener = (struct remote_channel_listener){0};
    if (listener.on_closed)
        listener.on_closed(&stream->head, NULL, &why, listener.context);
}

/* ---- reading and writing */

/* Bytes of stdout (0) or stderr (1) that can be read. */
static size_t pending(const struct ssh_stream *stream, int which) {
    return stream->held[which].length - stream->held_at[which] + stream->available[which];
}

/* Moves all bytes of libssh's buffer into `held`. libssh opens the window anew at every read, however small;
 * reading all at once keeps the memory to two windows. */
static int read_ahead(struct ssh_stream *stream, int which) {
    char *space;
    int r = text_reserve(&stream->held[which], stream->available[which], &space);
    if (r < 0)
        return r;
    int got = ssh_channel_read(stream->channel, space, (uint32_t)stream->available[which], which);
    stream->available[which] = 0;
    if (got < 0)
        return -ECONNRESET;
    stream->held[which].length += (size_t)got;
    return 0;
}

/* Reads bytes that came while nobody read; frees the buffer after the last. Returns their number. */
static ssize_t read_held(struct ssh_stream *stream, int which, void *bytes, size_t size) {
    struct text *held = &stream->held[which];
    size_t length = held->length - stream->held_at[which];
    if (length > size)
        length = size;
    memcpy(bytes, held->bytes + stream->held_at[which], length);
    stream->held_at[which] += length;
    if (stream->held_at[which] == held->length) {
        stream->held_at[which] = 0;
        text_clear(held);
    }
    return (ssize_t)length;
}

/* Reads from `held` or else from libssh. Returns the bytes, 0 at the end, -EAGAIN or -ECONNRESET. */
static ssize_t read_stream(struct ssh_stream *stream, int which, void *bytes, size_t size) {
    if (size == 0)
        return 0;
    if (stream->held[which].length)
        return read_held(stream, which, bytes, size);
    if (stream->available[which] && stream->channel) {
        ssize_t r;
        if (stream->available[which] <= size) {
            r = ssh_channel_read(stream->channel, bytes, (uint32_t)stream->available[which], which);
            stream->available[which] = 0;
        } else if ((r = read_ahead(stream, which)) == 0) {
            r = read_held(stream, which, bytes, size);
        }
        ssh_connection_check_socket(stream->connection);
        return r < 0 ? -ECONNRESET : r;
    }
    if (stream->at_end || stream->state == STREAM_CLOSED)
        return 0;
    return -EAGAIN;
}

static ssize_t stream_read(struct remote_channel *channel, void *bytes, size_t size) {
    struct ssh_stream *stream = stream_of(channel);
    ssize_t got = read_stream(stream, 0, bytes, size);
    if (got == 0 && size)
        stream->told_of_end = true;
    /* The stream ends after its last byte was read. */
    if (got >= 0 && stream->at_end)
        event_source_defer(stream->connection->turn);
    return got;
}

static ssize_t stream_read_error(struct remote_channel *channel, void *bytes, size_t size) {
    struct ssh_stream *stream = stream_of(channel);
    ssize_t got = read_stream(stream, 1, bytes, size);
    if (got >= 0 && stream->at_end)
        event_source_defer(stream->connection->turn);
    return got;
}

static bool can_write(const struct ssh_stream *stream) {
    return stream->remote_close ||
           (ssh_channel_window_size(stream->channel) > 0 && !ssh_connection_is_choked(stream->connection));
}

/* remote_channel_operations.write. The bytes accepted; -EAGAIN: none now; -EPIPE: the other side has closed.
 */
static ssize_t stream_write(struct remote_channel *channel, const void *bytes, size_t length) {
    struct ssh_stream *stream = stream_of(channel);
    if (stream->state < STREAM_OPEN)
        return -EAGAIN;
    if (!stream->channel || stream->remote_close || stream->input_ended)
        return -EPIPE;
    if (!can_write(stream) || length == 0)
        return length ? -EAGAIN : 0;
    uint32_t window = ssh_channel_window_size(stream->channel);
    if (length > window)
        length = window;
    if (length > WRITE_MAX)
        length = WRITE_MAX;
    /* Writing may read, too: the callbacks note it, and a turn handles it. */
    int sent = ssh_channel_write(stream->channel, bytes, (uint32_t)length);
    ssh_connection_check_socket(stream->connection);
    return sent > 0 ? sent : sent == 0 ? -EAGAIN : -ECONNRESET;
}

static void stream_want(struct remote_channel *channel, unsigned events) {
    struct ssh_stream *stream = stream_of(channel);
    if (events & ~stream->wanted)
        event_source_defer(stream->connection->turn);
    stream->wanted = events;
}

static int stream_end_input(struct remote_channel *channel) {
    struct ssh_stream *stream = stream_of(channel);
    if (!stream->channel || stream->state != STREAM_OPEN || stream->input_ended)
        return 0;
    stream->input_ended = true;
    int r = ssh_channel_send_eof(stream->channel);
    ssh_connection_check_socket(stream->connection);
    return r == SSH_ERROR ? -ECONNRESET : 0;
}

/* ---- serving in a turn */

/* Continues opening the channel and starting its program, as far as the server has answered. False: the
 * server refused. */
static bool continue_opening(struct ssh_stream *stream) {
    int r = SSH_OK;
    if (stream->state == STREAM_OPENING || stream->state == STREAM_ABANDONED)
        r = stream->host
                ? ssh_channel_open_forward(stream->channel, stream->host, (int)stream->port, "127.0.0.1", 0)
                : ssh_channel_open_session(stream->channel);
    if (stream->state == STREAM_OPENING && r == SSH_OK)
        set_state(stream, stream->command ? STREAM_REQUESTING : STREAM_OPEN);
    if (stream->state == STREAM_REQUESTING) {
        r = ssh_channel_request_exec(stream->channel, stream->command);
        if (r == SSH_OK)
            set_state(stream, STREAM_OPEN);
    }
    bool gone = stream->state == STREAM_REQUESTING && stream->remote_close;
    return !gone && (r == SSH_OK || r == SSH_AGAIN);
}

/* Continues an abandoned stream until the server has answered, and then closes and frees it. */
static void serve_abandoned(struct ssh_stream *stream) {
    if (continue_opening(stream) && !ssh_channel_is_open(stream->channel))
        return; /* the server has not answered yet */
    close_channel(stream);
    unlink_stream(stream);
    free_memory(stream);
}

/* True where the end is known and all output was read. */
static bool is_finished(const struct ssh_stream *stream) {
    return (stream->remote_close || (stream->has_end && stream->at_end)) && !pending(stream, 0) &&
           !pending(stream, 1);
}

static unsigned ready_events(const struct ssh_stream *stream) {
    unsigned events = 0;
    if (stream->wanted & EVENT_READ &&
        (pending(stream, 0) || stream->more_error || (stream->at_end && !stream->told_of_end)))
        events |= EVENT_READ;
    if (stream->wanted & EVENT_WRITE && !stream->input_ended && can_write(stream))
        events |= EVENT_WRITE;
    return events;
}

/* Continues a stream and calls its listener. Each callback may free the stream, or the whole connection: then
 * connection->current is no longer STREAM. */
static void serve(struct ssh_stream *stream) {
    struct ssh_connection *connection = stream->connection;
    connection->current = stream;
    enum stream_state before = stream->state;
    if (before < STREAM_OPEN && !continue_opening(stream)) {
        if (!ssh_connection_is_broken(connection))
            tell_refused(stream);
        return;
    }
    if (stream->state != STREAM_OPEN)
        return;
    if (before != STREAM_OPEN && stream->head.listener.on_open)
        stream->head.listener.on_open(&stream->head, stream->head.listener.context);
    if (connection->current != stream || stream->state != STREAM_OPEN)
        return;
    unsigned events = ready_events(stream);
    if (events) {
        stream->more_error = false;
        if (stream->head.listener.on_ready)
            stream->head.listener.on_ready(&stream->head, events, stream->head.listener.context);
        if (connection->current != stream || stream->state != STREAM_OPEN)
            return;
    }
    if (is_finished(stream)) {
        struct remote_channel_end end = stream->end; /* a copy, since the listener may free the stream */
        tell_closed(stream, &end, NULL);
    } else if (ready_events(stream)) { /* level-triggered: the listener is called again */
        event_source_defer(connection->turn);
    }
}

/* Serves each stream of the connection once; callbacks may free any of them. */
void ssh_stream_serve_all(struct ssh_connection *connection) {
    struct ssh_stream *first = connection->streams;
    connection->cursor = first;
    while (connection->cursor && !connection->doomed && connection->state == CONNECTION_READY) {
        struct ssh_stream *stream = connection->cursor;
        connection->cursor = stream->next;
        if (stream->state == STREAM_ABANDONED)
            serve_abandoned(stream);
        else if (stream->state != STREAM_CLOSED)
            serve(stream);
    }
    connection->cursor = connection->current = NULL;
    /* The first stream is moved to the end, so that each is served first in turn when the connection is full.
     */
    if (!connection->doomed && connection->streams == first && first && first->next) {
        unlink_stream(first);
        link_stream(first);
    }
}

void ssh_stream_detach_all(struct ssh_connection *connection) {
    for (struct ssh_stream *stream = connection->streams; stream; stream = stream->next)
        if (stream->channel) {
            (void)ssh_remove_channel_callbacks(stream->channel, &stream->callbacks);
            stream->channel = NULL;
        }
}

void ssh_stream_fail_all(struct ssh_connection *connection, const struct failure *why) {
    for (;;) {
        struct ssh_stream *stream = connection->streams;
        while (stream && stream->state >= STREAM_CLOSED)
            stream = stream->next;
        if (!stream || connection->doomed)
            return;
        tell_closed(stream, NULL, why);
    }
}

void ssh_stream_free_all(struct ssh_connection *connection) {
    while (connection->streams) {
        struct ssh_stream *stream = connection->streams;
        unlink_stream(stream);
        free_memory(stream);
    }
}

/* ---- opening streams */

static const struct remote_channel_operations stream_operations = {
    .read = stream_read,
    .read_error = stream_read_error,
    .write = stream_write,
    .want = stream_want,
    .end_input = stream_end_input,
    .free = stream_free,
};

/* Opens an ssh channel that runs COMMAND, or leads to HOST and PORT. -ENOTCONN: the connection is not ready.
 */
static int open_stream(struct ssh_connection *connection, const char *command, const char *host,
                       unsigned port, const struct remote_channel_listener *listener,
                       struct remote_channel **ret, struct failure *failure) {
    if (connection->state != CONNECTION_READY)
        return node_failure(failure, connection->name, -ENOTCONN, "there is no connection");
    struct ssh_stream *stream = xcalloc(1, sizeof *stream);
    stream->head = (struct remote_channel){.operations = &stream_operations, .listener = *listener};
    stream->connection = connection;
    stream->command = command ? xstrdup(command) : NULL;
    stream->host = host ? xstrdup(host) : NULL;
    stream->port = port;
    text_init(&stream->held[0], HELD_LIMIT);
    text_init(&stream->held[1], HELD_LIMIT);
    stream->callbacks = (struct ssh_channel_callbacks_struct){
        .userdata = stream,
        .channel_data_function = on_data,
        .channel_eof_function = on_eof,
        .channel_close_function = on_close,
        .channel_exit_status_function = on_exit_status,
        .channel_exit_signal_function = on_exit_signal,
    };
    ssh_callbacks_init(&stream->callbacks);
    stream->timeout =
        event_loop_add_timer(connection->client->loop, connection->target.timeout_ns, 0, on_timeout, stream);
    stream->channel = ssh_channel_new(connection->session);
    /* The callbacks are set before the first request, because the exit status comes only once. */
    if (!stream->timeout || !stream->channel ||
        ssh_set_channel_callbacks(stream->channel, &stream->callbacks) != SSH_OK) {
        ssh_channel_free(stream->channel);
        free_memory(stream);
        return failure_memory(failure);
    }
    link_stream(stream);
    event_source_defer(connection->turn);
    *ret = &stream->head;
    return 0;
}

int ssh_connection_open(struct ssh_connection *connection, const char *command,
                        const struct remote_channel_listener *listener, struct remote_channel **ret,
                        struct failure *failure) {
    return open_stream(connection, command, NULL, 0, listener, ret, failure);
}

int ssh_connection_open_forward(struct ssh_connection *connection, const char *host, unsigned port,
                                const struct remote_channel_listener *listener, struct remote_channel **ret,
                                struct failure *failure) {
    return open_stream(connection, NULL, host, port, listener, ret, failure);
}
