#include "engine/agent/daemon/relay.h"

#include "engine/agent/daemon/control-socket.h"
#include "engine/agent/machine/tool.h"
#include "engine/agent/serve/memory.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_TIMEOUT_MS = 5000 };

enum { TRIES = 8 }; /* a try fails where the daemon is ending, or another relay starts one first */

int relay_complain_of_absence(uint64_t session) {
    return tool_complain(RELAY_UNAVAILABLE, "there is no agent of session %016llx on this node",
                         (unsigned long long)session);
}

/* Waits until the daemon closes SHUTDOWN_FD, and copies its messages to stderr. 1: there were none; 0: some;
 * -ETIMEDOUT. */
int relay_wait_for_end(int shutdown_fd, int timeout_ms) {
    char words[512];
    bool no_messages = true;
    int64_t start = clock_monotonic_ns();
    for (;;) {
        ssize_t got = read(shutdown_fd, words, sizeof words);
        if (got < 0 && errno == EAGAIN) {
            int64_t left = timeout_ms - (clock_monotonic_ns() - start) / 1000000;
            if (timeout_ms >= 0 && left <= 0)
                return -ETIMEDOUT;
            (void)clock_poll(&(struct pollfd){.fd = shutdown_fd, .events = POLLIN},
                             timeout_ms < 0 ? -1 : left * INT64_C(1000000));
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return no_messages;
        no_messages = false;
        (void)!write(2, words, (size_t)got);
    }
}

/* Starts a daemon in a child. Returns a connection to it, or a negative errno. */
static int start_daemon(const struct daemon_options *options) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        exit(daemon_run(options, ends[1]));
    }
    int r = pid < 0 ? -errno : ends[0];
    close(ends[1]);
    if (r < 0)
        close(ends[0]);
    return r;
}

/* Waits for the end of the link, or of the agent, and returns the exit status. The relay's own copy of the
 * stream is closed first, so that the engine sees when the daemon closes it. */
static int wait_for_link_end(int connection, int shutdown_fd) {
    close(0);
    close(1);
    memory_forget_code();
    struct control_message message;
    int r = control_socket_receive(connection, &message);
    if (r > 0)
        control_message_clear(&message);
    if (r > 0 && message.kind == CONTROL_DETACHED)
        return 0;
    bool asked = r > 0 && message.kind == CONTROL_LEAVING;
    bool no_messages = relay_wait_for_end(shutdown_fd, -1) > 0;
    if (!asked)
        return tool_complain(1, "the agent died");
    return no_messages ? 0 : 1;
}

/* Passes stdin and stdout to the daemon and waits. Returns an exit status, or -EAGAIN: the daemon has ended.
 * FRESH: the daemon was started for this stream. */
static int attach_stream(int connection, bool fresh) {
    const int stream[2] = {0, 1};
    /* If the daemon has ended already, its last message can still be received. */
    (void)control_socket_send(connection, CONTROL_ATTACH, NULL, stream, 2);
    struct control_message message;
    int r = control_socket_receive(connection, &message);
    if (r <= 0)
        return fresh ? tool_complain(1, "the agent died while it started") : -EAGAIN;
    cleanup_close int shutdown_fd = take_descriptor(message.descriptors[0]);
    control_message_clear(&message);
    switch (message.kind) {
    case CONTROL_ATTACHED:
        return wait_for_link_end(connection, shutdown_fd);
    case CONTROL_LEAVING:
        (void)relay_wait_for_end(shutdown_fd, -1);
        return -EAGAIN;
    case CONTROL_FAILED:
        return tool_complain(1, "%s", message.text);
    default:
        return -EAGAIN;
    }
}

/* Connects stdin and stdout to the daemon of SESSION. Without one, starts it, if OPTIONS are given. The exit
 * status. */
int relay(uint64_t session, const struct daemon_options *options) {
    /* The relay, and the daemon that it starts, outlive their terminal. */
    signal(SIGHUP, SIG_IGN);
    for (int i = 0; i < TRIES; i++) {
        cleanup_close int connection = control_socket_connect(session, CONNECT_TIMEOUT_MS, NULL);
        bool fresh = connection == -ECONNREFUSED && options;
        if (fresh)
            connection = start_daemon(options);
        if (connection == -ECONNREFUSED)
            break;
        if (connection == -EPERM)
            return tool_complain(1, "the session's socket belongs to another user");
        if (connection == -EAGAIN)
            return tool_complain(1, "the session's socket does not answer");
        if (connection < 0)
            return tool_complain(1, "%s", strerror(-connection));
        int status = attach_stream(connection, fresh);
        if (status >= 0)
            return status;
    }
    return relay_complain_of_absence(session);
}
