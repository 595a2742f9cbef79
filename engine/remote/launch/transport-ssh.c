#include "engine/remote/launch/transport-ssh.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/remote/launch/delivery.h"
#include "engine/remote/ssh/connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    ATTEMPTS_MOST = 5,          /* to log in: the first, and four more */
    PREAMBLE_LIMIT = 256 << 10, /* what login scripts may print before the relay's line */
    LINE_LIMIT = 4096,          /* of it, one line: longer ones are not the relay's */
    WORDS_LIMIT = 1024,         /* of what was said on stderr, the last bytes are kept */
    ARGUMENTS_MOST = 16,
    SESSION_SIZE = 17, /* 16 hexadecimal digits */
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_SESSION = 69, /* of a relay that was to resume a session which is not there */
};
#define RETRY_FIRST (200 * EVENT_MILLISECOND)
#define ATTACH_PATIENCE (60 * EVENT_SECOND) /* a node that is busy starts programs slowly */
#define CLOSE_PATIENCE (10 * EVENT_SECOND)

struct transport_ssh {
    struct transport head;
    struct ssh_client *client;
    const struct agent_package *package;
    char *destination, *folder, *workspace, *label;
    bool remove_directory, write_anywhere, leave_controls;
    struct ssh_connection *connection;
    struct ssh_stream *stream; /* the relay's */
    struct agent_delivery *delivery;
    bool ready;     /* logged in */
    bool delivered; /* a delivery was begun: one is enough */
    unsigned attempts;
    struct event_source *retry;    /* timer: connects again */
    struct event_source *patience; /* timer: of the relay, to say its line or to go */
    struct event_source *closed;   /* deferred: tells of an end that was found from within a call */
    struct event_source *poke;     /* deferred: tells of what is in `early` */
    struct failure failure;        /* to be told then */
    bool failed;
    struct text early; /* the line that is not complete; when open: what came after the relay's line */
    size_t early_at, preamble;
    unsigned wanted;
    struct text words; /* stderr */
    char session[SESSION_SIZE];
    char *path; /* of the agent; NULL until it is known to be elsewhere than usual */
    char *damage;
    char *usual_path;
    struct transport_ssh_agent agent;
};

static const struct transport_operations transport_ssh_operations;

static struct transport_ssh *ssh_of(struct transport *transport) {
    return (struct transport_ssh *)transport; /* the head is the first member */
}

/* ---- its end */

static void let_go(struct transport_ssh *ssh) {
    event_source_set_timer(ssh->retry, -1, 0);
    event_source_set_timer(ssh->patience, -1, 0);
    agent_delivery_cancel(ssh->delivery);
    ssh->delivery = NULL;
    ssh->stream = NULL;
    ssh_connection_free(ssh->connection); /* and its streams */
    ssh->connection = NULL;
}

/* From the loop, never from within a callback of the connection, which goes here. */
static void on_closed(struct event_source *self, void *context) {
    (void)self;
    struct transport_ssh *ssh = context;
    let_go(ssh);
    transport_set_state(&ssh->head, TRANSPORT_CLOSED, ssh->failed ? &ssh->failure : NULL);
}

/* WHY: NULL when it went as it should. The first reason counts. */
static void end(struct transport_ssh *ssh, const struct failure *why) {
    if (ssh->head.state == TRANSPORT_CLOSED)
        return;
    if (why && !ssh->failed) {
        ssh->failed = true;
        ssh->failure = *why;
        snprintf(ssh->failure.place, sizeof ssh->failure.place, "node %s", ssh->head.node);
    }
    event_source_defer(ssh->closed);
}

static void end_with(struct transport_ssh *ssh, int code, const char *sentence) {
    struct failure why;
    failure_set(&why, code, "%s", sentence);
    end(ssh, &why);
}

/* ---- the relay's words */

static void read_words(struct transport_ssh *ssh) {
    char bytes[512];
    ssize_t got;
    while (ssh->stream && (got = ssh_stream_read_error(ssh->stream, bytes, sizeof bytes)) > 0) {
        if (ssh->words.length + (size_t)got > WORDS_LIMIT)
            text_consume(&ssh->words, ssh->words.length + (size_t)got - WORDS_LIMIT);
        (void)text_append(&ssh->words, bytes, (size_t)got); /* only comfort is lost when memory is short */
    }
}

