/* The parts of the ssh client that the files of this folder share; private to this folder.
 *
 * Callbacks of libssh only note what has come, and never call libssh. It is handled, and listeners are
 * called, after libssh has returned; so listeners may call anything.
 */
#ifndef ASSAY_SSH_CONNECTION_PRIVATE_H
#define ASSAY_SSH_CONNECTION_PRIVATE_H

#include "engine/foundation/hash.h"
#include "engine/foundation/text.h"
#include "engine/remote/ssh/client.h"
#include "engine/remote/ssh/config.h"
#include "engine/remote/ssh/connection.h"
#include "engine/remote/ssh/host-keys.h"
#include "engine/remote/ssh/name-resolver.h"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

enum {
    SSH_HOPS_MAX = 8, /* gateways in a row */
    SSH_GATEWAY_WINDOW =
        10, /* connections being set up through one gateway, which accepts 10 to 15 at once */
    SSH_IDENTITIES_MAX = 32, /* key files of one login */
    SSH_PORT_DEFAULT = 22,
    SSH_READ_SIZE = 4096, /* bytes that libssh reads from the socket at once */
};

/* The launcher to use where libssh cannot log in, for messages. */
#define SSH_LAUNCHER                                                                                         \
    "OpenSSH's program as the campaign's 'launcher: {attach: [ssh, -T, -o, BatchMode=yes, \"{host}\", "      \
    "\"{command}\"]}'"

/* ---- private keys (identity.c), each file read once */

struct ssh_identity {
    struct ssh_identity *next;
    char *path;
    ssh_key key;    /* the private key, with its certificate if `path` is one; NULL: it cannot be used */
    ssh_key public; /* read only where `key` is NULL, since ssh-agent may have the private key; or NULL */
    char hash[HASH_HEX_SIZE]; /* SHA-256 of `public` as ssh-agent sends it; "": it is NULL */
    bool encrypted;           /* `key` is NULL because it needs a passphrase */
    bool missing;             /* there is no such file */
    bool certificate;         /* `path` is a certificate */
};

/* The identity of a key file, read at the first call; owned by CLIENT. */
struct ssh_identity *ssh_identity_get(struct ssh_client *client, const char *path);
/* The identity of the certificate in the file PATH, owned by CLIENT; NULL: PATH is no certificate, or that of
 * another key than OF. Its key is NULL where OF has none. */
struct ssh_identity *ssh_identity_certified(struct ssh_client *client, const struct ssh_identity *of,
                                            const char *path);
void ssh_identity_free_all(struct ssh_client *client);

/* ---- the client (client.c) */

/* A first-in first-out queue of connections through their `queue_next`. */
struct ssh_queue {
    struct ssh_connection *first, **end;
};

struct ssh_client {
    struct event_loop *loop;
    struct name_resolver *resolver;
    struct ssh_config *config;
    struct host_keys *host_keys;
    struct ssh_identity *identities;
    struct ssh_gateway *gateways;

    char *user, *jump, *known_hosts; /* the user's options; NULL: not given */
    unsigned port;
    char **named; /* key files that the user named */
    size_t named_count;
    int64_t timeout_ns; /* 0: not given */
    unsigned window;

    char *home, *agent;         /* the user's home folder; SSH_AUTH_SOCK or NULL */
    struct ssh_queue waiting;   /* connections that wait for a place in the window */
    unsigned places;            /* places of the window that are used */
    unsigned hops;              /* depth of gateways behind gateways that are being made */
    struct event_source *admit; /* deferred: gives places to waiting connections */
};

/* Queues the connection for a place in the window; ssh_connection_begin() is called when it has one. */
void ssh_client_queue(struct ssh_client *client, struct ssh_connection *connection);
/* Removes the connection from the queue, and frees its place if it had one. */
void ssh_client_leave(struct ssh_client *client, struct ssh_connection *connection);
/* PATH with "~" or "~/" at its beginning replaced by the home folder. The caller frees. */
char *ssh_client_path(const struct ssh_client *client, const char *path);

