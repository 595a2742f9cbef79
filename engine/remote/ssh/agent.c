/*
 * Logins with the keys of ssh-agent. libssh's calls block until the agent answers, which may take long: the
 * agent may be stopped, or ask its user to confirm. So each call is made in a thread of its own, and the loop
 * goes on. While that thread runs, only it uses the session, and the server's socket is not watched.
 *
 * libssh tries all keys of the agent in the agent's order, and stops at the first certificate. So libssh is
 * connected to a second thread (the filter) instead of the agent. The filter passes on all messages unchanged
 * except the agent's list of keys: keys that the user named come first, and certificates are left out.
 */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/connection-private.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct ssh_agent_call {
    struct ssh_connection *connection;
    ssh_session session;
    pthread_t thread, filter;
    bool running, filtering, answered;
    int agent; /* socket to the agent */
    int inner; /* socket to libssh */
    int done;  /* eventfd, set when the call has returned */
    struct event_source *source;
    int result;
};

/* Connects to the agent's socket at PATH. Returns a descriptor; -1: there is no agent, or it accepts no more
 * connections now. */
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

/* ---- the agent's list of keys (draft-ietf-sshm-ssh-agent, 3.5) */

enum { MESSAGE_MAX = 256 << 10, LIST_HEAD = 9 /* length, type, count */, TYPE_LIST = 12 };

static uint32_t read_number(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void write_number(unsigned char *bytes, size_t number) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* True where the key with this hash is among the identities without a private key. */
static bool is_named(const struct ssh_target *target, const char *hash) {
    for (size_t i = 0; i < target->identity_count; i++)
        if (strcmp(target->identities[i]->hash, hash) == 0)
            return true;
    return false;
}

/* Changes the agent's list of keys in MESSAGE, of LENGTH bytes, and returns its new length: keys that the
 * user named come first, or alone where the target says so, and certificates are left out. A malformed list
 * is left unchanged. */
static size_t change_list(const struct ssh_target *target, unsigned char *message, size_t length) {
    static const char certificate[] = "-cert-v01@openssh.com";
    cleanup_free unsigned char *list = xcalloc(length, 1);
    size_t end = LIST_HEAD, count = 0;
    for (int others = 0; others < 2; others++) {
        size_t at = LIST_HEAD;
        for (uint32_t left = read_number(message + 5); left > 0; left--) {
            size_t key = length - at >= 4 ? read_number(message + at) : SIZE_MAX;
            if (key > length - at || length - at - key < 8)
                return length;
            size_t comment = read_number(message + at + 4 + key), whole = 8 + key + comment;
            if (whole > length - at)
                return length;
            char hash[HASH_HEX_SIZE];
            hash_bytes(message + at + 4, key, hash);
            bool named = is_named(target, hash);
            bool is_included = others ? !named && !target->agent_named : named;
            size_t name = key < 64 ? key : 64;
            if (is_included && !memmem(message + at + 4, name, certificate, sizeof certificate - 1)) {
                memcpy(list + end, message + at, whole);
                end += whole;
                count++;
            }
            at += whole;
        }
    }
    memcpy(message + LIST_HEAD, list + LIST_HEAD, end - LIST_HEAD);
    write_number(message, end - 4);
    write_number(message + 5, count);
    return end;
}

static bool receive(int from, unsigned char *bytes, size_t length) {
    return recv(from, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

/* Passes one message on. TARGET: the message is the agent's, and a list of keys is changed; NULL: it is
 * libssh's. */
static bool pass_message(int from, int to, unsigned char *message, const struct ssh_target *target) {
    size_t length = receive(from, message, 4) ? read_number(message) : 0;
    if (length == 0 || length > MESSAGE_MAX - 4 || !receive(from, message + 4, length))
        return false;
    length += 4;
    if (target && message[4] == TYPE_LIST && length >= LIST_HEAD)
        length = change_list(target, message, length);
    return file_write_all(to, (const char *)message, length) == 0;
}

static void *filter_agent(void *context) {
    const struct ssh_agent_call *call = context;
    cleanup_free unsigned char *message = xcalloc(MESSAGE_MAX, 1);
    while (pass_message(call->inner, call->agent, message, NULL) &&
           pass_message(call->agent, call->inner, message, &call->connection->target))
        continue;
    (void)shutdown(call->inner, SHUT_RDWR);
    return NULL;
}

/* ---- calls of libssh in a thread */

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

/* Starts a thread with all signals blocked: only the loop's thread handles them. */
static bool start_thread(pthread_t *ret, void *(*function)(void *), struct ssh_agent_call *call) {
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(ret, NULL, function, call) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Starts libssh's call in a thread; false: that failed. */
static bool start_call(struct ssh_agent_call *call) {
    struct ssh_connection *connection = call->connection;
    call->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (call->done >= 0)
        call->source =
            event_loop_add_descriptor(connection->client->loop, call->done, EVENT_READ, on_done, call);
    if (call->source && (call->running = start_thread(&call->thread, call_agent, call))) {
        (void)event_source_set_events(connection->source, 0);
        return true;
    }
    end_call(call);
    return false;
}

/* Connects to the agent, and gives libssh a socket to the filter; false: there is no agent. */
static bool make_call(struct ssh_connection *connection) {
    cleanup_close int agent = connect_agent(connection->target.agent);
    int pair[2];
    if (agent < 0 || fcntl(agent, F_SETFL, O_RDWR) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    struct ssh_agent_call *call = xcalloc(1, sizeof *call);
    *call = (struct ssh_agent_call){.connection = connection,
                                    .session = connection->session,
                                    .agent = take_descriptor(agent),
                                    .inner = pair[0],
                                    .done = -1};
    connection->agent_call = call;
    call->filtering = start_thread(&call->filter, filter_agent, call);
    /* libssh takes over the socket, and closes it. */
    return ssh_set_agent_socket(call->session, pair[1]) == SSH_OK && call->filtering;
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
        return call->result; /* SSH_AUTH_AGAIN: the server's answer is waited for before the next call */
    }
    if (!call && !make_call(connection))
        return SSH_AUTH_DENIED;
    return start_call(connection->agent_call) ? SSH_AUTH_AGAIN : SSH_AUTH_DENIED;
}

/* Ends the threads that pass messages to ssh-agent, and waits for them. */
void ssh_agent_stop(struct ssh_connection *connection) {
    struct ssh_agent_call *call = take_pointer(connection->agent_call);
    if (!call)
        return;
    (void)shutdown(call->inner, SHUT_RDWR); /* the threads read end of file, and return */
    (void)shutdown(call->agent, SHUT_RDWR);
    end_call(call);
    if (call->filtering)
        (void)pthread_join(call->filter, NULL);
    cleanup_close_descriptor(&call->inner);
    cleanup_close_descriptor(&call->agent);
    free(call);
}
