#include "engine/foundation/cleanup.h"
#include "engine/remote/ssh/connection-private.h"

#include <errno.h>
#include <stdio.h>

/* ---- the server's host key */

struct server_key {
    ssh_key key;
    char *base64, *fingerprint;
    const char *type;
};

static void server_key_clear(struct server_key *server) {
    ssh_key_free(server->key);
    ssh_string_free_char(server->base64);
    ssh_string_free_char(server->fingerprint);
}

/* The host key of the server with its fingerprint, base64 and type. -ENOMEM when libssh fails. */
static int server_key_get(ssh_session session, struct server_key *ret) {
    if (ssh_get_server_publickey(session, &ret->key) != SSH_OK ||
        ssh_pki_export_pubkey_base64(ret->key, &ret->base64) != SSH_OK)
        return -ENOMEM;
    unsigned char *hash = NULL;
    size_t length;
    if (ssh_get_publickey_hash(ret->key, SSH_PUBLICKEY_HASH_SHA256, &hash, &length) == 0) {
        ret->fingerprint = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, length);
        ssh_clean_pubkey_hash(&hash);
    }
    ret->type = ssh_key_type_to_char(ssh_key_type(ret->key));
    return ret->fingerprint && ret->type ? 0 : -ENOMEM;
}

/* Refuses a host whose key is not known, with its fingerprint and what to do. */
static int refuse_unknown(const struct ssh_connection *connection, const struct server_key *server,
                          const struct host_key_finding *finding, struct failure *failure) {
    const struct ssh_target *target = &connection->target;
    if (finding->file)
        return node_failure(
            failure, connection->name, -EKEYREJECTED,
            "its host key is not known (%s %s, expected as '%s'): '%s' line %zu has a @cert-authority for "
            "it, "
            "and host certificates are not followed; add what ssh-keyscan prints, or use " SSH_LAUNCHER,
            server->type, server->fingerprint, target->key_name, finding->file, finding->line);
    return node_failure(
        failure, connection->name, -EKEYREJECTED,
        "its host key is not known (%s %s, expected as '%s' in '%s'): compare the fingerprint and log in "
        "once with ssh, or add what ssh-keyscan prints to that file, or accept the keys of new nodes "
        "('host-keys: accept-new' in the campaign's testbed, --accept-new of 'assay nodes')",
        server->type, server->fingerprint, target->key_name,
        target->known_hosts_count ? target->known_hosts[0] : "no file");
}

/* Looks up the host key of the server. An unknown one is accepted and noted, if that is configured. */
int ssh_login_check_host(struct ssh_connection *connection, struct failure *failure) {
    cleanup(server_key_clear) struct server_key server = {0};
    if (server_key_get(connection->session, &server) < 0)
        return failure_memory(failure);
    struct host_keys *keys = connection->client->host_keys;
    struct host_key_place place = ssh_target_place(&connection->target);
    struct host_key_finding finding = host_keys_look_up(keys, &place, server.key);
    switch (finding.verdict) {
    case HOST_KEY_KNOWN:
        return 0;
    case HOST_KEY_UNKNOWN: {
        struct failure own;
        int r = host_keys_accept(keys, place.name, server.type, server.base64, &own);
        if (r == -ENOTSUP)
            return refuse_unknown(connection, &server, &finding, failure);
        return r < 0 ? node_failure(failure, connection->name, r, "%s", own.text) : 0;
    }
    case HOST_KEY_CHANGED:
        return node_failure(
            failure, connection->name, -EKEYREJECTED,
            "its host key has changed: it shows %s %s, and '%s' line %zu has another for '%s'; either the "
            "node "
            "was installed anew, and the line is to be removed (ssh-keygen -R '%s' -f '%s'), or somebody "
            "else answers in its place",
            server.type, server.fingerprint, finding.file, finding.line, place.name, place.name,
            finding.file);
    case HOST_KEY_UNREADABLE:
        return node_failure(failure, connection->name, -EKEYREJECTED,
                            "its host key cannot be checked: '%s' might know it and cannot be "
                            "read: %s",
                            finding.file, finding.reason);
    case HOST_KEY_REVOKED:
        break;
    }
    return node_failure(failure, connection->name, -EKEYREJECTED,
                        "its host key is revoked: it shows %s %s, which '%s' line %zu forbids", server.type,
                        server.fingerprint, finding.file, finding.line);
}

/* ---- the user's login */

static bool is_usable(const struct ssh_identity *identity) {
    return identity->key != NULL;
}

/* True where exactly one key can be tried. ssh-agent's keys count as two, since their number is not known. */
static bool has_one_candidate(const struct ssh_target *target) {
    size_t count = target->agent ? 2 : 0;
    for (size_t i = 0; i < target->identity_count; i++)
        count += is_usable(target->identities[i]);
    return count == 1;
}

static void add_word(struct text *text, const char *before, const char *word) {
    (void)text_printf(text, "%s%s", text->length ? before : "", word);
}

