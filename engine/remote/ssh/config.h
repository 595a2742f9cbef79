/*
 * What the user's ssh configuration says of one destination. `ssh -G` reads ssh_config(5), with all that it
 * may have; here its answer is read. Where OpenSSH's client is not installed, the only configuration is
 * "none".
 */
#ifndef ASSAY_SSH_CONFIG_H
#define ASSAY_SSH_CONFIG_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

/* Strings are owned. NULL where nothing was said, and where that is the default of ssh. */
struct ssh_host {
    char *host_name; /* to connect to; never NULL */
    char *user;      /* never NULL */
    unsigned port;
    char **identities; /* ~ and tokens expanded, in the order of the configuration */
    size_t identity_count;
    bool identities_only;
    char **certificates; /* of users, for the identities; expanded likewise */
    size_t certificate_count;
    char *identity_agent; /* a socket's path, "none", or "SSH_AUTH_SOCK" */
    char *proxy_jump;     /* "[user@]host[:port],...", or "none" */
    char *proxy_command;
    char *known_hosts;  /* files of the user and of the system, separated by blanks */
    char *revoked_keys; /* the file of RevokedHostKeys, expanded; NULL: none */
    char *host_key_alias;
    unsigned connect_timeout; /* s; 0: nothing was said */
};
void ssh_host_clear(struct ssh_host *host);

struct ssh_config;

/* PATH: the file in place of ~/.ssh/config and /etc/ssh/ssh_config (NULL); "none" or "": an empty
 * configuration, for which ssh is not run. HOME stands for "~"; when it is not the home of the password file,
 * HOME/.ssh/config is the only file, or /etc/ssh/ssh_config where there is none. FAILURE_INPUT when PATH
 * cannot be read. */
int ssh_config_new(const char *path, const char *home, struct ssh_config **ret, struct failure *failure);
void ssh_config_free(struct ssh_config *config);

/* DESTINATION: the host as the user named it, without user and port. Fills RET, which the caller clears. Runs
 * ssh, unless it has been run for a host about which the configuration says the same: the same patterns of
 * Host match both, there are no Match blocks that ask for more than all hosts, and the answer differs only in
 * the host's name. FAILURE_INPUT, with ssh's own words, when ssh refuses the configuration. */
int ssh_config_look_up(struct ssh_config *config, const char *destination, struct ssh_host *ret,
                       struct failure *failure);

/* Splits "[user@]host[:port]" and "[user@][address]:port". *RET_USER NULL and
 * *RET_PORT 0 where there is none; strings owned by the caller. FAILURE_INPUT when it is none, or when a part
 * begins with "-" or has a character that no name has. */
int ssh_destination_parse(const char *destination, char **ret_user, char **ret_host, unsigned *ret_port,
                          struct failure *failure);

#endif
