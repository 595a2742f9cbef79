#include "engine/agent/daemon/daemon.h"

#include "engine/agent/controls/elevation.h"
#include "engine/agent/daemon/control-socket.h"
#include "engine/agent/daemon/deployed.h"
#include "engine/agent/daemon/guardian.h"
#include "engine/agent/machine/run-directory.h"
#include "engine/agent/machine/tool.h"
#include "engine/agent/serve/agent.h"
#include "engine/agent/serve/workspace.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VISITOR_LIMIT = 16 };

struct daemon;

/* A connection to the control socket: of a relay, or of a program that lists or ends agents. */
struct visitor {
    struct daemon *daemon;
    int socket; /* -1: unused */
    struct event_source *source;
};

struct daemon {
    const struct daemon_options *options;
    struct agent agent;
    int listener;    /* the control socket */
    int shutdown_fd; /* sent to relays, which see it close when the daemon ends */
    int output;      /* where the line SERVING is written once relays can connect; -1: nowhere */
    struct event_source *listener_source;
    struct visitor visitors[VISITOR_LIMIT];
    struct visitor *relay; /* the visitor whose stream is the link; NULL without a link */
    char *root;            /* absolute; owned */
    int64_t started_wall_ns;
};

/* ---- visitors */

static void visitor_close(struct visitor *visitor) {
    if (visitor->daemon->relay == visitor)
        visitor->daemon->relay = NULL;
    event_source_remove(take_pointer(visitor->source));
    cleanup_close_descriptor(&visitor->socket);
}

static void on_visitor(struct event_source *self, int descriptor, unsigned events, void *context);

/* Adds a visitor on SOCKET, which is taken over. SOCKET is closed when VISITOR_LIMIT is reached: all visitors
 * are processes of our own user. */
static void visitor_open(struct daemon *daemon, int socket) {
    cleanup_close int owned = socket;
    for (int i = 0; i < VISITOR_LIMIT; i++) {
        struct visitor *visitor = &daemon->visitors[i];
        if (visitor->socket >= 0)
            continue;
        visitor->source =
            event_loop_add_descriptor(daemon->agent.loop, owned, EVENT_READ, on_visitor, visitor);
        if (visitor->source)
            visitor->socket = take_descriptor(owned);
        return;
    }
}

static void on_listener(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)events;
    int socket = control_socket_accept(descriptor);
    if (socket >= 0)
        visitor_open(context, socket);
}

/* ---- the link */

/* Sends KIND to the relay of the link, if there is one. */
static void send_to_relay(struct daemon *daemon, enum control_kind kind) {
    if (daemon->relay)
        (void)control_socket_send(daemon->relay->socket, kind, NULL, NULL, 0);
}

/* The link has ended: its relay is told and closed. */
static void on_detached(struct agent *agent, void *context) {
    (void)agent;
    struct daemon *daemon = context;
    send_to_relay(daemon, CONTROL_DETACHED);
    if (daemon->relay)
        visitor_close(daemon->relay);
}

static void on_leaving(struct agent *agent, void *context) {
    (void)agent;
    send_to_relay(context, CONTROL_LEAVING);
}

/* Writes the line "ASSAY-AGENT WHAT SESSION" to OUTPUT: it marks where the frames begin, after what a login
 * may print. The line must be written at once; otherwise the stream is not usable, and the call fails. */
static int write_line(const struct daemon *daemon, int output, const char *what, struct failure *failure) {
    char line[64];
    int length = snprintf(line, sizeof line, "\nASSAY-AGENT %s %016llx\n", what,
                          (unsigned long long)daemon->options->session);
    ssize_t written = write(output, line, (size_t)length);
    if (written == length)
        return 0;
    int code = written < 0 ? -errno : -EAGAIN;
    return failure_set(failure, code, "cannot write to stdout: %s", strerror(-code));
}

/* Makes the streams of MESSAGE the agent's link, in place of an earlier link, and writes the line ATTACHED.
 */
