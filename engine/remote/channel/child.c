#include "engine/remote/channel/child.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FREE_TIMEOUT_MS = 5000, FREE_ROUND_MS = 5 };

/* The child's exit and the end of its streams are separate events. After one of them the other is waited for
 * so long, since processes that the child has started may keep its streams open. */
#define END_TIMEOUT EVENT_SECOND

struct child_channel {
    struct remote_channel head;
    bool ends_in_order;
    pid_t pid; /* 0: it has ended */
    int streams, error_pipe;
    struct event_source *stream_source, *error_source, *child_source;
    struct event_source *turn;    /* deferred: tells the listener that the channel is open, or has ended */
    struct event_source *timeout; /* END_TIMEOUT is over */
    bool open;                    /* on_open() was called */
    bool at_end, error_at_end;    /* of stdout, of stderr */
    bool input_ended;             /* stdin was closed */
    bool has_ended, told;         /* all is known of the end; on_closed() was called */
    struct remote_channel_end end;
    bool busy, freed; /* a callback is running; it has freed the channel */
};

static struct child_channel *child_of(struct remote_channel *channel) {
    return (struct child_channel *)channel; /* the head is the first member */
}

static void child_want(struct remote_channel *channel, unsigned events);

/* Calls the listener, which may free the channel. */
static void tell_ready(struct child_channel *child, unsigned events) {
    child->busy = true;
    if (child->head.listener.on_ready)
        child->head.listener.on_ready(&child->head, events, child->head.listener.context);
    child->busy = false;
    if (child->freed)
        free(child);
}

/* ---- the end */

/* Called when the child has exited or stdout has ended: with both the channel has ended, with one of them the
 * time-out starts. */
static void check_end(struct child_channel *child) {
    if (child->pid == 0 && child->at_end) {
        child->has_ended = true;
        event_source_defer(child->turn);
    } else if (child->pid == 0 || (child->at_end && !child->input_ended)) {
        event_source_set_timer(child->timeout, END_TIMEOUT, 0);
    }
}

static void on_timeout(struct event_source *self, void *context) {
    (void)self;
    struct child_channel *child = context;
    child->has_ended = true;
    event_source_defer(child->turn);
}

static void on_child(struct event_source *self, const struct event_child_exit *exit, void *context) {
    (void)self;
    struct child_channel *child = context;
    child->child_source = NULL;
    child->pid = 0;
    child->end.exited = !exit->signalled;
    child->end.code = exit->code;
    if (exit->signalled)
        snprintf(child->end.signal, sizeof child->end.signal, "%s", sigabbrev_np(exit->code));
    check_end(child);
}

/* Calls on_open once and, after the end of the process, on_closed once. Either callback may free the channel.
 */
static void on_turn(struct event_source *self, void *context) {
    (void)self;
    struct child_channel *child = context;
    const struct remote_channel_listener *listener = &child->head.listener;
    child->busy = true;
    bool was_open = child->open;
    child->open = true;
    if (!was_open && listener->on_open)
        listener->on_open(&child->head, listener->context);
    if (!child->freed && child->has_ended && !child->told) {
        child->told = true;
        child_want(&child->head, 0);
        event_source_set_timer(child->timeout, -1, 0);
        struct remote_channel_end end = child->end;
        if (listener->on_closed)
            listener->on_closed(&child->head, &end, NULL, listener->context);
    }
    child->busy = false;
    if (child->freed)
        free(child);
}

/* ---- the streams */

static void on_streams(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    if (events & EVENT_HANGUP)
        events |= EVENT_READ; /* reading tells the end or the error */
    tell_ready(context, events & (EVENT_READ | EVENT_WRITE));
}

static void on_error_pipe(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    tell_ready(context, EVENT_READ);
}

/* remote_channel_operations.read. Bytes, 0 at the end, -EAGAIN when none are there, or another negative
 * errno. */
static ssize_t child_read(struct remote_channel *channel, void *bytes, size_t size) {
    struct child_channel *child = child_of(channel);
    ssize_t got;
    if (child->at_end)
        return 0;
    do
        got = recv(child->streams, bytes, size, 0);
    while (got < 0 && errno == EINTR);
    if (got > 0 || (got < 0 && errno == EAGAIN))
        return got > 0 ? got : -EAGAIN;
    int r = got < 0 ? -errno : 0;
    child->at_end = true;
    (void)event_source_set_events(child->stream_source, 0);
    check_end(child);
    return r;
}

static ssize_t child_read_error(struct remote_channel *channel, void *bytes, size_t size) {
    struct child_channel *child = child_of(channel);
    ssize_t got;
    do
        got = read(child->error_pipe, bytes, size);
    while (got < 0 && errno == EINTR);
    if (got == 0) {
        child->error_at_end = true;
        (void)event_source_set_events(child->error_source, 0);
    }
    return got < 0 ? -errno : got;
}

