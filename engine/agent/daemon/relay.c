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

enum { CONNECT_PATIENCE_MS = 5000 };

enum { TRIES = 8 }; /* each finds a daemon that leaves, or another relay that was faster */

int relay_complain_of_absence(uint64_t session) {
    return tool_complain(RELAY_UNAVAILABLE, "there is no agent of session %016llx on this node",
                         (unsigned long long)session);
}

int relay_wait_for_end(int shutdown_fd, int patience_ms) {
    char words[512];
    bool silent = true;
    int64_t start = clock_monotonic_ns();
    for (;;) {
        ssize_t got = read(shutdown_fd, words, sizeof words);
        if (got < 0 && errno == EAGAIN) {
            int64_t left = patience_ms - (clock_monotonic_ns() - start) / 1000000;
            if (patience_ms >= 0 && left <= 0)
                return -ETIMEDOUT;
            (void)clock_poll(&(struct pollfd){.fd = shutdown_fd, .events = POLLIN},
                             patience_ms < 0 ? -1 : left * INT64_C(1000000));
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return silent;
        silent = false;
        (void)!write(2, words, (size_t)got);
    }
}

/* A connection to a daemon that is being started, or a negative errno. */
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

/* The stream is the daemon's now. Closing our copy lets the other side see its end. */
static int wait_for_orders(int connection, int shutdown_fd) {
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
    bool silent = relay_wait_for_end(shutdown_fd, -1) > 0;
    if (!asked)
        return tool_complain(1, "the agent died");
    return silent ? 0 : 1;
}

/* An exit status, or -EAGAIN: the daemon has ended. FRESH: it was started for this stream. */
static int hand_over(int connection, bool fresh) {
    const int stream[2] = {0, 1};
    /* If it has gone already, what it sent before can still be received. */
    (void)control_socket_send(connection, CONTROL_ATTACH, NULL, stream, 2);
    struct control_message message;
    int r = control_socket_receive(connection, &message);
    if (r <= 0)
        return fresh ? tool_complain(1, "the agent died while it started") : -EAGAIN;
    cleanup_close int shutdown_fd = take_descriptor(message.descriptors[0]);
    control_message_clear(&message);
    switch (message.kind) {
    case CONTROL_ATTACHED:
        return wait_for_orders(connection, shutdown_fd);
    case CONTROL_LEAVING:
        (void)relay_wait_for_end(shutdown_fd, -1);
        return -EAGAIN;
    case CONTROL_FAILED:
        return tool_complain(1, "%s", message.text);
    default:
        return -EAGAIN;
    }
}

int relay(uint64_t session, const struct daemon_options *options) {
    /* Neither the relay nor what it starts ends with its terminal. */
    signal(SIGHUP, SIG_IGN);
    for (int i = 0; i < TRIES; i++) {
        cleanup_close int connection = control_socket_connect(session, CONNECT_PATIENCE_MS, NULL);
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
        int status = hand_over(connection, fresh);
        if (status >= 0)
            return status;
    }
    return relay_complain_of_absence(session);
}
