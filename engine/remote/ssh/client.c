#include "engine/remote/ssh/client.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/connection-private.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { PASSWD_SIZE = 16384 };

/* ---- the window */

void ssh_client_queue(struct ssh_client *client, struct ssh_connection *connection) {
    connection->queued = true;
    connection->queue_next = NULL;
    *client->waiting.end = connection;
    client->waiting.end = &connection->queue_next;
    event_source_defer(client->admit);
}

static void unqueue(struct ssh_client *client, struct ssh_connection **at) {
    struct ssh_connection *connection = *at;
    *at = connection->queue_next;
    if (client->waiting.end == &connection->queue_next)
        client->waiting.end = at;
    connection->queued = false;
}

void ssh_client_leave(struct ssh_client *client, struct ssh_connection *connection) {
    for (struct ssh_connection **at = &client->waiting.first; connection->queued; at = &(*at)->queue_next)
        if (*at == connection)
            unqueue(client, at);
    if (!connection->has_place)
        return;
    connection->has_place = false;
    client->places--;
    if (connection->gateway)
        ssh_gateway_give_back(connection->gateway);
    event_source_defer(client->admit);
}

/* Takes the first waiting connection whose gateway has a free place, and gives it a place in the window;
 * NULL: there is none. */
static struct ssh_connection *admit_next(struct ssh_client *client) {
    if (client->places >= client->window)
        return NULL;
    struct ssh_connection **at = &client->waiting.first;
    while (*at && (*at)->gateway && !ssh_gateway_take((*at)->gateway))
        at = &(*at)->queue_next;
    struct ssh_connection *connection = *at;
    if (!connection)
        return NULL;
    unqueue(client, at);
    connection->has_place = true;
    client->places++;
    return connection;
}

static void on_admit(struct event_source *self, void *context) {
    (void)self;
    struct ssh_client *client = context;
    struct ssh_connection *connection;
    while ((connection = admit_next(client)))
        ssh_connection_begin(connection);
}

/* ---- the user's home folder and ssh-agent */

static void find_home(struct ssh_client *client) {
    char buffer[PASSWD_SIZE];
    struct passwd entry, *found = NULL;
    const char *home = getenv("HOME"), *agent = getenv("SSH_AUTH_SOCK");
    if (!home || *home != '/') {
        (void)getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found);
        home = found ? found->pw_dir : "/";
    }
    client->home = xstrdup(home);
    client->agent = agent && *agent ? xstrdup(agent) : NULL;
}

char *ssh_client_path(const struct ssh_client *client, const char *path) {
    if (path[0] != '~' || (path[1] != '/' && path[1] != '\0'))
        return xstrdup(path);
    return xformat("%s%s", client->home, path + 1);
}

/* ---- options */

/* Adds a key file that the user named. FAILURE_INPUT where it cannot be read or is no key. An encrypted key
 * is accepted, since ssh-agent may have it. */
static int add_identity(struct ssh_client *client, const char *path, struct failure *failure) {
    cleanup_free char *whole = ssh_client_path(client, path);
    const struct ssh_identity *identity = ssh_identity_get(client, whole);
    if (access(whole, R_OK) < 0)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot read the key '%s': %s", whole,
                                strerror(errno));
    if (!identity->key && !identity->encrypted && !identity->public)
        return failure_input(failure, NULL, 0, 0, "'%s' is not a private key", whole);
    client->named[client->named_count++] = take_pointer(whole);
    return 0;
}

/* Checks the destinations of LIST, "DESTINATION,...", which the user gave as WHAT, before any node is
 * connected. */
static int check_destinations(const char *list, const char *what, struct failure *failure) {
    cleanup_free char *copy = xstrdup(list);
    char *rest = copy;
    for (char *one; (one = strsep(&rest, ","));) {
        cleanup_free char *user = NULL, *host = NULL;
        unsigned port;
        int r = *one ? ssh_destination_parse(one, &user, &host, &port, failure) : 0;
        if (r < 0)
            return failure_prefix(failure, "%s '%s'", what, list);
    }
    return 0;
}