static const char own_words[] = "assay-agent: "; /* before everything that the agent complains of */

/* The last line that says something. */
static const char *last_line(struct transport_ssh *ssh) {
    struct text *words = &ssh->words;
    while (words->length && (unsigned char)words->bytes[words->length - 1] <= ' ')
        words->bytes[--words->length] = '\0';
    const char *newline = words->length ? strrchr(words->bytes, '\n') : NULL;
    return newline ? newline + 1 : words->bytes;
}

static bool is_own(const char *line) {
    return strncmp(line, own_words, sizeof own_words - 1) == 0;
}

/* Without the program's own prefix. */
static const char *last_words(struct transport_ssh *ssh) {
    const char *line = last_line(ssh);
    return is_own(line) ? line + sizeof own_words - 1 : line;
}

static void describe_end(const struct ssh_stream_end *end, char *ret, size_t size) {
    if (end->signal[0])
        snprintf(ret, size, "was killed by signal %s", end->signal);
    else if (end->exited)
        snprintf(ret, size, "ended with exit status %d", end->code);
    else
        snprintf(ret, size, "ended and the server does not say how");
}

/* ---- starting the agent */

static int start_relay(struct transport_ssh *ssh, struct failure *failure);

static void on_delivered(const struct agent_delivered *delivered, const struct failure *failure,
                         void *context) {
    struct transport_ssh *ssh = context;
    ssh->delivery = NULL;
    if (failure) {
        end(ssh, failure);
        return;
    }
    free(ssh->path);
    ssh->path = strdup(delivered->path);
    ssh->damage = delivered->damage ? strdup(delivered->damage) : NULL;
    ssh->agent.delivered = !delivered->found;
    ssh->agent.built = delivered->built;
    ssh->agent.damage = ssh->damage;
    struct failure why;
    int r = ssh->path && (ssh->damage || !delivered->damage) ? start_relay(ssh, &why) : failure_memory(&why);
    if (r < 0)
        end(ssh, &why);
}

static void deliver(struct transport_ssh *ssh) {
    struct failure why;
    ssh->delivered = true;
    ssh->head.begun = false;                      /* what was tried before could not be started */
    event_source_set_timer(ssh->patience, -1, 0); /* the delivery has its own */
    if (agent_delivery_start(ssh->connection, ssh->package, on_delivered, ssh, &ssh->delivery, &why) < 0)
        end(ssh, &why);
}

static void explain_refusal(struct transport_ssh *ssh, const struct ssh_stream_end *relay) {
    char how[128];
    describe_end(relay, how, sizeof how);
    const char *words = last_words(ssh);
    int code = ssh->head.resumed && relay->exited && relay->code == EXIT_NO_SESSION ? -ESTALE : -ECONNABORTED;
    struct failure why;
    failure_set(&why, code, words[0] ? "cannot %s the agent: it %s: %s" : "cannot %s the agent: it %s",
                ssh->head.resumed ? "reach" : "start", how, words);
    end(ssh, &why);
}

/* Whether the agent itself said what is wrong. Any other end is that of a file which is not there, cannot be
 * run, or is not what its name says: a node that lost its power may have kept the name and not the bytes, and
 * then an empty file does nothing with success, and half a program is killed by a signal. */
static bool relay_explained_itself(struct transport_ssh *ssh, const struct ssh_stream_end *relay) {
    bool its_status = relay->exited && (relay->code == EXIT_FAILED || relay->code == EXIT_USAGE ||
                                        relay->code == EXIT_NO_SESSION);
    return its_status && is_own(last_line(ssh));
}

/* Before its line. A delivery finds and checks what is there, and replaces what is damaged. A relay to an
 * agent that is running needs a program too: what that was started from may be gone. */
static void relay_refused(struct transport_ssh *ssh, const struct ssh_stream_end *relay) {
    if (ssh->delivered || relay_explained_itself(ssh, relay))
        explain_refusal(ssh, relay);
    else
        deliver(ssh);
}

