/* The inside of the ssh client: what the files of this folder share. Nobody else includes it.
 *
 * libssh is never called back into from its own callbacks: those only note what has come, and what follows is
 * done and told after libssh has returned. Listeners may therefore call anything.
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
    SSH_HOPS_MAX = 8,        /* gateways in a row */
    SSH_GATEWAY_WINDOW = 10, /* connections being set up behind one gateway: they accept 10 to 15 at once */
    SSH_IDENTITIES_MAX = 32, /* key files of one login */
    SSH_PORT_DEFAULT = 22,
    SSH_READ_SIZE = 4096, /* libssh takes so much from the socket at once */
};

/* The way of logins that libssh cannot make, for messages. */
#define SSH_LAUNCHER                                                                                         \
    "OpenSSH's program as the campaign's 'launcher: {attach: [ssh, -T, -o, BatchMode=yes, \"{host}\", "      \
    "\"{command}\"]}'"

/* ---- private keys (identity.c), each file read once */

struct ssh_identity {
    struct ssh_identity *next;
    char *path;
    ssh_key key;              /* private, with its certificate if PATH is one; NULL: it cannot be used */
    ssh_key public;           /* NULL: unknown; else known without KEY, and ssh-agent may have that */
    char hash[HASH_HEX_SIZE]; /* SHA-256 of PUBLIC as ssh-agent sends it; "" if that is NULL */
    bool encrypted;           /* why KEY is NULL */
    bool missing;             /* there is no such file */
    bool certificate;         /* PATH is a certificate */
};

/* The file's key, from memory if it was asked for before. */
struct ssh_identity *ssh_identity_get(struct ssh_client *client, const char *path);
/* The identity of the certificate in the file PATH; NULL when it is none, or of another key than OF. Its key
 * is NULL when OF has none. */
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

    char *user, *jump, *known_hosts; /* what the user said; NULL: nothing */
    unsigned port;
    char **named; /* key files that the user named */
    size_t named_count;
    int64_t timeout_ns; /* 0: nothing was said */
    unsigned window;

    char *home, *agent;         /* of this user and process; agent: SSH_AUTH_SOCK or NULL */
    struct ssh_queue waiting;   /* for a place in the window */
    unsigned places;            /* taken */
    unsigned hops;              /* gateways of gateways that are being made */
    struct event_source *admit; /* deferred: gives places to who waits */
};

/* The connection waits for a place; ssh_connection_begin() is called when it has one. */
void ssh_client_queue(struct ssh_client *client, struct ssh_connection *connection);
/* It waits no more, and gives back its place if it had one. */
void ssh_client_leave(struct ssh_client *client, struct ssh_connection *connection);
/* "~/NAME" and "~" in the home folder; anything else as it is. The caller frees. */
char *ssh_client_path(const struct ssh_client *client, const char *path);

/* ---- where to (target.c) */

/* All that is known of a destination before anything is connected. Owned strings. */
struct ssh_target {
    char *user, *address; /* to connect to */
    unsigned port;
    char *key_name;              /* in known_hosts */
    char *key_name_without_port; /* which counts too; NULL: none does */
    char *jump;                  /* "a,b": through these; NULL: straight */
    char *agent;                 /* the socket of ssh-agent; NULL: none is asked */
    char *known_hosts[HOST_KEYS_FILES_MAX];
    size_t known_hosts_count;
    char *revoked_keys;                                  /* the file of RevokedHostKeys; NULL: none */
    struct ssh_identity *identities[SSH_IDENTITIES_MAX]; /* borrowed, in the order of trying */
    size_t identity_count;
    size_t agent_at;  /* ssh-agent is asked before the identity of this index */
    bool agent_named; /* only for the keys of the identities */
    int64_t timeout_ns;
};

/* JUMP: the gateways before this one when DESTINATION is a gateway itself ("" for the first of them), NULL
 * when it is a node. */
int ssh_target_init(struct ssh_target *ret, struct ssh_client *client, const char *destination,
                    const char *jump, struct failure *failure);
void ssh_target_clear(struct ssh_target *target);
/* How its host key is known; borrows from the target. */
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
    struct event_source *timeout; /* timer of the step */

    struct ssh_connection *queue_next; /* in the client's queue */
    bool queued, has_place;

    struct ssh_gateway *gateway; /* NULL: straight */
    struct ssh_connection *user_next, **user_previous;
    bool at_gateway; /* among its users */
    struct ssh_tunnel *tunnel;

    struct name_query *query;
    struct name_address *addresses;
    size_t address_count, address_at;
    int64_t dial_deadline;
    int dial_error;

    int descriptor; /* of which libssh has a duplicate */
    struct event_source *source;
    ssh_session session;
    ssh_event event; /* of the session alone: how libssh is told to look at its socket */
    struct ssh_counter_struct counter;

    size_t identity_at; /* the next one to try */
    bool signing;       /* the server would take it: now it is signed with */
    bool agent_done;
    struct ssh_agent_call *agent_call; /* NULL: none was made */

    struct ssh_stream *streams, **streams_end; /* its channels */
    struct ssh_stream *cursor;                 /* the next to be served */
    struct ssh_stream *current;                /* being served; NULL once it is freed */
    struct event_source *turn;                 /* deferred */
    unsigned depth; /* callbacks under way: the memory stays until they have returned */
    bool doomed;    /* freed by one of them */
    bool news;      /* a libssh callback noted something since the last turn */
};