static int attach(struct daemon *daemon, struct control_message *message, struct failure *failure) {
    struct agent *agent = &daemon->agent;
    int *stream = message->descriptors;
    if (stream[0] < 0 || stream[1] < 0)
        return failure_set(failure, -EBADF, "stdin and stdout must be open");
    int output = stream[1];
    int r = agent_attach(agent, stream[0], output, failure);
    if (r < 0)
        return r;
    stream[0] = stream[1] = -1;
    on_detached(agent, daemon); /* closes the relay of the earlier link, if there was one */
    r = write_line(daemon, output, "ATTACHED", failure);
    if (r < 0)
        agent_detach(agent);
    return r;
}

/* A relay asks to attach its streams: answered with ATTACHED and shutdown_fd, LEAVING, or FAILED. */
static void serve_attach(struct visitor *visitor, struct control_message *message) {
    struct daemon *daemon = visitor->daemon;
    if (daemon->agent.state >= AGENT_LEAVING) {
        (void)control_socket_send(visitor->socket, CONTROL_LEAVING, NULL, &daemon->shutdown_fd, 1);
        visitor_close(visitor);
        return;
    }
    struct failure failure;
    int r = attach(daemon, message, &failure);
    if (r == 0 &&
        control_socket_send(visitor->socket, CONTROL_ATTACHED, NULL, &daemon->shutdown_fd, 1) == 0) {
        daemon->relay = visitor;
        return;
    }
    if (r < 0)
        (void)control_socket_send(visitor->socket, CONTROL_FAILED, failure.text, NULL, 0);
    else
        agent_detach(&daemon->agent); /* the relay has ended already */
    visitor_close(visitor);
    if (daemon->agent.state == AGENT_GREETING && !agent_is_attached(&daemon->agent))
        agent_leave(&daemon->agent, NULL); /* the daemon was started for this link, which failed */
}

/* ---- requests of other processes */

/* Replaces control characters in TEXT by '?', since it becomes a field of a line. */
static void make_plain(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

/* Answers LIST with one line on this agent: its session, link, lease, commands, directory and label. */
static void serve_list(struct visitor *visitor) {
    const struct daemon *daemon = visitor->daemon;
    const struct agent *agent = &daemon->agent;
    char line[CONTROL_TEXT_SIZE], directory[PATH_MAX];
    (void)path_of_file(agent->directory, "", directory, sizeof directory);
    make_plain(directory);
    int64_t silence = event_loop_now(agent->loop) - agent->heard_ns;
    snprintf(line, sizeof line, "%016llx\t%s\t%lld\t%lld\t%u\t%ld\t%lld\t%s\t%s",
             (unsigned long long)agent->session, agent->greeted ? "attached" : "alone",
             (long long)(silence / EVENT_SECOND), (long long)(agent->lease_ns / EVENT_SECOND),
             agent->command_count, (long)getpid(), (long long)(daemon->started_wall_ns / EVENT_SECOND),
             directory, daemon->options->label);
    (void)control_socket_send(visitor->socket, CONTROL_LINE, line, NULL, 0);
    visitor_close(visitor);
}

/* Answers END: the agent ends, and the visitor can wait for that by shutdown_fd. */
static void serve_end(struct visitor *visitor) {
    struct daemon *daemon = visitor->daemon;
    (void)control_socket_send(visitor->socket, CONTROL_LEAVING, NULL, &daemon->shutdown_fd, 1);
    visitor_close(visitor);
    agent_leave(&daemon->agent, "the agent was asked on its node to leave");
}

/* A message of a visitor, or its end. */
static void on_visitor(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)events;
    struct visitor *visitor = context;
    struct daemon *daemon = visitor->daemon;
    struct control_message message;
    int r = control_socket_receive(descriptor, &message);
    if (r == -EAGAIN)
        return;
    if (r <= 0) {
        /* A relay that has ended is the end of the link. */
        if (daemon->relay == visitor)
            agent_detach(&daemon->agent);
        visitor_close(visitor);
        return;
    }
    if (message.kind == CONTROL_ATTACH && daemon->relay != visitor)
        serve_attach(visitor, &message);
    else if (message.kind == CONTROL_LIST)
        serve_list(visitor);
    else if (message.kind == CONTROL_END)
        serve_end(visitor);
    else
        visitor_close(visitor);
    control_message_clear(&message);
}

