#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/connection-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TUNNEL_PIECE = 32 << 10 };

/* A gateway, identified by the whole way to it: "a,b" is b through a. */
struct ssh_gateway {
    struct ssh_gateway *next;
    struct ssh_client *client;
    char *way, *destination;
    struct ssh_connection *connection; /* NULL: none now; made for the next user */
    struct ssh_connection *users;      /* connections that go through it */
    unsigned places;                   /* used places of its window */
};

/* Passes bytes between the socket of the inner session and a channel of the gateway. Each direction stores
 * one piece that the other end has not accepted yet, and reads no more until it has. */
struct ssh_tunnel {
    struct ssh_connection *inner;
    struct remote_channel *stream;
    int descriptor, inner_end; /* of the socket pair; inner_end until the inner session takes it over */
    struct event_source *source;
    struct text up, down; /* to the gateway; to the inner session */
    bool up_ended, down_ended;
};

/* ---- events of the gateway's connection */

static void on_gateway_ready(struct ssh_connection *connection, void *context) {
    struct ssh_gateway *gateway = context;
    for (struct ssh_connection *user = gateway->users; user; user = user->user_next)
        if (user->state == CONNECTION_WAITING && !user->queued)
            ssh_client_queue(connection->client, user);
}

/* Fails all connections that go through the gateway now, with WHY. Connections that are started meanwhile use
 * a new gateway connection. */
static void fail_users(struct ssh_gateway *gateway, const struct failure *why) {
    struct ssh_connection *lost = take_pointer(gateway->users);
    if (lost)
        lost->user_previous = &lost;
    while (lost) {
        struct ssh_connection *user = lost;
        struct failure told;
        ssh_gateway_leave(user);
        node_failure(&told, user->name, why->code, "gateway '%s': %s", gateway->destination, why->text);
        ssh_connection_fail(user, &told);
    }
}

static void on_gateway_closed(struct ssh_connection *connection, const struct failure *why, void *context) {
    struct ssh_gateway *gateway = context;
    struct failure told = *why;
    gateway->connection = NULL;
    ssh_connection_free(connection); /* its memory is freed after this callback */
    fail_users(gateway, &told);
}

/* ---- users of gateways */

static struct ssh_gateway *find_gateway(struct ssh_client *client, const char *way) {
    struct ssh_gateway *gateway = client->gateways;
    while (gateway && strcmp(gateway->way, way) != 0)
        gateway = gateway->next;
    return gateway;
}

static struct ssh_gateway *make_gateway(struct ssh_client *client, const char *way) {
    struct ssh_gateway *gateway = xcalloc(1, sizeof *gateway);
    const char *last = strrchr(way, ',');
    gateway->client = client;
    gateway->way = xstrdup(way);
    gateway->destination = xstrdup(last ? last + 1 : way);
    gateway->next = client->gateways;
    return client->gateways = gateway;
}

/* Makes the gateway's connection, not yet started. -ELOOP for a circle of gateways. */
static int make_connection(struct ssh_gateway *gateway, struct failure *failure) {
    const char *last = strrchr(gateway->way, ',');
    cleanup_free char *before = xstrndup(gateway->way, last ? (size_t)(last - gateway->way) : 0);
    struct ssh_connection_listener listener = {
        .on_ready = on_gateway_ready, .on_closed = on_gateway_closed, .context = gateway};
    struct ssh_client *client = gateway->client;
    if (client->hops == SSH_HOPS_MAX)
        return failure_set_kind(failure, FAILURE_INPUT, -ELOOP,
                                "more than %d gateways lead to '%s'; remove a circle in ProxyJump",
                                SSH_HOPS_MAX, gateway->destination);
    client->hops++;
    int r =
        ssh_connection_make(client, gateway->destination, before, &listener, &gateway->connection, failure);
    client->hops--;
    if (r < 0 && failure)
        failure->place[0] = '\0'; /* the caller sets the place, the node behind the gateway */
    return r < 0 && r != -ELOOP ? failure_prefix(failure, "gateway '%s'", gateway->destination) : r;
}

static void add_user(struct ssh_gateway *gateway, struct ssh_connection *connection) {
    connection->at_gateway = true;
    connection->user_previous = &gateway->users;
    connection->user_next = gateway->users;
    if (gateway->users)
        gateway->users->user_previous = &connection->user_next;
    gateway->users = connection;
}