static void explain_loss(struct transport_ssh *ssh, const struct ssh_stream_end *relay) {
    char how[128];
    describe_end(relay, how, sizeof how);
    const char *words = last_words(ssh);
    struct failure why;
    if (relay->exited && relay->code == 0)
        failure_set(&why, -ECONNRESET, "the agent closed the connection");
    else
        failure_set(&why, -ECONNRESET, words[0] ? "the agent's relay %s: %s" : "the agent's relay %s", how,
                    words);
    end(ssh, &why);
}

static void on_stream_closed(struct ssh_stream *stream, const struct ssh_stream_end *relay,
                             const struct failure *why, void *context) {
    struct transport_ssh *ssh = context;
    ssh_stream_free(stream);
    ssh->stream = NULL;
    if (why) {
        end(ssh, why);
    } else if (ssh->head.state == TRANSPORT_STARTING) {
        relay_refused(ssh, relay);
    } else if (ssh->head.state == TRANSPORT_OPEN || relay->signal[0] || relay->code != 0) {
        explain_loss(ssh,
                     relay); /* a relay that was killed may not have passed on that the agent is to leave */
    } else {
        end(ssh, NULL);
    }
}

/* ---- waiting for its line */

/* 1 when it was found, and `early` has what came after it; 0 to read on. */
static int look_for_line(struct transport_ssh *ssh) {
    char line[64];
    int length = snprintf(line, sizeof line, "ASSAY-AGENT ATTACHED %s", ssh->session);
    char *newline;
    while ((newline = memchr(ssh->early.bytes, '\n', ssh->early.length))) {
        size_t before = (size_t)(newline - ssh->early.bytes);
        bool found = before == (size_t)length && memcmp(ssh->early.bytes, line, before) == 0;
        text_consume(&ssh->early, before + 1);
        if (found)
            return 1;
    }
    if (ssh->early.length > LINE_LIMIT)
        text_reset(&ssh->early);
    return 0;
}

static void attached(struct transport_ssh *ssh) {
    event_source_set_timer(ssh->patience, -1, 0);
    text_reset(&ssh->words); /* what a login script complained about is not the agent's word */
    ssh->agent.path = ssh->path ? ssh->path : ssh->usual_path;
    (void)ssh_stream_want(ssh->stream, 0);
    transport_set_state(&ssh->head, TRANSPORT_OPEN, NULL);
}

static void read_preamble(struct transport_ssh *ssh) {
    char bytes[LINE_LIMIT];
    ssize_t got;
    while ((got = ssh_stream_read(ssh->stream, bytes, sizeof bytes)) > 0) {
        ssh->preamble += (size_t)got;
        if (ssh->preamble > PREAMBLE_LIMIT || text_append(&ssh->early, bytes, (size_t)got) < 0) {
            end_with(ssh, -EPROTO,
                     "cannot start the agent: something prints without end where only it should print; "
                     "expected login scripts that are quiet without a terminal");
            return;
        }
        if (look_for_line(ssh) == 1) {
            attached(ssh);
            return;
        }
    }
}

static void drop_all(struct transport_ssh *ssh) {
    char bytes[LINE_LIMIT];
    while (ssh_stream_read(ssh->stream, bytes, sizeof bytes) > 0)
        continue;
}

static void on_stream_ready(struct ssh_stream *stream, unsigned events, void *context) {
    (void)stream;
    struct transport_ssh *ssh = context;
    struct transport *head = &ssh->head;
    if (events & EVENT_READ)
        read_words(ssh);
    if (head->state == TRANSPORT_STARTING)
        read_preamble(ssh);
    else if (head->state == TRANSPORT_CLOSING)
        drop_all(ssh);
    else if (head->state == TRANSPORT_OPEN && head->listener.on_ready)
        head->listener.on_ready(head, events, head->listener.context);
}

static void on_stream_open(struct ssh_stream *stream, void *context) {
    (void)context;
    (void)ssh_stream_want(stream, EVENT_READ);
}

