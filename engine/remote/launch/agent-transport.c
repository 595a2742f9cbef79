#include "engine/remote/launch/agent-transport.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/remote/channel/run.h"
#include "engine/remote/launch/delivery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    ATTEMPTS_MAX = 5, /* to connect: the first, and four more */
    LINE_MAX = 4096,  /* bytes of a line of stdout; the relay's lines are shorter */
    WORDS_MAX = 1024, /* the last bytes of stderr are stored */
    OPTIONS_MAX = 11,
    COMMAND_MAX = 16384,
    SESSION_SIZE = 17, /* 16 hexadecimal digits */
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_SESSION = 69, /* exit status of a relay: the session to resume has no agent */
    EXIT_NO_IMAGE = 79,   /* exit status of an agent: the image to deploy is not on the node */
};
#define RETRY_FIRST (200 * EVENT_MILLISECOND)
/* Before it serves, an agent restores controls that another has left changed, and waits up to 300 s for an
 * agent that is restoring them already. */
#define ATTACH_TIMEOUT (330 * EVENT_SECOND)
/* For the login shell to run the agent's command; the same as in a delivery. */
#define LOGIN_TIMEOUT (120 * EVENT_SECOND)
/* For the agent to end its commands and to remove its folders. A caller that closes many transports has a
 * limit of its own for all. */
#define CLOSE_TIMEOUT (120 * EVENT_SECOND)
/* For an image, which may have gigabytes and is copied to all nodes at once. */
#define IMAGE_TIMEOUT (3600 * EVENT_SECOND)

/* What is known of one agent; shared by the first transport and those that transport_renew() makes of it. */
struct launch {
    unsigned users; /* number of transports; the last one frees it */
    struct launcher *launcher;
    const struct agent_package *package; /* NULL: a local agent */
    const struct agent_image *image;     /* NULL: none */
    char *options[OPTIONS_MAX];          /* of the agent's command; owned, ended by NULL */
    char session[SESSION_SIZE];
    char *path; /* where a delivery has put the agent; NULL: no delivery, the usual path */
    char *usual_path, *damage;
    struct remote_channel *server; /* the step in which the agent runs; NULL: no step, or it has ended */
};

struct agent_transport {
    struct transport head;
    struct launch *launch;
    struct remote_channel *channel; /* of the relay; or, before the agent serves, of its step */
    bool serving;                   /* `channel` is that of the step */
    struct agent_delivery *delivery;
    struct channel_run *image_run; /* the command that copies the image */
    struct agent_arrival arrival;
    bool ready;        /* connected */
    bool delivered;    /* a delivery was begun; there is at most one */
    bool image_copied; /* copying the image was begun, at most once */
    unsigned attempts;
    struct event_source *retry;   /* timer: connects again */
    struct event_source *timeout; /* timer: the relay has not printed its line, or not ended */
    struct event_source *closed;  /* deferred: tells the listener of CLOSED */
    struct failure failure;       /* reason of the end, if `failed` */
    bool failed;
    struct text line;  /* incomplete line of stdout */
    size_t preamble;   /* bytes of stdout before the relay's line */
    bool shell_ran;    /* the login shell has run the command */
    struct text words; /* last bytes of stderr */
};

static const struct transport_operations agent_operations;

static struct agent_transport *agent_of(struct transport *transport) {
    return (struct agent_transport *)transport; /* the head is the first member */
}

static bool is_local(const struct agent_transport *agent) {
    return !agent->launch->package;
}

/* ---- the end */

/* Stops all timers, frees the channels and disconnects the launcher. */
static void release(struct agent_transport *agent) {
    event_source_set_timer(agent->retry, -1, 0);
    event_source_set_timer(agent->timeout, -1, 0);
    agent_delivery_cancel(agent->delivery);
    agent->delivery = NULL;
    channel_run_cancel(take_pointer(agent->image_run));
    remote_channel_free(agent->channel);
    agent->channel = NULL;
    launcher_disconnect(agent->launch->launcher);
}

/* Ends the transport, from the loop: it must not be called within a callback of the launcher, which is
 * disconnected here. */
static void on_closed(struct event_source *self, void *context) {
    (void)self;
    struct agent_transport *agent = context;
    release(agent);
    transport_set_state(&agent->head, TRANSPORT_CLOSED, agent->failed ? &agent->failure : NULL);
}

