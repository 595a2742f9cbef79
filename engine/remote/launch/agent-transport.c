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
    LINE_MAX = 4096,  /* bytes of one of their lines: longer ones are not the relay's */
    WORDS_MAX = 1024, /* bytes of stderr that are kept, the last ones */
    OPTIONS_MAX = 11,
    COMMAND_MAX = 16384,
    SESSION_SIZE = 17, /* 16 hexadecimal digits */
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_SESSION = 69, /* of a relay that was to resume a session which is not there */
    EXIT_NO_IMAGE = 79,   /* of an agent that was to be deployed in an image which is not there */
};
#define RETRY_FIRST (200 * EVENT_MILLISECOND)
/* Before it serves, an agent restores what another left changed, and waits up to 300 s for whoever does so
 * already. */
#define ATTACH_TIMEOUT (330 * EVENT_SECOND)
/* For the login shell to run the agent's command: as long as for that of a delivery. */
#define LOGIN_TIMEOUT (120 * EVENT_SECOND)
/* For the agent to end its commands and to remove its folders. Who closes many has a limit for all. */
#define CLOSE_TIMEOUT (120 * EVENT_SECOND)
/* An image has gigabytes, and all nodes get it at once. */
#define IMAGE_TIMEOUT (3600 * EVENT_SECOND)

/* An agent, shared by a transport and those that transport_renew() makes of it. */
struct launch {
    unsigned users;
    struct launcher *launcher;
    const struct agent_package *package; /* NULL: a local agent */
    const struct agent_image *image;     /* NULL: none */
    char *options[OPTIONS_MAX];          /* of the agent's command; owned, the last one NULL */
    char session[SESSION_SIZE];
    char *path; /* of the agent; NULL until it is known to be elsewhere than usual */
    char *usual_path, *damage;
    struct remote_channel
        *server; /* the step in which the agent runs; NULL: there is none, or it has ended */
};

struct agent_transport {
    struct transport head;
    struct launch *launch;
    struct remote_channel *channel; /* the relay's, or until the agent serves that of its step */
    bool serving;                   /* it is that of the step */
    struct agent_delivery *delivery;
    struct channel_run *image_run; /* brings the image */
    struct agent_arrival arrival;
    bool ready;         /* connected */
    bool delivered;     /* a delivery was begun: one is enough */
    bool image_brought; /* likewise */
    unsigned attempts;
    struct event_source *retry;   /* timer: connects again */
    struct event_source *timeout; /* timer: of the relay, to say its line or to go */
    struct event_source *closed;  /* deferred: tells the listener */
    struct failure failure;       /* of the end, if FAILED */
    bool failed;
    struct text line; /* of stdout, not complete yet */
    size_t preamble;
    bool shell_ran;    /* the login shell has run the command */
    struct text words; /* stderr */
};

static const struct transport_operations agent_operations;

static struct agent_transport *agent_of(struct transport *transport) {
    return (struct agent_transport *)transport; /* the head is the first member */
}

static bool is_local(const struct agent_transport *agent) {
    return !agent->launch->package;
}

/* ---- its end */

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

/* From the loop, never from within a callback of the launcher, which is disconnected here. */
static void on_closed(struct event_source *self, void *context) {
    (void)self;
    struct agent_transport *agent = context;
    release(agent);
    transport_set_state(&agent->head, TRANSPORT_CLOSED, agent->failed ? &agent->failure : NULL);
}

/* WHY: NULL when it went as it should. The first reason counts. */
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

/* ---- what comes on stderr */

static void read_words(struct agent_transport *agent) {
    char bytes[512];
    ssize_t got;
    while ((got = remote_channel_read_error(agent->channel, bytes, sizeof bytes)) > 0) {
        if (agent->words.length + (size_t)got > WORDS_MAX)
            text_consume(&agent->words, agent->words.length + (size_t)got - WORDS_MAX);
        (void)text_append(&agent->words, bytes, (size_t)got);
    }
}

static const char own_words[] = "assay-agent: "; /* before everything that the agent complains of */

/* The last line that says something: of the agent if there is one, for the program that leads to it may have
 * said more. */