static size_t list_arguments(const struct transport_ssh *ssh, const char *ret[ARGUMENTS_MOST]) {
    size_t count = 0;
    ret[count++] = ssh->head.resumed ? "--resume" : "--attach";
    ret[count++] = ssh->session;
    if (!ssh->head.resumed) {
        const struct {
            const char *option, *value;
        } valued[] = {{"--folder", ssh->folder}, {"--workspace", ssh->workspace}, {"--label", ssh->label}};
        for (size_t i = 0; i < sizeof valued / sizeof valued[0]; i++)
            if (valued[i].value) {
                ret[count++] = valued[i].option;
                ret[count++] = valued[i].value;
            }
        if (ssh->remove_directory)
            ret[count++] = "--remove-directory";
        if (ssh->write_anywhere)
            ret[count++] = "--write-anywhere";
        if (ssh->leave_controls)
            ret[count++] = "--leave-controls";
    }
    ret[count] = NULL;
    return count;
}

static int start_relay(struct transport_ssh *ssh, struct failure *failure) {
    const char *arguments[ARGUMENTS_MOST];
    (void)list_arguments(ssh, arguments);
    cleanup(text_clear) struct text command;
    text_init(&command, 16384);
    int r = agent_package_command(ssh->package, ssh->path, arguments, &command, failure);
    if (r < 0)
        return r;
    text_reset(&ssh->words);
    text_reset(&ssh->early);
    ssh->preamble = 0;
    ssh->head.begun = true;
    event_source_set_timer(ssh->patience, ATTACH_PATIENCE, 0);
    struct ssh_stream_listener listener = {.on_open = on_stream_open,
                                           .on_ready = on_stream_ready,
                                           .on_closed = on_stream_closed,
                                           .context = ssh};
    return ssh_stream_open(ssh->connection, command.bytes, &listener, &ssh->stream, failure);
}

/* ---- connecting */

static void on_ready(struct ssh_connection *connection, void *context) {
    (void)connection;
    struct transport_ssh *ssh = context;
    ssh->ready = true;
    struct failure why;
    /* A node of which it is known that the binary is not wanted needs no try. */
    if (!ssh->path && !ssh->head.resumed && agent_package_kind(ssh->package) == AGENT_SOURCE)
        deliver(ssh);
    else if (start_relay(ssh, &why) < 0)
        end(ssh, &why);
}

static bool may_pass(int code) {
    return code == -ECONNREFUSED || code == -ECONNRESET;
}

/* 0.2 s, doubling, each by half more or less: many who were refused together do not come back together. */
static int64_t retry_delay(unsigned attempts) {
    uint32_t chance = 0;
    (void)!getrandom(&chance, sizeof chance, GRND_NONBLOCK);
    int64_t delay = RETRY_FIRST << (attempts - 1);
    return delay / 2 + (int64_t)((double)delay * ((double)chance / (double)UINT32_MAX));
}

static void on_connection_closed(struct ssh_connection *connection, const struct failure *why,
                                 void *context) {
    (void)connection;
    struct transport_ssh *ssh = context;
    if (ssh->head.state == TRANSPORT_STARTING && !ssh->ready && may_pass(why->code) &&
        ssh->attempts < ATTEMPTS_MOST)
        event_source_set_timer(ssh->retry, retry_delay(ssh->attempts), 0);
    else
        end(ssh, why);
}

static int make_connection(struct transport_ssh *ssh, struct failure *failure) {
    struct ssh_connection_listener listener = {
        .on_ready = on_ready, .on_closed = on_connection_closed, .context = ssh};
    ssh->attempts++;
    int r = ssh_connection_new(ssh->client, ssh->destination, &listener, &ssh->connection, failure);
    return r < 0 ? r : ssh_connection_start(ssh->connection, failure);
}

static void connect_again(struct transport_ssh *ssh) {
    struct failure why;
    ssh_connection_free(ssh->connection);
    ssh->connection = NULL;
    if (make_connection(ssh, &why) < 0)
        end(ssh, &why);
}

static void on_retry(struct event_source *self, void *context) {
    (void)self;
    connect_again(context);
}