/* Ends the transport soon, with the reason WHY; NULL: as asked for. A second reason is ignored. */
static void end(struct agent_transport *agent, const struct failure *why) {
    if (agent->head.state == TRANSPORT_CLOSED)
        return;
    if (why && !agent->failed) {
        agent->failed = true;
        agent->failure = *why;
        snprintf(agent->failure.place, sizeof agent->failure.place, "node %s", agent->head.node);
    }
    event_source_defer(agent->closed);
}

static void end_with(struct agent_transport *agent, int code, const char *sentence) {
    struct failure why;
    failure_set(&why, code, "%s", sentence);
    end(agent, &why);
}

/* ---- stderr */

/* Reads stderr, and stores its last WORDS_MAX bytes. */
static void read_words(struct agent_transport *agent) {
    char bytes[512];
    ssize_t got;
    while ((got = remote_channel_read_error(agent->channel, bytes, sizeof bytes)) > 0) {
        if (agent->words.length + (size_t)got > WORDS_MAX)
            text_consume(&agent->words, agent->words.length + (size_t)got - WORDS_MAX);
        (void)text_append(&agent->words, bytes, (size_t)got);
    }
}

static const char message_prefix[] = "assay-agent: "; /* prefix of all messages of the agent */

/* The last line of stderr that is not empty: the agent's last message if there is one, since the launcher's
 * program may have printed more after it. */
