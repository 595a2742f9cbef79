#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/inside.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_none(const char *word) {
    return word && strcasecmp(word, "none") == 0;
}

/* ---- identities: the user's, the configuration's, those of ssh-agent, the usual files */

static int add_identity(struct ssh_target *target, struct ssh_client *client, const char *path,
                        struct failure *failure) {
    cleanup_free char *whole = ssh_client_path(client, path);
    struct ssh_identity *identity = whole ? ssh_identity_get(client, whole) : NULL;
    if (!identity)
        return failure_memory(failure);
    for (size_t i = 0; i < target->identity_count; i++)
        if (target->identities[i] == identity)
            return 0;
    if (target->identity_count == SSH_IDENTITIES_MOST)
        return failure_set_kind(failure, FAILURE_INPUT, -E2BIG, "there are more than %d key files",
                                SSH_IDENTITIES_MOST);
    target->identities[target->identity_count++] = identity;
    return 0;
}

static bool has_encrypted(const struct ssh_target *target) {
    for (size_t i = 0; i < target->identity_count; i++)
        if (target->identities[i]->encrypted)
            return true;
    return false;
}

static int set_agent(struct ssh_target *target, const struct ssh_client *client, const struct ssh_host *host,
                     struct failure *failure) {
    const char *path = host->identity_agent;
    if (is_none(path))
        return 0;
    if (!path || strcmp(path, "SSH_AUTH_SOCK") == 0)
        path = client->agent;
    /* libssh cannot be told which of the agent's keys to try. Who wants only the keys he named has all of the
     * agent's tried if one of his cannot be read without it, and none otherwise. */
    if (!path || (host->identities_only && !has_encrypted(target)))
        return 0;
    target->agent = ssh_client_path(client, path);
    return target->agent ? 0 : failure_memory(failure);
}

static int gather_identities(struct ssh_target *target, struct ssh_client *client,
                             const struct ssh_host *host, struct failure *failure) {
    static const char *const usual[] = {"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"};
    int r = 0;
    for (size_t i = 0; i < client->named_count && r == 0; i++)
        r = add_identity(target, client, client->named[i], failure);
    for (size_t i = 0; i < host->identity_count && r == 0; i++)
        r = add_identity(target, client, host->identities[i], failure);
    if (r == 0)
        r = set_agent(target, client, host, failure);
    target->agent_at = target->identity_count;
    bool only = host->identities_only && target->identity_count > 0;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && r == 0 && !only; i++)
        r = add_identity(target, client, usual[i], failure);
    return r;
}

/* ---- known hosts */

static int add_known_hosts(struct ssh_target *target, char *path, struct failure *failure) {
    size_t capacity = target->known_hosts_count;
    int r = path ? list_reserve(&target->known_hosts, &capacity, capacity + 1, sizeof *target->known_hosts,
                                HOST_KEYS_FILES_MOST)
                 : -ENOMEM;
    if (r < 0) {
        free(path);
        return r == -ENOMEM
                   ? failure_memory(failure)
                   : failure_set_kind(failure, FAILURE_INPUT, r,
                                      "there are more than %d files of known hosts", HOST_KEYS_FILES_MOST);
    }
    target->known_hosts[target->known_hosts_count++] = path;
    return 0;
}

static int gather_known_hosts(struct ssh_target *target, const struct ssh_client *client,
                              const struct ssh_host *host, struct failure *failure) {
    if (client->known_hosts)
        return add_known_hosts(target, strdup(client->known_hosts), failure);
    int r = 0;
    if (!host->known_hosts)
        r = add_known_hosts(target, ssh_client_path(client, "~/.ssh/known_hosts"), failure);
    for (const char *at = host->known_hosts; at && *at && r == 0;) {
        size_t length = strcspn(at, " \t");
        cleanup_free char *word = xstrndup(at, length);
        if (length && !is_none(word))
            r = add_known_hosts(target, ssh_client_path(client, word), failure);
        at += length + strspn(at + length, " \t");
    }
    return r < 0 ? r : add_known_hosts(target, strdup("/etc/ssh/ssh_known_hosts"), failure);
}

