#include "engine/remote/launch/transport-local.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

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

enum {
    WORDS_LIMIT = 1024, /* of what it said on stderr, the last bytes are kept */
    FREE_PATIENCE_MS = 5000,
    FREE_ROUND_MS = 5,
};

/* Its exit and the end of its stream are two events; after one, the other is waited for so long. */
#define VERDICT_PATIENCE EVENT_SECOND

struct transport_local {
    struct transport head;
    char *agent, *directory, *root;
    bool remove_directory;
    int socket, words_pipe;
    struct event_source *socket_source, *words_source, *child_source;
    struct event_source *opened;  /* deferred */
    struct event_source *verdict; /* timer */
    struct text words;
    bool ended, at_end; /* the process; the stream */
    struct event_child_exit exit;
};

static struct transport_local *local_of(struct transport *transport) {
    return (struct transport_local *)transport; /* the head is the first member */
}

/* ---- its last words */

static void read_words(struct transport_local *local) {
    char bytes[512];
    ssize_t got;
    while ((got = read(local->words_pipe, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        if (local->words.length + (size_t)got > WORDS_LIMIT)
            text_consume(&local->words, local->words.length + (size_t)got - WORDS_LIMIT);
        (void)text_append(&local->words, bytes, (size_t)got); /* only comfort is lost when memory is short */
    }
    if (got == 0)
        event_source_set_events(local->words_source, 0);
}

static void on_words(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    read_words(context);
}

/* On one line, without the program's own prefix. */
static const char *last_words(struct transport_local *local) {
    if (local->words_pipe >= 0)
        read_words(local);
    struct text *words = &local->words;
    while (words->length &&
           (words->bytes[words->length - 1] == '\n' || words->bytes[words->length - 1] == ' '))
        words->bytes[--words->length] = '\0';
    for (size_t i = 0; i < words->length; i++)
        if ((unsigned char)words->bytes[i] < ' ')
            words->bytes[i] = ' ';
    static const char prefix[] = "assay-agent: ";
    bool ours = strncmp(words->bytes, prefix, sizeof prefix - 1) == 0;
    return words->bytes + (ours ? sizeof prefix - 1 : 0);
}

/* ---- its end */

static void conclude(struct transport_local *local) {
    if (local->head.state == TRANSPORT_CLOSED)
        return;
    bool asked = local->head.state == TRANSPORT_CLOSING;
    struct failure failure = {0};
    char how[128];
    if (!local->ended)
        snprintf(how, sizeof how, "the agent closed the connection");
    else if (local->exit.signalled)
        snprintf(how, sizeof how, "the agent was killed by signal %d (%s)", local->exit.code,
                 strsignal(local->exit.code));
    else
        snprintf(how, sizeof how, "the agent ended with exit status %d", local->exit.code);
    const char *words = last_words(local);
    failure_set(&failure, -ECONNRESET, words[0] ? "%s: %s" : "%s", how, words);
    snprintf(failure.place, sizeof failure.place, "node %s", local->head.node);
    event_source_set_events(local->socket_source, 0);
    event_source_set_timer(local->verdict, -1, 0);
    transport_set_state(&local->head, TRANSPORT_CLOSED, asked ? NULL : &failure);
}

static void on_verdict(struct event_source *self, void *context) {
    (void)self;
    conclude(context);
}

static void look_for_end(struct transport_local *local) {
    if (local->ended && (local->at_end || local->head.state == TRANSPORT_CLOSING))
        conclude(local);
    else if (local->ended || local->at_end)
        event_source_set_timer(local->verdict, VERDICT_PATIENCE, 0);
}

static void on_child(struct event_source *self, const struct event_child_exit *exit, void *context) {
    (void)self;
    struct transport_local *local = context;
    local->child_source = NULL;
    local->exit = *exit;
    local->ended = true;
    local->head.pid = 0;
    look_for_end(local);
}

/* ---- operations */

static void on_socket(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    struct transport_local *local = context;
    struct transport *head = &local->head;
    if (events & EVENT_HANGUP)
        events |= EVENT_READ; /* reading will say what it is */
    if (head->state == TRANSPORT_OPEN && head->listener.on_ready)
        head->listener.on_ready(head, events & (EVENT_READ | EVENT_WRITE), head->listener.context);
}

static void on_opened(struct event_source *self, void *context) {
    (void)self;
    struct transport_local *local = context;
    if (local->head.state == TRANSPORT_STARTING)
        transport_set_state(&local->head, TRANSPORT_OPEN, NULL);
}

static int spawn_agent(struct transport_local *local, int socket, int words) {
    char *arguments[7] = {local->agent, (char *)"--directory", local->directory};
    size_t count = 3;
    if (local->remove_directory)
        arguments[count++] = (char *)"--remove-directory";
    if (local->root) {
        arguments[count++] = (char *)"--root";
        arguments[count++] = local->root;
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attributes);
    if (r != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    (void)posix_spawnattr_setflags(&attributes,
                                   POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    r = posix_spawn_file_actions_adddup2(&actions, socket, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, socket, 1);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, words, 2);
    pid_t pid = 0;
    if (r == 0)
        r = posix_spawn(&pid, local->agent, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (r == 0)
        local->head.pid = pid;
    return -r;
}

/* The descriptors are above 2, so that none of them is one of those that the child gets. */
static int keep_above(int *descriptor) {
    if (*descriptor > 2)
        return 0;
    int moved = fcntl(*descriptor, F_DUPFD_CLOEXEC, 3);
    if (moved < 0)
        return -errno;
    close(*descriptor);
    *descriptor = moved;
    return 0;
}

static int local_start(struct transport *transport, struct failure *failure) {
    struct transport_local *local = local_of(transport);
    struct event_loop *loop = transport->loop;
    int ends[2], pipe_ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return failure_set(failure, -errno, "cannot make a socket pair: %s", strerror(errno));
    local->socket = ends[0];
    cleanup_close int theirs = ends[1];
    if (pipe2(pipe_ends, O_CLOEXEC) < 0)
        return failure_set(failure, -errno, "cannot make a pipe: %s", strerror(errno));
    local->words_pipe = pipe_ends[0];
    cleanup_close int words = pipe_ends[1];
    int r = keep_above(&theirs);
    if (r == 0)
        r = keep_above(&words);
    if (r == 0 && (fcntl(local->socket, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ||
                   fcntl(local->words_pipe, F_SETFL, O_RDONLY | O_NONBLOCK) < 0))
        r = -errno;
    if (r == 0)
        r = spawn_agent(local, theirs, words);
    if (r < 0)
        return failure_set(failure, r, "cannot start the agent '%s': %s", local->agent, strerror(-r));
    local->child_source = event_loop_add_child(loop, transport->pid, on_child, local);
    local->socket_source = event_loop_add_descriptor(loop, local->socket, 0, on_socket, local);
    local->words_source = event_loop_add_descriptor(loop, local->words_pipe, EVENT_READ, on_words, local);
    local->verdict = event_loop_add_timer(loop, -1, 0, on_verdict, local);
    local->opened = event_loop_add_deferred(loop, on_opened, local);
    if (!local->child_source || !local->socket_source || !local->words_source || !local->verdict ||
        !local->opened)
        return failure_set(failure, -errno, "cannot watch the agent '%s': %s", local->agent, strerror(errno));
    event_source_defer(local->opened);
    return 0;
}

static ssize_t local_read(struct transport *transport, void *bytes, size_t size) {
    struct transport_local *local = local_of(transport);
    ssize_t got;
    do
        got = recv(local->socket, bytes, size, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return -EAGAIN;
    if (got > 0)
        return got;
    int r = got < 0 ? -errno : 0;
    local->at_end = true;
    event_source_set_events(local->socket_source, 0);
    /* Not from within this call: the listener is in the middle of reading. */
    event_source_set_timer(local->verdict, local->ended ? 0 : VERDICT_PATIENCE, 0);
    return r;
}

static ssize_t local_write(struct transport *transport, const void *bytes, size_t length) {
    ssize_t sent;
    do
        sent = send(local_of(transport)->socket, bytes, length, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

static int local_want(struct transport *transport, unsigned events) {
    struct transport_local *local = local_of(transport);
    return local->at_end ? 0 : event_source_set_events(local->socket_source, events);
}

static void local_close(struct transport *transport) {
    struct transport_local *local = local_of(transport);
    event_source_set_events(local->socket_source, 0);
    shutdown(local->socket, SHUT_RDWR);
    if (local->ended) /* not from within this call */
        event_source_set_timer(local->verdict, 0, 0);
}

/* Closing the stream tells the agent to go; its exit is waited for, so that nothing of it is left when we
 * return. */
static void wait_for_end(pid_t pid) {
    int64_t end_ns = clock_monotonic_ns() + FREE_PATIENCE_MS * EVENT_MILLISECOND;
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

static void local_free(struct transport *transport) {
    struct transport_local *local = local_of(transport);
    event_source_remove(local->socket_source);
    event_source_remove(local->words_source);
    event_source_remove(local->child_source);
    event_source_remove(local->opened);
    event_source_remove(local->verdict);
    cleanup_close_descriptor(&local->socket);
    if (transport->pid > 0)
        wait_for_end(transport->pid);
    cleanup_close_descriptor(&local->words_pipe);
    text_clear(&local->words);
    free(local->agent);
    free(local->directory);
    free(local->root);
    free(transport->node);
    free(local);
}

static const struct transport_operations local_operations = {
    .name = "local",
    .start = local_start,
    .read = local_read,
    .write = local_write,
    .want = local_want,
    .close = local_close,
    .free = local_free,
};

int transport_local_new(struct event_loop *loop, const struct transport_local_options *options,
                        struct transport **ret, struct failure *failure) {
    struct transport_local *local = xcalloc(1, sizeof *local);
    local->head.operations = &local_operations;
    local->head.loop = loop;
    local->head.node = strdup(options->node ? options->node : "localhost");
    local->socket = local->words_pipe = -1;
    local->remove_directory = options->remove_directory;
    text_init(&local->words, WORDS_LIMIT);
    local->agent = strdup(options->agent);
    local->directory = strdup(options->directory);
    local->root = options->root ? strdup(options->root) : NULL;
    if (!local->head.node || !local->agent || !local->directory || (options->root && !local->root)) {
        transport_free(&local->head);
        return failure_memory(failure);
    }
    *ret = &local->head;
    return 0;
}