static ssize_t child_write(struct remote_channel *channel, const void *bytes, size_t length) {
    ssize_t sent;
    do
        sent = send(child_of(channel)->streams, bytes, length, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

static void child_want(struct remote_channel *channel, unsigned events) {
    struct child_channel *child = child_of(channel);
    unsigned read = events & EVENT_READ;
    (void)event_source_set_events(child->stream_source, child->at_end ? 0 : events);
    (void)event_source_set_events(child->error_source, child->error_at_end ? 0 : read);
}

static int child_end_input(struct remote_channel *channel) {
    struct child_channel *child = child_of(channel);
    child->input_ended = true;
    if (child->pid > 0)
        event_source_set_timer(child->timeout, -1, 0);
    return shutdown(child->streams, SHUT_WR) < 0 ? -errno : 0;
}

/* ---- starting and freeing */

/* Waits up to 5 s for the child to end, after its streams were closed, and then kills its process group. */
static void wait_for_end(pid_t pid) {
    int64_t end_ns = clock_monotonic_ns() + FREE_TIMEOUT_MS * EVENT_MILLISECOND;
    while (clock_monotonic_ns() < end_ns) {
        pid_t got = waitpid(pid, NULL, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR))
            return;
        clock_sleep_ns(FREE_ROUND_MS * EVENT_MILLISECOND);
    }
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* remote_channel_operations.free: kills the process group unless it has ended in order, and waits for the
 * process. */
static void child_free(struct remote_channel *channel) {
    struct child_channel *child = child_of(channel);
    event_source_remove(child->stream_source);
    event_source_remove(child->error_source);
    event_source_remove(child->child_source);
    event_source_remove(child->turn);
    event_source_remove(child->timeout);
    cleanup_close_descriptor(&child->streams);
    if (child->pid > 0 && !child->ends_in_order)
        kill(-child->pid, SIGKILL);
    if (child->pid > 0)
        wait_for_end(child->pid);
    cleanup_close_descriptor(&child->error_pipe);
    child->freed = true;
    if (!child->busy)
        free(child);
}

static const struct remote_channel_operations child_operations = {
    .read = child_read,
    .read_error = child_read_error,
    .write = child_write,
    .want = child_want,
    .end_input = child_end_input,
    .free = child_free,
};

/* Starts the child with a socket as stdin and stdout and a pipe as stderr. 0 or a negative errno. */
static int spawn(struct child_channel *child, const struct child_channel_options *options, int streams,
                 int errors) {
    const char *const *environment = options->environment ? options->environment : (const char **)environ;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_adddup2(&actions, streams, 0);
    posix_spawn_file_actions_adddup2(&actions, streams, 1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    int r = posix_spawnp(&child->pid, options->arguments[0], &actions, &attributes,
                         (char **)options->arguments, (char **)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        child->pid = 0;
    return -r;
}

/* Moves a descriptor above 2, so that it is not overwritten by the child's stdin, stdout and stderr: this
 * process may have closed some of 0 to 2. */
static int move_above_stderr(int *descriptor) {
    if (*descriptor > 2)
        return 0;
    int moved = fcntl(*descriptor, F_DUPFD_CLOEXEC, 3);
    if (moved < 0)
        return -errno;
    close(*descriptor);
    *descriptor = moved;
    return 0;
}

/* Makes the socket pair and the pipe for stderr, and starts the process with their other ends. 0 or a
 * negative errno. */
static int start(struct child_channel *child, const struct child_channel_options *options) {
    int ends[2], pipe_ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    child->streams = ends[0];
    cleanup_close int streams = ends[1];
    if (pipe2(pipe_ends, O_CLOEXEC) < 0)
        return -errno;
    child->error_pipe = pipe_ends[0];
    cleanup_close int errors = pipe_ends[1];
    if (move_above_stderr(&streams) < 0 || move_above_stderr(&errors) < 0 ||
        fcntl(child->streams, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ||
        fcntl(child->error_pipe, F_SETFL, O_RDONLY | O_NONBLOCK) < 0)
        return -errno;
    return spawn(child, options, streams, errors);
}

int child_channel_open(struct event_loop *loop, const struct child_channel_options *options,
                       const struct remote_channel_listener *listener, struct remote_channel **ret,
                       struct failure *failure) {
    struct child_channel *child = xcalloc(1, sizeof *child);
    child->head = (struct remote_channel){.operations = &child_operations, .listener = *listener};
    child->ends_in_order = options->ends_in_order;
    child->streams = child->error_pipe = -1;
    int r = start(child, options);
    if (r == 0) {
        child->child_source = event_loop_add_child(loop, child->pid, on_child, child);
        child->stream_source = event_loop_add_descriptor(loop, child->streams, 0, on_streams, child);
        child->error_source = event_loop_add_descriptor(loop, child->error_pipe, 0, on_error_pipe, child);
        child->timeout = event_loop_add_timer(loop, -1, 0, on_timeout, child);
        child->turn = event_loop_add_deferred(loop, on_turn, child);
        if (!child->child_source || !child->stream_source || !child->error_source || !child->timeout ||
            !child->turn)
            r = -errno;
    }
    if (r < 0) {
        child_free(&child->head);
        return failure_set(failure, r, "cannot start '%s': %s", options->arguments[0], strerror(-r));
    }
    event_source_defer(child->turn);
    *ret = &child->head;
    return 0;
}