static const char *last_line(struct agent_transport *agent) {
    struct text *words = &agent->words;
    while (words->length && (unsigned char)words->bytes[words->length - 1] <= ' ')
        text_cut(words, words->length - 1);
    char *newline = words->length ? strrchr(words->bytes, '\n') : NULL, *line = words->bytes;
    if (newline)
        line = newline + 1;
    for (char *own = words->bytes; (own = strstr(own, own_words)); own++)
        if (own == words->bytes || own[-1] == '\n')
            line = own;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static bool is_own(const char *line) {
    return strncmp(line, own_words, sizeof own_words - 1) == 0;
}

/* Ends the transport with "WHAT HOW: WORDS", HOW being that of END and WORDS the last of stderr. */
static void end_as(struct agent_transport *agent, int code, const char *what,
                   const struct remote_channel_end *relay) {
    char how[128];
    const char *line = last_line(agent);
    struct failure why;
    line += is_own(line) ? sizeof own_words - 1 : 0;
    failure_set(&why, code, "%s %s%s%s", what, remote_channel_end_describe(relay, how, sizeof how),
                line[0] ? ": " : "", line);
    end(agent, &why);
}

/* ---- starting the agent */

static int start_agent(struct agent_transport *agent, struct failure *failure);

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

static void deliver(struct agent_transport *agent) {
    struct failure why;
    agent->delivered = true;
    agent->head.begun = false;                     /* what was tried before could not be started */
    event_source_set_timer(agent->timeout, -1, 0); /* the delivery has its own */
    if (agent_delivery_start(agent->launch->launcher, agent->launch->package, on_delivered, agent,
                             &agent->delivery, &why) < 0)
        end(agent, &why);
}

/* ---- bringing the image */

static void on_image(const struct channel_run_result *result, const struct failure *failure, void *context) {
    struct agent_transport *agent = context;
    struct failure why;
    agent->image_run = NULL;
    event_source_set_timer(agent->timeout, -1, 0);
    if (failure) {
        end(agent, failure);
    } else if (!result->end.exited || result->end.code != 0) {
        text_reset(&agent->words);
        size_t kept = result->error_length < WORDS_MAX ? result->error_length : WORDS_MAX;
        (void)text_append(&agent->words, result->error + result->error_length - kept, kept);
        end_as(agent, -EIO, "cannot bring the image: the node's sh", &result->end);
    } else if (start_agent(agent, &why) < 0) {
        end(agent, &why);
    }
}

/* In single quotes, for a login shell of any kind: no newline, exclamation mark or backslash. What is whole
 * gets its name in one step; another that brings the same may be faster. */
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

static int bring_image(struct agent_transport *agent, struct failure *failure) {
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
    agent->image_brought = true;
    event_source_set_timer(agent->timeout, IMAGE_TIMEOUT, 0);
    return 0;
}

/* Whether the agent itself said what is wrong. Any other end is that of a file which is not there, cannot be
 * run, or is not what its name says: a node that lost its power may have kept the name and not the bytes, and
 * then an empty file does nothing with success, and half a program is killed by a signal. */
static bool relay_explained_itself(struct agent_transport *agent, const struct remote_channel_end *relay) {
    bool its_status = relay->exited && (relay->code == EXIT_FAILED || relay->code == EXIT_USAGE ||
                                        relay->code == EXIT_NO_SESSION);
    return its_status && is_own(last_line(agent));
}

/* It ended before its line. A delivery finds and checks what is there, and replaces what is damaged. A relay
 * to an agent that is running needs a program too: what that was started from may be gone. */
static void relay_refused(struct agent_transport *agent, const struct remote_channel_end *relay) {
    bool resumed = agent->head.resumed;
    struct failure why;
    if (relay->exited && relay->code == EXIT_NO_IMAGE && agent->launch->image && !agent->image_brought) {
        if (bring_image(agent, &why) < 0)
            end(agent, &why);
    } else if (!agent->delivered && !relay_explained_itself(agent, relay))
        deliver(agent);
    else
        end_as(agent, resumed && relay->exited && relay->code == EXIT_NO_SESSION ? -ESTALE : -ECONNABORTED,
               resumed ? "cannot reach the agent: it" : "cannot start the agent: it", relay);
}

static void stream_lost(struct agent_transport *agent, const struct remote_channel_end *relay) {
    bool unknown = !relay->exited && !relay->signal[0];
    if (is_local(agent) ? unknown : relay->exited && relay->code == 0)
        end_with(agent, -ECONNRESET, "the agent closed the connection");
    else
        end_as(agent, -ECONNRESET, is_local(agent) ? "the agent" : "the agent's relay", relay);
}

static void on_channel_closed(struct remote_channel *channel, const struct remote_channel_end *relay,
                              const struct failure *why, void *context) {
    struct agent_transport *agent = context;
    read_words(agent);
    agent->channel = NULL;
    /* A relay that was killed may not have passed on that the agent is to leave. */
    bool in_order = agent->head.state == TRANSPORT_CLOSING &&
                    (is_local(agent) || (relay && !relay->signal[0] && relay->code == 0));
    if (in_order)
        end(agent, NULL);
    else if (why)
        end(agent, why);
    else if (agent->head.state == TRANSPORT_STARTING && !is_local(agent))
        relay_refused(agent, relay);
    else
        stream_lost(agent, relay);
    remote_channel_free(channel);
}

/* ---- waiting for its line */

static void attached(struct agent_transport *agent) {
    event_source_set_timer(agent->timeout, -1, 0);
    text_reset(&agent->words); /* what a login script complained about is not the agent's word */
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

/* The agent has gone with its step: the relay's stream ends too, and says so. */
static void on_server_closed(struct remote_channel *server, const struct remote_channel_end *how,
                             const struct failure *why, void *context) {
    (void)how;
    (void)why;
    struct launch *launch = context;
    launch->server = NULL;
    remote_channel_free(server);
}

/* The agent serves in its step, which is kept; now a relay is to lead to it. */
static void keep_server(struct agent_transport *agent) {
    struct launch *launch = agent->launch;
    launch->server = take_pointer(agent->channel);
    launch->server->listener = (struct remote_channel_listener){
        .on_ready = on_server_ready, .on_closed = on_server_closed, .context = launch};
    struct failure why;
    if (start_agent(agent, &why) < 0)
        end(agent, &why);
}

/* A byte at a time: what follows the line is the link's to read. */
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
            (void)text_append_character(&agent->line,
                                        byte); /* none of the relay's is longer than the limit */
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
            keep_server(agent);
        else if (found)
            attached(agent);
        if (found)
            return;
    }
}