static void on_patience(struct event_source *self, void *context) {
    (void)self;
    struct transport_ssh *ssh = context;
    if (ssh->head.state == TRANSPORT_CLOSING) {
        end_with(ssh, -ETIMEDOUT, "the agent was told to leave, and its stream does not end");
        return;
    }
    const char *words = last_words(ssh);
    struct failure why;
    failure_set(&why, -ETIMEDOUT, "the agent did not come up within %.3g s%s%s",
                (double)ATTACH_PATIENCE / (double)EVENT_SECOND, words[0] ? ": " : "", words);
    end(ssh, &why);
}

/* ---- operations */

static int transport_ssh_start(struct transport *transport, struct failure *failure) {
    struct transport_ssh *ssh = ssh_of(transport);
    int r = make_connection(ssh, failure);
    if (r < 0) {
        let_go(ssh);
        if (failure)
            snprintf(failure->place, sizeof failure->place, "node %s", transport->node);
    }
    return r;
}

static ssize_t transport_ssh_read(struct transport *transport, void *bytes, size_t size) {
    struct transport_ssh *ssh = ssh_of(transport);
    size_t left = ssh->early.length - ssh->early_at;
    if (left) {
        size_t length = left < size ? left : size;
        memcpy(bytes, ssh->early.bytes + ssh->early_at, length);
        ssh->early_at += length;
        if (length == left) {
            ssh->early_at = 0;
            text_clear(&ssh->early);
        }
        return (ssize_t)length;
    }
    return ssh->stream ? ssh_stream_read(ssh->stream, bytes, size) : 0;
}

static ssize_t transport_ssh_write(struct transport *transport, const void *bytes, size_t length) {
    struct transport_ssh *ssh = ssh_of(transport);
    return ssh->stream ? ssh_stream_write(ssh->stream, bytes, length) : -EPIPE;
}

static void on_poke(struct event_source *self, void *context) {
    struct transport_ssh *ssh = context;
    struct transport *head = &ssh->head;
    if (head->state != TRANSPORT_OPEN || !ssh->early.length || !(ssh->wanted & EVENT_READ))
        return;
    event_source_defer(self); /* as a descriptor would: as long as there is something */
    if (head->listener.on_ready)
        head->listener.on_ready(head, EVENT_READ, head->listener.context);
}

static int transport_ssh_want(struct transport *transport, unsigned events) {
    struct transport_ssh *ssh = ssh_of(transport);
    ssh->wanted = events;
    if (ssh->early.length)
        event_source_defer(ssh->poke);
    return ssh->stream ? ssh_stream_want(ssh->stream, events) : 0;
}

/* The link has told the agent to leave; the relay goes when the agent has gone. What still comes is of no
 * interest, but the relay must not wait for somebody to read it. */
static void transport_ssh_close(struct transport *transport) {
    struct transport_ssh *ssh = ssh_of(transport);
    if (!ssh->stream || ssh->failed) {
        end(ssh, NULL);
        return;
    }
    event_source_set_timer(ssh->patience, CLOSE_PATIENCE, 0);
    (void)ssh_stream_want(ssh->stream, EVENT_READ);
    if (ssh_stream_end_input(ssh->stream) < 0)
        end_with(ssh, -EPIPE, "the stream to the agent has broken");
}

static void transport_ssh_free(struct transport *transport) {
    struct transport_ssh *ssh = ssh_of(transport);
    let_go(ssh);
    event_source_remove(ssh->retry);
    event_source_remove(ssh->patience);
    event_source_remove(ssh->closed);
    event_source_remove(ssh->poke);
    text_clear(&ssh->early);
    text_clear(&ssh->words);
    free(ssh->destination);
    free(ssh->folder);
    free(ssh->workspace);
    free(ssh->label);
    free(ssh->path);
    free(ssh->damage);
    free(ssh->usual_path);
    free(transport->node);
    free(ssh);
}