/* ---- targets: the settings of one destination (target.c) */

/* The settings of a destination, from the user's options and the ssh configuration. Strings are owned. */
struct ssh_target {
    char *user, *address; /* login name; host name or address to connect to */
    unsigned port;
    char *key_name;              /* name of the host in known_hosts */
    char *key_name_without_port; /* a second name, which is accepted, too; NULL: none */
    char *jump;                  /* gateways on the way, "a,b"; NULL: none */
    char *agent;                 /* the socket of ssh-agent; NULL: none is asked */
    char *known_hosts[HOST_KEYS_FILES_MAX];
    size_t known_hosts_count;
    char *revoked_keys;                                  /* the file of RevokedHostKeys; NULL: none */
    struct ssh_identity *identities[SSH_IDENTITIES_MAX]; /* borrowed, in the order of trying */
    size_t identity_count;
    size_t agent_at;  /* ssh-agent's keys are tried before the identity of this index */
    bool agent_named; /* only those keys of ssh-agent are tried that are among the identities */
    int64_t timeout_ns;
};

/* Finds the settings of DESTINATION. JUMP: NULL for a node; for a gateway the gateways before it, "" for the
 * first. */
int ssh_target_init(struct ssh_target *ret, struct ssh_client *client, const char *destination,
                    const char *jump, struct failure *failure);
void ssh_target_clear(struct ssh_target *target);
/* The names and files by which the target's host key is checked; borrowed from the target. */
struct host_key_place ssh_target_place(const struct ssh_target *target);

/* ---- connections (connection.c) */

enum ssh_connection_state {
    CONNECTION_IDLE,
    CONNECTION_WAITING,
    CONNECTION_RESOLVING,
    CONNECTION_CONNECTING,
    CONNECTION_EXCHANGING,
    CONNECTION_AUTHENTICATING,
    CONNECTION_READY,
    CONNECTION_CLOSED,
};

struct ssh_connection {
    struct ssh_client *client;
    char *name;
    struct ssh_connection_listener listener;
    struct ssh_target target;
    enum ssh_connection_state state;
    struct event_source *timeout; /* timer of the present step */

    struct ssh_connection *queue_next; /* in the client's queue */
    bool queued, has_place;

    struct ssh_gateway *gateway; /* NULL: none on the way */
    struct ssh_connection *user_next, **user_previous;
    bool at_gateway; /* in the gateway's list of users */
    struct ssh_tunnel *tunnel;

    struct name_query *query;
    struct name_address *addresses;
    size_t address_count, address_at;
    int64_t dial_deadline;
    int dial_error;

    int descriptor; /* of the socket; libssh has a duplicate */
    struct event_source *source;
    ssh_session session;
    ssh_event event; /* contains the session only; polling it makes libssh read and write */
    struct ssh_counter_struct counter;

    size_t identity_at;                /* the next identity to try */
    bool signing;                      /* the server would accept it, and now gets its signature */
    bool agent_done;                   /* ssh-agent's keys were tried */
    struct ssh_agent_call *agent_call; /* NULL: ssh-agent was not asked */

    struct ssh_stream *streams, **streams_end; /* its channels */
    struct ssh_stream *cursor;                 /* the next stream to serve */
    struct ssh_stream *current;                /* the stream being served; NULL once it is freed */
    struct event_source *turn;                 /* deferred: serves the streams */
    unsigned depth; /* callbacks that are running; the memory is freed after the last one */
    bool doomed;    /* freed within a callback */
    bool news;      /* a callback of libssh has noted something since the last turn */
};

/* As ssh_connection_new(), with BEFORE as in ssh_target_init(). */
int ssh_connection_make(struct ssh_client *client, const char *destination, const char *before,
                        const struct ssh_connection_listener *listener, struct ssh_connection **ret,
                        struct failure *failure);
/* Called when the connection has its place in the window: begins to connect. */
void ssh_connection_begin(struct ssh_connection *connection);
/* Ends the connection with the failure WHY and tells its listeners. */
void ssh_connection_fail(struct ssh_connection *connection, const struct failure *why);
/* Sets FAILURE to libssh's error of the session, and returns its code. WHAT: what failed, where libssh gives
 * no more. */
