#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/connection-private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_none(const char *word) {
    return word && strcasecmp(word, "none") == 0;
}

/* ---- identities, in the order of trying: the user's, the configuration's, ssh-agent's, the usual files */

static int append_identity(struct ssh_target *target, struct ssh_identity *identity,
                           struct failure *failure) {
    for (size_t i = 0; i < target->identity_count; i++)
        if (target->identities[i] == identity)
            return 0;
    if (target->identity_count == SSH_IDENTITIES_MAX)
        return failure_set_kind(failure, FAILURE_INPUT, -E2BIG, "there are more than %d key files",
                                SSH_IDENTITIES_MAX);
    target->identities[target->identity_count++] = identity;
    return 0;
}

/* Adds the key file PATH and, before it, its certificates: those of the configuration and PATH-cert.pub, as
 * OpenSSH does. */
static int add_identity(struct ssh_target *target, struct ssh_client *client, const struct ssh_host *host,
                        const char *path, struct failure *failure) {
    cleanup_free char *whole = ssh_client_path(client, path);
    struct ssh_identity *identity = ssh_identity_get(client, whole);
    int r = 0;
    for (size_t i = 0; i <= host->certificate_count && r == 0; i++) {
        cleanup_free char *file = i < host->certificate_count ? ssh_client_path(client, host->certificates[i])
                                                              : xformat("%s-cert.pub", whole);
        struct ssh_identity *certified = ssh_identity_certified(client, identity, file);
        if (certified)
            r = append_identity(target, certified, failure);
    }
    return r < 0 ? r : append_identity(target, identity, failure);
}

/* Sets whether ssh-agent is asked, and for which keys. */
static void set_agent(struct ssh_target *target, const struct ssh_client *client,
                      const struct ssh_host *host) {
    const char *path = host->identity_agent;
    if (is_none(path))
        return;
    if (!path || strcmp(path, "SSH_AUTH_SOCK") == 0)
        path = client->agent;
    /* With IdentitiesOnly only keys of the agent whose public part is among the identities are tried; but
     * all, if the public part of an encrypted identity cannot be read. */
    bool named = false, unknown = false;
    for (size_t i = 0; i < target->identity_count; i++) {
        named |= target->identities[i]->public != NULL;
        unknown |= target->identities[i]->encrypted && !target->identities[i]->public;
    }
    target->agent_named = host->identities_only && !unknown;
    if (path && (!host->identities_only || named || unknown))
        target->agent = ssh_client_path(client, path);
}

static const char *const usual_files[] = {"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"};
enum { USUAL_FILES = sizeof usual_files / sizeof usual_files[0] };

/* True where the configuration names no key file: `ssh -G` then lists all the usual files. */
static bool names_usual_files(const struct ssh_client *client, const struct ssh_host *host) {
    size_t count = 0;
    for (size_t i = 0; i < USUAL_FILES; i++) {
        cleanup_free char *path = ssh_client_path(client, usual_files[i]);
        for (size_t k = 0; k < host->identity_count; k++)
            count += strcmp(path, host->identities[k]) == 0;
    }
    return count == USUAL_FILES;
}

/* Lists the keys to try: the user's options, those of the ssh configuration, the ssh agent, and the usual
 * files. */
static int gather_identities(struct ssh_target *target, struct ssh_client *client,
                             const struct ssh_host *host, struct failure *failure) {
    int r = 0;
    size_t configured = names_usual_files(client, host) ? 0 : host->identity_count;
    for (size_t i = 0; i < client->named_count && r == 0; i++)
        r = add_identity(target, client, host, client->named[i], failure);
    for (size_t i = 0; i < configured && r == 0; i++)
        r = add_identity(target, client, host, host->identities[i], failure);
    set_agent(target, client, host);
    target->agent_at = target->identity_count;
    bool only = host->identities_only && target->identity_count > 0;
    for (size_t i = 0; i < USUAL_FILES && r == 0 && !only; i++)
        r = add_identity(target, client, host, usual_files[i], failure);
    return r;
}

/* ---- known hosts */

/* The length of the first path in PATHS, "A B C" as `ssh -G` prints it, where a path may have blanks: the
 * longest beginning that is the path of a file, or else the first word. */
static size_t path_length(const struct ssh_client *client, const char *paths) {
    for (size_t length = strlen(paths); length > 0; length--) {
        if (paths[length] != '\0' && paths[length] != ' ')
            continue;
        cleanup_free char *head = xstrndup(paths, length), *path = ssh_client_path(client, head);
        if (file_exists(path))
            return length;
    }
    return strcspn(paths, " ");
}

/* Lists the files of known hosts: the user's option, or those of the ssh configuration. -E2BIG: they are too
 * many. */
static int gather_known_hosts(struct ssh_target *target, const struct ssh_client *client,
                              const struct ssh_host *host, struct failure *failure) {
    if (client->known_hosts) {
        target->known_hosts[target->known_hosts_count++] = xstrdup(client->known_hosts);
        return 0;
    }
    for (const char *at = host->known_hosts; *at;) {
        size_t length = path_length(client, at);
        cleanup_free char *word = xstrndup(at, length);
        if (length && target->known_hosts_count == HOST_KEYS_FILES_MAX)
            return failure_set_kind(failure, FAILURE_INPUT, -E2BIG,
                                    "there are more than %d files of known hosts", HOST_KEYS_FILES_MAX);
        if (length && !is_none(word))
            target->known_hosts[target->known_hosts_count++] = ssh_client_path(client, word);
        at += length + strspn(at + length, " ");
    }
    return 0;
}

