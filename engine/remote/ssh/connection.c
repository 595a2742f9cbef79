#include "engine/remote/ssh/connection.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/connection-private.h"

#include <errno.h>
#include <fcntl.h>
#include <libssh/server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most reads of the socket in one turn of the loop. */
enum { PUMP_ROUNDS = 16 };

/* The cheapest first: AES, for which processors have instructions. */
static const char ciphers[] = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,"
                              "aes128-ctr,aes192-ctr,aes256-ctr";

static void on_descriptor(struct event_source *self, int descriptor, unsigned events, void *context);

/* ---- failures */

/* The errno for libssh's TEXT, which has only its sentence. */
static int text_to_code(const char *text) {
    static const int codes[] = {ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ECONNREFUSED};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strstr(text, strerror(codes[i])))
            return -codes[i];
    return -ECONNRESET;
}

/* The failure of WHAT, by the error text of libssh and the step of the connection. Returns its code. */
int ssh_connection_explain(struct ssh_connection *connection, struct failure *failure, const char *what) {
    static const char socket_error[] = "Socket error: ", goodbye[] = "Received SSH_MSG_DISCONNECT: ";
    const char *text = ssh_get_error(connection->session);
    bool login = connection->state == CONNECTION_EXCHANGING || connection->state == CONNECTION_AUTHENTICATING;
    if (strncmp(text, socket_error, sizeof socket_error - 1) == 0) {
        text += sizeof socket_error - 1;
        if (strcmp(text, "disconnected") == 0 || strcmp(text, strerror(0)) == 0)
            text = "the server closed it";
        return node_failure(
            failure, connection->name, text_to_code(text), "the connection ended %s: %s%s",
            login ? "before the login" : "unexpectedly", text,
            connection->state == CONNECTION_EXCHANGING
                ? "; sshd does so while more logins are under way than its MaxStartups says, and "
                  "a server of another kind does too: is the port right?"
                : "");
    }
    if (strncmp(text, goodbye, sizeof goodbye - 1) == 0) {
        text += sizeof goodbye - 1;
        bool refused = connection->state == CONNECTION_AUTHENTICATING;
        return node_failure(failure, connection->name, refused ? -EACCES : -ECONNRESET,
                            "the server ended the connection (%s)", text);
    }
    return node_failure(failure, connection->name, login ? -EPROTO : -ECONNRESET, "%s failed: %s", what,
                        *text ? text : "libssh gives no reason");
}

bool ssh_connection_is_broken(struct ssh_connection *connection) {
    /* A disconnect message, and a failed write, are errors of the session that no call returns. */
    return !ssh_is_connected(connection->session) || ssh_get_fd(connection->session) < 0 ||
           ssh_get_status(connection->session) & (SSH_CLOSED | SSH_CLOSED_ERROR);
}

bool ssh_connection_is_choked(const struct ssh_connection *connection) {
    return ssh_get_status(connection->session) & SSH_WRITE_PENDING;
}

/* ---- the end */

static void close_session(struct ssh_connection *connection) {
    ssh_agent_stop(connection);
    event_source_remove(take_pointer(connection->source));
    if (connection->session) {
        /* The event is freed first: it returns its descriptors to the session. Nothing here waits: the
         * disconnect message is sent only if the socket accepts it at once. */
        ssh_event_free(connection->event);
        ssh_disconnect(connection->session);
        ssh_free(connection->session);
        connection->event = NULL;
        connection->session = NULL;
    }
    cleanup_close_descriptor(&connection->descriptor);
}

/* Closes the socket and the session and frees its places in windows; only memory is left. */
static void ssh_connection_release(struct ssh_connection *connection) {
    if (connection->timeout)
        event_source_set_timer(connection->timeout, -1, 0);
    ssh_client_leave(connection->client, connection);
    name_query_cancel(connection->query);
    connection->query = NULL;
    close_session(connection);
    ssh_tunnel_free(connection->tunnel);
    connection->tunnel = NULL;
    ssh_gateway_leave(connection);
}

static void free_memory(struct ssh_connection *connection) {
    ssh_target_clear(&connection->target);
    free(connection->addresses);
    free(connection->name);
    free(connection);
}