int ssh_connection_explain(struct ssh_connection *connection, struct failure *failure, const char *what);
/* Begins the key exchange on DESCRIPTOR, which is connected to the server and taken over. */
void ssh_connection_exchange(struct ssh_connection *connection, int descriptor);
/* True while bytes wait for the network: nothing more should be written. */
bool ssh_connection_is_choked(const struct ssh_connection *connection);
bool ssh_connection_is_broken(struct ssh_connection *connection);
/* Called after libssh may have read or written: watches the socket, and plans a turn if something has come.
 */
void ssh_connection_check_socket(struct ssh_connection *connection);
/* Continues the login, when the server or ssh-agent has answered. */
void ssh_connection_step_login(struct ssh_connection *connection);

/* ---- TCP (dial.c) */

/* Tries the addresses in turn; then calls ssh_connection_exchange() or ssh_connection_fail(). */
void ssh_dial_start(struct ssh_connection *connection);
/* The time of the present address is over: tries the next. */
void ssh_dial_expired(struct ssh_connection *connection);

/* ---- login (login.c) */

/* Checks the server's host key, after the key exchange. 0, or -EKEYREJECTED with what to do. */
int ssh_login_check_host(struct ssh_connection *connection, struct failure *failure);
/* Continues the login. Returns 1: logged in; 0: not yet, call again when the socket is readable; or negative.
 */
int ssh_login_step(struct ssh_connection *connection, struct failure *failure);

/* ---- ssh-agent (agent.c) */

/* As ssh_userauth_agent(), but never waits: SSH_AUTH_AGAIN while the agent is asked, after which
 * ssh_connection_step_login() is called. Keys of the target's identities without a private key are tried
 * first. */
int ssh_agent_try(struct ssh_connection *connection);
/* True while the agent is asked: libssh's session must not be used meanwhile. */
bool ssh_agent_is_asked(const struct ssh_connection *connection);
/* Stops asking the agent, and waits for the threads, which then end at once. */
void ssh_agent_stop(struct ssh_connection *connection);

/* ---- gateways (gateway.c) */

/* Sets the connection's gateway, which is made if there is none for the way yet. */
int ssh_gateway_join(struct ssh_connection *connection, struct failure *failure);
/* Called when the connection is started: queues it as soon as the gateway is connected, which is started if
 * need be. */
int ssh_gateway_start(struct ssh_connection *connection, struct failure *failure);
/* Removes the connection from its gateway's users. */
void ssh_gateway_leave(struct ssh_connection *connection);
void ssh_gateway_free_all(struct ssh_client *client);
/* Use and free a place in the gateway's window; false: all places are used. */
bool ssh_gateway_take(struct ssh_gateway *gateway);
void ssh_gateway_give_back(struct ssh_gateway *gateway);
/* Opens a channel of the gateway to the target; then ssh_connection_exchange() or ssh_connection_fail() is
 * called. */
int ssh_tunnel_open(struct ssh_connection *connection, struct failure *failure);
void ssh_tunnel_free(struct ssh_tunnel *tunnel);

/* ---- streams (stream.c) */

/* Opens a channel that the server connects to HOST and PORT (direct-tcpip), without a program. */
int ssh_connection_open_forward(struct ssh_connection *connection, const char *host, unsigned port,
                                const struct remote_channel_listener *listener, struct remote_channel **ret,
                                struct failure *failure);
/* Continues each stream and calls its listener; stops early if the connection ends. */
void ssh_stream_serve_all(struct ssh_connection *connection);
/* Called before the session is freed, which frees the streams' channels, too. */
void ssh_stream_detach_all(struct ssh_connection *connection);
/* Called when the connection has ended: ends all streams with WHY. */
void ssh_stream_fail_all(struct ssh_connection *connection, const struct failure *why);
void ssh_stream_free_all(struct ssh_connection *connection);

#endif