/* Sets the gateway of the connection, shared with other connections through the same one. */
int ssh_gateway_join(struct ssh_connection *connection, struct failure *failure) {
    struct ssh_client *client = connection->client;
    struct ssh_gateway *gateway = find_gateway(client, connection->target.jump);
    if (!gateway)
        gateway = make_gateway(client, connection->target.jump);
    /* Made now, so that a wrong name is reported before anything is started. */
    if (!gateway->connection) {
        int r = make_connection(gateway, failure);
        if (r < 0)
            return r;
    }
    connection->gateway = gateway;
    return 0;
}

/* Queues the connection if its gateway is ready; otherwise it is queued when the gateway is, which is
 * started. */
int ssh_gateway_start(struct ssh_connection *connection, struct failure *failure) {
    struct ssh_gateway *gateway = connection->gateway;
    if (!gateway->connection) { /* it was lost meanwhile */
        int r = make_connection(gateway, failure);
        if (r < 0)
            return r;
    }
    add_user(gateway, connection);
    if (gateway->connection->state == CONNECTION_READY)
        ssh_client_queue(connection->client, connection);
    else if (gateway->connection->state == CONNECTION_IDLE)
        return ssh_connection_start(gateway->connection, failure);
    return 0;
}

void ssh_gateway_leave(struct ssh_connection *connection) {
    if (!connection->at_gateway)
        return;
    connection->at_gateway = false;
    *connection->user_previous = connection->user_next;
    if (connection->user_next)
        connection->user_next->user_previous = connection->user_previous;
}

bool ssh_gateway_take(struct ssh_gateway *gateway) {
    if (gateway->places >= SSH_GATEWAY_WINDOW)
        return false;
    gateway->places++;
    return true;
}

void ssh_gateway_give_back(struct ssh_gateway *gateway) {
    gateway->places--;
}

/* Frees gateways without users first: a gateway behind another is one of its users. */
void ssh_gateway_free_all(struct ssh_client *client) {
    while (client->gateways) {
        struct ssh_gateway **at = &client->gateways;
        while ((*at)->users && (*at)->next)
            at = &(*at)->next;
        struct ssh_gateway *gateway = *at;
        *at = gateway->next;
        ssh_connection_free(gateway->connection);
        free(gateway->way);
        free(gateway->destination);
        free(gateway);
    }
}

/* ---- the tunnel */

static void close_socket(struct ssh_tunnel *tunnel) {
    event_source_remove(tunnel->source);
    tunnel->source = NULL;
    cleanup_close_descriptor(&tunnel->descriptor);
}

/* Sets which ends are watched: those that can be read or written now. */
static void watch(struct ssh_tunnel *tunnel) {
    if (!tunnel->stream && !tunnel->down.length) {
        close_socket(tunnel); /* all bytes were passed on */
        return;
    }
    bool read_up = tunnel->stream && !tunnel->up.length && !tunnel->up_ended;
    (void)event_source_set_events(tunnel->source,
                                  (read_up ? EVENT_READ : 0u) | (tunnel->down.length ? EVENT_WRITE : 0u));
    if (tunnel->stream)
        remote_channel_want(tunnel->stream, (tunnel->down.length || tunnel->down_ended ? 0u : EVENT_READ) |
                                                (tunnel->up.length ? EVENT_WRITE : 0u));
}

/* Move one piece from the inner session to the gateway (up), or back (down). False: nothing can be moved now.
 */
static bool move_up(struct ssh_tunnel *tunnel) {
    if (!tunnel->stream || tunnel->descriptor < 0)
        return false;
    if (!tunnel->up.length && !tunnel->up_ended) {
        char *space;
        if (text_reserve(&tunnel->up, TUNNEL_PIECE, &space) < 0)
            return false;
        ssize_t got = recv(tunnel->descriptor, space, TUNNEL_PIECE, 0);
        if (got > 0)
            tunnel->up.length = (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR))
            tunnel->up_ended = true;
        if (tunnel->up_ended)
            (void)remote_channel_end_input(tunnel->stream);
    }
    if (!tunnel->up.length)
        return false;
    ssize_t sent = remote_channel_write(tunnel->stream, tunnel->up.bytes, tunnel->up.length);
    if (sent > 0)
        text_consume(&tunnel->up, (size_t)sent);
    else if (sent != -EAGAIN)
        text_reset(&tunnel->up); /* the channel has ended, and will call back */
    return sent > 0;
}

