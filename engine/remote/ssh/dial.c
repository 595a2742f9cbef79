#include "engine/foundation/cleanup.h"
#include "engine/remote/ssh/connection-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void dial_next(struct ssh_connection *connection);

static void close_socket(struct ssh_connection *connection) {
    event_source_remove(connection->source);
    connection->source = NULL;
    cleanup_close_descriptor(&connection->descriptor);
}

/* All addresses have failed: ends the connection with the error of the last. */
static void fail_dial(struct ssh_connection *connection) {
    char text[INET6_ADDRSTRLEN] = "?";
    const struct name_address *last = &connection->addresses[connection->address_count - 1];
    (void)getnameinfo((const struct sockaddr *)&last->address, last->length, text, sizeof text, NULL, 0,
                      NI_NUMERICHOST);
    int code = connection->dial_error == -ENETUNREACH ? -EHOSTUNREACH : connection->dial_error;
    bool is_name = strcmp(text, connection->target.address) != 0;
    struct failure why;
    if (connection->dial_error == -EMFILE)
        node_failure(&why, connection->name, code,
                     "cannot connect: this process may not have more than %ld files open "
                     "(ulimit -n), and each node needs two",
                     sysconf(_SC_OPEN_MAX));
    else
        node_failure(&why, connection->name, code, "cannot connect to %s%s%s%s port %u: %s",
                     is_name ? connection->target.address : "", is_name ? " (" : "", text, is_name ? ")" : "",
                     connection->target.port, strerror(-connection->dial_error));
    ssh_connection_fail(connection, &why);
}

/* The socket is connected, or the address has failed: then the next is tried. */
static void on_dialled(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)events;
    struct ssh_connection *connection = context;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error) {
        close_socket(connection);
        connection->dial_error = -error;
        dial_next(connection);
        return;
    }
    event_source_remove(connection->source);
    connection->source = NULL;
    ssh_connection_exchange(connection, take_descriptor(connection->descriptor));
}

/* Starts a TCP connection to an address. 0 or a negative errno. */
static int dial(struct ssh_connection *connection, const struct name_address *to) {
    struct sockaddr_storage address = to->address;
    uint16_t port = htons((uint16_t)connection->target.port);
    if (address.ss_family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_port = port;
    else if (address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_port = port;
    else
        return -EAFNOSUPPORT;
    cleanup_close int descriptor =
        socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (descriptor < 0)
        return -errno;
    /* Small messages are sent at once. TCP's keepalive detects a dead peer even when nothing is sent. */
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    (void)setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    if (connect(descriptor, (struct sockaddr *)&address, to->length) < 0 && errno != EINPROGRESS)
        return -errno;
    connection->source =
        event_loop_add_descriptor(connection->client->loop, descriptor, EVENT_WRITE, on_dialled, connection);
    if (!connection->source)
        return -errno;
    connection->descriptor = take_descriptor(descriptor);
    return 0;
}

/* Tries the next address, with an equal share of the time that is left, so that an address that never answers
 * leaves time for the others. */
static void dial_next(struct ssh_connection *connection) {
    while (connection->address_at < connection->address_count) {
        size_t left = connection->address_count - connection->address_at;
        int64_t time = connection->dial_deadline - event_loop_now(connection->client->loop);
        if (time <= 0) {
            connection->dial_error = -ETIMEDOUT;
            break;
        }
        event_source_set_timer(connection->timeout, time / (int64_t)left, 0);
        int r = dial(connection, &connection->addresses[connection->address_at++]);
        if (r == 0)
            return;
        connection->dial_error = r;
    }
    fail_dial(connection);
}

void ssh_dial_start(struct ssh_connection *connection) {
    connection->dial_deadline = event_loop_now(connection->client->loop) + connection->target.timeout_ns;
    connection->address_at = 0;
    dial_next(connection);
}

void ssh_dial_expired(struct ssh_connection *connection) {
    close_socket(connection);
    connection->dial_error = -ETIMEDOUT;
    dial_next(connection);
}