static void list_methods(int methods, struct text *ret) {
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{SSH_AUTH_METHOD_PUBLICKEY, "public key"},
                 {SSH_AUTH_METHOD_PASSWORD, "password"},
                 {SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive"},
                 {SSH_AUTH_METHOD_HOSTBASED, "host-based"},
                 {SSH_AUTH_METHOD_GSSAPI_MIC, "GSSAPI"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((unsigned)methods & names[i].bit)
            add_word(ret, ", ", names[i].name);
}

/* True for an identity that cannot be used here, but might by OpenSSH: a certificate whose key only ssh-agent
 * has, or a key of a kind that libssh does not know. */
static bool is_unusable_here(const struct ssh_target *target, const struct ssh_identity *identity) {
    bool agents = target->agent && identity->public;
    return !identity->key && !identity->missing && !identity->encrypted && !agents;
}

/* Fails with the keys that were tried, those that were not, and the server's methods. HOW: more on the
 * refusal, or "". */
static int refuse_login(const struct ssh_connection *connection, const char *how, struct failure *failure) {
    const struct ssh_target *target = &connection->target;
    cleanup(text_clear) struct text tried;
    cleanup(text_clear) struct text locked;
    cleanup(text_clear) struct text methods;
    cleanup(text_clear) struct text left;
    text_init(&tried, 1024);
    text_init(&locked, 512);
    text_init(&methods, 256);
    text_init(&left, 512);
    for (size_t i = 0; i <= target->identity_count; i++) {
        if (i == target->agent_at && target->agent)
            add_word(&tried, ", ", "the keys of ssh-agent");
        if (i < target->identity_count && is_usable(target->identities[i]))
            add_word(&tried, ", ", target->identities[i]->path);
        if (i < target->identity_count && target->identities[i]->encrypted)
            add_word(&locked, ", ", target->identities[i]->path);
        if (i < target->identity_count && is_unusable_here(target, target->identities[i]))
            add_word(&left, ", ", target->identities[i]->path);
    }
    list_methods(ssh_userauth_list(connection->session, NULL), &methods);
    return node_failure(failure, connection->name, -EACCES,
                        "the login of '%s' was refused%s: tried %s; the server takes %s%s%s%s%s%s%s",
                        target->user, how, tried.length ? tried.bytes : "no key, since none was found",
                        methods.length ? methods.bytes : "no method that it names",
                        locked.length ? "; needs a passphrase and was not tried: " : "", locked.bytes,
                        locked.length ? " (give it to ssh-agent with ssh-add)" : "",
                        left.length ? "; not used: " : "", left.bytes,
                        left.length
                            ? " (libssh cannot read this key, or only ssh-agent has its private part); "
                              "log in by OpenSSH instead: " SSH_LAUNCHER
                            : "");
}

/* The functions below are called again as long as they return SSH_AUTH_AGAIN. */

static int try_agent(struct ssh_connection *connection) {
    int r = connection->target.agent ? ssh_agent_try(connection) : SSH_AUTH_DENIED;
    connection->agent_done = r != SSH_AUTH_AGAIN;
    return r;
}

/* Tries the next identity. The server is first asked whether it accepts the key, which saves useless
 * signatures; a single key is signed with at once, which saves a round trip. */
static int try_identity(struct ssh_connection *connection) {
    const struct ssh_identity *identity = connection->target.identities[connection->identity_at];
    int r = is_usable(identity) ? SSH_AUTH_SUCCESS : SSH_AUTH_DENIED;
    /* A certificate is not asked about: libssh would ask about its plain key. */
    bool asks = !identity->certificate && !has_one_candidate(&connection->target);
    if (is_usable(identity) && !connection->signing && asks)
        r = ssh_userauth_try_publickey(connection->session, NULL, identity->key);
    if (r == SSH_AUTH_SUCCESS) {
        connection->signing = true;
        r = ssh_userauth_publickey(connection->session, NULL, identity->key);
    }
    if (r != SSH_AUTH_AGAIN) {
        connection->signing = false;
        connection->identity_at++;
    }
    return r;
}

/* Tries all identities, and ssh-agent in its place. SSH_AUTH_DENIED: none was accepted. */
static int try_all(struct ssh_connection *connection) {
    const struct ssh_target *target = &connection->target;
    while (connection->identity_at < target->identity_count || !connection->agent_done) {
        bool agent = connection->identity_at == target->agent_at && !connection->agent_done;
        int r = agent ? try_agent(connection) : try_identity(connection);
        /* A key that libssh cannot sign with, or that an agent refuses, counts as refused by the server. */
        if (r == SSH_AUTH_ERROR && !ssh_connection_is_broken(connection))
            r = SSH_AUTH_DENIED;
        if (r != SSH_AUTH_DENIED)
            return r;
    }
    return SSH_AUTH_DENIED;
}

/* Goes on with the login. 1: logged in; 0: an answer is waited for; negative: refused, or the connection
 * ended. */
int ssh_login_step(struct ssh_connection *connection, struct failure *failure) {
    int r = try_all(connection);
    /* If no key was tried, the method "none" makes the server list its methods. */
    if (r == SSH_AUTH_DENIED && ssh_userauth_list(connection->session, NULL) == 0)
        r = ssh_userauth_none(connection->session, NULL);
    switch (r) {
    case SSH_AUTH_SUCCESS:
        return 1;
    case SSH_AUTH_AGAIN:
        if (ssh_agent_is_asked(connection) || !ssh_connection_is_broken(connection))
            return 0;
        break;
    case SSH_AUTH_DENIED:
        return refuse_login(connection, "", failure);
    case SSH_AUTH_PARTIAL:
        return refuse_login(connection, " (the key is not enough: the server wants a second proof)", failure);
    default:
        break;
    }
    int code = ssh_connection_explain(connection, failure, "the login");
    if (code != -EACCES)
        return code;
    struct failure told = *failure;
    char how[256];
    snprintf(how, sizeof how, ", and %.240s", told.text);
    return refuse_login(connection, how, failure);
}
