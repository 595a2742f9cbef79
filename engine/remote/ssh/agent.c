/*
 * ssh-agent: libssh talks to it with calls that wait for its answers, however long it takes. It may be
 * stopped, or ask its user to confirm, so each call is made by a thread of its own, and the loop goes on
 * meanwhile. While there is such a thread, the session is the thread's, and the socket of the server is not
 * watched.
 */
#include "engine/foundation/cleanup.h"
#include "engine/remote/ssh/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct ssh_agent_call {
    struct ssh_connection *connection;
    ssh_session session;
    pthread_t thread;
    bool running, answered;
    int socket; /* a duplicate of libssh's: to wake the thread, whatever libssh has done with its own */
    int done;   /* eventfd */
    struct event_source *source;
    int result;
};

/* -1 when there is no agent; one that has so many callers that it takes no more is as good as none. */
static int connect_agent(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, strlen(path));
    cleanup_close int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0 || connect(made, (const struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    return take_descriptor(made);
}

static void *call_agent(void *context) {
    struct ssh_agent_call *call = context;
    call->result = ssh_userauth_agent(call->session, NULL);
    (void)!write(call->done, &(uint64_t){1}, sizeof(uint64_t));
    return NULL;
}

static void end_call(struct ssh_agent_call *call) {
    if (call->running)
        (void)pthread_join(call->thread, NULL);
    call->running = false;
    event_source_remove(call->source);
    call->source = NULL;
    cleanup_close_descriptor(&call->done);
}

static void on_done(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    struct ssh_agent_call *call = context;
    end_call(call);
    call->answered = true;
    ssh_connection_step_login(call->connection);
}

/* Signals are handled by the loop's thread alone. */
static bool start_thread(struct ssh_agent_call *call) {
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    call->running = pthread_create(&call->thread, NULL, call_agent, call) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return call->running;
}

static bool start_call(struct ssh_agent_call *call) {
    struct ssh_connection *connection = call->connection;
    call->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (call->done >= 0)
        call->source =
            event_loop_add_descriptor(connection->client->loop, call->done, EVENT_READ, on_done, call);
    if (call->source && start_thread(call)) {
        (void)event_source_set_events(connection->source, 0);
        return true;
    }
    end_call(call);
    return false;
}

static bool make_call(struct ssh_connection *connection) {
    int agent = connect_agent(connection->target.agent);
    struct ssh_agent_call *call = agent < 0 ? NULL : calloc(1, sizeof *call);
    if (!call) {
        cleanup_close_descriptor(&agent);
        return false;
    }
    *call = (struct ssh_agent_call){.connection = connection,
                                    .session = connection->session,
                                    .socket = fcntl(agent, F_DUPFD_CLOEXEC, 3),
                                    .done = -1};
    connection->agent_call = call;
    /* From here on libssh has the socket, and closes it. */
    return ssh_set_agent_socket(call->session, agent) == SSH_OK && call->socket >= 0;
}

bool ssh_agent_is_asked(const struct ssh_connection *connection) {
    return connection->agent_call && connection->agent_call->running;
}

int ssh_agent_try(struct ssh_connection *connection) {
    struct ssh_agent_call *call = connection->agent_call;
    if (call && call->running)
        return SSH_AUTH_AGAIN;
    if (call && call->answered) {
        call->answered = false;
        return call->result; /* AGAIN: now it is the server that is waited for, and then the next call */
    }
    if (!call && !make_call(connection))
        return SSH_AUTH_DENIED;
    return start_call(connection->agent_call) ? SSH_AUTH_AGAIN : SSH_AUTH_DENIED;
}

void ssh_agent_stop(struct ssh_connection *connection) {
    struct ssh_agent_call *call = take_pointer(connection->agent_call);
    if (!call)
        return;
    if (call->socket >= 0)
        (void)shutdown(call->socket, SHUT_RDWR); /* the thread reads its end, and returns */
    end_call(call);
    cleanup_close_descriptor(&call->socket);
    free(call);
}