static int set_key_name(struct ssh_target *target, const struct ssh_host *host) {
    /* An alias stands for host and port. */
    if (host->host_key_alias)
        target->key_name = strdup(host->host_key_alias);
    else if (target->port == SSH_PORT_DEFAULT)
        target->key_name = strdup(target->address);
    else
        target->key_name = xformat("[%s]:%u", target->address, target->port);
    for (char *at = target->key_name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return 0;
}

/* ---- gateways */

/* How much of the gateways in JUMP leads to HOST: all, or, when it is one of them, those before it, so that a
 * gateway named for all hosts is not reached through itself. USUAL is the port of a host of that name. */
static int cut_jump(const char *jump, const char *name, unsigned usual, unsigned port, size_t *ret,
                    struct failure *failure) {
    unsigned hops = 0;
    for (const char *at = jump; *at;) {
        size_t length = strcspn(at, ",");
        cleanup_free char *hop = xstrndup(at, length), *user = NULL, *hop_name = NULL;
        unsigned hop_port = 0;
        int r = ssh_destination_parse(hop, &user, &hop_name, &hop_port, failure);
        if (r < 0)
            return failure_prefix(failure, "gateway '%s'", hop);
        if (strcasecmp(hop_name, name) == 0 && (hop_port ? hop_port : usual) == port) {
            *ret = at == jump ? 0 : (size_t)(at - jump) - 1;
            return 0;
        }
        if (++hops > SSH_HOPS_MOST)
            return failure_set_kind(failure, FAILURE_INPUT, -E2BIG, "'%s' are more than %d gateways", jump,
                                    SSH_HOPS_MOST);
        at += length;
        at += *at == ',';
    }
    *ret = strlen(jump);
    return 0;
}

static int set_jump(struct ssh_target *target, const struct ssh_client *client, const struct ssh_host *host,
                    const char *name, const char *before, struct failure *failure) {
    /* A gateway behind others is reached through those, whatever is configured for it; the first of them as
     * the configuration says. What the user said is for nodes. */
    const char *jump = before && *before ? before : NULL;
    if (!jump && !before)
        jump = client->jump;
    bool configured = !jump;
    if (configured)
        jump = host->proxy_jump;
    if (configured && !jump && host->proxy_command && !is_none(host->proxy_command))
        return failure_set_kind(
            failure, FAILURE_INPUT, -ENOTSUP,
            "'%s' has a ProxyCommand in the ssh configuration ('%s'), which is text for a "
            "shell and is not run; expected ProxyJump, or the gateways as an option",
            name, host->proxy_command);
    if (!jump || is_none(jump))
        return 0;
    size_t length = 0;
    unsigned usual = host->port ? host->port : SSH_PORT_DEFAULT;
    int r = cut_jump(jump, name, usual, target->port, &length, failure);
    if (r < 0 || length == 0)
        return r;
    target->jump = xstrndup(jump, length);
    return 0;
}

/* ---- all of it */

static int set_address(struct ssh_target *target, const struct ssh_client *client,
                       const struct ssh_host *host, const char *user, unsigned port, bool is_gateway,
                       struct failure *failure) {
    if (!user && !is_gateway)
        user = client->user;
    if (!user)
        user = host->user ? host->user : client->local_user;
    if (!port && !is_gateway)
        port = client->port;
    if (!port)
        port = host->port ? host->port : SSH_PORT_DEFAULT;
    target->user = strdup(user);
    target->address = strdup(host->host_name);
    target->port = port;
    target->timeout_ns = client->timeout_ns      ? client->timeout_ns
                         : host->connect_timeout ? (int64_t)host->connect_timeout * EVENT_SECOND
                                                 : SSH_TIMEOUT_DEFAULT_NS;
    return target->user && target->address ? set_key_name(target, host) : failure_memory(failure);
}

int ssh_target_init(struct ssh_target *ret, struct ssh_client *client, const char *destination,
                    const char *jump, struct failure *failure) {
    *ret = (struct ssh_target){0};
    cleanup_free char *user = NULL, *name = NULL;
    unsigned port = 0;
    int r = ssh_destination_parse(destination, &user, &name, &port, failure);
    if (r < 0)
        return r;
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    r = ssh_config_look_up(client->config, name, &host, failure);
    if (r < 0)
        return r;
    r = set_address(ret, client, &host, user, port, jump != NULL, failure);
    if (r == 0)
        r = set_jump(ret, client, &host, name, jump, failure);
    if (r == 0)
        r = gather_identities(ret, client, &host, failure);
    if (r == 0)
        r = gather_known_hosts(ret, client, &host, failure);
    if (r < 0)
        ssh_target_clear(ret);
    return r;
}

void ssh_target_clear(struct ssh_target *target) {
    free(target->user);
    free(target->address);
    free(target->key_name);
    free(target->jump);
    free(target->agent);
    for (size_t i = 0; i < target->known_hosts_count; i++)
        free(target->known_hosts[i]);
    free(target->known_hosts);
    *target = (struct ssh_target){0};
}

struct host_key_place ssh_target_place(const struct ssh_target *target) {
    return (struct host_key_place){.name = target->key_name,
                                   .files = (const char *const *)target->known_hosts,
                                   .file_count = target->known_hosts_count};
}