/* Checks the options of the user and copies them. FAILURE_INPUT: one is wrong, or a file cannot be read. */
static int set_options(struct ssh_client *client, const struct ssh_client_options *options,
                       struct failure *failure) {
    client->port = options->port;
    client->timeout_ns = options->timeout_ns;
    client->window = options->window ? options->window : SSH_WINDOW_DEFAULT;
    if (client->window > SSH_WINDOW_MAX)
        return failure_input(failure, NULL, 0, 0, "a window of %u connections is more than %d",
                             client->window, SSH_WINDOW_MAX);
    if (options->port > 65535)
        return failure_input(failure, NULL, 0, 0, "%u is not a port; expected 1 to 65535", options->port);
    client->user = options->user ? xstrdup(options->user) : NULL;
    client->jump = options->jump ? xstrdup(options->jump) : NULL;
    cleanup_free char *login = client->user ? xformat("%s@node", client->user) : NULL;
    int checked = login ? check_destinations(login, "user", failure) : 0;
    if (checked == 0 && client->jump && strcasecmp(client->jump, "none") != 0)
        checked = check_destinations(client->jump, "gateways", failure);
    if (checked < 0)
        return checked;
    if (options->known_hosts) {
        client->known_hosts = ssh_client_path(client, options->known_hosts);
        int r = host_keys_read(client->host_keys, client->known_hosts, failure);
        if (r < 0)
            return r;
    }
    if (options->identity_count > SSH_IDENTITIES_MAX)
        return failure_input(failure, NULL, 0, 0, "%zu keys are more than %d", options->identity_count,
                             SSH_IDENTITIES_MAX);
    client->named = xcalloc(options->identity_count + 1, sizeof *client->named);
    for (size_t i = 0; i < options->identity_count; i++) {
        int r = add_identity(client, options->identities[i], failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- making and freeing */

/* Fills a client in which only the loop is set: host keys, options, ssh configuration, name resolver. */
static int set_up(struct ssh_client *client, const struct ssh_client_options *options,
                  struct failure *failure) {
    find_home(client);
    client->admit = event_loop_add_deferred(client->loop, on_admit, client);
    if (!client->admit)
        return failure_memory(failure);
    int r = host_keys_new(client->loop, options->accepted_hosts, &client->host_keys, failure);
    if (r < 0)
        return r;
    if (options->accepts_no_more)
        host_keys_seal(client->host_keys);
    r = set_options(client, options, failure);
    if (r < 0)
        return r;
    r = ssh_config_new(options->config, client->home, &client->config, failure);
    if (r < 0)
        return r;
    return name_resolver_new(client->loop, &client->resolver, failure);
}

int ssh_client_new(struct event_loop *loop, const struct ssh_client_options *options, struct ssh_client **ret,
                   struct failure *failure) {
    static const struct ssh_client_options none;
    struct ssh_client *client = xcalloc(1, sizeof *client);
    client->loop = loop;
    client->waiting.end = &client->waiting.first;
    int r = set_up(client, options ? options : &none, failure);
    if (r < 0) {
        ssh_client_free(client);
        return r;
    }
    *ret = client;
    return 0;
}

void ssh_client_free(struct ssh_client *client) {
    if (!client)
        return;
    ssh_gateway_free_all(client);
    event_source_remove(client->admit);
    name_resolver_free(client->resolver);
    ssh_config_free(client->config);
    host_keys_free(client->host_keys);
    ssh_identity_free_all(client);
    for (size_t i = 0; i < client->named_count; i++)
        free(client->named[i]);
    free(client->named);
    free(client->user);
    free(client->jump);
    free(client->known_hosts);
    free(client->home);
    free(client->agent);
    free(client);
}