/* As ssh_connection_new(), with BEFORE as in ssh_target_init(). */
int ssh_connection_make(struct ssh_client *client, const char *destination, const char *before,
                        const struct ssh_connection_listener *listener, struct ssh_connection **ret,
                        struct failure *failure);
/* It has its place: goes on. */
void ssh_connection_begin(struct ssh_connection *connection);
/* The one way to the end, but for ssh_connection_free(). */
void ssh_connection_fail(struct ssh_connection *connection, const struct failure *why);
/* CODE and sentence of what libssh says went wrong with the session. */
int ssh_connection_explain(struct ssh_connection *connection, struct failure *failure, const char *what);
/* DESCRIPTOR is connected to the server: the key exchange begins. Takes the descriptor. */
void ssh_connection_exchange(struct ssh_connection *connection, int descriptor);
/* Bytes wait for the network: nothing more should be written. */
bool ssh_connection_is_choked(const struct ssh_connection *connection);
bool ssh_connection_is_broken(struct ssh_connection *connection);
/* libssh may have read or written: watches for what it waits for, and has the streams served. */
void ssh_connection_look(struct ssh_connection *connection);
/* The login goes on: the server or ssh-agent has said something. */
void ssh_connection_step_login(struct ssh_connection *connection);
/* Lets go of the socket, the session, and its places: only memory is left. */
void ssh_connection_release(struct ssh_connection *connection);

/* ---- TCP (dial.c) */

/* Tries the addresses in turn; goes on to ssh_connection_exchange() or ssh_connection_fail(). */
void ssh_dial_start(struct ssh_connection *connection);
void ssh_dial_expired(struct ssh_connection *connection);

/* ---- login (login.c) */

/* After the key exchange: is the server who it should be? 0, or -EKEYREJECTED and what to do. */
int ssh_login_check_host(struct ssh_connection *connection, struct failure *failure);
/* 1 logged in, 0 not yet, or negative. To be called again when there is something to read. */
int ssh_login_step(struct ssh_connection *connection, struct failure *failure);

/* ---- ssh-agent (agent.c) */

/* As ssh_userauth_agent(), but never waits: SSH_AUTH_AGAIN while the agent is asked, and then the login is
 * stepped again. The target's identities that have no private key are tried first. */
int ssh_agent_try(struct ssh_connection *connection);
/* While it is, nothing else may be done with the session. */
bool ssh_agent_is_asked(const struct ssh_connection *connection);
/* Its answer is not waited for any more. */
void ssh_agent_stop(struct ssh_connection *connection);

/* ---- gateways (gateway.c) */

/* Finds the gateway of the connection's target, or makes it. */
int ssh_gateway_join(struct ssh_connection *connection, struct failure *failure);
/* The connection was started: gets in the queue once the gateway is there. */
int ssh_gateway_start(struct ssh_connection *connection, struct failure *failure);
void ssh_gateway_leave(struct ssh_connection *connection);
void ssh_gateway_free_all(struct ssh_client *client);
/* Whether it may set up one more; takes and gives back a place of its window. */
bool ssh_gateway_take(struct ssh_gateway *gateway);
void ssh_gateway_give_back(struct ssh_gateway *gateway);
/* Opens a channel to the target; goes on to ssh_connection_exchange() or ssh_connection_fail(). */
int ssh_tunnel_open(struct ssh_connection *connection, struct failure *failure);
void ssh_tunnel_free(struct ssh_tunnel *tunnel);

/* ---- streams (stream.c) */

/* A channel to HOST and PORT as the server reaches them: no program is started for it. */
int ssh_connection_open_forward(struct ssh_connection *connection, const char *host, unsigned port,
                                const struct remote_channel_listener *listener, struct remote_channel **ret,
                                struct failure *failure);
/* Each stream goes on and tells its listener; ends early if the connection goes. */
void ssh_stream_serve_all(struct ssh_connection *connection);
/* The session goes: what the streams have of libssh goes with it. */
void ssh_stream_detach_all(struct ssh_connection *connection);
/* The connection has ended: every listener is told WHY. */
void ssh_stream_fail_all(struct ssh_connection *connection, const struct failure *why);
void ssh_stream_free_all(struct ssh_connection *connection);

#endif