static const char *last_line(struct agent_transport *agent) {
    struct text *words = &agent->words;
    while (words->length && (unsigned char)words->bytes[words->length - 1] <= ' ')
        text_cut(words, words->length - 1);
    char *newline = words->length ? strrchr(words->bytes, '\n') : NULL, *line = words->bytes;
    if (newline)
        line = newline + 1;
    for (char *own = words->bytes; (own = strstr(own, message_prefix)); own++)
        if (own == words->bytes || own[-1] == '\n')
            line = own;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static bool is_agent_message(const char *line) {
    return strncmp(line, message_prefix, sizeof message_prefix - 1) == 0;
}

/* Ends the transport with the sentence "WHAT HOW: LINE": HOW the relay ended, and the last line of stderr. */
static void end_with_status(struct agent_transport *agent, int code, const char *what,
                            const struct remote_channel_end *relay) {
    char how[128];
    const char *line = last_line(agent);
    struct failure why;
    line += is_agent_message(line) ? sizeof message_prefix - 1 : 0;
    failure_set(&why, code, "%s %s%s%s", what, remote_channel_end_describe(relay, how, sizeof how),
                line[0] ? ": " : "", line);
    end(agent, &why);
}

/* ---- starting the agent */

static int start_agent(struct agent_transport *agent, struct failure *failure);

/* The delivery has ended: starts the delivered agent, or ends the transport with FAILURE. */
static void on_delivered(const struct agent_delivered *delivered, const struct failure *failure,
                         void *context) {
    struct agent_transport *agent = context;
    struct launch *launch = agent->launch;
    agent->delivery = NULL;
    if (failure) {
        end(agent, failure);
        return;
    }
    free(launch->path);
    free(launch->damage);
    launch->path = xstrdup(delivered->path);
    launch->damage = delivered->damage ? xstrdup(delivered->damage) : NULL;
    agent->arrival = (struct agent_arrival){
        .delivered = !delivered->found, .built = delivered->built, .damage = launch->damage};
    struct failure why;
    if (start_agent(agent, &why) < 0)
        end(agent, &why);
}

/* Delivers the agent to the node. */
static void deliver(struct agent_transport *agent) {
    struct failure why;
    agent->delivered = true;
    agent->head.begun = false;                     /* the agent that was tried did not start */
    event_source_set_timer(agent->timeout, -1, 0); /* a delivery has timers of its own */
    if (agent_delivery_start(agent->launch->launcher, agent->launch->package, on_delivered, agent,
                             &agent->delivery, &why) < 0)
        end(agent, &why);
}

/* ---- copying the image */

/* The command that copies the image has ended: starts the agent, or ends the transport. */
static void on_image(const struct channel_run_result *result, const struct failure *failure, void *context) {
    struct agent_transport *agent = context;
    struct failure why;
    agent->image_run = NULL;
    event_source_set_timer(agent->timeout, -1, 0);
    if (failure) {
        end(agent, failure);
    } else if (!result->end.exited || result->end.code != 0) {
        text_reset(&agent->words);
        size_t length = result->error_length < WORDS_MAX ? result->error_length : WORDS_MAX;
        (void)text_append(&agent->words, result->error + result->error_length - length, length);
        end_with_status(agent, -EIO, "cannot bring the image: the node's sh", &result->end);
    } else if (start_agent(agent, &why) < 0) {
        end(agent, &why);
    }
}

/* In single quotes for any kind of login shell: without newlines, exclamation marks and backslashes. The
 * image gets its name in one step, when it is complete; another engine may have copied the same image first.
 */
const char agent_image_script[] =
    "umask 077; d=$HOME/.cache/assay; i=$d/image-$1; n=$d/.image-$(uname -n)-$$; [ -d \"$i\" ] && exit 0; "
    "[ $(id -u) = 0 ] || { echo deploying a system needs root on the node >&2; exit 1; }; "
    "clean() { rm -rf \"$n\"; }; trap clean EXIT; trap \"exit 1\" HUP INT TERM PIPE; "
    "mkdir -p \"$d\" && mkdir -p \"$n/root\" && mkfifo \"$n/fifo\" || exit 1; "
    "sha256sum <\"$n/fifo\" >\"$n/hash\" & "
    "e=$({ tee \"$n/fifo\" | tar -xp --numeric-owner -f - -C \"$n/root\" || echo failed; } 2>&1); "
    "case $e in *failed) echo \"$e\" | head -n 1 >&2; exit 1;; esac; "
    "wait; read -r h x <\"$n/hash\"; [ \"$h\" = $2 ] || { echo it did not come as it was sent >&2; exit 1; "
    "}; "
    "sync; mv -T \"$n/root\" \"$i\" 2>/dev/null || [ -d \"$i\" ]";

/* Starts the command that copies the image to the node. */
static int copy_image(struct agent_transport *agent, struct failure *failure) {
    const struct launch *launch = agent->launch;
    const struct agent_image *image = launch->image;
    cleanup_free char *command =
        xformat("exec /bin/sh -c '%s' assay-image %s %s", agent_image_script, image->name, image->sha256);
    struct channel_run *run =
        channel_run_new(image->tar, image->length, AGENT_LOGIN_OUTPUT_MAX, on_image, agent);
    struct remote_channel_listener listener = channel_run_listener(run);
    struct remote_channel *channel;
    int r = launcher_open(launch->launcher, is_local(agent) ? LAUNCHER_START : LAUNCHER_ATTACH,
                          is_local(agent) ? NULL : command, &listener, &channel, failure);
    if (r < 0) {
        channel_run_cancel(run);
        return r;
    }
    channel_run_started(run, channel);
    agent->image_run = run;
    agent->image_copied = true;
    event_source_set_timer(agent->timeout, IMAGE_TIMEOUT, 0);
    return 0;
}

/* True where the relay's end is explained by a message of the agent itself. Any other end means that the
 * program is missing, cannot be run, or is damaged: after a power cut a node may have the file's name and not
 * its bytes, and an empty file ends with success, half a program by a signal. */
static bool has_agent_message(struct agent_transport *agent, const struct remote_channel_end *relay) {
    bool its_status = relay->exited && (relay->code == EXIT_FAILED || relay->code == EXIT_USAGE ||
                                        relay->code == EXIT_NO_SESSION);
    return its_status && is_agent_message(last_line(agent));
}

/* The relay ended before its line: copies the image, or delivers the agent, if that may help and was not
 * tried; otherwise ends the transport. A relay to a running agent may need a delivery, too, since the agent's
 * file may be gone. */
static void on_relay_refused(struct agent_transport *agent, const struct remote_channel_end *relay) {
    bool resumed = agent->head.resumed;
    struct failure why;
    if (relay->exited && relay->code == EXIT_NO_IMAGE && agent->launch->image && !agent->image_copied) {
        if (copy_image(agent, &why) < 0)
            end(agent, &why);
    } else if (!agent->delivered && !has_agent_message(agent, relay))
        deliver(agent);
    else
        end_with_status(agent,
                        resumed && relay->exited && relay->code == EXIT_NO_SESSION ? -ESTALE : -ECONNABORTED,
                        resumed ? "cannot reach the agent: it" : "cannot start the agent: it", relay);
}

static void on_stream_lost(struct agent_transport *agent, const struct remote_channel_end *relay) {
    bool unknown = !relay->exited && !relay->signal[0];
    if (is_local(agent) ? unknown : relay->exited && relay->code == 0)
        end_with(agent, -ECONNRESET, "the agent closed the connection");
    else
        end_with_status(agent, -ECONNRESET, is_local(agent) ? "the agent" : "the agent's relay", relay);
}

/* The channel has ended: in order, while starting, or the stream is lost. */
static void on_channel_closed(struct remote_channel *channel, const struct remote_channel_end *relay,
                              const struct failure *why, void *context) {
    struct agent_transport *agent = context;
    read_words(agent);
    agent->channel = NULL;
    /* A relay that was killed may not have passed on that the agent must end. */
    bool in_order = agent->head.state == TRANSPORT_CLOSING &&
                    (is_local(agent) || (relay && !relay->signal[0] && relay->code == 0));
    if (in_order)
        end(agent, NULL);
    else if (why)
        end(agent, why);
    else if (agent->head.state == TRANSPORT_STARTING && !is_local(agent))
        on_relay_refused(agent, relay);
    else
        on_stream_lost(agent, relay);
    remote_channel_free(channel);
}

/* ---- waiting for the relay's line */

/* The stream leads to the agent: the transport is open. */
static void on_attached(struct agent_transport *agent) {
    event_source_set_timer(agent->timeout, -1, 0);
    text_reset(&agent->words); /* messages of login scripts */
    agent->arrival.path = agent->launch->path ? agent->launch->path : agent->launch->usual_path;
    remote_channel_want(agent->channel, 0);
    transport_set_state(&agent->head, TRANSPORT_OPEN, NULL);
}

static void on_server_ready(struct remote_channel *server, unsigned events, void *context) {
    (void)events;
    (void)context;
    char bytes[512];
    while (remote_channel_read(server, bytes, sizeof bytes) > 0 ||
           remote_channel_read_error(server, bytes, sizeof bytes) > 0)
        continue;
}

/* The agent has ended with its step. The relay's stream ends, too, and ends the transport. */
static void on_server_closed(struct remote_channel *server, const struct remote_channel_end *how,
                             const struct failure *why, void *context) {
    (void)how;
    (void)why;
    struct launch *launch = context;
    launch->server = NULL;
    remote_channel_free(server);
}

/* The agent serves in its step: stores the step's channel, and starts a relay to the agent. */
static void store_server(struct agent_transport *agent) {
    struct launch *launch = agent->launch;
    launch->server = take_pointer(agent->channel);
    launch->server->listener = (struct remote_channel_listener){
        .on_ready = on_server_ready, .on_closed = on_server_closed, .context = launch};
    struct failure why;
    if (start_agent(agent, &why) < 0)
        end(agent, &why);
}

/* Reads stdout up to the line of the relay or, in a step, of the agent. One byte is read at a time, because
 * the bytes after the line belong to the link. */
static void read_preamble(struct agent_transport *agent) {
    char expected[64], byte;
    int length = snprintf(expected, sizeof expected, "ASSAY-AGENT %s %s",
                          agent->serving ? "SERVING" : "ATTACHED", agent->launch->session);
    while (remote_channel_read(agent->channel, &byte, 1) == 1) {
        if (++agent->preamble > AGENT_LOGIN_OUTPUT_MAX) {
            end_with(agent, -EPROTO,
                     "cannot start the agent: the login shell printed more than 256 KiB before the agent "
                     "started; silence its startup files");
            return;
        }
        if (byte != '\n') {
            (void)text_append_character(&agent->line, byte); /* bytes beyond the limit are dropped */
            continue;
        }
        bool found = agent->line.length == (size_t)length &&
                     memcmp(agent->line.bytes, expected, agent->line.length) == 0;
        if (strcmp(agent->line.bytes, AGENT_SHELL_LINE) == 0 && !agent->shell_ran) {
            agent->shell_ran = true;
            event_source_set_timer(agent->timeout, ATTACH_TIMEOUT, 0);
        }
        text_reset(&agent->line);
        if (found && agent->serving)
            store_server(agent);
        else if (found)
            on_attached(agent);
        if (found)
            return;
    }
}

static void drop_output(struct agent_transport *agent) {
    char bytes[4096];
    while (remote_channel_read(agent->channel, bytes, sizeof bytes) > 0)
        continue;
}

/* The channel can be read or written. What is read is the start of the agent, its stream, or, while closing,
 * dropped. */
static void on_channel_ready(struct remote_channel *channel, unsigned events, void *context) {
    (void)channel;
    struct agent_transport *agent = context;
    struct transport *head = &agent->head;
    if (events & EVENT_READ)
        read_words(agent);
    if (head->state == TRANSPORT_STARTING)
        read_preamble(agent);
    else if (head->state == TRANSPORT_CLOSING)
        drop_output(agent);
    else if (head->state == TRANSPORT_OPEN && head->listener.on_ready)
        head->listener.on_ready(head, events, head->listener.context);
}

static void on_channel_open(struct remote_channel *channel, void *context) {
    struct agent_transport *agent = context;
    if (!is_local(agent))
        remote_channel_want(channel, EVENT_READ);
    else if (agent->head.state == TRANSPORT_STARTING)
        on_attached(agent);
}

/* Appends the command of the agent or, where it runs already, of a relay to it. */
static int write_command(const struct agent_transport *agent, struct text *ret, struct failure *failure) {
    const struct launch *launch = agent->launch;
    const char *arguments[2 + OPTIONS_MAX] = {NULL, launch->session, NULL};
    bool is_there = agent->head.resumed || launch->server;
    arguments[0] = is_there ? "--resume" : agent->serving ? "--serve" : "--attach";
    if (!is_there)
        memcpy(arguments + 2, launch->options, sizeof launch->options);
    return agent_package_command(launch->package, launch->path, arguments, ret, failure);
}

/* Starts the agent or, where it runs already, a relay to it. */
static int start_agent(struct agent_transport *agent, struct failure *failure) {
    struct launch *launch = agent->launch;
    agent->serving =
        !is_local(agent) && launch->launcher->has_start && !launch->server && !agent->head.resumed;
    cleanup(text_clear) struct text command;
    text_init(&command, COMMAND_MAX);
    if (!is_local(agent)) {
        int r = write_command(agent, &command, failure);
        if (r < 0)
            return r;
        /* A step of a scheduler may have to wait for its turn: no limit for the login shell. */
        agent->shell_ran = agent->serving;
        event_source_set_timer(agent->timeout, agent->serving ? ATTACH_TIMEOUT : LOGIN_TIMEOUT, 0);
    }
    text_reset(&agent->words);
    text_reset(&agent->line);
    agent->preamble = 0;
    agent->head.begun = true;
    struct remote_channel_listener listener = {.on_open = on_channel_open,
                                               .on_ready = on_channel_ready,
                                               .on_closed = on_channel_closed,
                                               .context = agent};
    return launcher_open(launch->launcher, agent->serving ? LAUNCHER_START : LAUNCHER_ATTACH,
                         is_local(agent) ? NULL : command.bytes, &listener, &agent->channel, failure);
}

/* ---- connecting */

/* The launcher is connected: starts the agent; with AGENT_SOURCE it is delivered first. */
static void on_ready(struct launcher *launcher, void *context) {
    (void)launcher;
    struct agent_transport *agent = context;
    const struct launch *launch = agent->launch;
    agent->ready = true;
    struct failure why;
    /* With AGENT_SOURCE the usual path, that of the binary, is not tried. */
    if (!launch->path && !agent->head.resumed && launch->package->kind == AGENT_SOURCE)
        deliver(agent);
    else if (start_agent(agent, &why) < 0)
        end(agent, &why);
}

/* The delay before attempt number ATTEMPTS + 1: 0.2 s, doubling, times a random factor of 0.5 to 1.5, so that
 * connections that were refused together are not tried again together. */
static int64_t retry_delay(unsigned attempts) {
    uint32_t chance = 0;
    (void)!getrandom(&chance, sizeof chance, GRND_NONBLOCK);
    int64_t delay = RETRY_FIRST << (attempts - 1);
    return delay / 2 + (int64_t)((double)delay * ((double)chance / (double)UINT32_MAX));
}

/* The connection is lost: tries again if it was refused temporarily, otherwise ends the transport. */
static void on_lost(struct launcher *launcher, const struct failure *why, void *context) {
    (void)launcher;
    struct agent_transport *agent = context;
    bool may_pass = why->code == -ECONNREFUSED || why->code == -ECONNRESET;
    if (agent->head.state == TRANSPORT_STARTING && !agent->ready && may_pass &&
        agent->attempts < ATTEMPTS_MAX)
        event_source_set_timer(agent->retry, retry_delay(agent->attempts), 0);
    else
        end(agent, why);
}

static int connect_launcher(struct agent_transport *agent, struct failure *failure) {
    struct launcher_listener listener = {.on_ready = on_ready, .on_lost = on_lost, .context = agent};
    agent->attempts++;
    int r = launcher_connect(agent->launch->launcher, &listener, failure);
    if (r == 1 && is_local(agent))
        return agent->launch->image ? copy_image(agent, failure) : start_agent(agent, failure);
    if (r == 1)
        on_ready(agent->launch->launcher, agent);
    return r;
}

static void on_retry(struct event_source *self, void *context) {
    (void)self;
    struct agent_transport *agent = context;
    struct failure why;
    launcher_disconnect(agent->launch->launcher);
    if (connect_launcher(agent, &why) < 0)
        end(agent, &why);
}

/* Fails a start that takes too long, with the step that did not end, or a connection that stays open after
 * closing. */
static void on_timeout(struct event_source *self, void *context) {
    (void)self;
    struct agent_transport *agent = context;
    if (agent->head.state == TRANSPORT_CLOSING) {
        end_with(agent, -ETIMEDOUT, "the agent was asked to end, but its connection stays open");
        return;
    }
    const char *line = last_line(agent);
    struct failure why;
    if (agent->shell_ran)
        failure_set(&why, -ETIMEDOUT, "the agent did not start within %.3g s%s%s",
                    (double)ATTACH_TIMEOUT / (double)EVENT_SECOND, line[0] ? ": " : "", line);
    else
        failure_set(&why, -ETIMEDOUT,
                    "the login shell did not run the agent's command within %.3g s: a startup file such as "
                    "~/.bashrc waits, or starts another program ('exec'); logins without a terminal must be "
                    "left to run their command%s%s",
                    (double)LOGIN_TIMEOUT / (double)EVENT_SECOND, line[0] ? ": " : "", line);
    end(agent, &why);
}

/* ---- operations */

static int agent_start(struct transport *transport, struct failure *failure) {
    struct agent_transport *agent = agent_of(transport);
    int r = connect_launcher(agent, failure);
    if (r >= 0)
        return 0;
    release(agent);
    if (failure)
        snprintf(failure->place, sizeof failure->place, "node %s", transport->node);
    return r;
}

static ssize_t agent_read(struct transport *transport, void *bytes, size_t size) {
    struct remote_channel *channel = agent_of(transport)->channel;
    return channel ? remote_channel_read(channel, bytes, size) : 0;
}

static ssize_t agent_write(struct transport *transport, const void *bytes, size_t length) {
    struct remote_channel *channel = agent_of(transport)->channel;
    return channel ? remote_channel_write(channel, bytes, length) : -EPIPE;
}

static int agent_want(struct transport *transport, unsigned events) {
    struct remote_channel *channel = agent_of(transport)->channel;
    if (channel)
        remote_channel_want(channel, events);
    return 0;
}

/* The link has told the agent to end, and the relay ends when the agent has. Further output is read and
 * dropped, so that the relay does not block. */
static void agent_close(struct transport *transport) {
    struct agent_transport *agent = agent_of(transport);
    if (!agent->channel || agent->failed) {
        end(agent, NULL);
        return;
    }
    if (!is_local(agent))
        event_source_set_timer(agent->timeout, CLOSE_TIMEOUT, 0);
    remote_channel_want(agent->channel, EVENT_READ);
    if (remote_channel_end_input(agent->channel) < 0 && !is_local(agent))
        end_with(agent, -EPIPE, "the connection to the agent has broken");
}

/* Frees what is known of the agent with its last transport. */
static void release_launch(struct launch *launch) {
    if (--launch->users > 0)
        return;
    remote_channel_free(launch->server);
    launcher_free(launch->launcher);
    for (size_t i = 0; launch->options[i]; i++)
        free(launch->options[i]);
    free(launch->path);
    free(launch->usual_path);
    free(launch->damage);
    free(launch);
}

static void agent_free(struct transport *transport) {
    struct agent_transport *agent = agent_of(transport);
    release(agent);
    event_source_remove(agent->retry);
    event_source_remove(agent->timeout);
    event_source_remove(agent->closed);
    text_clear(&agent->line);
    text_clear(&agent->words);
    release_launch(agent->launch);
    free(transport->node);
    free(agent);
}

/* Makes one more transport to the agent of LAUNCH. */
static int make_transport(struct launch *launch, struct transport **ret, struct failure *failure) {
    struct agent_transport *agent = xcalloc(1, sizeof *agent);
    struct event_loop *loop = launch->launcher->loop;
    launch->users++;
    agent->launch = launch;
    agent->head.operations = &agent_operations;
    agent->head.loop = loop;
    agent->head.node = xstrdup(launch->launcher->node);
    agent->head.session = strtoull(launch->session, NULL, 16);
    text_init(&agent->line, LINE_MAX);
    text_init(&agent->words, WORDS_MAX);
    agent->retry = event_loop_add_timer(loop, -1, 0, on_retry, agent);
    agent->timeout = event_loop_add_timer(loop, -1, 0, on_timeout, agent);
    agent->closed = event_loop_add_deferred(loop, on_closed, agent);
    *ret = &agent->head;
    return agent->retry && agent->timeout && agent->closed ? 0 : failure_memory(failure);
}

/* transport_operations.renew: a transport that connects to the same agent again. -ENOTSUP for an agent on
 * this machine. */
static int agent_renew(struct transport *old, struct transport **ret, struct failure *failure) {
    const struct agent_transport *from = agent_of(old);
    struct transport *made = NULL;
    if (is_local(from))
        return failure_set(failure, -ENOTSUP, "an agent on this machine ends with its connection");
    int r = make_transport(from->launch, &made, failure);
    if (r < 0) {
        transport_free(made);
        return r;
    }
    made->resumed = true;
    agent_of(made)->arrival = from->arrival;
    agent_of(made)->arrival.damage = NULL;
    *ret = made;
    return 0;
}

static const struct transport_operations agent_operations = {
    .name = "agent",
    .start = agent_start,
    .read = agent_read,
    .write = agent_write,
    .want = agent_want,
    .close = agent_close,
    .free = agent_free,
    .renew = agent_renew,
};

/* ---- making transports */

static int draw_session(char ret[static SESSION_SIZE], struct failure *failure) {
    uint64_t session = 0;
    while (session == 0)
        if (getrandom(&session, sizeof session, 0) != sizeof session)
            return failure_set(failure, -errno, "cannot draw a random number: %s", strerror(errno));
    snprintf(ret, SESSION_SIZE, "%016" PRIx64, session);
    return 0;
}

/* Refuses options with characters that no command may have, before anything is started. */
static int check_options(const struct agent_transport *agent, struct failure *failure) {
    cleanup(text_clear) struct text command;
    text_init(&command, COMMAND_MAX);
    return write_command(agent, &command, failure);
}

static void add_option(struct launch *launch, const char *name, const char *value) {
    size_t count = 0;
    while (launch->options[count])
        count++;
    launch->options[count] = xstrdup(name);
    launch->options[count + 1] = value ? xstrdup(value) : NULL;
}

/* Adds the options of the agent's command line. */
static void set_options(struct launch *launch, const struct agent_transport_options *options) {
    if (options->folder)
        add_option(launch, "--folder", options->folder);
    if (options->workspace)
        add_option(launch, "--workspace", options->workspace);
    if (options->label)
        add_option(launch, "--label", options->label);
    if (options->sudo)
        add_option(launch, "--sudo", options->sudo);
    if (options->remove_directory)
        add_option(launch, "--remove-directory", NULL);
    if (options->leave_controls)
        add_option(launch, "--leave-controls", NULL);
    if (options->image)
        add_option(launch, "--image", options->image->name);
}

/* RET: a transport that starts an agent by LAUNCHER, which it owns also on failure. Without a package the
 * agent is a program of this machine. */
int agent_transport_new(struct launcher *launcher, const struct agent_transport_options *options,
                        struct transport **ret, struct failure *failure) {
    struct launch *launch = xcalloc(1, sizeof *launch);
    *launch = (struct launch){.launcher = launcher, .package = options->package, .image = options->image};
    set_options(launch, options);
    int r = 0;
    if (launch->package) {
        launch->usual_path = agent_package_usual_path(launch->package);
        r = draw_session(launch->session, failure);
    }
    struct transport *made = NULL;
    int r_made = make_transport(launch, &made, failure);
    r = r < 0 ? r : r_made;
    if (r == 0 && launch->package)
        r = check_options(agent_of(made), failure);
    if (r < 0) {
        transport_free(made);
        return r;
    }
    *ret = made;
    return 0;
}

const struct agent_arrival *agent_transport_arrival(const struct transport *transport) {
    return transport->operations == &agent_operations ? &((const struct agent_transport *)transport)->arrival
                                                      : NULL;
}