/* Ends a callback that began with depth++, and frees the connection if the callback has. */
static void leave_callback(struct ssh_connection *connection) {
    if (--connection->depth == 0 && connection->doomed)
        free_memory(connection);
}

/* Closes the connection: all its streams fail with WHY, then its listener is called, which may free it. */
void ssh_connection_fail(struct ssh_connection *connection, const struct failure *why) {
    if (connection->state == CONNECTION_CLOSED)
        return;
    struct failure told = *why;
    connection->state = CONNECTION_CLOSED;
    connection->depth++;
    ssh_stream_detach_all(connection);
    ssh_connection_release(connection);
    ssh_stream_fail_all(connection, &told);
    if (!connection->doomed && connection->listener.on_closed)
        connection->listener.on_closed(connection, &told, connection->listener.context);
    leave_callback(connection);
}

static void fail_session(struct ssh_connection *connection, const char *what) {
    struct failure why;
    ssh_connection_explain(connection, &why, what);
    ssh_connection_fail(connection, &why);
}

/* ---- ready: reading, writing, serving the streams */

static void watch(struct ssh_connection *connection) {
    (void)event_source_set_events(connection->source,
                                  EVENT_READ | (ssh_connection_is_choked(connection) ? EVENT_WRITE : 0u));
}

void ssh_connection_check_socket(struct ssh_connection *connection) {
    if (connection->news || ssh_connection_is_broken(connection))
        event_source_defer(connection->turn);
    else
        watch(connection);
}

/* Makes libssh read and write until nothing is left or the socket accepts no more. libssh reads a fixed size,
 * so that the bytes it got tell whether there may be more. False: the connection is broken. */
static bool pump(struct ssh_connection *connection) {
    for (int i = 0; i < PUMP_ROUNDS; i++) {
        uint64_t in = connection->counter.in_bytes, out = connection->counter.out_bytes;
        if (ssh_event_dopoll(connection->event, 0) == SSH_ERROR || ssh_connection_is_broken(connection))
            return false;
        bool more_in = connection->counter.in_bytes - in >= SSH_READ_SIZE;
        bool more_out = connection->counter.out_bytes != out && ssh_connection_is_choked(connection);
        if (!more_in && !more_out)
            break;
    }
    return true;
}

/* Reads and writes, if READABLE, and serves the streams; a broken connection fails. */
static void take_turn(struct ssh_connection *connection, bool readable) {
    connection->depth++;
    if (ssh_connection_is_broken(connection) || (readable && !pump(connection))) {
        fail_session(connection, "the connection");
    } else {
        connection->news = false;
        ssh_stream_serve_all(connection);
        if (connection->state == CONNECTION_READY && !connection->doomed)
            ssh_connection_check_socket(connection);
    }
    leave_callback(connection);
}

static void on_turn(struct event_source *self, void *context) {
    (void)self;
    struct ssh_connection *connection = context;
    if (connection->state == CONNECTION_READY)
        take_turn(connection, false);
}

/* Refuses requests of the server to the client (forwardings, for instance), which would otherwise stay in
 * libssh's list. */
static int refuse_message(ssh_session session, ssh_message message, void *context) {
    (void)session;
    (void)message;
    (void)context;
    return 1;
}

/* The login has succeeded: the connection is ready. */
static void become_ready(struct ssh_connection *connection) {
    ssh_agent_stop(connection);
    event_source_set_timer(connection->timeout, -1, 0);
    ssh_client_leave(connection->client, connection);
    ssh_set_message_callback(connection->session, refuse_message, NULL);
    connection->event = ssh_event_new();
    if (!connection->event || ssh_event_add_session(connection->event, connection->session) != SSH_OK) {
        struct failure why;
        node_failure(&why, connection->name, -ENOMEM, "out of memory");
        ssh_connection_fail(connection, &why);
        return;
    }
    connection->state = CONNECTION_READY;
    connection->depth++;
    if (connection->listener.on_ready)
        connection->listener.on_ready(connection, connection->listener.context);
    if (connection->state == CONNECTION_READY && !connection->doomed)
        ssh_connection_check_socket(connection);
    leave_callback(connection);
}