/* Moves bytes from the stream of the gateway to the socket of the inner session. True: some were moved. */
static bool move_down(struct ssh_tunnel *tunnel) {
    if (tunnel->descriptor < 0)
        return false;
    if (!tunnel->down.length && !tunnel->down_ended && tunnel->stream) {
        char *space;
        if (text_reserve(&tunnel->down, TUNNEL_PIECE, &space) < 0)
            return false;
        ssize_t got = remote_channel_read(tunnel->stream, space, TUNNEL_PIECE);
        if (got > 0)
            tunnel->down.length = (size_t)got;
        else if (got != -EAGAIN)
            tunnel->down_ended = true;
        if (tunnel->down_ended)
            (void)shutdown(tunnel->descriptor, SHUT_WR);
    }
    if (!tunnel->down.length)
        return false;
    ssize_t sent = send(tunnel->descriptor, tunnel->down.bytes, tunnel->down.length, MSG_NOSIGNAL);
    if (sent > 0)
        text_consume(&tunnel->down, (size_t)sent);
    else if (errno != EAGAIN && errno != EINTR)
        text_reset(&tunnel->down); /* the inner session has ended */
    return sent > 0;
}

/* Moves bytes in both directions until nothing can be moved. */
static void move_all(struct ssh_tunnel *tunnel) {
    while (move_up(tunnel) | move_down(tunnel))
        continue;
    watch(tunnel);
}

static void on_descriptor(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    move_all(context);
}

static void on_stream_ready(struct remote_channel *stream, unsigned events, void *context) {
    (void)stream;
    (void)events;
    move_all(context);
}

/* The channel to the node is open: the inner session's key exchange begins. */
static void on_stream_open(struct remote_channel *stream, void *context) {
    (void)stream;
    struct ssh_tunnel *tunnel = context;
    struct ssh_connection *inner = tunnel->inner;
    tunnel->source =
        event_loop_add_descriptor(inner->client->loop, tunnel->descriptor, EVENT_READ, on_descriptor, tunnel);
    if (!tunnel->source) {
        struct failure why;
        node_failure(&why, inner->name, -errno, "cannot watch a socket: %s", strerror(errno));
        ssh_connection_fail(inner, &why);
        return;
    }
    watch(tunnel);
    ssh_connection_exchange(inner, take_descriptor(tunnel->inner_end));
}

/* The channel to the node has ended. With WHY it was refused, or the gateway was lost: the inner connection
 * fails. Without WHY the node closed it: the inner session finds its socket closed, and reports that. */
static void on_stream_closed(struct remote_channel *stream, const struct remote_channel_end *end,
                             const struct failure *why, void *context) {
    (void)end;
    struct ssh_tunnel *tunnel = context;
    remote_channel_free(stream);
    tunnel->stream = NULL;
    if (!why) {
        watch(tunnel);
        return;
    }
    struct failure told;
    node_failure(&told, tunnel->inner->name, why->code, "gateway '%s': %s",
                 tunnel->inner->gateway->destination, why->text);
    ssh_connection_fail(tunnel->inner, &told);
}

/* Opens the tunnel of a connection: a channel of its gateway to the target, and a socket pair for libssh. */
int ssh_tunnel_open(struct ssh_connection *connection, struct failure *failure) {
    if (!connection->gateway->connection) /* lost while the connection waited for its place */
        return node_failure(failure, connection->name, -ECONNRESET, "gateway '%s' was lost",
                            connection->gateway->destination);
    struct ssh_tunnel *tunnel = xcalloc(1, sizeof *tunnel);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        free(tunnel);
        return node_failure(failure, connection->name, -errno, "cannot make a socket pair: %s",
                            strerror(errno));
    }
    tunnel->inner = connection;
    tunnel->descriptor = ends[0];
    tunnel->inner_end = ends[1];
    text_init(&tunnel->up, TUNNEL_PIECE);
    text_init(&tunnel->down, TUNNEL_PIECE);
    connection->tunnel = tunnel; /* freed with the connection */
    struct remote_channel_listener listener = {.on_open = on_stream_open,
                                               .on_ready = on_stream_ready,
                                               .on_closed = on_stream_closed,
                                               .context = tunnel};
    struct failure own;
    int r = ssh_connection_open_forward(connection->gateway->connection, connection->target.address,
                                        connection->target.port, &listener, &tunnel->stream, &own);
    return r < 0 ? node_failure(failure, connection->name, r, "gateway '%s': %s",
                                connection->gateway->destination, own.text)
                 : 0;
}

void ssh_tunnel_free(struct ssh_tunnel *tunnel) {
    if (!tunnel)
        return;
    remote_channel_free(tunnel->stream);
    event_source_remove(tunnel->source);
    cleanup_close_descriptor(&tunnel->descriptor);
    cleanup_close_descriptor(&tunnel->inner_end);
    text_clear(&tunnel->up);
    text_clear(&tunnel->down);
    free(tunnel);
}
