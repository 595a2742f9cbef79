/*
 * The user's ssh configuration of one destination. OpenSSH's `ssh -G` reads ssh_config(5), and its output is
 * parsed here. Without OpenSSH's client the only configuration is "none".
 */
#ifndef ASSAY_SSH_CONFIG_H
#define ASSAY_SSH_CONFIG_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

/* The settings of a host. Strings are owned; NULL: not set, ssh's default. */
struct ssh_host {
    char *host_name; /* to connect to; never NULL */
    char *user;      /* never NULL */
    unsigned port;
    char **identities; /* ~ and tokens expanded, in the order of the configuration */
    size_t identity_count;
    bool identities_only;
    char **certificates; /* user certificates of the identities, expanded likewise */
    size_t certificate_count;
    char *identity_agent; /* a socket's path, "none", or "SSH_AUTH_SOCK" */
    char *proxy_jump;     /* "[user@]host[:port],...", or "none" */
    char *proxy_command;
    char *known_hosts;  /* files of the user and of the system, separated by blanks */
    char *revoked_keys; /* the file of RevokedHostKeys, expanded; NULL: none */
    char *host_key_alias;
    unsigned connect_timeout; /* s; 0: not set */
};
void ssh_host_clear(struct ssh_host *host);

struct ssh_config;

/* PATH: the file to read instead of ~/.ssh/config and /etc/ssh/ssh_config (NULL); "none" or "": an empty
 * configuration, for which ssh is not run. HOME replaces "~". Where it is not the home folder of the password
 * file, only HOME/.ssh/config is read, or /etc/ssh/ssh_config if that does not exist. FAILURE_INPUT when PATH
 * cannot be read. */
int ssh_config_new(const char *path, const char *home, struct ssh_config **ret, struct failure *failure);
void ssh_config_free(struct ssh_config *config);

/* Looks up the settings of DESTINATION, the host as the user named it, without user and port. The caller
 * clears RET. ssh is run only if it was not run for a host with the same settings before: the same Host
 * patterns match both, there are no Match blocks for particular hosts, and the output differs in the host's
 * name only. FAILURE_INPUT, with ssh's message, when ssh refuses the configuration. */
int ssh_config_look_up(struct ssh_config *config, const char *destination, struct ssh_host *ret,
                       struct failure *failure);

/* Splits "[user@]host[:port]" and "[user@][address]:port". *RET_USER is NULL and *RET_PORT 0 where that part
 * is missing; the caller frees the strings. FAILURE_INPUT for other texts, and where a part begins with "-"
 * or has a character that names cannot have. */
int ssh_destination_parse(const char *destination, char **ret_user, char **ret_host, unsigned *ret_port,
                          struct failure *failure);

#endif