/* Sets the names under which the host key is looked up, in lower case: the alias, the address, or
 * [address]:port. */
static void set_key_name(struct ssh_target *target, const struct ssh_host *host) {
    /* An alias replaces host and port. */
    if (host->host_key_alias)
        target->key_name = xstrdup(host->host_key_alias);
    else if (target->port == SSH_PORT_DEFAULT)
        target->key_name = xstrdup(target->address);
    else {
        target->key_name = xformat("[%s]:%u", target->address, target->port);
        target->key_name_without_port = xstrdup(target->address);
    }
    for (char *at = target->key_name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    for (char *at = target->key_name_without_port; at && *at; at++)
        *at = (char)tolower((unsigned char)*at);
}

/* ---- gateways */

/* Sets *RET to the length of the part of JUMP that leads to host NAME: all gateways or, where the host is one
 * of them, those before it. So a gateway that is configured for all hosts is not reached through itself.
 * DEFAULT_PORT: the port of a gateway of that name without a port. */
static int cut_jump(const char *jump, const char *name, unsigned default_port, unsigned port, size_t *ret,
                    struct failure *failure) {
    unsigned hops = 0;
    for (const char *at = jump; *at;) {
        size_t length = strcspn(at, ",");
        cleanup_free char *hop = xstrndup(at, length), *user = NULL, *hop_name = NULL;
        unsigned hop_port = 0;
        int r = ssh_destination_parse(hop, &user, &hop_name, &hop_port, failure);
        if (r < 0)
            return failure_prefix(failure, "gateway '%s'", hop);
        if (strcasecmp(hop_name, name) == 0 && (hop_port ? hop_port : default_port) == port) {
            *ret = at == jump ? 0 : (size_t)(at - jump) - 1;
            return 0;
        }
        if (++hops > SSH_HOPS_MAX)
            return failure_set_kind(failure, FAILURE_INPUT, -E2BIG,
                                    "'%s' has more than %d gateways, the most accepted", jump, SSH_HOPS_MAX);
        at += length;
        at += *at == ',';
    }
    *ret = strlen(jump);
    return 0;
}

/* Sets the last gateway of the target, from the gateways BEFORE it, the user's option, or the ssh
 * configuration. FAILURE_INPUT for a ProxyCommand. */
static int set_jump(struct ssh_target *target, const struct ssh_client *client, const struct ssh_host *host,
                    const char *name, const char *before, struct failure *failure) {
    /* A gateway behind others is reached through them, whatever is configured for it; the first gateway as
     * the configuration says. The user's option is for nodes only. */
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
            "shell and is not run; expected ProxyJump, or the gateways as an option, or " SSH_LAUNCHER,
            name, host->proxy_command);
    if (!jump || is_none(jump))
        return 0;
    size_t length = 0;
    int r = cut_jump(jump, name, host->port, target->port, &length, failure);
    if (r < 0 || length == 0)
        return r;
    target->jump = xstrndup(jump, length);
    return 0;
}

/* ---- the whole target */

/* Sets user, port, address and time-out: those of the destination, else the user's options (for nodes only),
 * else the configuration. */
static void set_address(struct ssh_target *target, const struct ssh_client *client,
                        const struct ssh_host *host, const char *user, unsigned port, bool is_gateway) {
    if (!user && !is_gateway)
        user = client->user;
    if (!port && !is_gateway)
        port = client->port;
    target->user = xstrdup(user ? user : host->user);
    target->port = port ? port : host->port;
    target->address = xstrdup(host->host_name);
    target->timeout_ns = client->timeout_ns      ? client->timeout_ns
                         : host->connect_timeout ? (int64_t)host->connect_timeout * EVENT_SECOND
                                                 : SSH_TIMEOUT_DEFAULT_NS;
    set_key_name(target, host);
}

int ssh_target_init(struct ssh_target *ret, struct ssh_client *client, const char *destination,
                    const char *jump, struct failure *failure) {
    cleanup(ssh_target_clear) struct ssh_target target = {0};
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    cleanup_free char *user = NULL, *name = NULL;
    unsigned port = 0;
    int r = ssh_destination_parse(destination, &user, &name, &port, failure);
    if (r < 0)
        return r;
    r = ssh_config_look_up(client->config, name, &host, failure);
    if (r < 0)
        return r;
    set_address(&target, client, &host, user, port, jump != NULL);
    r = set_jump(&target, client, &host, name, jump, failure);
    if (r < 0)
        return r;
    r = gather_identities(&target, client, &host, failure);
    if (r < 0)
        return r;
    r = gather_known_hosts(&target, client, &host, failure);
    if (r < 0)
        return r;
    target.revoked_keys = take_pointer(host.revoked_keys);
    *ret = target;
    target = (struct ssh_target){0};
    return 0;
}

void ssh_target_clear(struct ssh_target *target) {
    free(target->user);
    free(target->address);
    free(target->key_name);
    free(target->key_name_without_port);
    free(target->jump);
    free(target->agent);
    free(target->revoked_keys);
    for (size_t i = 0; i < target->known_hosts_count; i++)
        free(target->known_hosts[i]);
    *target = (struct ssh_target){0};
}

struct host_key_place ssh_target_place(const struct ssh_target *target) {
    return (struct host_key_place){.name = target->key_name,
                                   .name_without_port = target->key_name_without_port,
                                   .files = (const char *const *)target->known_hosts,
                                   .file_count = target->known_hosts_count,
                                   .revoked = target->revoked_keys};
}
