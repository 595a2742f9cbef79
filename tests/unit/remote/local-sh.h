/*
 * The other side of an ssh connection, on this machine: what ssh_run_start() promises, by a child that the
 * login shell of the test's choice is. For tests that are about what is run and answered, not about ssh; a
 * program that includes this is linked with it in place of the real one.
 */
#ifndef ASSAY_TESTS_REMOTE_LOCAL_SH_H
#define ASSAY_TESTS_REMOTE_LOCAL_SH_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"
#include "engine/remote/ssh/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ssh_connection {
    struct event_loop *loop;
    const char *shell;        /* a path */
    char *const *environment; /* of what is run */
    unsigned runs;
    size_t cut; /* the input ends after so many bytes, as when a connection breaks; 0: it does not */
    char last_command[1024];
};

struct ssh_run {
    struct ssh_connection *connection;
    const char *input;
    size_t input_left;
    int pipes[3]; /* our ends */
    struct event_source *sources[3], *child;
    pid_t pid;
    struct text output[2];
    bool ended;
    struct ssh_stream_end end;
    ssh_run_callback *callback;
    void *context;
};

const char *ssh_connection_name(const struct ssh_connection *connection) {
    (void)connection;
    return "test";
}

struct event_loop *ssh_connection_loop(const struct ssh_connection *connection) {
    return connection->loop;
}

static void close_pipe(struct ssh_run *run, int which) {
    event_source_remove(take_pointer(run->sources[which]));
    if (run->pipes[which] >= 0)
        close(run->pipes[which]);
    run->pipes[which] = -1;
}

static void free_run(struct ssh_run *run) {
    for (int i = 0; i < 3; i++)
        close_pipe(run, i);
    text_clear(&run->output[0]);
    text_clear(&run->output[1]);
    free(run);
}

static void look_for_end(struct ssh_run *run) {
    if (!run->ended || run->pipes[1] >= 0 || run->pipes[2] >= 0)
        return;
    struct ssh_run_result result = {run->end, run->output[0].bytes, run->output[1].bytes,
                                    run->output[0].length, run->output[1].length};
    run->callback(&result, NULL, run->context);
    free_run(run);
}

static void on_child_end(struct event_source *self, const struct event_child_exit *exit, void *context) {
    (void)self;
    struct ssh_run *run = context;
    run->child = NULL;
    run->ended = true;
    run->end.exited = !exit->signalled;
    run->end.code = exit->code;
    if (exit->signalled)
        snprintf(run->end.signal, sizeof run->end.signal, "%s", sigabbrev_np(exit->code));
    look_for_end(run);
}

static void on_input(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)events;
    struct ssh_run *run = context;
    ssize_t sent = run->input_left > 0 ? write(descriptor, run->input, run->input_left) : 0;
    if (sent > 0) {
        run->input += sent;
        run->input_left -= (size_t)sent;
    }
    if (run->input_left == 0 || (sent < 0 && errno == EPIPE))
        close_pipe(run, 0);
}

static void on_output(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)events;
    struct ssh_run *run = context;
    int which = self == run->sources[1] ? 1 : 2;
    char bytes[65536];
    ssize_t got = read(descriptor, bytes, sizeof bytes);
    if (got > 0) {
        struct text *text = &run->output[which - 1];
        size_t room = text->limit - text->length;
        (void)text_append(text, bytes, (size_t)got < room ? (size_t)got : room);
    } else if (got == 0) {
        close_pipe(run, which);
        look_for_end(run);
    }
}

static int spawn_shell(struct ssh_run *run, const char *command, const int theirs[3]) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t set;
    sigemptyset(&set);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &set);
    sigfillset(&set);
    sigdelset(&set, SIGKILL);
    sigdelset(&set, SIGSTOP);
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
    const char *shell = run->connection->shell, *name = strrchr(shell, '/') + 1;
    bool is_busybox = strcmp(name, "busybox") == 0;
    char *arguments[] = {(char *)(is_busybox ? "sh" : name), (char *)"-c", (char *)command, NULL};
    int r = posix_spawn(&run->pid, shell, &actions, &attributes, arguments, run->connection->environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -r;
}

int ssh_run_start(struct ssh_connection *connection, const char *command, const void *input,
                  size_t input_length, size_t limit, ssh_run_callback *callback, void *context,
                  struct ssh_run **ret, struct failure *failure) {
    struct ssh_run *run = calloc(1, sizeof *run);
    if (!run)
        return failure_memory(failure);
    *run = (struct ssh_run){.connection = connection,
                            .input = input,
                            .input_left = input_length,
                            .callback = callback,
                            .context = context,
                            .pipes = {-1, -1, -1}};
    if (connection->cut > 0 && connection->cut < run->input_left)
        run->input_left = connection->cut;
    text_init(&run->output[0], limit);
    text_init(&run->output[1], limit);
    snprintf(connection->last_command, sizeof connection->last_command, "%s", command);
    connection->runs++;
    int theirs[3];
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            abort();
        theirs[i] = ends[i == 0 ? 0 : 1];
        run->pipes[i] = ends[i == 0 ? 1 : 0];
        fcntl(run->pipes[i], F_SETFL, O_NONBLOCK);
    }
    int r = spawn_shell(run, command, theirs);
    for (int i = 0; i < 3; i++)
        close(theirs[i]);
    if (r < 0) {
        free_run(run);
        return failure_set(failure, r, "cannot run '%s': %s", connection->shell, strerror(-r));
    }
    struct event_loop *loop = connection->loop;
    run->sources[0] = event_loop_add_descriptor(loop, run->pipes[0], EVENT_WRITE, on_input, run);
    for (int i = 1; i < 3; i++)
        run->sources[i] = event_loop_add_descriptor(loop, run->pipes[i], EVENT_READ, on_output, run);
    run->child = event_loop_add_child(loop, run->pid, on_child_end, run);
    *ret = run;
    return 0;
}

/* As sshd when the channel goes: its streams are closed, and the program is left to find out. */
static void reap_later(struct event_source *self, const struct event_child_exit *exit, void *context) {
    (void)self;
    (void)exit;
    (void)context;
}

void ssh_run_cancel(struct ssh_run *run) {
    if (!run)
        return;
    event_source_remove(run->child);
    if (!run->ended)
        (void)event_loop_add_child(run->connection->loop, run->pid, reap_later, NULL);
    free_run(run);
}

#endif