/* ---- start and end */

static void on_signal(struct event_source *self, int number, void *context) {
    (void)self;
    (void)number;
    agent_leave(context, "the agent was asked to end by a signal");
}

/* Sends FAILURE to all visitors but the relay, which gets the sentence through `shutdown_fd`. */
static void send_failure_to_visitors(struct daemon *daemon, const struct failure *failure) {
    for (int i = 0; i < VISITOR_LIMIT; i++) {
        const struct visitor *visitor = &daemon->visitors[i];
        if (visitor->socket >= 0 && visitor != daemon->relay)
            (void)control_socket_send(visitor->socket, CONTROL_FAILED, failure->text, NULL, 0);
    }
}

/* Watches signals and either the control socket or, for session 0, stdin and stdout. */
static int watch_sources(struct daemon *daemon, struct event_loop *loop, int *connection,
                         struct failure *failure) {
    static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
    struct agent *agent = &daemon->agent;
    bool stream = daemon->options->session == 0;
    int r = 0;
    for (size_t i = 0; i < (stream ? 3 : 2); i++)
        if (!event_loop_add_signal(loop, ending[i], on_signal, agent))
            return failure_set(failure, -errno, "cannot watch signals: %s", strerror(errno));
    if (stream)
        return agent_attach(agent, 0, 1, failure);
    daemon->listener_source =
        event_loop_add_descriptor(loop, daemon->listener, EVENT_READ, on_listener, daemon);
    if (!daemon->listener_source)
        return failure_set(failure, -errno, "cannot watch sockets: %s", strerror(errno));
    if (*connection >= 0)
        visitor_open(daemon, take_descriptor(*connection));
    else
        r = write_line(daemon, daemon->output, "SERVING", failure);
    cleanup_close_descriptor(&daemon->output);
    return r;
}

/* Serves until the agent ends. CONNECTION, of the relay that started this daemon, is taken over and set to -1
 * unless an earlier step fails. */
static int serve(struct daemon *daemon, int directory, int *connection, struct failure *failure) {
    struct event_loop *loop = event_loop_new(failure);
    if (!loop)
        return failure->code;
    struct agent *agent = &daemon->agent;
    const struct agent_options options = {
        .directory = directory,
        .root = daemon->root,
        .leave_controls = daemon->options->leave_controls,
        .session = daemon->options->session,
        .listener = {.on_detached = on_detached, .on_leaving = on_leaving, .context = daemon}};
    int r = agent_init(agent, loop, &options, failure);
    if (r < 0) {
        event_loop_free(loop);
        return r;
    }
    r = watch_sources(daemon, loop, connection, failure);
    if (r == 0)
        r = agent_run(agent, failure);
    if (r < 0)
        send_failure_to_visitors(daemon, failure);
    /* No more callbacks: from here on, the end of the sockets is the only message. */
    agent->listener = (struct agent_listener){0};
    for (int i = 0; i < VISITOR_LIMIT; i++)
        visitor_close(&daemon->visitors[i]);
    agent_clear(agent);
    event_source_remove(daemon->listener_source);
    event_loop_free(loop);
    return r;
}

/* Detaches the process from its terminal: a new session, stdin and stdout on /dev/null, stderr on a pipe
 * whose reading end is *RET_SHUTDOWN_FD. */