/* ---- key exchange and login */

void ssh_connection_step_login(struct ssh_connection *connection) {
    struct failure why;
    int r = ssh_login_step(connection, &why);
    if (r < 0)
        ssh_connection_fail(connection, &why);
    else if (r == 1)
        become_ready(connection);
    else if (!ssh_agent_is_asked(connection))
        watch(connection);
}

/* Stores the sentence "kex error ..." of libssh's log in CONTEXT. libssh closes the socket where client and
 * server have no common algorithm, and a failed write may then replace the sentence by "Socket error:
 * Success". */
static void note_mismatch(int priority, const char *function, const char *line, void *context) {
    (void)priority;
    (void)function;
    struct failure *mismatch = context;
    const char *sentence = strstr(line, "kex error");
    if (sentence)
        failure_set(mismatch, -EPROTO, "the key exchange failed: %s", sentence);
}

/* Continues the key exchange, and stores its error in MISMATCH where the algorithms do not match. */
static int connect_session(ssh_session session, struct failure *mismatch) {
    int level = ssh_get_log_level();
    ssh_set_log_callback(note_mismatch);
    ssh_set_log_userdata(mismatch);
    ssh_set_log_level(SSH_LOG_TRACE);
    int r = ssh_connect(session);
    ssh_set_log_level(level);
    ssh_set_log_userdata(NULL);
    return r;
}

/* Continues the key exchange; then checks the host key and begins the login. */
static void step_exchange(struct ssh_connection *connection) {
    int r;
    uint64_t in;
    struct failure why, mismatch = {0};
    do {
        in = connection->counter.in_bytes;
        r = connect_session(connection->session, &mismatch);
        /* libssh makes the socket blocking when it finds it connected, and a dead node would then block the
         * engine. libssh polls before it reads or writes, so that a non-blocking socket is enough. */
        (void)fcntl(connection->descriptor, F_SETFL, O_RDWR | O_NONBLOCK);
    } while (r == SSH_AGAIN && connection->counter.in_bytes - in >= SSH_READ_SIZE);
    if (r == SSH_AGAIN) {
        watch(connection);
        return;
    }
    if (r != SSH_OK) {
        if (mismatch.code != 0) {
            node_failure(&why, connection->name, mismatch.code, "%s", mismatch.text);
            ssh_connection_fail(connection, &why);
        } else {
            fail_session(connection, "the key exchange");
        }
        return;
    }
    if (ssh_login_check_host(connection, &why) < 0) {
        ssh_connection_fail(connection, &why);
        return;
    }
    connection->state = CONNECTION_AUTHENTICATING;
    event_source_set_timer(connection->timeout, connection->target.timeout_ns, 0);
    ssh_connection_step_login(connection);
}

static void on_descriptor(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    struct ssh_connection *connection = context;
    if (connection->state == CONNECTION_EXCHANGING)
        step_exchange(connection);
    else if (connection->state == CONNECTION_AUTHENTICATING)
        ssh_connection_step_login(connection);
    else if (connection->state == CONNECTION_READY)
        take_turn(connection, true);
}

static bool set_option(ssh_session session, enum ssh_options_e option, const void *value) {
    return ssh_options_set(session, option, value) == 0;
}