static int transport_ssh_renew(struct transport *old, struct transport **ret, struct failure *failure) {
    const struct transport_ssh *from = ssh_of(old);
    struct transport_ssh_options options = {.client = from->client,
                                            .package = from->package,
                                            .destination = from->destination,
                                            .node = old->node,
                                            .folder = from->folder,
                                            .workspace = from->workspace,
                                            .label = from->label,
                                            .remove_directory = from->remove_directory,
                                            .write_anywhere = from->write_anywhere,
                                            .leave_controls = from->leave_controls};
    struct transport *made;
    int r = transport_ssh_new(old->loop, &options, &made, failure);
    if (r < 0)
        return r;
    struct transport_ssh *ssh = ssh_of(made);
    ssh->path = from->path ? strdup(from->path) : NULL;
    if (from->path && !ssh->path) {
        transport_free(made);
        return failure_memory(failure);
    }
    ssh->agent.delivered = from->agent.delivered;
    ssh->agent.built = from->agent.built;
    made->resumed = true;
    made->session = old->session;
    memcpy(ssh->session, from->session, sizeof ssh->session);
    *ret = made;
    return 0;
}

static const struct transport_operations transport_ssh_operations = {
    .name = "ssh",
    .start = transport_ssh_start,
    .read = transport_ssh_read,
    .write = transport_ssh_write,
    .want = transport_ssh_want,
    .close = transport_ssh_close,
    .free = transport_ssh_free,
    .renew = transport_ssh_renew,
};

/* ---- life */

static int draw_session(struct transport_ssh *ssh, struct failure *failure) {
    uint64_t session = 0;
    while (session == 0)
        if (getrandom(&session, sizeof session, 0) != sizeof session)
            return failure_set(failure, -errno, "cannot draw a random number: %s", strerror(errno));
    ssh->head.session = session;
    snprintf(ssh->session, sizeof ssh->session, "%016" PRIx64, session);
    return 0;
}

/* What the options have that no command may have is found here, before anything is started. */
static int compose(struct transport_ssh *ssh, struct failure *failure) {
    const char *arguments[ARGUMENTS_MOST];
    (void)list_arguments(ssh, arguments);
    cleanup(text_clear) struct text command;
    text_init(&command, 16384);
    int r = agent_package_command(ssh->package, NULL, arguments, &command, failure);
    if (r < 0)
        return r;
    ssh->usual_path = agent_package_usual_path(ssh->package);
    return ssh->usual_path ? 0 : failure_memory(failure);
}

static bool copy(const char *from, char **ret) {
    *ret = from ? strdup(from) : NULL;
    return !from || *ret;
}

static int fill(struct transport_ssh *ssh, const struct transport_ssh_options *options,
                struct failure *failure) {
    struct event_loop *loop = ssh->head.loop;
    ssh->retry = event_loop_add_timer(loop, -1, 0, on_retry, ssh);
    ssh->patience = event_loop_add_timer(loop, -1, 0, on_patience, ssh);
    ssh->closed = event_loop_add_deferred(loop, on_closed, ssh);
    ssh->poke = event_loop_add_deferred(loop, on_poke, ssh);
    if (!ssh->retry || !ssh->patience || !ssh->closed || !ssh->poke ||
        !copy(options->node ? options->node : options->destination, &ssh->head.node) ||
        !copy(options->destination, &ssh->destination) || !copy(options->folder, &ssh->folder) ||
        !copy(options->workspace, &ssh->workspace) || !copy(options->label, &ssh->label))
        return failure_memory(failure);
    int r = draw_session(ssh, failure);
    return r < 0 ? r : compose(ssh, failure);
}

int transport_ssh_new(struct event_loop *loop, const struct transport_ssh_options *options,
                      struct transport **ret, struct failure *failure) {
    struct transport_ssh *ssh = xcalloc(1, sizeof *ssh);
    ssh->head.operations = &transport_ssh_operations;
    ssh->head.loop = loop;
    ssh->client = options->client;
    ssh->package = options->package;
    ssh->remove_directory = options->remove_directory;
    ssh->write_anywhere = options->write_anywhere;
    ssh->leave_controls = options->leave_controls;
    text_init(&ssh->early, PREAMBLE_LIMIT + LINE_LIMIT);
    text_init(&ssh->words, WORDS_LIMIT + 512);
    int r = fill(ssh, options, failure);
    if (r < 0) {
        transport_free(&ssh->head);
        return r;
    }
    *ret = &ssh->head;
    return 0;
}

const struct transport_ssh_agent *transport_ssh_agent(const struct transport *transport) {
    return transport->operations == &transport_ssh_operations
               ? &((const struct transport_ssh *)transport)->agent
               : NULL;
}