static int leave_terminal(int *ret_shutdown_fd) {
    setsid();
    cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int ends[2];
    if (null < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    int r = dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(ends[1], 2) < 0 || chdir("/") < 0 ? -errno : 0;
    close(ends[1]);
    *ret_shutdown_fd = ends[0];
    return r;
}

/* Opens the control socket, the run directory and the root, and starts the guardian. On failure the run
 * directory is removed. */
static int open_all(struct daemon *daemon, struct run_directory *directory, int connection,
                    struct failure *failure) {
    const struct daemon_options *options = daemon->options;
    bool stream = options->session == 0;
    daemon->listener = stream ? -1 : control_socket_listen(options->session);
    if (daemon->listener == -EADDRINUSE)
        return failure_set(failure, -EADDRINUSE, "an agent of this session runs already");
    if (!stream && daemon->listener < 0)
        return failure_set(failure, daemon->listener, "cannot listen on a socket: %s",
                           strerror(-daemon->listener));
    unsigned flags = options->remove_directory ? RUN_DIRECTORY_REMOVE : 0;
    int r = options->directory
                ? run_directory_open(directory, options->directory, flags, failure)
                : workspace_open(directory, options->workspace, options->folder, flags, failure);
    if (r < 0)
        return r;
    if (options->root && !(daemon->root = realpath(options->root, NULL)))
        r = failure_set(failure, -errno, "cannot open the root '%s': %s", options->root, strerror(errno));
    tool_pass_root(daemon->root);
    elevation_pass(daemon->options->sudo);
    if (r == 0 && !stream && (r = leave_terminal(&daemon->shutdown_fd)) < 0)
        failure_set(failure, r, "cannot become a daemon: %s", strerror(-r));
    /* The guardian keeps the control socket open. So a process that connects while the agent ends waits until
     * its directory is removed, too, and uses nothing that is about to be removed. */
    const int closed_in_guardian[] = {daemon->shutdown_fd, connection, daemon->output};
    if (r == 0)
        r = guardian_start(directory,
                           &(struct guardian_options){.descriptors = closed_in_guardian,
                                                      .count = stream ? 0 : 3,
                                                      .ignore_hangup = !stream,
                                                      .root = daemon->root,
                                                      .leave_controls = options->leave_controls},
                           failure);
    if (r < 0)
        (void)run_directory_remove(directory, NULL);
    return r;
}

/* Runs the daemon until its agent ends. CONNECTION: the relay that is told whether it started; -1: none. The
 * exit status. */
int daemon_run(const struct daemon_options *options, int connection) {
    static struct daemon daemon;
    if (options->session != 0)
        signal(SIGHUP, SIG_IGN); /* the daemon outlives its terminal */
    daemon.options = options;
    daemon.listener = daemon.shutdown_fd = -1;
    daemon.output = connection < 0 && options->session != 0 ? fcntl(1, F_DUPFD_CLOEXEC, 3) : -1;
    daemon.started_wall_ns = clock_wall_ns();
    for (int i = 0; i < VISITOR_LIMIT; i++)
        daemon.visitors[i] = (struct visitor){.daemon = &daemon, .socket = -1};
    cleanup_close int relay_socket = connection;
    struct run_directory directory = {.folder = -1, .parent = -1, .mark = -1};
    struct failure failure = {0};
    int r = open_all(&daemon, &directory, connection, &failure);
    if (r == 0 && options->image)
        r = deployed_enter(&directory, options->image, &failure);
    if (r == 0)
        r = serve(&daemon, directory.folder, &relay_socket, &failure);
    if (r < 0 && relay_socket >= 0)
        (void)control_socket_send(relay_socket, r == -EADDRINUSE ? CONTROL_TAKEN : CONTROL_FAILED,
                                  failure.text, NULL, 0);
    else if (r < 0)
        tool_complain(1, "%s", failure.text);
    cleanup_close_descriptor(&daemon.listener);
    cleanup_close_descriptor(&daemon.shutdown_fd);
    run_directory_clear(&directory);
    free(take_pointer(daemon.root));
    return r < 0;
}