/* Sets all options of the libssh session. False: libssh refuses one. */
static bool set_options(struct ssh_connection *connection, const char *host_keys) {
    ssh_session session = connection->session;
    const struct ssh_target *target = &connection->target;
    /* No configuration files and no known hosts: assay reads and checks them itself. Options that are not set
     * here libssh would look up for each session. */
    return set_option(session, SSH_OPTIONS_PROCESS_CONFIG, &(bool){false}) &&
           set_option(session, SSH_OPTIONS_HOST, "node") &&
           set_option(session, SSH_OPTIONS_USER, target->user) &&
           set_option(session, SSH_OPTIONS_SSH_DIR, "/dev/null") &&
           set_option(session, SSH_OPTIONS_KNOWNHOSTS, "/dev/null") &&
           set_option(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") &&
           /* First the cheapest that every server of the last ten years has: P-256 is assembly in libcrypto,
              while OpenSSH's curve25519 costs the node some 3 ms of a login's 20. */
           set_option(session, SSH_OPTIONS_KEY_EXCHANGE,
                      "ecdh-sha2-nistp256,curve25519-sha256,curve25519-sha256@libssh.org,"
                      "ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group16-sha512,"
                      "diffie-hellman-group18-sha512,diffie-hellman-group14-sha256") &&
           set_option(session, SSH_OPTIONS_CIPHERS_C_S, ciphers) &&
           set_option(session, SSH_OPTIONS_CIPHERS_S_C, ciphers) &&
           set_option(session, SSH_OPTIONS_HOSTKEYS, host_keys) &&
           /* The socket of ssh-agent is passed to libssh later (agent.c), not read from the environment. */
           set_option(session, SSH_OPTIONS_IDENTITY_AGENT, "/dev/null");
}

/* Gives libssh a duplicate of the socket. libssh closes its socket when a write fails, at any time and in the
 * thread of ssh-agent, too; the number may then belong to another file before we notice. */
static int share_socket(struct ssh_connection *connection) {
    cleanup_close int theirs = fcntl(connection->descriptor, F_DUPFD_CLOEXEC, 3);
    if (theirs < 0 || !set_option(connection->session, SSH_OPTIONS_FD, &theirs))
        return theirs < 0 ? -errno : -ENOMEM;
    (void)take_descriptor(theirs);
    return 0;
}

/* Makes the libssh session, which does not block, with the options of the target. */
static int open_session(struct ssh_connection *connection, struct failure *failure) {
    cleanup(text_clear) struct text host_keys;
    text_init(&host_keys, 1024);
    struct host_key_place place = ssh_target_place(&connection->target);
    host_keys_algorithms(connection->client->host_keys, &place, &host_keys);
    connection->session = ssh_new();
    if (!connection->session)
        return failure_memory(failure);
    ssh_set_blocking(connection->session, 0);
    ssh_set_counters(connection->session, &connection->counter, NULL);
    if (!set_options(connection, host_keys.bytes))
        return node_failure(failure, connection->name, -EINVAL, "libssh refuses an option: %s",
                            ssh_get_error(connection->session));
    return 0;
}

void ssh_connection_exchange(struct ssh_connection *connection, int descriptor) {
    connection->descriptor = descriptor;
    connection->state = CONNECTION_EXCHANGING;
    event_source_set_timer(connection->timeout, connection->target.timeout_ns, 0);
    struct failure why;
    int r = open_session(connection, &why);
    if (r == 0) {
        connection->source = event_loop_add_descriptor(connection->client->loop, descriptor, EVENT_READ,
                                                       on_descriptor, connection);
        r = connection->source ? share_socket(connection) : -errno;
        if (r < 0)
            node_failure(&why, connection->name, r, "cannot watch the connection: %s", strerror(-r));
    }
    if (r < 0)
        ssh_connection_fail(connection, &why);
    else
        step_exchange(connection);
}

/* ---- resolving and connecting */

/* Fails the connection, with the step that did not end in time; while connecting, the next address is tried.
 */
static void on_timeout(struct event_source *self, void *context) {
    (void)self;
    struct ssh_connection *connection = context;
    if (connection->state == CONNECTION_CONNECTING) {
        ssh_dial_expired(connection);
        return;
    }
    const char *what;
    if (connection->state == CONNECTION_RESOLVING)
        what = "the host's address could not be looked up";
    else if (ssh_agent_is_asked(connection))
        what = "ssh-agent did not answer";
    else if (connection->state == CONNECTION_AUTHENTICATING)
        what = "the server did not answer the login";
    else if (ssh_get_serverbanner(connection->session))
        what = "the key exchange was not finished";
    else if (connection->counter.in_bytes > 0)
        what = "the server accepted the connection and sent text, but no line with its ssh version ("
               "another service may listen on this port)";
    else
        what = "the server accepted the connection and sent nothing";
    struct failure why;
    node_failure(&why, connection->name, -ETIMEDOUT, "%s within %.3g s", what,
                 (double)connection->target.timeout_ns / (double)EVENT_SECOND);
    ssh_connection_fail(connection, &why);
}

/* The name resolver has answered: connects to the first address, or fails the connection. */
static void on_addresses(const struct name_address *addresses, size_t count, const struct failure *failure,
                         void *context) {
    struct ssh_connection *connection = context;
    connection->query = NULL;
    struct failure why;
    if (count == 0) {
        node_failure(&why, connection->name, failure->code, "%s", failure->text);
        ssh_connection_fail(connection, &why);
        return;
    }
    connection->addresses = xcalloc(count, sizeof *addresses);
    memcpy(connection->addresses, addresses, count * sizeof *addresses);
    connection->address_count = count;
    connection->state = CONNECTION_CONNECTING;
    ssh_dial_start(connection);
}

/* Begins to connect: by the gateway, or by looking up the address. */
void ssh_connection_begin(struct ssh_connection *connection) {
    struct failure why;
    int r;
    if (connection->gateway) {
        connection->state = CONNECTION_CONNECTING;
        r = ssh_tunnel_open(connection, &why); /* its channel has a time-out of its own */
    } else {
        connection->state = CONNECTION_RESOLVING;
        event_source_set_timer(connection->timeout, connection->target.timeout_ns, 0);
        r = name_resolver_ask(connection->client->resolver, connection->target.address, on_addresses,
                              connection, &connection->query, &why);
    }
    if (r < 0)
        ssh_connection_fail(connection, &why);
}

/* ---- making, starting, freeing */

/* RET: a connection to DESTINATION, not started. BEFORE: the gateways before a gateway; NULL: DESTINATION is
 * a node. */
int ssh_connection_make(struct ssh_client *client, const char *destination, const char *before,
                        const struct ssh_connection_listener *listener, struct ssh_connection **ret,
                        struct failure *failure) {
    struct ssh_connection *connection = xcalloc(1, sizeof *connection);
    connection->client = client;
    connection->listener = *listener;
    connection->descriptor = -1;
    connection->streams_end = &connection->streams;
    connection->name = xstrdup(destination);
    connection->timeout = event_loop_add_timer(client->loop, -1, 0, on_timeout, connection);
    connection->turn = event_loop_add_deferred(client->loop, on_turn, connection);
    int r = connection->timeout && connection->turn ? 0 : failure_memory(failure);
    if (r == 0)
        r = ssh_target_init(&connection->target, client, destination, before, failure);
    if (r == 0 && connection->target.jump)
        r = ssh_gateway_join(connection, failure);
    if (r < 0) {
        if (failure && !failure->place[0])
            snprintf(failure->place, sizeof failure->place, "node %s", destination);
        ssh_connection_free(connection);
        return r;
    }
    *ret = connection;
    return 0;
}

int ssh_connection_new(struct ssh_client *client, const char *destination,
                       const struct ssh_connection_listener *listener, struct ssh_connection **ret,
                       struct failure *failure) {
    return ssh_connection_make(client, destination, NULL, listener, ret, failure);
}

int ssh_connection_start(struct ssh_connection *connection, struct failure *failure) {
    if (connection->state != CONNECTION_IDLE)
        return node_failure(failure, connection->name, -EALREADY, "the connection was started before");
    connection->state = CONNECTION_WAITING;
    if (connection->gateway)
        return ssh_gateway_start(connection, failure);
    ssh_client_queue(connection->client, connection);
    return 0;
}

/* Closes and frees the connection; while one of its callbacks runs, memory is freed after that. */
void ssh_connection_free(struct ssh_connection *connection) {
    if (!connection || connection->doomed)
        return;
    connection->state = CONNECTION_CLOSED;
    connection->listener = (struct ssh_connection_listener){0};
    ssh_stream_detach_all(connection);
    ssh_connection_release(connection);
    ssh_stream_free_all(connection);
    event_source_remove(connection->timeout);
    event_source_remove(connection->turn);
    connection->timeout = connection->turn = NULL;
    if (connection->depth > 0)
        connection->doomed = true;
    else
        free_memory(connection);
}