static void drop_output(struct agent_transport *agent) {
    char bytes[4096];
    while (remote_channel_read(agent->channel, bytes, sizeof bytes) > 0)
        continue;
}

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
        attached(agent);
}

static int write_command(const struct agent_transport *agent, struct text *ret, struct failure *failure) {
    const struct launch *launch = agent->launch;
    const char *arguments[2 + OPTIONS_MAX] = {NULL, launch->session, NULL};
    bool is_there = agent->head.resumed || launch->server;
    arguments[0] = is_there ? "--resume" : agent->serving ? "--serve" : "--attach";
    if (!is_there)
        memcpy(arguments + 2, launch->options, sizeof launch->options);
    return agent_package_command(launch->package, launch->path, arguments, ret, failure);
}

/* Or, where it has been started, the relay to it. */
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
        /* A step of a scheduler's may have to wait for its turn. */
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

static void on_ready(struct launcher *launcher, void *context) {
    (void)launcher;
    struct agent_transport *agent = context;
    const struct launch *launch = agent->launch;
    agent->ready = true;
    struct failure why;
    /* A node of which it is known that the binary is not wanted needs no try. */
    if (!launch->path && !agent->head.resumed && launch->package->kind == AGENT_SOURCE)
        deliver(agent);
    else if (start_agent(agent, &why) < 0)
        end(agent, &why);
}

/* 0.2 s, doubling, each by half more or less: many who were refused together do not come back together. */
static int64_t retry_delay(unsigned attempts) {
    uint32_t chance = 0;
    (void)!getrandom(&chance, sizeof chance, GRND_NONBLOCK);
    int64_t delay = RETRY_FIRST << (attempts - 1);
    return delay / 2 + (int64_t)((double)delay * ((double)chance / (double)UINT32_MAX));
}

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
        return agent->launch->image ? bring_image(agent, failure) : start_agent(agent, failure);
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

/* The link has told the agent to leave; the relay goes when the agent has gone. What still comes is of no
 * interest, but the relay must not wait for somebody to read it. */
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

static void drop_launch(struct launch *launch) {
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
    drop_launch(agent->launch);
    free(transport->node);
    free(agent);
}

static int make(struct launch *launch, struct transport **ret, struct failure *failure) {
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

static int agent_renew(struct transport *old, struct transport **ret, struct failure *failure) {
    const struct agent_transport *from = agent_of(old);
    struct transport *made = NULL;
    if (is_local(from))
        return failure_set(failure, -ENOTSUP, "an agent on this machine ends with its connection");
    int r = make(from->launch, &made, failure);
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

/* ---- life */

static int draw_session(char ret[static SESSION_SIZE], struct failure *failure) {
    uint64_t session = 0;
    while (session == 0)
        if (getrandom(&session, sizeof session, 0) != sizeof session)
            return failure_set(failure, -errno, "cannot draw a random number: %s", strerror(errno));
    snprintf(ret, SESSION_SIZE, "%016" PRIx64, session);
    return 0;
}

/* What the options have that no command may have is found here, before anything is started. */
static int check(const struct agent_transport *agent, struct failure *failure) {
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

static void take_options(struct launch *launch, const struct agent_transport_options *options) {
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

int agent_transport_new(struct launcher *launcher, const struct agent_transport_options *options,
                        struct transport **ret, struct failure *failure) {
    struct launch *launch = xcalloc(1, sizeof *launch);
    *launch = (struct launch){.launcher = launcher, .package = options->package, .image = options->image};
    take_options(launch, options);
    int r = 0;
    if (launch->package) {
        launch->usual_path = agent_package_usual_path(launch->package);
        r = draw_session(launch->session, failure);
    }
    struct transport *made = NULL;
    int made_well = make(launch, &made, failure);
    r = r < 0 ? r : made_well;
    if (r == 0 && launch->package)
        r = check(agent_of(made), failure);
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
